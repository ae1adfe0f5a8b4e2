"""The options of `run`, as one plain table, and the parser of it and of others like it: click's help is made from the same tables.

`run` is somebody's editor starting up, and click costs 39 ms (CPython 3.11); so this imports nothing.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


HELP = ("-h", "--help")

NO_FILE = "--capture wants the name of a file, and got an empty one"


SEVERAL = "\0"
"""What stands between the values of an option that is given several times: no argument of a program can hold it."""


class Option:
    """One option: its name without dashes, what its value is called (empty for a switch), its choices, what it does.

    `repeats` says that it may be given several times, and all of its values count: `SEVERAL` stands between them.
    """

    __slots__ = ("choices", "help", "metavar", "name", "repeats")

    def __init__(self, name: str, metavar: str, help: str, choices: Sequence[str] = (), *, repeats: bool = False) -> None:
        self.name = name
        self.metavar = metavar
        self.help = help
        self.choices = choices
        self.repeats = repeats


RUN = (
    Option("label", "NAME", "What to call the server; by default a name made from the command."),
    Option("capture", "FILE", "Where to record; by default a new file in the store. An existing FILE is kept: FILE-2 is used."),
    Option("redact", "", "`credentials` (the default) replaces secrets by pseudonyms; `none` records all.", ("credentials", "none")),
    Option("max-size", "SIZE", "Past this many bytes (20mb, 1gb) payloads are kept as length and SHA-256 only."),
    Option("quiet", "", "Say nothing on stderr but that recording fails."),
)  # fmt: skip


class UsageError(Exception):
    """A command line that makes no sense; its text says what to write instead."""


class HelpWanted(Exception):  # noqa: N818 - nothing is wrong
    """Somebody asked what can be written here."""


def parse(
    arguments: list[str], options: Sequence[Option], advice: str = "put -- before the server's command"
) -> tuple[dict[str, str], list[str]]:
    """Options by name, and what follows them: all behind `--`, or from the first word that is no option on.

    `advice` follows on what is said of an option that there is not. A switch that is given has the value "yes".
    Raises: UsageError. HelpWanted: for `--help` or `-h` among the options.
    """
    known = {f"--{one.name}": one for one in options}
    values: dict[str, str] = {}
    rest = list(arguments)
    while rest and rest[0].startswith("-"):
        word = rest.pop(0)
        if word == "--":
            break
        if word in HELP:
            raise HelpWanted
        name, equals, value = word.partition("=")
        option = known.get(name)
        if option is None:
            raise UsageError(f"there is no option {name}; {advice}")
        if not option.metavar and not option.choices:
            if equals:
                raise UsageError(f"{name} takes no value")
            values[option.name] = "yes"
            continue
        if not equals:
            if not rest or rest[0] == "--":
                raise UsageError(f"{name} wants a value")
            value = rest.pop(0)
        if option.choices and value not in option.choices:
            raise UsageError(f"{name} is one of {', '.join(option.choices)}, not {value}")
        values[option.name] = f"{values[option.name]}{SEVERAL}{value}" if option.repeats and option.name in values else value
    return values, rest


def size_bytes(text: str) -> int:
    """Bytes in `20mb`, `1gb`, `500kb` or `1000000`: a kb is 1000 bytes. Raises: UsageError."""
    lower = text.strip().lower()
    for suffix, factor in (("kb", 10**3), ("mb", 10**6), ("gb", 10**9), ("tb", 10**12), ("b", 1), ("", 1)):
        if lower.endswith(suffix):
            number = lower[: len(lower) - len(suffix)].strip()
            try:
                size = int(float(number) * factor)
            except (ValueError, OverflowError):
                break
            if size > 0:
                return size
            break
    raise UsageError(f"a size is a number above 0 with kb, mb or gb, like 20mb; not {text}")

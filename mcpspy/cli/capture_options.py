"""Tables of options, and their parsers: for `run`, `mock`, `show` and `list`, which cannot wait for click (39 ms on CPython 3.11).

Click's help is made from the same tables. Nothing is imported here before click is wanted.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    import click


HELP = ("-h", "--help")

NO_FILE = "--capture needs the name of a file; it is empty"


class Option:
    """One option: its name without dashes, the name of its value (empty for a switch), its choices, its help.

    An option that `repeats` may be given several times, and all its values count. Of others the last one counts.
    `letter` is its short form, `parameter` that of the function which takes its value; by default it has the option's name.
    """

    __slots__ = ("choices", "help", "letter", "metavar", "name", "parameter", "repeats")

    def __init__(
        self,
        name: str,
        metavar: str,
        help: str,
        choices: Sequence[str] = (),
        *,
        repeats: bool = False,
        letter: str = "",
        parameter: str = "",
    ) -> None:
        self.name = name
        self.metavar = metavar
        self.help = help
        self.choices = choices
        self.repeats = repeats
        self.letter = letter
        self.parameter = parameter or name.replace("-", "_")

    @property
    def spellings(self) -> list[str]:
        """Its spellings on a command line."""
        return [*([f"-{self.letter}"] if self.letter else []), f"--{self.name}"]

    @property
    def is_switch(self) -> bool:
        """True if it takes no value."""
        return not self.metavar and not self.choices


RUN = (
    Option("label", "NAME", "A name for the server. By default it is made from the command."),
    Option("capture", "FILE", "Where to record. The default is a new file in the store. If FILE exists, FILE-2 is used."),
    Option("redact", "", "`credentials` (the default) replaces secrets with pseudonyms; `none` records everything.",
           ("credentials", "none")),
    Option("max-size", "SIZE", "Once the capture has this size (20mb, 1gb), keep only the length and SHA-256 of payloads."),
    Option("quiet", "", "Print nothing to stderr, except when recording fails."),
    Option("intercept", "TEXT", "Change traffic: FILTER => ACTION, as in 'tool:search => delay 3s'. Can be repeated.", repeats=True),
    Option("intercepts", "FILE", "A file of intercepts, one per line; # begins a comment.", repeats=True),
    Option("seed", "NUMBER", "The seed of the random choices of intercepts. By default it is random; the capture has it."),
    Option("reload", "", "Restart the server when its files change, and keep the client."),
    Option("watch", "PATH", "Restart when this file or folder changes, not the folder of the command's program. Can be repeated.",
           repeats=True),
    Option("stop-first", "", "End the old server before the new one starts: for one that needs a port, a lock or a file for itself."),
    Option("grace", "TIME", "How long the old server may take to finish its calls; the default is 5s."),
    Option("no-control", "", "Open no socket for mcpspy control. Without this, only your own programs can use it."),
)  # fmt: skip


class UsageError(Exception):
    """A command line that cannot be used; its text says what to write instead."""


class HelpWanted(Exception):  # noqa: N818 - nothing is wrong
    """`--help` or `-h` on the command line."""


Values = dict[str, list[str]]
"""The values of each option that was given, by its name, in their order. A switch has one empty value."""


def parse(
    arguments: Sequence[str], options: Sequence[Option], advice: str = "put -- before the server's command"
) -> tuple[Values, list[str]]:
    """Read the options at the beginning of `arguments`. Returns their values, and the words after them.

    The words after them begin after `--`, or at the first word that is no option. `advice` ends the message about an unknown option.

    Raises:
        UsageError: for an unknown option, or a wrong value.
        HelpWanted: for `--help` or `-h` among the options.
    """
    known = {f"--{option.name}": option for option in options}
    values: Values = {}
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
        if option.is_switch:
            if equals:
                raise UsageError(f"{name} takes no value; leave out ={value}")
        elif not equals:
            if not rest or rest[0] == "--":
                raise UsageError(f"{name} needs a value")
            value = rest.pop(0)
        if option.choices and value not in option.choices:
            raise UsageError(f"{name} is one of {', '.join(option.choices)}, not {value}")
        values.setdefault(option.name, []).append(value)
    return values, rest


def usual_values(arguments: Sequence[str], options: Sequence[Option]) -> tuple[dict[str, Any], tuple[str, ...]] | None:
    """Read options and words in any order. Returns the values of all parameters, as click gives them, and the words.

    None where click has to read them: for help, an error, an option that is not in the table, or a rare spelling.
    """
    known = {spelling: option for option in options for spelling in option.spellings}
    values: dict[str, Any] = {
        option.parameter: () if option.repeats else False if option.is_switch else None for option in options
    }
    words: list[str] = []
    rest = list(arguments)
    while rest:
        word = rest.pop(0)
        if not word.startswith("-") or word == "-":
            words.append(word)
            continue
        name, equals, value = word.partition("=")
        option = known.get(name)
        if option is None or (equals and (option.is_switch or not name.startswith("--"))):
            return None
        if option.is_switch:
            values[option.parameter] = True
            continue
        if not equals:
            if not rest or rest[0].startswith("-"):
                return None
            value = rest.pop(0)
        if option.choices and value not in option.choices:
            return None
        values[option.parameter] = (*values[option.parameter], value) if option.repeats else value
    return values, tuple(words)


def last(values: Values, name: str, default: str = "") -> str:
    """Return the value that counts for an option that does not repeat."""
    return values[name][-1] if name in values else default


def size_bytes(text: str) -> int:
    """Read `20mb`, `1gb`, `500kb` or `1000000` as bytes; a kb is 1000 bytes. Raises: UsageError."""
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


def add_click_options(command: click.Command, options: Sequence[Option]) -> None:
    """Give a click command the options of a table."""
    import click

    for option in options:
        command.params.append(
            click.Option(
                [option.parameter, *option.spellings],
                metavar=option.metavar or None,
                type=click.Choice(option.choices) if option.choices else None,
                is_flag=option.is_switch or None,  # with False click takes the option without a value too
                multiple=option.repeats,
                help=option.help,
            )
        )


def arguments_of(values: Mapping[str, str | bool | tuple[str, ...] | None]) -> list[str]:
    """Write the values that click read from options as the words of a command line."""
    words: list[str] = []
    for name, value in values.items():
        option = f"--{name.replace('_', '-')}"
        if isinstance(value, bool):
            words += [option] * value
        elif value is not None:
            words += [f"{option}={text}" for text in ((value,) if isinstance(value, str) else value)]
    return words

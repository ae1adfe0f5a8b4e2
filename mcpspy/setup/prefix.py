"""What `mcpspy wrap` puts before a server's command, and how it is known again: by its form, never by its path.

So `unwrap` needs no memory of what was done, and takes away what an older mcpspy, or one that lay elsewhere, put there.
"""

import re
from collections.abc import Iterator, Sequence

NAME = re.compile(r"(?i)(?:.*[/\\])?mcpspy(?:\.exe|\.cmd)?")
RUN_SWITCHES = {"--quiet"}
"""The options of `mcpspy run` that take no value; tests hold this against its table of options."""

MAX_WORDS_BEFORE = 6
"""As in `uv tool run --from mcpspy mcpspy run`. A command that names mcpspy later on is some other program's argument."""


def words(program: Sequence[str], label: str, *, new_args: bool) -> list[str]:
    """All that stands before the server's command.

    `--label=NAME`, in one word, says that the entry had no arguments at all, so that `unwrap` takes the empty list away too.
    """
    label = label if label != "--" else "server"  # as a word of its own it would end the options
    named = [f"--label={label}"] if new_args else ["--label", label]
    return [*program, "run", *named, "--"]


def inner(argv: Sequence[str]) -> int | None:
    """Where the server's own command begins behind `mcpspy run … --`; None if there is no such prefix, or nothing behind it."""
    told = _behind_run(argv)
    return None if told is None else _behind_options(argv, told)


def options(argv: Sequence[str]) -> list[str]:
    """What `mcpspy run` is told there besides the label: where to record, and what not to redact. Empty without such a prefix."""
    return [word for told in _options(argv) if told[0].partition("=")[0] != "--label" for word in told]


def made_args(argv: Sequence[str]) -> bool:
    """Whether the prefix says that the entry had no list of arguments before."""
    return any(told[0].startswith("--label=") for told in _options(argv))


def _options(argv: Sequence[str]) -> Iterator[list[str]]:
    """What `mcpspy run` is told there, each option with its value: a server may have the name of an option."""
    behind = inner(argv)
    words = [] if behind is None else list(argv[_behind_run(argv) : behind])
    while words and words[0] != "--":
        ends = 1 if "=" in words[0] or words[0] in RUN_SWITCHES else 2
        yield words[:ends]
        del words[:ends]


def _behind_run(argv: Sequence[str]) -> int | None:
    for at, word in enumerate(argv[:MAX_WORDS_BEFORE]):
        if word == "--":
            return None
        if NAME.fullmatch(word) and argv[at + 1 : at + 2] == ["run"]:
            return at + 2
    return None


def _behind_options(argv: Sequence[str], at: int) -> int | None:
    while at < len(argv) and argv[at].startswith("-"):
        if argv[at] == "--":
            at += 1
            break
        at += 1 if "=" in argv[at] or argv[at] in RUN_SWITCHES else 2
    return at if at < len(argv) else None

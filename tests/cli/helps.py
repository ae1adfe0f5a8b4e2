"""The commands of mcpspy and their options, and what of a command line they do not know."""

import re
from collections.abc import Iterator

import click

from mcpspy.cli.export.command import command as export
from mcpspy.cli.export.formats import FORMATS
from mcpspy.cli.verbs import VERBS, verb_command

OPTION = re.compile(r"-[a-zA-Z]|--[a-z][a-z-]*")


def _commands() -> Iterator[tuple[tuple[str, ...], click.Command]]:
    for verb in VERBS:
        yield (verb,), verb_command(verb)
    for name in FORMATS:
        command = export.get_command(click.Context(export), name)
        assert command is not None
        yield ("export", name), command


COMMANDS = dict(_commands())
"""Every verb, and every format of `export`, by the words that call it."""


def unknown_options(words: list[str]) -> set[str]:
    """Find words of a `mcpspy` command line that look like options and are none of its command's; ignore those after `--`."""
    called = tuple(words[:2]) if tuple(words[:2]) in COMMANDS else tuple(words[:1])
    own = words[: words.index("--")] if "--" in words else words
    known = {option for param in COMMANDS[called].params for option in (*param.opts, *param.secondary_opts)}
    return {name for word in own if OPTION.fullmatch(name := word.partition("=")[0])} - known - {"--help", "-h"}

"""The verbs of the command line: the module and the one-line help of each."""

from importlib import import_module
from typing import NamedTuple

import click


class Verb(NamedTuple):
    """A verb: its module within this room, whose `command` is a click command, and the line that `mcpspy --help` has for it."""

    module: str
    help: str


VERBS = {
    "run": Verb("run.command", "wrap a stdio server; its exit status is ours"),
    "proxy": Verb("proxy.command", "stand before an HTTP server"),
    "wrap": Verb("wrap.command", "put `run` into clients' configuration files"),
    "unwrap": Verb("wrap.unwrap", "take it out again, byte for byte"),
    "show": Verb("show.command", "the timeline; one exchange whole"),
    "check": Verb("check", "what went wrong, and whose fault it is; for people and CI"),
    "diff": Verb("diff", "what changed from one capture to another"),
    "export": Verb("export.command", "a page, diagrams, reports, tests, decoded messages"),
    "web": Verb("web", "the page, live in the browser"),
    "mock": Verb("mock.command", "serve a capture as a server"),
    "replay": Verb("replay.command", "drive a server with a capture, and compare"),
    "list": Verb("list", "the newest recordings and their captures"),
    "verify": Verb("verify", "is a capture intact; repair"),
    "prune": Verb("prune", "old captures out of the store, when you ask for it"),
    "demo": Verb("demo", "a small server and client through a real tap"),
    "completion": Verb("completion", "what a shell reads to complete all this"),
    "help": Verb("help", "a verb's options; topics such as filters"),
}
"""In the order that `mcpspy --help` shows."""


def verb_command(verb: str) -> click.Command:
    """Import the click command of a verb.

    Raises:
        KeyError: if there is no such verb.
    """
    command: click.Command = import_module(f"mcpspy.cli.{VERBS[verb].module}").command
    return command

"""The verbs of the command line and the topics of `mcpspy help`: where each verb's module is, and one line of help for each."""

from importlib import import_module
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    import click

COMPLETES: Final = "_MCPSPY_COMPLETE"
"""The environment variable with which a shell asks for completions; click's name for it."""


class Verb(NamedTuple):
    """A verb: its module within this room, and its line in `mcpspy --help`."""

    module: str
    help: str
    name: str = "command"
    """The name of the click command in the module."""


VERBS: Final = {
    "run": Verb("run", "run a stdio server through mcpspy"),
    "proxy": Verb("proxy.command", "record an HTTP server, or a model API, behind a local URL"),
    "wrap": Verb("wrap.command", "insert mcpspy between your clients and their servers"),
    "unwrap": Verb("wrap.command", "remove it again, byte for byte", "unwrap"),
    "show": Verb("show.command", "show the timeline, or one exchange in full"),
    "tui": Verb("tui", "look, search and act with keys, in a terminal interface"),
    "control": Verb("control", "change the traffic of a running server, or restart it"),
    "check": Verb("check", "find what went wrong, and whose fault it is; for people and CI"),
    "diff": Verb("diff", "show what changed from one capture to another"),
    "export": Verb("export.command", "write a page, a diagram, a report, a test, decoded messages"),
    "query": Verb("columns.query", "run SQL over all captures"),
    "otlp": Verb("columns.otlp", "send recorded calls as spans and metrics to a collector"),
    "web": Verb("web.command", "show recordings live in the browser"),
    "mcp": Verb("web.agent", "let an agent look at recordings: an MCP server over captures"),
    "mock": Verb("mock.command", "serve a capture as a server"),
    "replay": Verb("replay.command", "send a capture's requests to a server, and compare the answers"),
    "call": Verb("call.command", "send one request: a recorded one again, or a call of a tool"),
    "trial": Verb("trial", "test a client with faults of its server, or the reverse"),
    "import": Verb("importing", "make captures of logs and files that others recorded"),
    "list": Verb("list", "list the newest recordings and their captures"),
    "verify": Verb("verify", "check that a capture is intact; repair it"),
    "prune": Verb("prune", "delete old captures"),
    "demo": Verb("demo", "record a small server and client, and show the result"),
    "completion": Verb("completion", "print the shell's completion script"),
    "help": Verb("help", "explain a verb, a topic or a rule"),
}
"""In the order that `mcpspy --help` shows."""

TOPICS: Final = {
    "filter": "which rows to show: the language of --filter",
    "captures": "where they are, and how to name one",
    "replay": "use a capture as a server, as a client, as a test",
    "privacy": "what is recorded, what is replaced, what to share",
    "rules": "what `mcpspy check` looks for; each rule is a topic too",
}
"""Subjects of `mcpspy help` that are no verbs, or concern several. `replay` is both: the verb's options are in `replay --help`."""


def verb_command(verb: str) -> "click.Command":
    """Import the click command of a verb.

    Raises:
        KeyError: if there is no such verb.
    """
    module, _, name = VERBS[verb]
    command: click.Command = getattr(import_module(f"mcpspy.cli.{module}"), name)
    return command

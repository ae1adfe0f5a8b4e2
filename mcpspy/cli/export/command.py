"""`mcpspy export`: what was recorded in the form that another program or a page wants, one module per format.

The module `export_FORMAT` of this room has a click `command`; it is imported when it is called.
"""

from __future__ import annotations

import os
from importlib import import_module

import click

from ...views.text.escape import safe_text
from ..verbs import COMPLETES

FORMATS = {
    "mermaid": "a sequence diagram for Mermaid: in Markdown, on a page, at mermaid.live",
    "plantuml": "the same for PlantUML",
    "svg": "the same as a picture, in one file",
    "text": "the same as a ladder of characters",
    "html": "one page for the browser: timeline, waterfall, diagram, findings, numbers",
    "markdown": "a report to be pasted into an issue, with secrets masked",
    "perfetto": "a Chrome trace, for ui.perfetto.dev and speedscope",
    "har": "the HTTP of it, for browsers and mitmproxy",
    "curl": "requests that went over HTTP, as commands",
    "jsonl": "the decoded messages, one JSON object per line (docs/json.md)",
    "pytest": "a test that asks the same again, of the capture (docs/pytest.md)",
    "share": "a capture that can be shown to anybody, and still be played (docs/share.md)",
}
MODULES = {"share": "share_format"}
"""The formats and what `mcpspy export --help` says of them, in the order shown."""


class _Formats(click.Group):
    """A group whose commands are imported when they are wanted."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(FORMATS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in FORMATS:
            return None
        command: click.Command = import_module(f"mcpspy.cli.export.{MODULES.get(cmd_name, cmd_name)}").command
        if COMPLETES in os.environ:
            from ..completion import offer

            offer(command)
        return command

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the format, or name those that there are."""
        if args and args[0] not in FORMATS:
            raise click.UsageError(f"there is no format {safe_text(args[0])}; there is {', '.join(FORMATS)}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Formats"):
            formatter.write_dl(list(FORMATS.items()))


@click.command("export", cls=_Formats, subcommand_metavar="FORMAT [WHAT]…")
def command() -> None:
    """Write what was said as a diagram, as data or as a test.

    \b
    Examples:
      mcpspy export mermaid @:7..20 > story.mmd
      mcpspy export svg weather -o weather.svg
      mcpspy export text -F 'tool:search*'

    WHAT is as in `mcpspy show`: captures, recordings, labels; `:7..20` takes rows 7 to 20 only. `mcpspy export FORMAT --help` has the
    options of each format.
    """

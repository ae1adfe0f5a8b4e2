"""`mcpspy export`: recordings in a form for another program or a page. Its table of formats makes one click command for each."""

import os
from importlib import import_module

import click

from ...views.text.escape import safe_text
from ..click_types import WhatCommand
from ..filter_option import filter_option
from ..verbs import COMPLETES
from .formats import FORMATS, Format
from .selection import ExportRequest


class _Formats(click.Group):
    """A group whose commands are made when they are used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(FORMATS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        format = FORMATS.get(cmd_name)
        if format is None:
            return None
        command: click.Command
        if isinstance(format, Format):
            command = _format_command(cmd_name, format)
        else:
            command = import_module(f"mcpspy.cli.{format.module}").command
        if COMPLETES in os.environ:
            from ..completion import offer

            offer(command)
        return command

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the format, or list those that there are."""
        if args and args[0] not in FORMATS:
            raise click.UsageError(f"there is no format {safe_text(args[0])}; the formats are {', '.join(FORMATS)}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Formats"):
            formatter.write_dl([(name, format.summary) for name, format in FORMATS.items()])


def _format_command(name: str, format: Format) -> click.Command:
    """Make the click command of a format."""

    @click.command(name, cls=WhatCommand, help=format.help)
    @click.argument("what", nargs=-1)
    @click.option(
        "-o", "--output", metavar="FILE", type=click.Path(dir_okay=False), help="Write to FILE instead of standard output."
    )
    @filter_option
    def command(what: tuple[str, ...], output: str | None, filters: tuple[str, ...], **options: object) -> None:
        format.write(ExportRequest(what, filters, output, options))

    command.params += format.options
    return command


@click.command("export", cls=_Formats, subcommand_metavar="FORMAT [WHAT]…")
def command() -> None:
    """Write recordings as a diagram, as data, as a report or as a test.

    \b
    Examples:
      mcpspy export mermaid @:7..20 > story.mmd
      mcpspy export svg weather -o weather.svg
      mcpspy export text -F 'tool:search*'

    WHAT is as in `mcpspy show`: captures, recordings, labels; `:7..20` selects rows 7 to 20. `mcpspy export FORMAT --help` has the
    options of each format.
    """

"""`mcpspy import`: captures of files that something else recorded."""

from __future__ import annotations

import click

from ..errors import ImportFileError
from ..imports.formats import FORMATS
from ..imports.source import FACTS
from ..views.text.escape import safe_text
from ..views.text.units import counted
from .converting import STDOUT, CaptureFiles, ImportedCapture, copy_all, open_source
from .screen import say


@click.command("import")
@click.argument("files", nargs=-1, required=True, metavar="FILE…")
@click.option(
    "--as",
    "named",
    type=click.Choice([known.name for known in FORMATS]),
    help="The format. By default it is recognised by the content.",
)
@click.option(
    "-o",
    "--out",
    metavar="OUT",
    help="Write to this file, further sessions beside it; - is standard output. The default is the store.",
)
@click.option("--follow", is_flag=True, help="Keep importing what is added to the file. Ctrl-C ends it.")
@click.option(
    "--redact",
    type=click.Choice(["credentials", "none"]),
    default="credentials",
    show_default=True,
    help="What is replaced in heads of HTTP before anything is written.",
)
def command(*, files: tuple[str, ...], named: str | None, out: str | None, follow: bool, redact: str) -> int:
    """Make captures of files that something else recorded, and print their paths.

    FILE is a log of a client or a server with JSON-RPC messages in its lines, a packet capture of HTTP (pcap, pcapng),
    a HAR, a log of mcpsnoop, a database of MCPHawk, or - for standard input.
    What FILE does not have, such as times, is missing in the capture too, and causes no finding.
    Other verbs take FILE in place of a capture.

    \b
    Examples:
      mcpspy import ~/Library/Logs/Claude/mcp-server-weather.log
      mcpspy show mcp-server-weather.log         import and show it, without a capture
      mcpspy check dump.pcapng                   find what went wrong in a packet capture
      mcpspy show -f mcp-server-weather.log      show what is added to it
      ssh host cat server.log | mcpspy import - -o - | mcpspy show -
    """
    if follow and len(files) > 1:
        raise click.UsageError("--follow imports one file; name one.")
    made = 0
    for file in files:
        made += len(_import(file, named, out, redact, follow=follow))
    return 0 if made else ImportFileError.exit_status


def _import(path: str, named: str | None, out: str | None, redact: str, *, follow: bool) -> list[ImportedCapture]:
    files = CaptureFiles(out, redact=redact, complain=say)
    if follow:
        from .converting import CAUGHT_UP, import_growing

        if STDOUT in (out, path):
            raise click.UsageError("--follow reads a file and writes to one; leave out -.")
        import_growing(path, named, files, lambda: click.echo(CAUGHT_UP), say)
    else:
        source = open_source(path, named)
        with source.file:
            copy_all(source.importer, source.chunks(), files)
        if not files.captures:
            raise source.nothing(path)
    for capture in files.captures:
        if capture.path != STDOUT:
            click.echo(capture.path)
    if files.captures:
        say(f"mcpspy: {safe_text(path)}: {counted(len(files.captures), 'session')}; {_lacks(files.captures[0])}")
    return files.captures


def _lacks(capture: ImportedCapture) -> str:
    """Say what a capture does not have as it was on the wire."""
    facts = capture.header.tapped["imported"]["facts"]
    reconstructed = [name for name in FACTS if facts[name] == "reconstructed"]
    missing = [name for name in FACTS if facts[name] == "missing"]
    words = [f"missing: {', '.join(missing)}"] if missing else ["everything is there"]
    return "; ".join([*words, *([f"reconstructed: {', '.join(reconstructed)}"] if reconstructed else [])])

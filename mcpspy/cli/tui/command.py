"""`mcpspy tui`: rows, details, filters and findings with keys, live."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import click

from ...errors import AddressError
from ..by_click.types import WhatCommand
from ..screen import takes_our_letters
from ..transcripts import select_captures

if TYPE_CHECKING:
    from ...tui.source import RowSource
    from .recordings import StoreDesk


@click.command("tui", cls=WhatCommand)
@click.argument("what", nargs=-1)
@click.option("--ascii", "is_ascii", is_flag=True, help="Draw with ASCII characters only.")
def command(what: tuple[str, ...], is_ascii: bool) -> None:
    """Show rows, and the selected one in detail; search and act with keys. `?` lists the keys.

    WHAT is as in `mcpspy show`. Without it, the newest recording is followed. Append `:7` to begin at row 7.

    \b
    Examples:
      mcpspy tui
      mcpspy tui weather:7
    """
    if not all(stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr)) or os.environ.get("TERM", "") in (
        "",
        "dumb",
        "unknown",
    ):
        raise click.UsageError("tui needs a terminal. In a script, and for a screen reader, use mcpspy show.")
    from ...tui.app import Terminal
    from ...tui.drawing import all_letters, ascii_letters
    from .programs import Programs
    from .recordings import StoreDesk

    desk = StoreDesk()
    source, row = _first_source(desk, what)
    letters = ascii_letters if is_ascii or not takes_our_letters() else all_letters
    terminal = Terminal(source, desk, Programs(), letters, row=row, follows=not what)
    terminal.run()
    if terminal.crash is not None:
        raise terminal.crash


def _first_source(desk: StoreDesk, what: tuple[str, ...]) -> tuple[RowSource, int]:
    """Open what the user named, or the newest recording. Raises: AddressError, CaptureError; OSError."""
    from .sources import source_of

    if not what:
        newest = desk.recordings()[:1]
        source = desk.open(newest[0].name) if newest else None
        if source is not None:
            return source, 0
    selection = select_captures(what)
    if selection.rows is None:
        return source_of(selection), 0
    source = source_of(selection)
    row = selection.rows[0]
    if source.transcript.row(row) is None and not source.live:
        raise AddressError(selection.what, f"there is no row {row}")
    return source, row

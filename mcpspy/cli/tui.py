"""`mcpspy tui`: rows, details, filters and findings with keys, live."""

from __future__ import annotations

import gc
import os
import sys
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Final

from ..errors import AddressError
from ..platform import terminals
from .capture_options import Option, add_click_options
from .screen import takes_our_letters
from .transcripts import select_captures

if TYPE_CHECKING:
    import click

    from ..tui.source import RowSource
    from .tui_sources import StoreDesk

OPTIONS: Final = (Option("ascii", "", "Draw with ASCII characters only.", parameter="is_ascii"),)
"""Those that are read without click."""


def run(*, what: tuple[str, ...], is_ascii: bool) -> None:
    """Show rows, and the selected one in detail; search and act with keys. `?` lists the keys.

    WHAT is as in `mcpspy show`. Without it, the newest recording is followed. Append `:7` to begin at row 7.

    \b
    Examples:
      mcpspy tui
      mcpspy tui weather:7
    """
    _need_terminal()
    guard = terminals.guard()
    from ..tui.drawing import all_letters, ascii_letters
    from ..tui.first_frame import drawn, first_frame
    from .tui_sources import StoreDesk

    desk = StoreDesk()
    source, row = _first_source(desk, what)
    letters = ascii_letters if is_ascii or not takes_our_letters() else all_letters
    screen = terminals.DrawnTerminal()
    try:
        lines = first_frame(source, letters, get_terminal_size(), row)
        if lines:
            screen.draw(drawn(lines))
        gc.disable()  # as `__main__` does for imports
        from ..tui.app import Terminal  # with Textual, for which nobody waits who looks at the first frame
        from .tui_sources import Programs

        terminal = Terminal(source, desk, Programs(), letters, row=row, follows=not what)
        terminal.take_over(screen.hand_over, guard)
        gc.freeze()
        gc.enable()
        terminal.run()
    finally:
        screen.close()
    if terminal.crash is not None:
        raise terminal.crash


def _need_terminal() -> None:
    can_draw = os.environ.get("TERM", "") not in ("", "dumb", "unknown")
    if can_draw and all(stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr)):
        return
    import click  # which makes the first screen wait

    raise click.UsageError("tui needs a terminal. In a script, and for a screen reader, use mcpspy show.")


def _first_source(desk: StoreDesk, what: tuple[str, ...]) -> tuple[RowSource, int]:
    """Open what the user named, or the newest recording. Raises: AddressError, CaptureError; OSError."""
    from .tui_sources import source_of

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


def __getattr__(name: str) -> click.Command:
    """Make `command` when click asks for it."""
    if name != "command":
        raise AttributeError(name)
    import click

    from .click_types import WhatCommand

    command = click.argument("what", nargs=-1)(click.command("tui", cls=WhatCommand)(run))
    add_click_options(command, OPTIONS)
    return command

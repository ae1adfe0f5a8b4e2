"""`mcpspy export text`: a sequence diagram as a ladder of characters."""

from __future__ import annotations

from typing import Any

import click

from ...views.sequence.ladder import ladder
from ...views.text.line import fitted, plain
from ..screen import Screen
from ..transcripts import WhatCommand
from .diagram import drawing_options, drawn
from .rows import write

LADDER_CELLS = 100
"""How wide a ladder is that goes to a file or a pipe, unless COLUMNS says otherwise."""


@click.command("text", cls=WhatCommand)
@drawing_options
def command(what: tuple[str, ...], output: str | None, filters: tuple[str, ...], **wanted: Any) -> None:
    """Draw a sequence diagram with characters, as wide as the screen.

    \b
    Example:
      mcpspy export text @:7..20
    """
    layout = drawn(what, filters, **wanted)
    screen = Screen()
    width = (screen.width if output is None else None) or LADDER_CELLS
    lines = (fitted(line, width) for line in ladder(layout, width=width))
    if output is None:
        screen.lines(lines)
    else:
        write(map(plain, lines), output)

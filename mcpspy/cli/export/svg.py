"""`mcpspy export svg`: a sequence diagram as an SVG file."""

from __future__ import annotations

from typing import Any

import click

from ...views.sequence.svg import svg
from ..transcripts import WhatCommand
from .diagram import drawing_options, drawn
from .rows import write


@click.command("svg", cls=WhatCommand)
@drawing_options
def command(what: tuple[str, ...], output: str | None, filters: tuple[str, ...], **wanted: Any) -> None:
    """Write a sequence diagram as a picture: one SVG file that loads nothing, light or dark as the screen is.

    \b
    Example:
      mcpspy export svg weather --show-proxy -o weather.svg
    """
    write(svg(drawn(what, filters, **wanted)), output)

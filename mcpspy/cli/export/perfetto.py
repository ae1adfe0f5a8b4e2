"""`mcpspy export perfetto`: a Chrome trace, for Perfetto and speedscope."""

from __future__ import annotations

import click

from ...views.export.perfetto import trace
from ..transcripts import WhatCommand
from .rows import asked_rows, what_options, write


@click.command("perfetto", cls=WhatCommand)
@what_options
def command(what: tuple[str, ...], output: str | None, filters: tuple[str, ...]) -> None:
    """Write a Chrome trace: a track per server, calls in lanes that do not overlap, for ui.perfetto.dev and speedscope.

    \b
    Example:
      mcpspy export perfetto @ -o session.trace.json
    """
    asked = asked_rows(what, filters)
    write(trace(asked.transcript, asked.rows), output)

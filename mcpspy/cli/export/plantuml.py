"""`mcpspy export plantuml`: a sequence diagram as PlantUML text."""

from __future__ import annotations

from typing import Any

import click

from ...views.sequence.plantuml import plantuml
from ..transcripts import WhatCommand
from .diagram import drawing_options, drawn
from .rows import write


@click.command("plantuml", cls=WhatCommand)
@drawing_options
def command(what: tuple[str, ...], output: str | None, filters: tuple[str, ...], **wanted: Any) -> None:
    """Write a sequence diagram for PlantUML.

    \b
    Example:
      mcpspy export plantuml @ -o story.puml && plantuml story.puml
    """
    write(plantuml(drawn(what, filters, **wanted)), output)

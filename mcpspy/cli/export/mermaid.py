"""`mcpspy export mermaid`: a sequence diagram as Mermaid text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click

from ...views.sequence.mermaid import MAX_TEXT_LETTERS, mermaid
from ..screen import say
from ..transcripts import WhatCommand
from .diagram import drawing_options, drawn
from .rows import write


@click.command("mermaid", cls=WhatCommand)
@drawing_options
def command(what: tuple[str, ...], output: str | None, filters: tuple[str, ...], **wanted: Any) -> None:
    """Write a sequence diagram for Mermaid: in Markdown, on a page, at mermaid.live.

    \b
    Examples:
      mcpspy export mermaid @:7..20 > story.mmd
      mcpspy export mermaid weather --title "A rainy day" --detail params
    """
    write(_counted(mermaid(drawn(what, filters, **wanted))), output)


def _counted(lines: Iterator[str]) -> Iterator[str]:
    letters = 0
    for line in lines:
        letters += len(line) + 1
        yield line
    if letters > MAX_TEXT_LETTERS:
        say(
            f"mcpspy: the diagram has {letters:,} letters, and Mermaid draws no more than {MAX_TEXT_LETTERS:,} unless its"
            " maxTextSize is raised. Take fewer rows, as in @:1..40, or --max-messages."
        )

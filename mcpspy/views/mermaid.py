"""A sequence diagram as Mermaid text: https://mermaid.js.org/syntax/sequenceDiagram.html, read by Mermaid 11 and 12.

Participants have ids of ours, so that no captured name is ever syntax; every text is escaped. Refuses to judge how much Mermaid can
draw.
"""

from collections.abc import Iterator

from .cells import cut
from .diagram import Arrow, ArrowKind, Diagram
from .escape import mermaid_text

TEXT_CELLS = 120
"""Longer texts make a diagram unreadable, and are cut."""

MAX_TEXT_LETTERS = 50_000
"""More than this Mermaid draws only where its `maxTextSize` was raised."""

ARROWS = {
    ArrowKind.REQUEST: "->>",
    ArrowKind.RESPONSE: "-->>",
    ArrowKind.NOTIFICATION: "-)",
    ArrowKind.CANCELLATION: "-x",
    ArrowKind.LOST: "--x",
}


def mermaid(layout: Diagram) -> Iterator[str]:
    """The lines of the diagram."""
    yield "sequenceDiagram"
    for participant in layout.participants:
        yield f"    participant {participant.id} as {_text(participant.name)}"
    for step in layout.steps:
        if isinstance(step, Arrow):
            yield f"    {step.start}{ARROWS[step.kind]}{step.end}: {_text(step.text)}"
        else:
            yield f"    Note over {step.at}: {_text(step.text)}"


def _text(text: str) -> str:
    return mermaid_text(cut(text, TEXT_CELLS))

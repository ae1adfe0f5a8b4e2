"""A sequence diagram as Mermaid text: https://mermaid.js.org/syntax/sequenceDiagram.html, read by Mermaid 11 and 12.

Participants have ids of ours, so that no captured name is ever syntax; every text is escaped. Refuses to judge how much Mermaid can
draw.
"""

from collections.abc import Iterator, Sequence

from ..text.cells import cut
from ..text.escape import mermaid_text
from ..text.units import counted
from .model import TEXT_CELLS, Arrow, ArrowKind, Aside, Bars, Diagram, Group, GroupKind, LeftOut, Step

MAX_TEXT_LETTERS = 50_000
"""More than this Mermaid draws only where its `maxTextSize` was raised."""

ARROWS = {
    ArrowKind.REQUEST: "->>",
    ArrowKind.RESPONSE: "-->>",
    ArrowKind.NOTIFICATION: "-)",
    ArrowKind.CANCELLATION: "-x",
    ArrowKind.LOST: "--x",
}

INDENT = "    "


def mermaid(layout: Diagram) -> Iterator[str]:
    """The lines of the diagram."""
    yield "sequenceDiagram"
    if layout.title:
        yield f"{INDENT}title {_text(layout.title)}"
    for participant in layout.participants:
        yield f"{INDENT}{'actor' if participant.is_person else 'participant'} {participant.id} as {_text(participant.name)}"
    printer = _Printer(layout)
    yield from printer.steps(layout.steps, INDENT)
    yield from printer.close()


class _Printer:
    """Prints steps, and keeps count of the bars."""

    __slots__ = ("_all", "_bars")

    def __init__(self, layout: Diagram) -> None:
        self._all = ",".join(layout.outermost)
        self._bars = Bars()

    def steps(self, steps: Sequence[Step], indent: str) -> Iterator[str]:
        for step in steps:
            match step:
                case Arrow():
                    yield from (indent + line for line in self._arrow(step))
                case Aside():
                    yield f"{indent}Note over {step.at}: {_text(step.text)}"
                    if lane := self._bars.closes(step):
                        yield f"{indent}deactivate {lane}"
                case LeftOut():
                    yield f"{indent}Note over {self._all}: … {counted(step.count, 'more message')}"
                case Group(kind=GroupKind.LOOP):
                    yield f"{indent}loop {_text(step.title)}"
                    yield from self.steps(step.steps, indent + INDENT)
                    yield f"{indent}end"
                case Group():
                    yield f"{indent}rect rgba(128, 128, 128, 0.08)"
                    yield f"{indent}{INDENT}Note over {self._all}: {_text(step.title)}"
                    yield from self.steps(step.steps, indent + INDENT)
                    yield f"{indent}end"

    def close(self) -> Iterator[str]:
        """The ends of the bars that are open."""
        for lane in self._bars.close():
            yield f"{INDENT}deactivate {lane}"

    def _arrow(self, step: Arrow) -> Iterator[str]:
        opened = self._bars.opens(step)
        closed = self._bars.closes(step)
        sign = "+" if opened and opened == step.end else "-" if closed and closed == step.start else ""
        yield f"{step.start}{ARROWS[step.kind]}{sign}{step.end}: {_text(step.text)}"
        if opened and sign != "+":
            yield f"activate {opened}"
        if closed and sign != "-":
            yield f"deactivate {closed}"
        if step.details:
            yield f"Note over {step.start},{step.end}: {'<br/>'.join(map(_detail, step.details))}"


def _text(text: str) -> str:
    return mermaid_text(cut(text, TEXT_CELLS))


def _detail(text: str) -> str:
    """A line of a payload, with its indentation, which Mermaid would take away."""
    inner = text.lstrip(" ")
    return "#160;" * (len(text) - len(inner)) + mermaid_text(inner)

"""A sequence diagram as Mermaid text: https://mermaid.js.org/syntax/sequenceDiagram.html, accepted by Mermaid 11 and 12.

Participants have generated ids, so that no captured name becomes syntax, and every text is escaped.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ..text.cells import cut, wrapped
from ..text.escape import mermaid_text
from ..text.units import counted
from .diagram import (
    TEXT_CELLS,
    Activations,
    Arrow,
    ArrowKind,
    Aside,
    Diagram,
    Fragment,
    FragmentKind,
    OmittedMessages,
    Step,
    first_messages,
    flat,
)

MAX_TEXT_LETTERS = 50_000
"""Mermaid draws longer texts only if its `maxTextSize` was raised. Its `maxEdges` counts no messages, but edges of flowcharts."""

_ERROR = "rect rgba(220, 38, 38, 0.18)"
"""The background of an error, because Mermaid colours no text of a message."""

NOTE_CELLS = 26
"""The length of a line in a note. Mermaid makes the boxes of long ones narrower than their text."""

ARROWS = {
    ArrowKind.REQUEST: "->>",
    ArrowKind.RESPONSE: "-->>",
    ArrowKind.NOTIFICATION: "-)",
    ArrowKind.CANCELLATION: "-x",
    ArrowKind.LOST: "--x",
}

INDENT = "    "


def mermaid(layout: Diagram) -> Iterator[str]:
    """Print the lines of the diagram."""
    yield "sequenceDiagram"
    if layout.title:
        yield f"{INDENT}title {_text(layout.title)}"
    for participant in layout.participants:
        yield f"{INDENT}{'actor' if participant.is_person else 'participant'} {participant.id} as {_text(participant.name)}"
    printer = MermaidPrinter(layout)
    yield from printer.steps(layout.steps, INDENT)
    yield from printer.close()


def letters(layout: Diagram) -> int:
    """Count the characters of the text as Mermaid does, up to a few more than it draws."""
    count = 0
    for line in mermaid(layout):
        count += len(line.encode("utf-16-le", "surrogatepass")) // 2 + 1
        if count > MAX_TEXT_LETTERS:
            break
    return count


def fitting(layout: Diagram) -> Diagram:
    """Keep as many of the first messages as Mermaid draws."""
    if letters(layout) <= MAX_TEXT_LETTERS:
        return layout
    kept, least, most = layout, 0, sum(isinstance(step, Arrow) for step in flat(layout.steps))
    while least < most:
        count = (least + most) // 2
        part = replace(layout, steps=first_messages(layout.steps, count))
        if letters(part) <= MAX_TEXT_LETTERS:
            kept, least = part, count + 1
        else:
            most = count
    return kept


class MermaidPrinter:
    """Printer of steps that keeps count of the activations."""

    __slots__ = ("_all", "_bars")

    def __init__(self, layout: Diagram) -> None:
        self._all = ",".join(layout.outermost)
        self._bars = Activations()

    def steps(self, steps: Sequence[Step], indent: str) -> Iterator[str]:
        for step in steps:
            match step:
                case Arrow():
                    yield from (indent + line for line in self._arrow(step))
                case Aside():
                    yield from (indent + line for line in _marked(f"Note over {step.at}: {_note(step.text)}", step.style))
                    if lane := self._bars.closes(step):
                        yield f"{indent}deactivate {lane}"
                case OmittedMessages():
                    yield f"{indent}Note over {self._all}: … {counted(step.count, 'more message')}"
                case Fragment(kind=FragmentKind.LOOP):
                    yield f"{indent}loop {_text(step.title)}"
                    yield from self.steps(step.steps, indent + INDENT)
                    yield f"{indent}end"
                case Fragment():
                    yield f"{indent}rect rgba(128, 128, 128, 0.08)"
                    yield f"{indent}{INDENT}Note over {self._all}: {_text(step.title)}"
                    yield from self.steps(step.steps, indent + INDENT)
                    yield f"{indent}end"

    def close(self) -> Iterator[str]:
        """End the activations that are open."""
        for lane in self._bars.close():
            yield f"{INDENT}deactivate {lane}"

    def _arrow(self, step: Arrow) -> Iterator[str]:
        opened = self._bars.opens(step)
        closed = self._bars.closes(step)
        sign = "+" if opened and opened == step.end else "-" if closed and closed == step.start else ""
        yield from _marked(f"{step.start}{ARROWS[step.kind]}{sign}{step.end}: {_text(step.text)}", step.style)
        if opened and sign != "+":
            yield f"activate {opened}"
        if closed and sign != "-":
            yield f"deactivate {closed}"
        if step.details:
            yield f"Note over {step.start},{step.end}: {'<br/>'.join(map(_detail, step.details))}"


def _marked(line: str, style: str) -> tuple[str, ...]:
    """Print a line before a red background if it is an error."""
    return (_ERROR, f"{INDENT}{line}", "end") if style == "bad" else (line,)


def _text(text: str) -> str:
    return mermaid_text(cut(text, TEXT_CELLS))


def _note(text: str) -> str:
    """Print the text of a note at one lane on lines that its box holds."""
    return "<br/>".join(map(mermaid_text, wrapped(cut(text, TEXT_CELLS), NOTE_CELLS, TEXT_CELLS)))


def _detail(text: str) -> str:
    """Print a line of a payload with its indentation, which Mermaid would otherwise remove."""
    inner = text.lstrip(" ")
    return "#160;" * (len(text) - len(inner)) + mermaid_text(inner)

"""A sequence diagram as PlantUML text: https://plantuml.com/sequence-diagram, accepted by PlantUML 1.2020 and later.

Participants have generated ids, so that no captured name becomes syntax, and every text is escaped. Nothing is included.
"""

from collections.abc import Iterator, Sequence

from ..text.cells import cut
from ..text.escape import plantuml_text
from ..text.units import counted
from .diagram import TEXT_CELLS, Activations, Arrow, ArrowKind, Aside, Diagram, Fragment, FragmentKind, OmittedMessages, Step

ARROWS = {
    ArrowKind.REQUEST: "->",
    ArrowKind.RESPONSE: "-->",
    ArrowKind.NOTIFICATION: "->>",
    ArrowKind.CANCELLATION: "->x",
    ArrowKind.LOST: "-->x",
}


MAX_PIXELS = 4_096
"""PlantUML cuts PNGs that are higher, unless `PLANTUML_LIMIT_SIZE` says otherwise."""

_MESSAGE_PIXELS = 30
_NOTE_PIXELS = 35
_LINE_PIXELS = 16
_FRAGMENT_PIXELS = 45
"""The heights of what PlantUML draws in its own font, rounded up."""

_RED = "#B3261E"


def plantuml(layout: Diagram) -> Iterator[str]:
    """Print the lines of the diagram."""
    yield "@startuml"
    if advice := size_advice(layout):
        yield f"' {advice}"
    yield "hide footbox"
    if layout.title:
        yield f"title {_text(layout.title)}"
    for participant in layout.participants:
        yield f'{"actor" if participant.is_person else "participant"} "{_text(participant.name)}" as {participant.id}'
    printer = PlantumlPrinter(layout)
    yield from printer.steps(layout.steps)
    yield from printer.close()
    yield "@enduml"


def size_advice(layout: Diagram) -> str:
    """Say how to draw a diagram that is higher than PlantUML's limit; empty for others."""
    pixels = 100 + _pixels(layout.steps)
    if pixels <= MAX_PIXELS:
        return ""
    limit = -(-pixels // 1024) * 1024
    return f"PlantUML cuts PNGs at {MAX_PIXELS:,} pixels: PLANTUML_LIMIT_SIZE={limit} plantuml FILE, or plantuml -tsvg FILE"


def _pixels(steps: Sequence[Step]) -> int:
    """Estimate the height of steps."""
    pixels = 0
    for step in steps:
        match step:
            case Arrow():
                pixels += _MESSAGE_PIXELS + (len(step.details) * _LINE_PIXELS + _NOTE_PIXELS if step.details else 0)
            case Fragment():
                pixels += _FRAGMENT_PIXELS + _pixels(step.steps)
            case _:
                pixels += _NOTE_PIXELS
    return pixels


class PlantumlPrinter:
    """Printer of steps that keeps count of the activations."""

    __slots__ = ("_all", "_bars")

    def __init__(self, layout: Diagram) -> None:
        self._all = ", ".join(layout.outermost)
        self._bars = Activations()

    def steps(self, steps: Sequence[Step]) -> Iterator[str]:
        for step in steps:
            match step:
                case Arrow():
                    yield from self._arrow(step)
                case Aside():
                    yield f"note over {step.at} : {_coloured(step)}"
                    if lane := self._bars.closes(step):
                        yield f"deactivate {lane}"
                case OmittedMessages():
                    yield f"note over {self._all} : … {counted(step.count, 'more message')}"
                case Fragment():
                    yield f"{'loop' if step.kind is FragmentKind.LOOP else 'group'} {_text(step.title)}"
                    yield from self.steps(step.steps)
                    yield "end"

    def close(self) -> Iterator[str]:
        """End the activations that are open."""
        for lane in self._bars.close():
            yield f"deactivate {lane}"

    def _arrow(self, step: Arrow) -> Iterator[str]:
        arrow = ARROWS[step.kind]
        if step.style == "bad":
            arrow = f"{arrow[0]}[{_RED}]{arrow[1:]}"
        yield f"{step.start} {arrow} {step.end} : {_coloured(step)}"
        if lane := self._bars.opens(step):
            yield f"activate {lane}"
        if lane := self._bars.closes(step):
            yield f"deactivate {lane}"
        if step.details:
            yield f"note over {step.start}, {step.end}"
            yield from (_detail(line) for line in step.details)
            yield "end note"


def _coloured(step: Arrow | Aside) -> str:
    """Print the text of a step, red if it is an error."""
    return f"<color:{_RED}>{_text(step.text)}</color>" if step.style == "bad" else _text(step.text)


def _text(text: str) -> str:
    return plantuml_text(cut(text, TEXT_CELLS))


def _detail(text: str) -> str:
    """Print a line of a payload with its indentation, which PlantUML would otherwise remove."""
    inner = text.lstrip(" ")
    return "<U+00A0>" * (len(text) - len(inner)) + plantuml_text(inner)

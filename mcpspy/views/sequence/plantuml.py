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


def plantuml(layout: Diagram) -> Iterator[str]:
    """Print the lines of the diagram."""
    yield "@startuml"
    yield "hide footbox"
    if layout.title:
        yield f"title {_text(layout.title)}"
    for participant in layout.participants:
        yield f'{"actor" if participant.is_person else "participant"} "{_text(participant.name)}" as {participant.id}'
    printer = PlantumlPrinter(layout)
    yield from printer.steps(layout.steps)
    yield from printer.close()
    yield "@enduml"


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
                    yield f"note over {step.at} : {_text(step.text)}"
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
        yield f"{step.start} {ARROWS[step.kind]} {step.end} : {_text(step.text)}"
        if lane := self._bars.opens(step):
            yield f"activate {lane}"
        if lane := self._bars.closes(step):
            yield f"deactivate {lane}"
        if step.details:
            yield f"note over {step.start}, {step.end}"
            yield from (_detail(line) for line in step.details)
            yield "end note"


def _text(text: str) -> str:
    return plantuml_text(cut(text, TEXT_CELLS))


def _detail(text: str) -> str:
    """Print a line of a payload with its indentation, which PlantUML would otherwise remove."""
    inner = text.lstrip(" ")
    return "<U+00A0>" * (len(text) - len(inner)) + plantuml_text(inner)

"""The sequence diagram for the page: the common layout, with lanes by number and fragments laid flat.

The scripts `09-layout.js` and `10-diagram.js` read this data; change them together.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..sequence.diagram import Arrow, Aside, Fragment, FragmentKind, OmittedMessages, Step
from ..sequence.layout import Drawing, diagram
from ..text.escape import safe_text
from ..text.units import counted

if TYPE_CHECKING:
    from ...transcript.model import Row, Transcript


def diagram_data(transcript: Transcript, rows: Sequence[Row], max_messages: int) -> dict[str, Any]:
    """Build the diagram: names of lanes, and steps in order."""
    layout = diagram(transcript, rows, Drawing(max_messages=max_messages))
    lanes = {participant.id: at for at, participant in enumerate(layout.participants)}
    return {
        "lanes": [safe_text(participant.name) for participant in layout.participants],
        "steps": _steps(layout.steps, lanes, 0),
    }


def _steps(steps: Sequence[Step], lanes: dict[str, int], depth: int) -> list[dict[str, Any]]:
    """Build the steps, with lanes by number. A fragment's title is followed by its steps; `size` counts them."""
    made: list[dict[str, Any]] = []
    for step in steps:
        match step:
            case Arrow():
                made.append(_step(step, lanes) | {"kind": step.kind.value, "start": lanes[step.start], "end": lanes[step.end]})
            case Aside():
                made.append(_step(step, lanes) | {"start": lanes[step.at]})
            case OmittedMessages():
                made.append({"title": f"… {counted(step.count, 'more message')}", "depth": depth})
            case Fragment():
                inner = _steps(step.steps, lanes, depth + 1)
                title = f"loop {step.title}" if step.kind is FragmentKind.LOOP else step.title
                made += [{"fragment": step.kind.value, "title": title, "depth": depth, "size": len(inner)}, *inner]
    return made


def _step(step: Arrow | Aside, lanes: dict[str, int]) -> dict[str, Any]:
    activations = {"opens": step.opens if isinstance(step, Arrow) else "", "closes": step.closes}
    fields = {"at": step.at_ns, "text": step.text, "style": step.style, "row": step.row}
    return fields | {name: lanes[lane] for name, lane in activations.items() if lane in lanes}

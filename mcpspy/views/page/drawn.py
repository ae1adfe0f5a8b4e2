"""The sequence diagram as the page draws it: the layout of all printers, with lanes by their places, and groups laid flat.

The scripts `09-places.js` and `10-diagram.js` read what stands here; they change together. Refuses to draw.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..sequence.layout import Drawing, diagram
from ..sequence.model import Arrow, Aside, Group, GroupKind, LeftOut, Step
from ..text.escape import safe_text
from ..text.units import counted

if TYPE_CHECKING:
    from ...transcript.model import Row, Transcript


def drawn(transcript: Transcript, rows: Sequence[Row], max_messages: int) -> dict[str, Any]:
    """The sequence diagram: names of lanes, and steps one below the other."""
    layout = diagram(transcript, rows, Drawing(max_messages=max_messages))
    lanes = {one.id: at for at, one in enumerate(layout.participants)}
    return {"lanes": [safe_text(one.name) for one in layout.participants], "steps": _steps(layout.steps, lanes, 0)}


def _steps(steps: Sequence[Step], lanes: dict[str, int], depth: int) -> list[dict[str, Any]]:
    """Steps with lanes by their places. Behind a group's title come its steps, as many as `size` says."""
    made: list[dict[str, Any]] = []
    for one in steps:
        match one:
            case Arrow():
                made.append(_said(one, lanes) | {"kind": one.kind.value, "start": lanes[one.start], "end": lanes[one.end]})
            case Aside():
                made.append(_said(one, lanes) | {"start": lanes[one.at]})
            case LeftOut():
                made.append({"title": f"… {counted(one.count, 'more message')}", "depth": depth})
            case Group():
                inner = _steps(one.steps, lanes, depth + 1)
                title = f"loop {one.title}" if one.kind is GroupKind.LOOP else one.title
                made += [{"group": one.kind.value, "title": title, "depth": depth, "size": len(inner)}, *inner]
    return made


def _said(step: Arrow | Aside, lanes: dict[str, int]) -> dict[str, Any]:
    bars = {"opens": step.opens if isinstance(step, Arrow) else "", "closes": step.closes}
    told = {"at": step.at_ns, "text": step.text, "style": step.style, "row": step.row}
    return told | {name: lanes[lane] for name, lane in bars.items() if lane in lanes}

"""What was accepted of servers, in a line each: what came, what changed, what went. For people; refuses to judge it."""

from collections.abc import Iterator, Mapping
from typing import Any

from ...transcript.offers.baseline import ACCEPTED, Baseline, canonical
from ...transcript.offers.definitions import Part
from ..text.escape import safe_text
from ..text.units import counted

LISTED = 5
MAX_LETTERS = 80


def accepted_lines(written: Mapping[str, tuple[str, Baseline]], before: Mapping[str, Baseline]) -> Iterator[str]:
    """A line for each server, by label; `written` has the file too."""
    for label, (path, baseline) in written.items():
        yield f"mcpspy: accepted {safe_text(label[:MAX_LETTERS])}: {_changed(before.get(label), baseline)}; see {safe_text(path)}"
    if not written:
        yield "mcpspy: nothing to accept: no list of tools, prompts or templates, and no instructions were seen whole"


def _changed(before: Baseline | None, now: Baseline) -> str:
    told: list[str] = []
    for part in ACCEPTED:
        old = before.parts.get(part, {}) if before else {}
        new = now.parts.get(part, {})
        told += _part(part, old, new)
    return ", ".join(told) or "nothing changed"


def _part(part: Part, old: dict[str, Any], new: dict[str, Any]) -> Iterator[str]:
    came = [name for name in new if name not in old]
    went = [name for name in old if name not in new]
    changed = [name for name in new if name in old and canonical(new[name]) != canonical(old[name])]
    for verb, names in (("added", came), ("changed", changed), ("removed", went)):
        if names and part is Part.INSTRUCTIONS:
            yield f"instructions {verb}"
        elif names:
            listed = ", ".join(safe_text(name[:MAX_LETTERS]) for name in names[:LISTED])
            more = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
            yield f"{counted(len(names), part.value)} {verb} ({listed}{more})"

"""What `mcpspy verify` says of a capture: how it has come through, and what is wrong where; as lines and as JSON.

Takes what was found; refuses to look at files.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ..text.cells import wrapped
from ..text.escape import one_line, safe_text
from ..text.json_text import SCHEMA, as_json
from ..text.line import Line, fitted
from ..text.units import counted, size

_STYLES = {"intact": "good", "incomplete": "warn", "damaged": "bad"}
_INDENT = "    "
_MOST_LINES = 4
"""A problem's words take no more than this on a narrow screen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureProblem:
    """One thing that is wrong. `line` counts from 1, `offset` is its first byte in the file."""

    status: str
    reason: str
    text: str
    line: int
    offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifiedCapture:
    """One capture: `records` and `frames` are those that can be used; `left_out` are lines and bytes that cannot."""

    path: str
    status: str
    live: bool
    complete: bool
    format: int | None
    size_bytes: int
    records: int
    frames: int
    left_out_lines: int
    left_out_bytes: int
    troubles: tuple[CaptureProblem, ...]
    more_troubles: int
    repaired: str | None = None
    marked_missing: int = 0


def verification(found: VerifiedCapture, *, width: int | None) -> Iterator[Line]:
    """A line on the whole capture, and one for each thing that is wrong."""
    said = f", {counted(found.records, 'record')} in {size(found.size_bytes)}"
    if found.left_out_lines:
        said += f"; {counted(found.left_out_lines, 'line')} cannot be used ({size(found.left_out_bytes)})"
    yield fitted([(safe_text(found.path) + ": ", ""), (found.status, _STYLES[found.status]), (said, "")], width)
    for one in found.troubles:
        yield from _trouble_lines(one, width)
    if found.more_troubles:
        yield [(f"  … {counted(found.more_troubles, 'more problem')}", "dim")]
    if found.repaired is not None:
        missing = f", {counted(found.marked_missing, 'record')} marked as missing" if found.marked_missing else ""
        yield fitted([(f"  what is sound is in {safe_text(found.repaired)}{missing}", "strong")], width)


def verification_json(captures: list[VerifiedCapture]) -> str:
    """The JSON of `mcpspy verify --json`: docs/json.md says what its members mean."""
    return as_json({"schema": SCHEMA, "captures": [_object(one) for one in captures]}) + "\n"


def _trouble_lines(one: CaptureProblem, width: int | None) -> Iterator[Line]:
    where = f"  line {one.line}, byte {one.offset}: "
    words = one_line(one.text)
    if width is None:
        yield [(where, "dim"), (words, _STYLES[one.status])]
        return
    first, *rest = wrapped(where + words, max(1, width - len(_INDENT)), _MOST_LINES)
    yield [(first[: len(where)], "dim"), (first[len(where) :], _STYLES[one.status])]
    for more in rest:
        yield fitted([(_INDENT + more, _STYLES[one.status])], width)


def _object(found: VerifiedCapture) -> dict[str, Any]:
    made: dict[str, Any] = {
        "path": found.path,
        "status": found.status,
        "complete": found.complete,
        "live": found.live,
        "format": found.format,
        "size_bytes": found.size_bytes,
        "records": found.records,
        "frames": found.frames,
        "unusable_lines": found.left_out_lines,
        "unusable_bytes": found.left_out_bytes,
        "problems": [
            {"status": one.status, "reason": one.reason, "line": one.line, "offset": one.offset, "text": one.text}
            for one in found.troubles
        ],
        "more_problems": found.more_troubles,
    }
    if found.repaired is not None:
        made |= {"repaired": found.repaired, "marked_missing": found.marked_missing}
    return made

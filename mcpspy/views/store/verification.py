"""The result of `mcpspy verify` for a capture, as lines and as JSON: its status, and what is wrong where."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from ..text.cells import wrapped
from ..text.escape import one_line, safe_text
from ..text.json_text import SCHEMA, as_json
from ..text.line import Line, fitted, line_cells
from ..text.units import counted, size

_STYLES = {"intact": "good", "incomplete": "warn", "damaged": "bad"}
_INDENT = "    "
_MOST_LINES = 4
"""The most lines that a problem's words take on a narrow screen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureProblem:
    """One problem of a capture, as JSON has it. `line` counts from 1, `offset` is its first byte in the file."""

    status: str
    reason: str
    line: int
    offset: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifiedCapture:
    """The result for one capture, as JSON has it. `records` and `frames` are the usable ones."""

    path: str
    status: str
    complete: bool
    live: bool
    format: int | None
    size_bytes: int
    records: int
    frames: int
    unusable_lines: int
    unusable_bytes: int
    problems: tuple[CaptureProblem, ...]
    more_problems: int
    repaired: str | None = None
    marked_missing: int = 0


def verification(verified: VerifiedCapture, *, width: int | None) -> Iterator[Line]:
    """Yield a line about the whole capture, or two if the path is long, and one for each problem."""
    words = f", {counted(verified.records, 'record')} in {size(verified.size_bytes)}"
    if verified.unusable_lines:
        words += f"; {counted(verified.unusable_lines, 'unusable line')} ({size(verified.unusable_bytes)})"
    result: Line = [(verified.status, _STYLES[verified.status]), (words, "")]
    path = safe_text(verified.path)
    line = [(f"{path}: ", ""), *result]
    if width is None or line_cells(line) <= width:
        yield line
    else:
        yield fitted([(f"{path}:", "")], width)
        yield fitted([("  ", ""), *result], width)
    for problem in verified.problems:
        yield from _problem_lines(problem, width)
    if verified.more_problems:
        yield [(f"  … {counted(verified.more_problems, 'more problem')}", "dim")]
    if verified.repaired is not None:
        missing = f", {counted(verified.marked_missing, 'record')} marked as missing" if verified.marked_missing else ""
        yield fitted([(f"  the intact records are in {safe_text(verified.repaired)}{missing}", "strong")], width)


def verification_json(captures: list[VerifiedCapture]) -> str:
    """Return the JSON of `mcpspy verify --json`. docs/json.md describes its members."""
    return as_json({"schema": SCHEMA, "captures": [_object(capture) for capture in captures]}) + "\n"


def _problem_lines(problem: CaptureProblem, width: int | None) -> Iterator[Line]:
    where = f"  line {problem.line}, byte {problem.offset}: "
    words = one_line(problem.text)
    if width is None:
        yield [(where, "dim"), (words, _STYLES[problem.status])]
        return
    first, *rest = wrapped(where + words, max(1, width - len(_INDENT)), _MOST_LINES)
    yield [(first[: len(where)], "dim"), (first[len(where) :], _STYLES[problem.status])]
    for more in rest:
        yield fitted([(_INDENT + more, _STYLES[problem.status])], width)


def _object(verified: VerifiedCapture) -> dict[str, Any]:
    members = asdict(verified)
    if verified.repaired is None:
        del members["repaired"], members["marked_missing"]
    return members

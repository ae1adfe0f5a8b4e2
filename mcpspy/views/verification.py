"""The results of `mcpspy verify` and of `mcpspy export share --verify` for a capture, as lines and as JSON.

A verified capture has a status and problems; leaks are shown without the secrets themselves.
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from .text.cells import wrapped
from .text.escape import one_line, safe_text
from .text.json_text import SCHEMA, as_json
from .text.line import Line, fitted, line_cells
from .text.units import counted, size

_STYLES = {"intact": "good", "incomplete": "warn", "damaged": "bad"}
_INDENT = "    "
_MOST_LINES = 4
"""The most lines that a problem's words take on a narrow screen."""

MAX_PLACES = 3
"""The most places of one leak that are listed."""

_BY_DEFAULT = "mcpspy export share removes it"


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


@dataclass(frozen=True, slots=True, kw_only=True)
class LeakLine:
    """One leak. `row` is that of the timeline, if any; of the secret only the beginning `shown` and its `length` are known."""

    record: int
    row: int | None
    where: str
    kind: str
    name: str | None
    shown: str
    length: int
    option: str
    known: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureLeaks:
    """The leaks of one capture. `more` leaks are only counted; `unread` bodies could not be searched.

    `known` leaks are of a known kind of secret.
    """

    path: str
    leaks: tuple[LeakLine, ...]
    known: int
    more: int
    unread: int


def report_lines(leaks: CaptureLeaks, *, width: int | None, most: int | None = None) -> Iterator[Line]:
    """Yield a line about the capture, and for each leak what it is, where, and the option that removes it.

    Leaks of a known kind come first. With `most`, so many values are listed, and the others counted.
    """
    count = len(leaks.leaks) + leaks.more
    path = safe_text(leaks.path)
    if not count:
        yield fitted([("✓ ", "good"), (f"{path}: no leaks found", "")], width)
    else:
        known = f", {leaks.known:,} of a known kind of secret" if leaks.known else ""
        yield fitted([("✗ ", "bad"), (f"{path}: {counted(count, 'possible leak')}{known}", "")], width)
    groups = sorted(_alike(leaks.leaks), key=lambda same: not same[0].known)
    for same in groups[:most]:
        yield from _lines(same, width)
    left = leaks.more + sum(len(same) for same in groups[len(groups) if most is None else most :])
    if left:
        yield [(f"  … {left:,} more", "dim")]
    if leaks.unread:
        unread = f"{counted(leaks.unread, 'body', 'bodies')} could not be searched: compressed, or too long"
        yield fitted([("  ", ""), (unread, "warn")], width)


def leaks_json(captures: list[CaptureLeaks]) -> str:
    """Return the JSON of `mcpspy export share --verify --json`. docs/json.md describes its members."""
    return as_json({"schema": SCHEMA, "captures": [asdict(capture) for capture in captures]}) + "\n"


def _alike(leaks: tuple[LeakLine, ...]) -> list[list[LeakLine]]:
    """Group the leaks that look the same."""
    groups: dict[tuple[str, str | None, str, int], list[LeakLine]] = {}
    for leak in leaks:
        groups.setdefault((leak.kind, leak.name, leak.shown, leak.length), []).append(leak)
    return list(groups.values())


def _lines(same: list[LeakLine], width: int | None) -> Iterator[Line]:
    first = same[0]
    what = f"{first.kind} {first.name or ''}".rstrip()
    shown = f"“{one_line(first.shown)}…”, " if first.shown else ""
    places = ", ".join(_where(leak) for leak in same[:MAX_PLACES])
    more = f" and {counted(len(same) - MAX_PLACES, 'more place')}" if len(same) > MAX_PLACES else ""
    yield fitted([("  ", ""), (one_line(what), "warn"), (f"  {shown}{counted(first.length, 'byte')}", "strong")], width)
    yield fitted([(f"      {places}{more}", "dim")], width)
    for option in dict.fromkeys(leak.option for leak in same[:MAX_PLACES]):
        yield fitted([("      ", ""), (one_line(option) or _BY_DEFAULT, "key")], width)


def _where(leak: LeakLine) -> str:
    row = f" (row {leak.row})" if leak.row else ""
    return f"record {leak.record}{row} {one_line(leak.where)}"

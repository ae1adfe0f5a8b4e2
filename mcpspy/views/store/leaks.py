"""The leaks that `mcpspy export share --verify` found in captures, as lines and as JSON. The secrets themselves are not shown."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass

from ..text.escape import one_line, safe_text
from ..text.json_text import SCHEMA, as_json
from ..text.line import Line, fitted
from ..text.units import counted

MAX_PLACES = 3
"""The most places of one leak that are listed."""

_BY_DEFAULT = "mcpspy export share removes it"


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

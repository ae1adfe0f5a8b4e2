"""The two sides of a gateway compared: a line for each row that it changed, withheld or made, and the count of the others."""

from collections.abc import Iterator
from datetime import tzinfo
from typing import Any

from ...replay.compare.gateway import GatewayComparison, PassedRow
from ...replay.compare.hops import HopChanges
from ...transcript.http.transaction import Transaction
from ...transcript.model import Exchange, Numbered, UnpairedMessage
from ..json.diff import difference_objects
from ..json.rows import capture_object
from ..text.cells import wrapped
from ..text.escape import one_line, safe_text
from ..text.json_text import SCHEMA, with_lines
from ..text.line import Line, fitted
from ..text.units import counted, duration
from ..timeline.hops import change_words
from ..timeline.summary import capture_line, headline
from .differences import difference_lines

_INDENT = "     "
_MAX_LINES = 4


def gateway_lines(comparison: GatewayComparison, *, width: int | None = None, zone: tzinfo | None = None) -> Iterator[Line]:
    """Yield a heading that says that these are hops, and below it what the gateway changed."""
    gateway = safe_text(comparison.outer.server)
    changed = [row for row in comparison.rows if row.different]
    title = f"{counted(len(changed), 'row')} changed or withheld by {gateway}" if changed else f"{gateway} passed everything on"
    parts: list[Line] = [[(title, "strong")], [("two hops of one gateway", "")]]
    same = len(comparison.rows) - len(changed)
    parts.append([(f"{counted(same, 'row')} unchanged", "dim")])
    yield from headline(("✗ ", "bad") if changed else ("✓ ", "good"), parts, width)
    for name, capture in (("A", comparison.outer), ("B", comparison.inner)):
        yield fitted(
            [(f"  {name}", "strong"), *(capture_line(capture, zone) or [("  a capture without its header", "dim")])], width
        )
    for row in changed:
        yield []
        yield fitted(_title(row), width)
        for word in row_words(row, comparison):
            yield from (
                [(f"{_INDENT}{text}", "warn")] for text in wrapped(word, None if width is None else width - 5, _MAX_LINES)
            )
        for name, changes in (("params", row.params), ("answer", row.answer)):
            if changes and row.sender and row.receiver:
                yield fitted([(f"{_INDENT}{gateway} changed the {name}:", "warn")], width)
                yield from difference_lines(changes, indent=7, width=width)


def _title(row: PassedRow) -> Line:
    words: Line = [("  ", ""), (_name(row.first), "strong"), (f"  {_places(row)}", "dim")]
    if row.call is not None and row.call.gateway_ns is not None:
        words.append((f"  gateway {duration(row.call.gateway_ns)}", "dim"))
    return words


def _places(row: PassedRow) -> str:
    sender, receiver = (", ".join(str(place.row) for place in rows) for rows in (row.sender, row.receiver))
    return f"row {sender} → {receiver}" if sender and receiver else f"row {sender or receiver}"


def row_words(row: PassedRow, comparison: GatewayComparison) -> list[str]:
    """Return phrases for what the gateway did to a row, but for the values that it changed."""
    gateway = safe_text(comparison.outer.server)
    if not row.receiver:
        return [f"{gateway} did not pass it on"]
    if not row.sender:
        return [f"{gateway} made it: the other hop does not have it"]
    words = [f"{gateway}: {safe_text(row.reason)}"] if row.reason else []
    changes = HopChanges(dropped=row.dropped)
    words += [f"{gateway} {change}" for change in change_words(changes)]
    if row.fields:
        words.append(f"{gateway} left out {', '.join(map(one_line, row.fields))}")
    return words


def _name(row: Numbered) -> str:
    if isinstance(row, Transaction):
        return one_line(f"{row.method} {row.target}")
    message = row.request if isinstance(row, Exchange) else row.message if isinstance(row, UnpairedMessage) else None
    return "" if message is None else one_line(f"{message.method or message.kind} {message.target or ''}".rstrip())


def gateway_json(comparison: GatewayComparison) -> str:
    """Return one object, with a row per line."""
    head: dict[str, Any] = {
        "schema": SCHEMA,
        "hops": True,
        "before": [capture_object(comparison.outer)],
        "after": [capture_object(comparison.inner)],
        "summary": {
            "different": comparison.different,
            "same": sum(not row.different for row in comparison.rows),
            "changed": sum(row.different for row in comparison.rows),
        },
    }
    return with_lines(head, "rows", [_row_object(row) for row in comparison.rows if row.different])


def _row_object(row: PassedRow) -> dict[str, Any]:
    return {
        "rows": [place.row for place in row.sender],
        "became": [place.row for place in row.receiver],
        "name": _name(row.first),
        "reason": row.reason or None,
        "changed_params": difference_objects(row.params),
        "changed_answer": difference_objects(row.answer),
        "dropped": dict(row.dropped),
        "lost_fields": list(row.fields),
    }

"""Clients of one server side by side, and the two hops of a gateway: as lines, as JSON, and clients as a table in Markdown.

Of a gateway, each row that it changed, withheld or made has a line; the others are counted.
"""

from collections.abc import Iterator, Sequence
from datetime import tzinfo
from typing import Any

from ...replay.compare.gateway import GatewayComparison, HopChanges, PassedRow
from ...replay.compare.server import ComparedClient
from ...transcript.http.transaction import Transaction
from ...transcript.model import Exchange, Numbered, UnpairedMessage
from ..json.comparisons import difference_objects
from ..json.rows import capture_object
from ..text.cells import cut, padded, wrapped
from ..text.escape import markdown_text, one_line, safe_text
from ..text.json_text import SCHEMA, as_json, with_lines
from ..text.line import Line, fitted
from ..text.units import counted, duration
from ..timeline.hops import change_words
from ..timeline.summary import capture_line, headline
from .comparison import difference_lines

MAX_LINES = 6
"""The most lines of one client's text; `--markdown` and `--json` have all of it."""
TABLE_CELLS = 160
"""A terminal of this width shows a table, unless its columns would be narrower than these."""
MIN_COLUMN_CELLS = 36

_INDENT = "     "
_MAX_LINES = 4


def client_lines(clients: Sequence[ComparedClient], *, width: int | None = None) -> Iterator[Line]:
    """Yield each aspect with a line for each client, or a column where there is room; `≠` marks those in which clients differ."""
    names = labels(clients)
    indent = max(map(len, names)) + 4
    server = one_line(clients[0].server)
    different = sum(_differs(clients, aspect) for aspect in clients[0].aspects)
    yield fitted(
        [(f"{len(clients)} clients of {server} · they differ in {different} of {len(clients[0].aspects)}", "strong")], width
    )
    first = max(map(len, clients[0].aspects)) + 4
    column = 0 if width is None or width < TABLE_CELLS else (width - first) // len(clients) - 2
    if width is not None and column >= MIN_COLUMN_CELLS:
        yield from _table(clients, names, first, column, width)
        return
    for aspect in clients[0].aspects:
        yield []
        yield [("≠ " if _differs(clients, aspect) else "  ", "warn"), (aspect, "strong")]
        for name, client in zip(names, clients, strict=True):
            parts = wrapped(one_line(client.aspects[aspect]), None if width is None else max(width - indent, 10), MAX_LINES)
            for number, part in enumerate(parts or [""]):
                head = f"  {name if number == 0 else ''}".ljust(indent)
                yield fitted([(head, "dim"), (part, "")], width)


def _table(clients: Sequence[ComparedClient], names: list[str], first: int, column: int, width: int) -> Iterator[Line]:
    """Yield a row for each aspect and a column for each client; a long text takes several lines of its cell."""
    yield []
    yield fitted([(" " * first, ""), *_cells([cut(name, column) for name in names], column, "strong")], width)
    for aspect in clients[0].aspects:
        texts = [wrapped(one_line(client.aspects[aspect]), column, MAX_LINES) or [""] for client in clients]
        for number in range(max(map(len, texts))):
            sign = "≠ " if _differs(clients, aspect) and number == 0 else "  "
            head: Line = [(sign, "warn"), ((aspect if number == 0 else "").ljust(first - 2), "strong")]
            parts = [lines[number] if number < len(lines) else "" for lines in texts]
            yield fitted([*head, *_cells(parts, column, "")], width)


def _cells(texts: Sequence[str], column: int, style: str) -> Line:
    return [*((padded(text, column + 2), style) for text in texts[:-1]), (texts[-1], style)]


def client_markdown(clients: Sequence[ComparedClient]) -> Iterator[str]:
    """Yield a table with a row for each aspect and a column for each client."""
    yield f"| {' | '.join(['', *map(markdown_text, labels(clients))])} |"
    yield f"| {' | '.join(['---'] * (len(clients) + 1))} |"
    for aspect in clients[0].aspects:
        cells = [markdown_text(client.aspects[aspect]) for client in clients]
        yield f"| {' | '.join([f'{aspect} ≠' if _differs(clients, aspect) else aspect, *cells])} |"


def client_json(clients: Sequence[ComparedClient]) -> str:
    """Return one object: the clients with their aspects, and the aspects in which they differ."""
    different = [aspect for aspect in clients[0].aspects if _differs(clients, aspect)]
    named = [{"client": client.name, "server": client.server, "aspects": client.aspects} for client in clients]
    return as_json({"schema": SCHEMA, "clients": named, "different": different}) + "\n"


def labels(clients: Sequence[ComparedClient]) -> list[str]:
    """Name the clients by letters, as they were named on the command line: `A claude`, `B cursor`."""
    return [f"{chr(ord('A') + number % 26)} {one_line(client.name)}" for number, client in enumerate(clients)]


def _differs(clients: Sequence[ComparedClient], aspect: str) -> bool:
    return len({client.aspects[aspect] for client in clients}) > 1


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

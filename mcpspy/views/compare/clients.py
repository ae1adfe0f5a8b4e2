"""Clients side by side: for people on a terminal, as a table in Markdown, and as JSON for programs."""

from collections.abc import Iterator, Sequence

from ...replay.compare.clients import ComparedClient
from ..text.cells import cut, padded, wrapped
from ..text.escape import markdown_text, one_line
from ..text.json_text import SCHEMA, as_json
from ..text.line import Line, fitted

MAX_LINES = 6
"""The most lines of one client's text; `--markdown` and `--json` have all of it."""
TABLE_CELLS = 160
"""A terminal of this width shows a table, unless its columns would be narrower than these."""
MIN_COLUMN_CELLS = 36


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

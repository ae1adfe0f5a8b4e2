"""Clients side by side: for people on a terminal, as a table in Markdown, and as JSON for programs."""

from collections.abc import Iterator, Sequence

from ...replay.compare.clients import ComparedClient
from ..text.cells import wrapped
from ..text.escape import markdown_text, one_line
from ..text.json_text import SCHEMA, as_json
from ..text.line import Line, fitted

MAX_LINES = 6
"""The most lines of one client's text; `--markdown` and `--json` have all of it."""


def client_lines(clients: Sequence[ComparedClient], *, width: int | None = None) -> Iterator[Line]:
    """Yield each aspect with a line for each client; `≠` marks those in which clients differ."""
    names = labels(clients)
    indent = max(map(len, names)) + 4
    server = one_line(clients[0].server)
    different = sum(_differs(clients, aspect) for aspect in clients[0].aspects)
    yield fitted(
        [(f"{len(clients)} clients of {server} · they differ in {different} of {len(clients[0].aspects)}", "strong")], width
    )
    for aspect in clients[0].aspects:
        yield []
        yield [("≠ " if _differs(clients, aspect) else "  ", "warn"), (aspect, "strong")]
        for name, client in zip(names, clients, strict=True):
            parts = wrapped(one_line(client.aspects[aspect]), None if width is None else max(width - indent, 10), MAX_LINES)
            for number, part in enumerate(parts or [""]):
                head = f"  {name if number == 0 else ''}".ljust(indent)
                yield fitted([(head, "dim"), (part, "")], width)


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

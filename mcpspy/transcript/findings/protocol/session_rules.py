"""Findings about a session as a whole: ids that are given out again, and lists whose pages do not end.

Source: MCP specification, basic (request ids) and server/utilities/pagination of 2024-11-05 to 2025-11-25.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from typing import Final

from ....records import CLIENT, SERVER, Side
from ....wire.json_spans import Slice, members, string
from ...definitions import LISTED_MEMBERS
from ...http.transaction import ScopeKind
from ...mcp.blocks import listed
from ...mcp.methods import INITIALIZE, OPENINGS
from ...mcp.revisions import Era
from ...model import HTTP_ERRORS, Exchange, Kind
from ..facts import CaptureFacts, ScopeKey, scope_key
from ..rule import Hit, hit_in, protocol_rule
from ..words import call_name, quoted
from ..words import listed as enumerated

ID_REUSED: Final = protocol_rule(
    name="id-reused",
    title="Request id given out again",
    what="A request has the id that an earlier request of the same side had in the same session.",
    why="A response or a cancellation that comes late is taken for one to the other request, and logs cannot tell them apart.",
    blame="The requesting side: it chooses the ids, and none may be used twice in a session.",
    example=(
        '· handshake 2025-11-25, server: tools\n→ tools/list 1\n← result 1 {"tools":[]}\n'
        '→ tools/call 1 {"name":"a"}\n← result 1 {"content":[]}'
    ),
    clean=(
        '· handshake 2025-11-25, server: tools\n→ tools/list 1\n← result 1 {"tools":[]}\n'
        '→ tools/call 2 {"name":"a"}\n← result 2 {"content":[]}'
    ),
    advice="Count the ids of requests up for as long as the session lasts.",
)

_PAGE: Final = '← result %d {"tools":[{"name":"%s","inputSchema":{"type":"object"}}],"nextCursor":"%s"}\n'
_LAST_PAGE: Final = '← result %d {"tools":[{"name":"%s","inputSchema":{"type":"object"}}]}'
_FIRST: Final = "· handshake 2025-11-25, server: tools\n→ tools/list 1\n" + _PAGE % (1, "a", "p2")

ENDLESS_PAGES: Final = protocol_rule(
    name="endless-pages",
    title="Pages of a list do not end",
    what="A page of a list names a cursor that the client has followed before, or holds the same as the page before it.",
    why="A client that follows the cursors fetches the same pages for ever, or gets every item twice.",
    blame="The server: it makes the cursors and the pages.",
    example=_FIRST + '→ tools/list 2 {"cursor":"p2"}\n' + _PAGE % (2, "b", "p2"),
    clean=_FIRST + '→ tools/list 2 {"cursor":"p2"}\n' + _LAST_PAGE % (2, "b"),
    advice="Make a cursor name the place where the next page begins, and leave out nextCursor on the last page.",
)

_PAGES: Final = (
    '· handshake 2025-11-25, server: tools\n→ tools/list 1\n← result 1 {"tools":[{"name":"add","inputSchema":{"type":"object"}},'
    '{"name":"sum","inputSchema":{"type":"object"}}],"nextCursor":"2"}\n→ tools/list 2 {"cursor":"2"}\n'
    '← result 2 {"tools":[{"name":"%s","inputSchema":{"type":"object"}},{"name":"max","inputSchema":{"type":"object"}}]}'
)

OVERLAPPING_PAGES: Final = protocol_rule(
    name="overlapping-pages",
    title="Pages of a list overlap",
    what="A page of a list has items that were on a page before it.",
    why="A client shows them twice or refuses the list; and where pages overlap, others often leave items out.",
    blame="The server: it made the cursor, and decides where the page begins that it stands for.",
    example=_PAGES % "sum",
    clean=_PAGES % "min",
    advice="Let a cursor name the last item of its page, not a number of items that changes while the list is read.",
)

RULES: Final = (ID_REUSED, ENDLESS_PAGES, OVERLAPPING_PAGES)

_ITEMS: Final = {
    "tools/list": ("tools", "name"),
    "prompts/list": ("prompts", "name"),
    "resources/list": ("resources", "uri"),
    "resources/templates/list": ("resourceTemplates", "uriTemplate"),
}
_MAX_NAMES: Final = 3


_ID_DIGITS: Final = 18
"""Longer ids are not compared as numbers."""

_FIELD: Final = b'"nextCursor"'
_NO_CURSORS: Final = (b"null", b'""')


def find(facts: CaptureFacts) -> Iterator[Hit]:
    """Find ids that come again and lists without an end."""
    yield from _reused_ids(facts)
    yield from _endless_pages(facts)
    yield from _overlaps(facts)


def _reused_ids(facts: CaptureFacts) -> Iterator[Hit]:
    """Find ids that come again in a session. A session on stdio begins anew with each initialize."""
    used: dict[tuple[Side, ScopeKey], dict[str | None, Exchange]] = {}
    again = _ids_again(facts.exchanges)
    for exchange in facts.exchanges if again else ():
        if exchange.method != INITIALIZE and (exchange.sender, exchange.request.id or "") not in again:
            continue
        transaction = exchange.transaction
        if transaction is not None and transaction.scope.kind is ScopeKind.TRANSACTION:
            continue
        scope = 0 if transaction is None else scope_key(transaction)
        if exchange.method == INITIALIZE:
            used.pop((CLIENT, scope), None)
            used.pop((SERVER, scope), None)
        ids = used.setdefault((exchange.sender, scope), {})
        before = ids.setdefault(exchange.request.id, exchange)
        if before is not exchange and _is_reuse(before, exchange) and not _is_explained(facts, exchange):
            ids[exchange.request.id] = exchange
            what = (
                f"The {exchange.sender} sent {call_name(exchange)} with the id {exchange.request.id}, which {call_name(before)} "
                f"(row {before.row}) had before it in the same session."
            )
            yield hit_in(ID_REUSED, exchange.request, exchange.row, what, group=str(scope))


def _is_explained(facts: CaptureFacts, exchange: Exchange) -> bool:
    """Return whether another client may have given out the id, or a gateway copied the request."""
    if exchange.transaction is None:
        return False
    from ..transport.copies import copies  # hardly any capture has requests to look for

    return facts.is_shared(exchange.transaction) or exchange.row in copies(facts)


def _ids_again(exchanges: Iterable[Exchange]) -> set[tuple[Side, str]]:
    """Return the ids that came more than once from a side. Most are numbers that count up, which take little memory."""
    numbers: dict[Side, array[int]] = {CLIENT: array("Q"), SERVER: array("Q")}
    others: set[tuple[Side, str]] = set()
    again: set[tuple[Side, str]] = set()
    for exchange in exchanges:
        request = exchange.request
        id = request.id or ""
        key = request.sender, id
        if id.isdigit() and len(id) <= _ID_DIGITS:
            counted, number = numbers[request.sender], int(id)
            if not counted or number > counted[-1]:
                counted.append(number)
                continue
            if counted[bisect_left(counted, number)] == number:
                again.add(key)
        if key in others:
            again.add(key)
        others.add(key)
    return again


def _is_reuse(before: Exchange, exchange: Exchange) -> bool:
    """Return whether a request is another one than the one before it. One that HTTP refused, or a probe, may be sent again."""
    if "id-in-use" in exchange.request.flaws or exchange.request.id == "null" or exchange.era is Era.MODERN:
        return False
    if before.method in OPENINGS or (before.response is None and before.cancelled is None):
        return False
    return before.transaction is None or before.transaction.status < HTTP_ERRORS


class _Chain:
    """The pages of one list in one session: the cursors that were followed, and by cursor the page that named it."""

    def __init__(self) -> None:
        self.followed: dict[bytes, Exchange] = {}
        self.named_by: dict[bytes, Exchange] = {}


def _endless_pages(facts: CaptureFacts) -> Iterator[Hit]:
    chains: dict[tuple[ScopeKey, str, str], _Chain] = {}
    for exchange in facts.listings:
        response, member = exchange.response, LISTED_MEMBERS.get(exchange.method)
        if member is None or response is None:
            continue
        has_next = _FIELD in response.raw
        transaction = exchange.transaction
        key = scope_key(transaction), "" if transaction is None else transaction.scope.client, exchange.method
        if not has_next and key not in chains:
            continue
        chain = chains.setdefault(key, _Chain())
        cursor = bytes(members(members(exchange.request.raw).get("params", b"")).get("cursor", b""))
        result = members(members(response.raw).get("result", b""))
        next_cursor = bytes(result.get("nextCursor", b""))
        yield from _page(chain, exchange, cursor, next_cursor, result.get(member, b""), member)


def _page(chain: _Chain, exchange: Exchange, cursor: bytes, next_cursor: bytes, page: Slice, member: str) -> Iterator[Hit]:
    """Take in a page, and compare it with those before it. A client that asks for a page twice is no fault of the server."""
    if next_cursor in _NO_CURSORS:
        next_cursor = b""
    if not cursor:
        chain.followed.clear()
    elif cursor not in chain.followed:
        chain.followed[cursor] = exchange
        what = _repetition(chain, exchange, cursor, next_cursor, page, member)
        if what:
            message = exchange.response or exchange.request
            yield hit_in(ENDLESS_PAGES, message, exchange.row, what, culprit=SERVER, group=exchange.method)
    if next_cursor:
        chain.named_by[next_cursor] = exchange


def _repetition(chain: _Chain, exchange: Exchange, cursor: bytes, next_cursor: bytes, page: Slice, member: str) -> str:
    """Say what a page repeats; empty if it repeats nothing."""
    first, before = chain.followed.get(next_cursor), chain.named_by.get(cursor)
    if first is exchange:
        return f"A page of {exchange.method} names the cursor {quoted(cursor)} as its next, by which it was asked for itself."
    if first is not None:
        return (
            f"A page of {exchange.method} names the next cursor {quoted(next_cursor)}, which the client had followed before "
            f"(row {first.row})."
        )
    if before is not None and _is_same_page(before, page, member):
        same = f"the same as the page before it (row {before.row})"
        return f"The page of {exchange.method} at the cursor {quoted(cursor)} holds {same}."
    return ""


def _is_same_page(before: Exchange, page: Slice, member: str) -> bool:
    if before.response is None or before.response.kind is not Kind.RESULT:
        return False
    items = bytes(page)
    return (
        len(items) > len(b"[{}]") and bytes(members(members(before.response.raw).get("result", b"")).get(member, b"")) == items
    )


class _PagesRead:
    """The pages that were read one after the other: the cursor of the next, and the items so far."""

    __slots__ = ("cursor", "names")

    def __init__(self) -> None:
        self.cursor: object = None
        self.names: set[str] = set()


def _overlaps(facts: CaptureFacts) -> Iterator[Hit]:
    """Find pages of one list with items of the pages before them, in lists that were not announced to have changed."""
    changed = {key[0] for key in facts.notifications if key[0].endswith("list_changed")}
    chains: dict[tuple[ScopeKey, str], _PagesRead] = {}
    for page in facts.listings:
        if page.method not in _ITEMS or f"notifications/{page.method.partition('/')[0]}/list_changed" in changed:
            continue
        chain = chains.setdefault((scope_key(page.transaction), page.method), _PagesRead())
        cursor = string(members(members(page.request.raw).get("params", b"")).get("cursor", b""))
        if cursor is None or cursor != chain.cursor:
            chain.names = set()
        yield from _overlap(chain, page)


def _overlap(chain: _PagesRead, page: Exchange) -> Iterator[Hit]:
    response = page.response
    assert response is not None
    items, key = _ITEMS[page.method]
    result = response.result
    names = {name for item in listed(result, items) if isinstance(name := item.get(key), str)}
    again = sorted(names & chain.names)
    if again and names - chain.names:  # a page that has nothing new is equal to another, which `endless-pages` says
        shown = enumerated((name[:80] for name in again), _MAX_NAMES)
        what = f"A page of {page.method} has items that were on the pages before it: {shown}."
        yield hit_in(OVERLAPPING_PAGES, response, page.row, what, group=page.method)
    chain.cursor = result.get("nextCursor") if isinstance(result, dict) else None
    chain.names |= names

"""Findings about cursors, which a client has to send back as it got them. `rounds` is about requestState, `sessions` about sessions.

Equal secrets have equal pseudonyms, so a redacted cursor can be compared. Source: MCP specification, server/utilities/pagination.
"""

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Final

from ....records import CLIENT
from ....wire.json_spans import members, string
from ...definitions import LISTINGS
from ...model import Exchange, Kind
from ..facts import CaptureFacts, ScopeKey
from ..rule import Hit, hit_in, protocol_rule
from ..words import quoted, told_apart

_PAGE: Final = '· handshake 2025-11-25, server: tools\n→ tools/list 1\n← result 1 {"tools":[],"nextCursor":"cGFnZTI="}\n'

CHANGED_CURSOR: Final = protocol_rule(
    name="changed-cursor",
    title="Cursor that no result gave",
    what="The client asked for a page with a cursor that no earlier result of this list had as nextCursor.",
    why="The server cannot find the page: it refuses the cursor, or gives the wrong page.",
    blame="The client: a cursor is the server's, and has to be sent back without reading or changing it.",
    example=f'{_PAGE}→ tools/list 2 {{"cursor":"cGFnZTI"}}\n← error 2 -32602 Invalid cursor',
    clean=f'{_PAGE}→ tools/list 2 {{"cursor":"cGFnZTI="}}\n← result 2 {{"tools":[]}}',
    advice="Send nextCursor back as it came, and do not decode, trim or keep it for another session.",
)

PAGES_UNREAD: Final = protocol_rule(
    name="pages-unread",
    title="Only the first pages of a list were read",
    what="The result of tools/list had a nextCursor, and the client went on to call tools without asking for the next page.",
    why="The model is never offered the tools on the other pages.",
    blame="The client: the list is complete only where a page has no nextCursor (server/utilities/pagination).",
    example=f'{_PAGE}→ tools/call 2 {{"name":"search"}}\n← result 2 {{"content":[]}}',
    clean=f'{_PAGE}→ tools/list 2 {{"cursor":"cGFnZTI="}}\n← result 2 {{"tools":[]}}\n→ tools/call 3 {{"name":"search"}}\n'
    '← result 3 {"content":[]}',
    advice="Ask for pages until one has no nextCursor.",
)

RULES: Final = (CHANGED_CURSOR, PAGES_UNREAD)

_CURSOR: Final = b'"cursor"'
_TOOLS_LIST: Final = "tools/list"
_LIST_METHODS: Final = LISTINGS | {"tasks/list", "skills/list"}


def find(facts: CaptureFacts) -> Iterator[Hit]:
    """Find cursors that nobody gave out, where the list was seen from its first page on."""
    given: dict[tuple[str, ScopeKey], set[str]] = {}
    unread: dict[ScopeKey, Exchange] = {}
    asked = [*facts.listings, *facts.errors_of(_LIST_METHODS)]
    for exchange in sorted(asked, key=lambda exchange: exchange.at_ns):
        if exchange.sender != CLIENT or exchange.method not in _LIST_METHODS or facts.is_unseen(exchange.at_ns):
            continue
        key = (exchange.method, _scope(exchange))
        cursor = _text(exchange.request.raw, "params", "cursor") if _CURSOR in exchange.request.raw else ""
        if cursor and key in given and cursor not in given[key]:
            yield _changed(exchange, cursor, given[key])
        response = exchange.response
        if response is not None and response.kind is Kind.RESULT:
            next_cursor = _text(response.raw, "result", "nextCursor")
            is_new = next_cursor not in given.setdefault(key, set())
            given[key].add(next_cursor)
            if exchange.method != _TOOLS_LIST:
                continue
            if next_cursor and (is_new or not cursor):  # else the pages do not end, which is not the client's fault
                unread[key[1]] = exchange
            else:
                unread.pop(key[1], None)
    yield from _unread(facts, unread)


def _unread(facts: CaptureFacts, lists: Mapping[ScopeKey, Exchange]) -> Iterator[Hit]:
    """Find tools that were called after these lists, whose next page nobody asked for."""
    for scope, exchange in lists.items():
        end = exchange.response
        others = chain(facts.errors_of({_TOOLS_LIST}), facts.unanswered, facts.waiting)
        asked = any(other.method == _TOOLS_LIST and other.at_ns > exchange.at_ns and _scope(other) == scope for other in others)
        calls = [call for call in facts.calls if end is not None and call.at_ns > end.at_ns and _scope(call) == scope]
        if end is not None and calls and not asked:
            what = (
                f"{exchange.method} was answered with a nextCursor, and the client made "
                f"{len(calls)} call{'s' if len(calls) > 1 else ''} without asking for the next page."
            )
            yield hit_in(PAGES_UNREAD, end, exchange.row, what, culprit=CLIENT)


def _changed(exchange: Exchange, cursor: str, given: set[str]) -> Hit:
    last = sorted(given - {""})
    sent = quoted(cursor)
    known = f"the server gave {quoted(last[0])}" if last else "the server gave none"
    others = " and others" if len(last) > 1 else ""
    what = f"{exchange.method} has the cursor {sent}, which no result gave; {known}{others}{told_apart(cursor, last)}."
    return hit_in(CHANGED_CURSOR, exchange.request, exchange.row, what, group=exchange.method)


def _scope(exchange: Exchange) -> ScopeKey:
    """Give the session in which a cursor counts; without sessions that is the whole capture."""
    transaction = exchange.transaction
    return transaction.scope.session if transaction is not None and transaction.scope.session else 0


def _text(raw: bytes, content: str, name: str) -> str:
    """Return a member of params or of a result that is a string; empty if there is none."""
    value = members(members(raw).get(content, b"")).get(name)
    return "" if value is None else string(value) or ""

"""Findings about answers that were sent, or were due, on a stream of events, and that the client cannot have.

They say why a request had no answer, so that no other rule blames anybody for the same request: `explained_rows`.

Source: WHATWG HTML, section 9.2.6 (an event without its blank line is discarded at the end of the stream); MCP specification,
basic/transports of 2025-03-26 to 2025-11-25, resumability and redelivery.
"""

from collections.abc import Container, Iterator
from typing import Final, NamedTuple

from ....records import CLIENT, SERVER
from ....wire.jsonrpc import cut
from ....wire.sse import parse
from ...http.head import LAST_EVENT_ID
from ...http.transaction import Stream, Transaction
from ...message import SEALED
from ...model import Exchange, Kind, UnpairedMessage
from ..facts import HANDSHAKE_METHODS, CaptureFacts, ScopeKey, scope_key
from ..hits import hit_on_stream
from ..missing_handshakes import refused_for_handshake, without_handshake
from ..rule import Hit, Severity, hit_in, transport_rule
from ..timeout_signs import is_timeout
from ..words import call_name, quoted, seconds
from .broken_off import broken_off

_SESSION: Final = "· HTTP\n· handshake 2025-11-25, server: tools\n"
_CALL: Final = '→ POST /mcp\n  tools/call 1 {"name":"report"}\n← 200 OK\n'
_CLOSED: Final = "· the server closes the stream\n"
_BEGUN: Final = f"{_CALL}  Content-Type: text/event-stream\n← id: 1\n  retry: 500\n  data:\n{_CLOSED}"
_RESUMED: Final = "→ GET /mcp\n  Accept: text/event-stream\n  Last-Event-ID: 1\n← 200 OK\n  Content-Type: text/event-stream\n"
_TIMED_OUT: Final = '→ POST /mcp\n  notifications/cancelled {"requestId":1,"reason":"Request timed out"}\n← 202 Accepted'

UNFINISHED_EVENT: Final = transport_rule(
    name="unfinished-event",
    title="Last event without its blank line",
    severity=Severity.ERROR,
    what="The server ended a stream whose last event, an answer, has no blank line after it.",
    why="Clients discard an event that no blank line ends: the answer is on the wire, and the call waits until it times out.",
    blame="The server: it ended the stream in good order, without the empty line that ends its last event.",
    example=f'{_SESSION}{_CALL}  data: result 1 {{"content":[]}}…\n{_CLOSED}',
    clean=f'{_SESSION}{_CALL}  data: result 1 {{"content":[]}}\n{_CLOSED}',
    advice="Write two line feeds after the last data line of each event, before the stream is closed.",
)

NOT_REDELIVERED: Final = transport_rule(
    name="not-redelivered",
    title="Nothing came on a resumed stream",
    severity=Severity.ERROR,
    what="The server closed the stream of a request before the answer, the client resumed it, and no event came on it.",
    why="A client that resumes a stream waits there for the answer, until it times out.",
    blame="The server: it closed the stream, accepted its resumption, and sent no event on it.",
    example=f"{_SESSION}{_BEGUN}· 0.5 s later\n{_RESUMED}· 5.0 s later\n← : ping\n· 1.0 s later\n{_TIMED_OUT}",
    clean=f'{_SESSION}{_BEGUN}· 0.5 s later\n{_RESUMED}· 5.0 s later\n← id: 2\n  data: result 1 {{"content":[]}}\n{_CLOSED}',
    advice="Store the events of a stream until the client has them, and send those after Last-Event-ID when it resumes the stream.",
)

RULES: Final = (UNFINISHED_EVENT, NOT_REDELIVERED)

_PATIENCE_NS: Final = 2_000_000_000
"""Time after which a stored event counts as missing: servers send stored events at once."""


class _Discarded(NamedTuple):
    """An answer in an event that clients discard, and the request that it was for."""

    message: UnpairedMessage
    exchange: Exchange


class _Resumption(NamedTuple):
    """A stream that was resumed, the request that it was for, and when nobody waited any more."""

    resumed: Transaction
    exchange: Exchange
    until_ns: int


def find(facts: CaptureFacts) -> Iterator[Hit]:
    """Find answers that clients discard, and streams that were resumed in vain."""
    for message, exchange in _discarded(facts):
        what = (
            f"The answer to {call_name(exchange)} is in an event that no blank line ends, and the server closed the stream after it, "
            "so that clients discard it."
        )
        yield hit_in(UNFINISHED_EVENT, message.message, exchange.row, what, group=call_name(exchange))
    for resumed, exchange, until_ns in _in_vain(facts):
        response = resumed.response
        assert response is not None
        came = f"only {response.comments} comments" if response.comments else "nothing"
        id, waited = quoted(_last_event_id(resumed)), seconds(until_ns - response.at_ns)
        what = (
            f"The server closed the stream of {call_name(exchange)} (row {exchange.row}) before its answer. "
            f"The client resumed it after the event {id}, and {came} came on it in {waited}."
        )
        yield hit_on_stream(NOT_REDELIVERED, facts, resumed, response, what, SERVER)


def explained_rows(facts: CaptureFacts) -> Container[int]:
    """Return the rows of requests for whose silence another finding has the reason: one fault is one finding."""
    if facts.explained is None:
        facts.explained = {discarded.exchange.row for discarded in _discarded(facts)}
        facts.explained |= {resumption.exchange.row for resumption in _in_vain(facts)}
        facts.explained |= set(_waiting_for_initialized(facts))
        facts.explained |= {broken.exchange.row for broken in broken_off(facts)}
        facts.explained |= set(_unreadable(facts))
        for refused in refused_for_handshake(facts, without_handshake(facts)).values():
            facts.explained |= {exchange.row for exchange in refused}
    return facts.explained


def _unanswered(facts: CaptureFacts) -> list[Exchange]:
    asked = (*facts.unanswered, *facts.cancelled, *facts.waiting)
    return [exchange for exchange in asked if exchange.response is None]


def _discarded(facts: CaptureFacts) -> Iterator[_Discarded]:
    """Yield answers at the end of streams that were closed in good order. A stream that broke off is another fault."""
    if not facts.capture.transactions or not facts.malformed:
        return
    by_id: dict[str | None, list[Exchange]] = {}
    for exchange in _unanswered(facts):
        if exchange.sender == CLIENT:
            by_id.setdefault(exchange.request.id, []).append(exchange)
    for row in facts.malformed:
        transaction = facts.capture.transaction_of(row.message.stream)
        if row.message.sender != SERVER or transaction is None or not _is_closed_well(transaction.response):
            continue
        if row.message.reason != "cut short" or transaction.response is None or transaction.response.framing != "sse":
            continue
        raw = row.message.raw
        data = parse(raw).data if raw.lstrip()[:1] != b"{" else raw
        ids = {piece.id for piece in cut(data or b"") if piece.kind in (Kind.RESULT, Kind.ERROR)}
        asked = (exchange for id in ids for exchange in by_id.get(id, ()) if _is_of(exchange, transaction))
        yield from (_Discarded(row, exchange) for exchange in list(asked)[:1])


def _unreadable(facts: CaptureFacts) -> Iterator[int]:
    """Yield the rows of requests whose whole response is a body that cannot be read; `lines` says why."""
    for row in facts.malformed:
        transaction = facts.capture.transaction_of(row.message.stream)
        if row.message.sender != SERVER or transaction is None or not _is_closed_well(transaction.response):
            continue
        reason, response = row.message.reason, transaction.response
        if reason in ("not recorded", "cut short") or reason.startswith(SEALED) or response is None:
            continue
        exchange = facts.first_exchanges.get(transaction.number)
        if exchange is not None and exchange.response is None and response.framing != "sse":
            yield exchange.row


def _is_closed_well(stream: Stream | None) -> bool:
    return stream is not None and stream.close is not None and stream.close.how == "eof" and stream.close.by == SERVER


def _is_of(exchange: Exchange, transaction: Transaction) -> bool:
    if exchange.transaction is transaction:
        return True
    scope = scope_key(exchange.transaction)
    return bool(scope) and scope == scope_key(transaction) and transaction.method == "GET"


def _in_vain(facts: CaptureFacts) -> Iterator[_Resumption]:
    """Yield streams that a client resumed for a request that it then gave up for want of an answer."""
    resumptions = [get for get in facts.capture.transactions.values() if get.method == "GET" and _resumes_in_vain(get)]
    if not resumptions or facts.last_hole_ns is not None:
        return
    closed = {
        (scope_key(exchange.transaction), exchange.transaction.response.last_event_id): exchange
        for exchange in _unanswered(facts)
        if exchange.transaction is not None and exchange.sender == CLIENT and _is_closed_well(exchange.transaction.response)
        if exchange.transaction.response is not None and exchange.transaction.response.last_event_id
    }
    for resumed in {(scope_key(get), _last_event_id(get)): get for get in resumptions}.values():
        exchange = closed.get((scope_key(resumed), _last_event_id(resumed)))
        if exchange is None or resumed.response is None:
            continue
        ended_ns = facts.capture.last_ns + facts.capture.shift_ns if resumed.ended_ns is None else resumed.ended_ns
        until_ns = ended_ns if exchange.given_up_ns is None else min(ended_ns, exchange.given_up_ns)
        gave_up = exchange.given_up_ns is None or is_timeout(exchange, exchange.given_up_ns)
        if gave_up and until_ns - resumed.response.at_ns >= _PATIENCE_NS:
            yield _Resumption(resumed, exchange, until_ns)


def _resumes_in_vain(get: Transaction) -> bool:
    return get.is_stream and get.response is not None and not get.response.events and bool(_last_event_id(get))


def _last_event_id(get: Transaction) -> str:
    return "" if get.request is None else get.request.head.get(LAST_EVENT_ID)


def _waiting_for_initialized(facts: CaptureFacts) -> Iterator[int]:
    """Yield the rows of requests in sessions without notifications/initialized where the server answered none."""
    uninitialized = facts.uninitialized
    silent: dict[ScopeKey, list[int]] = {scope: [] for scope in uninitialized}
    for exchange in facts.exchanges if uninitialized else ():
        scope = scope_key(exchange.transaction)
        if exchange.sender != CLIENT or scope not in silent or exchange.method in HANDSHAKE_METHODS:
            continue
        if exchange.response is None:
            silent[scope].append(exchange.row)
        else:
            del silent[scope]
    for rows in silent.values():
        yield from rows

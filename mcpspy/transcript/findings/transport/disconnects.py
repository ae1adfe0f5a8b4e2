"""Findings about who went first over HTTP: requests whose response ended without an answer."""

from collections.abc import Iterator
from typing import Final

from ....records import CLIENT, SERVER
from ...http.transaction import ScopeKind, Stream, Transaction
from ...model import Exchange
from ..facts import CaptureFacts
from ..rule import Family, Hit, Rule, Severity, hit_in
from ..words import call_name, seconds
from .server_exits import PATIENCE_NS, UNANSWERED_REQUEST, is_due

ACCEPTED_REQUEST: Final = Rule(
    name="accepted-request",
    title="Request answered with 202 Accepted",
    family=Family.TRANSPORT,
    severity=Severity.ERROR,
    what="The server answered a request with 202 Accepted, which is for notifications, and nothing more came.",
    why="The client waits until a timeout of its own: after 202 it expects no answer.",
    blame="The server: it said that it took a message in which there was nothing to answer.",
    example='→ POST /mcp\n  {"jsonrpc":"2.0","id":1,"method":"tools/list"}\n← 202 Accepted',
    clean='→ POST /mcp\n  {"jsonrpc":"2.0","id":1,"method":"tools/list"}\n'
    '← 200 OK\n  {"jsonrpc":"2.0","id":1,"result":{"tools":[]}}',
    fix="Answer a request with JSON or with a stream of events.",
)

RULES: Final = (ACCEPTED_REQUEST,)

_ACCEPTED = 202


def find(facts: CaptureFacts) -> Iterator[Hit]:
    """Who left whom without an answer. Where a stream was still open when recording ended, nobody did."""
    for exchange in facts.unanswered:
        hidden = facts.last_hole_ns is not None and facts.last_hole_ns >= exchange.at_ns
        if exchange.transaction is None or hidden or exchange.is_probe or not is_due(exchange):
            continue
        if exchange.sender == CLIENT:
            yield from _unanswered(facts, exchange, exchange.transaction)
        else:
            yield from _unanswered_by_client(exchange, exchange.transaction)


def _unanswered(facts: CaptureFacts, exchange: Exchange, transaction: Transaction) -> Iterator[Hit]:
    answering = _answering(facts, transaction)
    if answering is None or answering.ended_ns is None:
        return
    asked = f"{call_name(exchange)} was never answered"
    if answering.ended_by == CLIENT:
        yield _left(exchange, answering.ended_ns, asked, CLIENT, SERVER)
    elif answering.ended_by != SERVER:
        return
    elif transaction.status == _ACCEPTED and transaction.scope.kind is not ScopeKind.STREAM:
        what = f"{call_name(exchange)} was answered with 202 Accepted, and not at all."
        yield hit_in(ACCEPTED_REQUEST, exchange.request, exchange.row, what, culprit=SERVER)
    else:
        how = _how_it_ended(answering.response)
        yield hit_in(UNANSWERED_REQUEST, exchange.request, exchange.row, f"{asked}: {how}.", culprit=SERVER)


def _unanswered_by_client(exchange: Exchange, transaction: Transaction) -> Iterator[Hit]:
    """The server asked, on a stream of events."""
    stream = transaction.response
    if stream is None or stream.close is None or stream.closed_ns is None:
        return
    asked = f"{call_name(exchange)} was never answered"
    if stream.close.by == SERVER and stream.closed_ns - exchange.at_ns < PATIENCE_NS:
        yield _left(exchange, stream.closed_ns, asked, SERVER, CLIENT)
    elif stream.close.by == CLIENT:
        what = f"{asked}: the client closed the stream that it came on."
        yield hit_in(UNANSWERED_REQUEST, exchange.request, exchange.row, what, culprit=CLIENT)


def _left(exchange: Exchange, left_ns: int, asked: str, asker: str, answerer: str) -> Hit:
    """Who asked closed the stream: soon, which is nobody's fault, or after waiting for long."""
    waited_ns = max(left_ns - exchange.at_ns, 0)
    row = exchange.row
    if waited_ns < PATIENCE_NS:
        what = f"{asked}: the {asker} closed the stream {seconds(waited_ns)} after asking."
        return hit_in(UNANSWERED_REQUEST, exchange.request, row, what, culprit=asker, severity=Severity.INFO)
    return hit_in(UNANSWERED_REQUEST, exchange.request, row, f"{asked} in {seconds(waited_ns)}.", culprit=answerer)


def _answering(facts: CaptureFacts, transaction: Transaction) -> Transaction | None:
    """The transaction in whose response the answer was to come: of HTTP+SSE the stream's."""
    if transaction.scope.kind is ScopeKind.STREAM:
        return facts.capture.transactions.get(transaction.scope.stream)
    return transaction


def _how_it_ended(response: Stream | None) -> str:
    if response is None or response.close is None:
        return "the server closed the connection"
    head = response.head
    if response.close.how != "eof":
        return "the server broke off its response"
    if response.opened.framing == "sse":
        return "the server closed the stream"
    kind = f", {head.media_type}" if head.media_type else ""
    return f"the response (HTTP {head.status}{kind}) holds no message"

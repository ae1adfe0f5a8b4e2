"""Findings about requests over HTTP whose response ended without a message that answers them. `server_exits` is about stdio."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from ....records import CLIENT, SERVER
from ...http.transaction import ScopeKind, Stream, Transaction
from ...mcp.methods import OPENINGS
from ...model import HTTP_ERRORS, Exchange
from ..facts import CaptureFacts
from ..gateway_signs import gateway_field
from ..meanwhile import FOR_PEOPLE
from ..rule import CONFIGURATION, Hit, Severity, hit_in, transport_rule
from ..words import call_name, seconds
from .bodies import UNREAD_ANSWERS
from .deliveries import explained_rows
from .server_exits import PATIENCE_NS, UNANSWERED_REQUEST, left_early, left_while_waiting, needs_answer, never_answered

ACCEPTED_REQUEST: Final = transport_rule(
    name="accepted-request",
    title="Request answered with 202 Accepted",
    severity=Severity.ERROR,
    what="The server answered a request with 202 Accepted, and nothing more came.",
    why="202 is for notifications: the client expects no message and waits until its own timeout.",
    blame="The server: it took a request for a message that needs no response.",
    example='→ POST /mcp\n  {"jsonrpc":"2.0","id":1,"method":"tools/list"}\n← 202 Accepted',
    clean='→ POST /mcp\n  {"jsonrpc":"2.0","id":1,"method":"tools/list"}\n'
    '← 200 OK\n  {"jsonrpc":"2.0","id":1,"result":{"tools":[]}}',
    advice="Answer a request with JSON or with a stream of events.",
)

RULES: Final = (ACCEPTED_REQUEST,)

_ACCEPTED = 202

_PAGE_BLAME: Final = (
    "The configuration of the client: at this URL there are pages for people; or a login sits in front of the server."
)
_PAGE_ADVICE: Final = (
    "Open the URL in a browser, and compare it with the URL for MCP in the server's documentation, often with /mcp at its end."
)

_CUT_ADVICE: Final = (
    "Look in the server's log for a crash or a restart, and in proxies and load balancers for a time limit: it ended"
)

_CROSSING_NS: Final = 1_000_000_000
"""A client that leaves may have done so before it read a request that came just then."""


def find(facts: CaptureFacts) -> Iterator[Hit]:
    """Find unanswered requests, and say who ended the response. A stream that is still open when the recording ends is no fault."""
    misdelivered, explained, deletions = facts.misdelivered.rows, explained_rows(facts), _deletions(facts)
    carriers = {facts.capture.transaction_of(other.message.stream) for other in facts.misdelivered.responses}
    for exchange in facts.unanswered:
        may_be_lost = facts.last_hole_ns is not None and facts.last_hole_ns >= exchange.at_ns
        if exchange.transaction is None or may_be_lost or exchange.is_probe or not needs_answer(exchange):
            continue
        if exchange.row in misdelivered or exchange.row in explained or exchange.transaction in carriers:
            continue
        if exchange.sender == CLIENT:
            yield from _unanswered_by_server(facts, exchange, exchange.transaction, deletions)
        else:
            yield from _unanswered_by_client(facts, exchange, exchange.transaction)


def _unanswered_by_server(
    facts: CaptureFacts, exchange: Exchange, transaction: Transaction, deletions: Mapping[str, Sequence[Transaction]]
) -> Iterator[Hit]:
    answering = _answering(facts, transaction)
    if answering is None or answering.ended_ns is None or _is_told_of_body(answering):
        return
    if exchange.at_ns - answering.ended_ns >= _CROSSING_NS:
        yield _sent_too_late(exchange, answering.ended_ns)
        return
    at_ns, until_ns = exchange.at_ns, answering.ended_ns
    deleted = next((other for other in deletions.get(transaction.scope.session, ()) if at_ns <= other.at_ns <= until_ns), None)
    if deleted is not None:
        yield _ended_by_client(facts, exchange, deleted)
    elif answering.ended_by == CLIENT:
        yield _closed_by_sender(facts, exchange, answering.ended_ns)
    elif answering.ended_by != SERVER:
        return
    elif transaction.status == _ACCEPTED and transaction.scope.kind is not ScopeKind.STREAM:
        what = f"{call_name(exchange)} was answered with 202 Accepted and nothing else."
        yield hit_in(ACCEPTED_REQUEST, exchange.request, exchange.row, what, culprit=SERVER)
    elif exchange.method in OPENINGS and _is_page(answering.response):
        reason = _ending(answering)
        what = f"The server never answered {call_name(exchange)}: {reason}."
        yield hit_in(
            UNANSWERED_REQUEST,
            exchange.request,
            exchange.row,
            what,
            culprit=CONFIGURATION,
            blame=_PAGE_BLAME,
            advice=_PAGE_ADVICE,
        )
    else:
        reason, advice = _ending(answering), ""
        if _is_cut(answering.response):
            after = f"{seconds(max(answering.ended_ns - exchange.at_ns, 0))} after the request"
            reason, advice = f"{reason} {after}", f"{_CUT_ADVICE} {after}."
        yield never_answered(facts, exchange, reason, answering.ended_ns, advice=advice)


def _unanswered_by_client(facts: CaptureFacts, exchange: Exchange, transaction: Transaction) -> Iterator[Hit]:
    """Find requests that the server sent on a stream of events."""
    stream = transaction.response
    by, ended_ns = transaction.ended_by, transaction.ended_ns
    if stream is None or ended_ns is None:
        return
    waited_ns = ended_ns - exchange.at_ns
    if by == SERVER and waited_ns < PATIENCE_NS:
        yield left_early(exchange, ended_ns, how="closed the stream")
    elif by == SERVER and exchange.method not in FOR_PEOPLE:
        yield never_answered(facts, exchange, f"the server closed the stream first, after {seconds(waited_ns)}", ended_ns)
    elif by == CLIENT and waited_ns >= _CROSSING_NS:
        severity = Severity.NOTE if exchange.method in FOR_PEOPLE else None
        reason = "it closed the stream that the request came on"
        yield never_answered(facts, exchange, reason, ended_ns, severity=severity)


def _closed_by_sender(facts: CaptureFacts, exchange: Exchange, closed_ns: int) -> Hit:
    """Blame the server if it was silent for long when the client closed the stream, and waited for no answer itself."""
    if (hit := left_while_waiting(facts, exchange, closed_ns)) is not None:
        return hit
    waited_ns = closed_ns - exchange.at_ns
    heard_ns = max((message.at_ns for message in exchange.notifications if message.sender == SERVER), default=exchange.at_ns)
    if min(waited_ns, closed_ns - heard_ns) < PATIENCE_NS:
        return left_early(exchange, closed_ns, how="closed the stream")
    return never_answered(facts, exchange, f"the client left first, after {seconds(waited_ns)}", closed_ns)


def _sent_too_late(exchange: Exchange, ended_ns: int) -> Hit:
    """Blame a client of HTTP+SSE that sends requests to the endpoint of a stream that ended before."""
    waited = seconds(exchange.at_ns - ended_ns)
    what = f"{call_name(exchange)} was sent {waited} after the stream had ended on which its answer should come."
    blame = "The client: an endpoint ends with its stream, and it has to open another."
    advice = "Open the stream again after it ends, and POST to the endpoint that it announces then."
    return hit_in(UNANSWERED_REQUEST, exchange.request, exchange.row, what, culprit=CLIENT, blame=blame, advice=advice)


def _deletions(facts: CaptureFacts) -> dict[str, list[Transaction]]:
    """Return by session the requests with which the client ended it."""
    deletions: dict[str, list[Transaction]] = {}
    for transaction in facts.capture.transactions.values() if facts.unanswered else ():
        if transaction.method == "DELETE" and transaction.scope.session and transaction.status < HTTP_ERRORS:
            deletions.setdefault(transaction.scope.session, []).append(transaction)
    return deletions


def _ended_by_client(facts: CaptureFacts, exchange: Exchange, deleted: Transaction) -> Hit:
    row = facts.row_of(deleted)
    where = "" if row is None else f" (row {row})"
    what = (
        f"The client ended its session with DELETE{where} {seconds(deleted.at_ns - exchange.at_ns)} after it sent "
        f"{call_name(exchange)}, which the server had not answered yet."
    )
    blame = "The client: it ended the session in which its own request was running."
    advice = "Wait for the answers to your requests, or cancel them, before you end the session."
    return hit_in(
        UNANSWERED_REQUEST, exchange.request, exchange.row, what, culprit=CLIENT, blame=blame, advice=advice,
        severity=Severity.WARNING,
    )  # fmt: skip


def _answering(facts: CaptureFacts, transaction: Transaction) -> Transaction | None:
    """Give the transaction whose response should hold the answering message: for HTTP+SSE that of the stream."""
    if transaction.scope.kind is ScopeKind.STREAM:
        return facts.capture.transactions.get(transaction.scope.stream)
    return transaction


def _is_told_of_body(transaction: Transaction) -> bool:
    """Tell whether a message came in a body or an event that clients do not read; `bodies` says so."""
    return any(anomaly.name in UNREAD_ANSWERS for anomaly in transaction.anomalies)


def _is_page(response: Stream | None) -> bool:
    """Tell whether a page for people came, which no gateway that shows itself has made."""
    return response is not None and response.head.media_type == "text/html" and not gateway_field(response)


def _is_cut(response: Stream | None) -> bool:
    """Tell whether the server's side broke a response off, or ended a stream of events without the answer."""
    if response is None or response.close is None:
        return True
    return response.close.how != "eof" or response.framing == "sse"


def _ending(transaction: Transaction) -> str:
    response = transaction.response
    if response is None or response.close is None:
        return "it closed the connection"
    head = response.head
    if response.close.how != "eof":
        return "it broke off its response"
    if response.framing == "sse":
        return "it closed the stream"
    kind = f", {head.media_type}" if head.media_type else ""
    holds = "only messages that do not answer it" if transaction.response_messages else "no message"
    return f"its response (HTTP {head.status}{kind}) holds {holds}"

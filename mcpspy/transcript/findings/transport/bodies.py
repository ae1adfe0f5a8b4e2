"""Findings about bodies that are not what their heads say, and about answers that come where no client listens.

Source: RFC 9110, sections 8.3 and 8.4; MCP specification, basic/transports of each revision.
"""

from collections.abc import Iterator
from typing import Final

from ....records import CLIENT, SERVER
from ....wire.http_body import WholeBody
from ...http.head import LAST_EVENT_ID
from ...http.transaction import Anomaly, Closing, ScopeKind, Stream, Transaction
from ...model import Exchange
from ..facts import CaptureFacts
from ..gateway_signs import gateway_field
from ..hits import hit_on_stream
from ..rule import Hit, HitDetails, Severity, hit_in, transport_rule
from ..words import call_name, quoted

_ASKED: Final = "→ POST /mcp\n  tools/list 1\n← 200 OK\n"
_RESULT: Final = '{"jsonrpc":"2.0","id":1,"result":{"tools":[]}}'

BODY_CONTRADICTS_HEAD: Final = transport_rule(
    name="body-contradicts-head",
    title="Body is not what its head says",
    severity=Severity.ERROR,
    what=(
        "The body of a response is not encoded as its Content-Encoding says, it is JSON under the Content-Type of events, or it is "
        "whole and shorter than its Content-Length or its last chunk."
    ),
    why="Clients read and decode a body as its head says: they fail, or wait for an event or for bytes that never come.",
    blame="The server, or a proxy before it that changed the one and not the other.",
    example=f"{_ASKED}  Content-Encoding: gzip\n  {_RESULT}",
    clean=f"{_ASKED}  {_RESULT}",
    advice="Set Content-Type and Content-Encoding where the body is written, and let no other layer change one of them alone.",
)

UNHEARD_ANSWER: Final = transport_rule(
    name="unheard-answer",
    title="Answer where no client listens",
    severity=Severity.ERROR,
    what=(
        "An answer came in the body of a POST over HTTP+SSE, in an event with another name than message, "
        "or on a stream that is not its request's."
    ),
    why="Clients do not read there, so the call waits until it times out.",
    blame="The server: it chose where to send the answer.",
    example=f"{_ASKED}  event: result\n  data: {_RESULT}\n· the server closes the stream",
    clean=f"{_ASKED}  event: message\n  data: {_RESULT}\n· the server closes the stream",
    advice="HTTP+SSE: answer on the stream of the GET. Streamable HTTP: in the response to the POST. Name events message.",
)

RULES: Final = (BODY_CONTRADICTS_HEAD, UNHEARD_ANSWER)

OTHER_EVENT: Final = "message-in-other-event"
_BODY_ANOMALIES: Final = {
    "not-encoded": "names the Content-Encoding {}, but its body is not encoded so",
    "json-for-events": "is a stream of events by its Content-Type, but its body is JSON: {}",
}
UNREAD_ANSWERS: Final = frozenset({OTHER_EVENT, "json-for-events"})
"""Anomalies of responses whose answers clients do not read, so that no other rule need say that none came."""


def find(facts: CaptureFacts) -> Iterator[Hit]:
    """Find bodies and answers in the wrong form or place."""
    for transaction in facts.capture.transactions.values():
        if transaction.response is not None and transaction.response.close is not None:
            yield from _short(facts, transaction, transaction.response, transaction.response.close)
        for anomaly in transaction.anomalies:
            if anomaly.name in _BODY_ANOMALIES or anomaly.name == OTHER_EVENT:
                yield from _anomaly(facts, transaction, anomaly)
    for exchange in filter(_came_elsewhere, facts.http):
        if exchange.transaction is not None:
            yield from _elsewhere(facts, exchange, exchange.transaction)


def _came_elsewhere(exchange: Exchange) -> bool:
    """Return whether an answer came in the response of its request over HTTP+SSE, or elsewhere over Streamable HTTP."""
    own, response = exchange.transaction, exchange.response
    if own is None or own.response is None or response is None or exchange.request.sender != CLIENT:
        return False
    return (response.stream == own.response.number) == (own.scope.kind is ScopeKind.STREAM)


def _short(facts: CaptureFacts, transaction: Transaction, response: Stream, close: Closing) -> Iterator[Hit]:
    """Find a body with a whole message that ended before as many bytes had come as its Content-Length says."""
    missing = close.extra.get("missing_bytes")
    if type(missing) is not int or close.by != SERVER or close.how != "abort" or response.injected:
        return
    length, stream = response.head.get("content-length"), response.number
    is_whole = transaction.response_messages > 0 and all(unpaired.message.stream != stream for unpaired in facts.malformed)
    if not is_whole or response.framing != WholeBody.name:
        return
    end = f"its Content-Length, {quoted(length)}" if length else "the end of its last chunk"
    name = f"{transaction.method} {transaction.target}"
    what = f"The response to {name} has a whole message, and ended {missing:,} bytes short of {end}."
    sign, details = gateway_field(response), HitDetails(group="length", advice=_LENGTH_ADVICE)
    if sign:
        details["blame"] = f"Unclear: the server, or the gateway in front of it that may have changed the body: {sign}."
    yield hit_on_stream(BODY_CONTRADICTS_HEAD, facts, transaction, response, what, "unclear" if sign else SERVER, **details)


_LENGTH_ADVICE: Final = (
    "Count the bytes of the body, not its characters, and count them after the last change to it; or let the HTTP library set "
    "Content-Length."
)


def _anomaly(facts: CaptureFacts, transaction: Transaction, anomaly: Anomaly) -> Iterator[Hit]:
    stream = transaction.response
    if stream is None or stream.injected:
        return
    name = f"{transaction.method} {transaction.target}"
    value = quoted(anomaly.data)
    if anomaly.name == OTHER_EVENT:
        what = f"On the stream of {name} a message came in an event named {value}, which clients do not read."
        yield hit_on_stream(UNHEARD_ANSWER, facts, transaction, stream, what, SERVER, at_ns=anomaly.at_ns, group=value)
        return
    what = f"The response to {name} {_BODY_ANOMALIES[anomaly.name].format(value)}."
    yield hit_on_stream(BODY_CONTRADICTS_HEAD, facts, transaction, stream, what, SERVER, group=anomaly.name)


def _elsewhere(facts: CaptureFacts, exchange: Exchange, transaction: Transaction) -> Iterator[Hit]:
    """Find an answer in the body of a POST over HTTP+SSE, or over Streamable HTTP on a stream that resumes nothing."""
    response = exchange.response
    assert response is not None
    if transaction.scope.kind is ScopeKind.STREAM:
        if transaction.number == transaction.scope.stream or transaction.response_messages == 0:
            return
        what = f"The answer to {call_name(exchange)} came in the body of the POST, not on the stream of the GET."
        yield hit_in(UNHEARD_ANSWER, response, exchange.row, what, group="body")
        return
    other = facts.capture.transaction_of(response.stream)
    if other is None or other.request is None or other.method != "GET" or other.request.head.get(LAST_EVENT_ID):
        return
    what = f"The answer to {call_name(exchange)} came on the stream of GET {other.target}, which resumes no other stream."
    yield hit_in(UNHEARD_ANSWER, response, exchange.row, what, group="stream", severity=Severity.WARNING)

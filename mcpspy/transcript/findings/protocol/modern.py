"""Findings about the modern era (from 2026-07-28 on): rejected revisions, subscriptions, log messages, the old transport.

Source: MCP specification 2026-07-28, basic/versioning and basic/patterns/subscriptions.
"""

from collections.abc import Iterator
from typing import Final

from ....records import CLIENT
from ...http.transaction import ScopeKind
from ...mcp.blocks import member
from ...mcp.codes import LOG_LEVEL, SUBSCRIPTION_ID, UNSUPPORTED_REVISION
from ...mcp.methods import INITIALIZE, LISTEN
from ...mcp.revisions import Era, nearest
from ...model import Exchange, Message, UnpairedMessage
from ..facts import SUBSCRIPTION_FILTERS, CaptureFacts
from ..rule import Hit, Severity, hit_in, protocol_rule
from ..words import call_name

_LISTEN: Final = '· revision 2026-07-28\n→ subscriptions/listen 1 {"notifications":{"toolsListChanged":true}}\n'
_REFUSED: Final = (
    '· revision 2026-07-28\n→ tools/list 1\n← {"jsonrpc":"2.0","id":1,"error":{"code":-32022,"message":"Unsupported",'
    '"data":{"supported":["2025-11-25"],"requested":"2026-07-28"}}}\n'
)

_CALLED: Final = "· revision 2026-07-28\n→ POST /mcp\n  Mcp-Method: tools/call\n  Mcp-Name: add\n"
_ADD: Final = 'tools/call 1 {"name":"add"}'
_ADDED: Final = '← 200 OK\n  result 1 {"resultType":"complete","content":[]}'
_ADDING: Final = (
    '← 200 OK\n  data: notifications/message {"level":"info","data":"adding"}\n'
    '← data: result 1 {"resultType":"complete","content":[]}\n· the server closes the stream'
)

REFUSED_REVISION: Final = protocol_rule(
    name="refused-revision",
    title="Refused revision used again",
    severity=Severity.ERROR,
    what="The client kept using a revision that the server had rejected with a list of those it supports.",
    why="Every such request fails.",
    blame="The client: the error -32022 lists the supported revisions.",
    example=f"{_REFUSED}→ tools/list 2\n← error 2 -32022 Unsupported protocol version",
    clean=(f'{_REFUSED}· revision none\n· handshake 2025-11-25, server: tools\n→ tools/list 2\n← result 2 {{"tools":[]}}'),
    advice="Choose the newest supported revision in data.supported, or stop.",
)

UNSUBSCRIBED_NOTIFICATION: Final = protocol_rule(
    name="unsubscribed-notification",
    title="Notification without a subscription",
    what="The server sent a change notification without a subscription to it, under a revision from 2026-07-28 on.",
    why="Clients of these revisions expect only what they requested with subscriptions/listen, and drop other notifications.",
    blame="The server: io.modelcontextprotocol/subscriptionId has to be the id of the request that wants the notification.",
    example=f"{_LISTEN}← notifications/subscriptions/acknowledged\n← notifications/tools/list_changed\n← result 1",
    clean=(
        f"{_LISTEN}← notifications/subscriptions/acknowledged\n"
        '← notifications/tools/list_changed {"_meta":{"io.modelcontextprotocol/subscriptionId":1}}\n← result 1'
    ),
    advice="Put the id of the listen request, type included, into each notification's _meta, and send none without a subscription.",
)

UNASKED_LOG: Final = protocol_rule(
    name="unasked-log",
    title="Log message that nobody requested",
    what="The server sent a log message that the request did not ask for, under a revision from 2026-07-28 on.",
    why="In these revisions a request without a logLevel wants no log messages, and SDK clients drop them.",
    blame="The server: the request has no io.modelcontextprotocol/logLevel in its _meta.",
    example=f"{_CALLED}  {_ADD}\n{_ADDING}",
    clean=f"{_CALLED}  {_ADD}\n{_ADDED}",
    advice="Send log messages only for requests with a logLevel, or write them to stderr.",
)

DEPRECATED_TRANSPORT: Final = protocol_rule(
    name="deprecated-transport",
    title="Deprecated transport HTTP+SSE",
    severity=Severity.NOTE,
    what="HTTP+SSE was used with a revision of MCP that deprecates it, which are all after 2024-11-05.",
    why="SDKs will drop HTTP+SSE, and a client or a server that updates can then no longer connect.",
    blame="Unclear: the client was configured with a URL for HTTP+SSE, and the server still offers it.",
    example=(
        "→ GET /sse\n← 200 OK\n  event: endpoint\n  data: /messages?session_id=5f2c\n→ POST /messages?session_id=5f2c\n"
        '  initialize 0 {"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"client"}}\n← 202 Accepted\n'
        '← #1 data: result 0 {"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"server","version":"1"}}'
    ),
    clean="· HTTP\n· handshake 2025-11-25",
    advice="Serve Streamable HTTP, and put its URL into the client's configuration.",
)

RULES: Final = (REFUSED_REVISION, UNSUBSCRIBED_NOTIFICATION, UNASKED_LOG, DEPRECATED_TRANSPORT)


def find(facts: CaptureFacts) -> Iterator[Hit]:
    """Find rejected revisions that are used again, notifications that nobody requested, and the deprecated transport."""
    yield from _refused(facts)
    first_asked_ns: float | None = None
    for unpaired in facts.opt_in_notifications:
        message = unpaired.message
        if message.method in SUBSCRIPTION_FILTERS:
            yield from _change(facts, unpaired)
            continue
        if first_asked_ns is None:
            first_asked_ns = 0 if facts.capture.transactions else facts.first_request_with(LOG_LEVEL.encode())
        if _asked_for_logs(facts, message, first_asked_ns) is False:
            what = "The server sent a log message for a request without a logLevel."
            yield hit_in(UNASKED_LOG, message, unpaired.row, what, group="one")
    for exchange in facts.initializes:
        transaction, response = exchange.transaction, exchange.response
        if transaction is None or response is None or transaction.scope.kind is not ScopeKind.STREAM:
            continue
        if response.revision is not None and nearest(response.revision) > "2024-11-05":
            what = f"Client and server agreed on the revision {response.revision} over HTTP+SSE."
            yield hit_in(DEPRECATED_TRANSPORT, response, exchange.row, what, culprit="unclear", group="one")


def _change(facts: CaptureFacts, unpaired: UnpairedMessage) -> Iterator[Hit]:
    """Check that a change names a subscription that exists and requests it."""
    message, method = unpaired.message, unpaired.message.method or ""
    listens = facts.capture.calls.get(unpaired.row)
    if SUBSCRIPTION_ID.encode() not in message.raw:
        what = f"The server sent {method} without naming a subscription."
    elif listens is None:
        if facts.capture.header is None or facts.is_unseen(unpaired.at_ns):
            return
        what = f"The server sent {method} for a subscription that does not exist."
    elif listens.first.method == LISTEN and not _wants(listens.first, method):
        what = f"The server sent {method} for a subscription that did not request it."
    else:
        return
    yield hit_in(UNSUBSCRIBED_NOTIFICATION, message, unpaired.row, what, group=what)


def _wants(listen: Exchange, method: str) -> bool:
    requested = member(listen.request.params, "notifications")
    return not isinstance(requested, dict) or bool(requested.get(SUBSCRIPTION_FILTERS[method]))


def _asked_for_logs(facts: CaptureFacts, message: Message, first_asked_ns: float) -> bool | None:
    """Return whether the receiver of a log message asked for some; None if that is unknown.

    Over HTTP the request of the same transaction counts, on stdio any request before the message; the first was at `first_asked_ns`.
    """
    transaction = facts.capture.transaction_of(message.stream)
    if transaction is None:
        if facts.capture.header is None or facts.is_unseen(message.at_ns):
            return None
        return first_asked_ns <= message.at_ns
    exchange = facts.first_exchanges.get(transaction.number)
    if (
        exchange is None
        or exchange.era is not Era.MODERN
        or transaction.request_messages != 1
        or transaction.scope.kind is ScopeKind.STREAM
    ):
        return None
    return LOG_LEVEL.encode() in exchange.request.raw


def _refused(facts: CaptureFacts) -> Iterator[Hit]:
    """Find requests under a revision that the same server had rejected with a list of others."""
    refused: dict[str, Exchange] = {}
    for exchange in facts.errors if facts.may_have_error(UNSUPPORTED_REVISION) else ():
        revision, error = exchange.revision, exchange.response.error if exchange.response is not None else None
        if revision is None or exchange.sender != CLIENT or member(error, "code") != UNSUPPORTED_REVISION:
            continue
        first = refused.get(revision)
        if first is None:
            supported = member(error, "data", "supported")
            if isinstance(supported, list) and supported and revision not in supported:
                refused[revision] = exchange
            continue
        if first.response is None or exchange.at_ns <= first.response.at_ns or exchange.method == INITIALIZE:
            continue
        if _who(first) == _who(exchange):
            what = f"{call_name(exchange)} was sent under the revision {revision}, which the server had rejected."
            yield hit_in(REFUSED_REVISION, exchange.request, exchange.row, what, group=revision)


def _who(exchange: Exchange) -> str:
    return "" if exchange.transaction is None else exchange.transaction.scope.client or str(exchange.transaction.connection)

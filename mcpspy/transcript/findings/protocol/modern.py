"""Findings about the era from 2026-07-28 on that no other module has: its revisions, and its notifications.

Source: MCP specification 2026-07-28, basic/versioning and basic/patterns/subscriptions.
"""

from collections.abc import Iterator
from typing import Final

from ....records import CLIENT
from ...http.transaction import ScopeKind
from ...mcp.codes import LOG_LEVEL, SUBSCRIPTION_ID, UNSUPPORTED_REVISION
from ...mcp.methods import INITIALIZE, LISTEN
from ...mcp.revisions import Era, nearest
from ...model import Exchange, Message, UnpairedMessage
from ..facts import CHANGES, CaptureFacts
from ..rule import Family, Hit, Rule, Severity, hit_in
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

REFUSED_REVISION: Final = Rule(
    name="refused-revision",
    title="Refused revision used again",
    family=Family.PROTOCOL,
    severity=Severity.ERROR,
    what="The client goes on with a revision that the server had refused, though the server said which ones it speaks.",
    why="Every such request fails.",
    blame="The client: the error -32022 names the revisions to choose from.",
    example=f"{_REFUSED}→ tools/list 2\n← error 2 -32022 Unsupported protocol version",
    clean=(f'{_REFUSED}· revision none\n· handshake 2025-11-25, server: tools\n→ tools/list 2\n← result 2 {{"tools":[]}}'),
    fix="Choose the newest revision of data.supported that you speak, or stop.",
)

UNSUBSCRIBED_NOTIFICATION: Final = Rule(
    name="unsubscribed-notification",
    title="Notification without a subscription",
    family=Family.PROTOCOL,
    severity=Severity.WARNING,
    what="The server tells of a change for no subscription, or for one that did not ask for it, from 2026-07-28 on.",
    why="Clients know no notifications there but those that they asked for with subscriptions/listen, and drop it.",
    blame="The server: io.modelcontextprotocol/subscriptionId is the id of the request that wants the notification.",
    example=f"{_LISTEN}← notifications/subscriptions/acknowledged\n← notifications/tools/list_changed\n← result 1",
    clean=(
        f"{_LISTEN}← notifications/subscriptions/acknowledged\n"
        '← notifications/tools/list_changed {"_meta":{"io.modelcontextprotocol/subscriptionId":1}}\n← result 1'
    ),
    fix="Put the id of the listen request, type included, into _meta of each notification for it; send none to who does not listen.",
)

UNASKED_LOG: Final = Rule(
    name="unasked-log",
    title="Log message that nobody requested",
    family=Family.PROTOCOL,
    severity=Severity.WARNING,
    what="The server sends a log message though the request did not ask for any, under a revision from 2026-07-28 on.",
    why="There is no logging/setLevel any more: who gives no level wants none, and SDK clients drop it.",
    blame="The server: io.modelcontextprotocol/logLevel is not in the _meta of the request.",
    example=f"{_CALLED}  {_ADD}\n{_ADDING}",
    clean=f"{_CALLED}  {_ADD}\n{_ADDED}",
    fix="Send log messages for requests with a logLevel only, or write to stderr.",
)

DEPRECATED_TRANSPORT: Final = Rule(
    name="deprecated-transport",
    title="Deprecated transport",
    family=Family.PROTOCOL,
    severity=Severity.INFO,
    what="HTTP+SSE, the transport of 2024-11-05, is used under a later revision, which calls it deprecated.",
    why="A later release of SDKs will not have it.",
    blame="Whoever chose the URL; it is allowed for now.",
    example=(
        "→ GET /sse\n← 200 OK\n  event: endpoint\n  data: /messages?session_id=5f2c\n→ POST /messages?session_id=5f2c\n"
        '  initialize 0 {"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"client"}}\n← 202 Accepted\n'
        '← #1 data: result 0 {"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"server","version":"1"}}'
    ),
    clean="· HTTP\n· handshake 2025-11-25",
    fix="Serve Streamable HTTP at one URL.",
)

RULES: Final = (REFUSED_REVISION, UNSUBSCRIBED_NOTIFICATION, UNASKED_LOG, DEPRECATED_TRANSPORT)

_FILTERS: Final = {
    "notifications/tools/list_changed": "toolsListChanged",
    "notifications/prompts/list_changed": "promptsListChanged",
    "notifications/resources/list_changed": "resourcesListChanged",
    "notifications/resources/updated": "resourceSubscriptions",
}
"""By what member of params.notifications a subscription asks for each notification."""


def find(facts: CaptureFacts) -> Iterator[Hit]:
    """Revisions refused and used again, changes told to nobody, and a transport that goes."""
    yield from _refused(facts)
    asked_ns: float | None = None
    for unpaired in facts.opt_in_notifications:
        message = unpaired.message
        if message.method in CHANGES:
            yield from _change(facts, unpaired)
            continue
        if asked_ns is None:
            asked_ns = 0 if facts.capture.transactions else facts.first_request_with(LOG_LEVEL.encode())
        if _asked_for_logs(facts, message, asked_ns) is False:
            what = "The server sent a log message for a request that carries no logLevel."
            yield hit_in(UNASKED_LOG, message, unpaired.row, what, group="one")
    for exchange in facts.initializes:
        transaction, response = exchange.transaction, exchange.response
        if transaction is None or response is None or transaction.scope.kind is not ScopeKind.STREAM:
            continue
        if response.revision is not None and nearest(response.revision) > "2024-11-05":
            what = f"{response.revision} was agreed on over HTTP+SSE."
            yield hit_in(DEPRECATED_TRANSPORT, response, exchange.row, what, culprit="unclear", group="one")


def _change(facts: CaptureFacts, unpaired: UnpairedMessage) -> Iterator[Hit]:
    """Each change has to name a subscription, one that there is, and that asks for it."""
    message, method = unpaired.message, unpaired.message.method or ""
    listens = facts.capture.calls.get(unpaired.row)
    if SUBSCRIPTION_ID.encode() not in message.raw:
        what = f"The server sent {method} without naming a subscription."
    elif listens is None:
        if facts.capture.header is None or facts.is_unseen(unpaired.at_ns):
            return
        what = f"The server sent {method} for a subscription that nobody made."
    elif listens.first.method == LISTEN and not _wants(listens.first, method):
        what = f"The server sent {method} for a subscription that does not ask for it."
    else:
        return
    yield hit_in(UNSUBSCRIBED_NOTIFICATION, message, unpaired.row, what, group=what)


def _wants(listen: Exchange, method: str) -> bool:
    params = listen.request.params
    said = params.get("notifications") if isinstance(params, dict) else None
    return not isinstance(said, dict) or bool(said.get(_FILTERS[method]))


def _asked_for_logs(facts: CaptureFacts, message: Message, asked_ns: float) -> bool | None:
    """Whether who gets a log message asked for some; None where that cannot be told.

    Over HTTP it belongs to the request whose response it came on, on stdio to any that was made before it, from `asked_ns` on.
    """
    transaction = facts.capture.transaction_of(message.stream)
    if transaction is None:
        if facts.capture.header is None or facts.is_unseen(message.at_ns):
            return None
        return asked_ns <= message.at_ns
    asked = facts.first_exchanges.get(transaction.number)
    if (
        asked is None
        or asked.era is not Era.MODERN
        or transaction.request_messages != 1
        or transaction.scope.kind is ScopeKind.STREAM
    ):
        return None
    return LOG_LEVEL.encode() in asked.request.raw


def _refused(facts: CaptureFacts) -> Iterator[Hit]:
    """Requests under a revision that the same server had refused before, while it named others."""
    refused: dict[str, Exchange] = {}
    for exchange in facts.errors:
        revision, error = exchange.revision, exchange.response.error if exchange.response is not None else None
        if (
            revision is None
            or exchange.sender != CLIENT
            or not isinstance(error, dict)
            or error.get("code") != UNSUPPORTED_REVISION
        ):
            continue
        first = refused.get(revision)
        if first is None:
            data = error.get("data")
            supported = data.get("supported") if isinstance(data, dict) else None
            if isinstance(supported, list) and supported and revision not in supported:
                refused[revision] = exchange
            continue
        if first.response is None or exchange.at_ns <= first.response.at_ns or exchange.method == INITIALIZE:
            continue
        if _who(first) == _who(exchange):
            what = f"{call_name(exchange)} came under {revision}, which the server had refused before."
            yield hit_in(REFUSED_REVISION, exchange.request, exchange.row, what, group=revision)


def _who(exchange: Exchange) -> str:
    return "" if exchange.transaction is None else exchange.transaction.scope.client or str(exchange.transaction.connection)

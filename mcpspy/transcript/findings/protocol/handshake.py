"""Findings about the handshake of the legacy era: its order, its revision and its capabilities.

Source: MCP specification, basic/lifecycle of each revision from 2024-11-05 to 2025-11-25. Finds nothing in a scope whose handshake is
not in the capture, and nothing about messages of the modern era in the same capture.
"""

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from ....records import CLIENT, SERVER, Side
from ...definitions import LISTED_MEMBERS
from ...mcp.blocks import member
from ...mcp.methods import INITIALIZE, INITIALIZED, Method, method_row
from ...mcp.revisions import WITH_BATCHES, Era, era, is_known, nearest
from ...model import Exchange, Kind, UnpairedMessage
from ..facts import HANDSHAKE_METHODS, CaptureFacts, ScopeKey, scope_key
from ..missing_handshakes import first_without, handshake_log, refused_for_handshake, served_without, without_handshake
from ..rule import Hit, Severity, hit_in, protocol_rule
from ..transport.deliveries import explained_rows
from ..words import call_name, quoted

SECOND_INITIALIZE: Final = protocol_rule(
    name="second-initialize",
    title="Initialized twice",
    what="The client sent initialize again after its handshake had succeeded.",
    why="Servers reject it, or forget what was agreed before.",
    blame="The client: a session has one handshake, and the first succeeded.",
    example=(
        '· handshake 2025-11-25, server: tools\n→ tools/list 1\n← result 1 {"tools":[]}\n'
        '→ initialize 2 {"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"client","version":"1"}}\n'
        "← error 2 -32600 Already initialized"
    ),
    clean='· handshake 2025-11-25, server: tools\n→ tools/list 1\n← result 1 {"tools":[]}',
    advice="Initialize once per session; for another handshake, restart the server or begin a new session.",
)

EARLY_REQUEST: Final = protocol_rule(
    name="early-request",
    title="Request before the handshake",
    what="The client sent a request before initialize was answered.",
    why="Nothing is agreed on by then, and many servers reject or drop the request.",
    blame="The client: before that response it may send only ping.",
    example=(
        '→ initialize 0 {"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"client","version":"1"}}\n'
        "→ tools/list 1\n"
        '← result 0 {"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"server","version":"1"}}\n'
        '→ notifications/initialized\n← result 1 {"tools":[]}'
    ),
    clean='· handshake 2025-11-25, server: tools\n→ tools/list 1\n← result 1 {"tools":[]}',
    advice="Wait for the response to initialize, send notifications/initialized, and only then send requests.",
)

EARLY_SERVER_REQUEST: Final = protocol_rule(
    name="early-server-request",
    title="Server request before the handshake ended",
    what="The server sent a request before the client sent notifications/initialized.",
    why="The client may not be ready: SDK clients drop the request, and the server waits for a response.",
    blame="The server: before that notification it may send only ping and log messages.",
    example=(
        '→ initialize 0 {"protocolVersion":"2025-11-25","capabilities":{"roots":{}},"clientInfo":{"name":"client","version":"1"}}\n'
        '← result 0 {"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"server","version":"1"}}\n'
        '← roots/list 1\n→ notifications/initialized\n→ result 1 {"roots":[]}'
    ),
    clean='· handshake 2025-11-25, client: roots\n← roots/list 1\n→ result 1 {"roots":[]}',
    advice="Wait for notifications/initialized before sending requests to the client.",
)

MISSING_INITIALIZED: Final = protocol_rule(
    name="missing-initialized",
    title="No notifications/initialized",
    what="The client continued after initialize without sending notifications/initialized.",
    why="Servers wait for it: some reject all requests until then, others never send their own.",
    blame="The client: this notification ends its handshake, and the capture holds all of its messages.",
    example=(
        '→ initialize 0 {"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"client","version":"1"}}\n'
        '← result 0 {"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"server","version":"1"}}\n'
        '→ tools/list 1\n← result 1 {"tools":[]}'
    ),
    clean='· handshake 2025-11-25, server: tools\n→ tools/list 1\n← result 1 {"tools":[]}',
    advice="Send notifications/initialized as soon as initialize is answered.",
)

MISSING_INITIALIZE: Final = protocol_rule(
    name="missing-initialize",
    title="Session without initialize",
    what=(
        "A client sent requests of a session that it never began with initialize, under no revision that goes without. "
        "It is a note where the server answers all the same."
    ),
    why="Nothing is agreed on: SDK servers refuse such requests, and others answer without knowing the client.",
    blame="The client: until 2025-11-25 a session begins with initialize, and the capture has the beginning of this one.",
    example="→ tools/list 1\n← error 1 -32602 Received request before initialization was complete",
    clean='· handshake 2025-11-25, server: tools\n→ tools/list 1\n← result 1 {"tools":[]}',
    advice="Send initialize first, and notifications/initialized after its answer; or name the revision 2026-07-28 in _meta.",
)

UNKNOWN_REVISION: Final = protocol_rule(
    name="unknown-revision",
    title="Unknown protocol revision",
    what="A message names a revision of MCP that was never released or is misspelled.",
    why="The other side cannot know it, and disconnects or continues with another revision.",
    blame="The sender: revisions are release dates such as 2025-11-25.",
    example=(
        '→ initialize 0 {"protocolVersion":"2024.11.05","capabilities":{},"clientInfo":{"name":"client","version":"1"}}\n'
        '← result 0 {"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"server","version":"1"}}\n'
        "→ notifications/initialized"
    ),
    clean="· handshake 2024-11-05",
    advice="Name a released revision: 2024-11-05, 2025-03-26, 2025-06-18, 2025-11-25 or 2026-07-28.",
)

UNDECLARED_CAPABILITY: Final = protocol_rule(
    name="undeclared-capability",
    title="Undeclared capability used",
    what="A message needs a capability that was not declared in the handshake.",
    why="The other side answers that the method is unknown, or does not answer.",
    blame="The sender: both sides declared their capabilities in the handshake.",
    example="· handshake 2025-11-25, server: tools\n→ prompts/list 1\n← error 1 -32601 Method not found",
    clean='· handshake 2025-11-25, server: tools prompts\n→ prompts/list 1\n← result 1 {"prompts":[]}',
    advice="Declare each capability that you offer, and check the other side's before you use them.",
)

INITIALIZE_IN_BATCH: Final = protocol_rule(
    name="initialize-in-batch",
    title="initialize in a batch",
    severity=Severity.ERROR,
    what="The client sent initialize inside a batch.",
    why="The client cannot know yet whether the server accepts batches, and servers drop or reject the whole batch.",
    blame="The client: it made the batch.",
    example=(
        '→ [{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-03-26","capabilities":{},'
        '"clientInfo":{"name":"client","version":"1"}}}]\n'
        '← result 0 {"protocolVersion":"2025-03-26","capabilities":{},"serverInfo":{"name":"server","version":"1"}}\n'
        "→ notifications/initialized"
    ),
    clean="· handshake 2025-03-26",
    advice="Send initialize as a message of its own.",
)

BATCH_NOT_IN_REVISION: Final = protocol_rule(
    name="batch-not-in-revision",
    title="Batch in a revision without batches",
    what="Messages were sent as a batch under a revision without batches; only 2025-03-26 has them.",
    why="Both official SDKs ignore an array on stdio, and Python's rejects it over HTTP, so that its requests wait forever.",
    blame="The sender: the revision was agreed on before.",
    example=(
        '· handshake 2025-06-18, server: tools prompts\n→ [{"jsonrpc":"2.0","id":1,"method":"tools/list"},'
        '{"jsonrpc":"2.0","id":2,"method":"prompts/list"}]\n← result 1 {"tools":[]}\n← result 2 {"prompts":[]}'
    ),
    clean=(
        '· handshake 2025-03-26, server: tools prompts\n→ [{"jsonrpc":"2.0","id":1,"method":"tools/list"},'
        '{"jsonrpc":"2.0","id":2,"method":"prompts/list"}]\n← result 1 {"tools":[]}\n← result 2 {"prompts":[]}'
    ),
    advice="Send each message on its own.",
)

RULES: Final = (
    SECOND_INITIALIZE, EARLY_REQUEST, EARLY_SERVER_REQUEST, MISSING_INITIALIZE, MISSING_INITIALIZED, UNKNOWN_REVISION,
    UNDECLARED_CAPABILITY, INITIALIZE_IN_BATCH, BATCH_NOT_IN_REVISION,
)  # fmt: skip

_SWITCHES: Final = {"listChanged", "subscribe"}
"""Capabilities that are true or absent; all others are objects."""


class Handshake(NamedTuple):
    """The handshake of one scope. `declared` has the capabilities of each side; None where a side sent none."""

    scope: ScopeKey
    exchange: Exchange
    answered_ns: int
    declared: dict[str, dict[str, Any] | None]


def find(facts: CaptureFacts) -> Iterator[Hit]:
    """Find faults in the handshakes of a capture, and messages that do not keep to them."""
    yield from _without_initialize(facts)
    agreed: dict[ScopeKey, Handshake] = {}
    for exchange in facts.initializes:
        yield from _revisions(exchange)
        if exchange.request.batch:
            what = "initialize was sent inside a batch."
            yield hit_in(INITIALIZE_IN_BATCH, exchange.request, exchange.row, what)
        scope = scope_key(exchange.transaction)
        if scope in agreed and (scope or exchange.transaction is None) and not facts.is_shared(exchange.transaction):
            what = "The client sent initialize again in a session that was already initialized."
            yield hit_in(SECOND_INITIALIZE, exchange.request, exchange.row, what, group=str(scope))
        elif exchange.response is not None and exchange.response.kind is Kind.RESULT:
            agreed[scope] = _handshake(scope, exchange)
    if any(handshake.exchange.transaction is not None for handshake in agreed.values()):
        agreed.pop(0, None)  # transactions without a session: each may be another client
    yield from _order(facts, agreed)
    yield from _capabilities(facts, agreed)
    yield from _batches(facts)


def _without_initialize(facts: CaptureFacts) -> Iterator[Hit]:
    """Find sessions without a handshake. It is a note where the server goes on all the same: it may need none.

    It is a warning where the client sent what follows initialize alone: it speaks an era that needs it.
    """
    lacking = without_handshake(facts)
    refused = refused_for_handshake(facts, lacking)
    for scope, exchanges in refused.items():
        for exchange in exchanges:
            yield _uninitialized(facts, exchange, scope)
    certain = first_without(facts, lacking)
    served = served_without(facts, certain)
    initialized = {scope for method, sender, _, scope in facts.notifications if (method, sender) == (INITIALIZED, CLIENT)}
    for scope, sent in certain.items():
        first = sent[0]
        blame = "" if first.transaction is None else _BLAME_IF_YOUNG
        what = f"{call_name(first)} was sent in a session without initialize"
        if scope in refused:
            continue
        if scope in initialized:
            what += ", though the client sent notifications/initialized."
            yield hit_in(MISSING_INITIALIZE, first.request, first.row, what, blame=blame)
        elif scope in served:
            what += f", which the server did not ask for.{_others(sent)}"
            yield hit_in(
                MISSING_INITIALIZE,
                first.request,
                first.row,
                what,
                blame=blame,
                advice=_ADVICE_IF_SERVED,
                severity=Severity.NOTE,
            )


def _others(sent: list[Exchange]) -> str:
    match sent[1:]:
        case []:
            return ""
        case [other]:
            return f" So was {other.method}."
        case others:
            return f" So were requests of {len(others)} other kinds."


def _uninitialized(facts: CaptureFacts, exchange: Exchange, scope: ScopeKey) -> Hit:
    """Blame a client that was refused; one whose earlier stream was initialized did not do so again."""
    what = f"{call_name(exchange)} was sent in a session without initialize, and "
    if exchange.response is None:
        what += f"not answered; the server wrote to stderr: {quoted(handshake_log(facts))}."
    else:
        error = member(exchange.response.error, "message")
        what += f"refused: {quoted(str(error).encode('utf-8', 'backslashreplace'))}."
    transaction = exchange.transaction
    stream = None if transaction is None else facts.capture.transactions.get(transaction.scope.stream)
    before = [
        opening for opening in facts.initializes if opening.response is not None and opening.response.at_ns < exchange.at_ns
    ]
    if stream is None or not before:
        return hit_in(MISSING_INITIALIZE, exchange.request, exchange.row, what, group=str(scope))
    what += f" The handshake (row {before[-1].row}) belongs to another stream; the client opened this one in row {stream.row}."
    blame = "The client: each stream of HTTP+SSE is a session of its own, which begins with initialize."
    advice = "After opening a stream again, send initialize and notifications/initialized before anything else."
    return hit_in(MISSING_INITIALIZE, exchange.request, exchange.row, what, blame=blame, advice=advice, group=str(scope))


_BLAME_IF_YOUNG: Final = "The client: its process is younger than the capture, which has all that it sent, and no initialize."
_ADVICE_IF_SERVED: Final = "If the client should also work with servers that need a handshake, let it send initialize first."


def _handshake(scope: ScopeKey, exchange: Exchange) -> Handshake:
    assert exchange.response is not None
    declared: dict[str, dict[str, Any] | None] = {
        CLIENT: declared_capabilities(exchange.request.params),
        SERVER: declared_capabilities(exchange.response.result),
    }
    return Handshake(scope, exchange, exchange.response.at_ns, declared)


def declared_capabilities(params: Any) -> dict[str, Any] | None:
    """Return the capabilities that a side declared; None if it sent none, which is another fault."""
    capabilities = member(params, "capabilities")
    return capabilities if isinstance(capabilities, dict) else None


def _revisions(exchange: Exchange) -> Iterator[Hit]:
    for message in (exchange.request, exchange.response):
        if message is None or message.kind is Kind.ERROR:
            continue
        revision = exchange.target if message is exchange.request else message.revision
        if revision and not is_known(revision):
            named = quoted(revision)
            what = f"The {message.sender} named the revision {named}, which was never released."
            advice = f"Name a released revision; the nearest is {nearest(revision)}."
            yield hit_in(UNKNOWN_REVISION, message, exchange.row, what, advice=advice, group=revision)


def _order(facts: CaptureFacts, agreed: dict[ScopeKey, Handshake]) -> Iterator[Hit]:
    initialized = {
        key[3]: use.first.at_ns for key, use in facts.notifications.items() if key[0] == INITIALIZED and key[1] == CLIENT
    }
    followed: dict[ScopeKey, Exchange] = {}
    for (method, sender, revision, scope), use in facts.requests.items():
        first, handshake = use.first, agreed.get(scope)
        if handshake is None or not isinstance(first, Exchange) or method in HANDSHAKE_METHODS:
            continue
        if sender == CLIENT and (revision is None or era(revision) is Era.LEGACY):
            if first.at_ns < handshake.answered_ns and first.transaction is None:
                what = f"{call_name(first)} was sent before initialize was answered."
                yield hit_in(EARLY_REQUEST, first.request, first.row, what, group=str(scope))
            elif scope not in followed or first.at_ns < followed[scope].at_ns:
                followed[scope] = first
        elif sender == SERVER and handshake.answered_ns < first.at_ns < initialized.get(scope, 0):
            what = f"The server sent {call_name(first)} before the client sent notifications/initialized."
            yield hit_in(EARLY_SERVER_REQUEST, first.request, first.row, what, group=str(scope))
    for scope, first in followed.items():
        unplaced = (
            0 in initialized and first.transaction is not None
        )  # sent to an endpoint that no stream announced: of an unknown client
        if scope not in initialized and not unplaced and not facts.is_unseen(first.at_ns):
            what = f"{call_name(first)} followed initialize, but notifications/initialized was never sent."
            if first.row in explained_rows(facts):
                what += " The server did not answer it, as servers may that wait for this notification."
            yield hit_in(MISSING_INITIALIZED, first.request, first.row, what, group=str(scope))


def _capabilities(facts: CaptureFacts, agreed: dict[ScopeKey, Handshake]) -> Iterator[Hit]:
    for uses in (facts.requests, facts.notifications):
        for (method, sender, revision, scope), use in uses.items():
            handshake, first = agreed.get(scope), use.first
            if handshake is None or revision is None or era(revision) is not Era.LEGACY or first.at_ns < handshake.answered_ns:
                continue
            known = method_row(method, CLIENT if sender == CLIENT else SERVER, revision)
            declared = handshake.declared[known.needs[0]] if known is not None and known.needs else None
            if known is None or declared is None or has_capability(declared, known.needs[1:]):
                continue
            if isinstance(first, Exchange) and is_served(first):
                continue  # `unserved` blames the server
            message = first.message if isinstance(first, UnpairedMessage) else first.request
            path = ".".join(known.needs[1:])
            what = f"The {sender} sent {method}, but the {known.needs[0]} did not declare the capability {path}."
            yield hit_in(
                UNDECLARED_CAPABILITY, message, first.row, what, count=use.count, advice=_advice(known, message.sender)
            )


def undeclared(facts: CaptureFacts, request: Exchange) -> str:
    """Return the capability that a request of the server needs and its client did not declare in the handshake; empty if none."""
    revision, scope = request.revision, scope_key(request.transaction)
    if request.sender != SERVER or revision is None or era(revision) is not Era.LEGACY:
        return ""
    known = method_row(request.method, SERVER, revision)
    if known is None or known.needs[:1] != (CLIENT,):
        return ""
    before = (other for other in facts.initializes if other.at_ns <= request.at_ns and scope_key(other.transaction) == scope)
    handshake = max(before, key=lambda other: other.at_ns, default=None)
    declared = None if handshake is None else member(handshake.request.params, "capabilities")
    path = known.needs[1:]
    return "" if not isinstance(declared, dict) or has_capability(declared, path) else ".".join(path)


def _advice(method: Method, sender: Side) -> str:
    """Say what to do: the sender declares a capability of its own, and leaves alone what the other side did not declare."""
    owner, *path = method.needs
    if owner == sender:
        value = "true" if path[-1] in _SWITCHES else "{}"
        return f"Declare {'.'.join(path)} ({value}) in the {sender}'s capabilities, or do not send {method.name}."
    return f"Look at the {owner}'s capabilities before {method.name}, and do not send it without {'.'.join(path)}."


OFFERED: Final = ("tools", "prompts", "resources")
"""The capabilities of what a server offers: each is the first part of the names of its methods."""


def is_served(exchange: Exchange) -> bool:
    """Return whether the server gave a client a result that shows that it offers tools, prompts or resources; no empty list."""
    response = exchange.response
    if response is None or response.kind is not Kind.RESULT or exchange.sender != CLIENT:
        return False
    if exchange.method in LISTED_MEMBERS:
        return bool(member(response.result, LISTED_MEMBERS[exchange.method]))
    return exchange.method in ("tools/call", "prompts/get", "resources/read") and not response.is_error


def has_capability(declared: Any, path: tuple[str, ...]) -> bool:
    """Return whether declared capabilities have the one at this path, and not as false."""
    value = member(declared, *path)
    return value is not None and value is not False


def _batches(facts: CaptureFacts) -> Iterator[Hit]:
    for batched in facts.batches:
        message = batched.request if isinstance(batched, Exchange) else batched.message
        revision = message.revision
        if revision is None or nearest(revision) == WITH_BATCHES or message.method == INITIALIZE:
            continue
        what = f"The {message.sender} sent a batch under the revision {revision}, which has no batches."
        yield hit_in(BATCH_NOT_IN_REVISION, message, batched.row, what, group=revision)

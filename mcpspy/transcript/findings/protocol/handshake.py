"""Findings about the handshake of the legacy era: its order, its revision, and what it declared.

Source: MCP specification, basic/lifecycle of each revision from 2024-11-05 to 2025-11-25. Nothing is found in a scope of which the
handshake is not in the capture, and nothing about what clients of the modern era send beside it.
"""

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from ....records import CLIENT, SERVER
from ...mcp.methods import DISCOVER, INITIALIZE, row
from ...mcp.revisions import WITH_BATCHES, Era, era, is_known, nearest
from ...model import Exchange, Kind, UnpairedMessage
from ..facts import CaptureFacts, ScopeKey, scope_key
from ..rule import Family, Hit, Rule, Severity, hit_in
from ..words import call_name, quoted

SECOND_INITIALIZE: Final = Rule(
    name="second-initialize",
    title="Initialized twice",
    family=Family.PROTOCOL,
    severity=Severity.WARNING,
    what="The client sends initialize again, after it was answered with a result.",
    why="Servers refuse it, or forget what was agreed on before.",
    blame="The client: the first handshake succeeded, and a session has one.",
    example=(
        '· handshake 2025-11-25, server: tools\n→ tools/list 1\n← result 1 {"tools":[]}\n'
        '→ initialize 2 {"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"client","version":"1"}}\n'
        "← error 2 -32600 Already initialized"
    ),
    clean='· handshake 2025-11-25, server: tools\n→ tools/list 1\n← result 1 {"tools":[]}',
    fix="Initialize once; to agree anew, start the server again or begin another session.",
)

EARLY_REQUEST: Final = Rule(
    name="early-request",
    title="Request before the handshake",
    family=Family.PROTOCOL,
    severity=Severity.WARNING,
    what="The client sends a request before its initialize is answered.",
    why="Until then nothing is agreed on: many servers refuse the request, or drop it.",
    blame="The client: before the answer it may send nothing but ping.",
    example=(
        '→ initialize 0 {"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"client","version":"1"}}\n'
        "→ tools/list 1\n"
        '← result 0 {"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"server","version":"1"}}\n'
        '→ notifications/initialized\n← result 1 {"tools":[]}'
    ),
    clean='· handshake 2025-11-25, server: tools\n→ tools/list 1\n← result 1 {"tools":[]}',
    fix="Wait for the answer to initialize, send notifications/initialized, and then ask.",
)

EARLY_SERVER_REQUEST: Final = Rule(
    name="early-server-request",
    title="Server request before the handshake ended",
    family=Family.PROTOCOL,
    severity=Severity.WARNING,
    what="The server sends a request before the client said notifications/initialized.",
    why="The client may not be ready to answer: SDK clients drop the request, and the server waits.",
    blame="The server: before that notification it may send nothing but ping and log messages.",
    example=(
        '→ initialize 0 {"protocolVersion":"2025-11-25","capabilities":{"roots":{}},"clientInfo":{"name":"client","version":"1"}}\n'
        '← result 0 {"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"server","version":"1"}}\n'
        '← roots/list 1\n→ notifications/initialized\n→ result 1 {"roots":[]}'
    ),
    clean='· handshake 2025-11-25, client: roots\n← roots/list 1\n→ result 1 {"roots":[]}',
    fix="Wait for notifications/initialized before asking the client anything.",
)

MISSING_INITIALIZED: Final = Rule(
    name="missing-initialized",
    title="No notifications/initialized",
    family=Family.PROTOCOL,
    severity=Severity.WARNING,
    what="The client goes on after initialize without ever sending notifications/initialized.",
    why="Servers wait for it: some refuse all requests until it comes, others never send theirs.",
    blame="The client: the notification is its last step of the handshake, and every message of its is in the capture.",
    example=(
        '→ initialize 0 {"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"client","version":"1"}}\n'
        '← result 0 {"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"server","version":"1"}}\n'
        '→ tools/list 1\n← result 1 {"tools":[]}'
    ),
    clean='· handshake 2025-11-25, server: tools\n→ tools/list 1\n← result 1 {"tools":[]}',
    fix="Send notifications/initialized as soon as initialize is answered.",
)

UNKNOWN_REVISION: Final = Rule(
    name="unknown-revision",
    title="Unknown protocol revision",
    family=Family.PROTOCOL,
    severity=Severity.WARNING,
    what="A peer names a revision of MCP that was never released, or spells it its own way.",
    why="The other side cannot know it, and disconnects or goes on with what it takes for the nearest.",
    blame="Whoever named it: revisions are released dates, as 2025-11-25.",
    example=(
        '→ initialize 0 {"protocolVersion":"2024.11.05","capabilities":{},"clientInfo":{"name":"client","version":"1"}}\n'
        '← result 0 {"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"server","version":"1"}}\n'
        "→ notifications/initialized"
    ),
    clean="· handshake 2024-11-05",
    fix="Name a released revision: 2024-11-05, 2025-03-26, 2025-06-18, 2025-11-25 or 2026-07-28.",
)

UNDECLARED_CAPABILITY: Final = Rule(
    name="undeclared-capability",
    title="Undeclared capability used",
    family=Family.PROTOCOL,
    severity=Severity.WARNING,
    what="A side uses what the handshake did not declare: a list the server does not offer, a question the client does not take.",
    why="The other side answers that it knows no such method, or not at all.",
    blame="Whoever used it: what the other side can do stood in its half of the handshake.",
    example="· handshake 2025-11-25, server: tools\n→ prompts/list 1\n← error 1 -32601 Method not found",
    clean='· handshake 2025-11-25, server: tools prompts\n→ prompts/list 1\n← result 1 {"prompts":[]}',
    fix="Look at the capabilities before using what needs one; declare what you offer.",
)

INITIALIZE_IN_BATCH: Final = Rule(
    name="initialize-in-batch",
    title="initialize in a batch",
    family=Family.PROTOCOL,
    severity=Severity.ERROR,
    what="The client sends initialize as a member of a batch.",
    why="Whether batches are known is what initialize finds out; servers drop or refuse the whole batch.",
    blame="The client: it made the batch.",
    example=(
        '→ [{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-03-26","capabilities":{},'
        '"clientInfo":{"name":"client","version":"1"}}}]\n'
        '← result 0 {"protocolVersion":"2025-03-26","capabilities":{},"serverInfo":{"name":"server","version":"1"}}\n'
        "→ notifications/initialized"
    ),
    clean="· handshake 2025-03-26",
    fix="Send initialize alone.",
)

BATCH_NOT_IN_REVISION: Final = Rule(
    name="batch-not-in-revision",
    title="Batch in a revision without batches",
    family=Family.PROTOCOL,
    severity=Severity.WARNING,
    what="Messages are sent as a batch, an array, under a revision that has none: only 2025-03-26 does.",
    why="Both official SDKs ignore an array on stdio, and Python's refuses one over HTTP: its requests wait forever.",
    blame="Whoever sent it: the revision was agreed on before.",
    example=(
        '· handshake 2025-06-18, server: tools prompts\n→ [{"jsonrpc":"2.0","id":1,"method":"tools/list"},'
        '{"jsonrpc":"2.0","id":2,"method":"prompts/list"}]\n← result 1 {"tools":[]}\n← result 2 {"prompts":[]}'
    ),
    clean=(
        '· handshake 2025-03-26, server: tools prompts\n→ [{"jsonrpc":"2.0","id":1,"method":"tools/list"},'
        '{"jsonrpc":"2.0","id":2,"method":"prompts/list"}]\n← result 1 {"tools":[]}\n← result 2 {"prompts":[]}'
    ),
    fix="Send each message by itself.",
)

RULES: Final = (
    SECOND_INITIALIZE, EARLY_REQUEST, EARLY_SERVER_REQUEST, MISSING_INITIALIZED, UNKNOWN_REVISION, UNDECLARED_CAPABILITY,
    INITIALIZE_IN_BATCH, BATCH_NOT_IN_REVISION,
)  # fmt: skip

_INITIALIZED: Final = "notifications/initialized"
_ANY_TIME: Final = {INITIALIZE, "ping", DISCOVER}


class Handshake(NamedTuple):
    """What one scope agreed on, and when; `declared` is by side what its capabilities were."""

    scope: ScopeKey
    exchange: Exchange
    answered_ns: int
    declared: dict[str, dict[str, Any] | None]


def find(facts: CaptureFacts) -> Iterator[Hit]:
    """What is wrong with the handshakes of a capture."""
    agreed: dict[ScopeKey, Handshake] = {}
    for exchange in facts.initializes:
        yield from _revisions(exchange)
        if exchange.request.batch:
            what = "initialize came as a member of a batch."
            yield hit_in(INITIALIZE_IN_BATCH, exchange.request, exchange.row, what)
        scope = scope_key(exchange.transaction)
        if scope in agreed and (scope or exchange.transaction is None) and not facts.is_shared(exchange.transaction):
            what = "The client sent initialize again, in a session that had its handshake."
            yield hit_in(SECOND_INITIALIZE, exchange.request, exchange.row, what, group=str(scope))
        elif exchange.response is not None and exchange.response.kind is Kind.RESULT:
            agreed[scope] = _handshake(scope, exchange)
    if any(one.exchange.transaction is not None for one in agreed.values()):
        agreed.pop(0, None)  # transactions that stand alone: each is a client of its own
    yield from _order(facts, agreed)
    yield from _capabilities(facts, agreed)
    yield from _batches(facts)


def _handshake(scope: ScopeKey, exchange: Exchange) -> Handshake:
    assert exchange.response is not None
    declared: dict[str, dict[str, Any] | None] = {
        CLIENT: _declared(exchange.request.params),
        SERVER: _declared(exchange.response.result),
    }
    return Handshake(scope, exchange, exchange.response.at_ns, declared)


def _declared(said: Any) -> dict[str, Any] | None:
    """What a side declared; None if it did not say, which is another fault."""
    capabilities = said.get("capabilities") if isinstance(said, dict) else None
    return capabilities if isinstance(capabilities, dict) else None


def _revisions(exchange: Exchange) -> Iterator[Hit]:
    for message in (exchange.request, exchange.response):
        if message is None or message.kind is Kind.ERROR:
            continue
        revision = exchange.target if message is exchange.request else message.revision
        if revision and not is_known(revision):
            named = quoted(revision.encode("utf-8", "backslashreplace"))
            what = f"The {message.sender} names the revision {named}, which was never released."
            advice = f"Name a released revision; the nearest is {nearest(revision)}."
            yield hit_in(UNKNOWN_REVISION, message, exchange.row, what, advice=advice, group=revision)


def _order(facts: CaptureFacts, agreed: dict[ScopeKey, Handshake]) -> Iterator[Hit]:
    initialized = {
        key[3]: use.first.at_ns for key, use in facts.notifications.items() if key[0] == _INITIALIZED and key[1] == CLIENT
    }
    followed: dict[ScopeKey, Exchange] = {}
    for (method, sender, revision, scope), use in facts.requests.items():
        first, handshake = use.first, agreed.get(scope)
        if handshake is None or not isinstance(first, Exchange) or method in _ANY_TIME:
            continue
        if sender == CLIENT and (revision is None or era(revision) is Era.LEGACY):
            if first.at_ns < handshake.answered_ns and first.transaction is None:
                what = f"{call_name(first)} was sent before initialize was answered."
                yield hit_in(EARLY_REQUEST, first.request, first.row, what, group=str(scope))
            elif scope not in followed or first.at_ns < followed[scope].at_ns:
                followed[scope] = first
        elif sender == SERVER and handshake.answered_ns < first.at_ns < initialized.get(scope, 0):
            what = f"The server sent {call_name(first)} before notifications/initialized came."
            yield hit_in(EARLY_SERVER_REQUEST, first.request, first.row, what, group=str(scope))
    for scope, first in followed.items():
        unplaced = 0 in initialized and first.transaction is not None  # POSTed to what announced no endpoint: anybody's
        if scope not in initialized and not unplaced and not facts.is_unseen(first.at_ns):
            what = f"{call_name(first)} follows initialize, and notifications/initialized never came."
            yield hit_in(MISSING_INITIALIZED, first.request, first.row, what, group=str(scope))


def _capabilities(facts: CaptureFacts, agreed: dict[ScopeKey, Handshake]) -> Iterator[Hit]:
    for uses in (facts.requests, facts.notifications):
        for (method, sender, revision, scope), use in uses.items():
            handshake, first = agreed.get(scope), use.first
            if handshake is None or revision is None or era(revision) is not Era.LEGACY or first.at_ns < handshake.answered_ns:
                continue
            known = row(method, CLIENT if sender == CLIENT else SERVER, revision)
            declared = handshake.declared[known.needs[0]] if known is not None and known.needs else None
            if known is None or declared is None or _has(declared, known.needs[1:]):
                continue
            message = first.message if isinstance(first, UnpairedMessage) else first.request
            path = ".".join(known.needs[1:])
            what = f"The {sender} sent {method}, and the {known.needs[0]} did not declare the capability {path}."
            yield hit_in(UNDECLARED_CAPABILITY, message, first.row, what, count=use.count)


def _has(declared: Any, path: tuple[str, ...]) -> bool:
    for name in path:
        declared = declared.get(name) if isinstance(declared, dict) else None
    return declared is not None and declared is not False


def _batches(facts: CaptureFacts) -> Iterator[Hit]:
    for batched in facts.batches:
        message = (
            batched.request
            if isinstance(batched, Exchange)
            else batched.message
            if isinstance(batched, UnpairedMessage)
            else None
        )
        revision = message.revision if message is not None else None
        if message is None or revision is None or nearest(revision) == WITH_BATCHES or message.method == INITIALIZE:
            continue
        what = f"The {message.sender} sent a batch under the revision {revision}, which has none."
        yield hit_in(BATCH_NOT_IN_REVISION, message, batched.row, what, group=revision)

"""Findings about a server that does not serve what it declared, or serves what it did not declare; and refused handshakes.

Source: MCP specification, basic/lifecycle of each revision: a server answers what its capabilities promise.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Final

from ....lazy_pattern import lazy_pattern
from ....records import CLIENT, SERVER
from ...http.head import EVENT_STREAM
from ...http.transaction import Transaction
from ...mcp.blocks import member
from ...mcp.codes import UNSUPPORTED_REVISION
from ...mcp.methods import DISCOVER, INITIALIZE, method_row
from ...mcp.revisions import Era, era, is_known
from ...message import Message
from ...model import HTTP_ERRORS, Exchange, Kind
from ..facts import CaptureFacts, ScopeKey, scope_key
from ..rule import CONFIGURATION, Hit, Severity, hit_in, protocol_rule
from ..words import call_name, listed, quoted
from .handshake import OFFERED, declared_capabilities, has_capability, is_served

REFUSED_HANDSHAKE: Final = protocol_rule(
    name="refused-handshake",
    title="Handshake refused",
    severity=Severity.ERROR,
    what="The server answered initialize with an error, and no later handshake succeeded.",
    why="The client has no session: it shows the server as failed, and none of its tools.",
    blame="The server: it refused. It may not even refuse a revision, but has to name one of its own.",
    example=(
        '→ initialize 0 {"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"client","version":"1"}}\n'
        "← error 0 -32000 Backend unreachable"
    ),
    clean=(
        '→ initialize 0 {"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"client","version":"1"}}\n'
        "← error 0 -32602 Unsupported protocol version\n· handshake 2025-06-18"
    ),
    advice="Read the error's message and what the server wrote to stderr; a server should start without its backend.",
)

NOT_SERVED: Final = protocol_rule(
    name="declared-not-served",
    title="Declared capability not served",
    what="The server declared a capability, and answered a method that belongs to it with -32601 (method not found).",
    why="Clients call what was declared; some treat the error as a failure of the whole server.",
    blame="The server: it declared the capability in its handshake.",
    example="· handshake 2025-11-25, server: tools resources\n→ resources/list 1\n← error 1 -32601 Method not found",
    clean=(
        '· handshake 2025-11-25, server: tools resources\n→ resources/list 1\n← result 1 {"resources":[]}\n'
        "→ resources/templates/list 2\n← error 2 -32601 Method not found"
    ),
    advice="Implement the method, with an empty list if there is nothing, or do not declare the capability.",
)

_LISTED: Final = '→ tools/list 1\n← result 1 {"tools":[{"name":"add","inputSchema":{"type":"object"}}]}'

REPEATED_NAME: Final = protocol_rule(
    name="repeated-tool-name",
    title="Tool name twice in one list",
    what="One answer to tools/list has two tools of the same name.",
    why="A client keeps one of them, or refuses both: the other tool cannot be called, and the model may read the wrong text.",
    blame="The server, or what joins several servers into one: names are unique within a server (server/tools).",
    example='→ tools/list 1\n← result 1 {"tools":[{"name":"search","inputSchema":{"type":"object"}},'
    '{"name":"search","description":"Searches the wiki.","inputSchema":{"type":"object"}}]}',
    clean='→ tools/list 1\n← result 1 {"tools":[{"name":"search","inputSchema":{"type":"object"}},'
    '{"name":"search_wiki","description":"Searches the wiki.","inputSchema":{"type":"object"}}]}',
    advice="Give each tool a name of its own, for example with the name of its server before it.",
)

NOT_DECLARED: Final = protocol_rule(
    name="served-not-declared",
    title="Served capability not declared",
    what="The server offered tools, prompts or resources, or answered a call of one, and had not declared the capability.",
    why="Clients that look at the capabilities never ask, and show none of what the server offers.",
    blame="The server: what it declares in its handshake is less than what it serves.",
    example=f"· handshake 2025-11-25, server: logging\n{_LISTED}",
    clean=f"· handshake 2025-11-25, server: tools\n{_LISTED}",
    advice="Declare the capability in the result of initialize, or of server/discover: tools, prompts or resources.",
)

RULES: Final = (REFUSED_HANDSHAKE, NOT_SERVED, NOT_DECLARED, REPEATED_NAME)

_METHOD_NOT_FOUND: Final = -32601
NOT_ACCEPTABLE: Final = 406
_OFTEN_LEFT_OUT: Final = {"resources/templates/list"}
"""Servers with resources and without templates often leave it out, and clients expect that."""


def find(facts: CaptureFacts) -> Iterator[Hit]:
    """Find a handshake that was refused for good, and differences between what was declared and what is served."""
    yield from _refused(facts)
    yield from _repeated(facts)
    declared = _declared(facts)
    yield from _undeclared(facts, declared)
    for exchange in facts.errors if facts.may_have_error(_METHOD_NOT_FOUND) else ():
        row = (
            method_row(exchange.method, CLIENT, exchange.revision) if exchange.revision and exchange.sender == CLIENT else None
        )
        if (
            row is None
            or row.needs[:1] != (SERVER,)
            or exchange.method in _OFTEN_LEFT_OUT
            or _code(exchange) != _METHOD_NOT_FOUND
        ):
            continue
        if has_capability(declared.get(scope_key(exchange.transaction)), row.needs[1:]):
            path = ".".join(row.needs[1:])
            what = f"The server declared {path}, and answered {exchange.method} with -32601 (method not found)."
            yield hit_in(NOT_SERVED, exchange.response or exchange.request, exchange.row, what, culprit=SERVER)


def _undeclared(facts: CaptureFacts, declared: dict[ScopeKey, object]) -> Iterator[Hit]:
    """Find the first served request for each capability that is missing from the declared ones."""
    lacking = {
        (scope, name)
        for scope, capabilities in declared.items()
        for name in OFFERED
        if isinstance(capabilities, dict) and not has_capability(capabilities, (name,))
    }
    for exchange in _served(facts, lacking) if lacking else ():
        name, scope = exchange.method.partition("/")[0], scope_key(exchange.transaction)
        if (scope, name) in lacking and is_served(exchange):
            lacking.discard((scope, name))
            what = f"The server answered {call_name(exchange)} with a result, but it did not declare the capability {name}."
            message = exchange.response or exchange.request
            yield hit_in(NOT_DECLARED, message, exchange.row, what, culprit=SERVER, group=name)


def _served(facts: CaptureFacts, lacking: set[tuple[ScopeKey, str]]) -> Iterator[Exchange]:
    """Yield what may show that a capability is there which is `lacking`: calls only as long as it is that of tools."""
    yield from facts.listings
    if any(name == "tools" for _, name in lacking):
        yield from facts.calls
    yield from (use.first for use in facts.requests.values() if isinstance(use.first, Exchange))


def _repeated(facts: CaptureFacts) -> Iterator[Hit]:
    for exchange in facts.listings:
        if exchange.method != "tools/list" or exchange.response is None:
            continue
        tools = member(exchange.response.result, "tools")
        names = (member(tool, "name") for tool in tools) if isinstance(tools, list) else ()
        counts = Counter(name for name in names if isinstance(name, str))
        for name, count in counts.items():
            if count > 1:
                what = f"The list has {count} tools of the name {quoted(name)}."
                yield hit_in(REPEATED_NAME, exchange.response, exchange.row, what, culprit=SERVER, group=name)


_OPENING_MEMBERS: Final = ("protocolVersion", "capabilities", "clientInfo")
_names_credential = lazy_pattern(
    r"(?i)\b(?:api[ _-]?key|access[ _-]?token|token|credentials?|unauthori[sz]ed|not authenticated|environment variable|env var)\b"
)


def _refused(facts: CaptureFacts) -> Iterator[Hit]:
    errors = facts.errors_of({INITIALIZE})
    refused = [exchange for exchange in errors if not exchange.is_probe]
    if not refused or any(_succeeded(exchange) for exchange in facts.exchanges):
        return
    last = refused[-1]
    assert last.response is not None
    if last.transaction is not None and last.transaction.status >= HTTP_ERRORS:
        from ..transport.refusal_culprits import refuses_name  # for HTTP alone

        if refuses_name(last.transaction):
            return  # `refusals` says which name
    message = member(last.response.error, "message")
    words = quoted(str(message).encode("utf-8", "backslashreplace"))
    what = f"The server answered initialize with the error {_code(last)}: {words}."
    if "version" in str(message).lower():
        yield _refused_revision(last, last.response, what)
    elif _lacks_type(last.transaction):
        blame = "The client: its Accept field must list application/json and text/event-stream (basic/transports)."
        advice = "Send Accept: application/json, text/event-stream with every POST."
        yield hit_in(REFUSED_HANDSHAKE, last.response, last.row, what, culprit=CLIENT, blame=blame, advice=advice)
    elif missing := [name for name in _OPENING_MEMBERS if member(last.request.params, name) is None]:
        blame = f"The client: its initialize lacks {listed(missing, len(missing))} (basic/lifecycle)."
        advice = "Send protocolVersion, capabilities and clientInfo with initialize."
        yield hit_in(REFUSED_HANDSHAKE, last.response, last.row, what, culprit=CLIENT, blame=blame, advice=advice)
    elif _names_credential.search(str(message)):
        blame = "The configuration of the server: it asks for a credential or a setting, which the client's entry has to bring."
        advice = "Put the key, the token or the variable that the error names into the client's entry for the server."
        yield hit_in(REFUSED_HANDSHAKE, last.response, last.row, what, culprit=CONFIGURATION, blame=blame, advice=advice)
    else:
        yield hit_in(REFUSED_HANDSHAKE, last.response, last.row, what, culprit=SERVER)


def _refused_revision(refused: Exchange, response: Message, what: str) -> Hit:
    """Blame a server of the legacy era that refuses a revision which there is, in place of naming one of its own."""
    requested = member(refused.request.params, "protocolVersion")
    if _code(refused) == UNSUPPORTED_REVISION or not (is_known(str(requested)) and era(str(requested)) is Era.LEGACY):
        blame = "Unclear: the two sides have no revision in common."
        return hit_in(REFUSED_HANDSHAKE, response, refused.row, what, culprit="unclear", blame=blame, severity=Severity.NOTE)
    blame = "The server: it has to answer initialize with a revision that it supports; the client decides (basic/lifecycle)."
    advice = (
        f"Answer initialize with a result whose protocolVersion is one of the server's own; until then, let the client ask for one "
        f"that the server takes, or update the server to {requested}."
    )
    return hit_in(REFUSED_HANDSHAKE, response, refused.row, what, culprit=SERVER, blame=blame, advice=advice)


def _lacks_type(transaction: Transaction | None) -> bool:
    """Return whether a request was refused as not acceptable, and does not accept both types that the specification asks for."""
    if transaction is None or transaction.status != NOT_ACCEPTABLE or transaction.request is None:
        return False
    accept = transaction.request.head.get("accept")
    return "*/*" not in accept and not all(media_type in accept for media_type in ("application/json", EVENT_STREAM))


def _succeeded(exchange: Exchange) -> bool:
    """Return whether the server gave the client a result, as it does after any handshake, and without one in the modern era."""
    is_result = exchange.response is not None and exchange.response.kind is Kind.RESULT
    return is_result and exchange.sender == CLIENT and exchange.method != "ping"


def _declared(facts: CaptureFacts) -> dict[ScopeKey, object]:
    """Return the capabilities that the server declared, by scope."""
    return {
        scope_key(exchange.transaction): declared_capabilities(exchange.response.result)
        for exchange in facts.listings
        if exchange.method in (INITIALIZE, DISCOVER) and exchange.response is not None
    }


def _code(exchange: Exchange) -> object:
    return member(exchange.response.error, "code") if exchange.response is not None else None

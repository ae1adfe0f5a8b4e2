"""Findings about header fields that repeat parts of a message: those that contradict it, are missing, or come twice.

Source: MCP specification, basic/transports/streamable-http of 2026-07-28, and basic/transports of 2025-06-18 and 2025-11-25.
HTTP+SSE has none of these fields, whatever revision is spoken over it.
"""

import re
from collections import Counter
from collections.abc import Iterator
from typing import Final

from ....lazy_pattern import lazy_pattern
from ....records import CLIENT
from ...http.head import Head, decoded_value
from ...http.transaction import ScopeKind, Stream
from ...mcp.codes import CLIENT_CAPABILITIES, PROTOCOL_VERSION
from ...mcp.fields import revision
from ...mcp.methods import DISCOVER, INITIALIZE, NAMED_IN_HEADERS, method_rows
from ...mcp.revisions import Era, era, position
from ...model import Exchange, Kind
from ..facts import CaptureFacts, client_requests
from ..hits import hit_on_stream
from ..rule import Hit, Severity, hit_in, protocol_rule
from ..words import quoted

_MODERN: Final = "· revision 2026-07-28\n→ POST /mcp\n  Mcp-Method: tools/call\n  Mcp-Name: forecast\n"
_CALL: Final = '  tools/call 1 {"name":"forecast"}\n'
_WELL: Final = '← 200 OK\n  result 1 {"resultType":"complete","content":[]}'
_MISMATCH: Final = "← 400 Bad Request\n  error 1 -32020 Header mismatch"
_SESSION: Final = "· HTTP\n· handshake 2025-11-25, server: tools\n"
_LISTED: Final = '  tools/list 1\n← 200 OK\n  result 1 {"tools":[]}'

HEADER_CONTRADICTS: Final = protocol_rule(
    name="header-contradicts",
    title="Header field contradicts the message",
    severity=Severity.ERROR,
    what="Mcp-Method, Mcp-Name or MCP-Protocol-Version contradicts the message in the body, or the handshake.",
    why="Servers refuse such a request: from 2026-07-28 on with the error -32020, before that with 400.",
    blame="The client: it wrote the field; mcpspy forwards it unchanged.",
    example=f"{_MODERN.replace('tools/call', 'tools/list')}{_CALL}{_MISMATCH}",
    clean=f"{_MODERN}{_CALL}{_WELL}",
    advice="Set the fields from the message that is sent.",
)

MISSING_HEADER: Final = protocol_rule(
    name="missing-header",
    title="Required header field missing",
    severity=Severity.ERROR,
    what="A request over HTTP lacks a field that its revision requires: Mcp-Method, Mcp-Name or MCP-Protocol-Version.",
    why="Servers refuse it, or take it for a request of an older revision.",
    blame="The client, or a proxy before mcpspy that drops the field.",
    example=f"{_MODERN.replace('  Mcp-Name: forecast' + chr(10), '')}{_CALL}{_MISMATCH}",
    clean=f"{_MODERN}{_CALL}{_WELL}",
    advice="Send MCP-Protocol-Version from 2025-06-18 on, and Mcp-Method and Mcp-Name from 2026-07-28 on.",
)

DUPLICATE_HEADER: Final = protocol_rule(
    name="duplicate-header",
    title="Duplicate header field",
    severity=Severity.ERROR,
    what="A header field that says where a message goes, who sends it or how to read it comes more than once.",
    why="Each hop may read another value; servers refuse such a request, and clients join the values to one that nobody knows.",
    blame="The sender: it, or a proxy on its side of mcpspy, adds the field instead of setting it.",
    example=f"{_MODERN}  Mcp-Name: alerts\n{_CALL}{_MISMATCH}",
    clean=f"{_MODERN}{_CALL}{_WELL}",
    advice="Send the field once.",
)

MISSING_ENVELOPE: Final = protocol_rule(
    name="missing-envelope",
    title="Revision or capabilities missing in _meta",
    severity=Severity.ERROR,
    what="A request of 2026-07-28 or later lacks its revision or the client's capabilities in _meta.",
    why="There is no handshake to give them, so the server has to refuse the request.",
    blame="The client: each request needs io.modelcontextprotocol/protocolVersion and …/clientCapabilities.",
    example=(
        '→ tools/list 1 {"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}\n← error 1 -32602 Missing capabilities'
    ),
    clean='· revision 2026-07-28\n→ tools/list 1\n← result 1 {"resultType":"complete","tools":[],"ttlMs":0,"cacheScope":"public"}',
    advice="Put protocolVersion and clientCapabilities ({} if there are none) into the _meta of every request.",
)

RULES: Final = (HEADER_CONTRADICTS, MISSING_HEADER, DUPLICATE_HEADER, MISSING_ENVELOPE)

_single_fields = lazy_pattern(
    rb"\n(mcp-protocol-version|mcp-method|mcp-name|mcp-session-id|content-type|authorization)[ \t]*:", re.IGNORECASE
)
"""The names of fields that may come once, in a head."""

_SENT_HEADS: Final = 4096
"""So many different heads are remembered as sound."""

_VERSION: Final = "MCP-Protocol-Version"
_WITH_VERSION: Final = "2025-06-18"
"""The first revision whose requests name it in a header field."""


def find(facts: CaptureFacts) -> Iterator[Hit]:
    """Find requests of the client whose header fields and _meta disagree or are incomplete."""
    for (method, sender, named, _), seen in facts.requests.items():
        first = seen.first
        if named is None or sender != CLIENT or not isinstance(first, Exchange) or era(named) is not Era.MODERN:
            continue
        if method != INITIALIZE and revision(first.request.raw) and CLIENT_CAPABILITIES.encode() not in first.request.raw:
            what = f"{method} names the revision {named}, but no capabilities of the client."
            yield hit_in(MISSING_ENVELOPE, first.request, first.row, what, count=seen.count)
    yield from _without_revision(facts)
    yield from _duplicates(facts)
    for exchange, transaction, agreed in client_requests(facts):
        if transaction.request is not None:
            is_streamable = transaction.scope.kind is not ScopeKind.STREAM
            yield from _fields(exchange, transaction.request, agreed, is_streamable=is_streamable)


def _without_revision(facts: CaptureFacts) -> Iterator[Hit]:
    """Find requests on stdio that name no revision, of a client that named one before and never initialized."""
    if facts.capture.transactions or facts.initializes or facts.capture.header is None or facts.first_hole_ns is not None:
        return
    answered_ns = [
        seen.first.response.at_ns
        for (_, sender, named, _), seen in facts.requests.items()
        if sender == CLIENT and named and era(named) is Era.MODERN and isinstance(seen.first, Exchange)
        if seen.first.response is not None and seen.first.response.kind is Kind.RESULT
    ]
    if not answered_ns:
        return
    for (method, sender, named, _), seen in facts.requests.items():
        first = seen.first
        if sender != CLIENT or named is not None or not isinstance(first, Exchange) or not method_rows(method):
            continue
        if first.at_ns > min(answered_ns):
            what = f"{method} names no revision, and the client never initialized."
            yield hit_in(MISSING_ENVELOPE, first.request, first.row, what, count=seen.count)


def _duplicates(facts: CaptureFacts) -> Iterator[Hit]:
    """Find fields that come twice in the head of a request or of a response."""
    sound: set[bytes] = set()
    for transaction in facts.capture.transactions.values():
        for stream in (transaction.request, transaction.response):
            if stream is None or stream.injected or stream.raw_head in sound:
                continue
            counts = _repeated(stream.raw_head)
            for name, count in counts.items():
                kind = "request" if stream is transaction.request else "response"
                what = f"The field {name} comes {count} times in the {kind} of {transaction.method} {transaction.target}."
                yield hit_on_stream(DUPLICATE_HEADER, facts, transaction, stream, what, stream.sender, group=name)
            if not counts and len(sound) < _SENT_HEADS:
                sound.add(stream.raw_head)


def _repeated(head: bytes) -> dict[str, int]:
    """Return the fields of a head that come more than once and may not, with their numbers."""
    names = _single_fields.findall(head)
    if len({name.lower() for name in names}) == len(names):
        return {}
    return {name: count for name, count in Counter(name.decode().lower() for name in names).items() if count > 1}


def _fields(exchange: Exchange, request: Stream, agreed: str | None, *, is_streamable: bool) -> Iterator[Hit]:
    raw = request.raw_head.lower()
    is_modern = exchange.era is Era.MODERN
    if not is_modern and agreed is None and b"\nmcp-method:" not in raw and b"\nmcp-name:" not in raw:
        return
    if _repeated(request.raw_head):
        return
    head = request.head
    version = head.get(_VERSION.lower())
    if is_streamable and version and era(version) is Era.MODERN and PROTOCOL_VERSION.encode() not in exchange.request.raw:
        if exchange.method != INITIALIZE:
            what = f"{exchange.method} names the revision {quoted(version)} in its head, but none in its _meta."
            yield hit_in(MISSING_ENVELOPE, exchange.request, exchange.row, what, group=exchange.method)
        return
    for field, in_head, in_body in _mismatches(exchange, head, agreed):
        other = "its body has" if field != _VERSION or revision(exchange.request.raw) else "the handshake agreed on"
        what = f"The field {field} of a request is {quoted(in_head)}, but {other} {quoted(in_body)}."
        yield hit_in(HEADER_CONTRADICTS, exchange.request, exchange.row, what, group=field)
    if is_streamable:
        for field in _missing(exchange, head, agreed):
            what = f"{exchange.method} came without the field {field}."
            severity = None if is_modern else Severity.WARNING  # where 2025-03-26 has to be assumed
            yield hit_in(MISSING_HEADER, exchange.request, exchange.row, what, group=field, severity=severity)


def _mismatches(exchange: Exchange, head: Head, agreed: str | None) -> Iterator[tuple[str, str, str]]:
    """Yield fields that should repeat a part of the body and do not: name, value in the head, value in the body."""
    target = exchange.target if exchange.method in NAMED_IN_HEADERS else None
    version = revision(exchange.request.raw)
    if version is None and agreed is not None and exchange.method not in (INITIALIZE, DISCOVER):
        version = agreed
    for field, in_body in (("Mcp-Method", exchange.method), ("Mcp-Name", target), (_VERSION, version)):
        in_head = head.get(field.lower())
        if in_head and in_body is not None and decoded_value(in_head) != in_body:
            yield field, decoded_value(in_head), in_body


def _missing(exchange: Exchange, head: Head, agreed: str | None) -> list[str]:
    method = exchange.method
    if method == INITIALIZE:
        return []
    if revision(exchange.request.raw) is not None:
        required = ["Mcp-Method", _VERSION, *(["Mcp-Name"] if method in NAMED_IN_HEADERS and exchange.target else [])]
    else:
        required = [_VERSION] if agreed is not None and position(agreed) >= position(_WITH_VERSION) else []
    return [field for field in required if not head.get(field.lower())]

"""Findings about calls that a client gave up and repeated, and that the server carried out both times.

Source: MCP specification, server/tools: a tool is neither read-only nor idempotent unless its annotations say so.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

import msgspec

from ....records import CLIENT
from ....wire.json_spans import UNREADABLE, members
from ...mcp.blocks import listed, member
from ...model import Exchange, Kind
from ..facts import CaptureFacts, ScopeKey, scope_key
from ..rule import AGENT, Hit, Severity, behaviour_rule, hit_in
from ..words import call_name, quoted, seconds

_TOOL: Final = (
    '· handshake 2025-11-25, server: tools\n→ tools/list 1\n← result 1 {"tools":[{"name":"pay","inputSchema":{"type":"object"},'
    '"annotations":{"idempotentHint":%s}}]}\n'
)
_TWICE: Final = (
    '→ tools/call 2 {"name":"pay","arguments":{"to":"x"}}\n· 3.0 s later\n'
    '→ notifications/cancelled {"requestId":2,"reason":"timed out"}\n'
    '· 1.0 s later\n→ tools/call 3 {"name":"pay","arguments":{"to":"x"}}\n'
    '· 1.0 s later\n← result 2 {"content":[{"type":"text","text":"paid as 1"}]}\n'
    '← result 3 {"content":[{"type":"text","text":"paid as 2"}]}'
)

CARRIED_OUT_TWICE: Final = behaviour_rule(
    name="carried-out-twice",
    title="Call carried out twice",
    what="A call was given up and repeated with the same arguments, and the server carried out both.",
    why="Where a second call is not without effect, a ticket is made twice, a payment is paid twice.",
    blame="The agent: the model behind the client repeated the call without looking at what the first had done.",
    example=_TOOL % "false" + _TWICE,
    clean=_TOOL % "false" + '→ tools/call 2 {"name":"pay","arguments":{"to":"x"}}\n· 3.0 s later\n← result 2 {"content":[]}',
    advice="After a timeout, look at what the call did before you repeat it, or give the tool a key that makes it idempotent.",
)

RULES: Final = (CARRIED_OUT_TWICE,)


_RETRY_NS: Final = 200_000_000
"""A model that is told about a timeout takes longer than this to decide; a loop in a client does not."""


class Repetition(NamedTuple):
    """A call that was given up, and the equal one after it; both were carried out."""

    first: Exchange
    second: Exchange


def find(facts: CaptureFacts) -> Iterator[Hit]:
    """Find calls with an effect that were carried out twice."""
    for first, second in repetitions(facts):
        what = (
            f"The client gave up on {call_name(first)} (row {first.row}) after {seconds((first.given_up_ns or 0) - first.at_ns)} and "
            f"repeated it with the same arguments; both were carried out: {_result(first)}, and {_result(second)}."
        )
        is_said = hints(facts, first.target) is not None
        severity = None if is_said else Severity.NOTE
        is_retry = second.at_ns - (first.given_up_ns or 0) < _RETRY_NS
        blame = "The client: it repeated the call at once, sooner than a model can, without looking at what the first had done."
        culprit, blame = (CLIENT, blame) if is_retry else (AGENT, "")
        yield hit_in(CARRIED_OUT_TWICE, second.request, second.row, what, culprit=culprit, blame=blame, severity=severity)


def repetitions(facts: CaptureFacts) -> list[Repetition]:
    """Return the calls that were carried out twice, but for tools that may be repeated."""
    given_up = [exchange for exchange in facts.cancelled if exchange.method == "tools/call" and _is_done(exchange)]
    given_up = [exchange for exchange in given_up if exchange.sender == CLIENT and exchange.given_up_ns is not None]
    given_up = [exchange for exchange in given_up if _scope(exchange) is not None]
    if not given_up:
        return []
    calls: dict[tuple[ScopeKey | None, str | None, bytes], list[Exchange]] = {}
    wanted = {(_scope(exchange), exchange.target) for exchange in given_up}
    for exchange in facts.calls:
        if (_scope(exchange), exchange.target) in wanted and exchange.sender == CLIENT:
            calls.setdefault((_scope(exchange), exchange.target, arguments(exchange.request.raw)), []).append(exchange)
    made = []
    for first in given_up:
        equal = calls[_scope(first), first.target, arguments(first.request.raw)]
        later = next((other for other in equal if other.at_ns >= (first.given_up_ns or 0) and other is not first), None)
        if later is not None and _is_done(later) and not may_be_repeated(facts, first.target):
            made.append(Repetition(first, later))
    return made


def _scope(exchange: Exchange) -> ScopeKey | None:
    """Return the scope of a call; None where nobody knows whether two requests are of one client."""
    return scope_key(exchange.transaction) or (None if exchange.transaction is not None else 0)


def _is_done(exchange: Exchange) -> bool:
    response = exchange.response
    return response is not None and response.kind is Kind.RESULT and not response.is_error and response.result_type is None


def _result(exchange: Exchange) -> str:
    """Quote the text of a result."""
    assert exchange.response is not None
    texts = (block.get("text") for block in listed(exchange.response.result, "content"))
    text = next((text for text in texts if isinstance(text, str)), None)
    return "a result" if text is None else quoted(text)


def may_be_repeated(facts: CaptureFacts, tool: str | None) -> bool:
    """Return whether a tool says that it only reads, or that a second equal call changes nothing."""
    annotations = hints(facts, tool) or {}
    return annotations.get("readOnlyHint") is True or annotations.get("idempotentHint") is True


def hints(facts: CaptureFacts, tool: str | None) -> dict[str, object] | None:
    """Return what the lists of tools say about the effects of a tool; None if they say nothing."""
    said: dict[str, object] = {}
    for listing in facts.listings:
        if listing.method != "tools/list" or listing.response is None:
            continue
        for item in listed(listing.response.result, "tools"):
            annotations = member(item, "annotations")
            if item.get("name") == tool and isinstance(annotations, dict):
                said |= {
                    name: value for name, value in annotations.items() if name.endswith("Hint") and said.get(name) is not True
                }
    return said or None


def arguments(request: bytes) -> bytes:
    """Return the arguments of a call, byte for byte."""
    try:
        return bytes(_decode(request).params.arguments)
    except UNREADABLE:
        return bytes(members(members(request).get("params", b"")).get("arguments", b""))


class _CallArguments(msgspec.Struct, gc=False):
    arguments: msgspec.Raw = msgspec.Raw(b"")


class _CallRequest(msgspec.Struct, gc=False):
    params: _CallArguments


_decode: Final = msgspec.json.Decoder(_CallRequest).decode

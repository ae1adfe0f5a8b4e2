"""Findings about calls that a gateway did not pass on once each, where both of its sides were tapped.

    client ──[capture A]── gateway ──[capture B]── server

    A:  tools/call pay {"to":"x"}    B:  tools/call pay {"to":"x"}, tools/call pay {"to":"x"}     repeated
    A:  tools/call read {"path":"y"} ── result      B:  nothing, and other calls of read          answered by the gateway

A gateway may try again what was refused, answer `ping`, `initialize` and lists itself, refuse calls, and have tools of its own.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

from ....records import CLIENT
from ....wire.json_spans import members
from ...hops import hop_pairs
from ...mcp.blocks import listed as listed_items
from ...mcp.blocks import member
from ...model import HTTP_ERRORS, Exchange, Kind
from ..rule import HANDSHAKE, Hit, Severity, hit_in, transport_rule
from ..words import call_name, listed, seconds
from .copies import BEHIND, BOTH, FIRST, GATEWAY_RESULT, INNER, REPEATED_BY_GATEWAY, SECOND

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ...exchange import ForwardedCall
    from ...model import Message
    from ..facts import TranscriptFacts

ANSWERED_BY_GATEWAY: Final = transport_rule(
    name="answered-by-gateway",
    title="Answer that the server never gave",
    what="The client got a result for a call that never reached the server, while other calls of the same kind did.",
    why="The answer is old, or made up: the server did nothing, and the model believes that it did.",
    blame="The gateway: it answered the call itself, for the server never received it.",
    example=f"{HANDSHAKE}{FIRST}{SECOND}{GATEWAY_RESULT % (2, 'paid x')}{BEHIND}{INNER}",
    clean=BOTH,
    advice="Let the gateway's cache leave out POST, or make its key of the whole body of the request.",
)

RULES: Final = (ANSWERED_BY_GATEWAY,)

_ASKED: Final = frozenset({"tools/call", "resources/read", "prompts/get", "completion/complete"})
"""Methods whose answers only the server knows. Lists may be kept by a gateway, which announces changes of them."""
_LISTED_ROWS: Final = 8


def find(facts: TranscriptFacts) -> Iterator[Hit]:
    """Find requests that a gateway sent several times, and those that it answered itself."""
    for outer, inner in sorted(hop_pairs(facts.transcript)):
        sides = _sides(facts, outer, inner)
        yield from _repeated(facts, inner, sides)
        yield from _answered(facts, inner, sides)


def _repeated(facts: TranscriptFacts, inner: int, sides: _Passage) -> Iterator[Hit]:
    """Find the copies among the requests that were joined with one of the client, and those that were joined with none."""
    server = facts.transcript.captures[inner].server
    late: defaultdict[tuple[str, str | None], list[Exchange]] = defaultdict(list)
    for other in sides.only_inner:
        late[other.method, other.target].append(other)
    for call in sides.calls:
        first = call.inner[0]
        copies = [later for sooner, later in pairwise(call.inner) if _ran_on(sooner, later) and _is_equal(sooner, later)]
        copies += [other for other in late[first.method, first.target] if _is_copy(call, first, other)]
        if not copies or any(_may_be(other, copy) for copy in copies for other in sides.only_outer):
            continue
        rows = listed((str(row) for row in sorted({first.row, *(copy.row for copy in copies)})), _LISTED_ROWS)
        span = seconds(max(copy.at_ns for copy in copies) - first.at_ns)
        what = (
            f"The client sent {call_name(call.outer)} once (row {call.outer.row}), and the gateway sent it "
            f"{len(copies) + 1} times to {server} within {span} (rows {rows})."
        )
        was_cancelled = first.given_up_ns is not None and first.given_up_ns <= copies[0].at_ns
        severity = Severity.NOTE if was_cancelled or not _has_effect(facts, first) else None
        group = f"{call.outer.method} {call.outer.target}"
        for copy in copies:
            yield hit_in(REPEATED_BY_GATEWAY, copy.request, copy.row, what, culprit="gateway", severity=severity, group=group)


def _is_copy(call: ForwardedCall, first: Exchange, other: Exchange) -> bool:
    """Tell whether a request that was joined with none is one that was made while this call ran, a second time."""
    until_ns = call.outer.at_ns if call.outer.response is None else call.outer.response.at_ns
    return (
        first.at_ns <= other.at_ns <= until_ns and not (_has_failed(first) or other in call.inner) and _is_equal(first, other)
    )


def _ran_on(sooner: Exchange, later: Exchange) -> bool:
    """Tell whether the server may have carried a request out when the gateway made it again, perhaps after its own time limit."""
    waited = sooner.response is None or sooner.response.at_ns > later.at_ns
    status = 0 if sooner.transaction is None else sooner.transaction.status
    return (waited and status < HTTP_ERRORS) or not _has_failed(sooner)


def _has_failed(exchange: Exchange) -> bool:
    """Tell whether a request was refused or broke off, so that a gateway may try again."""
    if exchange.transaction is not None and exchange.transaction.status >= HTTP_ERRORS:
        return True
    return exchange.response is None or exchange.response.kind is Kind.ERROR


def _is_equal(before: Exchange, after: Exchange) -> bool:
    return before.target == after.target and _content(before) == _content(after)


def _has_effect(facts: TranscriptFacts, call: Exchange) -> bool:
    """Tell whether a call may change something: a tool's, unless its server says that it does not."""
    if call.method != "tools/call":
        return False
    for row in facts.transcript.rows:
        if (
            isinstance(row, Exchange)
            and row.method == "tools/list"
            and row.capture == call.capture
            and row.response is not None
        ):
            for tool in listed_items(row.response.result, "tools"):
                hints = member(tool, "annotations")
                if tool.get("name") == call.target and isinstance(hints, dict):
                    return hints.get("readOnlyHint") is not True and hints.get("idempotentHint") is not True
    return True


class _Passage(NamedTuple):
    """The calls on the two sides of a gateway: those that came through, and what each side has besides."""

    calls: list[ForwardedCall]
    only_outer: list[Exchange]
    only_inner: list[Exchange]


def _answered(facts: TranscriptFacts, inner: int, sides: _Passage) -> Iterator[Hit]:
    """Find results of calls that no request on the other side explains, while calls of the same kind came through."""
    behind = facts.transcript.captures[inner]
    if behind.gaps or behind.damages or not behind.complete:
        return
    joined = [call.outer for call in sides.calls]
    kinds = {_kind(call) for call in joined}
    answers: defaultdict[tuple[str, str | None], list[Exchange]] = defaultdict(list)
    for call in joined:
        answers[_kind(call)].append(call)
    for call in sides.only_outer:
        response = call.response
        if _kind(call) not in kinds or response is None or response.kind is not Kind.RESULT:
            continue
        if call.at_ns < behind.shift_ns or any(_may_be(call, other) for other in sides.only_inner):
            continue
        yield _own_answer(call, response, answers[_kind(call)], behind.server)


def _own_answer(call: Exchange, response: Message, joined: Iterable[Exchange], server: str) -> Hit:
    """Make a finding; it is a warning if the answer is that of another question."""
    same = [other for other in joined if other.response is not None and _result(other.response) == _result(response)]
    others = [other for other in same if not _is_equal(other, call)]
    what = f"The client got a result for {call_name(call)} (row {call.row}), which never reached {server}"
    if others and len(others) == len(same):
        what += f"; it is the answer to row {others[0].row}, which asked with other params."
    else:
        what += f"; it is the answer to row {same[0].row} again." if same else ", while other calls of its kind did."
    severity = None if others and len(others) == len(same) else Severity.NOTE
    return hit_in(ANSWERED_BY_GATEWAY, response, call.row, what, culprit="gateway", severity=severity, group=call_name(call))


def _sides(facts: TranscriptFacts, outer: int, inner: int) -> _Passage:
    sides = _Passage([], [], [])
    for row in facts.transcript.rows:
        if not isinstance(row, Exchange) or row.sender != CLIENT or row.capture not in (outer, inner):
            continue
        call = facts.transcript.hops.get(row.row)
        if call is not None and row.row == call.outer.row and call.last.capture == inner:
            sides.calls.append(call)
        elif row.method not in _ASKED:
            continue
        elif row.capture == outer:
            sides.only_outer.append(row)
        elif call is None:
            sides.only_inner.append(row)
    return sides


def _kind(call: Exchange) -> tuple[str, str | None]:
    """Return the method, and for a tool or a prompt its name: a gateway may have some of its own."""
    return call.method, (call.target or "").partition(":")[0] if call.method == "resources/read" else call.target


def _may_be(outer: Exchange, inner: Exchange) -> bool:
    """Tell whether a request that was joined with none may be what this one became."""
    if outer.method != inner.method or not (outer.target or "").endswith(inner.target or ""):
        return False
    return outer.response is None or outer.at_ns <= inner.at_ns <= outer.response.at_ns


def _content(exchange: Exchange) -> object:
    params = exchange.request.params
    return {name: params[name] for name in params if name not in ("_meta", "name")} if isinstance(params, dict) else params


def _result(response: Message) -> bytes:
    return bytes(members(response.raw).get("result", b""))

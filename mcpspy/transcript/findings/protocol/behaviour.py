"""Findings about what is allowed, and slow or wasteful all the same: slow calls, repeated ones, polls without end."""

from collections.abc import Iterator
from itertools import pairwise
from statistics import median
from typing import Final

from ....records import CLIENT
from ....wire.json_spans import members
from ...calls.call import Call, CallPart
from ...model import Exchange, Outcome
from ..facts import CaptureFacts
from ..rule import Family, Hit, Rule, Severity, hit_in
from ..words import call_name, seconds

_SEARCHES: Final = "\n".join(
    f'→ tools/call {at} {{"name":"search","arguments":{{"q":{at}}}}}\n← result {at}' for at in range(1, 6)
)
_TASK: Final = (
    '· handshake 2025-11-25, server: tools tasks.requests.tools.call\n→ tools/call 1 {"name":"report","task":{"ttl":60000}}\n'
    '← result 1 {"task":{"taskId":"t1","status":"working","ttl":60000,"pollInterval":1000}}\n'
)

SLOW_CALL: Final = Rule(
    name="slow-call",
    title="Unusually slow call",
    family=Family.BEHAVIOUR,
    severity=Severity.INFO,
    what="A call took ten times as long as calls of the same tool usually do, and more than a second.",
    why="The model, and whoever talks to it, waited for that one.",
    blame="The server: it is the time from the request's last byte to the answer's last byte, as seen before the server.",
    example=f'{_SEARCHES}\n→ tools/call 9 {{"name":"search","arguments":{{"q":9}}}}\n· 4.0 s later\n← result 9',
    clean=f'{_SEARCHES}\n→ tools/call 9 {{"name":"search","arguments":{{"q":9}}}}\n← result 9',
    fix="See what is special about its arguments, and what the server logged meanwhile.",
)

REPEATED_CALL: Final = Rule(
    name="repeated-call",
    title="Same call repeated",
    family=Family.BEHAVIOUR,
    severity=Severity.INFO,
    what="The same tool was called with the same arguments several times in a row, one after the other was answered.",
    why="A model that repeats itself does not understand the answer, or hopes for another one: it costs time and context.",
    blame="The client, or the model behind it: it asked again for what it had just been told.",
    example="\n".join(f'→ tools/call {at} {{"name":"read","arguments":{{"path":"/x"}}}}\n← result {at}' for at in range(1, 4)),
    clean="\n".join(f'→ tools/call {at} {{"name":"read","arguments":{{"path":"/{at}"}}}}\n← result {at}' for at in range(1, 4)),
    fix="Say in the result what the model needs to know to go on; make errors say what to do instead.",
)

POLLING_STORM: Final = Rule(
    name="polling-storm",
    title="Task polled too often",
    family=Family.BEHAVIOUR,
    severity=Severity.WARNING,
    what="A task is polled much more often than the server asked for: less than half its pollInterval apart, ten times or more.",
    why="Every poll costs the server and the line; the task does not end sooner.",
    blame="The client: the interval stood in what the server said of the task.",
    example=_TASK + "\n".join(
        f'→ tasks/get {at} {{"taskId":"t1"}}\n← result {at} {{"taskId":"t1","status":"working","ttl":60000}}' for at in range(2, 14)
    ),
    clean=_TASK + "\n".join(
        f'· 1.0 s later\n→ tasks/get {at} {{"taskId":"t1"}}\n← result {at} {{"taskId":"t1","status":"working","ttl":60000}}'
        for at in range(2, 5)
    ),
    fix="Wait pollInterval milliseconds between two polls, or ask with tasks/result, which waits.",
)  # fmt: skip

RULES: Final = (SLOW_CALL, REPEATED_CALL, POLLING_STORM)

_SAMPLES: Final = 5
_TIMES_SLOWER: Final = 10
_SLOW_NS: Final = 1_000_000_000
_REPEATS: Final = 3
_POLLS: Final = 10


def find(facts: CaptureFacts) -> Iterator[Hit]:
    """Calls that stand out, and polls that come too soon."""
    yield from _slow(facts.calls)
    yield from _repeated(facts.calls)
    for one in {id(one): one for one in facts.capture.calls.values()}.values():
        yield from _polled(one)


def _slow(calls: list[Exchange]) -> Iterator[Hit]:
    by_tool: dict[str | None, list[tuple[int, Exchange]]] = {}
    for exchange in calls:
        if exchange.response is not None and exchange.outcome in (Outcome.OK, Outcome.TOOL_ERROR):
            by_tool.setdefault(exchange.target, []).append((exchange.response.at_ns - exchange.at_ns, exchange))
    for timed in by_tool.values():
        if len(timed) <= _SAMPLES:
            continue
        usual_ns = median(took_ns for took_ns, _ in timed)
        for took_ns, exchange in timed:
            if took_ns > _SLOW_NS and took_ns > _TIMES_SLOWER * usual_ns:
                usual = f"half of the {len(timed)} calls took no more than {usual_ns / 1e6:.0f} ms"
                what = f"{call_name(exchange)} took {seconds(took_ns)}; {usual}."
                assert exchange.response is not None
                yield hit_in(SLOW_CALL, exchange.response, exchange.row, what, group=exchange.target or "")


def _repeated(calls: list[Exchange]) -> Iterator[Hit]:
    """Runs of equal calls by one client; over HTTP several clients may be in a capture, each with its own run."""
    runs: dict[str, list[Exchange]] = {}
    for exchange in calls:
        if exchange.sender != CLIENT:
            continue
        scope = exchange.transaction.scope if exchange.transaction is not None else None
        who = "" if scope is None else scope.session or scope.client or str(scope.stream)
        run = runs.get(who)
        if run is not None and _is_again(run[-1], exchange):
            run.append(exchange)
            continue
        if run is not None:
            yield from _run(run)
        runs[who] = [exchange]
    for run in runs.values():
        yield from _run(run)


def _is_again(before: Exchange, exchange: Exchange) -> bool:
    if before.target != exchange.target or before.response is None or before.response.at_ns > exchange.at_ns:
        return False
    if before.response.result_type is not None:
        return False
    one, other = before.request.raw, exchange.request.raw
    one_tail, other_tail = one[one.find(_ARGUMENTS) :], other[other.find(_ARGUMENTS) :]
    if one_tail == other_tail:
        return True
    return abs(len(one) - len(other)) <= _ID_DIGITS and b'"id"' in one_tail and _arguments(one) == _arguments(other)


_ARGUMENTS: Final = b'"arguments"'
_ID_DIGITS: Final = 40
"""Equal calls differ by their ids and progress tokens, and so by no more bytes than these may have."""


def _arguments(request: bytes) -> bytes:
    """What a call hands over, as it is spelled."""
    return bytes(members(members(request).get("params", b"")).get("arguments", b""))


def _run(run: list[Exchange]) -> Iterator[Hit]:
    if len(run) >= _REPEATS:
        what = f"{call_name(run[0])} was called {len(run)} times in a row with the same arguments."
        yield hit_in(REPEATED_CALL, run[1].request, run[1].row, what, group=run[0].target or "")


def _polled(one: Call) -> Iterator[Hit]:
    interval_ms = None if one.task is None else one.task.poll_interval_ms
    if not interval_ms or len(one.polls) < _POLLS:
        return
    polls = [exchange for exchange in one.exchanges if one.part(exchange) is CallPart.POLL]
    hasty = [later for sooner, later in pairwise(polls) if later.at_ns - sooner.at_ns < interval_ms * 500_000]
    if len(hasty) >= _POLLS:
        took = seconds(polls[-1].at_ns - polls[0].at_ns)
        what = f"The task of {call_name(one.first)} was polled {len(polls)} times in {took}; asked for was one each {interval_ms} ms."
        yield hit_in(POLLING_STORM, hasty[0].request, hasty[0].row, what)

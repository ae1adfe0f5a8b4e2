"""Findings about agents that get no further: the same calls in the same order, again and again, and calls that all fail alike.

    edit a → test → edit b → test → edit a → test → edit b → test → edit a → test → edit b → test      a cycle of 4 calls, 3 times

A single call that repeats itself is another rule's (`repeated-call`).
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from ....lazy_pattern import lazy_pattern
from ....records import CLIENT
from ...mcp.blocks import member
from ...model import Exchange, Kind
from ...stats.context import result_text
from ..facts import CaptureFacts, scope_key
from ..protocol.repeats import arguments, hints, may_be_repeated
from ..rule import AGENT, HANDSHAKE, Hit, Severity, behaviour_rule, hit_in
from ..words import call_name, listed, quoted, seconds


def _calls(times: int) -> str:
    names = ("lock", "unlock") * times
    return HANDSHAKE + "".join(f'→ tools/call {at} {{"name":"{name}"}}\n← result {at}\n' for at, name in enumerate(names, 1))


CALLS_IN_CIRCLES: Final = behaviour_rule(
    name="calls-in-circles",
    title="Calls that go in circles",
    what="The same two calls or more, with the same arguments and in the same order, were made three times or more in a row.",
    why="An agent that does and undoes the same makes no progress, and pays for each turn.",
    blame="The agent: the model behind the client began again where it had been before.",
    example=_calls(3),
    clean=_calls(2),
    advice="Let the agent stop after a few equal turns, and say in results what has changed, so that it notices.",
)


def _failures(answer: str) -> str:
    calls = "".join(f'→ tools/call {at} {{"name":"{name}"}}\n{answer % at}' for at, name in enumerate("abcde", 1))
    return f"{HANDSHAKE}{calls}"


SAME_FAILURE: Final = behaviour_rule(
    name="same-failure",
    title="Different calls that fail alike",
    severity=Severity.NOTE,
    what="Five calls or more in a row, with different tools or arguments, failed with the same text.",
    why="They have one cause, which no other call avoids: the model tries on, and pays for each turn.",
    blame="Unclear: one cause is behind all these failures, and the text may name it.",
    example=_failures('← result %d {"content":[{"type":"text","text":"Not logged in"}],"isError":true}\n'),
    clean=_failures('← result %d {"content":[{"type":"text","text":"ok"}]}\n'),
    advice="Look for the one cause: a missing key or login, a service that does not run, a limit; and let the text name it.",
)

RULES: Final = (CALLS_IN_CIRCLES, SAME_FAILURE)

MAX_CALLS: Final = 20_000
"""So many calls of a capture are compared."""
MAX_PERIOD: Final = 8
TURNS: Final = 3
FAILURES: Final = 5
_MAX_TEXT: Final = 64 << 10
"""Failures with a longer text are not compared."""

_MOST_NAMED: Final = 4
_names_reading = lazy_pattern(
    r"(?:^|[_./-])(?:get|list|read|search|find|status|check|wait|poll|fetch|query|describe|show|view|sleep|stat|ls|cat)(?:$|[_./A-Z-])"
)
_POLLING_NS: Final = 10_000_000_000
"""Turns that begin further apart and only read are polling."""


class _Cycle(NamedTuple):
    """A cycle: where it begins, how many calls it has, and how many turns."""

    at: int
    period: int
    turns: int


def find(facts: CaptureFacts) -> Iterator[Hit]:
    """Find cycles in the calls of each client."""
    by_client: dict[object, list[Exchange]] = {}
    for call in facts.first(facts.calls, MAX_CALLS, RULES):
        if call.sender == CLIENT and (call.transaction is None or scope_key(call.transaction)):
            by_client.setdefault(scope_key(call.transaction), []).append(call)
    for calls in by_client.values():
        if len(calls) < FAILURES:
            continue
        numbers: dict[tuple[str | None, bytes], int] = {}
        keys = [numbers.setdefault((call.target, arguments(call.request.raw)), len(numbers)) for call in calls]
        in_circles: set[int] = set()
        if len(numbers) < len(keys):
            for cycle in cycles(keys):
                for hit in _hit(facts, calls, cycle):
                    in_circles.update(range(cycle.at, cycle.at + cycle.period * cycle.turns))
                    yield hit
        yield from _same_failures(calls, keys, in_circles)


def _same_failures(calls: Sequence[Exchange], keys: Sequence[int], in_circles: set[int]) -> Iterator[Hit]:
    """Find runs of calls that failed with the same text; those that are pending or in circles neither belong to a run nor end it."""
    run: list[int] = []
    text = b""
    for at, call in enumerate(calls):
        if call.response is None or at in in_circles:
            continue
        failure = _failure(call)
        if failure != text:
            yield from _same_failure(calls, keys, run, text)
            run, text = [], failure
        run.append(at)
    yield from _same_failure(calls, keys, run, text)


def _failure(call: Exchange) -> bytes:
    """Return the text with which a call failed; empty if it did not, or without a text that is short enough."""
    response = call.response
    if response is None or response.size > _MAX_TEXT:
        return b""
    if response.kind is Kind.ERROR:
        message = member(response.error, "message")
        return message.encode("utf-8", "replace").strip() if isinstance(message, str) else b""
    return result_text(response).strip() if response.is_error else b""


def _same_failure(calls: Sequence[Exchange], keys: Sequence[int], run: Sequence[int], text: bytes) -> Iterator[Hit]:
    if not text or len(run) < FAILURES:
        return
    different = {keys[at]: calls[at] for at in run}
    if len(different) < FAILURES:
        return
    names = listed(dict.fromkeys(call_name(call) for call in different.values()), _MOST_NAMED, "tools")
    what = f"{len(different):,} different calls in a row failed with the same text, {quoted(text)}: {names}."
    last = calls[run[-1]]
    yield hit_in(SAME_FAILURE, last.request, last.row, what, culprit="unclear", group=text[:200].decode("utf-8", "replace"))


def cycles(keys: Sequence[int]) -> Iterator[_Cycle]:
    """Yield the cycles of a sequence: at least two different keys, three times in a row; the shortest period first."""
    at = 0
    ends = [0] * (MAX_PERIOD + 1)
    while at < len(keys):
        cycle = next((cycle for period in range(2, MAX_PERIOD + 1) if (cycle := _cycle(keys, at, period, ends))), None)
        if cycle is None:
            at += 1
        else:
            yield cycle
            at += cycle.period * cycle.turns


def _cycle(keys: Sequence[int], at: int, period: int, ends: list[int]) -> _Cycle | None:
    """Return the cycle that begins at `at`. `ends` has for each period how far its keys were seen to repeat: each is read once."""
    if at + TURNS * period > len(keys) or keys[at] != keys[at + period]:
        return None
    end = max(ends[period], at + period)
    while end < len(keys) and keys[end] == keys[end - period]:
        end += 1
    ends[period] = end
    turns = (end - at) // period
    return _Cycle(at, period, turns) if turns >= TURNS and len(set(keys[at : at + period])) > 1 else None


def _only_reads(facts: CaptureFacts, tool: str | None) -> bool:
    """Tell whether a tool only looks: by its annotations, or where it has none by its name."""
    return may_be_repeated(facts, tool) or (hints(facts, tool) is None and bool(_names_reading.search(tool or "")))


def _hit(facts: CaptureFacts, calls: Sequence[Exchange], cycle: _Cycle) -> Iterator[Hit]:
    first = calls[cycle.at : cycle.at + cycle.period]
    last = calls[cycle.at + cycle.period * cycle.turns - 1]
    begins = [calls[cycle.at + turn * cycle.period].at_ns for turn in range(cycle.turns)]
    writes = any(not _only_reads(facts, call.target) for call in first)
    if not writes and min(after - before for before, after in pairwise(begins)) >= _POLLING_NS:
        return
    names = listed((call_name(call) for call in first), _MOST_NAMED, "calls")
    what = (
        f"The same {cycle.period} calls, {names}, were made {cycle.turns} times in a row with the same arguments, "
        f"in {seconds(last.at_ns - first[0].at_ns)}."
    )
    severity = None if writes else Severity.NOTE
    yield hit_in(
        CALLS_IN_CIRCLES,
        calls[cycle.at + cycle.period].request,
        first[0].row,
        what,
        culprit=AGENT,
        severity=severity,
        group=names,
    )

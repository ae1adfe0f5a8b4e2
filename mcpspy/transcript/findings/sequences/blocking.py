"""Findings about servers that answer nothing else while one call runs.

tools/call report      ├──────────────────────── 30 s ────────────────────────┤
ping                             ├─────────────────────────────────────────────┤ answered just after it
tools/call add                             ├────────────────────────────────────┤ and so is this
"""

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from ....records import CLIENT
from ...mcp.methods import PING
from ...model import Exchange
from ..facts import CaptureFacts, ScopeKey, scope_key
from ..rule import Hit, Severity, Unchecked, behaviour_rule, hit_in
from ..transport.stalls import unread_ns
from ..words import call_name, listed, seconds

_WAIT: Final = (
    '· handshake 2025-11-25, server: tools\n→ tools/call 1 {"name":"report"}\n· 1.0 s later\n'
    '→ ping 2\n→ tools/call 3 {"name":"add"}\n'
)

BLOCKED_BY_CALL: Final = behaviour_rule(
    name="blocked-by-call",
    title="One call holds up all others",
    what="While one call ran, the server answered no later request, and then all of them at once.",
    why="A client that pings takes the server for dead, and one slow tool stops every other.",
    blame="The server: it had the requests, and worked on them only when the call before them was done.",
    example=f"{_WAIT}· 5.0 s later\n← result 1\n← result 2\n← result 3",
    clean=f"{_WAIT}← result 2\n← result 3\n· 5.0 s later\n← result 1",
    advice="Run the work of a tool in a task, a thread or a process, so that the server goes on reading; never block the event loop.",
)

RULES: Final = (BLOCKED_BY_CALL,)

_LONG_NS: Final = 500_000_000
"""Shorter waits hurt nobody."""
_BAD_NS: Final = 2_000_000_000
_AFTER_NS: Final = 100_000_000
_FEWEST: Final = 2
_MOST_NAMED: Final = 4
_MAX_WAITING: Final = 1_000
_LIMIT: Final = Unchecked(
    rules=(BLOCKED_BY_CALL.name,), reason=f"calls during which more than {_MAX_WAITING:,} requests came are not looked at"
)


class _LongCall(NamedTuple):
    """A long call, its end, and the requests that came while it ran."""

    call: Exchange
    until_ns: int
    later: list[Exchange]


def find(facts: CaptureFacts) -> Iterator[Hit]:
    """Find calls that others waited for. Most requests begin when no long call runs, and need two comparisons."""
    for run in _long_calls(facts.exchanges):
        yield from _blocked(facts, run.call, run.later)


def _long_calls(exchanges: Iterable[Exchange]) -> list[_LongCall]:
    """Return long calls that others may have waited for: one runs in each scope at a time."""
    over: list[_LongCall] = []
    runs: dict[ScopeKey, _LongCall] = {}
    for exchange in exchanges:
        at_ns, response = exchange.request.at_ns, exchange.response
        is_long = response is not None and response.at_ns - at_ns >= _LONG_NS
        if not (runs or is_long) or exchange.request.sender != CLIENT:
            continue
        transaction = exchange.transaction
        scope = 0 if transaction is None else scope_key(transaction)
        if transaction is not None and not scope:
            continue
        run = runs.get(scope)
        if run is not None and at_ns < run.until_ns:
            if len(run.later) <= _MAX_WAITING:
                run.later.append(exchange)
            continue
        if run is not None:
            over.append(runs.pop(scope))
        if response is not None and is_long:
            runs[scope] = _LongCall(exchange, response.at_ns, [])
    return [*over, *runs.values()]


def _blocked(facts: CaptureFacts, call: Exchange, later: list[Exchange]) -> Iterator[Hit]:
    """Make a finding if all requests that came while a call ran were answered just after it, in their order."""
    assert call.response is not None
    end_ns = call.response.at_ns
    if len(later) > _MAX_WAITING:
        facts.limits[_LIMIT] = None
        return
    if len(later) < _FEWEST:
        return
    answers = [exchange.response.at_ns for exchange in later if exchange.response is not None]
    if len(answers) < len(later) or answers != sorted(answers) or answers[0] < end_ns or answers[-1] - end_ns > _AFTER_NS:
        return
    early = [exchange for exchange in later if _waited_ns(facts, exchange, end_ns) >= _LONG_NS]
    if len(early) < _FEWEST:
        return  # they came just before its end, or their answers waited for the client to read
    waited_ns = _waited_ns(facts, early[0], end_ns)
    names = listed((call_name(exchange) for exchange in later), _MOST_NAMED)
    what = (
        f"While {call_name(call)} ran for {seconds(end_ns - call.at_ns)}, the server answered none of the {len(later)} requests "
        f"after it ({names}), and then all of them within {seconds(max(answers[-1] - end_ns, 1_000_000))}; the first had waited "
        f"{seconds(waited_ns)}."
    )
    has_ping = any(exchange.method == PING for exchange in early)
    severity = None if has_ping or waited_ns >= _BAD_NS else Severity.NOTE
    yield hit_in(BLOCKED_BY_CALL, later[0].request, call.row, what, culprit="server", severity=severity, group=call_name(call))


def _waited_ns(facts: CaptureFacts, exchange: Exchange, end_ns: int) -> int:
    """Return how long a request waited for the server until `end_ns`: not while the client read no answers."""
    return end_ns - exchange.at_ns - unread_ns(facts, exchange, end_ns)

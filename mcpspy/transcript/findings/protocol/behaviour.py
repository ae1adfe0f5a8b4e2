"""Findings about traffic that is allowed, but slow or wasteful: slow calls, repeated calls, tasks polled too often."""

from __future__ import annotations

from array import array
from collections.abc import Hashable, Iterable, Iterator
from itertools import pairwise
from typing import Final

from ....records import CLIENT
from ....wire.json_spans import members
from ...calls.call import Call, CallPart
from ...message import RESULT
from ...model import HTTP_ERRORS, Exchange, Kind, Message, Outcome
from ...outcome import HTTP_REDIRECTS
from ...waiting import request_unread_ns
from ..facts import CaptureFacts, ScopeKey, clients, scope_key
from ..meanwhile import written_words
from ..rule import AGENT, CONFIGURATION, HANDSHAKE, Family, Hit, Rule, Severity, behaviour_rule, hit_in
from ..transport.stalls import unread_ns, was_blocked
from ..words import call_name, seconds
from .repeats import arguments, may_be_repeated

_SEARCHES: Final = HANDSHAKE + "\n".join(
    f'→ tools/call {at} {{"name":"search","arguments":{{"q":{at}}}}}\n← result {at}' for at in range(1, 6)
)
_TASK: Final = (
    '· handshake 2025-11-25, server: tools tasks.requests.tools.call\n→ tools/call 1 {"name":"report","task":{"ttl":60000}}\n'
    '← result 1 {"task":{"taskId":"t1","status":"working","ttl":60000,"pollInterval":1000}}\n'
)

SLOW_CALL: Final = behaviour_rule(
    name="slow-call",
    title="Unusually slow call",
    severity=Severity.NOTE,
    what="A call took more than a second, and more than ten times the median of calls to the same tool.",
    why="The model and its user waited for it.",
    blame="The server: this is the time between the last byte of the request and the last byte of the response.",
    example=f'{_SEARCHES}\n→ tools/call 9 {{"name":"search","arguments":{{"q":9}}}}\n· 4.0 s later\n← result 9',
    clean=f'{_SEARCHES}\n→ tools/call 9 {{"name":"search","arguments":{{"q":9}}}}\n← result 9',
    advice="Compare its arguments with those of other calls, and read what the server logged meanwhile.",
)

SLOW_START: Final = behaviour_rule(
    name="slow-start",
    title="Slow start",
    severity=Severity.NOTE,
    what="The server answered initialize after ten seconds or more.",
    why="Clients wait for 10 to 60 seconds, and then show the server as failed; the next start may be quick, or take too long.",
    blame="The server: this is the time until it answered its first request.",
    example=(
        '→ initialize 0 {"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"client","version":"1"}}\n'
        "! loading the index\n· 12.0 s later\n"
        '← result 0 {"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"server","version":"1"}}'
    ),
    clean="· handshake 2025-11-25",
    advice="Answer initialize first and load the rest later; install the server instead of having npx or uvx fetch it at each start.",
)

REPEATED_CALL: Final = behaviour_rule(
    name="repeated-call",
    title="Same call repeated",
    severity=Severity.NOTE,
    what=(
        "The same tool was called three times or more in a row with the same arguments, and the answers were the same. "
        "From five equal errors on, it is a warning."
    ),
    why="A model that repeats a call did not understand the result or hopes for another one, which costs time and context.",
    blame="The agent: the model behind the client repeated a call that was already answered.",
    example=HANDSHAKE
    + "\n".join(f'→ tools/call {at} {{"name":"read","arguments":{{"path":"/x"}}}}\n← result {at}' for at in range(1, 4)),
    clean=HANDSHAKE
    + "\n".join(
        f'→ tools/call {at} {{"name":"clock","arguments":{{}}}}\n← result {at} {{"content":[{{"type":"text","text":"{at}"}}]}}'
        for at in range(1, 4)
    ),
    advice="Say in the result what the model needs to know next, and in errors what to do instead.",
)

RESENT_CALL: Final = behaviour_rule(
    name="resent-call",
    title="Call sent again while it was running",
    what="A tool was called again with the same arguments a second or more after a call that was still running.",
    why="The server runs both: a ticket is made twice, a payment is paid twice.",
    blame="The client: it neither waited for the first call nor cancelled it.",
    example=(
        f'{HANDSHAKE}→ tools/call 1 {{"name":"pay","arguments":{{"to":"x"}}}}\n· 2.0 s later\n'
        '→ tools/call 2 {"name":"pay","arguments":{"to":"x"}}\n'
        "· 1.0 s later\n← result 1\n· 2.0 s later\n← result 2"
    ),
    clean=(
        f'{HANDSHAKE}→ tools/call 1 {{"name":"pay","arguments":{{"to":"x"}}}}\n'
        '→ tools/call 2 {"name":"pay","arguments":{"to":"x"}}\n'
        "← result 1\n← result 2"
    ),
    advice="Wait longer, or cancel the first call and look at what it did before you try again.",
)

POLLING_STORM: Final = Rule(
    name="polling-storm",
    title="Task polled too often",
    family=Family.BEHAVIOUR,
    severity=Severity.WARNING,
    what="A task was polled ten times or more at intervals shorter than half of its pollInterval.",
    why="Each poll costs the server time, and the task does not finish sooner.",
    blame="The client: the server gave the interval with the task.",
    example=_TASK + "\n".join(
        f'→ tasks/get {at} {{"taskId":"t1"}}\n← result {at} {{"taskId":"t1","status":"working","ttl":60000}}' for at in range(2, 14)
    ),
    clean=_TASK + "\n".join(
        f'· 1.0 s later\n→ tasks/get {at} {{"taskId":"t1"}}\n← result {at} {{"taskId":"t1","status":"working","ttl":60000}}'
        for at in range(2, 5)
    ),
    advice="Wait pollInterval milliseconds between two polls, or call tasks/result, which waits for the result.",
)  # fmt: skip

RULES: Final = (SLOW_CALL, SLOW_START, REPEATED_CALL, POLLING_STORM, RESENT_CALL)

_LONG_START_NS: Final = 10_000_000_000
_LAUNCHERS: Final = ("npx", "uvx", "bunx", "pipx", "docker", "podman", "npm", "pnpm", "yarn")
_SAMPLES: Final = 5
_TIMES_SLOWER: Final = 10
_SLOW_NS: Final = 1_000_000_000
_REPEATS: Final = 3
_FEWEST: Final = 2
_EQUAL_ERRORS: Final = 5
"""A call that failed so often in the same way is a loop and no retry."""
_POLLS: Final = 10


def find(facts: CaptureFacts) -> Iterator[Hit]:
    """Find slow calls, runs of equal calls, and tasks that are polled too often."""
    yield from _slow(facts)
    yield from _slow_start(facts)
    yield from _Repetitions(facts).hits()
    for before, exchange in _resent(facts.calls):
        request = exchange.request
        if may_be_repeated(facts, exchange.target):
            continue
        if exchange.transaction is None and was_blocked(facts, request.stream, before.at_ns, exchange.at_ns):
            continue  # it may have been sent together with the other
        waited = seconds(exchange.at_ns - before.at_ns)
        what = f"{call_name(exchange)} was sent again {waited} after row {before.row}, which was still running."
        yield hit_in(RESENT_CALL, request, exchange.row, what, group=exchange.target or "")
    for call in facts.joined_calls:
        yield from _polled(call)


def _slow_start(facts: CaptureFacts) -> Iterator[Hit]:
    """Find a first initialize on stdio that was answered late."""
    for exchange in facts.initializes[:1]:
        response = exchange.response
        if response is None or exchange.transaction is not None or exchange.given_up_ns is not None:
            continue
        took_ns, waited_ns = response.at_ns - exchange.at_ns, facts.start_waited_ns
        if took_ns - waited_ns < _LONG_START_NS or unread_ns(facts, exchange, response.at_ns) > _SLOW_NS:
            continue
        launcher = _launcher(facts)
        queued = f", {seconds(waited_ns)} of which it waited for a processor of a busy machine" if waited_ns else ""
        what = f"The server answered initialize after {seconds(took_ns)}{queued}.{written_words(facts, response.at_ns - 1)}"
        blame = f"{SLOW_START.blame} On a busy machine every start takes longer."
        if launcher:
            blame = f"The configuration of the server: {launcher} fetches the program before it starts it."
        yield hit_in(SLOW_START, response, exchange.row, what, culprit=CONFIGURATION if launcher else "server", blame=blame)


def _launcher(facts: CaptureFacts) -> str:
    """Name the program of the server's command if it fetches servers; empty if it does not."""
    header = facts.capture.header
    argv = header.tapped.get("argv") if header is not None else None
    name = str(argv[0]).rpartition("/")[2] if isinstance(argv, list) and argv else ""
    return name if name in _LAUNCHERS else ""


def _durations(calls: Iterable[Exchange]) -> dict[str | None, array[int]]:
    """Return the durations of the calls of each tool that ended in a result."""
    by_tool: dict[str | None, array[int]] = {}
    for call in calls:
        request, response = call.request, call.response
        if response is not None and _has_result(call, response):
            times = by_tool.get(request.target)
            if times is None:
                times = by_tool[request.target] = array("q")
            times.append(response.at_ns - request.at_ns)
    return by_tool


def _slow(facts: CaptureFacts) -> Iterator[Hit]:
    durations = _durations(facts.calls)
    usual_ns: dict[str | None, float] = {}
    for tool, times in durations.items():
        if (longest_ns := max(times)) <= _SLOW_NS:
            continue
        if len(times) > _SAMPLES:
            from statistics import median  # 6 ms with what it imports, and hardly any capture has so many calls of a tool

            usual_ns[tool] = median(times)
            if longest_ns <= _TIMES_SLOWER * usual_ns[tool]:
                del usual_ns[tool]
    for exchange in facts.calls if usual_ns else ():
        request, response = exchange.request, exchange.response
        if request.target not in usual_ns or response is None or not _has_result(exchange, response):
            continue
        tool_ns, took_ns = usual_ns[request.target], response.at_ns - request.at_ns
        if took_ns <= _SLOW_NS:
            continue
        own_ns = took_ns - unread_ns(facts, exchange, exchange.at_ns + took_ns) - request_unread_ns(exchange, facts.capture)
        if own_ns > _SLOW_NS and own_ns > _TIMES_SLOWER * tool_ns:
            count = len(durations[request.target])
            what = f"{call_name(exchange)} took {seconds(took_ns)}; the median of {count} calls is {tool_ns / 1e6:.0f} ms."
            yield hit_in(SLOW_CALL, response, exchange.row, what, group=exchange.target or "")


def _has_result(exchange: Exchange, response: Message) -> bool:
    """Return whether a call ended in a result; the outcome of most need not be asked for."""
    if exchange.cancelled is None and not exchange.is_probe:
        return response.kind is RESULT
    return exchange.outcome in (Outcome.OK, Outcome.TOOL_ERROR)


class _Repetitions:
    """Runs of equal calls by one client. Over HTTP a capture may have several clients, each with runs of its own."""

    def __init__(self, facts: CaptureFacts) -> None:
        self._clients = clients(facts)
        self._runs: dict[Hashable, _Run] = {}
        self._hits: list[Hit] = []
        self._feed(facts.calls)

    def _feed(self, exchanges: Iterable[Exchange]) -> None:
        runs = self._runs
        for exchange in exchanges:
            request = exchange.request
            if request.sender != CLIENT:
                continue
            who = self._clients.key(exchange.transaction)
            run, tail = runs.get(who), request.raw[request.raw.find(_ARGUMENTS) :]
            if run is not None:
                before = run.last
                is_again = before.request.target == request.target and _is_again(before, run.tail, exchange, tail)
                if is_again and _is_answered_alike(before, exchange):
                    run.add(exchange, tail)
                    continue
                if run.second is not None:
                    self._hits += _repetition(run)
            runs[who] = _Run(exchange, tail)

    def hits(self) -> Iterator[Hit]:
        """Yield the findings about runs that are over, and about those that are not."""
        yield from self._hits
        for run in self._runs.values():
            yield from _repetition(run)


def _repetition(run: _Run) -> Iterator[Hit]:
    if run.count >= _REPEATS and run.second is not None:
        has_failed = run.first.outcome in (Outcome.TOOL_ERROR, Outcome.ERROR)
        answer = "error" if has_failed else "answer"
        what = f"{call_name(run.first)} was sent {run.count} times in a row with the same arguments, and got the same {answer}."
        severity = Severity.WARNING if has_failed and run.count >= _EQUAL_ERRORS else None
        yield hit_in(
            REPEATED_CALL,
            run.second.request,
            run.second.row,
            what,
            culprit=AGENT,
            severity=severity,
            group=run.first.target or "",
        )


class _Run:
    """A run of equal calls so far."""

    __slots__ = ("count", "first", "last", "second", "tail")

    def __init__(self, first: Exchange, tail: bytes) -> None:
        self.first = self.last = first
        self.second: Exchange | None = None
        self.count = 1
        self.tail = tail
        """The payload of the last request from its arguments on."""

    def add(self, exchange: Exchange, tail: bytes) -> None:
        self.second = self.second or exchange
        self.last, self.tail = exchange, tail
        self.count += 1


def _resent(calls: Iterable[Exchange]) -> Iterator[tuple[Exchange, Exchange]]:
    """Yield calls that one client made while an equal one was running, each after that."""
    last: dict[tuple[ScopeKey, str | None], Exchange] = {}
    for call in calls:
        request, transaction = call.request, call.transaction
        if request.sender != CLIENT:
            continue
        scope = 0 if transaction is None else scope_key(transaction)
        if transaction is not None and not scope:
            continue  # without a session nobody knows whether two requests are of one client
        key = scope, request.target
        before = last.get(key)
        last[key] = call
        if before is None or request.at_ns - before.request.at_ns < _RETRY_NS or not _runs_at(before, request.at_ns):
            continue
        if arguments(before.request.raw) == arguments(request.raw):
            yield before, call


def _runs_at(exchange: Exchange, at_ns: int) -> bool:
    """Return whether a request was neither answered nor refused nor given up at a time."""
    carrier = exchange.transaction
    if carrier is not None and carrier.status >= HTTP_REDIRECTS and carrier.ended_ns is not None and carrier.ended_ns <= at_ns:
        return False
    return exchange.given_up_ns is None and (exchange.response is None or exchange.response.at_ns > at_ns)


def _is_again(before: Exchange, first_tail: bytes, exchange: Exchange, second_tail: bytes) -> bool:
    response = before.response
    if response is None or response.at_ns > exchange.request.at_ns or response.result_type is not None:
        return False
    if first_tail == second_tail:
        return True
    first, second = before.request.raw, exchange.request.raw
    return abs(len(first) - len(second)) <= _ID_DIGITS and b'"id"' in first_tail and arguments(first) == arguments(second)


def _is_answered_alike(before: Exchange, exchange: Exchange) -> bool:
    """Tell whether two calls brought the same answer, byte for byte but for the ids. No tool saw a call that HTTP refused."""
    first, second = before.response, exchange.response
    if first is None or second is None or first.kind is not second.kind:
        return False
    if exchange.transaction is not None and exchange.transaction.status >= HTTP_ERRORS:
        return False
    if first.unkept_bytes or second.unkept_bytes or abs(first.size - second.size) > _ID_DIGITS:
        return False
    member = "result" if first.kind is Kind.RESULT else "error"
    return bytes(members(first.raw).get(member, b"")) == bytes(members(second.raw).get(member, b""))


_RETRY_NS: Final = 1_000_000_000
"""Equal calls that begin closer together were meant to run side by side."""

_ARGUMENTS: Final = b'"arguments"'
_ID_DIGITS: Final = 40
"""Number of bytes by which equal calls may differ: the lengths of their ids and progress tokens."""


def _polled(call: Call) -> Iterator[Hit]:
    interval_ms = None if call.task is None else call.task.poll_interval_ms
    if not interval_ms or len(call.polls) < _POLLS:
        return
    polls = [exchange for exchange in call.exchanges if call.part(exchange) is CallPart.POLL]
    hasty = [later for sooner, later in pairwise(polls) if later.at_ns - sooner.at_ns < interval_ms * 500_000]
    if len(hasty) >= _POLLS:
        took = seconds(polls[-1].at_ns - polls[0].at_ns)
        what = f"The task of {call_name(call.first)} was polled {len(polls)} times in {took}; its pollInterval is {interval_ms} ms."
        yield hit_in(POLLING_STORM, hasty[0].request, hasty[0].row, what)

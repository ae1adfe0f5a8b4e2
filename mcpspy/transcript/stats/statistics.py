"""A transcript in numbers: per server what was called, how often, how long it took, what failed, and how much of it there was.

Percentiles are exact, by nearest rank: of n durations in order, the p-th is that at rank ⌈p·n/100⌉, one that was measured and none
in between. Refuses to estimate anything but tokens (`cost`), and to judge.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ...records import CLIENT, SERVER
from ...wire.json_spans import members
from ..model import CaptureInfo, Exchange, Kind, Log, Message, Outcome, Row, Transcript, UnpairedMessage
from ..phases import Lifecycle
from .cost import ServerCost, costs
from .http import HttpNumbers, http_numbers
from .outcomes import joined

if TYPE_CHECKING:
    from ...records import Side
    from ..calls.call import Call

BY_TARGET: Final = {"tools/call", "prompts/get"}
"""Methods that are counted by what they are about as well: there are as many tools as a server has, but URIs without end."""


WELL: Final = frozenset((Outcome.OK, Outcome.PENDING, Outcome.PROBE))
"""The outcomes of requests that have not failed: a client that asks to find out is often refused."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    """How long `count` things took, in nanoseconds."""

    count: int
    min_ns: int
    p50_ns: int
    p90_ns: int
    p99_ns: int
    max_ns: int


def latency(durations_ns: Iterable[int]) -> Latency | None:
    """What so many durations come to; None where there are none."""
    ordered = sorted(durations_ns)
    if not ordered:
        return None
    p50_ns, p90_ns, p99_ns = (nearest_rank(ordered, percent) for percent in (50, 90, 99))
    return Latency(count=len(ordered), min_ns=ordered[0], p50_ns=p50_ns, p90_ns=p90_ns, p99_ns=p99_ns, max_ns=ordered[-1])


def nearest_rank(ordered: list[int], percent: int) -> int:
    """The percentile of numbers that are in order, of which there is one at least."""
    return ordered[max(-(-percent * len(ordered) // 100), 1) - 1]


@dataclass(frozen=True, slots=True, kw_only=True)
class CallNumbers:
    """What became of the calls of one method, or of those about one target; `parts` are the former by target.

    A call may take several exchanges: rounds with the input that was required, a task. `count`, `outcomes` and `latency` are of
    calls, the latency of those that were answered; `wire` is that of the exchanges, None where each was a call. `codes` counts
    JSON-RPC errors by their code. Bytes are those of payloads, notifications apart. `tokens` are of results, None where they are not
    what a model reads.
    """

    method: str
    target: str | None
    count: int
    outcomes: dict[Outcome, int]
    codes: dict[str, int]
    latency: Latency | None
    exchanges: int
    wire: Latency | None
    request_bytes: int
    response_bytes: int
    progress: int
    repeated: int
    """Answers after the first."""
    tokens: int | None = None
    parts: tuple[CallNumbers, ...] = ()

    @property
    def failed(self) -> int:
        """How many ended otherwise than they should; those that are open are not among them."""
        return sum(count for outcome, count in self.outcomes.items() if outcome not in WELL)

    @property
    def open(self) -> int:
        """How many still wait for their answer."""
        return self.outcomes.get(Outcome.PENDING, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class NotificationNumbers:
    """The notifications of one method from one side."""

    sender: Side
    method: str
    count: int
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientNumbers:
    """One client of a server: its own requests, and how many of them failed."""

    name: str
    calls: int
    failed: int
    latency: Latency | None


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class ServerNumbers:
    """One capture in numbers. `calls` are the client's requests, `requests` those of the server; both sorted by method.

    `http` is what HTTP carried, None on stdio; `lifecycle` says how a server came up that a tap started, and its phases. `sent_bytes`
    are the payloads by their sender. `unmatched` counts answers that nobody asked for, `malformed` payloads that are no message,
    `log_lines` and `log_bytes` what came on stderr.
    """

    capture_info: CaptureInfo
    cost: ServerCost
    http: HttpNumbers | None
    lifecycle: Lifecycle
    calls: list[CallNumbers]
    requests: list[CallNumbers]
    notifications: list[NotificationNumbers]
    clients: list[ClientNumbers]
    messages: int
    sent_bytes: dict[Side, int]
    unmatched: int
    malformed: int
    log_lines: int
    log_bytes: int


def numbers(transcript: Transcript, rows: list[Row] | None = None) -> list[ServerNumbers]:
    """One for each capture, in its order; `rows` are those to be counted, all where that is None."""
    chosen = transcript.rows if rows is None else rows
    counted = transcript if rows is None else Transcript(captures=transcript.captures, rows=rows)
    counters = [_Counter(source) for source in transcript.captures]
    for row in chosen:
        counters[row.capture].feed(row)
    return [one.close(cost) for one, cost in zip(counters, costs(counted), strict=True)]


class _Group:
    """Requests of one kind on their way to `CallNumbers`."""

    __slots__ = (
        "codes", "durations_ns", "exchanges", "is_joined", "outcomes", "progress", "repeated", "request_bytes", "response_bytes",
        "wire_ns",
    )  # fmt: skip

    def __init__(self) -> None:
        self.durations_ns: list[int] = []
        self.wire_ns: list[int] = []
        self.exchanges = 0
        self.is_joined = False
        """Whether one of the calls took more than one exchange."""
        self.outcomes: Counter[Outcome] = Counter()
        self.codes: Counter[str] = Counter()
        self.request_bytes = self.response_bytes = self.progress = self.repeated = 0

    def feed(self, row: Exchange, call: Call | None) -> None:
        """Take in an exchange; `call` is the one that it is a part of, if that took more than it."""
        response = row.response
        self.exchanges += 1
        self.request_bytes += row.request.size
        if row.notifications:
            self.progress += row.progress
        if response is not None:
            self.wire_ns.append(response.at_ns - row.request.at_ns)
            self.response_bytes += response.size
            if response.kind is Kind.ERROR and row.outcome is Outcome.ERROR:  # no probe, and nothing that had been given up
                self.codes[_code(response)] += 1
        if row.more_responses:
            self.repeated += len(row.more_responses)
            self.response_bytes += sum(one.size for one in row.more_responses)
        if call is None:
            self.outcomes[row.outcome] += 1
            if response is not None:
                self.durations_ns.append(self.wire_ns[-1])
        else:
            self._join(row, call)

    def _join(self, row: Exchange, call: Call) -> None:
        """A call counts once, where its first round does."""
        self.is_joined = True
        if call.rounds[0] is not row:
            return
        self.outcomes[call.outcome] += 1
        took_ns = call.duration_ns
        if took_ns is not None and call.outcome is not Outcome.CANCELLED:
            self.durations_ns.append(took_ns)

    def add(self, other: _Group) -> None:
        """Take in what another has counted."""
        self.durations_ns += other.durations_ns
        self.wire_ns += other.wire_ns
        self.exchanges += other.exchanges
        self.is_joined |= other.is_joined
        self.outcomes += other.outcomes
        self.codes += other.codes
        self.request_bytes += other.request_bytes
        self.response_bytes += other.response_bytes
        self.progress += other.progress
        self.repeated += other.repeated

    def close(self, method: str, target: str | None, tokens: int | None, parts: tuple[CallNumbers, ...] = ()) -> CallNumbers:
        return CallNumbers(
            method=method,
            target=target,
            count=self.outcomes.total(),
            outcomes=dict(self.outcomes),
            codes=dict(self.codes),
            latency=latency(self.durations_ns),
            exchanges=self.exchanges,
            wire=latency(self.wire_ns) if self.is_joined else None,
            request_bytes=self.request_bytes,
            response_bytes=self.response_bytes,
            progress=self.progress,
            repeated=self.repeated,
            tokens=tokens,
            parts=parts,
        )


class _Counter:
    """One capture on its way to its numbers. `feed` takes its rows, `close` gives what they come to."""

    __slots__ = (
        "_by_client",
        "_calls_by_row",
        "_course",
        "_groups",
        "_logs",
        "_malformed",
        "_messages",
        "_seen",
        "_sent",
        "_source",
        "_told",
        "_unmatched",
    )

    def __init__(self, source: CaptureInfo) -> None:
        self._source = source
        self._course = Lifecycle(source)
        self._calls_by_row = source.calls
        self._groups: defaultdict[tuple[Side, str, str | None], _Group] = defaultdict(_Group)
        self._by_client: defaultdict[str, _Group] = defaultdict(_Group)
        self._told: defaultdict[tuple[Side, str], list[int]] = defaultdict(list)
        self._logs: list[int] = []
        self._sent: dict[Side, int] = {CLIENT: 0, SERVER: 0}
        self._seen: set[int] = set()
        self._messages = self._unmatched = self._malformed = 0

    def feed(self, row: Row) -> None:
        self._course.feed(row)
        if isinstance(row, Exchange):
            self._exchange(row)
        elif isinstance(row, UnpairedMessage):
            self._unpaired(row.message)
        elif isinstance(row, Log):
            self._logs.append(len(row.raw))

    def close(self, cost: ServerCost) -> ServerNumbers:
        source, tokens = self._source, {one.name: one.result_tokens for one in cost.tools}
        return ServerNumbers(
            capture_info=source,
            cost=cost,
            http=http_numbers(source) if source.transactions else None,
            lifecycle=self._course,
            calls=self._calls(CLIENT, tokens),
            requests=self._calls(SERVER, {}),
            notifications=[
                NotificationNumbers(sender=sender, method=method, count=len(sizes), bytes=sum(sizes))
                for (sender, method), sizes in sorted(self._told.items())
            ],
            clients=[_client(name, group) for name, group in self._by_client.items()],
            messages=self._messages,
            sent_bytes=self._sent,
            unmatched=self._unmatched,
            malformed=self._malformed,
            log_lines=len(self._logs),
            log_bytes=sum(self._logs),
        )

    def _exchange(self, row: Exchange) -> None:
        request, response = row.request, row.response
        method = request.method or ""
        call = joined(self._calls_by_row.get(row.row), row)
        self._groups[request.sender, method, request.target if method in BY_TARGET else None].feed(row, call)
        if request.sender == CLIENT:
            self._by_client[self._source.client_of(row)].feed(row, call)
        self._count(request)
        if response is not None and not (row.transaction is not None and self._is_known(response)):
            self._count(response)
        for one in row.more_responses:
            self._count(one)
        for one in row.notifications:
            self._notification(one)

    def _unpaired(self, message: Message) -> None:
        if message.kind is Kind.NOTIFICATION:
            self._notification(message)
            return
        self._count(message)
        if message.kind is Kind.MALFORMED:
            self._malformed += 1
        else:
            self._unmatched += 1

    def _notification(self, message: Message) -> None:
        self._count(message)
        self._told[message.sender, message.method or ""].append(message.size)

    def _count(self, message: Message) -> None:
        self._messages += 1
        self._sent[message.sender] += message.size

    def _is_known(self, response: Message) -> bool:
        """Whether it was counted: over HTTP one error may answer all that a transaction asked."""
        known = id(response) in self._seen
        self._seen.add(id(response))
        return known

    def _calls(self, side: Side, tokens: dict[str, int]) -> list[CallNumbers]:
        """The requests of one side by method, and where they are counted by target, these within."""
        methods: defaultdict[str, dict[str | None, _Group]] = defaultdict(dict)
        for (sender, method, target), group in self._groups.items():
            if sender == side:
                methods[method][target] = group
        return [_of_method(method, methods[method], tokens if method == "tools/call" else {}) for method in sorted(methods)]


def _of_method(method: str, groups: dict[str | None, _Group], tokens: dict[str, int]) -> CallNumbers:
    if method not in BY_TARGET:
        return groups[None].close(method, None, None)
    whole = _Group()
    for group in groups.values():
        whole.add(group)
    parts = [group.close(method, target or "", tokens.get(target or "")) for target, group in groups.items()]
    parts.sort(key=lambda one: (-one.count, one.target or ""))
    known = [one.tokens for one in parts if one.tokens is not None]
    return whole.close(method, None, sum(known) if known else None, tuple(parts))


def _client(name: str, group: _Group) -> ClientNumbers:
    calls = group.close("", None, None)
    return ClientNumbers(name=name, calls=calls.count, failed=calls.failed, latency=calls.latency)


def _code(response: Message) -> str:
    """The code of an error, as it was spelled; empty where it has none."""
    found = members(members(response.raw).get("error", b"")).get("code", b"")
    return bytes(found).decode("utf-8", "replace")

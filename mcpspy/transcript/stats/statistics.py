"""A transcript to numbers: for each server its calls, their number, their durations, their failures and their sizes.

Percentiles are exact, by nearest rank: of n durations in order, the p-th percentile is the one at rank ⌈p·n/100⌉, so always a
duration that was measured. Only tokens are estimated (`cost`). HTTP has numbers of its own: methods, statuses, connections,
sessions, streams of events. The sums of several servers say what an agent did and paid with all of them together.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from ...records import CLIENT, SERVER, Side
from ..calls.call import Call
from ..exchange import ForwardedCall, shared_answer
from ..mcp.fields import code_of
from ..model import CaptureInfo, Exchange, Kind, Log, Message, Outcome, Row, Transcript, UnpairedMessage
from ..phases import Lifecycle, lifecycles
from ..waiting import unread_ns
from .context import ServerCost, costs
from .outcomes import measured_call

BY_TARGET: Final = {"tools/call", "prompts/get"}
"""Methods that are counted by target as well: a server has some tools and prompts, but any number of URIs."""


WELL: Final = frozenset((Outcome.OK, Outcome.PENDING, Outcome.PROBE, Outcome.UNKNOWN))
"""The outcomes that are no failures, as far as anybody knows: a probe is often refused."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    """The distribution of `count` durations, in nanoseconds."""

    count: int
    min_ns: int
    p50_ns: int
    p90_ns: int
    p99_ns: int
    max_ns: int


def latency(durations_ns: Iterable[int]) -> Latency | None:
    """Return the distribution of durations; None if there are none, as in a capture of a log without times."""
    ordered = sorted(filter(None, durations_ns))
    if not ordered:
        return None
    p50_ns, p90_ns, p99_ns = (nearest_rank(ordered, percent) for percent in (50, 90, 99))
    return Latency(count=len(ordered), min_ns=ordered[0], p50_ns=p50_ns, p90_ns=p90_ns, p99_ns=p99_ns, max_ns=ordered[-1])


def nearest_rank(ordered: list[int], percent: int) -> int:
    """Return a percentile of numbers in order, of which there is at least one."""
    return ordered[max(-(-percent * len(ordered) // 100), 1) - 1]


@dataclass(eq=False, kw_only=True)
class CallNumbers:
    """The calls of one method, or of one target of a method, in numbers; `by_target` has the numbers of a method's targets.

    A call may take several exchanges: rounds with required input, a task. `count`, `outcomes` and `latency` are those of calls,
    `latency` of answered ones, without the time for which a request or its answer waited to be read; `exchange_latency` is that of
    exchanges, None if each call was one exchange. `codes` counts JSON-RPC errors by their code. Bytes are those of payloads,
    without notifications. `tokens` are those of results; None if no model reads them.
    """

    method: str
    target: str | None = None
    outcomes: Counter[Outcome] = field(default_factory=Counter)
    codes: Counter[str] = field(default_factory=Counter)
    durations_ns: list[int] = field(default_factory=list)
    wire_ns: list[int] = field(default_factory=list)
    """The durations of exchanges."""
    is_joined: bool = False
    """True if a call took more than one exchange."""
    exchanges: int = 0
    request_bytes: int = 0
    response_bytes: int = 0
    progress: int = 0
    more_responses: int = 0
    """The number of answers after the first."""
    tokens: int | None = None
    by_target: tuple[CallNumbers, ...] = ()

    @property
    def count(self) -> int:
        """The number of calls."""
        return self.outcomes.total()

    @cached_property
    def latency(self) -> Latency | None:
        """The distribution of the calls' durations."""
        return latency(self.durations_ns)

    @cached_property
    def exchange_latency(self) -> Latency | None:
        """The distribution of the exchanges' durations; None if each call was one exchange."""
        return latency(self.wire_ns) if self.is_joined else None

    @property
    def failed(self) -> int:
        """The number of calls that failed; pending ones have not."""
        return sum(count for outcome, count in self.outcomes.items() if outcome not in WELL)

    @property
    def pending(self) -> int:
        """The number of calls that wait for their answer."""
        return self.outcomes.get(Outcome.PENDING, 0)

    def feed(self, row: Exchange, call: Call | None, unread_ns: int) -> None:
        """Take in an exchange; `call` is its call, if that has other exchanges. It waited for a reader for `unread_ns`."""
        response = row.response
        self.exchanges += 1
        self.request_bytes += row.request.size
        if row.notifications:
            self.progress += row.progress
        if response is not None:
            self.wire_ns.append(response.at_ns - row.request.at_ns - unread_ns)
            self.response_bytes += response.size
            if response.kind is Kind.ERROR and row.outcome is Outcome.ERROR:  # not a probe, and not cancelled before
                self.codes[code_of(response)] += 1
        if row.more_responses:
            self.more_responses += len(row.more_responses)
            self.response_bytes += sum(message.size for message in row.more_responses)
        if call is None:
            self.outcomes[row.outcome] += 1
            if response is not None:
                self.durations_ns.append(self.wire_ns[-1])
        else:
            self._join(row, call)

    def _join(self, row: Exchange, call: Call) -> None:
        """Count a call once, with its first round."""
        self.is_joined = True
        if call.rounds[0] is not row:
            return
        self.outcomes[call.outcome] += 1
        took_ns = call.duration_ns
        if took_ns is not None and call.outcome is not Outcome.CANCELLED:
            self.durations_ns.append(took_ns)

    def add(self, other: CallNumbers) -> None:
        """Add the numbers of other calls."""
        self.durations_ns += other.durations_ns
        self.wire_ns += other.wire_ns
        self.exchanges += other.exchanges
        self.is_joined |= other.is_joined
        self.outcomes += other.outcomes
        self.codes += other.codes
        self.request_bytes += other.request_bytes
        self.response_bytes += other.response_bytes
        self.progress += other.progress
        self.more_responses += other.more_responses


@dataclass(frozen=True, slots=True, kw_only=True)
class NotificationNumbers:
    """The notifications of one method from one side, in numbers."""

    sender: Side
    method: str
    count: int
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientNumbers:
    """One client of a server in numbers: the calls that it made, and those that failed."""

    name: str
    calls: int
    failed: int
    latency: Latency | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ForwardedNumbers:
    """The calls that a `gateway` made for others: how many, how long the server took, and how long the gateway."""

    gateway: str
    calls: int
    server: Latency | None
    in_gateway: Latency | None


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class ServerNumbers:
    """One capture in numbers. `calls` are the client's calls, `requests` those of the server; both sorted by method.

    `http` is None on stdio; `lifecycle` is empty for a server that no tap started. `sent_bytes` are the sizes of payloads by
    their sender. `unmatched` counts answers to no request, `malformed` payloads that are not messages; `log_lines` and `log_bytes`
    are stderr.
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
    forwarded: ForwardedNumbers | None = None
    """The calls that came through a gateway whose other side was tapped too. They are counted there, and not in `calls`."""


def numbers(transcript: Transcript, rows: list[Row] | None = None) -> list[ServerNumbers]:
    """Return the numbers of each capture, in its order. `rows` are the rows to count; None: all."""
    counted = transcript if rows is None else Transcript(captures=transcript.captures, rows=rows)
    known = lifecycles(transcript) if rows is None else [None] * len(transcript.captures)
    counters = [_CaptureCounter(info, lifecycle) for info, lifecycle in zip(transcript.captures, known, strict=True)]
    hops = transcript.hops
    for row in counted.rows:
        call = hops.get(row.row) if hops and isinstance(row, Exchange) else None
        counters[row.capture].feed(row, None if call is None or call.outer is row else call)
    return [counter.close(cost, transcript.captures) for counter, cost in zip(counters, costs(counted), strict=True)]


class _CaptureCounter:
    """The numbers of one capture, so far: `feed` takes its rows, `close` returns them. `lifecycle` is that of all rows, if known."""

    __slots__ = (
        "_by_client",
        "_by_target",
        "_calls_by_row",
        "_counted",
        "_forwarded",
        "_info",
        "_knows_lifecycle",
        "_lifecycle",
        "_logs",
        "_malformed",
        "_messages",
        "_notifications",
        "_sent",
        "_unmatched",
    )

    def __init__(self, info: CaptureInfo, lifecycle: Lifecycle | None) -> None:
        self._info = info
        self._knows_lifecycle = lifecycle is not None
        self._lifecycle = Lifecycle(info) if lifecycle is None else lifecycle
        self._calls_by_row = info.calls
        self._by_target: dict[tuple[Side, str, str | None], CallNumbers] = {}
        self._by_client: dict[str, CallNumbers] = {}
        self._notifications: defaultdict[tuple[Side, str], list[int]] = defaultdict(list)
        self._forwarded: dict[int, ForwardedCall] = {}
        self._logs: list[int] = []
        self._sent: dict[Side, int] = {CLIENT: 0, SERVER: 0}
        self._counted: set[Hashable] = set()
        self._messages = self._unmatched = self._malformed = 0

    def feed(self, row: Row, forwarded: ForwardedCall | None) -> None:
        if not self._knows_lifecycle:
            self._lifecycle.feed(row)
        if isinstance(row, Exchange):
            if forwarded is None:
                self._call(row)
            else:
                self._forwarded[forwarded.outer.row] = forwarded
            self._exchange(row)
        elif isinstance(row, UnpairedMessage):
            self._unpaired(row.message)
        elif isinstance(row, Log):
            self._logs.append(len(row.raw))

    def close(self, cost: ServerCost, captures: list[CaptureInfo]) -> ServerNumbers:
        info, tokens = self._info, {tool.name: tool.result_tokens for tool in cost.tools}
        return ServerNumbers(
            capture_info=info,
            cost=cost,
            http=_http_numbers(info) if info.transactions else None,
            lifecycle=self._lifecycle,
            calls=self._calls(CLIENT, tokens),
            requests=self._calls(SERVER, {}),
            notifications=[
                NotificationNumbers(sender=sender, method=method, count=len(sizes), bytes=sum(sizes))
                for (sender, method), sizes in sorted(self._notifications.items())
            ],
            clients=[
                ClientNumbers(name=name, calls=calls.count, failed=calls.failed, latency=calls.latency)
                for name, calls in self._by_client.items()
            ],
            messages=self._messages,
            sent_bytes=self._sent,
            unmatched=self._unmatched,
            malformed=self._malformed,
            log_lines=len(self._logs),
            log_bytes=sum(self._logs),
            forwarded=self._forwarded_numbers(captures),
        )

    def _forwarded_numbers(self, captures: list[CaptureInfo]) -> ForwardedNumbers | None:
        calls = list(self._forwarded.values())
        if not calls:
            return None
        return ForwardedNumbers(
            gateway=captures[calls[0].outer.capture].server,
            calls=len(calls),
            server=latency(call.server_ns for call in calls if call.server_ns is not None),
            in_gateway=latency(call.gateway_ns for call in calls if call.gateway_ns is not None),
        )

    def _call(self, row: Exchange) -> None:
        request = row.request
        method = request.method or ""
        call = measured_call(self._calls_by_row.get(row.row), row)
        target = request.target if method in BY_TARGET else None
        by_target = self._by_target.get((request.sender, method, target))
        if by_target is None:
            by_target = self._by_target[request.sender, method, target] = CallNumbers(method=method, target=target)
        waited_ns = unread_ns(row, self._info)
        by_target.feed(row, call, waited_ns)
        if request.sender == CLIENT:
            client = self._info.client_of(row)
            by_client = self._by_client.get(client)
            if by_client is None:
                by_client = self._by_client[client] = CallNumbers(method="")
            by_client.feed(row, call, waited_ns)

    def _exchange(self, row: Exchange) -> None:
        request, response = row.request, row.response
        self._count(request)
        if response is not None and not self._was_counted(row):
            self._count(response)
        for message in row.more_responses:
            self._count(message)
        for message in row.notifications:
            self._notification(message)

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
        self._notifications[message.sender, message.method or ""].append(message.size)

    def _count(self, message: Message) -> None:
        self._messages += 1
        self._sent[message.sender] += message.size

    def _was_counted(self, row: Exchange) -> bool:
        """Return whether an answer was counted before, with another request that it answers."""
        answer = shared_answer(row)
        if answer is None or answer in self._counted:
            return answer is not None
        self._counted.add(answer)
        return False

    def _calls(self, side: Side, tokens: dict[str, int]) -> list[CallNumbers]:
        """Return the calls of one side by method, some of them with numbers by target."""
        methods: defaultdict[str, dict[str | None, CallNumbers]] = defaultdict(dict)
        for (sender, method, target), calls in self._by_target.items():
            if sender == side:
                methods[method][target] = calls
        return [_of_method(method, methods[method], tokens if method == "tools/call" else {}) for method in sorted(methods)]


def _of_method(method: str, by_target: dict[str | None, CallNumbers], tokens: dict[str, int]) -> CallNumbers:
    if method not in BY_TARGET:
        return by_target[None]
    total = CallNumbers(method=method)
    for calls in by_target.values():
        calls.target = calls.target or ""
        calls.tokens = tokens.get(calls.target)
        total.add(calls)
    total.by_target = tuple(sorted(by_target.values(), key=lambda calls: (-calls.count, calls.target or "")))
    known = [calls.tokens for calls in total.by_target if calls.tokens is not None]
    total.tokens = sum(known) if known else None
    return total


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpNumbers:
    """The HTTP of one capture in numbers.

    `methods` and `statuses` count transactions; those without a response have the status 0. `streams` counts responses that are
    streams of events, `open_streams` those that have not ended. `events` counts events with data, `keep_alives` comments. Bytes
    are those of bodies.
    """

    transactions: int
    connections: int
    sessions: int
    methods: dict[str, int]
    statuses: dict[int, int]
    streams: int
    open_streams: int
    events: int
    keep_alives: int
    redelivered: int
    request_bytes: int
    response_bytes: int


def _http_numbers(info: CaptureInfo) -> HttpNumbers:
    """Return the numbers of a capture's transactions."""
    transactions = list(info.transactions.values())
    streams = [transaction for transaction in transactions if transaction.is_stream]
    requests = [transaction.request for transaction in transactions if transaction.request is not None]
    responses = [transaction.response for transaction in transactions if transaction.response is not None]
    return HttpNumbers(
        transactions=len(transactions),
        connections=len({transaction.connection for transaction in transactions}),
        sessions=len({transaction.scope.session for transaction in transactions if transaction.scope.session}),
        methods=dict(sorted(Counter(transaction.method for transaction in transactions).items())),
        statuses=dict(sorted(Counter(transaction.status for transaction in transactions).items())),
        streams=len(streams),
        open_streams=sum(1 for transaction in streams if not transaction.over),
        events=sum(response.events for response in responses),
        keep_alives=sum(response.comments for response in responses),
        redelivered=sum(len(transaction.redelivered) for transaction in transactions),
        request_bytes=sum(request.body_bytes for request in requests),
        response_bytes=sum(response.body_bytes for response in responses),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """Sums over servers. `servers` and `clients` count different names; `latency` is that of all answered calls.

    `calls`, `failed` and `pending` are those of clients, `requests` those of servers. Tokens are estimates. `unused` counts the
    tools that were offered and never called. What came through a gateway whose other side was tapped too counts there, once.
    """

    servers: int
    clients: int
    calls: int
    failed: int
    pending: int
    requests: int
    latency: Latency | None
    messages: int
    client_bytes: int
    server_bytes: int
    definition_bytes: int
    definition_tokens: int
    instructions_tokens: int
    result_tokens: int
    unused: int


def totals(servers: Iterable[ServerNumbers]) -> Totals:
    """Return the sums over the servers; captures of a model API are left out."""
    some = [server for server in servers if not server.capture_info.is_model]
    calls = [call for server in some for call in server.calls]
    near = [server for server in some if server.forwarded is None or any(call.by_target for call in server.calls)]
    costs = [server.cost for server in near]
    durations_ns = (ns for call in calls for ns in call.durations_ns)
    return Totals(
        servers=len({server.capture_info.server for server in some}),
        clients=len({name for server in near for name in server.capture_info.clients}),
        calls=sum(call.count for call in calls),
        failed=sum(call.failed for call in calls),
        pending=sum(call.pending for call in calls),
        requests=sum(call.count for server in near for call in server.requests),
        latency=latency(durations_ns),
        messages=sum(server.messages for server in near),
        client_bytes=sum(server.sent_bytes[CLIENT] for server in near),
        server_bytes=sum(server.sent_bytes[SERVER] for server in near),
        definition_bytes=sum(cost.definition_bytes for cost in costs),
        definition_tokens=sum(cost.definition_tokens for cost in costs),
        instructions_tokens=sum(cost.instructions_tokens for cost in costs),
        result_tokens=sum(cost.result_tokens for cost in costs),
        unused=sum(len(cost.unused) for cost in costs),
    )

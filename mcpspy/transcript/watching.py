"""Watchers: notes of rules about every exchange, or every row, taken in one pass over all of them.

A rule that looks at everything has a class with `feed`, in the tuple `WATCHERS` of its module (`ROW_WATCHERS` for rows of all kinds),
and asks for it in `find`. One that looks at calls alone, or at exchanges with notifications, says so in `of`. Where rows are packed,
all watchers are fed together, because to make rows again takes long. Elsewhere a watcher is fed when it is first asked for.

Where rows are packed, a watcher may have two more methods. They save time and must not change what it finds. `may_concern` takes
the joined payloads of the next exchanges, and returns whether `feed` has to see any of them. `feed_usual` is called in place of
`feed` when all calls are usual, as most are, and looks at all of them at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from operator import le, sub
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, Protocol, TypeAlias, TypeVar, cast

from ..records import CLIENT
from .message import RESULT, UsualMessage

if TYPE_CHECKING:
    from .message import Message
    from .model import Exchange, Row, Transcript

Watched = TypeVar("Watched", contravariant=True)  # noqa: PLC0105 - read as the type of what is watched


class Watcher(Protocol[Watched]):
    """Notes about exchanges or rows, which come in their order, some at a time."""

    def feed(self, rows: Iterable[Watched], /) -> None: ...


CALL: Final = "tools/call"

ExchangeKind: TypeAlias = Literal["exchanges", "calls", "with_notifications"]
"""The exchanges that a watcher is fed with, in its attribute `of`: `exchanges` if it has none."""


MOST_BYTES: Final = 1 << 20
"""Payloads of more bytes than this are not joined."""


class JoinedPayloads(NamedTuple):
    """The payloads of some requests, joined, those of their responses, and the size of the longest response."""

    requests: bytes
    responses: bytes
    longest: int


class UsualCalls:
    """Calls of a client on stdio that were answered with results, and lists of what rules look at, in the order of the calls.

    All messages are whole lines. `sizes` are those of the responses. `places` are the positions of the calls of each tool.
    `is_sequence` is true if each call began after the one before it was over, `is_plain` if no call has flaws, notifications or a
    failed tool.
    """

    __slots__ = (
        "began_ns", "calls", "ended_ns", "is_plain", "is_sequence", "places", "requests", "responses", "sizes", "took_ns",
    )  # fmt: skip

    def __init__(
        self, calls: list[Exchange], requests: Sequence[Message], responses: Sequence[Message], *, is_plain: bool
    ) -> None:
        self.calls = calls
        self.requests = requests
        self.responses = responses
        self.is_plain = is_plain
        self.began_ns = [request.at_ns for request in requests]
        self.ended_ns = [response.at_ns for response in responses]
        self.sizes = [len(response.raw) for response in responses]
        self.took_ns = list(map(sub, self.ended_ns, self.began_ns))
        self.is_sequence = min(self.took_ns) >= 0 and all(map(le, self.ended_ns, self.began_ns[1:]))
        self.places: dict[str | None, Sequence[int]] = {}
        targets = [request.target for request in requests]
        if targets.count(targets[0]) == len(targets):
            self.places[targets[0]] = range(len(targets))
        else:
            places: dict[str | None, list[int]] = {}
            for place, target in enumerate(targets):
                places.setdefault(target, []).append(place)
            self.places.update(places)


def usual_calls(calls: list[Exchange]) -> UsualCalls | None:
    """Return calls as usual ones; None if one of them is not."""
    requests = [call.request for call in calls]
    responses = [call.response for call in calls]
    if {*map(type, requests), *map(type, responses)} != {UsualMessage}:
        return None
    is_plain, answers = True, cast("list[Message]", responses)
    for call, request, response in zip(calls, requests, answers, strict=True):
        if response.kind is not RESULT or request.sender != CLIENT:
            return None
        if call.transaction is not None or call.cancelled is not None or call.is_probe:
            return None
        if (
            response.is_error or response.id != request.id or request.flaws or response.flaws or call.left_ns is not None
            or response.result_type is not None or call.notifications or call.partials or call.more_responses
        ):  # fmt: skip
            is_plain = False
    return UsualCalls(calls, requests, answers, is_plain=is_plain)


class ExchangesByKind:
    """Some exchanges, and those of them that many rules look at. Most rows of a large capture are of one kind."""

    __slots__ = ("calls", "exchanges", "with_notifications")

    def __init__(self, exchanges: Sequence[Exchange]) -> None:
        self.exchanges = exchanges
        self.calls = [exchange for exchange in exchanges if exchange.request.method == CALL]
        self.with_notifications = [exchange for exchange in exchanges if exchange.notifications]


def _payloads(requests: Iterable[Message], responses: Iterable[Message]) -> JoinedPayloads | None:
    """Join the payloads of messages; None if they are large."""
    raw_requests = [request.raw for request in requests]
    raw_responses = [response.raw for response in responses]
    if sum(map(len, raw_requests)) + sum(map(len, raw_responses)) > MOST_BYTES:
        return None
    return JoinedPayloads(b"".join(raw_requests), b"".join(raw_responses), max(map(len, raw_responses), default=0))


class WatchedCapture(Protocol):
    """A capture's exchanges, and by their classes the watchers that have seen them."""

    watchers: dict[Any, Any]

    @property
    def exchanges(self) -> Iterable[Exchange]: ...
    @property
    def calls(self) -> Iterable[Exchange]: ...
    @property
    def with_notifications(self) -> Iterable[Exchange]: ...


W = TypeVar("W", bound=Watcher[Any])
OfExchanges: TypeAlias = "Callable[[], Watcher[Exchange]]"
OfRows: TypeAlias = "Callable[[Transcript], Watcher[Row]]"

_ROW_WATCHERS: Final = "_row_watchers"


def watched(facts: WatchedCapture, watcher: Callable[[], W]) -> W:
    """Return the watcher of this class that has seen all exchanges of a capture."""
    known: W | None = facts.watchers.get(watcher)
    if known is None:
        known = facts.watchers[watcher] = watcher()
        known.feed(getattr(facts, _kind_of(known)))
    return known


def watched_rows(transcript: Transcript, watcher: Callable[[Transcript], W]) -> W:
    """Return the watcher of this class that has seen all rows of a transcript."""
    known: W | None = transcript.__dict__.get(_ROW_WATCHERS, {}).get(watcher)
    if known is None:
        known = watcher(transcript)
        known.feed(transcript.rows)
    return known


class Watchers:
    """Watchers of these classes, to be fed together with the rows of a transcript of one capture."""

    def __init__(
        self, facts: WatchedCapture, transcript: Transcript, of_exchanges: Sequence[OfExchanges], of_rows: Sequence[OfRows]
    ) -> None:
        facts.watchers = {watcher: watcher() for watcher in of_exchanges}
        transcript.__dict__[_ROW_WATCHERS] = rows = {watcher: watcher(transcript) for watcher in of_rows}
        self._exchanges = [_WatcherMethods(watcher) for watcher in facts.watchers.values()]
        self._rows = [_WatcherMethods(watcher) for watcher in rows.values()]

    def feed(self, rows: list[Row], exchanges: ExchangesByKind, usual: UsualCalls | None) -> None:
        """Feed all watchers with some rows and the exchanges among them. `usual` are the calls, if all calls are usual."""
        calls, all_usual = exchanges.calls, usual if len(exchanges.calls) == len(exchanges.exchanges) else None
        if all_usual is not None:
            payloads = _payloads(all_usual.requests, all_usual.responses)
        else:
            responses = [exchange.response for exchange in exchanges.exchanges if exchange.response is not None]
            payloads = _payloads([exchange.request for exchange in exchanges.exchanges], responses)
        for watcher in self._exchanges:
            some = getattr(exchanges, watcher.of)
            if not some or (payloads is not None and watcher.may_concern is not None and not watcher.may_concern(payloads)):
                continue
            usual_ones = usual if watcher.of == "calls" else all_usual
            if usual_ones is not None and watcher.feed_usual is not None:
                watcher.feed_usual(usual_ones)
            else:
                watcher.feed(some)
        all_usual = all_usual if len(calls) == len(rows) else None
        for watcher in self._rows:
            usual_ones = usual if watcher.of == "calls" else all_usual
            if usual_ones is not None and watcher.feed_usual is not None:
                watcher.feed_usual(usual_ones)
            else:
                watcher.feed(calls if watcher.of == "calls" else rows)


class _WatcherMethods:
    """The methods of a watcher, looked up once; None for those that it does not have."""

    __slots__ = ("feed", "feed_usual", "may_concern", "of")

    def __init__(self, watcher: Watcher[Any]) -> None:
        self.of = _kind_of(watcher)
        self.feed = watcher.feed
        self.feed_usual: Callable[[UsualCalls], None] | None = getattr(watcher, "feed_usual", None)
        self.may_concern: Callable[[JoinedPayloads], bool] | None = getattr(watcher, "may_concern", None)


def _kind_of(watcher: object) -> ExchangeKind:
    return getattr(watcher, "of", "exchanges")

"""Watchers: notes of rules about every exchange, or every row, taken in one pass over all of them.

A rule that looks at everything has a class with `feed`, in the tuple `WATCHERS` of its module (`ROW_WATCHERS` for rows of all kinds),
and asks for it in `find`. One that looks at calls alone, or at exchanges with notifications, says so in `of`. Where rows are packed,
all watchers are fed together, because to make rows again takes long. Elsewhere a watcher is fed when it is first asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, TypeAlias, TypeVar

if TYPE_CHECKING:
    from .model import Exchange, Row, Transcript

Watched = TypeVar("Watched", contravariant=True)  # noqa: PLC0105 - read as the type of what is watched


class Watcher(Protocol[Watched]):
    """Notes about exchanges or rows, which come in their order, some at a time."""

    def feed(self, rows: Iterable[Watched], /) -> None: ...


CALL: Final = "tools/call"

ExchangeKind: TypeAlias = Literal["exchanges", "calls", "with_notifications"]
"""The exchanges that a watcher is fed with, in its attribute `of`: `exchanges` if it has none."""


class ExchangesByKind:
    """Some exchanges, and those of them that many rules look at. Most rows of a large capture are of one kind."""

    __slots__ = ("calls", "exchanges", "with_notifications")

    def __init__(self, exchanges: Sequence[Exchange]) -> None:
        self.exchanges = exchanges
        self.calls = [exchange for exchange in exchanges if exchange.request.method == CALL]
        self.with_notifications = [exchange for exchange in exchanges if exchange.notifications]


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
        self._exchanges: list[tuple[Watcher[Exchange], ExchangeKind]] = [
            (watcher, _kind_of(watcher)) for watcher in facts.watchers.values()
        ]
        self._rows: list[tuple[Watcher[Any], bool]] = [(watcher, _kind_of(watcher) == "calls") for watcher in rows.values()]

    def feed(self, rows: list[Row], exchanges: ExchangesByKind) -> None:
        """Feed all watchers with some rows, and with the exchanges among them."""
        for of_exchanges, kind in self._exchanges:
            if some := getattr(exchanges, kind):
                of_exchanges.feed(some)
        for of_rows, is_of_calls in self._rows:
            of_rows.feed(exchanges.calls if is_of_calls else rows)


def _kind_of(watcher: object) -> ExchangeKind:
    return getattr(watcher, "of", "exchanges")

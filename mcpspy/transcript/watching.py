"""Watchers: notes of rules about every exchange, or every row, taken in one pass over all of them.

A rule that looks at everything has a class with `feed`, in the tuple `WATCHERS` of its module (`ROW_WATCHERS` for rows of all kinds),
and asks for it in `find`. Where rows are packed, all watchers are fed together, because to make rows again takes long. Elsewhere a
watcher is fed when it is first asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias, TypeVar

if TYPE_CHECKING:
    from .model import Exchange, Row, Transcript

Watched = TypeVar("Watched", contravariant=True)  # noqa: PLC0105 - read as the type of what is watched


class Watcher(Protocol[Watched]):
    """Notes about exchanges or rows, which come in their order, some at a time."""

    def feed(self, rows: Iterable[Watched], /) -> None: ...


class WatchedCapture(Protocol):
    """A capture's exchanges, and by their classes the watchers that have seen them."""

    watchers: dict[Any, Any]

    @property
    def exchanges(self) -> Iterable[Exchange]: ...


W = TypeVar("W", bound=Watcher[Any])
OfExchanges: TypeAlias = "Callable[[], Watcher[Exchange]]"
OfRows: TypeAlias = "Callable[[Transcript], Watcher[Row]]"

_ROW_WATCHERS: Final = "_row_watchers"


def watched(facts: WatchedCapture, watcher: Callable[[], W]) -> W:
    """Return the watcher of this class that has seen all exchanges of a capture."""
    known: W | None = facts.watchers.get(watcher)
    if known is None:
        known = facts.watchers[watcher] = watcher()
        known.feed(facts.exchanges)
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
        self._exchanges: list[Watcher[Exchange]] = list(facts.watchers.values())
        self._rows: list[Watcher[Row]] = list(rows.values())

    def feed(self, rows: list[Row], exchanges: list[Exchange]) -> None:
        """Feed all watchers with some rows, and with the exchanges among them."""
        for of_exchanges in self._exchanges:
            of_exchanges.feed(exchanges)
        for of_rows in self._rows:
            of_rows.feed(rows)

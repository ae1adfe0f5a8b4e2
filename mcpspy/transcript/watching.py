"""Watchers: notes of rules about every exchange, or every row, taken in one pass over all of them.

A rule that looks at everything has a class with `feed`, and asks for it in `find`. One that looks at calls alone, or at exchanges
with notifications, says so in `of`. A watcher is fed when it is first asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, TypeAlias, TypeVar

if TYPE_CHECKING:
    from .model import Exchange, Transcript

Watched = TypeVar("Watched", contravariant=True)  # noqa: PLC0105 - read as the type of what is watched


class Watcher(Protocol[Watched]):
    """Notes about exchanges or rows, which come in their order, some at a time."""

    def feed(self, rows: Iterable[Watched], /) -> None: ...


CALL: Final = "tools/call"

ExchangeKind: TypeAlias = Literal["exchanges", "calls", "with_notifications"]
"""The exchanges that a watcher is fed with, in its attribute `of`: `exchanges` if it has none."""


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


def watched(facts: WatchedCapture, watcher: Callable[[], W]) -> W:
    """Return the watcher of this class that has seen all exchanges of a capture."""
    known: W | None = facts.watchers.get(watcher)
    if known is None:
        known = facts.watchers[watcher] = watcher()
        known.feed(getattr(facts, getattr(known, "of", "exchanges")))
    return known


def watched_rows(transcript: Transcript, watcher: Callable[[Transcript], W]) -> W:
    """Return a watcher of this class that has seen all rows of a transcript."""
    new = watcher(transcript)
    new.feed(transcript.rows)
    return new

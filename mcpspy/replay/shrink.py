"""Looks for the smallest sequence of requests with which something still happens, by running less and less of them.

A machine: `next` is what to run, `told` takes whether it happened. First the end is cut off by halves, then what stands before the
last requests that it takes, then chunks that get smaller, at last each request by itself (delta debugging: Zeller and Hildebrandt,
Simplifying and Isolating Failure-Inducing Input, 2002, sections 3 and 4). So what is left is minimal: without any one of its
requests, and those that need it, it does not happen. Refuses to know what happens, and to run the same twice.

Halving before chunks is for the usual case, in which few of many requests matter: 60 with 3 that do take 23 runs instead of the 61 of
ddmin alone, 200 with 3 take 28 instead of 90 (means over 200 random places).
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from ..transcript.mcp.methods import OPENINGS
from .client.plan import INITIALIZED, Send

if TYPE_CHECKING:
    from ..transcript.model import Exchange, Message, Transcript
    from .client.plan import Plan
    from .client.player import Report
    from .condition import Occurrence


Rows: TypeAlias = tuple[int, ...]
"""Requests by the numbers of their rows, in order."""

MAX_HALVED: Final = 5
"""So many requests that matter are looked for by halves; past that, chunks find many in fewer runs."""

_Search: TypeAlias = Generator[Rows, bool, bool]
"""Yields what to run, is sent whether it happened. What it returns is said where it is."""


class Shrinker:
    """See above. `rows` are all that could be sent, in order; `needs` says of a row, which others must be sent for it.

    `best` is the smallest sequence with which it happened: None where it never did. `runs` counts what was told, `unresolved` those
    of them that said nothing. `is_minimal` says that the search came to its end.
    """

    __slots__ = (
        "_asked", "_at", "_dependents", "_max_runs", "_needs", "_outcomes", "_search", "best", "is_minimal", "runs", "unresolved",
    )  # fmt: skip

    def __init__(self, rows: Sequence[int], needs: Callable[[int], Iterable[int]], *, max_runs: int) -> None:
        known = sorted(set(rows))
        self._needs: dict[int, tuple[int, ...]] = {}
        self._dependents: dict[int, list[int]] = {row: [] for row in known}
        for row in known:
            self._needs[row] = tuple(one for one in needs(row) if one in self._needs)
            for one in self._needs[row]:
                self._dependents[one].append(row)
        self._max_runs = max_runs
        self._outcomes: dict[Rows, bool] = {}
        self._search = self._shrunk(tuple(known))
        self._asked: Rows | None = next(self._search)
        self._at: int | None = None
        """The row at which it happened when all were sent."""
        self.best: Rows | None = None
        self.is_minimal = False
        self.runs = self.unresolved = 0

    def next(self) -> Rows | None:
        """What to run next; None when there is nothing left to learn, or no run left."""
        return None if self.runs >= self._max_runs else self._asked

    def told(self, *, happened: bool | None, at: int | None = None) -> None:
        """What came of the last run; None if that could not be told, as where the server did not start.

        `at` is the row at which it happened, if one can be named: what was sent after it is likely to be of no matter.
        """
        if self._asked is None:
            return
        self._at = at if self.runs == 0 else self._at
        self.runs += 1
        self.unresolved += happened is None
        self._outcomes[self._asked] = happened is True
        if happened and (self.best is None or len(self._asked) < len(self.best)):
            self.best = self._asked
        try:
            while self._asked in self._outcomes:
                self._asked = self._search.send(self._outcomes[self._asked])
        except StopIteration as end:
            self._asked, self.is_minimal = None, end.value

    # The search

    def _shrunk(self, rows: Rows) -> _Search:
        """The whole search. Returns whether its end was reached: not where all rows together do not make it happen."""
        if not (yield rows):
            return False
        if (yield ()):
            return True
        left = yield from self._without_the_end(rows)
        left = yield from self._without_the_beginning(left)
        size = len(left) // 2
        while size > 1:
            left, _ = yield from self._without_chunks(left, size)
            size = min(size, len(left)) // 2
        lost = True
        while lost:
            left, lost = yield from self._without_chunks(left, 1)
        return True

    def _without_the_end(self, rows: Rows) -> Generator[Rows, bool, Rows]:
        """The rows up to one with which it happens, and without which it does not: found as in a list that is sorted."""
        at = self._at
        first = () if at is None else tuple(row for row in rows if row <= at)
        if first and (yield first):
            rows = first
            if not (yield rows[:-1]):
                return rows
        too_few, enough = 0, len(rows)
        while enough - too_few > 1:
            middle = (too_few + enough) // 2
            if (yield rows[:middle]):
                enough = middle
            else:
                too_few = middle
        return rows[:enough]

    def _without_the_beginning(self, rows: Rows) -> Generator[Rows, bool, Rows]:
        """What is left when, before what matters, all is left out that can be: what matters is found from the end on."""
        needed = self._closed(rows[-1:])
        rest = tuple(row for row in rows if row not in needed)
        for _ in range(MAX_HALVED):
            if not rest or (yield needed):
                return needed
            too_few, enough = 0, len(rest)
            while enough - too_few > 1:
                middle = (too_few + enough) // 2
                if (yield self._closed((*needed, *rest[-middle:]))):
                    enough = middle
                else:
                    too_few = middle
            left = self._closed((*needed, *rest[-enough:]))
            needed = self._closed((*needed, rest[-enough]))
            rest = tuple(row for row in left if row not in needed)
        return tuple(sorted((*needed, *rest)))

    def _without_chunks(self, rows: Rows, size: int) -> Generator[Rows, bool, tuple[Rows, bool]]:
        """What is left when chunks of so many rows, and what needs them, were left out wherever that could be; whether any was."""
        at, lost = len(rows), False
        while at > 0:
            chunk = rows[max(0, at - size) : at]
            gone = _reached(chunk, self._dependents)
            fewer = tuple(row for row in rows if row not in gone)
            if (yield fewer):
                at = sum(1 for row in fewer if row < chunk[0])
                rows, lost = fewer, True
            else:
                at -= size
        return rows, lost

    def _closed(self, rows: Iterable[int]) -> Rows:
        """Rows with those that they need."""
        return tuple(sorted(_reached(rows, self._needs)))


def _reached(rows: Iterable[int], further: Mapping[int, Iterable[int]]) -> set[int]:
    """These rows, and all that lie behind them."""
    found: set[int] = set()
    waiting = [*rows]
    while waiting:
        row = waiting.pop()
        if row not in found:
            found.add(row)
            waiting.extend(further[row])
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class ShrinkResult:
    """The smallest sequence. `sends` are what is left of the `of` messages that the recording has behind its handshake.

    `live` are the live exchanges by recorded rows. `is_minimal` says that without any one of it, it did not happen; `runs` how
    many servers that took, `unresolved` how many of them said nothing. `path` is the capture of the run.
    """

    until: str
    happened: Occurrence
    sends: tuple[Send, ...]
    live: dict[int, Exchange]
    of: int
    runs: int
    unresolved: int
    is_minimal: bool
    path: str


def beyond_the_handshake(plan: Plan) -> tuple[Send, ...]:
    """What a plan sends besides the messages by which every session begins."""
    return tuple(send for send in plan.sends if not is_handshake(send.message))


def is_handshake(message: Message) -> bool:
    """Whether a session begins with it."""
    return message.method in OPENINGS or message.method == INITIALIZED


def live_rows(live: Transcript, report: Report) -> dict[int, Exchange]:
    """The client's live exchanges by the recorded rows that they are of."""
    rows = {id: row for row, id in report.sent.items()}
    return {rows[id]: one for one in live.exchanges if (id := one.request.id or "") in rows and one.sender == "client"}


def has_begun(plan: Plan, live: dict[int, Exchange]) -> bool:
    """Whether the server answered the handshake, as far as the recorded one did."""
    asked = [one for one in plan.requests if one.method in OPENINGS and one.response is not None]
    return all(one.row in live and live[one.row].response is not None for one in asked)

"""Shrinking of a replay: the search for the fewest requests with which something still happens, and its result.

A machine: `next` is what to run, and `take` takes whether it happened. First the end is cut off by halves, then what comes before the
last requests that matter, then smaller and smaller chunks, at last each request alone (delta debugging: Zeller and Hildebrandt,
Simplifying and Isolating Failure-Inducing Input, 2002, sections 3 and 4). The result is minimal: it does not happen without any one
of the requests, and those that need it. Nothing runs twice.

Halving comes before chunks because usually few of many requests matter: 60 with 3 that matter take 23 runs instead of the 61 of
ddmin alone, 200 with 3 take 28 instead of 90 (means over 200 random places).
"""

from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from ..transcript.mcp.methods import OPENINGS
from ..transcript.model import Exchange, Transcript
from .client.plan import Plan, Send, closure, is_handshake
from .client.player import Report
from .condition import Occurrence

Rows: TypeAlias = tuple[int, ...]
"""Requests by the numbers of their rows, in order."""

MAX_HALVED: Final = 5
"""The most requests that are searched for by halves; more are found by chunks in fewer runs."""

_Search: TypeAlias = Generator[Rows, bool, bool]
"""Yields what to run, and is sent whether it happened."""


class Shrinker:
    """The search. `rows` are all requests that could be sent, in order; `needs` returns the others that one of them needs.

    `best` is the smallest sequence with which it happened, None if it never did. `runs` counts the runs, `unresolved` those without
    an outcome. `is_minimal` says that the search came to its end.
    """

    __slots__ = (
        "_current", "_dependents", "_happened_at", "_max_runs", "_needs", "_outcomes", "_search", "best", "is_minimal", "runs",
        "unresolved",
    )  # fmt: skip

    def __init__(self, rows: Sequence[int], needs: Callable[[int], Iterable[int]], *, max_runs: int) -> None:
        known = sorted(set(rows))
        self._needs: dict[int, tuple[int, ...]] = {}
        self._dependents: dict[int, list[int]] = {row: [] for row in known}
        for row in known:
            self._needs[row] = tuple(needed for needed in needs(row) if needed in self._needs)
            for needed in self._needs[row]:
                self._dependents[needed].append(row)
        self._max_runs = max_runs
        self._outcomes: dict[Rows, bool] = {}
        self._search = self._steps(tuple(known))
        self._current: Rows | None = next(self._search)
        self._happened_at: int | None = None
        """The row at which it happened when all were sent."""
        self.best: Rows | None = None
        self.is_minimal = False
        self.runs = self.unresolved = 0

    def next(self) -> Rows | None:
        """Return what to run next; None if there is nothing left to learn, or no run left."""
        return None if self.runs >= self._max_runs else self._current

    def take(self, *, happened: bool | None, at: int | None = None) -> None:
        """Take the outcome of the last run; None for a run without an outcome, as when the server did not start.

        `at` is the row at which it happened, if it is known: what was sent after it is unlikely to matter.
        """
        if self._current is None:
            return
        self._happened_at = at if self.runs == 0 else self._happened_at
        self.runs += 1
        self.unresolved += happened is None
        self._outcomes[self._current] = happened is True
        if happened and (self.best is None or len(self._current) < len(self.best)):
            self.best = self._current
        try:
            while self._current in self._outcomes:
                self._current = self._search.send(self._outcomes[self._current])
        except StopIteration as end:
            self._current, self.is_minimal = None, end.value

    # The search

    def _steps(self, rows: Rows) -> _Search:
        """Search, and return whether the end was reached: not if it does not even happen with all rows."""
        if not (yield rows):
            return False
        if (yield ()):
            return True
        rest = yield from self._without_end(rows)
        rest = yield from self._without_beginning(rest)
        size = len(rest) // 2
        while size > 1:
            rest, _ = yield from self._without_chunks(rest, size)
            size = min(size, len(rest)) // 2
        shrank = True
        while shrank:
            rest, shrank = yield from self._without_chunks(rest, 1)
        return True

    def _without_end(self, rows: Rows) -> Generator[Rows, bool, Rows]:
        """Find, by bisection, the last row that is needed; return the rows up to it."""
        at = self._happened_at
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

    def _without_beginning(self, rows: Rows) -> Generator[Rows, bool, Rows]:
        """Find the needed rows by bisection, from the last one on; return them, and what could not be left out before them."""
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
            kept = self._closed((*needed, *rest[-enough:]))
            needed = self._closed((*needed, rest[-enough]))
            rest = tuple(row for row in kept if row not in needed)
        return tuple(sorted((*needed, *rest)))

    def _without_chunks(self, rows: Rows, size: int) -> Generator[Rows, bool, tuple[Rows, bool]]:
        """Leave out chunks of so many rows, with what needs them, wherever possible; return the rest, and whether it is smaller."""
        at, shrank = len(rows), False
        while at > 0:
            chunk = rows[max(0, at - size) : at]
            dropped = closure(chunk, self._dependents.__getitem__)
            fewer = tuple(row for row in rows if row not in dropped)
            if (yield fewer):
                at = sum(1 for row in fewer if row < chunk[0])
                rows, shrank = fewer, True
            else:
                at -= size
        return rows, shrank

    def _closed(self, rows: Iterable[int]) -> Rows:
        """Add the rows that these need."""
        return tuple(sorted(closure(rows, self._needs.__getitem__)))


@dataclass(frozen=True, slots=True, kw_only=True)
class ShrinkResult:
    """The smallest sequence. `sends` are the messages that are left of the `of` that follow the handshake in the capture.

    `live` are the live exchanges by recorded rows. `is_minimal` says that it does not happen without any one of them. `runs` is the
    number of runs that this took, `unresolved` the number of those without an outcome. `path` is the capture of the run.
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


def sends_after_handshake(plan: Plan) -> tuple[Send, ...]:
    """Return what a plan sends besides the handshake."""
    return tuple(send for send in plan.sends if not is_handshake(send.message))


def live_exchanges(live: Transcript, report: Report) -> dict[int, Exchange]:
    """Return the client's live exchanges by recorded rows."""
    rows = {id: row for row, id in report.sent.items()}
    requests = ((exchange, exchange.request.id or "") for exchange in live.exchanges if exchange.sender == "client")
    return {rows[id]: exchange for exchange, id in requests if id in rows}


def is_handshake_answered(plan: Plan, live: dict[int, Exchange]) -> bool:
    """Return whether the server answered the handshake, as far as the recorded server did."""
    openings = [request for request in plan.requests if request.method in OPENINGS and request.response is not None]
    return all(request.row in live and live[request.row].response is not None for request in openings)

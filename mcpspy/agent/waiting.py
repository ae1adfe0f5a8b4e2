"""Wait for a call: rows as they come in; out, the first that matches a filter and has come, ended, failed or hangs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, TypeAlias

from ..transcript.filter.filter import FilterMatcher
from ..transcript.http.transaction import Transaction
from ..transcript.model import Exchange, ModelCall, Numbered, Row, Transcript
from ..transcript.outcome import HTTP_ERRORS, Outcome
from .tools import CallEvent

if TYPE_CHECKING:
    from ..transcript.filter.grammar import Filter

LiveRow: TypeAlias = tuple[Transcript, Numbered]

_WELL: Final = {Outcome.OK, Outcome.PENDING, Outcome.PROBE}


class CallWait:
    """A wait for an event of a call that matches a filter. Calls that were over before it began do not count.

    `hang_ns` is the time without an answer after which a call hangs.
    """

    def __init__(self, condition: Filter | None, event: CallEvent, hang_ns: int) -> None:
        self._condition = condition
        self._event = event
        self._hang_ns = hang_ns
        self._matchers: dict[int, FilterMatcher] = {}
        self._early: set[tuple[int, int]] = set()
        """Rows that were there when it began, and do not count as coming."""
        self._pending: dict[tuple[int, int], LiveRow] = {}
        self.seen = 0
        """The number of matching calls that have come."""

    def begin(self, rows: Iterable[tuple[Transcript, Row]]) -> None:
        """Take the rows that are there already."""
        for transcript, row in rows:
            if isinstance(row, Numbered):
                self._early.add((id(transcript), row.row))
                if not _is_over(row):
                    self._note(transcript, row)
        self.seen = 0

    def feed(self, rows: Iterable[tuple[Transcript, Row]]) -> LiveRow | None:
        """Take rows that are new or have changed. Returns the row that was waited for; None if there is none yet."""
        for transcript, row in rows:
            if isinstance(row, Numbered) and self._note(transcript, row):
                return transcript, row
        if self._event is CallEvent.HANGS:
            return next(filter(self._hangs, self._pending.values()), None)
        return None

    @property
    def pending(self) -> list[int]:
        """The rows of matching calls that wait for their answers."""
        return [row.row for _, row in self._pending.values()]

    def _note(self, transcript: Transcript, row: Numbered) -> bool:
        """Note what a row does. Returns whether it is what was waited for."""
        key = id(transcript), row.row
        is_new = key not in self._early
        was_pending = self._pending.pop(key, None) is not None
        if not (is_new or was_pending) or not self._matches(transcript, row):
            return False
        self.seen += is_new and not was_pending
        if not _is_over(row):
            self._pending[key] = transcript, row
            return self._event is CallEvent.COMES and not was_pending
        match self._event:
            case CallEvent.COMES:
                return not was_pending
            case CallEvent.ENDS:
                return True
            case CallEvent.FAILS:
                return _has_failed(row)
        return False

    def _hangs(self, live: LiveRow) -> bool:
        transcript, row = live
        now_ns = transcript.captures[row.capture].now_ns
        return now_ns is not None and now_ns - row.at_ns >= self._hang_ns

    def _matches(self, transcript: Transcript, row: Numbered) -> bool:
        if self._condition is None:
            return True
        if id(transcript) not in self._matchers:
            self._matchers[id(transcript)] = FilterMatcher(self._condition, transcript)
        return self._matchers[id(transcript)].matches(row)


def _is_over(row: Numbered) -> bool:
    match row:
        case Exchange():
            return row.over
        case ModelCall() | Transaction():
            return (row.transaction if isinstance(row, ModelCall) else row).over
    return True


def _has_failed(row: Numbered) -> bool:
    match row:
        case Exchange() | ModelCall():
            return row.outcome not in _WELL
        case Transaction():
            return row.status >= HTTP_ERRORS
    return True

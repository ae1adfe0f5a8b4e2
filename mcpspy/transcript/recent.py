"""Rows of a transcript since a time, and the findings about them.

A row counts if anything of it came since then, or if it still waits for something. The caller gives the time; no clock is read.
"""

from collections.abc import Mapping
from typing import Any, Final

from .findings.rule import Finding
from .http.transaction import Transaction
from .llm.model_call import ModelCall
from .model import CaptureInfo, Exchange, Outcome, Row, Transcript

EVER: Final = 1 << 80
"""A time later than any other."""


class RecentRows:
    """The rows of `transcript` since a time.

    `since_ns` is that time on the transcript's clock, for each capture by its index; of other captures all rows count.
    """

    __slots__ = ("_numbers", "_since_ns", "rows")

    def __init__(self, transcript: Transcript, since_ns: Mapping[int, int]) -> None:
        self._since_ns = since_ns
        captures = transcript.captures

        def is_recent(row: Any) -> bool:
            return last_ns(row, captures[row.capture]) >= since_ns.get(row.capture, -EVER)

        rounds: list[Exchange] = []
        for call in transcript.calls:  # a call that waits, or has a recent poll or notification, brings its rounds with it
            waits = call.outcome is Outcome.PENDING and not captures[call.first.capture].closed
            if waits or any(map(is_recent, (*call.exchanges, *call.notifications))):
                rounds += call.rounds
        brought = {id(row) for row in rounds}
        self.rows: list[Row] = [row for row in transcript.rows if id(row) in brought or is_recent(row)]
        self._numbers = {getattr(row, "row", None) for row in self.rows}

    def is_about(self, finding: Finding) -> bool:
        """Return whether a finding is about one of the rows; if it is about no row, whether it was met since then."""
        if finding.row is not None:
            return finding.row in self._numbers
        return finding.at_ns >= self._since_ns.get(finding.capture, -EVER)


def last_ns(row: Row, info: CaptureInfo) -> int:
    """Return the time of the last message of a row; `EVER` while it waits for one."""
    match row:
        case Exchange():
            return _exchange_ns(row, info)
        case Transaction():
            return _ended_ns(row, info)
        case ModelCall():
            return _ended_ns(row.transaction, info)
        case _:
            return row.at_ns


def _exchange_ns(row: Exchange, info: CaptureInfo) -> int:
    if row.outcome is Outcome.PENDING:
        return EVER
    last = max([message.at_ns for message in row.messages] + [row.left_ns or 0])
    if row.response is not None or row.cancelled is not None or row.left_ns is not None:
        return last
    if row.transaction is not None and row.transaction.ended_ns is not None:
        return max(last, row.transaction.ended_ns)
    return max(last, _gone_ns(info))  # it waited until nobody could answer any more


def _ended_ns(row: Transaction, info: CaptureInfo) -> int:
    if row.ended_ns is not None:
        return row.ended_ns
    return max(row.at_ns, _gone_ns(info)) if info.closed else EVER


def _gone_ns(info: CaptureInfo) -> int:
    """Return the time after which no answer could come: the end of the server, or the last record."""
    return info.shift_ns + (info.last_ns if info.exit is None else info.exit.at_ns)

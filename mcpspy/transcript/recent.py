"""What of a transcript is of late: the rows that were alive since a moment, and the findings that are about these.

A call that began before the moment and still hangs is of late, as is one that ended after it. Refuses to read clocks.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from .http.transaction import Transaction
from .llm.call import ModelCall
from .model import CaptureInfo, Exchange, Outcome, Row

if TYPE_CHECKING:
    from .findings.rule import Finding
    from .model import Transcript

EVER: Final = 1 << 80
"""Later than anything."""


class RecentRows:
    """The rows of `transcript` that were alive since a moment.

    `since_ns` is that moment on the transcript's clock, for each capture by its index; all rows of a capture that is not named are.
    """

    __slots__ = ("_numbers", "_since_ns", "rows")

    def __init__(self, transcript: Transcript, since_ns: Mapping[int, int]) -> None:
        self._since_ns = since_ns
        captures = transcript.captures
        alive = {id(row) for row in transcript.rows if last_ns(row, captures[row.capture]) >= since_ns.get(row.capture, -EVER)}
        for (
            call
        ) in transcript.calls:  # its polls and its news may be of late, or it still works: then what it is about is wanted too
            hangs = call.outcome is Outcome.PENDING and not captures[call.first.capture].closed
            if hangs or any(id(row) in alive for row in (*call.exchanges, *call.notifications)):
                alive |= {id(row) for row in call.rounds}
        self.rows: list[Row] = [row for row in transcript.rows if id(row) in alive]
        self._numbers = {getattr(row, "row", None) for row in self.rows}

    def is_about(self, finding: Finding) -> bool:
        """Whether a finding is about one of the rows; of one about no row, whether it was met since then."""
        if finding.row is not None:
            return finding.row in self._numbers
        return finding.at_ns >= self._since_ns.get(finding.capture, -EVER)


def last_ns(row: Row, source: CaptureInfo) -> int:
    """When a row was last alive: when its last message came; where it still waits for one, later than anything."""
    match row:
        case Exchange():
            return _exchange_ns(row, source)
        case Transaction():
            return _ended_ns(row, source)
        case ModelCall():
            return _ended_ns(row.transaction, source)
        case _:
            return row.at_ns


def _exchange_ns(row: Exchange, source: CaptureInfo) -> int:
    if row.outcome is Outcome.PENDING:
        return EVER
    last = max([one.at_ns for one in row.messages] + [row.left_ns or 0])
    if row.response is not None or row.cancelled is not None or row.left_ns is not None:
        return last
    if row.transaction is not None and row.transaction.ended_ns is not None:
        return max(last, row.transaction.ended_ns)
    return max(last, _gone_ns(source))  # it waited until nobody could answer any more


def _ended_ns(row: Transaction, source: CaptureInfo) -> int:
    if row.ended_ns is not None:
        return row.ended_ns
    return max(row.at_ns, _gone_ns(source)) if source.closed else EVER


def _gone_ns(source: CaptureInfo) -> int:
    """When nothing more could come of it: when its server ended, or with its last record."""
    return source.shift_ns + (source.last_ns if source.exit is None else source.exit.at_ns)

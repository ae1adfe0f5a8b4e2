"""What a driver recorded, held against what it played: the rows of both that can be compared.

What was not sent is not missing, and what the server did not come to ask neither. Refuses to compare: `compare` does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...records import CLIENT
from ...transcript.model import HTTP_ERRORS, HTTP_REDIRECTS, Exchange, Outcome, Transcript
from ..compare.compare import ComparedSide
from .regenerated import restore_pseudonyms, restore_regenerated

if TYPE_CHECKING:
    from collections.abc import Callable, Container

    from .plan import Plan
    from .player import Report


@dataclass(frozen=True, slots=True, kw_only=True)
class PlayedPlan:
    """One plan that was played: `asked` are the rows that were asked for, None for all.

    `put_back` makes of a live payload that belongs to a recorded row what it would be with the recorded values that were carried.
    """

    plan: Plan
    report: Report
    asked: frozenset[int] | None = None
    restore: Callable[[int, bytes], bytes] | None = None


def compared_sides(before: Transcript, after: Transcript, played: PlayedPlan) -> tuple[ComparedSide, ComparedSide]:
    """The two sides of the comparison of a recording with what was played of it. Without findings: they are about one run each."""
    report = played.report
    after = _arrived(after)
    live = {id: row for row, id in report.sent.items()}
    pairs = _pairs(after, live, report.questions)
    if played.restore is not None:
        _put_back(pairs, played.restore)
    rows_before = {one.row: one for one in before.exchanges}
    exchanges = [(one, rows_before[row]) for one, row in pairs if row in rows_before]
    restore_regenerated(exchanges)
    restore_pseudonyms(exchanges)
    unknown = _unknown(before) | (report.stopped or set())
    again = {row for _, row in pairs} - unknown
    if played.asked is not None:
        rows = frozenset(played.asked & again)
        live_rows = frozenset(one.row for one, row in pairs if row in rows)
        return ComparedSide(transcript=_unjudged(before), rows=rows), ComparedSide(transcript=_unjudged(after), rows=live_rows)
    unknown_live = {one.row for one, row in pairs if row in unknown}
    rows_after = [row for row in after.rows if not isinstance(row, Exchange) or row.row not in unknown_live]
    return (
        ComparedSide(transcript=_of(before, played, again, unknown)),
        ComparedSide(transcript=Transcript(captures=after.captures, rows=rows_after)),
    )


def _unjudged(transcript: Transcript) -> Transcript:
    return Transcript(captures=transcript.captures, rows=transcript.rows)


def _pairs(after: Transcript, live: dict[str, int], questions: dict[str, int]) -> list[tuple[Exchange, int]]:
    """The live exchanges, each with the recorded row that it is of."""
    found: list[tuple[Exchange, int]] = []
    for one in after.exchanges:
        row = (live if one.sender == CLIENT else questions).get(one.request.id or "")
        if row is not None:
            found.append((one, row))
    return found


def _arrived(after: Transcript) -> Transcript:
    """What was played, without requests that the server sent on elsewhere: they stand there once more, under the same id."""
    last = {one.request.id: one.row for one in after.exchanges if one.sender == CLIENT}

    def is_redirected(row: Exchange) -> bool:
        status = 0 if row.transaction is None or row.response is not None else row.transaction.status
        return HTTP_REDIRECTS <= status < HTTP_ERRORS and row.sender == CLIENT and last[row.request.id] != row.row

    rows = [row for row in after.rows if not isinstance(row, Exchange) or not is_redirected(row)]
    return Transcript(captures=after.captures, rows=rows)


def _put_back(pairs: list[tuple[Exchange, int]], put_back: Callable[[int, bytes], bytes]) -> None:
    for one, row in pairs:
        for message in (one.request, one.response):
            if message is not None and message.raw:
                message.raw = put_back(row, message.raw)


def _unknown(before: Transcript) -> set[int]:
    """The rows of requests whose answers are not in the recording because that breaks off, or has gaps: they may have come."""
    return {
        one.row
        for one in before.exchanges
        if one.response is None
        and one.outcome in (Outcome.PENDING, Outcome.UNANSWERED)
        and not before.captures[one.capture].complete
    }


def _of(before: Transcript, played: PlayedPlan, again: Container[int], unknown: Container[int]) -> Transcript:
    """The recording without what was not played `again`: requests that were not sent, and what the server asked behind them."""
    report = played.report
    left_out = {one.row for one in played.plan.left_out}
    unsent = [one.message.at_ns for one in report.unsent if one.row not in left_out]
    until_ns = min(unsent, default=None)

    def is_kept(row: Exchange) -> bool:
        if row.row not in played.plan.rows or row.row in unknown:
            return False
        if row.sender == CLIENT:
            return row.row in again
        return until_ns is None or row.at_ns < until_ns or row.row in again

    rows = [row for row in before.rows if not isinstance(row, Exchange) or is_kept(row)]
    return Transcript(captures=before.captures, rows=rows)

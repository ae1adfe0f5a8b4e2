"""Counterparts of a replay: the recorded and the live transcript, reduced to the rows that can be compared.

What was not sent is not missing, and neither is what the server did not come to ask. `compare` compares them.
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
    """One plan that was played. `selected` are the rows that a user selected, None for all.

    `restore` puts the recorded values in place of the correlated live ones, in a live payload that belongs to a recorded row.
    """

    plan: Plan
    report: Report
    selected: frozenset[int] | None = None
    restore: Callable[[int, bytes], bytes] | None = None


def compared_sides(before: Transcript, after: Transcript, played: PlayedPlan) -> tuple[ComparedSide, ComparedSide]:
    """Return the two sides of the comparison of a capture with its replay. Without findings, which are about one run each."""
    report = played.report
    after = _without_redirected(after)
    recorded_rows = {id: row for row, id in report.sent.items()}
    pairs = _pairs(after, recorded_rows, report.questions)
    if played.restore is not None:
        _restore(pairs, played.restore)
    recorded = {exchange.row: exchange for exchange in before.exchanges}
    exchanges = [(live, recorded[row]) for live, row in pairs if row in recorded]
    restore_regenerated(exchanges)
    restore_pseudonyms(exchanges)
    unknown = _rows_with_unknown_answer(before) | (report.stopped or set())
    played_rows = {row for _, row in pairs} - unknown
    if played.selected is not None:
        rows = frozenset(played.selected & played_rows)
        live_rows = frozenset(live.row for live, row in pairs if row in rows)
        return (
            ComparedSide(transcript=_without_findings(before), rows=rows),
            ComparedSide(transcript=_without_findings(after), rows=live_rows),
        )
    unknown_live = {live.row for live, row in pairs if row in unknown}
    rows_after = [row for row in after.rows if not isinstance(row, Exchange) or row.row not in unknown_live]
    return (
        ComparedSide(transcript=_only_played(before, played, played_rows, unknown)),
        ComparedSide(transcript=Transcript(captures=after.captures, rows=rows_after)),
    )


def _without_findings(transcript: Transcript) -> Transcript:
    return Transcript(captures=transcript.captures, rows=transcript.rows)


def _pairs(after: Transcript, recorded_rows: dict[str, int], questions: dict[str, int]) -> list[tuple[Exchange, int]]:
    """Pair the live exchanges with the recorded rows that they belong to."""
    pairs: list[tuple[Exchange, int]] = []
    for exchange in after.exchanges:
        row = (recorded_rows if exchange.sender == CLIENT else questions).get(exchange.request.id or "")
        if row is not None:
            pairs.append((exchange, row))
    return pairs


def _without_redirected(after: Transcript) -> Transcript:
    """Leave out requests that the server redirected: they are there once more, with the same id."""
    last = {exchange.request.id: exchange.row for exchange in after.exchanges if exchange.sender == CLIENT}

    def is_redirected(row: Exchange) -> bool:
        status = 0 if row.transaction is None or row.response is not None else row.transaction.status
        return HTTP_REDIRECTS <= status < HTTP_ERRORS and row.sender == CLIENT and last[row.request.id] != row.row

    rows = [row for row in after.rows if not isinstance(row, Exchange) or not is_redirected(row)]
    return Transcript(captures=after.captures, rows=rows)


def _restore(pairs: list[tuple[Exchange, int]], restore: Callable[[int, bytes], bytes]) -> None:
    for exchange, row in pairs:
        for message in (exchange.request, exchange.response):
            if message is not None and message.raw:
                message.raw = restore(row, message.raw)


def _rows_with_unknown_answer(before: Transcript) -> set[int]:
    """Find the requests whose answers may have come, but are missing because the capture breaks off or has gaps."""
    return {
        exchange.row
        for exchange in before.exchanges
        if exchange.response is None
        and exchange.outcome in (Outcome.PENDING, Outcome.UNANSWERED)
        and not before.captures[exchange.capture].complete
    }


def _only_played(before: Transcript, played: PlayedPlan, played_rows: Container[int], unknown: Container[int]) -> Transcript:
    """Leave out what was not played: requests that were not sent, and what the server asked after them."""
    report = played.report
    left_out = {unsent.row for unsent in played.plan.left_out}
    unsent_ns = [unsent.message.at_ns for unsent in report.unsent if unsent.row not in left_out]
    until_ns = min(unsent_ns, default=None)

    def is_kept(row: Exchange) -> bool:
        if row.row not in played.plan.rows or row.row in unknown:
            return False
        if row.sender == CLIENT:
            return row.row in played_rows
        return until_ns is None or row.at_ns < until_ns or row.row in played_rows

    rows = [row for row in before.rows if not isinstance(row, Exchange) or is_kept(row)]
    return Transcript(captures=before.captures, rows=rows)

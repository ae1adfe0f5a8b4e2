"""Exchanges to the number of calls with each outcome: one count for the summary, the statistics, a check and the live view.

The rounds of one call count once. Polls of a task count by themselves, and so does the request that ends a subscription.
"""

from collections import Counter
from collections.abc import Iterable
from typing import TypeVar

from ..calls.call import Call, CallPart
from ..mcp.methods import LISTEN
from ..model import CaptureInfo, Exchange, Outcome, Row, Transcript

RowT = TypeVar("RowT", bound=Row)


def measured_call(call: Call | None, row: Exchange) -> Call | None:
    """Return the call that counts in place of `row`, one of its rounds; None if the exchange counts by itself.

    An exchange counts by itself if its call has no other, or is a subscription, which has no duration.
    """
    if (
        call is None
        or len(call.exchanges) == 1
        or call.is_subscription
        or call.part(row) is not CallPart.ROUND
        or not call.rounds
    ):
        return None
    return call


def outcomes(transcript: Transcript) -> Counter[Outcome]:
    """Return the number of calls in `transcript`, by outcome. A call that a gateway forwarded counts once, as its client saw it."""
    exchanges = (row for row in transcript.rows if isinstance(row, Exchange))
    return outcomes_of(once(exchanges, transcript) if transcript.hops else exchanges, transcript.captures)


def once(rows: Iterable[RowT], transcript: Transcript) -> list[RowT]:
    """Leave out the calls that a gateway made for others that are in the transcript too."""
    hops = transcript.hops
    return [row for row in rows if not (isinstance(row, Exchange) and row.row in hops and hops[row.row].outer is not row)]


def outcomes_of(rows: Iterable[Exchange], captures: list[CaptureInfo]) -> Counter[Outcome]:
    """Return the number of calls that these exchanges began, by outcome."""
    if not any(info.calls for info in captures):
        return Counter(row.outcome for row in rows)
    counts: Counter[Outcome] = Counter()
    for row in rows:
        call = measured_call(captures[row.capture].calls.get(row.row), row)
        if call is None:
            is_ended = row.method == LISTEN and row.outcome is Outcome.CANCELLED  # as every subscription ends
            counts[Outcome.OK if is_ended else row.outcome] += 1
        elif call.rounds[0] is row:
            counts[call.outcome] += 1
    return counts

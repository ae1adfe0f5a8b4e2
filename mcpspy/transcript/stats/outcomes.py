"""How many calls there are, and what became of them: one count for the summary, the numbers, a check and the live view.

The rounds of one call count once. What asks how a task stands counts by itself, as does what a subscription's end takes.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from ..calls.call import Call, CallPart

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..model import CaptureInfo, Exchange, Outcome, Transcript


def joined(call: Call | None, row: Exchange) -> Call | None:
    """The call that an exchange is a round of, if it took more than one exchange; a subscription has no end to be measured."""
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
    """What became of the calls of `transcript`."""
    return outcomes_of(transcript.exchanges, transcript.captures)


def outcomes_of(rows: Iterable[Exchange], captures: list[CaptureInfo]) -> Counter[Outcome]:
    """What became of the calls that these exchanges began."""
    if not any(source.calls for source in captures):
        return Counter(row.outcome for row in rows)
    found: Counter[Outcome] = Counter()
    for row in rows:
        call = joined(captures[row.capture].calls.get(row.row), row)
        if call is None:
            found[row.outcome] += 1
        elif call.rounds[0] is row:
            found[call.outcome] += 1
    return found

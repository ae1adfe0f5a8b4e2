"""What of a recording was played to live clients, found by asking its matcher once more what they asked.

Refuses to know a mock: it is given the transcript of what was asked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from .matching import client_sequences
from .miss import Miss

if TYPE_CHECKING:
    from ...transcript.model import Transcript
    from .matching import RequestMatcher


class Played(NamedTuple):
    """The rows of the recorded exchanges that were given, and what was asked in vain."""

    rows: frozenset[int]
    misses: tuple[Miss, ...]


def played(live: Transcript, matcher: RequestMatcher) -> Played:
    """What became of all that live clients asked. A client of stdio is the first of its mock, those of HTTP are counted."""
    given: set[int] = set()
    misses: list[Miss] = []
    counts: dict[int, int] = {}
    for way in client_sequences(live.exchanges):
        capture = way[0].capture
        walk = matcher.cursor(counts.get(capture, 0))
        counts[capture] = counts.get(capture, 0) + 1
        for exchange in way:
            found = walk.match(exchange.request)
            if isinstance(found, Miss):
                misses.append(found)
            else:
                given.add(found.row)
    return Played(frozenset(given), tuple(misses))

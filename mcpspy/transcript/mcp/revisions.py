"""The revisions of MCP: their order, and the era of each.

Source: MCP specification 2026-07-28, basic/versioning; `legacy` and `modern` are its own terms. Refuses to look into messages.
A peer may name a revision that nobody released: it keeps its name, has an era, and is held against the rules of its neighbour.
"""

import re
from enum import StrEnum
from functools import lru_cache
from typing import Final


class Era(StrEnum):
    """Whether a peer opens with a handshake and keeps state, or says who it is in every request."""

    LEGACY = "legacy"
    MODERN = "modern"


REVISIONS: Final = ("2024-10-07", "2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28")
"""Every revision that was released, the oldest first; the first of them before the release of MCP itself."""

OLDEST: Final = REVISIONS[0]
LATEST: Final = REVISIONS[-1]
FIRST_MODERN: Final = "2026-07-28"
WITH_BATCHES: Final = "2025-03-26"
"""The one revision that knows JSON-RPC batches."""

_ORDER: Final = {revision: at for at, revision in enumerate(REVISIONS)}
_MODERN_YEAR: Final = "2026"
_year = re.compile(r"\d{4}").search


def is_known(revision: str) -> bool:
    """Whether this revision was released, and is spelled as its specification spells it."""
    return revision in _ORDER


@lru_cache(maxsize=256)
def era(revision: str) -> Era:
    """The era of a revision, also of one that nobody released.

    What names a year is of that year, and modern from 2026 on; `draft` is the draft of the next one; all else is legacy.
    """
    year = _year(revision)
    if year is None:
        return Era.MODERN if revision.lower() == "draft" else Era.LEGACY
    return Era.MODERN if year[0] >= _MODERN_YEAR else Era.LEGACY


@lru_cache(maxsize=64)
def nearest(revision: str) -> str:
    """The released revision whose rules are held against `revision`: itself, else the newest of its era that is not newer.

    `2024.11.05` is held to the rules of 2024-11-05, a date to come to those of the latest.
    """
    if revision in _ORDER:
        return revision
    of_era = [one for one in REVISIONS if era(one) is era(revision)]
    if _year(revision) is None:
        return of_era[-1]
    digits = "".join(re.findall(r"\d", revision))[:8].ljust(8, "0")
    older = [one for one in of_era if one.replace("-", "") <= digits]
    return older[-1] if older else of_era[0]


def position(revision: str) -> int:
    """Where the nearest released revision stands in the order of all, from 0."""
    return _ORDER[nearest(revision)]


def span(first: str = OLDEST, last: str = LATEST) -> tuple[str, ...]:
    """The released revisions from `first` to `last`, both included."""
    return REVISIONS[_ORDER[first] : _ORDER[last] + 1]

"""Revisions of MCP: their order, and the era of each.

A peer may name a revision that was never released: it keeps its name, has an era, and follows the rules of the nearest released one.
Source: MCP specification 2026-07-28, basic/versioning; `legacy` and `modern` are its own terms.
"""

import re
from enum import StrEnum
from functools import lru_cache
from typing import Final

from ...lazy_pattern import lazy_pattern


class Era(StrEnum):
    """The era of a revision: legacy peers open with a handshake and keep state, modern ones describe themselves in every request."""

    LEGACY = "legacy"
    MODERN = "modern"


REVISIONS: Final = ("2024-10-07", "2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28")
"""Every released revision, the oldest first; the first one is older than the release of MCP itself."""

OLDEST: Final = REVISIONS[0]
LATEST: Final = REVISIONS[-1]
FIRST_MODERN: Final = "2026-07-28"
WITH_BATCHES: Final = "2025-03-26"
"""The only revision with JSON-RPC batches."""

_ORDER: Final = {revision: at for at, revision in enumerate(REVISIONS)}
_MODERN_YEAR: Final = "2026"
_year = lazy_pattern(r"\d{4}")


def is_known(revision: str) -> bool:
    """Return whether a revision was released, and is spelled as its specification spells it."""
    return revision in _ORDER


@lru_cache(maxsize=256)
def era(revision: str) -> Era:
    """Return the era of a revision, released or not.

    A revision that names a year is modern from 2026 on; `draft` is the draft of the next one, and modern; all others are legacy.
    """
    year = _year.search(revision)
    if year is None:
        return Era.MODERN if revision.lower() == "draft" else Era.LEGACY
    return Era.MODERN if year[0] >= _MODERN_YEAR else Era.LEGACY


@lru_cache(maxsize=64)
def nearest(revision: str) -> str:
    """Return the released revision whose rules apply to `revision`: itself, or else the newest one of its era that is not newer.

    The rules of 2024-11-05 apply to `2024.11.05`, those of the latest revision to a date in the future.
    """
    if revision in _ORDER:
        return revision
    of_era = [released for released in REVISIONS if era(released) is era(revision)]
    if _year.search(revision) is None:
        return of_era[-1]
    digits = "".join(re.findall(r"\d", revision))[:8].ljust(8, "0")
    older = [released for released in of_era if released.replace("-", "") <= digits]
    return older[-1] if older else of_era[0]


def position(revision: str) -> int:
    """Return the position of the nearest released revision in the order of all, from 0."""
    return _ORDER[nearest(revision)]

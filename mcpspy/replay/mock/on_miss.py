"""Policies of a mock for a request without a recorded answer.

Kept apart from `miss`, which takes 2 ms to import, and a mock without a miss never needs it.
"""

from __future__ import annotations

from collections.abc import Container
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from ...transcript.model import Exchange
    from .miss import Miss


class MissPolicy(Protocol):
    """The policy of a mock for a miss."""

    def missed(self, miss: Miss) -> Exchange | bytes | None:
        """Return the exchange to play instead, or the line to send; None to send nothing, since somebody else will answer."""


class ErrorPolicy:
    """A policy that answers a miss with the error that explains it."""

    __slots__ = ()

    def missed(self, miss: Miss) -> bytes:
        """Return the line of the error."""
        return miss.line


class NearestPolicy:
    """A policy that plays the nearest recorded exchange, if there is one. `unanswered` are the rows whose answers are missing."""

    __slots__ = ("_unanswered",)

    def __init__(self, unanswered: Container[int] = ()) -> None:
        self._unanswered = unanswered

    def missed(self, miss: Miss) -> Exchange | bytes:
        """Return the nearest exchange, or the line of the error."""
        nearest = miss.nearest
        return miss.line if nearest is None or nearest.row in self._unanswered else nearest


ERROR: Final = ErrorPolicy()

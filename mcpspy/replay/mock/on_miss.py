"""What becomes of a request that the recording has no answer for: the policies of a mock.

Refuses to decide what a miss is: a matcher does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Container

    from ...transcript.model import Exchange
    from .miss import Miss


class MissPolicy(Protocol):
    """What becomes of a request that the recording has no answer for."""

    def missed(self, miss: Miss) -> Exchange | bytes | None:
        """The recorded exchange to play instead, or the line to say; None to say nothing, as somebody else will answer."""


class ErrorPolicy:
    """The policy that answers a miss with the error that explains it."""

    __slots__ = ()

    def missed(self, miss: Miss) -> bytes:
        """The line of the error."""
        return miss.line


class NearestPolicy:
    """The policy that plays what comes nearest, if anything does: `unknown` are the rows whose answers are not there."""

    __slots__ = ("_unknown",)

    def __init__(self, unknown: Container[int] = ()) -> None:
        self._unknown = unknown

    def missed(self, miss: Miss) -> Exchange | bytes:
        """The recorded exchange, or the line of the error."""
        nearest = miss.nearest
        return miss.line if nearest is None or nearest.row in self._unknown else nearest


ERROR: Final = ErrorPolicy()

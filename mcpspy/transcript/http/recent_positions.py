"""The payloads of a capture, with the positions of the newest messages in them: to pack these, payloads are not read again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from ...records import Record
    from ..packing.rows import PayloadSource

_MOST: Final = 1 << 16
"""At so many positions all are dropped, because messages that are never packed leave theirs behind."""


class RecentPositions:
    """The payloads of `source`. `note` takes what is in a record that was just read; `position` then knows where it begins."""

    __slots__ = ("_positions", "_source")

    def __init__(self, source: PayloadSource) -> None:
        self._source = source
        self._positions: dict[int, int] = {}

    @property
    def is_regular(self) -> bool:
        """True if no number of a record has come again."""
        return self._source.is_regular

    def note(self, number: int, payload: bytes, part: bytes) -> None:
        """Note where in the payload of a record its only message begins."""
        if len(self._positions) >= _MOST:
            self._positions.clear()
        self._positions[number] = payload.find(part)

    def position(self, number: int, part: bytes) -> int:
        """Return where in the payload of record `number` this part of it begins; -1 if it cannot be read again as such."""
        begin = self._positions.pop(number, -1)
        return begin if begin >= 0 and self._source.is_regular else self._source.position(number, part)

    def payload(self, number: int) -> bytes:
        """Read the payload of a record. Raises: CaptureError; OSError."""
        return self._source.payload(number)

    def record(self, number: int) -> Record | None:
        """Read a record; None if it cannot be read again. Raises: CaptureError; OSError."""
        return self._source.record(number)

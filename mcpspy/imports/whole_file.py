"""The part that importers share whose file makes sense only as a whole: its bytes, and what of it was not read."""

from __future__ import annotations

from .source import SessionRecord, Source


class WholeFileImporter:
    """An importer that reads when the last byte has come. It holds at most `MAX_FILE_BYTES`, and reads no file that is larger."""

    __slots__ = ("_data", "_source", "_wrong")

    MAX_FILE_BYTES = 1 << 28
    TOO_LARGE = "a file of more than 256 MiB"

    def __init__(self, source: Source) -> None:
        self._source = source
        self._data = bytearray()
        self._wrong: dict[str, int] = {}

    def feed(self, data: bytes) -> list[SessionRecord]:
        if len(self._data) <= self.MAX_FILE_BYTES:
            self._data += data
        return []

    def passed_over(self) -> list[str]:
        """Say what the file has that is not read."""
        return [f"not read: {count} × {why}" for why, count in self._wrong.items()]

    def _count(self, why: str, count: int = 1) -> None:
        self._wrong[why] = self._wrong.get(why, 0) + count

    def _whole(self) -> bytearray | None:
        """Return the bytes of the file, which are no longer held here; None if there are too many."""
        data, self._data = self._data, bytearray()
        if len(data) <= self.MAX_FILE_BYTES:
            return data
        self._count(self.TOO_LARGE)
        return None

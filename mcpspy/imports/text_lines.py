"""Lines of a text file that is imported, from chunks cut anywhere, in bounded memory.

A capture keeps a line of any length, as `wire.lines` returns it in parts. An importer reads whole lines or none: half a line of
a log says nothing.
"""

from __future__ import annotations

from typing import Final

MAX_LINE_BYTES: Final = 1 << 26
"""A longer line is left out."""


class WholeLines:
    """Lines without their line feeds. One that is longer than `MAX_LINE_BYTES` is returned empty, so that line numbers hold."""

    __slots__ = ("_held", "_held_bytes", "_is_too_long", "_left_out")

    def __init__(self) -> None:
        self._held: list[bytes] = []
        self._held_bytes = 0
        self._is_too_long = False
        self._left_out = 0

    def feed(self, data: bytes) -> list[bytes]:
        """Return the lines that `data` ends."""
        head, newline, rest = data.rpartition(b"\n")
        lines: list[bytes] = []
        if newline:
            first, *lines = head.split(b"\n")
            self._hold(first)
            lines.insert(0, self._take())
        self._hold(rest)
        return lines

    def close(self) -> list[bytes]:
        """Return the last line if no line feed ended it; otherwise nothing."""
        return [self._take()] if self._held or self._is_too_long else []

    def left_out(self) -> list[str]:
        """Say how many lines were left out, if any."""
        count = self._left_out
        return [f"not read: {count} line{'s' * (count > 1)} longer than {MAX_LINE_BYTES >> 20} MiB"] if count else []

    def _hold(self, data: bytes) -> None:
        if not data or self._is_too_long:
            return
        self._held.append(data)
        self._held_bytes += len(data)
        if self._held_bytes > MAX_LINE_BYTES:
            self._held, self._is_too_long = [], True
            self._left_out += 1

    def _take(self) -> bytes:
        line = b"".join(self._held)
        self._held, self._held_bytes, self._is_too_long = [], 0, False
        return line

"""Records to disk: appends lines, one `write` per batch of records, and never raises towards the traffic.

What cannot be written is counted, and a `gap` record says so as soon as writing works again; of a line that went half to
disk the other half is kept and written first, so that the file needs no repair. Refuses to read clocks: records carry
their time.
"""

from __future__ import annotations

import os

from ..records import End, Frame, Gap, Note
from .format import frame_line, record_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..records import Record


class Writer:
    """A sink that appends to the capture open at descriptor `fd`.

    `header_line` goes first, with the first batch (an empty one will do). `max_bytes` bounds the file: past it frames keep
    their length and SHA-256 but not their bytes (0: no bound). `complain` is called with one line when recording fails for
    the first time. `later` is called with `sync` whenever something was written since the last one; it decides when to call.
    """

    __slots__ = (
        "_complain", "_dirty", "_fd", "_gap", "_later", "_max_bytes", "_over", "_owed", "_size", "bytes", "failed", "frames",
        "number",
    )  # fmt: skip

    def __init__(
        self,
        fd: int,
        header_line: bytes,
        *,
        max_bytes: int = 0,
        complain: Callable[[str], None] = lambda line: None,
        later: Callable[[Callable[[], None]], None] = lambda sync: None,
    ) -> None:
        self._fd = fd
        self._owed = header_line
        self._max_bytes = max_bytes
        self._complain = complain
        self._later = later
        self._gap: Gap | None = None
        self._over = False
        self._size = 0
        self._dirty = False
        self.number = 1
        self.frames = 0
        self.bytes = 0
        self.failed = False

    def __call__(self, records: Sequence[Record]) -> None:
        """Append `records` with one write. Failure is remembered and told once, never raised."""
        if self._gap is not None or self._over:
            records = self._amended(records)
        number = self.number
        lines = [self._owed]
        for record in records:
            lines.append(frame_line(number, record) if record.__class__ is Frame else record_line(number, record))  # type: ignore[arg-type]  # the class was just compared
            number += 1
        data = b"".join(lines)
        try:
            written = os.write(self._fd, data)
            why = "the disk took only a part"
        except OSError as error:
            written, why = 0, error.strerror or str(error)
        if written == len(data):
            self._owed = b""
            self._gap = None
            self.number = number
        else:
            records = self._failed(lines, records, written, why)
        self._count(records, written)

    def close(self, at_ns: int, why: str = "") -> None:
        """Write the `end` record, wait for the disk, and close the descriptor."""
        self((End(at_ns=at_ns, frames=self.frames, bytes=self.bytes, why=why),))
        self._later = lambda sync: None
        self.sync()
        os.close(self._fd)

    def sync(self) -> None:
        """Wait until what was written is on disk. Errors are left to the next write, which meets them too."""
        self._dirty = False
        try:
            (os.fdatasync if hasattr(os, "fdatasync") else os.fsync)(self._fd)
        except OSError:
            pass

    def _count(self, records: Sequence[Record], written: int) -> None:
        for record in records:
            if record.__class__ is Frame:
                self.frames += 1
                self.bytes += record.length  # type: ignore[union-attr]  # the class was just compared
        self._size += written
        if written and not self._dirty:
            self._dirty = True
            self._later(self.sync)
        if self._max_bytes and self._size > self._max_bytes and not self._over:
            self._over = True
            at_ns = records[-1].at_ns if records else 0
            text = f"--max-size {self._max_bytes} is reached: from here on payloads are kept as length and SHA-256"
            self((Note(at_ns=at_ns, topic="max-size", text=text),))

    def _amended(self, records: Sequence[Record]) -> Sequence[Record]:
        """`records` with a due gap before them, and without payloads past the size bound."""
        amended = [_hashed(record) if self._over and record.__class__ is Frame else record for record in records]  # type: ignore[arg-type]  # the class was just compared
        if self._gap is not None:
            self._gap.at_ns = records[0].at_ns if records else self._gap.at_ns
            amended.insert(0, self._gap)
        return amended

    def _failed(self, lines: list[bytes], records: Sequence[Record], written: int, why: str) -> Sequence[Record]:
        """Remember what a short or failed write left out; the records that count as written are returned."""
        whole = 0
        while written >= len(lines[whole]):
            written -= len(lines[whole])
            whole += 1
        # lines[whole] is the first that is not whole on disk; lines[0] is what was owed, so it belongs to records[whole - 1]
        if written or whole == 0:
            self._owed = lines[whole][written:]
            kept = records[:whole]
        else:
            self._owed = b""
            kept = records[: whole - 1]
        self.number += len(kept)
        self._lose(records[len(kept) :], why)
        if not self.failed:
            self.failed = True
            self._complain(f"mcpspy: recording stopped ({why}); traffic goes on unrecorded")
        return kept

    def _lose(self, lost: Sequence[Record], why: str) -> None:
        """Start or lengthen the gap by `lost`, whose first member may be the gap that could not be written."""
        gap: Gap | None = None
        for record in lost:
            if record.__class__ is Gap:
                gap = record  # type: ignore[assignment]  # the class was just compared
                continue
            if gap is None:
                gap = Gap(at_ns=record.at_ns, since_ns=record.at_ns, frames=0, bytes=0, why=why)
            if record.__class__ is Frame:
                gap.frames += 1
                gap.bytes += record.length  # type: ignore[union-attr]  # the class was just compared
        self._gap = gap


def _hashed(frame: Frame) -> Frame:
    """`frame` with the length and digest of its bytes in their place."""
    from hashlib import sha256  # 3 ms to import, and hardly ever wanted

    return Frame(
        frame.stream,
        frame.at_ns,
        frame.first_ns,
        b"",
        frame.part,
        forged=frame.forged,
        chunks=frame.chunks,
        length=len(frame.data),
        sha256=sha256(frame.data).hexdigest(),
        extra=frame.extra,
    )

"""One imported session on stdio: its messages and log lines in, the records of its capture out.

A file has no records of streams, so they are made when the first message comes: stdin, stdout, and stderr if there are lines for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from ..records import CLIENT, SERVER, Close, End, Exit, Frame, Gap, Note, Open, Record, Side
from .source import MISSING, SessionRecord, Source, header

STDIN: Final = 0
STDOUT: Final = 1
STDERR: Final = 2
NOTE_TOPIC: Final = "import"
MAX_NS: Final = 1 << 62
"""A later time is damage, and takes more than 64 bits in sums."""

_STREAMS: Final[tuple[tuple[str, Side], ...]] = (("stdin", CLIENT), ("stdout", SERVER), ("stderr", SERVER))


class StdioSession:
    """Records of one session, numbered `number`. Without times (`facts["times"]` is missing) all of them are of one instant.

    Times are Unix time in nanoseconds. One that is earlier than the time before it becomes that: order is the file's.
    """

    __slots__ = (
        "_closed",
        "_facts",
        "_has_times",
        "_label",
        "_last_ns",
        "_number",
        "_opened",
        "_source",
        "_wall_ns",
        "messages",
    )

    def __init__(self, source: Source, number: int, *, label: str, wall_ns: int | None, facts: Mapping[str, str]) -> None:
        self._source = source
        self._number = number
        self._label = label
        self._facts = facts
        self._has_times = facts.get("times", MISSING) != MISSING
        self._wall_ns = source.wall_ns if wall_ns is None else wall_ns
        self._last_ns = 0
        self._opened = 0
        self._closed: set[int] = set()
        self.messages = 0

    def frame(self, wall_ns: int | None, stream: int, data: bytes, *, is_part: bool = False) -> list[SessionRecord]:
        """Take the next message, or a line of stderr, or a part of one."""
        records = self._begin()
        if stream == STDERR and self._opened < len(_STREAMS):
            records.append(self._open(STDERR))
        at_ns = self._at_ns(wall_ns)
        self.messages += stream != STDERR and not is_part
        return self._numbered([*records, Frame(stream, at_ns, at_ns, data, is_part)])

    def close_stream(self, wall_ns: int | None, stream: int, by: Side) -> list[SessionRecord]:
        """Take the end of a stream."""
        if stream in self._closed or not self._opened:
            return []
        self._closed.add(stream)
        return self._numbered([Close(at_ns=self._at_ns(wall_ns), by=by, how="eof", stream=stream)])

    @property
    def is_closed(self) -> bool:
        """True if a stream has ended."""
        return bool(self._closed)

    def exit(self, wall_ns: int | None, pid: int, code: int | None, signal: str | None) -> list[SessionRecord]:
        """Take the end of the server's process."""
        return self._numbered([*self._begin(), Exit(at_ns=self._at_ns(wall_ns), pid=pid, code=code, signal=signal)])

    def gap(self, wall_ns: int | None, size_bytes: int, why: str, frames: int = 1) -> list[SessionRecord]:
        """Take messages of which the file does not have all bytes."""
        at_ns = self._at_ns(wall_ns)
        return self._numbered([*self._begin(), Gap(at_ns=at_ns, bytes=size_bytes, frames=frames, since_ns=at_ns, why=why)])

    def note(self, text: str) -> list[SessionRecord]:
        """Tell the reader of the capture something about the file."""
        return self._numbered([Note(at_ns=self._last_ns, text=text, topic=NOTE_TOPIC)]) if self._opened else []

    def end(self, why: str, notes: Iterable[str] = ()) -> list[SessionRecord]:
        """End the session, after notes of what the file has that is not in it."""
        if not self._opened:
            return []
        records = [record for text in notes for record in self.note(text)]
        return [*records, *self._numbered([End(at_ns=self._last_ns, bytes=0, frames=0, why=why)])]

    def _begin(self) -> list[Record]:
        if self._opened:
            return []
        head = header(self._source, self._number, label=self._label, wall_ns=self._wall_ns, facts=self._facts)
        return [head, self._open(STDIN), self._open(STDOUT)]

    def _open(self, stream: int) -> Open:
        name, sender = _STREAMS[stream]
        self._opened = stream + 1
        return Open(at_ns=self._last_ns, name=name, sender=sender, stream=stream)

    def _at_ns(self, wall_ns: int | None) -> int:
        if self._has_times and wall_ns is not None:
            self._last_ns = max(self._last_ns, min(MAX_NS, wall_ns - self._wall_ns))
        return self._last_ns

    def _numbered(self, records: list[Record]) -> list[SessionRecord]:
        return [(self._number, record) for record in records]

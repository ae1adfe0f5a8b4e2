"""Records of bytes that are not HTTP: those after an upgrade, and those from the point on where a message is refused.

The bytes of each side are one endless body, and each read is a part of it. They are not parsed.
"""

from __future__ import annotations

from ...records import CLIENT, SERVER, Frame, Record
from .recorder import Numbers, StreamRecorder


class OpaqueStreams:
    """The opaque bytes of one connection in both directions. Each method returns the records that became due."""

    __slots__ = ("_connection", "_numbers", "_streams")

    def __init__(self, numbers: Numbers, connection: int) -> None:
        self._numbers = numbers
        self._connection = connection
        self._streams: dict[str, StreamRecorder] = {}

    def feed(self, side: str, data: bytes, now_ns: int) -> list[Record]:
        """Record bytes that `side` sent."""
        if not data:
            return []
        records: list[Record] = []
        stream = self._streams.get(side)
        if stream is None:
            stream = StreamRecorder(self._numbers.stream(), CLIENT if side == CLIENT else SERVER, "body")
            self._streams[side] = stream
            records.append(stream.open(now_ns, b"", transaction=0, connection=self._connection))
        if stream.is_open:
            records.append(Frame(stream.number, now_ns, now_ns, data, part=True))
        return records

    def close(self, now_ns: int, by: str, how: str) -> list[Record]:
        """Record the end of the connection."""
        return [record for stream in self._streams.values() if stream.is_open for record in stream.close(now_ns, by, how)]

"""What an HTTP tap writes down of bytes that are no HTTP: after an upgrade, and from the point on where a message is refused.

Each side's are one endless body, of which each read is a part. Refuses to look into them.
"""

from __future__ import annotations

from ...records import CLIENT, SERVER, Frame, Record
from .recorder import Numbers, Recorded


class Opaque:
    """The opaque bytes of one connection, both directions: each method returns the records that became due."""

    __slots__ = ("_connection", "_numbers", "_streams")

    def __init__(self, numbers: Numbers, connection: int) -> None:
        self._numbers = numbers
        self._connection = connection
        self._streams: dict[str, Recorded] = {}

    def took(self, side: str, data: bytes, now_ns: int) -> list[Record]:
        """`side` sent these."""
        if not data:
            return []
        records: list[Record] = []
        stream = self._streams.get(side)
        if stream is None:
            stream = Recorded(self._numbers.stream(), CLIENT if side == CLIENT else SERVER, "body")
            self._streams[side] = stream
            records.append(stream.begun(now_ns, b"", transaction=0, connection=self._connection))
        if stream.is_open:
            records.append(Frame(stream.number, now_ns, now_ns, data, part=True))
        return records

    def closed(self, now_ns: int, by: str, how: str) -> list[Record]:
        """The connection ended."""
        return [record for stream in self._streams.values() if stream.is_open for record in stream.ended(now_ns, by, how)]

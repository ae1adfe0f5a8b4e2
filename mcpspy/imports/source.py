"""Facts about a file that is imported, the header of a capture that is made of it, and how its bytes are taken: whole, or by lines.

A capture of a tap has everything that was on the wire. A file that something else recorded lacks some of it, and the header
says what: each fact of `FACTS` is `exact` (as it was on the wire), `reconstructed` (concluded from what the file has) or
`missing`.

Lines come from chunks cut anywhere, in bounded memory. A capture keeps a line of any length, as `wire.lines` returns it in
parts. An importer reads whole lines or none: half a line of a log says nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from typing import Final, TypeAlias

import msgspec

from ..records import Header, Record

EXACT: Final = "exact"
RECONSTRUCTED: Final = "reconstructed"
MISSING: Final = "missing"

FACTS: Final = ("bytes", "senders", "times", "ends", "noise", "process", "heads", "beginning")
"""`bytes` of messages, their `senders`, their `times`; the `ends` of streams and who ended them; `noise` between messages; the
server's `process` and its exit; the `heads` of HTTP; and the `beginning` of the session."""

SessionRecord: TypeAlias = tuple[int, Record]
"""A record, after the number of its session in the file, from 0. The first record of a session is its header, the last its `end`."""

MAX_LINE_BYTES: Final = 1 << 26
"""A longer line is left out."""


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """The file that is imported. `wall_ns` is when it was last changed, as Unix time; `sha256` is empty for one that still grows."""

    name: str
    format: str
    wall_ns: int = 0
    size_bytes: int = 0
    sha256: str = ""

    @property
    def label(self) -> str:
        """The name of its server, as far as the name of the file tells: `weather` for `mcp-server-weather.log`."""
        stem = self.name.rpartition("/")[2].rpartition("\\")[2]
        stem = stem.rpartition(".")[0] or stem
        return stem.removeprefix("mcp-server-") if stem != "-" else ""


def header(
    source: Source,
    session: int,
    *,
    label: str,
    wall_ns: int,
    facts: Mapping[str, str],
    tapped: Mapping[str, object] | None = None,
    address: str = "",
) -> Header:
    """Make the header of the capture of one session. Its id depends on the file alone: one file always makes the same captures.

    `address` is where the server was, for one that goes by another name.
    """
    file = source.sha256 or f"{source.name} {source.wall_ns}"
    origin = f"{file} {session}".encode("utf-8", "surrogatepass")
    imported: dict[str, object] = {"format": source.format, "file": source.name.rpartition("/")[2]}
    if source.sha256:
        imported |= {"bytes": source.size_bytes, "sha256": source.sha256}
    if address:
        imported["address"] = address
    imported["facts"] = {name: facts.get(name, MISSING) for name in FACTS}
    return Header(
        capture_id=sha256(origin).hexdigest()[:16],
        label=label or source.label,
        monotonic_ns=0,
        pid=0,
        tapped={"transport": "stdio", **(tapped or {}), "imported": imported},
        wall_ns=wall_ns,
    )


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

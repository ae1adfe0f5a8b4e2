"""Session logs of mcpsnoop: lines of JSON in, records of one session for each client's connection out.

    {"session_id":"…","server_label":"weather","seq":1,"ts":"2026-…Z","direction":"c2s","transport":"stdio","raw":{…}}

Directions are `c2s`, `s2c`, `stderr` and `meta`, the first line, with the command. Source: `internal/proxy/frame.go` of
kerlenton/mcpsnoop.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

import msgspec

from .session import STDERR, STDIN, STDOUT, StdioSession
from .source import EXACT, MISSING, RECONSTRUCTED, SessionRecord, Source
from .text_lines import WholeLines

_STREAMS: Final = {"c2s": STDIN, "s2c": STDOUT, "stderr": STDERR}
_NO_RAW: Final = msgspec.Raw(b"")


class _SnoopLine(msgspec.Struct):
    """A line, as far as it is read."""

    session_id: str
    direction: str
    ts: str
    server_label: str = ""
    conn_id: str = ""
    raw: msgspec.Raw = _NO_RAW
    text: str = ""
    truncated: bool = False


_decode = msgspec.json.Decoder(_SnoopLine).decode


def is_mcpsnoop(head: bytes) -> bool:
    """Return whether a file that begins with these bytes is a log of mcpsnoop."""
    try:
        envelope = _decode(head.partition(b"\n")[0])
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return False
    return envelope.direction in (*_STREAMS, "meta")


class SnoopImporter:
    """Records from the bytes of such a log, cut anywhere, each after the number of its session."""

    __slots__ = ("_lines", "_sessions", "_source", "_unread")

    def __init__(self, source: Source) -> None:
        self._source = source
        self._lines = WholeLines()
        self._sessions: dict[tuple[str, str], StdioSession] = {}
        self._unread = 0

    def feed(self, data: bytes) -> list[SessionRecord]:
        return [record for line in self._lines.feed(data) for record in self._line(line)]

    def close(self) -> list[SessionRecord]:
        records = [record for line in self._lines.close() for record in self._line(line)]
        for session in self._sessions.values():
            records += session.end("end of the log of mcpsnoop", notes=self.passed_over())
        return records

    def passed_over(self) -> list[str]:
        """Say what the file has that is not read."""
        unread = [f"not read: {self._unread} lines that are not mcpsnoop's"] if self._unread else []
        return [*unread, *self._lines.left_out()]

    def _line(self, line: bytes) -> list[SessionRecord]:
        if not line.strip():
            return []
        try:
            envelope = _decode(line)
            wall_ns = _time_ns(envelope.ts)
        except (msgspec.MsgspecError, ValueError, RecursionError, OverflowError):
            self._unread += 1
            return []
        stream = _STREAMS.get(envelope.direction)
        if stream is None:
            return []  # the command, which may have secrets
        key = envelope.session_id, envelope.conn_id
        raw = bytes(envelope.raw)
        session = self._sessions.get(key)
        if session is None:
            begins = b'"initialize"' in raw or b"server/discover" in raw
            facts = {
                "bytes": RECONSTRUCTED, "senders": EXACT, "times": EXACT, "ends": MISSING, "noise": EXACT, "process": MISSING,
                "heads": MISSING, "beginning": EXACT if begins else MISSING,
            }  # fmt: skip
            number = len(self._sessions)
            session = StdioSession(self._source, number, label=envelope.server_label, wall_ns=wall_ns, facts=facts)
            self._sessions[key] = session
        data = raw or envelope.text.encode("utf-8", "surrogatepass")
        if envelope.truncated:
            return session.gap(wall_ns, len(data), "mcpsnoop kept only the beginning of a message")
        return session.frame(wall_ns, stream, data + b"\n")


def _time_ns(text: str) -> int:
    """Return a time of RFC 3339 to the nanosecond, which Python's own has not."""
    whole, dot, rest = text.partition(".")
    digits = rest[: len(rest) - len(rest.lstrip("0123456789"))] if dot else ""
    at = datetime.fromisoformat(whole + rest[len(digits) :])
    return int(at.timestamp()) * 1_000_000_000 + int(digits.ljust(9, "0")[:9])

"""Session logs of mcpsnoop: lines of JSON in, records of its sessions out.

    {"session_id":"…","server_label":"weather","seq":1,"ts":"2026-…Z","direction":"c2s","transport":"stdio","raw":{…}}

Directions are `c2s`, `s2c`, `stderr` and `meta`, the first line, with the command. A log of HTTP has the client's connections, many
of one client, and statuses without a message. mcpsnoop writes a message after it has passed it on, so a quick answer may stand before
its request:

    "seq":9  c2s  the answer 1     waits here, because nothing asked for it
    "seq":10 s2c  the request 1    is returned, and the answer after it

Source: `internal/proxy/frame.go`, `stdio.go` and `http.go` of kerlenton/mcpsnoop.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

import msgspec

from .session import STDERR, STDIN, STDOUT, StdioSession
from .source import EXACT, MISSING, RECONSTRUCTED, SessionRecord, Source, WholeLines

_FIRST_ERROR: Final = 400
_STREAMS: Final = {"c2s": STDIN, "s2c": STDOUT, "stderr": STDERR}
MAX_MESSAGES_HELD: Final = 16
"""An answer waits for its request while so many messages come."""

_NO_RAW: Final = msgspec.Raw(b"")


class _SnoopLine(msgspec.Struct):
    """A line, as far as it is read."""

    session_id: str
    direction: str
    ts: str
    server_label: str = ""
    conn_id: str = ""
    seq: int = 0
    status: int = 0
    raw: msgspec.Raw = _NO_RAW
    text: str = ""
    truncated: bool = False


class _SnoopMessage(msgspec.Struct):
    """The members of a message that tell whether it asks or answers."""

    id: msgspec.Raw = _NO_RAW
    method: str | None = None


_decode = msgspec.json.Decoder(_SnoopLine).decode
_decode_message = msgspec.json.Decoder(_SnoopMessage).decode


class _HeldAnswer(msgspec.Struct):
    """An answer that waits for its request. `left` counts the messages for which it still does."""

    wall_ns: int
    stream: int
    id: bytes
    data: bytes
    left: int = MAX_MESSAGES_HELD


class _SnoopSession:
    """One session: its records, the requests that are open, each with its connection, and answers that came before theirs."""

    __slots__ = ("_held", "_open", "records")

    def __init__(self, records: StdioSession) -> None:
        self.records = records
        self._open: dict[tuple[int, bytes], str] = {}
        self._held: list[_HeldAnswer] = []

    def is_taken(self, message: _SnoopMessage, connection: str) -> bool:
        """Return whether this request has the id of one that is open on another connection: then another client sent it."""
        key = STDIN, bytes(message.id)
        return message.method is not None and message.id != _NO_RAW and self._open.get(key, connection) != connection

    def take(
        self, wall_ns: int, stream: int, data: bytes, message: _SnoopMessage | None, connection: str
    ) -> list[SessionRecord]:
        """Take the next message. An answer that nothing has asked for waits for its request."""
        records: list[SessionRecord] = []
        id = bytes(message.id) if message is not None else b""
        if message is not None and id and message.method is None:
            if self._open.pop((STDIN + STDOUT - stream, id), None) is None:
                self._held.append(_HeldAnswer(wall_ns, stream, id, data))
                return records
        elif message is not None and id:
            self._open[stream, id] = connection
        records += self.records.frame(wall_ns, stream, data)
        return records + self._release(stream, id) if self._held else records

    def close(self) -> list[SessionRecord]:
        """Return the answers that still wait."""
        held, self._held = self._held, []
        return [record for answer in held for record in self.records.frame(answer.wall_ns, answer.stream, answer.data)]

    def _release(self, stream: int, id: bytes) -> list[SessionRecord]:
        """Return the answer to the request that came, and those that have waited long enough."""
        records: list[SessionRecord] = []
        held, self._held = self._held, []
        for answer in held:
            answer.left -= 1
            if answer.id == id and answer.stream != stream and (stream, id) in self._open:
                del self._open[stream, id]
            elif answer.left:
                self._held.append(answer)
                continue
            records += self.records.frame(answer.wall_ns, answer.stream, answer.data)
        return records


def is_mcpsnoop(head: bytes) -> bool:
    """Return whether a file that begins with these bytes is a log of mcpsnoop."""
    try:
        envelope = _decode(head.partition(b"\n")[0])
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return False
    return envelope.direction in (*_STREAMS, "meta")


class SnoopImporter:
    """Records from the bytes of such a log, cut anywhere, each after the number of its session."""

    __slots__ = ("_lines", "_of_connections", "_seqs", "_sessions", "_source", "_unread")

    def __init__(self, source: Source) -> None:
        self._source = source
        self._lines = WholeLines()
        self._sessions: list[_SnoopSession] = []
        self._of_connections: dict[tuple[str, str], _SnoopSession] = {}
        """By mcpsnoop's name of a session and a connection; the newest of that name without one."""
        self._seqs: dict[str, int] = {}
        self._unread = 0

    def feed(self, data: bytes) -> list[SessionRecord]:
        return [record for line in self._lines.feed(data) for record in self._line(line)]

    def close(self) -> list[SessionRecord]:
        records = [record for line in self._lines.close() for record in self._line(line)]
        for session in self._sessions:
            records += session.close()
            records += session.records.end("end of the log of mcpsnoop", notes=self.passed_over())
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
        lost = envelope.seq - self._seqs.get(envelope.session_id, envelope.seq - 1) - 1
        self._seqs[envelope.session_id] = max(envelope.seq, self._seqs.get(envelope.session_id, 0))
        stream = _STREAMS.get(envelope.direction)
        if stream is None:
            return []  # the command, which may have secrets
        raw = bytes(envelope.raw)
        message = _message(raw) if stream != STDERR else None
        session = self._session(envelope, wall_ns, raw, message)
        records: list[SessionRecord] = []
        if lost > 0:
            records += session.records.gap(wall_ns, 0, f"mcpsnoop dropped {lost} messages", frames=lost)
        data = raw or envelope.text.encode("utf-8", "surrogatepass")
        if envelope.truncated:
            return records + session.records.gap(wall_ns, len(data), "mcpsnoop kept only the beginning of a message")
        if not data and envelope.status:
            if envelope.status < _FIRST_ERROR:
                return records
            return records + session.records.gap(wall_ns, 0, f"the server answered with HTTP status {envelope.status}")
        return records + session.take(wall_ns, stream, data + b"\n", message, envelope.conn_id)

    def _session(self, envelope: _SnoopLine, wall_ns: int, raw: bytes, message: _SnoopMessage | None) -> _SnoopSession:
        """Return the session of a line: that of its connection, else the newest. `initialize` over HTTP begins one."""
        name, connection = envelope.session_id, envelope.conn_id
        begins = message is not None and message.method in ("initialize", "server/discover")
        session = self._of_connections.get((name, connection)) or self._of_connections.get((name, ""))
        if connection and message is not None and message.method == "initialize":
            session = None
        if (
            session is not None
            and message is not None
            and envelope.direction == "c2s"
            and session.is_taken(message, connection)
        ):
            session = None
        if session is None:
            facts = {
                "bytes": RECONSTRUCTED, "senders": EXACT, "times": EXACT, "ends": MISSING, "noise": EXACT, "process": MISSING,
                "heads": MISSING, "beginning": EXACT if begins else MISSING,
            }  # fmt: skip
            label, number = envelope.server_label, len(self._sessions)
            session = _SnoopSession(StdioSession(self._source, number, label=label, wall_ns=wall_ns, facts=facts))
            self._sessions.append(session)
            self._of_connections[name, ""] = session
        self._of_connections[name, connection] = session
        return session


def _message(raw: bytes) -> _SnoopMessage | None:
    try:
        return _decode_message(raw)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None


def _time_ns(text: str) -> int:
    """Return a time of RFC 3339 to the nanosecond, which Python's own has not."""
    whole, dot, rest = text.partition(".")
    digits = rest[: len(rest) - len(rest.lstrip("0123456789"))] if dot else ""
    at = datetime.fromisoformat(whole + rest[len(digits) :])
    return int(at.timestamp()) * 1_000_000_000 + int(digits.ljust(9, "0")[:9])

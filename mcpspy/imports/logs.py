"""Logs in which JSON-RPC messages stand in lines: bytes in, records of one session for each start of each server out.

A line is a message if it has one, whatever is around it; the time and the sender are taken from the words before it. A client's
`initialize`, or a line that says that a server is started, begins a session. Other lines of a server's own log are its stderr.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Any, Final

import msgspec

from ..records import CLIENT, SERVER
from .log_messages import LineMessage, message_in
from .log_senders import Senders
from .log_times import LogClock
from .session import STDERR, STDIN, STDOUT, StdioSession
from .source import EXACT, MISSING, RECONSTRUCTED, SessionRecord, Source
from .text_lines import WholeLines

MAX_HELD_LINES: Final = 10_000
"""So many lines wait until it is known whose log it is."""

MAX_NAMED_LINES: Final = 5
"""So many lines that were left out are named; more are counted."""

_DESKTOP: Final = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+Z\s+((?:\[[^\]\n]{1,200}\]\s*){1,3})")
"""The beginning of a line of Claude Desktop: a time, the server's name and the level, in either order."""
_BRACKETS: Final = re.compile(r"\[([^\]]*)\]")
_LEVELS: Final = frozenset({"info", "warn", "warning", "error", "debug", "trace", "fatal", "verbose"})
_MCP_SERVER: Final = re.compile(r"""MCP server ["']([^"'\n]{1,200})["']""")
"""The words of Claude Code."""

_STARTING: Final = re.compile(r"\b(?:Initializing|Starting) server\b", re.IGNORECASE)
_SERVER_CLOSED: Final = re.compile(r"\bServer transport closed\b", re.IGNORECASE)
_CLIENT_CLOSED: Final = re.compile(r"\bClient transport closed\b", re.IGNORECASE)
_AGAIN: Final = re.compile(r"Received JSON: b['\"]|Sending session message to writer|Client message sent successfully")
"""Words of the Python SDK before a message that it also logs in another form."""

_STREAMABLE: Final = "mcp.client.streamable_http"
_NO_JSON_ANSWERS: Final = "the Python SDK does not log answers that come as JSON"

_STREAMS: Final = {CLIENT: STDIN, SERVER: STDOUT}


class HeldLine(msgspec.Struct):
    """A line whose sender is not known yet: a message, or text."""

    number: int
    wall_ns: int | None
    text: str
    message: LineMessage | None = None


class _ServerLog:
    """The lines about one server, in order."""

    __slots__ = ("held", "label", "last", "lost", "omits_answers", "senders", "session", "skipped")

    def __init__(self, label: str) -> None:
        self.label = label
        self.session: StdioSession | None = None
        self.senders = Senders()
        self.held: list[HeldLine] = []
        self.last: tuple[str, Any] = ("", None)
        self.lost: list[int] = []
        self.skipped: Counter[str] = Counter()
        self.omits_answers = False


class LogImporter:
    """Records from the bytes of a log, cut anywhere. `feed` and `close` return them, each after the number of its session."""

    __slots__ = ("_clock", "_is_desktop", "_last_ns", "_line", "_lines", "_logs", "_sessions", "_source")

    def __init__(self, source: Source) -> None:
        self._source = source
        self._clock = LogClock(source.wall_ns)
        self._lines = WholeLines()
        self._is_desktop = False
        self._last_ns: int | None = None
        self._line = 0
        self._logs: dict[str, _ServerLog] = {}
        self._sessions = 0

    def feed(self, data: bytes) -> list[SessionRecord]:
        return [record for line in self._lines.feed(data) for record in self._text(line)]

    def close(self) -> list[SessionRecord]:
        records = [record for line in self._lines.close() for record in self._text(line)]
        for log in self._logs.values():
            records += self._end(log)
        return records

    def passed_over(self) -> list[str]:
        """Say what the file has that is not read. Notes in the captures name the messages that nothing told the sender of."""
        return self._lines.left_out()

    def _text(self, data: bytes) -> list[SessionRecord]:
        self._line += 1
        line = data.decode("utf-8", "replace").rstrip("\r").removeprefix("\ufeff")
        if not line.strip():
            return []
        message = message_in(line) if "{" in line or "JSONRPC" in line or "jsonrpc=" in line else None
        before = line if message is None else message.before
        wall_ns = self._clock.time_ns(before)
        self._last_ns = wall_ns or self._last_ns
        label = self._label(before)
        log = self._logs.get(label)
        if log is None:
            log = self._logs[label] = _ServerLog(label)
        held = HeldLine(self._line, wall_ns or self._last_ns, line, message)
        if message is None:
            return self._plain(log, held, has_time=wall_ns is not None)
        if _AGAIN.search(before) or self._is_repeated(log, message):
            return []
        return self._message(log, held)

    def _label(self, before: str) -> str:
        """Return the name of the server that a line is about; empty if it names none."""
        if (desktop := _DESKTOP.match(before)) is not None:
            words = [word for word in _BRACKETS.findall(desktop[1]) if word.lower() not in _LEVELS]
            self._is_desktop = True
            return words[0] if len(words) == 1 else ""
        if (named := _MCP_SERVER.search(before)) is not None:
            return named[1]
        return next(reversed(self._logs), "") if self._is_desktop else ""

    def _is_repeated(self, log: _ServerLog, message: LineMessage) -> bool:
        """Return whether two loggers wrote one message: a request or an answer that comes twice in a row."""
        last, log.last = log.last, (message.text, message.value)
        value = message.value
        return isinstance(value, dict) and value.get("id") is not None and last[1] == value

    def _message(self, log: _ServerLog, line: HeldLine) -> list[SessionRecord]:
        message = line.message
        assert message is not None
        records: list[SessionRecord] = []
        if _method(message.value) == "initialize" and log.session is not None and log.session.messages:
            records += self._end(log)
        if message.value is None:
            size_bytes = len(message.text.encode("utf-8", "replace"))
            return records + (self._cut(log, line, size_bytes) if log.session is not None else [])
        owner = log.senders.owner
        sender = log.senders.sender(message.value, message.before)
        if log.senders.owner is not owner:
            records += self._release(log, line)
        if sender is None:
            self._hold(log, line)
            return records
        log.senders.take(message.value, sender)
        log.omits_answers = log.omits_answers or _STREAMABLE in message.before
        data = message.text.encode("utf-8", "surrogatepass") + b"\n"
        return [*records, *self._session(log, line).frame(line.wall_ns, _STREAMS[sender], data)]

    def _cut(self, log: _ServerLog, line: HeldLine, size_bytes: int) -> list[SessionRecord]:
        why = f"line {line.number} of the log has only the beginning of a message"
        return self._session(log, line).gap(line.wall_ns, size_bytes, why)

    def _plain(self, log: _ServerLog, line: HeldLine, *, has_time: bool) -> list[SessionRecord]:
        """Take a line without a message."""
        if self._is_desktop:
            if not has_time and log.session is not None:
                return log.session.frame(line.wall_ns, STDERR, f"{line.text}\n".encode())
            return self._event(log, line)
        if log.senders.owner is None:
            self._hold(log, line)
            return []
        return self._own_line(log, line)

    def _event(self, log: _ServerLog, line: HeldLine) -> list[SessionRecord]:
        """Take a line in which Claude Desktop says what it does."""
        session = log.session
        if _STARTING.search(line.text):
            return self._end(log)
        if session is not None and _CLIENT_CLOSED.search(line.text):
            return session.close_stream(line.wall_ns, STDIN, CLIENT)
        if session is not None and _SERVER_CLOSED.search(line.text):
            return session.close_stream(line.wall_ns, STDOUT, SERVER)
        return []

    def _own_line(self, log: _ServerLog, line: HeldLine, first: HeldLine | None = None) -> list[SessionRecord]:
        """Take a line of a log whose owner is known: a server's is what it would write to stderr. `first` is the first message."""
        if log.senders.owner != SERVER:
            return []
        return self._session(log, line, first).frame(line.wall_ns, STDERR, f"{line.text}\n".encode("utf-8", "surrogatepass"))

    def _hold(self, log: _ServerLog, line: HeldLine) -> None:
        if len(log.held) < MAX_HELD_LINES:
            log.held.append(line)
        elif line.message is not None:
            log.lost.append(line.number)

    def _release(self, log: _ServerLog, first: HeldLine) -> list[SessionRecord]:
        """Take the lines that waited until the owner of the log was known."""
        records: list[SessionRecord] = []
        held, log.held = log.held, []
        for line in held:
            if line.message is None:
                records += self._own_line(log, line, first)
                continue
            sender = log.senders.sender(line.message.value, line.message.before)
            if sender is None:
                log.lost.append(line.number)
                continue
            log.senders.take(line.message.value, sender)
            data = line.message.text.encode("utf-8", "surrogatepass") + b"\n"
            records += self._session(log, line, first).frame(line.wall_ns, _STREAMS[sender], data)
        return records

    def _session(self, log: _ServerLog, line: HeldLine, first: HeldLine | None = None) -> StdioSession:
        """Return the session of a log. A new one begins with `line`; `first` is its first message, if that comes later."""
        if log.session is None:
            message = (first or line).message
            facts = {
                "bytes": RECONSTRUCTED,
                "senders": EXACT if self._is_desktop else RECONSTRUCTED,
                "times": MISSING if line.wall_ns is None else RECONSTRUCTED,
                "ends": RECONSTRUCTED if self._is_desktop else MISSING,
                "connections": EXACT,
                "beginning": EXACT if message is not None and _method(message.value) == "initialize" else MISSING,
            }
            log.session = StdioSession(self._source, self._sessions, label=log.label, wall_ns=line.wall_ns, facts=facts)
            self._sessions += 1
        return log.session

    def _end(self, log: _ServerLog) -> list[SessionRecord]:
        """End the session of a log; the next one may be with another process."""
        records: list[SessionRecord] = []
        lost = [*log.lost, *(line.number for line in log.held if line.message is not None)]
        session, log.session = log.session, None
        if session is not None and log.omits_answers and (open_requests := log.senders.open_requests()):
            records += session.gap(self._last_ns, 0, _NO_JSON_ANSWERS, frames=open_requests)
        log.omits_answers = False
        log.senders, log.held, log.lost, log.last = Senders(), [], [], ("", None)
        if session is not None:
            if lost:
                named = ", ".join(map(str, lost[:MAX_NAMED_LINES])) + (" and more" if len(lost) > MAX_NAMED_LINES else "")
                records += session.note(
                    f"nothing tells who sent {_messages(len(lost))}, which {_are(len(lost))} left out: line {named}"
                )
            records += session.end("end of the log", notes=self.passed_over())
        return records


def _messages(count: int) -> str:
    return "1 message" if count == 1 else f"{count} messages"


def _are(count: int) -> str:
    return "is" if count == 1 else "are"


def _method(value: Any) -> str:
    method = value.get("method") if isinstance(value, dict) else None
    return method if isinstance(method, str) else ""

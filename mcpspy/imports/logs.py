"""Logs in which JSON-RPC messages stand in lines: bytes in, records of one session for each start of each server out.

A line has the messages that are in it, whatever is around them; times and senders are taken from the words before each. A client's
`initialize` begins a session. Sessions of one server may run at the same time, and then a message belongs to that in which it is due.
Other lines of a server's own log are its stderr. So are those without the head of a line in a log of Claude Desktop.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import msgspec

from ..records import CLIENT, SERVER, Side
from .log_messages import LineMessage, is_printed, messages_in
from .log_senders import Senders
from .session import STDERR, STDIN, STDOUT, StdioSession
from .source import EXACT, MISSING, RECONSTRUCTED, SessionRecord, Source, WholeLines

MAX_HELD_LINES: Final = 10_000
"""So many lines wait until it is known whose log it is."""

MAX_NAMED_LINES: Final = 5
"""So many lines that were left out are named; more are counted."""

MAX_RUNS: Final = 8
"""So many sessions of a server may go on at the same time; the oldest of more is over."""

_REPEATED_NS: Final = 100_000_000
"""Two loggers write the same message within this time."""

_DESKTOP: Final = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+Z\s+((?:\[[^\]\n]{1,200}\]\s*){1,3})")
"""The beginning of a line of Claude Desktop: a time, the server's name and the level, in either order."""

_BRACKETS: Final = re.compile(r"\[([^\]]*)\]")
_LEVELS: Final = frozenset({"info", "warn", "warning", "error", "debug", "trace", "fatal", "verbose"})
_MCP_SERVER: Final = re.compile(r"""MCP server ["']([^"'\n]{1,200})["']""")
"""The words of Claude Code."""

_SERVER_STDERR: Final = re.compile(r"\[server stderr\] ?(.*)")
"""The words of VS Code."""

_STARTING: Final = re.compile(r"\b(?:Initializing|Starting) server\b", re.IGNORECASE)
_OF_DESKTOP: Final = re.compile(
    rf"Message from (?:client|server): |Server started|Using MCP server|{_STARTING.pattern}|transport closed"
)

_SERVER_CLOSED: Final = re.compile(r"\bServer transport closed\b", re.IGNORECASE)
_CLIENT_CLOSED: Final = re.compile(r"\bClient transport closed\b", re.IGNORECASE)
_AGAIN: Final = re.compile(r"Received JSON: b['\"]|Sending session message to writer|Client message sent successfully")
"""Words of the Python SDK before a message that it also logs in another form."""

_PROMPT: Final = (re.compile(r"""["']model\\*["']\s*:"""), re.compile(r"""["'](?:messages|input)\\*["']\s*:\s*[\\\["']"""))
_SPREAD: Final = re.compile(r"""\s*"?jsonrpc"?\s*:\s*["']2\.0["']\s*,?\s*""")

_STREAMABLE: Final = "mcp.client.streamable_http"
_NO_JSON_ANSWERS: Final = "the Python SDK does not log answers that come as JSON, nor errors of HTTP"
_MIXED: Final = "the log has several sessions at once, and some of their messages cannot be told apart"

_STREAMS: Final = {CLIENT: STDIN, SERVER: STDOUT}

_HEAD_LETTERS: Final = 400
"""The time of a line stands within so many letters."""

_DATED: Final = re.compile(
    r"(\d{4})[-/](\d\d)[-/](\d\d)[T ](\d\d):(\d\d):(\d\d)(?:[.,](\d{1,9}))?\s?(Z\b|UTC\b|[+-]\d\d:?\d\d(?!\d))?"
)

_CLOCK: Final = re.compile(r"(?<![\d:.])(\d\d):(\d\d):(\d\d)(?:[.,](\d{1,9}))?(?![\d:])")
_EPOCH: Final = re.compile(r"\b(?:ts|time|timestamp|t)=(1\d{9}(?:\d{3}|\d{6}|\d{9})?)(?:\.(\d{1,9}))?\b")
_DIGITS: Final = re.compile(r"\d+")
_LETTERS: Final = re.compile(r"[^\W_]+")
_DAY_NS: Final = 86_400_000_000_000


def is_of_desktop(line: str) -> bool:
    """Return whether Claude Desktop wrote a line of a log, about the server that the line names."""
    return _DESKTOP.match(line) is not None and _OF_DESKTOP.search(line) is not None


class HeldLine(msgspec.Struct):
    """A line whose sender is not known yet: a message, or text."""

    number: int
    wall_ns: int | None
    text: str
    message: LineMessage | None = None


class _LogRun:
    """A session of a server, and the senders of its messages. `is_mixed` says that a message of it may be another session's."""

    __slots__ = ("is_mixed", "omits_answers", "senders", "session")

    def __init__(self, *, trusts_words: bool) -> None:
        self.session: StdioSession | None = None
        self.senders = Senders(trusts_words=trusts_words)
        self.is_mixed = False
        self.omits_answers = False


class _ServerLog:
    """The lines about one server, in order, and its sessions, the newest last."""

    __slots__ = ("are_mixed", "closed_ns", "closing", "held", "is_dumping", "label", "last", "lost", "repeats", "runs")

    def __init__(self, label: str, *, trusts_words: bool) -> None:
        self.label = label
        self.runs = [_LogRun(trusts_words=trusts_words)]
        self.are_mixed = False
        self.closing: StdioSession | None = None
        """The session whose end came last, at `closed_ns`."""
        self.closed_ns = 0
        self.held: list[HeldLine] = []
        self.last: tuple[Any, int] = (None, 0)
        self.lost: list[int] = []
        self.repeats = 0
        self.is_dumping = False
        """True within an object that Claude Desktop prints over several lines."""

    @property
    def run(self) -> _LogRun:
        """The newest session."""
        return self.runs[-1]

    def run_of(self, value: Any) -> _LogRun:
        """Return the session that a message belongs to: of those in which it is due the newest, else the newest of all."""
        message = value[0] if isinstance(value, list) else value
        due = [run for run in self.runs if run.senders.fits(message)] if len(self.runs) > 1 else []
        chosen = due[-1] if due else self.run
        if len(due) > 1:
            for run in due:
                run.is_mixed = True
        self.are_mixed = self.are_mixed or chosen is not self.run
        return chosen


class LogImporter:
    """Records from the bytes of a log, cut anywhere. `feed` and `close` return them, each after the number of its session."""

    __slots__ = (
        "_clock", "_is_desktop", "_last_ns", "_line", "_lines", "_logs", "_prompts", "_repeats", "_sessions",
        "_source", "_unknown",
    )  # fmt: skip

    def __init__(self, source: Source) -> None:
        self._source = source
        self._clock = _LogClock(source.wall_ns)
        self._lines = WholeLines()
        self._is_desktop = False
        self._last_ns: int | None = None
        self._line = 0
        self._prompts = self._repeats = self._unknown = 0
        """True if a message came more often than two loggers would write it."""
        self._logs: dict[str, _ServerLog] = {}
        self._sessions = 0

    def feed(self, data: bytes) -> list[SessionRecord]:
        return [record for line in self._lines.feed(data) for record in self._text(line)]

    def close(self) -> list[SessionRecord]:
        records = [record for line in self._lines.close() for record in self._text(line)]
        for log in self._logs.values():
            for run in log.runs:
                records += self._end(log, run)
            if log.run.session is None:
                self._unknown += len(log.lost) + sum(held.message is not None for held in log.held)
        return records

    def passed_over(self) -> list[str]:
        """Say what the file has that is not read. Gaps in the captures name the messages that nothing told the sender of."""
        prompts = [f"not read: {self._prompts} × a model call; record them with mcpspy proxy --model"] if self._prompts else []
        again = [f"not read: {self._repeats:,} × a message that is the same as the one before it"] if self._repeats else []
        unknown = [f"not read: {self._unknown:,} × a message whose sender is unknown"] if self._unknown else []
        return [*self._lines.left_out(), *prompts, *again, *unknown]

    def _text(self, data: bytes) -> list[SessionRecord]:
        self._line += 1
        line = data.decode("utf-8", "replace").rstrip("\r").removeprefix("\ufeff")
        if not line.strip():
            return []
        has_head = _DESKTOP.match(line) is not None
        self._is_desktop = self._is_desktop or is_of_desktop(line)
        if self._is_desktop and not has_head:
            return self._stderr(next(reversed(self._logs.values()), None), line)
        messages = messages_in(line) if "{" in line or "JSONRPC" in line or "jsonrpc=" in line else []
        self._prompts += not messages and all(pattern.search(line) for pattern in _PROMPT)
        before = messages[0].before if messages else line
        wall_ns = self._clock.time_ns(before, of_message=bool(messages) or self._is_desktop)
        self._last_ns = wall_ns or self._last_ns
        label = self._label(before)
        log = self._logs.pop(label, None) or _ServerLog(label, trusts_words=self._is_desktop)
        self._logs[label] = log  # the last is that of the last line
        records = [] if messages else self._plain(log, HeldLine(self._line, self._last_ns, line))
        for message in messages:
            if message is not messages[0]:
                self._last_ns = self._clock.time_ns(message.before, of_message=True) or self._last_ns
            if not _AGAIN.search(message.before) and not self._is_repeated(log, message):
                records += self._message(log, HeldLine(self._line, self._last_ns, line, message))
        return records

    def _label(self, before: str) -> str:
        """Return the name of the server that a line is about; empty if it names none."""
        if self._is_desktop and (desktop := _DESKTOP.match(before)) is not None:
            words = [word for word in _BRACKETS.findall(desktop[1]) if word.lower() not in _LEVELS]
            return words[0] if len(words) == 1 else ""
        named = _MCP_SERVER.search(before)
        return named[1] if named is not None else ""

    def _is_repeated(self, log: _ServerLog, message: LineMessage) -> bool:
        """Return whether two loggers wrote one message: a request or an answer that comes twice in a row."""
        (value, at_ns), log.last = log.last, (message.value, self._last_ns or 0)
        has_id = isinstance(value, dict) and value.get("id") is not None
        is_repeated = has_id and not self._is_desktop and value == message.value and log.last[1] - at_ns <= _REPEATED_NS
        log.repeats = log.repeats + 1 if is_repeated else 0
        self._repeats += 2 if log.repeats == 2 else log.repeats > 2  # a single repeat is that of another logger
        return is_repeated

    def _message(self, log: _ServerLog, line: HeldLine) -> list[SessionRecord]:
        message = line.message
        assert message is not None
        records: list[SessionRecord] = []
        session = log.run.session
        if message.value is None:
            if session is not None:
                return self._cut(log, line)
            self._hold(log, line)
            return []
        if _method(message.value) == "initialize" and session is None:
            records += self._release_earlier(log, line)
            session = log.run.session
        if _method(message.value) == "initialize" and session is not None and session.messages:
            log.runs.append(_LogRun(trusts_words=self._is_desktop))
            closed = [run for run in log.runs if run.session is not None and run.session.is_closed]
            for run in closed or log.runs[: max(0, len(log.runs) - MAX_RUNS)]:
                log.runs.remove(run)
                records += self._end(log, run)
            run = log.run
        else:
            run = log.run_of(message.value)
        owner = run.senders.owner
        sender = run.senders.sender(message.value, message.before)
        if log.held and (run.senders.owner is not owner or (self._is_desktop and sender is not None)):
            records += self._release(log, run, line)
        if sender is None:
            self._hold(log, line)
            return records
        return records + self._sent(log, run, line, sender)

    def _sent(
        self, log: _ServerLog, run: _LogRun, line: HeldLine, sender: Side, first: HeldLine | None = None
    ) -> list[SessionRecord]:
        """Take a message whose sender is known."""
        assert line.message is not None
        run.senders.take(line.message.value, sender)
        run.omits_answers = run.omits_answers or _STREAMABLE in line.message.before
        data = line.message.text.encode("utf-8", "surrogatepass").replace(b"\r", b" ").replace(b"\n", b" ") + b"\n"
        return self._session(log, run, line, first).frame(line.wall_ns, _STREAMS[sender], data)

    def _cut(self, log: _ServerLog, line: HeldLine, first: HeldLine | None = None) -> list[SessionRecord]:
        """Take a message of which the log has only the beginning, or that it has in a form that is not read."""
        assert line.message is not None
        size_bytes = len(line.message.text.encode("utf-8", "replace"))
        what = "a message that is not written as JSON" if is_printed(line.message) else "only the beginning of a message"
        why = f"line {line.number} of the log has {what}"
        return self._session(log, log.run, line, first).gap(line.wall_ns, size_bytes, why)

    def _plain(self, log: _ServerLog, line: HeldLine) -> list[SessionRecord]:
        """Take a line without a message."""
        session = log.run.session
        if self._is_desktop:
            log.is_dumping = line.text.endswith("{")
            return self._event(log, line)
        if (stderr := _SERVER_STDERR.search(line.text)) is not None and session is not None:
            return session.frame(line.wall_ns, STDERR, f"{stderr[1]}\n".encode("utf-8", "surrogatepass"))
        if _SPREAD.fullmatch(line.text) is not None and session is not None:
            why = f"the message near line {line.number} of the log is spread over several lines"
            return session.gap(line.wall_ns, len(line.text), why)
        if log.run.senders.owner is None:
            self._hold(log, line)
            return []
        return self._own_line(log, log.run, line)

    def _stderr(self, log: _ServerLog | None, text: str) -> list[SessionRecord]:
        """Take a line without the head of Claude Desktop: its server wrote it, unless it is of an object that Desktop prints."""
        if log is None:
            return []
        line = HeldLine(self._line, self._last_ns, text)
        if log.is_dumping:
            log.is_dumping = not text.startswith("}")
        elif log.run.session is None:
            self._hold(log, line)
        else:
            return self._own_line(log, log.run, line)
        return []

    def _event(self, log: _ServerLog, line: HeldLine) -> list[SessionRecord]:
        """Take a line in which Claude Desktop says what it does. Nothing says which of several servers a transport belongs to."""
        session = log.run.session
        is_client = _CLIENT_CLOSED.search(line.text) is not None
        if _STARTING.search(line.text) and session is not None and session.is_closed:
            log.runs.append(_LogRun(trusts_words=True))
            return self._end(log, log.runs.pop(-2))
        if log.are_mixed or not (is_client or _SERVER_CLOSED.search(line.text)):
            return []
        if log.closing is None or (line.wall_ns or 0) - log.closed_ns > _REPEATED_NS:  # it says so several times at once
            opened = [run.session for run in log.runs if run.session is not None and not run.session.is_closed]
            log.closing = opened[-1] if opened else log.closing
        log.closed_ns, session = line.wall_ns or 0, log.closing
        if session is None or (is_client and session.is_closed):  # a client that closes its transport then has not left before
            return []
        return session.close_stream(line.wall_ns, *((STDIN, CLIENT) if is_client else (STDOUT, SERVER)))

    def _own_line(self, log: _ServerLog, run: _LogRun, line: HeldLine, first: HeldLine | None = None) -> list[SessionRecord]:
        """Take a line of a log whose owner is known: a server's is what it would write to stderr. `first` is the first message."""
        if run.senders.owner != SERVER and not self._is_desktop:
            return []
        return self._session(log, run, line, first).frame(
            line.wall_ns, STDERR, f"{line.text}\n".encode("utf-8", "surrogatepass")
        )

    def _hold(self, log: _ServerLog, line: HeldLine) -> None:
        if len(log.held) < MAX_HELD_LINES:
            log.held.append(line)
        elif line.message is not None:
            log.lost.append(line.number)

    def _release(self, log: _ServerLog, run: _LogRun, first: HeldLine) -> list[SessionRecord]:
        """Take the lines that waited until the owner of the log was known."""
        records: list[SessionRecord] = []
        held, log.held = log.held, []
        for line in held:
            if line.message is None:
                known_ns = line.wall_ns if self._is_desktop else self._clock.time_ns(line.text)
                line.wall_ns = known_ns or line.wall_ns or first.wall_ns
                records += self._own_line(log, run, line, first)
                continue
            if line.message.value is None:
                records += self._cut(log, line, first)
                continue
            sender = run.senders.sender(line.message.value, line.message.before)
            if sender is None:
                log.lost.append(line.number)
                continue
            records += self._sent(log, run, line, sender, first)
        return records

    def _release_earlier(self, log: _ServerLog, line: HeldLine) -> list[SessionRecord]:
        """Take the messages that waited before an `initialize`, which tells whose log it is: they are of an earlier session."""
        earlier = next((held for held in log.held if held.message is not None), None)
        if earlier is None or line.message is None:
            return []
        log.run.senders.sender(line.message.value, line.message.before)
        return self._release(log, log.run, earlier)

    def _session(self, log: _ServerLog, run: _LogRun, line: HeldLine, first: HeldLine | None = None) -> StdioSession:
        """Return the session of a run. A new one begins with `line`; `first` is its first message, if that comes later."""
        if run.session is None:
            message = (first or line).message
            facts = {
                "bytes": RECONSTRUCTED,
                "senders": EXACT if self._is_desktop else RECONSTRUCTED,
                "times": MISSING if line.wall_ns is None else RECONSTRUCTED,
                "ends": RECONSTRUCTED if self._is_desktop else MISSING,
                "beginning": EXACT if message is not None and _method(message.value) == "initialize" else MISSING,
            }
            run.session = StdioSession(self._source, self._sessions, label=log.label, wall_ns=line.wall_ns, facts=facts)
            self._sessions += 1
        return run.session

    def _end(self, log: _ServerLog, run: _LogRun) -> list[SessionRecord]:
        """End a session; the next one may be with another process."""
        session = run.session
        if session is None:
            return []
        records: list[SessionRecord] = []
        open_requests = run.senders.open_requests()
        lost = [*log.lost, *(line.number for line in log.held if line.message is not None)] if run is log.run else []
        if run.omits_answers and open_requests:
            records += session.gap(self._last_ns, 0, _NO_JSON_ANSWERS, frames=open_requests)
        elif not (self._is_desktop or lost) and (missing := run.senders.missing()):
            records += session.gap(self._last_ns, 0, missing, frames=max(1, open_requests))
        if run.is_mixed and log.are_mixed:
            records += session.gap(self._last_ns, 0, _MIXED)
        if lost:
            named = ", ".join(map(str, lost[:MAX_NAMED_LINES])) + (" and more" if len(lost) > MAX_NAMED_LINES else "")
            text = f"left out: {len(lost)} × a message whose sender is unknown, line {named}"
            records += session.gap(self._last_ns, 0, text, frames=len(lost))
        return records + session.end("end of the log", notes=self.passed_over())


def _method(value: Any) -> str:
    method = value.get("method") if isinstance(value, dict) else None
    return method if isinstance(method, str) else ""


class _LogClock:
    """The time of each line of a log, as Unix time in nanoseconds; None for a line without. `day_ns` is a time of its last day.

    The time of a line is what stands where messages have theirs. Another one, as in a banner of Python, is a word of the line.
    """

    __slots__ = ("_day", "_heads", "_last_ns")

    def __init__(self, day_ns: int) -> None:
        self._day = datetime.fromtimestamp(day_ns / 1e9, UTC).astimezone().replace(hour=0, minute=0, second=0, microsecond=0)
        self._last_ns: int | None = None
        self._heads: set[tuple[str, int, str]] = set()
        """The text before the time in lines of messages, without its letters, and the form of the time."""

    def time_ns(self, text: str, *, of_message: bool = False) -> int | None:
        """Return the time in the text before a message, or in a line without one."""
        text = text[:_HEAD_LETTERS]
        for pattern, value in ((_DATED, _dated_ns), (_EPOCH, _epoch_ns), (_CLOCK, self._clock_ns)):
            if (found := pattern.search(text)) is not None:
                form = _DIGITS.sub("0", found.group()) if pattern is _DATED else ""
                head = _LETTERS.sub("a", text[: found.start()]), pattern.groups, form
                if of_message:
                    self._heads.add(head)
                return value(found) if head in self._heads else None
        return None

    def _clock_ns(self, clock: re.Match[str]) -> int | None:
        hour, minute, second = map(int, clock.group(1, 2, 3))
        if hour > 23 or minute > 59 or second > 59:
            return None
        at = self._day + timedelta(hours=hour, minutes=minute, seconds=second)
        at_ns = int(at.timestamp()) * 1_000_000_000 + _fraction_ns(clock[4])
        if self._last_ns is not None and at_ns < self._last_ns - _DAY_NS // 2:  # past midnight
            self._day += timedelta(days=1)
            at_ns += _DAY_NS
        self._last_ns = at_ns
        return at_ns


def _dated_ns(dated: re.Match[str]) -> int | None:
    year, month, day, hour, minute, second = map(int, dated.group(1, 2, 3, 4, 5, 6))
    zone = dated[8] or ""
    try:
        at = datetime(year, month, day, hour, minute, min(second, 59))
        if zone[:1] in ("+", "-"):
            offset = timedelta(hours=int(zone[1:3]), minutes=int(zone[-2:]))
            at = at.replace(tzinfo=UTC) - (offset if zone[0] == "+" else -offset)
        else:
            at = at.replace(tzinfo=UTC) if zone else at.astimezone()
        return int(at.timestamp()) * 1_000_000_000 + _fraction_ns(dated[7])
    except (ValueError, OverflowError, OSError):
        return None


def _epoch_ns(epoch: re.Match[str]) -> int:
    return int((epoch[1] + (epoch[2] or "")).ljust(19, "0")[:19])


def _fraction_ns(digits: str | None) -> int:
    return int((digits or "0").ljust(9, "0"))

"""Rows of a capture to the phases of its server: start, handshake, discovery, calls, heartbeat, shutdown.

The phases follow one another; a phase that did not happen is left out. An HTTP server has neither start nor shutdown, because nobody
knows when it began and ended, and no phases at all with several clients.
"""

from enum import StrEnum
from typing import Final

import msgspec

from ..records import CLIENT, Close, Exit, Note, Record, Spawn
from .mcp.methods import INITIALIZED
from .model import CaptureInfo, ChannelEvent, Exchange, Kind, Log, Message, Row, Transcript, UnpairedMessage

HANDSHAKE: Final = {"initialize", "server/discover"}
DISCOVERY: Final = {"tools/list", "prompts/list", "resources/list", "resources/templates/list"}
ANY_TIME: Final = {"ping", "logging/setLevel"}
"""Methods of requests that belong to no phase, but for pings after all others."""
HEARTBEAT: Final = {"ping", "pong"}
"""A `pong` is a notification with which some servers answer a `ping` that is one, too."""
FOR_THE_SERVER: Final = ("SIGUSR1", "SIGUSR2")
"""The beginnings of notes about signals that are passed on and end nothing: a client that sends one stays."""


class PhaseName(StrEnum):
    """The names of the phases, in their order."""

    START = "start"
    """From the spawn to the server's first line on stderr, or its first message."""
    HANDSHAKE = "handshake"
    """From there, or from a later first request, to the end of `initialize` or `server/discover`, with the notification after it."""
    DISCOVERY = "discovery"
    """From the first request for a list to the last list before the calls."""
    CALLS = "calls"
    """From the client's first other request to the last answer or cancellation before it leaves."""
    HEARTBEAT = "heartbeat"
    """From the first `ping` after the last answer to the last `ping` or its answer, if the client requests nothing else after it."""
    SHUTDOWN = "shutdown"
    """From the time at which the client leaves to the end of the process."""


class Phase(msgspec.Struct, frozen=True, kw_only=True):
    """One phase, on the transcript's clock. `end_ns` is None while it goes on; `exchanges` is the number of the client's requests."""

    name: PhaseName
    begin_ns: int
    end_ns: int | None
    exchanges: int = 0

    @property
    def duration_ns(self) -> int | None:
        """Its duration; None while it goes on."""
        return None if self.end_ns is None else max(0, self.end_ns - self.begin_ns)


class StartUp(msgspec.Struct, frozen=True, kw_only=True):
    """The start of a server, on the transcript's clock. A time is None if it did not come, or has not come yet."""

    spawned_ns: int
    first_log_ns: int | None
    """Its first line on stderr."""
    first_request_ns: int | None
    """The client's first request."""
    first_answer_ns: int | None

    @property
    def duration_ns(self) -> int | None:
        """From the spawn to the first answer."""
        return None if self.first_answer_ns is None else max(0, self.first_answer_ns - self.spawned_ns)


class Lifecycle:
    """The lifecycle of one capture's server. `feed` takes its rows in their order; `phases` and `start_up` are the results so far."""

    __slots__ = (
        "_alive_ns", "_call_end_ns", "_calls", "_exit_ns", "_first_answer_ns", "_first_call_ns", "_first_log_ns", "_first_request_ns",
        "_handshakes", "_info", "_left_ns", "_list_end_ns", "_lists", "_ping_end_ns", "_ping_ns", "_pings", "_shaken_ns",
        "_spawned_ns", "_first_list_ns",
    )  # fmt: skip

    def __init__(self, info: CaptureInfo) -> None:
        self._info = info
        self._handshakes = self._lists = self._calls = self._pings = 0
        self._spawned_ns: int | None = None
        self._alive_ns: int | None = None
        self._first_log_ns: int | None = None
        self._first_request_ns: int | None = None
        self._first_answer_ns: int | None = None
        self._shaken_ns: int | None = None
        self._first_list_ns: int | None = None
        self._list_end_ns: int | None = None
        self._first_call_ns: int | None = None
        self._call_end_ns: int | None = None
        self._ping_ns: int | None = None
        self._ping_end_ns: int | None = None
        self._left_ns: int | None = None
        self._exit_ns: int | None = None

    @property
    def start_up(self) -> StartUp | None:
        """The start of the server; None if no tap started it."""
        if self._spawned_ns is None:
            return None
        return StartUp(
            spawned_ns=self._spawned_ns,
            first_log_ns=self._first_log_ns,
            first_request_ns=self._first_request_ns,
            first_answer_ns=self._first_answer_ns,
        )

    @property
    def phases(self) -> list[Phase]:
        """The phases so far, in their order."""
        info = self._info
        if self._spawned_ns is None and (not info.transactions or info.is_model or len(info.clients) > 1):
            return []
        exit_ns = self._exit_ns
        phases: list[Phase] = []
        if self._spawned_ns is not None:
            phases.append(_phase(PhaseName.START, self._spawned_ns, _first(self._alive_ns, exit_ns), 0))
        if self._handshakes and self._first_request_ns is not None:
            is_started = self._spawned_ns is not None and self._alive_ns is not None
            begin_ns = max(self._first_request_ns, self._alive_ns or 0) if is_started else self._first_request_ns
            end_ns = exit_ns if self._shaken_ns is None else self._shaken_ns
            phases.append(_phase(PhaseName.HANDSHAKE, begin_ns, end_ns, self._handshakes))
        if self._first_list_ns is not None:
            phases.append(_phase(PhaseName.DISCOVERY, self._first_list_ns, self._list_end_ns, self._lists))
        if self._first_call_ns is not None:
            phases.append(_phase(PhaseName.CALLS, self._first_call_ns, self._call_end_ns, self._calls))
        if self._ping_ns is not None:
            phases.append(_phase(PhaseName.HEARTBEAT, self._ping_ns, self._ping_end_ns, self._pings))
        if self._left_ns is not None:
            phases.append(_phase(PhaseName.SHUTDOWN, self._left_ns, self._exit_ns, 0))
        return phases

    def feed(self, row: Row) -> None:
        """Take in the next row."""
        if isinstance(row, Exchange):
            self._heartbeat(row.request, row.at_ns if row.response is None else row.response.at_ns)
            if row.sender == CLIENT:
                self._exchange(row)
            else:
                self._alive_ns = _first(self._alive_ns, row.at_ns)
        elif isinstance(row, ChannelEvent):
            self._event(row.at_ns, row.record)
        elif isinstance(row, Log):
            self._first_log_ns = _first(self._first_log_ns, row.at_ns)
            self._alive_ns = _first(self._alive_ns, row.at_ns)
        elif isinstance(row, UnpairedMessage):
            self._heartbeat(row.message, row.at_ns)
            if row.message.sender != CLIENT:
                self._alive_ns = _first(self._alive_ns, row.at_ns)
            elif row.message.method == INITIALIZED and self._first_call_ns is None:
                self._shaken_ns = max(row.at_ns, self._shaken_ns or 0)

    def end(self, row: Exchange) -> None:
        """Take in the end of an exchange that was fed before it had one. Heartbeats before the end are none any more."""
        end = row.response or row.cancelled
        if row.sender != CLIENT or end is None:
            return
        end_ns, never = end.at_ns, row.at_ns + 1
        if row.response is not None:
            self._first_answer_ns = _first(self._first_answer_ns, end_ns)
            self._alive_ns = _first(self._alive_ns, end_ns)
        if row.method in HEARTBEAT and self._ping_ns is not None and self._ping_ns <= row.at_ns:
            self._ping_end_ns = max(end_ns, self._ping_end_ns or 0)
        if row.method in ANY_TIME:
            return
        if row.method in HANDSHAKE and row.at_ns < min(self._first_list_ns or never, self._first_call_ns or never):
            self._shaken_ns = self._shaken_ns if row.response is None else max(end_ns, self._shaken_ns or 0)
        elif row.method in DISCOVERY and row.at_ns < (self._first_call_ns or never):
            self._list_end_ns = max(end_ns, self._list_end_ns or end_ns)
        else:
            self._call_end_ns = max(end_ns, self._call_end_ns or end_ns)
        if self._ping_ns is not None and self._ping_ns < end_ns:
            self._ping_ns = self._ping_end_ns = None
            self._pings = 0

    def _heartbeat(self, message: Message, end_ns: int) -> None:
        """Begin, continue or undo the heartbeat with a message that was answered, if at all, at `end_ns`."""
        is_request = message.kind is Kind.REQUEST and message.sender == CLIENT
        if message.method in HEARTBEAT:
            if message.at_ns >= max(self._shaken_ns or 0, self._list_end_ns or 0, self._call_end_ns or 0):
                self._ping_ns = message.at_ns if self._ping_ns is None else self._ping_ns
                self._ping_end_ns = max(end_ns, self._ping_end_ns or 0)
                self._pings += is_request
        elif is_request:
            self._ping_ns = self._ping_end_ns = None
            self._pings = 0

    def _exchange(self, row: Exchange) -> None:
        method, begin_ns = row.method, row.at_ns
        end = row.response or row.cancelled
        end_ns = begin_ns if end is None else end.at_ns
        if self._first_request_ns is None:
            self._first_request_ns = begin_ns
        if row.response is not None:
            self._first_answer_ns = _first(self._first_answer_ns, end_ns)
            self._alive_ns = _first(self._alive_ns, end_ns)
        if method in ANY_TIME:
            return
        if method in HANDSHAKE and self._first_list_ns is None and self._first_call_ns is None:
            self._handshakes += 1
            self._shaken_ns = self._shaken_ns if row.response is None else max(end_ns, self._shaken_ns or 0)
        elif method in DISCOVERY and self._first_call_ns is None:
            self._first_list_ns = begin_ns if self._first_list_ns is None else self._first_list_ns
            self._list_end_ns, self._lists = max(end_ns, self._list_end_ns or end_ns), self._lists + 1
        else:
            self._first_call_ns = begin_ns if self._first_call_ns is None else self._first_call_ns
            self._call_end_ns, self._calls = max(end_ns, self._call_end_ns or end_ns), self._calls + 1

    def _event(self, at_ns: int, record: Record) -> None:
        match record:
            case Spawn() if self._spawned_ns is None:
                self._spawned_ns = at_ns
            case Exit() if self._exit_ns is None:
                self._exit_ns = at_ns
            case Close(by="client", stream=stream) if self._name(stream) in ("stdin", "stdout"):
                self._leave(at_ns)
            case Note(topic="signal" | "escalation", text=text) if not text.startswith(FOR_THE_SERVER):
                self._leave(at_ns)

    def _name(self, stream: int) -> str:
        opened = self._info.streams.get(stream)
        return "" if opened is None else opened.name

    def _leave(self, at_ns: int) -> None:
        if self._left_ns is None and self._exit_ns is None:
            self._left_ns = at_ns


def lifecycles(transcript: Transcript) -> list[Lifecycle]:
    """Return the lifecycle of each capture of `transcript`, in its order. Of captures that are over, they are made once."""
    rows, known = transcript.known.get("lifecycles", (None, []))
    if rows == len(transcript.rows):
        return known
    lifecycles = [Lifecycle(info) for info in transcript.captures]
    for row in transcript.rows:
        lifecycles[row.capture].feed(row)
    if all(info.closed for info in transcript.captures):
        transcript.known["lifecycles"] = len(transcript.rows), lifecycles
    return lifecycles


def _phase(name: PhaseName, begin_ns: int, end_ns: int | None, exchanges: int) -> Phase:
    return Phase(name=name, begin_ns=begin_ns, end_ns=end_ns, exchanges=exchanges)


def _first(known_ns: int | None, at_ns: int | None) -> int | None:
    """Return the earlier of two times; None is unknown."""
    if known_ns is None or at_ns is None:
        return at_ns if known_ns is None else known_ns
    return min(known_ns, at_ns)

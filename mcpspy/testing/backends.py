"""Backends of a server under test: the capture that a mock plays, or the real server under a tap that records it.

Both give the command line of mcpspy that starts them; over HTTP, that is a process that ends when the test closes it or is
gone. They read from the captures that mocks and taps made what was called, missed and not requested. A capture is checked
before anybody connects.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from time import monotonic, sleep
from typing import Any, NamedTuple, TypeAlias

from ..capture.file.reader import read
from ..errors import ReplayError
from ..records import CLIENT, Exit, Note
from ..replay.mock.match_key import Strictness
from ..replay.mock.matching import RequestMatcher, Reuse, client_sequences
from ..replay.mock.miss import Miss, request_name
from ..replay.mock.replies import RecordedReplies, served_replies
from ..transcript.mcp.methods import OPENINGS
from ..transcript.model import ChannelEvent, Exchange, Outcome, Transcript
from ..transcript.transcribe import transcribe

Backend: TypeAlias = "PlayedCapture | RecordedServer"
MockOptions: TypeAlias = dict[str, str | Sequence[str]]
"""Options of `mcpspy mock` by their names, with `_` for `-`."""

CLIENT_ERRORS = range(400, 500)
"""Statuses with which a server refuses a request (RFC 9110, section 15.5)."""

_CLIENTS_OWN = OPENINGS | {"ping"}
"""Requests that a client's library makes by itself, in one version or another: a test does not miss them."""

LISTEN = "127.0.0.1:0"

POLL_S = 0.005

STARTS_S = 30
"""Time in which a process has to print its address, on a busy machine."""

ENDS_S = 10
"""Time that it has to end; then it is killed."""


class PlayedCapture:
    """Captures at `paths`, together called `name`, played with `options`.

    `capture` is the file in which the mock records the requests that it gets.
    Raises: AddressError, CaptureError, PathError, ReplayError: if they cannot be played.
    """

    is_recording = False

    __slots__ = ("_matcher", "_options", "_paths", "_replies", "capture", "name")

    def __init__(self, paths: Sequence[Path], name: str, options: MockOptions, capture: Path) -> None:
        self.name = name
        self.capture = capture
        self._paths = paths
        self._options = options
        self._replies = _read_replies(paths, name)
        ignore = options.get("ignore", ())
        self._matcher = RequestMatcher(
            self._replies.exchanges,
            strictness=Strictness(str(options.get("match", "default"))),
            ignore=[ignore] if isinstance(ignore, str) else ignore,
            reuse=Reuse(str(options.get("reuse", "last"))),
        )

    def stdio_arguments(self) -> list[str]:
        """Return the arguments of mcpspy that play it on stdio. Raises: ReplayError: if there are only HTTP refusals."""
        __tracebackhide__ = True
        if not self._replies.has_answers:
            raise ReplayError(
                self.name, "its server refused everything over HTTP, and stdio has no such refusals: connect to `url`"
            )
        options = {name: value for name, value in self._options.items() if name != "transport"}
        return ["mock", *map(str, self._paths), "--quiet", f"--capture={self.capture}", *_as_arguments(options)]

    def listen(self) -> ListeningProcess:
        """Play it over HTTP. Raises: ReplayError: if the mock cannot listen."""
        __tracebackhide__ = True
        options = _as_arguments(self._options)
        arguments = [*map(str, self._paths), f"--listen={LISTEN}", "--quiet", f"--capture={self.capture}", *options]
        return ListeningProcess(["mock", *arguments], what=self.name, output=self.capture.with_suffix(".output"))

    def misses(self, transcript: Transcript) -> list[Miss]:
        """List the requests in `transcript` that were never recorded."""
        return _misses(transcript, self._matcher)

    def unplayed(self, transcript: Transcript) -> list[Exchange]:
        """List the recorded exchanges whose requests are not in `transcript`."""
        plays_nearest = self._options.get("on_miss") == "nearest"
        return _unplayed(transcript, self._replies.exchanges, self._matcher, plays_nearest=plays_nearest)


class RecordedServer:
    """The real server, which `command_or_url` starts or is the address of, under a tap.

    `name` is what its capture will be called, `capture` the file that the tap writes for now.
    """

    is_recording = True

    __slots__ = ("_command_or_url", "capture", "name")

    def __init__(self, command_or_url: Sequence[str] | str, name: str, capture: Path) -> None:
        self.name = name
        self.capture = capture
        self._command_or_url = command_or_url

    def stdio_arguments(self) -> list[str]:
        """Return the arguments of mcpspy that start the server under a tap. Raises: ReplayError: if it has a URL."""
        __tracebackhide__ = True
        if isinstance(self._command_or_url, str):
            raise ReplayError(self.name, f"it is to be recorded from {self._command_or_url}, which is HTTP: connect to `url`")
        return ["run", "--quiet", f"--capture={self.capture}", "--", *self._command_or_url]

    def listen(self) -> ListeningProcess:
        """Start a proxy for the server. Raises: ReplayError: if the server has no URL, or cannot be reached."""
        __tracebackhide__ = True
        if not isinstance(self._command_or_url, str):
            raise ReplayError(
                self.name,
                "it is to be recorded from a command, which is stdio: start `command`, or record from the URL of a server",
            )
        arguments = ["proxy", self._command_or_url, f"--listen={LISTEN}", "--quiet", f"--capture={self.capture}"]
        return ListeningProcess(arguments, what=self.name, output=self.capture.with_suffix(".output"))

    def misses(self, transcript: Transcript) -> list[Miss]:
        """Return nothing: the real server answers every request."""
        return []

    def unplayed(self, transcript: Transcript) -> list[Exchange]:
        """Return nothing, for nothing is played."""
        return []


def spelled_server(command_or_url: Sequence[str] | str | None) -> str:
    """Spell a real server as a person would write it."""
    return command_or_url if isinstance(command_or_url, str) else " ".join(command_or_url or ())


def recording_failure(paths: Sequence[Path], server: str) -> str:
    """Say why the captures that were recorded from `server` cannot be played; empty if they can."""
    if not paths:
        return f"nothing was recorded: nobody connected to {server}"
    transcript = read_transcript(paths)
    if any(exchange.response is not None for exchange in transcript.exchanges) or _has_refusals(transcript):
        return ""
    exits = [row.record for row in transcript.rows if isinstance(row, ChannelEvent) and isinstance(row.record, Exit)]
    for record in exits:
        if record.error:
            return f"{server} could not be started: {record.error}"
    errors = [finding.what for finding in transcript.findings if finding.severity == "error"]
    return errors[0] if errors else f"{server} answered nothing"


def _read_replies(paths: Sequence[Path], name: str) -> RecordedReplies:
    """Read what can be played. Raises: AddressError, CaptureError, ReplayError: as the mock itself would report it."""
    try:
        transcript = transcribe(*map(read, paths), with_findings=False)
    except OSError as error:
        raise ReplayError(name, error.strerror or str(error)) from error
    return served_replies(transcript, name, over_http=True)


def _as_arguments(options: MockOptions) -> list[str]:
    return [
        f"--{name.replace('_', '-')}={value}"
        for name, values in options.items()
        for value in ([values] if isinstance(values, str) else values)
    ]


def read_transcript(paths: Iterable[Path]) -> Transcript:
    """Read the captures as far as they are written, findings included."""
    return transcribe(*map(read, paths))


def calls(transcript: Transcript) -> list[Exchange]:
    """List the requests of clients, in order."""
    return [exchange for exchange in transcript.exchanges if exchange.sender == CLIENT]


def tool_calls(transcript: Transcript) -> list[tuple[str, dict[str, Any]]]:
    """List the tools that were called, in order, with their arguments; of a call with several rounds, those of the first."""
    tools = []
    for exchange in calls(transcript):
        call = transcript.call_of(exchange)
        if exchange.method == "tools/call" and (call is None or call.row == exchange.row):
            params = exchange.request.params
            arguments = params.get("arguments") if isinstance(params, dict) else None
            tools.append((exchange.target or "", arguments if isinstance(arguments, dict) else {}))
    return tools


def _has_refusals(transcript: Transcript) -> bool:
    """Return whether a server refused a request over HTTP, as one that wants a login does: a mock that listens can play that."""
    return any(
        transaction.status in CLIENT_ERRORS for capture in transcript.captures for transaction in capture.transactions.values()
    )


def _misses(transcript: Transcript, matcher: RequestMatcher) -> list[Miss]:
    """List the requests that were never recorded. The mock's own notes name them; the matcher explains each once more.

    A probe is no miss: with it the client finds out what the recorded server speaks, and goes on.
    """
    explained = _matched(transcript, matcher).misses
    notes = [row.record.text for row in transcript.rows if isinstance(row, ChannelEvent) and _is_miss(row)]  # type: ignore[union-attr]  # a Note
    requests = calls(transcript)
    missed = [_miss_of_note(text, explained, requests) for text in notes]
    probes = {id(exchange.request) for exchange in requests if exchange.outcome is Outcome.PROBE}
    return [miss for miss in missed if id(miss.request) not in probes]


def _unplayed(
    transcript: Transcript, recorded: Sequence[Exchange], matcher: RequestMatcher, *, plays_nearest: bool
) -> list[Exchange]:
    """List the recorded exchanges that were not played, but for requests that clients make by themselves."""
    matched = _matched(transcript, matcher)
    nearest = {miss.nearest.row for miss in matched.misses if miss.nearest is not None} if plays_nearest else set()
    rows = matched.rows | nearest
    return [exchange for exchange in recorded if exchange.row not in rows and exchange.method not in _CLIENTS_OWN]


class _MatchedRequests(NamedTuple):
    """Rows of the recorded exchanges that were played, and the misses."""

    rows: frozenset[int]
    misses: tuple[Miss, ...]


def _matched(live: Transcript, matcher: RequestMatcher) -> _MatchedRequests:
    """Match the requests of live clients once more. A client of stdio is the first of its mock; those of HTTP are counted."""
    rows: set[int] = set()
    missed: list[Miss] = []
    counts: dict[int, int] = {}
    for sequence in client_sequences(live.exchanges):
        capture = sequence[0].capture
        cursor = matcher.cursor(counts.get(capture, 0))
        counts[capture] = counts.get(capture, 0) + 1
        for exchange in sequence:
            match = cursor.match(exchange.request)
            if isinstance(match, Miss):
                missed.append(match)
            else:
                rows.add(match.row)
    return _MatchedRequests(frozenset(rows), tuple(missed))


def _is_miss(row: ChannelEvent) -> bool:
    return isinstance(row.record, Note) and row.record.topic == "miss"


def _miss_of_note(text: str, explained: Sequence[Miss], requests: Sequence[Exchange]) -> Miss:
    """Return the explained miss that a mock's note is about; if there is none, one that has the note's sentence only."""
    for miss in explained:
        if text.startswith(miss.sentence):
            return miss
    for exchange in requests:
        name = request_name(exchange.request)
        if text.startswith(name):
            return Miss(request=exchange.request, reason=text.removeprefix(name).lstrip())
    return Miss(request=requests[-1].request, reason=text)


class ListeningProcess:
    """A process that listens, and prints its `url` on a line of its own, to stdout or stderr. All that it prints goes to `output`.

    Raises: ReplayError: says that `what` could not be served, and why.
    """

    __slots__ = ("_output", "_process", "url")

    def __init__(self, arguments: Sequence[str], *, what: str, output: Path) -> None:
        __tracebackhide__ = True
        self._output = output
        with output.open("wb") as file:
            command = [sys.executable, "-P", "-m", "mcpspy.testing.until_eof", *arguments]
            self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=file, stderr=file)
        self.url = self._address()
        if not self.url:
            self.close()
            printed = [line for line in self._lines() if line]
            reason = (
                printed[-1].removeprefix("mcpspy: ").rstrip(".") if printed else f"it printed no address within {STARTS_S} s"
            )
            raise ReplayError(what, reason)

    def _address(self) -> str:
        until = monotonic() + STARTS_S
        while monotonic() < until:
            is_over = self._process.poll() is not None
            addresses = [line for line in self._lines() if line.startswith("http://")]
            if addresses or is_over:
                return addresses[0] if addresses else ""
            sleep(POLL_S)
        return ""

    def _lines(self) -> list[str]:
        """Return the whole lines that it has printed so far."""
        return self._output.read_text(encoding="utf-8", errors="backslashreplace").split("\n")[:-1]

    def close(self) -> None:
        """End it, and wait until it has recorded how it ended."""
        assert self._process.stdin is not None  # it is a pipe
        self._process.stdin.close()
        try:
            self._process.wait(ENDS_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

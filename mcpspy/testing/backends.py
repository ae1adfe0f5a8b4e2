"""Backends of a server under test: the capture that a mock plays, or the real server under a tap that records it.

Both give the command line of mcpspy that starts them, and say what was missed. A capture is checked before anybody connects.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

from ..capture.file.reader import read
from ..errors import ReplayError
from ..records import Exit
from ..replay.mock.match_key import Strictness
from ..replay.mock.matching import RequestMatcher, Reuse
from ..replay.mock.miss import Miss
from ..replay.mock.replies import RecordedReplies
from ..replay.mock.served import served_replies
from ..transcript.model import ChannelEvent, Exchange, Transcript
from ..transcript.transcribe import transcribe
from . import requests
from .process import LISTEN, ListeningProcess

Backend: TypeAlias = "PlayedCapture | RecordedServer"
MockOptions: TypeAlias = dict[str, str | Sequence[str]]
"""Options of `mcpspy mock` by their names, with `_` for `-`."""


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
        return requests.misses(transcript, self._matcher)

    def unplayed(self, transcript: Transcript) -> list[Exchange]:
        """List the recorded exchanges whose requests are not in `transcript`."""
        plays_nearest = self._options.get("on_miss") == "nearest"
        return requests.unplayed(transcript, self._replies.exchanges, self._matcher, plays_nearest=plays_nearest)


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
    transcript = requests.read_transcript(paths)
    if any(exchange.response is not None for exchange in transcript.exchanges) or requests.has_refusals(transcript):
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

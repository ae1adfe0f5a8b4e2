"""All MCP servers of one test, the value of the fixture `mcpspy`: which are played, which recorded, and which captures are kept."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from shlex import quote
from time import monotonic, sleep
from typing import Any, Final, Literal

from ..capture.store.folder import is_live
from ..errors import McpspyError, ReplayError
from ..replay.mock.miss import Miss
from ..transcript.model import Exchange, Transcript
from . import requests
from .backends import Backend, MockOptions, PlayedCapture, RecordedServer, recording_failure, spelled_server
from .paths import capture_path, keep, server_runs, shown_path, written_captures
from .process import ListeningProcess

RECORDED_ENDS_S: Final = 5.0
"""Time for which a recorded server may run on after its test, which should have disconnected; its last messages are recorded too."""

PLAYED_ENDS_S: Final = 1.0
"""Time for which a mock may run on: it has nothing of interest to say any more."""

POLL_S: Final = 0.005

NO_RECORDING: Final = "none is recorded here (--mcpspy-record=none, the default where CI is set)"

CHOICES: Final = {
    "match": ("strict", "default", "loose"),
    "reuse": ("last", "error"),
    "on_miss": ("error", "nearest"),
    "transport": ("streamable", "sse"),
}
"""Values that options of `serve` may have."""

RealServer = Sequence[str] | str
"""A real server: a command, or a URL."""


def is_ci(environment: Mapping[str, str]) -> bool:
    """Return whether this is a CI environment, where nothing is recorded by accident."""
    return environment.get("CI", "").lower() not in ("", "0", "false")


class ServersUnderTest:
    """The servers of the test `test` (pytest's node id) in `test_file`. `record` and `match` are options of the command line.

    `make_folder` makes a folder for captures that are written during the test.
    """

    def __init__(self, *, test_file: Path, test: str, record: str, match: str | None, make_folder: Callable[[], Path]) -> None:
        self.is_well = False
        """True if the test passed."""
        self._test_file = test_file
        self._test = test
        self._record = record
        self._match = match
        self._make_folder = make_folder
        self._servers: list[ServerUnderTest] = []
        self._unnamed = 0
        self._reported: dict[ServerUnderTest, int] = {}
        """Number of misses of each that have been reported."""

    def __repr__(self) -> str:
        return f"<mcpspy: {', '.join(map(repr, self._servers)) or 'serve() plays a capture'}>"

    def serve(
        self,
        name: str | os.PathLike[str] | None = None,
        *,
        record: Sequence[str] | str | None = None,
        match: Literal["strict", "default", "loose"] | None = None,
        ignore: Sequence[str] = (),
        reuse: Literal["last", "error"] | None = None,
        on_miss: Literal["error", "nearest"] | None = None,
        speed: float | None = None,
        transport: Literal["streamable", "sse"] | None = None,
        allow_misses: bool = False,
    ) -> ServerUnderTest:
        """Play a server from the capture `name`, or record it from `record`, a command or a URL.

        Names are those of files in `captures/` beside the test; without one it is `captures/MODULE/TEST.mcpspy`. A recorded
        capture is kept if the test passes. `match`, `ignore`, `reuse`, `on_miss`, `speed` and `transport` are those of
        `mcpspy mock`. The test fails if its code makes a request that was never recorded, unless misses are allowed or the nearest
        answer is played.

        Raises: AddressError, CaptureError, PathError, ReplayError: if it can be neither played nor recorded.
        """
        __tracebackhide__ = True
        self._unnamed += name is None
        path = capture_path(name, test_file=self._test_file, test=self._test, number=self._unnamed)
        values = {"match": match or self._match, "reuse": reuse, "on_miss": on_miss, "transport": transport, "speed": speed}
        try:
            options = _mock_options(shown_path(path), values) | {"ignore": ignore}
            real = _real_server(shown_path(path), record)
            backend = self._backend(path, real, options)
        except McpspyError as error:
            raise error.with_traceback(None) from None  # its reader wrote the call, and nothing of what is below it
        server = ServerUnderTest(path, backend, real=real, allows_misses=allow_misses or on_miss == "nearest")
        self._servers.append(server)
        return server

    def new_misses(self) -> str:
        """Report requests that were never recorded, but not those that this has reported before; empty if there are none."""
        return "\n\n".join(report for server in self._servers if (report := self._miss_report(server)))

    def close(self) -> str:
        """End what runs, and keep recorded captures if the test passed. Return what is wrong and has not been reported."""
        for server in self._servers:
            server.close()
        for server in self._servers:
            _wait_for_end(server)
        failures = [failure for server in self._servers if (failure := self._keep(server))]
        return "\n\n".join(text for text in (self.new_misses(), *failures) if text)

    def sections(self) -> list[tuple[str, str]]:
        """Return titles and texts for the report of a failed test: what was never recorded, and the timeline of each server."""
        misses = self.new_misses()
        timelines = [(f"mcpspy: {shown_path(server.path)}", _section(server)) for server in self._servers]
        return [("mcpspy: never recorded", misses), *timelines] if misses else timelines

    def _backend(self, path: Path, real: RealServer | None, options: MockOptions) -> PlayedCapture | RecordedServer:
        if real is not None and self._is_to_record(path):
            return RecordedServer(real, shown_path(path), self._make_folder() / path.name)
        return PlayedCapture(self._captures(path, real), shown_path(path), options, self._make_folder() / path.name)

    def _is_to_record(self, path: Path) -> bool:
        if self._record == "none" or (self._record == "once" and path.exists()):
            return False
        if any(server.path == path and server.is_recorded for server in self._servers):
            reason = "it is being recorded in this test already; give the second server a name of its own"
            raise ReplayError(shown_path(path), reason)
        return True

    def _captures(self, path: Path, real: RealServer | None) -> list[Path]:
        """List the captures to play. Raises: ReplayError: if there is none; says how to get one."""
        if captures := server_runs(path):
            return captures
        if real is None:
            reason = "there is no such capture, and serve() is given nothing to record: add record=[COMMAND…] or record=URL"
        else:
            reason = f"there is no such capture, and {NO_RECORDING}: run this test where its server is, and commit the file"
        raise ReplayError(shown_path(path), reason)

    def _miss_report(self, server: ServerUnderTest) -> str:
        if server.allows_misses or server.is_recorded:
            return ""
        transcript = server.transcript()
        misses = server.backend.misses(transcript)
        seen, self._reported[server] = self._reported.get(server, 0), len(misses)
        if len(misses) == seen:
            return ""
        from .messages import miss_report

        command = f"pytest {quote(self._test)} --mcpspy-record=all"
        if server.real:
            how_to_record = f"To record it again: {command}"
        else:
            how_to_record = "To record it again, give serve() a record=[COMMAND…] or record=URL."
        return miss_report(shown_path(server.path), misses[seen:], len(requests.calls(transcript)), how_to_record)

    def _keep(self, server: ServerUnderTest) -> str:
        """Keep the server's captures if it was recorded and the test passed. Return why that failed; empty if it did not."""
        if not server.is_recorded or not self.is_well:
            return ""
        name, real = shown_path(server.path), spelled_server(server.real)
        captures = written_captures(server.backend.capture)
        if any(is_live(str(capture)) for capture in captures):
            return f"{name}: {real} still runs, {RECORDED_ENDS_S:g} s after the test, and is not kept: disconnect in the test"
        reason = recording_failure(captures, real)
        if reason:
            return f"{name}: {reason}"
        try:
            keep(captures, server.path)
        except OSError as error:
            return f"{name}: it cannot be kept there: {error.strerror}"
        return ""


def _mock_options(name: str, values: Mapping[str, str | float | None]) -> MockOptions:
    """Make options of `mcpspy mock` of those that have a value. Raises: ReplayError: if one has a value that it cannot have."""
    for option, value in values.items():
        choices = CHOICES.get(option)
        if choices and value is not None and value not in choices:
            raise ReplayError(name, f"{option}={value!r} is none of {', '.join(map(repr, choices))}")
        if option == "speed" and not (value is None or (isinstance(value, int | float) and 0 <= value < float("inf"))):
            raise ReplayError(name, f"speed={value!r} is no speed: 0, 1 or another number above 0")
    return {option: f"{value:g}" if isinstance(value, int | float) else value for option, value in values.items() if value}


def _real_server(name: str, record: Sequence[str] | str | None) -> RealServer | None:
    """Return the server that `serve` is to record. Raises: ReplayError: if that is neither a command nor a URL."""
    if not isinstance(record, str):
        return record or None
    if not record.startswith(("http://", "https://")):
        raise ReplayError(
            name, f"record={record!r} is neither a URL nor a command: write a command as a list, {record.split()!r}"
        )
    return record


def _wait_for_end(server: ServerUnderTest) -> None:
    """Wait until nothing writes into its captures any more, but not for long."""
    until = monotonic() + (RECORDED_ENDS_S if server.is_recorded else PLAYED_ENDS_S)
    while monotonic() < until and any(is_live(str(capture)) for capture in written_captures(server.backend.capture)):
        sleep(POLL_S)


def _section(server: ServerUnderTest) -> str:
    captures = written_captures(server.backend.capture)
    if not captures:
        return "nobody connected to it"
    from .messages import timeline_text

    not_kept = f"This is not kept in {shown_path(server.path)}: the test failed.\n" if server.is_recorded else ""
    live = any(is_live(str(capture)) for capture in captures)
    timeline = timeline_text(requests.read_transcript(captures), live=live)
    return f"{timeline}\n\n{not_kept}mcpspy show {' '.join(map(str, captures))}"


# --- One server ---


class ServerUnderTest:
    """A server that the code under test connects to. `path` is its capture, or where that will be.

    On stdio it is a `command` with `args`, and `env` is what its environment needs; over HTTP it is a `url`. Its requests so
    far can be looked at any time: `tool_calls`, `calls`, `misses`, `transcript()`.
    """

    __slots__ = ("_process", "allows_misses", "backend", "path", "real")

    def __init__(self, path: Path, backend: Backend, *, real: Sequence[str] | str | None, allows_misses: bool) -> None:
        self.path = path
        self.backend = backend
        self.real = real
        """The command or URL of the real server, if the test gives one."""
        self.allows_misses = allows_misses
        self._process: ListeningProcess | None = None

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {'recorded to' if self.is_recorded else 'played from'} {shown_path(self.path)}>"

    # How to reach it

    @property
    def command(self) -> str:
        """The program that a client of stdio starts. Raises: ReplayError: if the server is being recorded over HTTP."""
        __tracebackhide__ = True
        return self._argv[0]

    @property
    def args(self) -> list[str]:
        """Its arguments. Raises: ReplayError: if the server is being recorded over HTTP."""
        __tracebackhide__ = True
        return self._argv[1:]

    @property
    def env(self) -> dict[str, str]:
        """The environment that it needs besides what clients hand on (`PATH`, `HOME`)."""
        return {"MCPSPY_HOME": os.environ["MCPSPY_HOME"]} if os.environ.get("MCPSPY_HOME") else {}

    @property
    def url(self) -> str:
        """Its address over HTTP. The server starts when this is first read, and ends with the test.

        Raises: ReplayError: if it cannot be started, or is being recorded on stdio.
        """
        __tracebackhide__ = True
        if self._process is None:
            self._process = self.backend.listen()
        return self._process.url

    def stdio_parameters(self) -> Any:
        """Return the same for the official SDK: `mcp.StdioServerParameters`. Raises: ImportError: if that is not installed."""
        from mcp import StdioServerParameters

        return StdioServerParameters(command=self.command, args=self.args, env=self.env or None)

    @property
    def _argv(self) -> list[str]:
        __tracebackhide__ = True
        return [sys.executable, "-P", "-m", "mcpspy", *self.backend.stdio_arguments()]

    # Its requests

    @property
    def is_recorded(self) -> bool:
        """True if the real server answers this time, and is recorded."""
        return self.backend.is_recording

    @property
    def calls(self) -> list[Exchange]:
        """All requests so far, `initialize` included: the exchanges of `transcript()` that the client began."""
        return requests.calls(self.transcript())

    @property
    def tool_calls(self) -> list[tuple[str, dict[str, Any]]]:
        """The tools that were called so far, in order: the name of each and its arguments."""
        return requests.tool_calls(self.transcript())

    @property
    def misses(self) -> list[str]:
        """The requests so far that were never recorded, a sentence for each."""
        return [miss.sentence for miss in self.detailed_misses()]

    def detailed_misses(self) -> list[Miss]:
        """Return the same with all that is known of each."""
        return self.backend.misses(self.transcript())

    def transcript(self) -> Transcript:
        """Return all that was said so far; of a server that was started several times, in all its runs."""
        return requests.read_transcript(written_captures(self.backend.capture))

    def assert_all_played(self) -> None:
        """Assert that every recorded request was made, but for those that clients make by themselves (`initialize`, `ping`)."""
        __tracebackhide__ = True
        unplayed = self.backend.unplayed(self.transcript())
        if unplayed:
            from .messages import unplayed_report  # and with it the views, which a test that passes can do without

            raise AssertionError(unplayed_report(shown_path(self.path), unplayed))

    def close(self) -> None:
        """End the process that `url` started."""
        if self._process is not None:
            self._process.close()

"""All MCP servers of one test, the value of the fixture `mcpspy`: which are played, which recorded, and which captures are kept.

A new capture gets its name whole, and only if the test passed. A server that the code under test starts several times has a
capture for each server run: `weather.mcpspy`, `weather.run2.mcpspy`, ….
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from shlex import quote
from time import monotonic, sleep
from typing import Any, Final, Literal

from ..capture.store.folder import EXTENSION, is_live
from ..errors import McpspyError, ReplayError
from ..replay.mock.miss import Miss
from ..transcript.model import Exchange, Transcript
from . import backends
from .backends import Backend, ListeningProcess, MockOptions, PlayedCapture, RecordedServer, recording_failure, spelled_server

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

FOLDER = "captures"
"""The folder beside the test's file."""

_MAX_BYTES = 100
"""Limit of a name that is made from a test's: some file systems take 143, and a digest, a number and the extension follow."""


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
            options = _mock_options(_shown_path(path), values) | {"ignore": ignore}
            real = _real_server(_shown_path(path), record)
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
        timelines = [(f"mcpspy: {_shown_path(server.path)}", _section(server)) for server in self._servers]
        return [("mcpspy: never recorded", misses), *timelines] if misses else timelines

    def _backend(self, path: Path, real: RealServer | None, options: MockOptions) -> PlayedCapture | RecordedServer:
        if real is not None and self._is_to_record(path):
            return RecordedServer(real, _shown_path(path), self._make_folder() / path.name)
        return PlayedCapture(self._captures(path, real), _shown_path(path), options, self._make_folder() / path.name)

    def _is_to_record(self, path: Path) -> bool:
        if self._record == "none" or (self._record == "once" and path.exists()):
            return False
        if any(server.path == path and server.is_recorded for server in self._servers):
            reason = "it is being recorded in this test already; give the second server a name of its own"
            raise ReplayError(_shown_path(path), reason)
        return True

    def _captures(self, path: Path, real: RealServer | None) -> list[Path]:
        """List the captures to play. Raises: ReplayError: if there is none; says how to get one."""
        if captures := server_runs(path):
            return captures
        if real is None:
            reason = "there is no such capture, and serve() is given nothing to record: add record=[COMMAND…] or record=URL"
        else:
            reason = f"there is no such capture, and {NO_RECORDING}: run this test where its server is, and commit the file"
        raise ReplayError(_shown_path(path), reason)

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
        return miss_report(_shown_path(server.path), misses[seen:], len(backends.calls(transcript)), how_to_record)

    def _keep(self, server: ServerUnderTest) -> str:
        """Keep the server's captures if it was recorded and the test passed. Return why that failed; empty if it did not."""
        if not server.is_recorded or not self.is_well:
            return ""
        name, real = _shown_path(server.path), spelled_server(server.real)
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

    not_kept = f"This is not kept in {_shown_path(server.path)}: the test failed.\n" if server.is_recorded else ""
    live = any(is_live(str(capture)) for capture in captures)
    timeline = timeline_text(backends.read_transcript(captures), live=live)
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
        return f"<{type(self).__name__} {'recorded to' if self.is_recorded else 'played from'} {_shown_path(self.path)}>"

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
        return backends.calls(self.transcript())

    @property
    def tool_calls(self) -> list[tuple[str, dict[str, Any]]]:
        """The tools that were called so far, in order: the name of each and its arguments."""
        return backends.tool_calls(self.transcript())

    @property
    def misses(self) -> list[str]:
        """The requests so far that were never recorded, a sentence for each."""
        return [miss.sentence for miss in self.detailed_misses()]

    def detailed_misses(self) -> list[Miss]:
        """Return the same with all that is known of each."""
        return self.backend.misses(self.transcript())

    def transcript(self) -> Transcript:
        """Return all that was said so far; of a server that was started several times, in all its runs."""
        return backends.read_transcript(written_captures(self.backend.capture))

    def assert_all_played(self) -> None:
        """Assert that every recorded request was made, but for those that clients make by themselves (`initialize`, `ping`)."""
        __tracebackhide__ = True
        unplayed = self.backend.unplayed(self.transcript())
        if unplayed:
            from .messages import unplayed_report  # and with it the views, which a test that passes can do without

            raise AssertionError(unplayed_report(_shown_path(self.path), unplayed))

    def close(self) -> None:
        """End the process that `url` started."""
        if self._process is not None:
            self._process.close()


def capture_path(name: str | os.PathLike[str] | None, *, test_file: Path, test: str, number: int) -> Path:
    """Return the path of the capture that a test calls `name`; without a name, of its `number`-th capture without one.

    Names are those of files in `captures/` beside the test; absolute paths stay. `test` is pytest's node id.
    """
    folder = test_file.parent / FOLDER
    if name is None:
        stem = _file_part(test.partition("::")[2]) + (f"+{number}" if number > 1 else "")
        return folder / test_file.stem / f"{stem}{EXTENSION}"
    path = folder / name
    return path if path.suffix == EXTENSION or path.is_file() else path.with_name(path.name + EXTENSION)


def server_runs(path: Path) -> list[Path]:
    """List the captures that exist of a server: of its first run, and of those after it."""
    paths = []
    number = 1
    while (run := _run_path(path, number)).exists():
        paths.append(run)
        number += 1
    return paths


def written_captures(capture: Path) -> list[Path]:
    """List the captures of all taps and mocks that were given the file `capture`, in order: `x.mcpspy`, `x-2.mcpspy`, …."""
    paths = capture.parent.glob(f"*{EXTENSION}")
    return sorted(paths, key=lambda path: (len(path.name), path.name))


def keep(recorded: Sequence[Path], path: Path) -> None:
    """Copy recorded captures to `path` and the names that follow from it, each with one rename; remove earlier ones there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    for number, capture in enumerate(recorded, 1):
        _copy(capture, _run_path(path, number))
    for stale in server_runs(path)[len(recorded) :]:
        stale.unlink()


def _shown_path(path: Path) -> str:
    """Spell a path as a person who works in this folder would."""
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)


def _run_path(path: Path, number: int) -> Path:
    return path if number == 1 else path.with_name(f"{path.stem}.run{number}{path.suffix}")


def _copy(recorded: Path, path: Path) -> None:
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        shutil.copyfile(recorded, beside)  # as private as other files of the project: it is meant to be committed
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def _file_part(name: str) -> str:
    """Make a test's name a part of a file's name; where more than brackets and colons had to change, a digest keeps it unique."""
    function, _, parameters = name.partition("[")
    plain = function.replace("::", ".") + (f"-{parameters.removesuffix(']')}" if parameters else "")
    safe = "".join(letter if letter.isalnum() or letter in "._-" else "-" for letter in plain).strip(".-")
    safe = safe.encode()[:_MAX_BYTES].decode(errors="ignore")
    return safe if safe == plain else f"{safe}-{sha256(name.encode(errors='surrogatepass')).hexdigest()[:8]}"

"""The bench of a trial: it runs one peer once for each fault, and compares what it does with what it does without one.

Each run is a process with its capture and what it printed, ended when its patience is over. Over HTTP, its server is a mock
of the capture, and the fault is in a `mcpspy proxy` in front of it or of a server.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from glob import escape, glob
from shlex import join
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

from ..capture.file.reader import read
from ..capture.store.folder import is_live
from ..errors import TrialError
from ..intercept.syntax import parse_intercept
from ..platform.files import BINARY
from ..platform.processes import end_with_us
from ..records import CLIENT
from ..replay.trial import (
    CLIENT_FAULTS,
    HTTP,
    HUGE_LETTERS,
    NO_FAULT,
    SERVER_FAULTS,
    STDIO,
    FaultSettings,
    Judgement,
    PeerEnd,
    TrialFault,
    TrialOutcome,
    TrialResult,
    first_session,
    is_hit_by,
    judged_client,
    judged_server,
)
from ..transcript.model import Exchange
from ..transcript.transcribe import transcribe
from .filter_option import combined_filter, filter_rows
from .replay.played import probes_of
from .transcripts import transcript_of_file

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..transcript.model import Transcript

SERVER: Final = "{server}"
"""The mock's command, in the command of a client."""

_QUOTED_SERVER: Final = (f"'{SERVER}'", f'"{SERVER}"')
"""The same as one argument."""

URL: Final = "{url}"
"""The mock's address, in the command of a client over HTTP."""

MCPSPY: Final = (sys.executable, "-P", "-m", "mcpspy")
_ENDED_S: Final = 2.0
"""From SIGTERM to SIGKILL."""

RECORDED_S: Final = 15.0
"""A tap has ended its server by then, whatever that does."""

_POLL_S: Final = 0.02

READY_S: Final = 30.0
"""A mock listens by then, whatever its capture."""

ANY_PORT: Final = "127.0.0.1:0"


class TrialOptions(NamedTuple):
    """The command line without the peer's command."""

    what: str
    plays_client: bool
    url: str | None
    transport: str | None
    only: tuple[str, ...]
    calls: str
    slow: str
    late: str
    patience: float
    seed: int
    expect: str | None
    accept: bool
    junit: str | None
    captures: str | None
    lists: bool
    as_json: bool

    def faults(self, peer: Sequence[str]) -> dict[str, TrialFault]:
        """Return the faults that this peer can be tried with, by name."""
        faults = CLIENT_FAULTS if self.plays_client else SERVER_FAULTS
        return {name: fault for name, fault in faults.items() if self.channel(peer) in fault.transports}

    def channel(self, peer: Sequence[str]) -> str:
        """Return the transport to this peer: `stdio` or `http`."""
        return HTTP if self.url is not None or any(URL in word for word in peer) else STDIO


def _recorded_result(path: str, options: TrialOptions) -> dict[str, Any]:
    """Return the first recorded result of the calls that are hit. Raises: click.UsageError: if there is none."""
    transcript = transcript_of_file(path)
    calls = combined_filter((options.calls,))
    assert calls is not None
    for row in filter_rows(calls, transcript, transcript.rows).rows:
        if isinstance(row, Exchange) and row.sender == CLIENT and row.response is not None:
            result = json.loads(row.response.raw).get("result")
            if isinstance(result, dict):
                return result
    raise click.UsageError(f"{path} has no result of {options.calls}. Name other requests with --calls, or another capture.")


def _text(text: str) -> list[dict[str, str]]:
    return [{"type": "text", "text": text}]


class TrialBench:
    """One peer, one capture that is played to it, and the trial without a fault, with which the others are compared."""

    def __init__(self, options: TrialOptions, peer: list[str], path: str, folder: str, temporary: str) -> None:
        self._options = options
        self._peer = peer
        self._path = path
        self._probes = probes_of(path)
        self._folder = folder
        self._temporary = temporary
        self._sound: tuple[PeerEnd, Transcript] | None = None
        self._channel = options.channel(peer)
        result = _recorded_result(path, options)
        text = "x" * HUGE_LETTERS
        self._settings = FaultSettings(
            calls=options.calls,
            slow=options.slow,
            late=options.late,
            tool_error=self._answer("tool-error.json", {**result, "content": _text("The tool failed."), "isError": True}),
            huge=text if options.plays_client else self._answer("huge.json", {**result, "content": _text(text)}),
        )

    def _answer(self, name: str, result: dict[str, Any]) -> str:
        """Write an answer that an intercept gives; return its path."""
        path = os.path.join(self._temporary, name)
        with open(path, "w", encoding="ascii") as file:
            json.dump(result, file)
        return path

    def run(self, fault: TrialFault) -> TrialResult:
        """Run the trial of a fault. Raises: TrialError: if the peer cannot be started, or fails without a fault."""
        capture, log = (os.path.join(self._folder, f"{fault.name}{end}") for end in (".mcpspy", ".log"))
        for old in (capture, log):
            if os.path.exists(old):
                os.unlink(old)
        folder = os.path.join(self._temporary, fault.name)
        os.makedirs(folder)
        intercepts = self._write_intercepts(fault, folder)
        servers = _HttpServers(folder)

        def stop() -> None:
            with open(log, "a", encoding="utf-8") as file:
                file.write(servers.stop())

        words = self._peer
        try:
            words = self._words(fault, capture, intercepts, servers)
            starts = 1 if self._sound is None else first_session(self._sound[1]) + 1
            end, paths = _run_peer(words, log, self._options.patience, capture, intercepts, stop, faulty_starts=starts)
        except OSError as error:
            servers.stop()
            for path in filter(os.path.exists, (capture, log)):
                os.unlink(path)
            raise TrialError(words[0], f"it cannot be started: {error.strerror}; name the command as a shell would") from None
        finally:
            servers.stop()
        transcript = transcribe(*map(read, paths), with_findings=False)
        if fault.name == NO_FAULT:
            self._check_sound(end, transcript, log)
            self._sound = end, transcript
        assert self._sound is not None
        sound_end, sound_transcript = self._sound
        if fault.name == NO_FAULT:
            judgement = Judgement(outcome=TrialOutcome.WENT_ON)
        elif self._options.plays_client:
            judgement = judged_server(transcript, sound_transcript)
        else:
            judgement = judged_client(transcript, end, sound_transcript, sound_end)
        return TrialResult(fault=fault.name, words=fault.words, judgement=judgement, end=end, captures=tuple(paths), log=log)

    def _write_intercepts(self, fault: TrialFault, folder: str) -> str:
        """Write the intercepts of a fault; return the path."""
        texts = fault.intercepts(self._settings)
        for text in texts:
            parse_intercept(text, lambda _: b"{}", self._channel)
        path = os.path.join(folder, "intercepts")
        with open(path, "w", encoding="utf-8") as file:
            file.writelines(f"{text}\n" for text in texts)
        return path

    def _words(self, fault: TrialFault, capture: str, intercepts: str, servers: _HttpServers) -> list[str]:
        """Return the command of a trial, and start the servers that it needs over HTTP."""
        options = self._options
        tap = ["--quiet", "--no-control", "--label", f"trial-{fault.name}", "--capture", capture]
        tap += ["--intercepts", intercepts, "--seed", str(options.seed)]
        run = [*MCPSPY, "run", *tap, "--"]
        own = ["--capture", os.path.join(os.path.dirname(intercepts), "own.mcpspy")]
        transport = [] if options.transport is None else ["--transport", options.transport]
        if not options.plays_client and self._channel == STDIO:
            return _with_server(self._peer, [*run, *MCPSPY, "mock", "--quiet", *own, *self._probes, self._path])
        if not options.plays_client:
            events = ["--events"] if fault.needs_events else []
            url = servers.proxy(servers.mock([*transport, *events, *own, *self._probes, self._path]), tap)
            return [word.replace(URL, url) for word in self._peer]
        replay = [*MCPSPY, "replay", self._path, "--yes", "--timeout", f"{options.patience / 2:g}", *own]
        if options.url is not None:
            return [*replay, "--url", servers.proxy(options.url, tap), *transport]
        return [*replay, "--", *run, *self._peer]

    def _check_sound(self, end: PeerEnd, transcript: Transcript, log: str) -> None:
        """Check that the peer works where nothing is wrong. Raises: TrialError."""
        name = join(self._peer) or str(self._options.url)
        if not transcript.captures:
            is_words = SERVER in self._peer
            advice = f'; if the client takes a command as one argument, quote it: "{_QUOTED_SERVER[0]}"' if is_words else ""
            reason = f"it did not start the server that {SERVER} stands for{advice}; what it printed is in {log}"
            raise TrialError(name, reason)
        if not any(exchange.sender == CLIENT for exchange in transcript.exchanges) and self._channel == HTTP:
            raise TrialError(name, f"no request came to the address that {URL} stands for; what it printed is in {log}")
        is_done = end.status in (0, 1) if self._options.plays_client else end.status == 0
        if not is_done:
            raise TrialError(name, f"it fails without a fault too: {end.words}; what it printed is in {log}")
        if is_hit_by(transcript):
            raise TrialError(name, "a fault hit where there is none")


def _with_server(client: Sequence[str], server: Sequence[str]) -> list[str]:
    """Put the server's command into that of a client: as words where `{server}` is a word, else quoted for a shell.

    Quotation marks around `{server}`, which a shell did not take away, make it one word.
    """
    words: list[str] = []
    for word in client:
        text = SERVER if word in _QUOTED_SERVER else word
        words += server if word == SERVER else [text.replace(SERVER, join(server))]
    return words


def _run_peer(
    words: Sequence[str],
    log: str,
    patience_s: float,
    capture: str,
    intercepts: str,
    then: Callable[[], None],
    *,
    faulty_starts: int = 1,
) -> tuple[PeerEnd, list[str]]:
    """Run a client to its end, or for so long. Its output goes into `log`. Raises: OSError: if it cannot be started.

    Returns how it ended, and the captures that its servers made, the first at `capture`; before that it calls `then`. The file of
    intercepts is emptied once so many servers have read it: if the client starts another one, that has no fault.
    """
    stem, extension = os.path.splitext(capture)
    last = capture if faulty_starts == 1 else f"{stem}-{faulty_starts}{extension}"
    begin_ns = time.monotonic_ns()
    with open(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | BINARY, 0o600), "wb") as output:
        process = subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
        )
        status: int | None = None
        try:
            status = _waited(process, patience_s, last, intercepts)
        except subprocess.TimeoutExpired:
            _signal(process.pid, signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                process.wait(_ENDED_S)
        finally:
            took_ns = time.monotonic_ns() - begin_ns
            if process.poll() is None:
                process.kill()
                process.wait()
            then()
            paths = captures_of(capture)
            _signal(process.pid, signal.SIGKILL)  # what it left in its session
    return PeerEnd(status=status, took_ns=took_ns), paths


def _waited(process: subprocess.Popen[bytes], patience_s: float, capture: str, intercepts: str) -> int:
    """Wait for the end of a process, and empty the file of intercepts on the way. Raises: subprocess.TimeoutExpired."""
    until_s = time.monotonic() + patience_s
    while not os.path.exists(capture) and time.monotonic() < until_s:  # a tap has read its intercepts before it records
        with suppress(subprocess.TimeoutExpired):
            return process.wait(_POLL_S)
    os.truncate(intercepts, 0)
    return process.wait(max(until_s - time.monotonic(), 0))


def captures_of(path: str) -> list[str]:
    """Return the captures that a client's servers made, the first at `path`, once they are complete."""
    stem, extension = os.path.splitext(path)
    until_s = time.monotonic() + RECORDED_S
    while True:
        paths = [path] if os.path.exists(path) else []
        paths += sorted(glob(f"{escape(stem)}-[0-9]*{extension}"), key=lambda name: (len(name), name))
        if not any(map(is_live, paths)) or time.monotonic() > until_s:
            return paths
        time.sleep(_POLL_S)


def _signal(pid: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, number)


class _HttpServers:
    """The mcpspy processes that one trial needs, which print their URLs into files in a folder. They end if we are killed."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._processes: list[subprocess.Popen[bytes]] = []
        self._wardens: list[int | None] = []

    def mock(self, words: Sequence[str]) -> str:
        """Serve a capture; return the URL. Raises: TrialError: if it cannot be served."""
        return self._start("mock", ["mock", "--listen", ANY_PORT, *words])

    def proxy(self, url: str, words: Sequence[str]) -> str:
        """Put a proxy in front of a URL; return its own. Raises: TrialError."""
        return self._start("proxy", ["proxy", url, "--listen", ANY_PORT, *words])

    def _start(self, name: str, words: Sequence[str]) -> str:
        path = os.path.join(self._folder, f"{name}-{len(self._processes)}.out")
        with open(path, "wb") as output:
            process = subprocess.Popen(
                [*MCPSPY, *words], stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
            )
        self._processes.append(process)
        self._wardens.append(end_with_us(process.pid))
        until_s = time.monotonic() + READY_S
        while process.poll() is None and time.monotonic() < until_s:
            url = next((line for line in _lines(path) if line.startswith("http")), None)
            if url is not None:
                return url
            time.sleep(_POLL_S)
        raise TrialError(f"mcpspy {name}", " ".join(_lines(path)) or "it did not begin to listen")

    def stop(self) -> str:
        """End them, the last first; return what they printed besides their URLs."""
        for descriptor in self._wardens:
            if descriptor is not None:
                os.write(descriptor, b"!")
                os.close(descriptor)
        self._wardens = []
        for process in reversed(self._processes):
            process.terminate()
            with suppress(subprocess.TimeoutExpired):
                process.wait(_ENDED_S)
            if process.poll() is None:
                process.kill()
                process.wait()
        names = sorted(name for name in os.listdir(self._folder) if name.endswith(".out"))
        lines = [line for name in names for line in _lines(os.path.join(self._folder, name)) if not line.startswith("http")]
        self._processes = []
        return "".join(f"{line}\n" for line in lines)


def _lines(path: str) -> list[str]:
    """Return the lines of a file that are whole."""
    with open(path, encoding="utf-8", errors="replace") as file:
        return [line.rstrip("\n") for line in file if line.endswith("\n")]

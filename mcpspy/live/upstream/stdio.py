"""A client of a live server on stdio: its process, started in a session of its own without a shell, its streams, and its end.

The shutdown is the specification's (basic/lifecycle): the input is closed, then SIGTERM, then SIGKILL, with the times of the official
SDKs. Signals go to the whole session, so that nothing that the server started outlives it.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence

from ...errors import UpstreamError
from ...platform import signals
from ...platform.descriptors import POLLOUT, SURE_BYTES, poll
from ...platform.processes import END_BY, end_session, in_session, process, program, restore_locale
from ...platform.signals import SIGKILL, SIGTERM
from ...records import CLIENT, MCPSPY, SERVER, Close, Exit, Frame, Note, Open, Record, Sink, Spawn, Stall
from ...wire.http_body import Body
from ...wire.jsonrpc import cut
from ...wire.lines import Lines, one_line
from ..http.recorder import StreamRecorder
from ..stdio.tap import STREAMS, descendants_ended, descendants_running, listed
from .partials import Partials
from .protocol import MAX_MESSAGE_BYTES, Failure, ServerListener, cancellation

INPUT_S = 2.0
"""From the end of the input to SIGTERM, and from there to SIGKILL, as in the SDKs (mcp 2.3.0, TypeScript SDK 1.32.2)."""

DRAIN_S = 0.5
"""Time for which pipes that others still hold are read after the server's exit, and in which what it left may end by itself."""

STALL_S = 1.0
"""After how long it is recorded that the server does not read its input."""

DEAF_S = 30.0
"""After how long the next message fails, because the server does not read its input."""

GONE_S = 0.5
"""From the end of the stdout to reporting a server as lost that has not exited: most are about to exit, with a status."""

KILL_AFTER_S = 1.0
"""From SIGTERM to SIGKILL for processes that a server has left behind."""

POLL_S = 0.02

_LAST_WORDS_BYTES = 2048
STDIN, STDOUT, STDERR = 0, 1, 2


class StdioClient:
    """A client of the server `argv`. What the server writes to its stderr is recorded, and `to_stderr` shows it.

    `patience_s` is how long to wait after the end of the input before SIGTERM, and then before SIGKILL. `framing` is that of the
    messages. `status` is the exit status once the server has ended: its own, or 128 + n if signal n ended it.
    """

    def __init__(
        self,
        argv: Sequence[str],
        *,
        sink: Sink,
        now_ns: Callable[[], int],
        listener: ServerListener,
        patience_s: float = INPUT_S,
    ) -> None:
        self._argv = tuple(argv)
        self._sink = sink
        self._now_ns = now_ns
        self._listener = listener
        self._patience_s = patience_s
        self._streams = [StreamRecorder(number, sender, Lines.name) for number, sender, _ in STREAMS]
        self._partials = [Partials(stream, sink, now_ns) for stream in self._streams]
        self._parts: list[bytes] = []  # of the frame that stdout is at
        self._frame_bytes = 0
        self._last_words = b""
        self._transport: asyncio.SubprocessTransport | None = None
        self._writable = asyncio.Event()
        self._exited = asyncio.Event()
        self._ended = asyncio.Event()  # stdout and stderr
        self._is_leaving = False
        self._is_lost = False  # and that is reported
        self._has_left = False  # processes, when it exited
        self.pid = 0
        self.status: int | None = None

    async def start(self) -> None:
        restore_locale()
        loop = asyncio.get_running_loop()
        self._writable.set()
        try:
            command = program(self._argv)
            if isinstance(command, str):
                await loop.subprocess_shell(lambda: _Pipes(self), command)
            else:
                await loop.subprocess_exec(lambda: _Pipes(self), *command, start_new_session=True)
        except (OSError, ValueError) as error:
            reason = _start_error(error)
            self._sink((Exit(at_ns=self._now_ns(), pid=0, error=reason),))
            raise UpstreamError(
                self._argv[0], reason, "Name the server's command as a client's configuration has it"
            ) from error

    async def send(self, data: bytes) -> None:
        why = "" if self._writable.is_set() or await self._takes_more() else "the server does not read its standard input"
        stdin = self._stdin
        if stdin is None or stdin.is_closing():
            why = "the server has closed its standard input"
        if why:
            if not self._is_lost and not self._is_leaving:
                for piece in cut(data):
                    self._listener.on_failed(
                        Failure(id=piece.id if piece.kind == "request" else None, method=piece.method or "", why=why)
                    )
            return
        assert stdin is not None
        frame = one_line(data)
        now_ns = self._now_ns()
        self._sink((Frame(STDIN, now_ns, now_ns, frame, injected=True),))
        stdin.write(frame)

    async def cancel(self, id: str) -> None:
        await self.send(cancellation(id))

    def hold(self, *, holds: bool) -> None:
        stdout = self._transport.get_pipe_transport(STDOUT) if self._transport is not None else None
        if isinstance(stdout, asyncio.ReadTransport) and not stdout.is_closing():
            if holds:
                stdout.pause_reading()
            else:
                stdout.resume_reading()

    async def close(self) -> None:
        if self._transport is None or self._is_leaving:
            return
        self._is_leaving = True
        try:
            await self._leave()
        finally:
            self._signal(SIGKILL)  # also if the caller was cancelled: nothing is left
            await self._happens(self._exited, GONE_S)
            self._let_go()

    # Called by the pipes

    def on_start(self, transport: asyncio.SubprocessTransport) -> None:
        """Record the start of the process."""
        self._transport = transport
        self.pid = transport.get_pid()
        now_ns = self._now_ns()
        own = process(self.pid)
        records: list[Record] = [
            Open(at_ns=now_ns, stream=number, sender=sender, name=name, injected=number == STDIN)
            for number, sender, name in STREAMS
        ]
        self._sink([*records, Spawn(at_ns=now_ns, pid=self.pid, start=own.start if own else 0)])

    def on_data(self, stream: int, data: bytes) -> None:
        """Take bytes that the server wrote."""
        now_ns = self._now_ns()
        records = self._streams[stream].feed(Body(data, data), now_ns)
        self._partials[stream].look()
        if records:
            self._sink(records)
        if stream == STDERR:
            self._last_words = (self._last_words + data)[-_LAST_WORDS_BYTES:]
            self._listener.on_stderr(data)
        else:
            self._receive(records)

    def on_pipe_end(self, stream: int) -> None:
        """Record the end of one of the three pipes."""
        if not self._streams[stream].is_open:
            return
        now_ns = self._now_ns()
        if stream == STDIN:
            self._streams[STDIN].is_open = False
            self._sink((Close(at_ns=now_ns, stream=STDIN, by=SERVER, how="broken"),))
            self._writable.set()
            return
        records = self._streams[stream].close(now_ns, SERVER, "eof")
        self._partials[stream].close()
        self._sink(records)
        if stream == STDOUT:
            self._receive(records)
            if not self._exited.is_set():
                asyncio.get_running_loop().call_later(GONE_S, self._report_lost, "the server has closed its standard output")
        if not any(recorder.is_open for recorder in self._streams[STDOUT:]):
            self._ended.set()
            if self._exited.is_set():
                self._report_lost()

    def on_exit(self, code: int) -> None:
        """Record the end of the process: by signal -`code` if that is negative."""
        left = tuple(listed(in_session(self.pid)))
        self._has_left = bool(left)
        now_ns = self._now_ns()
        if code < 0:
            self.status = 128 - code
            self._sink((Exit(at_ns=now_ns, pid=self.pid, signal=signals.name(-code), descendants=left),))
        else:
            self.status = code
            self._sink((Exit(at_ns=now_ns, pid=self.pid, code=code, descendants=left),))
        self._exited.set()
        if self._ended.is_set():
            self._report_lost()
        else:
            asyncio.get_running_loop().call_later(DRAIN_S, self._report_lost)

    def on_writable(self, *, is_writable: bool) -> None:
        """Take note of whether the server takes what is written to it."""
        if is_writable:
            self._writable.set()
        else:
            self._writable.clear()

    # Messages

    async def _takes_more(self) -> bool:
        """Wait until the server reads its input again. Returns False if it does not."""
        if await self._happens(self._writable, STALL_S):
            return True
        begun_ns = self._now_ns()
        stdin = self._stdin
        waiting_bytes = stdin.get_write_buffer_size() if stdin is not None else 0
        self._sink((Stall(at_ns=begun_ns, stream=STDIN, waiting_bytes=waiting_bytes),))
        if not await self._happens(self._writable, DEAF_S - STALL_S):
            return False
        now_ns = self._now_ns()
        lasted_ns = now_ns - begun_ns + int(STALL_S * 1_000_000_000)
        self._sink((Stall(at_ns=now_ns, stream=STDIN, waiting_bytes=0, lasted_ns=lasted_ns),))
        return True

    def _receive(self, records: Sequence[Record]) -> None:
        """Report the messages in these frames. Whatever is no message is only recorded."""
        for record in records:
            if not isinstance(record, Frame):
                continue
            self._frame_bytes += len(record.data)
            if self._frame_bytes <= MAX_MESSAGE_BYTES:
                self._parts.append(record.data)
            if record.part:
                continue
            frame, is_whole = b"".join(self._parts), self._frame_bytes <= MAX_MESSAGE_BYTES
            self._parts, self._frame_bytes = [], 0
            if not is_whole:
                text = f"a line of more than {MAX_MESSAGE_BYTES} bytes, which is recorded and not heard"
                self._sink((Note(at_ns=self._now_ns(), topic="too-long", text=text),))
            elif not self._is_lost:
                for piece in cut(frame.rstrip(b"\r\n")):
                    if piece.kind != "malformed":
                        self._listener.on_message(piece.raw, None)

    def _report_lost(self, why: str = "") -> None:
        if self._is_lost or self._is_leaving:
            return
        self._is_lost = True
        self._writable.set()
        self._listener.on_lost(why if self.status is None else f"the server {self._ending()}")

    def _ending(self) -> str:
        """Say how the process ended, and quote the last line of its stderr."""
        status = self.status or 0
        how = f"was ended by {signals.name(status - 128)}" if self._is_signalled else f"exited with status {status}"
        words = [line for line in self._last_words.decode(errors="replace").splitlines() if line.strip()]
        return f"{how}; its last words: {words[-1].strip()}" if words else how

    @property
    def _is_signalled(self) -> bool:
        code = self._transport.get_returncode() if self._transport is not None else None
        return code is not None and code < 0

    @property
    def _stdin(self) -> asyncio.WriteTransport | None:
        if self._transport is None:
            return None
        return self._transport.get_pipe_transport(STDIN)  # type: ignore[return-value]  # the type does not say that one writes to it

    # The end

    async def _leave(self) -> None:
        """Close the server's input, then end it and what it started, by stages."""
        self._writable.set()
        self.hold(holds=False)
        stdin = self._stdin
        if stdin is not None and not stdin.is_closing() and self._streams[STDIN].is_open:
            self._streams[STDIN].is_open = False
            self._sink((Close(at_ns=self._now_ns(), stream=STDIN, by=CLIENT, how="eof"),))
            stdin.close()
        for number, why in ((SIGTERM, "its input had ended"), (SIGKILL, "SIGTERM was not enough")):
            if await self._happens(self._exited, self._patience_s):
                break
            self._escalate(number, why)
        await self._happens(self._exited, self._patience_s)
        if await self._session_ends(DRAIN_S):
            if self._has_left:
                self._sink((descendants_ended(self._now_ns()),))
        else:
            if self._has_left:
                self._sink((descendants_running(self._now_ns(), in_session(self.pid)),))
            self._escalate(SIGTERM, "the server has left processes behind")
            if not await self._session_ends(KILL_AFTER_S):
                self._escalate(SIGKILL, "processes left behind")
        await self._happens(self._ended, DRAIN_S)

    async def _session_ends(self, within_s: float) -> bool:
        for _ in range(int(within_s / POLL_S)):
            if not in_session(self.pid):
                return True
            await asyncio.sleep(POLL_S)
        return False

    def _escalate(self, number: int, why: str) -> None:
        listed = (
            ", ".join(f"{process.name} ({process.pid})" for process in in_session(self.pid)) or f"{self._argv[0]} ({self.pid})"
        )
        self._sink(
            (Note(at_ns=self._now_ns(), topic="escalation", text=f"{END_BY or signals.name(number)} to {listed}: {why}"),)
        )
        self._signal(number)

    def _signal(self, number: int) -> None:
        """Send a signal to the server and to what it started."""
        end_session(self.pid, number, has_ended=self._exited.is_set())

    def _let_go(self) -> None:
        """Stop reading pipes that others still hold open."""
        assert self._transport is not None
        records: list[Record] = []
        for partials in self._partials:
            partials.close()
        for stream in self._streams[STDOUT:]:
            if stream.is_open:
                records += stream.close(self._now_ns(), MCPSPY, "abort")
        if records:
            self._sink(records)
        self._transport.close()

    @staticmethod
    async def _happens(event: asyncio.Event, within_s: float) -> bool:
        try:
            await asyncio.wait_for(event.wait(), within_s)
        except TimeoutError:
            return False
        return True


class _Pipes(asyncio.SubprocessProtocol):
    """The callbacks of asyncio for one process, in a class of their own because asyncio wants one."""

    def __init__(self, client: StdioClient) -> None:
        self._client = client
        self._transport: asyncio.SubprocessTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.SubprocessTransport)
        self._transport = transport
        self._client.on_start(transport)

    def pipe_data_received(self, fd: int, data: bytes | str) -> None:
        assert isinstance(data, bytes)
        self._client.on_data(fd, data)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        self._client.on_pipe_end(fd)

    def process_exited(self) -> None:
        code = self._transport.get_returncode() if self._transport is not None else None
        self._client.on_exit(code or 0)

    def pause_writing(self) -> None:
        self._client.on_writable(is_writable=False)

    def resume_writing(self) -> None:
        self._client.on_writable(is_writable=True)


def _start_error(error: OSError | ValueError) -> str:
    if isinstance(error, FileNotFoundError):
        return "command not found"
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def to_stderr(data: bytes) -> None:
    """Write to our stderr what a server wrote to its own, as much as is taken at once: nothing waits for a terminal."""
    writable = poll()
    writable.register(2, POLLOUT)
    try:
        while data and writable.poll(0):
            data = data[os.write(2, data[:SURE_BYTES]) :]
    except OSError:
        pass  # nobody reads it

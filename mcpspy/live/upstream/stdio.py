"""A stdio server as a peer: its process, started in a session of its own, its three streams, and its end.

The shutdown is the specification's (basic/lifecycle): its input is closed, then SIGTERM, then SIGKILL, with the times of the
official SDKs. Signals go to the whole process group, so that nothing a server started outlives it. Refuses shells.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Sequence
from select import POLLOUT, poll
from typing import TYPE_CHECKING

from ...errors import UpstreamError
from ...records import CLIENT, MCPSPY, SERVER, Close, Exit, Frame, Note, Open, Spawn, Stall
from ...wire.http_body import Body
from ...wire.jsonrpc import cut
from ...wire.lines import Lines
from ..http.recorder import StreamRecorder
from ..stdio import signals
from ..stdio.process import in_session, process, restore_locale
from ..stdio.tap import streams
from .partials import Partials
from .protocol import MAX_MESSAGE_BYTES, Failed, Failure, Heard, Lost, ignored

if TYPE_CHECKING:
    from ...records import Record, Sink
    from ...wire.framing import StdioFraming

INPUT_S = 2.0
"""From the end of its input to SIGTERM, and from there to SIGKILL: as the SDKs do (mcp 2.3.0, TypeScript SDK 1.32.2)."""

DRAIN_S = 0.5
"""After the server's exit: how long pipes that others still hold are read on. What it wrote itself is there at once."""

STALL_S = 1.0
"""When a server has not taken what was written to it for so long, that is recorded."""

DEAF_S = 30.0
"""And when it has not for so long, what is to be written next fails: it reads nothing."""

GONE_S = 0.5
"""From the end of its stdout to calling a server lost that has not exited: most are about to, and say with which status."""

LEFT_S = 1.0
"""From SIGTERM to SIGKILL for what a server has left behind."""

POLL_S = 0.02

_LAST_WORDS_BYTES = 2048
_SURE_BYTES = 4096
STDIN, STDOUT, STDERR = 0, 1, 2


class StdioClient:
    """The server `argv`. `stderr` takes what it writes there, beside the record of it; `to_stderr` shows it.

    `patience_s` is how long it is waited for after the end of its input, and again after SIGTERM, before the next is done.
    `status` is its exit status once it has ended: its own, or 128 + n where signal n ended it.
    """

    def __init__(
        self,
        argv: Sequence[str],
        *,
        sink: Sink,
        now_ns: Callable[[], int],
        heard: Heard,
        lost: Lost,
        failed: Failed = ignored,
        stderr: Callable[[bytes], None] = ignored,
        framing: type[StdioFraming] = Lines,
        patience_s: float = INPUT_S,
    ) -> None:
        self._argv = tuple(argv)
        self._sink = sink
        self._now_ns = now_ns
        self._heard, self._lost, self._failed, self._stderr = heard, lost, failed, stderr
        self._patience_s = patience_s
        self._framing = framing
        self._streams = [StreamRecorder(number, sender, cut_by.name) for number, sender, _, cut_by in streams(framing)]
        self._partials = [Partials(one, sink, now_ns) for one in self._streams]
        self._line: list[bytes] = []  # the parts of the line that stdout is at
        self._line_bytes = 0
        self._last_words = b""
        self._transport: asyncio.SubprocessTransport | None = None
        self._writable = asyncio.Event()
        self._exited = asyncio.Event()
        self._ended = asyncio.Event()  # stdout and stderr
        self._is_leaving = False
        self._is_told = False  # that it is lost
        self.pid = 0
        self.status: int | None = None

    async def start(self) -> None:
        restore_locale()
        loop = asyncio.get_running_loop()
        self._writable.set()
        try:
            await loop.subprocess_exec(lambda: _Pipes(self), *self._argv, start_new_session=True)
        except (OSError, ValueError) as error:
            reason = _why_not(error)
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
            if not self._is_told and not self._is_leaving:
                for piece in cut(data):
                    self._failed(Failure(id=piece.id if piece.kind == "request" else None, method=piece.method or "", why=why))
            return
        assert stdin is not None
        frame = self._framing.frame_of(data)
        now_ns = self._now_ns()
        self._sink((Frame(STDIN, now_ns, now_ns, frame, injected=True),))
        stdin.write(frame)

    async def cancel(self, id: str) -> None:
        await self.send(b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%b}}' % id.encode())

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
            self._signal(signal.SIGKILL)  # also when somebody could not wait: nothing of it is left
            await self._happens(self._exited, GONE_S)
            self._let_go()

    # What the pipes tell

    def started(self, transport: asyncio.SubprocessTransport) -> None:
        """The process runs."""
        self._transport = transport
        self.pid = transport.get_pid()
        now_ns = self._now_ns()
        own = process(self.pid)
        records: list[Record] = [
            Open(at_ns=now_ns, stream=number, sender=sender, name=name, framing=framing.name, injected=number == STDIN)
            for number, sender, name, framing in streams(self._framing)
        ]
        self._sink([*records, Spawn(at_ns=now_ns, pid=self.pid, start=own.start if own else 0)])

    def took(self, stream: int, data: bytes) -> None:
        """The server wrote this."""
        now_ns = self._now_ns()
        records = self._streams[stream].feed(Body(data, data), now_ns)
        self._partials[stream].look()
        if records:
            self._sink(records)
        if stream == STDERR:
            self._last_words = (self._last_words + data)[-_LAST_WORDS_BYTES:]
            self._stderr(data)
        else:
            self._hear(records)

    def closed(self, stream: int) -> None:
        """One of the three pipes is at its end."""
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
            self._hear(records)
            if not self._exited.is_set():
                asyncio.get_running_loop().call_later(GONE_S, self._tell_lost, "the server has closed its standard output")
        if not any(one.is_open for one in self._streams[STDOUT:]):
            self._ended.set()
            if self._exited.is_set():
                self._tell_lost()

    def exited(self, code: int) -> None:
        """The process has ended: by signal -`code` where that is negative."""
        left = tuple({"pid": one.pid, "name": one.name} for one in in_session(self.pid))
        now_ns = self._now_ns()
        if code < 0:
            self.status = 128 - code
            self._sink((Exit(at_ns=now_ns, pid=self.pid, signal=signals.name(-code), descendants=left),))
        else:
            self.status = code
            self._sink((Exit(at_ns=now_ns, pid=self.pid, code=code, descendants=left),))
        self._exited.set()
        if self._ended.is_set():
            self._tell_lost()
        else:
            asyncio.get_running_loop().call_later(DRAIN_S, self._tell_lost)

    def may_write(self, *, may: bool) -> None:
        """Whether the server takes what is written to it, or lets it wait."""
        if may:
            self._writable.set()
        else:
            self._writable.clear()

    # What follows

    async def _takes_more(self) -> bool:
        """Whether the server reads on what it has let wait."""
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

    def _hear(self, records: Sequence[Record]) -> None:
        """Tell the messages among these lines. What is none was recorded, and that is all."""
        for record in records:
            if not isinstance(record, Frame):
                continue
            self._line_bytes += len(record.data)
            if self._line_bytes <= MAX_MESSAGE_BYTES:
                self._line.append(record.data)
            if record.part:
                continue
            payload, is_whole = (
                self._framing.payload_of(b"".join(self._line)).rstrip(b"\r\n"),
                self._line_bytes <= MAX_MESSAGE_BYTES,
            )
            self._line, self._line_bytes = [], 0
            if not is_whole:
                text = f"a line of more than {MAX_MESSAGE_BYTES} bytes, which is recorded and not heard"
                self._sink((Note(at_ns=self._now_ns(), topic="too-long", text=text),))
            elif not self._is_told:
                for piece in cut(payload):
                    if piece.kind != "malformed":
                        self._heard(piece.raw, None)

    def _tell_lost(self, why: str = "") -> None:
        if self._is_told or self._is_leaving:
            return
        self._is_told = True
        self._writable.set()
        self._lost(why if self.status is None else f"the server {self._ending()}")

    def _ending(self) -> str:
        """How the process ended, and what it said last."""
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
        return self._transport.get_pipe_transport(STDIN)  # type: ignore[return-value]  # the type does not say that it is written to

    # The end

    async def _leave(self) -> None:
        """Close its input, and end it and what it started, by stages."""
        self._writable.set()
        self.hold(holds=False)
        stdin = self._stdin
        if stdin is not None and not stdin.is_closing() and self._streams[STDIN].is_open:
            self._streams[STDIN].is_open = False
            self._sink((Close(at_ns=self._now_ns(), stream=STDIN, by=CLIENT, how="eof"),))
            stdin.close()
        for number, why in ((signal.SIGTERM, "its input had ended"), (signal.SIGKILL, "SIGTERM was not enough")):
            if await self._happens(self._exited, self._patience_s):
                break
            self._escalate(number, why)
        await self._happens(self._exited, self._patience_s)
        if in_session(self.pid):
            await self._end_what_is_left()
        await self._happens(self._ended, DRAIN_S)

    async def _end_what_is_left(self) -> None:
        self._escalate(signal.SIGTERM, "the server has left processes behind")
        for _ in range(int(LEFT_S / POLL_S)):
            if not in_session(self.pid):
                return
            await asyncio.sleep(POLL_S)
        self._escalate(signal.SIGKILL, "processes left behind")

    def _escalate(self, number: signal.Signals, why: str) -> None:
        listed = ", ".join(f"{one.name} ({one.pid})" for one in in_session(self.pid)) or f"{self._argv[0]} ({self.pid})"
        self._sink((Note(at_ns=self._now_ns(), topic="escalation", text=f"{number.name} to {listed}: {why}"),))
        self._signal(number)

    def _signal(self, number: signal.Signals) -> None:
        """To all that is in the server's session: nobody else can have its number while one of it lives, or is not reaped."""
        for one in in_session(self.pid):
            try:
                os.kill(one.pid, number)
            except OSError:
                pass  # it has ended meanwhile

    def _let_go(self) -> None:
        """Whatever pipes are still held open by others: we read no more."""
        assert self._transport is not None
        records: list[Record] = []
        for one in self._partials:
            one.close()
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
    """Passes on what asyncio has to tell of a process; it wants a class of its own for that."""

    def __init__(self, peer: StdioClient) -> None:
        self._peer = peer
        self._transport: asyncio.SubprocessTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.SubprocessTransport)
        self._transport = transport
        self._peer.started(transport)

    def pipe_data_received(self, fd: int, data: bytes | str) -> None:
        assert isinstance(data, bytes)
        self._peer.took(fd, data)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        self._peer.closed(fd)

    def process_exited(self) -> None:
        code = self._transport.get_returncode() if self._transport is not None else None
        self._peer.exited(code or 0)

    def pause_writing(self) -> None:
        self._peer.may_write(may=False)

    def resume_writing(self) -> None:
        self._peer.may_write(may=True)


def _why_not(error: OSError | ValueError) -> str:
    if isinstance(error, FileNotFoundError):
        return "command not found"
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def to_stderr(data: bytes) -> None:
    """Show what a server wrote to its stderr on ours, as far as that is taken at once: nobody waits for a terminal."""
    asked = poll()
    asked.register(2, POLLOUT)
    try:
        while data and asked.poll(0):
            data = data[os.write(2, data[:_SURE_BYTES]) :]
    except OSError:
        pass  # nobody reads it

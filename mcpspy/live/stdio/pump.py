"""One direction of a stdio tap: reads bytes, reports the frames they complete, sends the bytes on.

Refuses to change, delay or understand what passes. A pump never blocks: what its reader does not take waits here, and as long
as it waits nothing more is read, so that back-pressure reaches the writer and memory stays bounded.
"""

from __future__ import annotations

import os
from select import POLLHUP, POLLIN, POLLOUT, poll
from time import monotonic_ns

from ...records import MCPSPY, Close, Frame, Partial, Stall
from .descriptors import PIPE_BYTES, enlarge, release, sender

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from ...records import Record, Side, Sink
    from ...wire.framing import StdioFraming

READ_BYTES = 1 << 16
MAX_READ_BYTES = 1 << 18
"""Reads double from the first to the second while they come back full; a fixed large read triples the latency of small ones."""

PARTIAL_NS = 5_000_000_000
STALL_NS = 1_000_000_000

_read = os.read  # looked up once: it is called for every message


class Readiness:
    """Descriptors and their callbacks; a callback gets poll's event mask.

    A callback that sets `interrupted` makes `turn` return after the round. There are no time-outs: who needs one has a signal sent.
    """

    __slots__ = ("_callbacks", "_poll", "interrupted")

    def __init__(self) -> None:
        self._poll = poll()
        self._callbacks: dict[int, Callable[[int], None]] = {}
        self.interrupted = False

    def watch(self, fd: int, events: int, callback: Callable[[int], None]) -> None:
        """Call `callback` when one of `events` is there, or (always) on an error or hang-up. Replaces an earlier watch."""
        self._poll.register(fd, events)
        self._callbacks[fd] = callback

    def forget(self, fd: int) -> None:
        """Watch `fd` no longer; it may be one that is not watched."""
        if self._callbacks.pop(fd, None) is not None:
            self._poll.unregister(fd)

    def turn(self) -> None:
        """Wait and make the calls, round after round, until interrupted."""
        wait, callback_of = self._poll.poll, self._callbacks.get
        self.interrupted = False
        while not self.interrupted:
            for fd, events in wait():
                callback = callback_of(fd)
                if callback is not None:  # an earlier call of this round may have closed it
                    callback(events)


class Pump:
    """Moves one stream from the descriptor `source`, written by one side, to `target`, read by the other.

    `over`: nothing more will be read. `finished`: nor sent; the target is closed. `broken`: the target has lost its reader; what
    still comes is reported, not sent. `left`: the writer has gone, while the reader keeps us from reading the rest. `on_change`
    is called when one of them becomes true. `due_ns` is when `on_time` wants to be called, on the tap's clock; 0 for never.
    """

    __slots__ = (
        "_begin_ns", "_blocked_ns", "_first_ns", "_frame", "_frames", "_framing", "_on_change", "_partial_told", "_terminator",
        "_pending", "_read_bytes", "_ready", "_send", "_sink", "_source", "_stalled", "_stream", "_target", "_watches_reader",
        "broken", "due_ns", "finished", "left", "over", "reader", "writer",
    )  # fmt: skip

    def __init__(
        self,
        stream: int,
        source: int,
        target: int,
        *,
        writer: Side,
        reader: Side,
        framing: StdioFraming,
        sink: Sink,
        ready: Readiness,
        begin_ns: int,
        on_change: Callable[[], None],
        is_log: bool = False,
    ) -> None:
        self._stream = stream
        self._source = source
        self._target = target
        self.writer: Side = writer
        self.reader: Side = reader
        self._sink = sink
        shorter = None if is_log else sink
        self._frame: Callable[[int, int, bytes], None] = getattr(shorter, "frame", self._frame_as_record)
        self._frames: Callable[[int, int, list[bytes]], None] = getattr(shorter, "frames", self._frames_as_records)
        self._ready = ready
        self._begin_ns = begin_ns
        self._on_change = on_change
        self._framing = framing
        self._terminator = framing.terminator
        self._send = sender(target)
        self._read_bytes = READ_BYTES
        self._pending = memoryview(b"")
        self._first_ns = 0
        self._blocked_ns = 0
        self._stalled = False
        self._partial_told = False
        self.due_ns = 0
        self.over = False
        self.finished = False
        self.broken = False
        self.left = False
        self._watches_reader = False
        ready.watch(source, POLLIN, self._readable)

    def watch_reader(self) -> None:
        """Notice from now on when the target loses its reader, and not only when something is sent there."""
        self._watches_reader = True
        if not self.finished and not self._pending:
            self._ready.watch(self._target, 0, self._writable)

    def stop(self) -> None:
        """Read no more, by our own decision; what was read is still sent before the target is closed."""
        if not self.over:
            self._end(monotonic_ns() - self._begin_ns, MCPSPY, "abort")

    def reader_ended(self) -> None:
        """The process that was to read the target is no more: say so, unless the end of this stream has been told."""
        if not self.finished:
            self._break(monotonic_ns() - self._begin_ns)

    def drain(self) -> None:
        """Take what has been written by now, and stop: for a writer that has gone, whose pipe others hold open."""
        if self.over:
            return
        now_ns = monotonic_ns() - self._begin_ns
        asked = poll()
        asked.register(self._source, POLLIN)
        data = _read(self._source, PIPE_BYTES) if asked.poll(0) else b""  # all that a pipe of ours can hold
        if data:
            self._report(data, now_ns)
        if data and not self.broken:
            blocked_ns = self._blocked_ns if self._pending else now_ns
            self._block(memoryview(b"".join((self._pending, data))), blocked_ns)
        if asked.poll(0) == [(self._source, POLLHUP)]:
            self._end(now_ns, self.writer, "eof")
        else:
            self._end(now_ns, MCPSPY, "abort")

    def on_time(self, now_ns: int) -> None:
        """Report what has waited too long."""
        if self._pending and not self._stalled and now_ns >= self._blocked_ns + STALL_NS:
            self._stalled = True
            self._sink((Stall(at_ns=now_ns, stream=self._stream, waiting_bytes=len(self._pending)),))
        if self._framing.held_bytes and not self._partial_told and now_ns >= self._first_ns + PARTIAL_NS:
            self._partial_told = True
            held = self._framing.held
            self._sink((Partial(at_ns=now_ns, stream=self._stream, first_ns=self._first_ns, data=held),))
        self._schedule()

    def _readable(self, events: int) -> None:
        try:
            data = _read(self._source, self._read_bytes)
        except BlockingIOError:
            return  # somebody else with the same descriptor was faster
        except OSError:
            self._end(monotonic_ns() - self._begin_ns, self.writer, "reset")
            return
        now_ns = monotonic_ns() - self._begin_ns
        if self._terminator and 0 < data.find(self._terminator) + 1 == len(data) and not self._framing.held_bytes:
            self._frame(self._stream, now_ns, data)  # one whole frame, as nearly all come, goes this short way
        elif data:
            self._report(data, now_ns)
        else:
            self._end(now_ns, self.writer, "eof")
            return
        try:
            sent = self._send(data)
        except BlockingIOError:
            sent = 0
        except OSError:
            self._break(now_ns, len(data))
            return
        if sent != len(data):
            self._block(memoryview(data)[sent:], now_ns)

    def _report(self, data: bytes, now_ns: int) -> None:
        """Report the frames and parts that `data` completes, and remember since when the rest waits."""
        full = len(data) == self._read_bytes
        self._read_bytes = min(2 * self._read_bytes, MAX_READ_BYTES) if full else READ_BYTES
        if full:
            enlarge(self._source)
        framing = self._framing
        began_ns = self._first_ns if framing.held_bytes else now_ns
        pieces = framing.feed(data)
        if pieces and began_ns == now_ns and not framing.is_part:
            self._frames(self._stream, now_ns, pieces)
        elif pieces:
            self._report_slow(pieces, now_ns, began_ns)
        if pieces or began_ns == now_ns:
            self._first_ns = now_ns
            self._partial_told = False
        self._schedule()

    def _report_slow(self, pieces: list[bytes], now_ns: int, began_ns: int) -> None:
        """Report frames that did not all begin with this read, or a part that does not end with it."""
        stream, last = self._stream, len(pieces) - 1
        frames: list[Record] = [
            Frame(stream, now_ns, now_ns if at else began_ns, piece, at == last and self._framing.is_part)
            for at, piece in enumerate(pieces)
        ]
        self._sink(frames)

    def _frame_as_record(self, stream: int, now_ns: int, data: bytes) -> None:
        self._sink((Frame(stream, now_ns, now_ns, data),))

    def _frames_as_records(self, stream: int, now_ns: int, frames: list[bytes]) -> None:
        self._sink([Frame(stream, now_ns, now_ns, data) for data in frames])

    def _schedule(self) -> None:
        due = []
        if self._pending and not self._stalled:
            due.append(self._blocked_ns + STALL_NS)
        if self._framing.held_bytes and not self._partial_told:
            due.append(self._first_ns + PARTIAL_NS)
        self.due_ns = min(due, default=0)
        if due:
            self._ready.interrupted = True

    def _block(self, rest: memoryview, now_ns: int) -> None:
        """The reader does not keep up: hold `rest`, and read nothing more until it is taken."""
        if len(rest) >= READ_BYTES:
            enlarge(self._target)
        self._pending = rest
        self._blocked_ns = now_ns
        self._ready.watch(self._source, 0, self._hung_up)
        self._ready.watch(self._target, POLLOUT, self._writable)
        self._schedule()

    def _hung_up(self, events: int) -> None:
        """The writer has gone, and we cannot read on yet to see that."""
        self._ready.forget(self._source)
        self.left = True
        self._on_change()

    def _writable(self, events: int) -> None:
        now_ns = monotonic_ns() - self._begin_ns
        if not self._pending:
            self._break(now_ns)  # nothing was asked for, so this is an error or a hang-up
            return
        try:
            sent = self._send(self._pending)
        except BlockingIOError:
            return
        except OSError:
            self._break(now_ns)
            return
        self._pending = self._pending[sent:]
        if not self._pending:
            self._unblock(now_ns)

    def _unblock(self, now_ns: int) -> None:
        if self._stalled:
            self._stalled = False
            lasted_ns = now_ns - self._blocked_ns
            self._sink((Stall(at_ns=now_ns, stream=self._stream, waiting_bytes=0, lasted_ns=lasted_ns),))
        self._schedule()
        if self.over:
            self._finish()
        else:
            self._ready.forget(self._target)
            self._ready.watch(self._source, POLLIN, self._readable)
            if self._watches_reader:
                self.watch_reader()

    def _end(self, now_ns: int, by: str, how: str) -> None:
        """Nothing more comes: report what is left without its end, and close the target once all is sent."""
        began_ns = self._first_ns if self._framing.held_bytes else now_ns
        records: list[Record] = [Frame(self._stream, now_ns, began_ns, rest) for rest in self._framing.close()]
        if not self.broken:  # then its end has been told, and who brought it about
            records.append(Close(at_ns=now_ns, stream=self._stream, by=by, how=how))
        self._sink(records)
        self.over = True
        self._ready.forget(self._source)
        release(self._source)
        self._schedule()
        if not self._pending:
            self._finish()
        self._on_change()

    def _break(self, now_ns: int, unsent_bytes: int = 0) -> None:
        """The target has no reader any more, and will not get these bytes or those that wait."""
        undelivered_bytes = unsent_bytes or len(self._pending)
        extra = {"undelivered_bytes": undelivered_bytes} if undelivered_bytes else None
        self._sink((Close(at_ns=now_ns, stream=self._stream, by=self.reader, how="broken", extra=extra),))
        was_blocked, self._pending = bool(self._pending), memoryview(b"")
        self.broken = True
        self._send = len  # nobody is there to send to: all is taken
        self._finish()
        self._schedule()
        if was_blocked and not self.over:
            self._ready.watch(self._source, POLLIN, self._readable)
        self._on_change()

    def _finish(self) -> None:
        if self.finished:
            return  # who lost the reader comes here again when the writer ends, and by then the number may be another's
        self.finished = True
        self._ready.forget(self._target)
        release(self._target)

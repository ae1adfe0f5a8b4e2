"""One direction of a stdio tap: read bytes, record the frames they complete, send the bytes on unchanged.

A pump never blocks. It holds what its reader does not take, and reads nothing more as long as it holds something: so back-pressure
reaches the writer, and memory stays bounded.
"""

from __future__ import annotations

from time import monotonic_ns

from ...platform.descriptors import POLLIN, POLLOUT, enlarge, poll, release, rest_of, sender
from ...platform.descriptors import read as _read
from ...records import MCPSPY, Close, Frame, Partial, Stall
from ...wire.lines import Lines

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ...records import Record, Side, Sink

READ_BYTES = 1 << 16
MAX_READ_BYTES = 1 << 18
"""Reads double from the first to the second while they come back full; a fixed large read triples the latency of small ones."""

PARTIAL_NS = 5_000_000_000
STALL_NS = 1_000_000_000


class Readiness:
    """Descriptors and the callbacks to call when one is ready, with poll's event mask.

    A callback that sets `interrupted` makes `turn` return after the round. There are no time-outs: an alarm signal does that. `poll`
    and not `epoll`, because standard streams may be regular files; and no asyncio, which costs 31 ms of start-up and 30 µs per
    message (CPython 3.11).
    """

    __slots__ = ("_callbacks", "_poll", "callback_of", "interrupted")

    def __init__(self) -> None:
        self._poll = poll()
        self._callbacks: dict[int, Callable[[int], None]] = {}
        self.callback_of: Callable[[int], Callable[[int], None] | None] = self._callbacks.get
        self.interrupted = False
        if (share := getattr(self._poll, "share", None)) is not None:
            share(self)  # where each pipe has a thread, which makes the calls itself

    def watch(self, fd: int, events: int, callback: Callable[[int], None]) -> None:
        """Call `callback` on one of `events`, and always on an error or a hang-up. Replaces an earlier watch."""
        self._poll.register(fd, events)
        self._callbacks[fd] = callback

    def forget(self, fd: int) -> None:
        """Stop watching `fd`, if it is watched."""
        if self._callbacks.pop(fd, None) is not None:
            self._poll.unregister(fd)

    def last_sender(self, fd: int, send: Callable[[Any], int], late: Callable[[bytes], None]) -> Callable[[Any], int]:
        """Return what sends in place of `send` in a callback in which nothing is done after it.

        Where each pipe has a thread, that may go on in the thread: then `late` is called, as if `send` had raised BlockingIOError.
        """
        make = getattr(self._poll, "last_sender", None)
        return send if make is None else make(fd, late)

    def turn(self) -> None:
        """Wait and make the calls, round after round, until `interrupted`."""
        wait, callback_of = self._poll.poll, self.callback_of
        self.interrupted = False
        while not self.interrupted:
            for fd, events in wait():
                callback = callback_of(fd)
                if callback is not None:  # an earlier call of this round may have closed it
                    callback(events)


class Pump:
    """A pump that moves one stream from the descriptor `source`, written by one side, to `target`, read by the other.

    `over` means that nothing more will be read; `finished` that nothing more will be sent and the target is closed; `broken` that the
    target has lost its reader, so what still comes is recorded and not sent; `left` that the writer has gone while the reader keeps
    us from reading the rest. `on_change` is called when one of them becomes true. `due_ns` is when `on_time` must be called, on the
    tap's clock; 0 for never. `before_end` is called when nothing more will be read, while the target is still open.
    """

    __slots__ = (
        "_begin_ns", "_blocked_ns", "_first_ns", "_frame", "_frames", "_lines", "_on_change", "_partial_recorded",
        "_pending", "_read_bytes", "_ready", "_send", "_send_last", "_sink", "_source", "_stalled", "_stream", "_target",
        "_watches_reader",
        "_taken_ns", "before_end", "broken", "due_ns", "finished", "left", "over", "reader", "writer",
    )  # fmt: skip

    def __init__(
        self,
        stream: int,
        source: int,
        target: int,
        *,
        writer: Side,
        reader: Side,
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
        self._lines = Lines()
        self._send = sender(target)
        self._send_last = ready.last_sender(target, self._send, self._late)
        self._read_bytes = READ_BYTES
        self._pending = memoryview(b"")
        self._first_ns = 0
        self._blocked_ns = self._taken_ns = 0
        self._stalled = False
        self._partial_recorded = False
        self.due_ns = 0
        self.over = False
        self.finished = False
        self.broken = False
        self.left = False
        self._watches_reader = False
        self.before_end: Callable[[], object] = _nothing
        ready.watch(source, POLLIN, self._readable)

    def resume(self) -> None:
        """Go on where a pump of another kind was, whose facts we have been given."""
        self._frame = getattr(self._sink, "frame", self._frame_as_record)
        self._frames = getattr(self._sink, "frames", self._frames_as_records)
        ready = self._ready
        self._send_last = self._send if self.finished else ready.last_sender(self._target, self._send, self._late)
        if not self.over and not self._pending:
            ready.watch(self._source, POLLIN, self._readable)
        elif not self.over and not self.left:
            ready.watch(self._source, 0, self._hung_up)
        if not self.finished and self._pending:
            ready.watch(self._target, POLLOUT, self._writable)
        elif not self.finished and self._watches_reader:
            ready.watch(self._target, 0, self._writable)
        ready.interrupted = True

    def before_first(self, action: Callable[[], None]) -> None:
        """Call `action` once, before the first byte is read; never if none comes."""

        def first(events: int) -> None:
            if events & POLLIN:
                action()
            self._ready.watch(self._source, POLLIN, self._readable)
            self._readable(events)

        self._ready.watch(self._source, POLLIN, first)

    def watch_reader(self) -> None:
        """Notice from now on that the target loses its reader, even if nothing is sent there."""
        self._watches_reader = True
        if not self.finished and not self._pending:
            self._ready.watch(self._target, 0, self._writable)

    def stop(self) -> None:
        """Read no more, by our own decision; what was read is still sent."""
        if not self.over:
            self._end(monotonic_ns() - self._begin_ns, MCPSPY, "abort")

    def on_reader_exit(self) -> None:
        """Record that the process that read the target has ended, unless the end of the stream is recorded already."""
        if not self.finished:
            self._break(monotonic_ns() - self._begin_ns)

    def drain(self) -> None:
        """Read what has been written by now, and stop: the writer has gone, and others hold its pipe open."""
        if self.over:
            return
        now_ns = monotonic_ns() - self._begin_ns
        data, is_end = rest_of(self._source)
        if data:
            self._report(data, now_ns)
        if data and not self.broken:
            blocked_ns = self._blocked_ns if self._pending else now_ns
            self._block(memoryview(b"".join((self._pending, data))), blocked_ns)
        if is_end:
            self._end(now_ns, self.writer, "eof")
        else:
            self._end(now_ns, MCPSPY, "abort")

    def on_time(self, now_ns: int) -> None:
        """Record what has waited too long."""
        if self._pending and not self._stalled and now_ns >= self._blocked_ns + STALL_NS:
            self._stalled = True
            self._sink((self._stall(now_ns),))
        if self._lines.held_bytes and not self._partial_recorded and now_ns >= self._first_ns + PARTIAL_NS:
            self._partial_recorded = True
            held = self._lines.held
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
        if 0 < data.find(b"\n") + 1 == len(data) and not self._lines.held_bytes:
            self._frame(self._stream, now_ns, data)  # one whole frame, as nearly all come, goes this short way
        elif data:
            self._report(data, now_ns)
        else:
            self._end(now_ns, self.writer, "eof")
            return
        try:
            sent = self._send_last(data)
        except BlockingIOError:
            sent = 0
        except OSError:
            self._break(now_ns, len(data))
            return
        if sent != len(data):
            self._block(memoryview(data)[sent:], now_ns)

    def _late(self, data: bytes) -> None:
        """Hold `data`, which is still being sent while others go on."""
        self._block(memoryview(data), monotonic_ns() - self._begin_ns)

    def _transmit(self, data: bytes, now_ns: int) -> None:
        """Send bytes behind those that wait for the reader."""
        if self.broken or self.finished:
            return
        if self._pending:
            self._pending = memoryview(b"".join((self._pending, data)))
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
        """Record the frames that `data` completes, and remember since when the rest waits."""
        full = len(data) == self._read_bytes
        self._read_bytes = min(2 * self._read_bytes, MAX_READ_BYTES) if full else READ_BYTES
        if full:
            enlarge(self._source)
        lines = self._lines
        began_ns = self._first_ns if lines.held_bytes else now_ns
        pieces = lines.feed(data)
        if pieces and began_ns == now_ns and not lines.is_part:
            self._frames(self._stream, now_ns, pieces)
        elif pieces:
            self._report_slow(pieces, now_ns, began_ns)
        if pieces or began_ns == now_ns:
            self._first_ns = now_ns
            self._partial_recorded = False
        self._schedule()

    def _report_slow(self, pieces: list[bytes], now_ns: int, began_ns: int) -> None:
        """Record frames that did not all begin with this read, or a part that does not end with it."""
        stream, last = self._stream, len(pieces) - 1
        frames: list[Record] = [
            Frame(stream, now_ns, now_ns if at else began_ns, piece, at == last and self._lines.is_part)
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
        if self._lines.held_bytes and not self._partial_recorded:
            due.append(self._first_ns + PARTIAL_NS)
        self.due_ns = min(due, default=0)
        if due:
            self._ready.interrupted = True

    def _block(self, rest: memoryview, now_ns: int) -> None:
        """Hold `rest`, which the reader does not take, and read nothing more until it does."""
        if len(rest) >= READ_BYTES:
            enlarge(self._target)
        self._pending = rest
        self._blocked_ns = self._taken_ns = now_ns
        self._ready.watch(self._source, 0, self._hung_up)
        self._ready.watch(self._target, POLLOUT, self._writable)
        self._schedule()

    def _hung_up(self, events: int) -> None:
        """Note that the writer has gone, while we cannot read on to see it."""
        self._ready.forget(self._source)
        self.left = True
        self._on_change()

    def _writable(self, events: int) -> None:
        now_ns = monotonic_ns() - self._begin_ns
        if not self._pending:
            self._break(now_ns)  # no event was asked for, so this is an error or a hang-up
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
        elif self._stalled and now_ns >= self._taken_ns + STALL_NS:  # nothing was taken, and now a part of it
            self._end_stall(now_ns)
            self._blocked_ns = now_ns
            self._schedule()
        self._taken_ns = now_ns

    def _stall(self, now_ns: int, lasted_ns: int | None = None) -> Stall:
        waiting_bytes, held_bytes = len(self._pending), self._lines.held_bytes if self._pending else 0
        stream = self._stream
        return Stall(at_ns=now_ns, stream=stream, waiting_bytes=waiting_bytes, incomplete_bytes=held_bytes, lasted_ns=lasted_ns)

    def _end_stall(self, now_ns: int) -> None:
        self._stalled = False
        self._sink((self._stall(now_ns, now_ns - self._blocked_ns),))

    def _unblock(self, now_ns: int) -> None:
        if self._stalled:
            self._end_stall(now_ns)
        self._schedule()
        if self.over:
            self._finish()
        else:
            self._ready.forget(self._target)
            self._ready.watch(self._source, POLLIN, self._readable)
            if self._watches_reader:
                self.watch_reader()

    def _end(self, now_ns: int, by: str, how: str) -> None:
        """End the stream: record what lacks its end, and close the target once all is sent."""
        self.before_end()
        began_ns = self._first_ns if self._lines.held_bytes else now_ns
        records: list[Record] = [Frame(self._stream, now_ns, began_ns, rest) for rest in self._lines.close()]
        if not self.broken:  # else the end is recorded, with who caused it
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
        """Record that the target has lost its reader, and drop these bytes and those that wait."""
        undelivered_bytes = unsent_bytes or len(self._pending)
        extra = {"undelivered_bytes": undelivered_bytes} if undelivered_bytes else {}
        self._sink((Close(at_ns=now_ns, stream=self._stream, by=self.reader, how="broken", extra=extra),))
        was_blocked, self._pending = bool(self._pending), memoryview(b"")
        self.broken = True
        self._send = self._send_last = len  # drop everything: nobody reads it
        self._finish()
        self._schedule()
        if was_blocked and not self.over:
            self._ready.watch(self._source, POLLIN, self._readable)
        self._on_change()

    def _finish(self) -> None:
        if self.finished:
            return  # a broken pump comes here again when its writer ends, when the number may be another file's
        self.finished = True
        self._ready.forget(self._target)
        release(self._target)


def _nothing() -> None:
    """Do nothing: the action before an end that needs none."""

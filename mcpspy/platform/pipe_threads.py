"""`poll` and calls that never block, where pipes cannot be waited for, as on Windows: each pipe gets a thread that may block.

    pipe ── os.read ──► thread of a source ── one piece ──► poll, read ──► the caller
    the caller ── send ──► thread of a target ── os.write ──► pipe

A source reads one piece ahead, so memory stays bounded and back-pressure reaches the writer. A target takes one piece at a time.
Bytes count as sent once the system has taken them, as with a non-blocking descriptor. Nothing shows that a pipe has lost its reader
but writing to it. While a thread is blocked in a call of Windows' C library, closing its descriptor would block too: then the
thread closes it, when the call returns.

To hand a message over to another thread takes longer than all else that is done with it. So the callbacks of a `poll` that is
shared have one turn, which whoever makes a call holds: while the thread that polls waits, a thread of a source takes it, makes the
call itself, and writes within the call:

    thread of a source: os.read ── callback ── os.write ── os.read …            the thread that polls: waits
                                                  └─ late: takes the turn over, and goes on with everything else

If that write does not return soon, the thread that polls takes the turn from it: the thread of the source has become that of the
target, and another one reads the source.
"""

from __future__ import annotations

import os
from _thread import allocate_lock, start_new_thread
from time import monotonic

POLLIN, POLLOUT, POLLERR, POLLHUP = 1, 4, 8, 16
PIPE_BUF = 512
READ_BYTES = 1 << 16

PATIENCE_S = 0.002
"""Time that a sender waits for its thread: nearly always the pipe takes everything at once, which costs less than to wait for it."""

SETTLE_S = 0.05
"""Time in which a thread has read what was in a pipe already."""

TICK_S = 0.1
"""Time between two looks at a thread that writes within a call. Without a write since the last look, nobody looks any more."""

_sources: dict[int, _Source] = {}
_targets: dict[int, _Target] = {}
_ending = allocate_lock()
"""Held while it is decided who closes a descriptor: its thread, or who releases it."""


class poll:  # noqa: N801 - as the C module spells it
    """Descriptors, and the events that are waited for: the part of `select.poll` that mcpspy uses."""

    __slots__ = (
        "_asked", "_failure", "_has_changed", "_is_looking", "_shared", "_turn", "_wake", "serving", "writes", "writing",
    )  # fmt: skip

    def __init__(self) -> None:
        self._asked: dict[int, int] = {}
        self._wake = allocate_lock()
        self._wake.acquire()
        self._shared: _Callbacks | None = None
        self._turn = allocate_lock()
        """Held by whoever makes a call, if they are shared."""
        self._has_changed = False
        self._is_looking = False
        self._failure: BaseException | None = None
        self.serving: _Source | None = None
        """The source whose thread has the turn."""
        self.writing: _Target | None = None
        """The target to which it writes."""
        self.writes = 0

    def share(self, callbacks: _Callbacks) -> None:
        """Have threads of sources make the calls, while the thread that polls waits. It has the turn until then."""
        self._shared = callbacks
        self._turn.acquire()

    def last_sender(self, fd: int, late: Callable[[bytes], None]) -> Callable[[bytes], int]:
        """Return a function that sends as that of `sender` does, for callbacks in which nothing is done after it.

        If it takes long, `late` is called with the bytes, as if the function had raised BlockingIOError; it returns their number
        then, when they have been written.
        """
        target = _targets[fd]
        target.shared, target.late = self, late
        return target.send_last

    def register(self, fd: int, events: int) -> None:
        """Wait for these events of a descriptor, errors and hang-ups too. From now on only `read` may read from it."""
        self._asked[fd] = events
        self._has_changed = True
        if events & POLLIN and fd not in _sources:
            _sources[fd] = _Source(fd)
        for end in (_sources.get(fd), _targets.get(fd)):
            if end is not None and self not in end.polls:
                end.polls.append(self)

    def modify(self, fd: int, events: int) -> None:
        """Wait for other events of a descriptor."""
        self.register(fd, events)

    def unregister(self, fd: int) -> None:
        """Wait for nothing of a descriptor any more."""
        del self._asked[fd]
        for end in (_sources.get(fd), _targets.get(fd)):
            if end is not None and self in end.polls:
                end.polls.remove(self)

    def wake(self) -> None:
        """Have `poll` look again. May be called from any thread."""
        _set(self._wake)

    def poll(self, timeout_ms: float | None = None) -> list[tuple[int, int]]:
        """Wait for events, at most so long; without a time, or with a negative one, for ever.

        If the calls are shared, there is no time, and it returns also if a call by another thread has interrupted the turn.
        """
        if self._shared is not None:
            return self._poll_shared(self._shared)
        forever = timeout_ms is None or timeout_ms < 0
        until = 0.0 if timeout_ms is None else monotonic() + timeout_ms / 1000
        while not (ready := self._look()):
            if forever:
                self._wake.acquire()
                continue
            left_s = until - monotonic()
            if left_s <= 0 or not self._wake.acquire(timeout=left_s):
                return self._look()
        return ready

    def _look(self) -> list[tuple[int, int]]:
        return [(fd, found) for fd, events in self._asked.items() if (found := _events_of(fd, events))]

    # Shared calls

    def _poll_shared(self, callbacks: _Callbacks) -> list[tuple[int, int]]:
        while not (ready := self._look()) and not callbacks.interrupted:
            self._turn.release()
            self._take_turn()
            if self._failure is not None:
                raise self._failure
        return ready

    def _take_turn(self) -> None:
        """Wait until there is something to do, and for the turn; take it from a thread that writes for long."""
        last = 0
        while not self._wake.acquire(timeout=TICK_S if self._is_looking else -1):
            self._is_looking = False
            if self.writing is None:  # a thread that begins a write after this sees that nobody looks
                continue
            self._is_looking = True
            if self.writes == last:
                break
            last = self.writes
        while not self._turn.acquire(timeout=PATIENCE_S):
            if self._take_over():
                return

    def _take_over(self) -> bool:
        """Take the turn from a thread that is in a write; return whether there was one."""
        with _ending:
            target, self.writing = self.writing, None
            if target is None:
                return False
            source, self.serving = self.serving, None
            target.begin_late()
        assert source is not None  # whose thread writes
        source.read_by_another()
        target.late(target.direct)
        return True

    def serve(self, source: _Source, number: int) -> None:
        """Make the call for what a source's thread has read, if nobody makes one; else have it made."""
        callbacks = self._shared
        if callbacks is None or not self._turn.acquire(timeout=PATIENCE_S):
            self.wake()
            return
        self.serving, self._has_changed, fd = source, False, source.fd
        try:
            while (callback := callbacks.callback_of(fd)) and (events := _events_of(fd, self._asked.get(fd, 0))):
                callback(events)
                if source.number != number:
                    return  # the turn has been taken over
                if callbacks.interrupted:
                    break
        except BaseException as error:  # noqa: BLE001 - the thread that polls raises it
            self._failure = error
        self.serving = None
        must_wake = self._has_changed or callbacks.interrupted or self._failure is not None
        self._turn.release()
        if must_wake:
            self.wake()

    def begin_write(self, target: _Target) -> None:
        """Take note of a write within a call. From now on somebody looks whether it returns."""
        self.writing = target
        self.writes += 1
        if not self._is_looking:
            self._is_looking = True
            self.wake()


def _events_of(fd: int, events: int) -> int:
    found = 0
    source, target = _sources.get(fd), _targets.get(fd)
    if source is not None and source.piece is not None:
        found = events & POLLIN
        if not source.piece or isinstance(source.piece, OSError):
            found |= POLLHUP
    if target is None:
        return found | (events & POLLOUT if source is None else 0)
    if target.error is not None:
        found |= POLLERR
    return found | (events & POLLOUT if target.takes_more else 0)


def read(fd: int, size_bytes: int) -> bytes:
    """Read as `os.read` does; but from a descriptor that is or was waited for take what its thread has read.

    Raises: BlockingIOError: that is nothing. OSError: it could not be read.
    """
    source = _sources.get(fd)
    return os.read(fd, size_bytes) if source is None else source.take(size_bytes)


def rest_of(fd: int) -> tuple[bytes, bool]:
    """Read what a pipe holds. Return it, and whether everybody who could write more has gone."""
    readable = poll()
    pieces: list[bytes] = []
    readable.register(fd, POLLIN)
    try:
        while readable.poll(SETTLE_S * 1000):
            piece = read(fd, READ_BYTES)
            if not piece:
                return b"".join(pieces), True
            pieces.append(piece)
        return b"".join(pieces), False
    finally:
        readable.unregister(fd)


def sender(fd: int) -> _Send:
    """Return a function that writes to `fd` as much as it takes within `PATIENCE_S`, and returns how many bytes that were.

    It raises BlockingIOError if nothing was taken, after which the next call has to begin with the same bytes; and OSError if there
    is no reader.
    """
    _targets[fd] = target = _Target(fd)
    return target.send


def release(fd: int) -> None:
    """Close `fd` for the other end to see; at once, unless a thread is blocked with it. Standard streams keep their number."""
    source, target = _sources.pop(fd, None), _targets.pop(fd, None)
    with _ending:
        blocked = [end for end in (source, target) if end is not None and end.is_busy]
        for end in (source, target):
            if end is not None:
                end.is_released = True
        if not blocked:
            close(fd)
    for end in (source, target):
        if end is not None:
            end.go_on()


def close(fd: int) -> None:
    """Close a descriptor. The number of a standard stream is kept in use, so that no other file gets it."""
    if fd > 2:
        os.close(fd)
        return
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, fd)
    if nowhere != fd:
        os.close(nowhere)


class _Source:
    """A descriptor that a thread reads. `piece` is what it has read and nobody has taken: bytes, none at the end, or an error.

    `number` is the number of its thread: only the last one reads.
    """

    __slots__ = ("_go", "fd", "is_busy", "is_released", "number", "piece", "polls")

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self.piece: bytes | OSError | None = None
        self.polls: list[poll] = []
        self.is_busy = False
        self.is_released = False
        self.number = 0
        self._go = allocate_lock()
        self._go.acquire()
        start_new_thread(self._read_on, (0,))

    def go_on(self) -> None:
        """Have the thread read on, or end if the descriptor was released."""
        _set(self._go)

    def read_by_another(self) -> None:
        """Go on with another thread: that which has read last is busy elsewhere."""
        self.number += 1
        start_new_thread(self._read_on, (self.number,))

    def take(self, size_bytes: int) -> bytes:
        """Return what was read. Raises: BlockingIOError: nothing was. OSError: it could not be read."""
        piece = self.piece
        if piece is None:
            raise BlockingIOError
        if isinstance(piece, OSError):
            raise piece
        if len(piece) > size_bytes:
            self.piece = piece[size_bytes:]
            return piece[:size_bytes]
        if piece:
            self.piece = None
            _set(self._go)
        return piece

    def _read_on(self, number: int) -> None:
        fd = self.fd
        while True:
            while self.piece is not None and not self.is_released:
                self._go.acquire()
            if not _begin(self):
                return
            try:
                piece: bytes | OSError = os.read(fd, READ_BYTES)
            except OSError as error:
                piece = error
            if not _end(self, fd):
                return
            self.piece = piece
            for waiting in self.polls:
                waiting.serve(self, number)
            if self.number != number or not piece or isinstance(piece, OSError):
                return


class _Target:
    """A descriptor that a thread writes to. `error` is the reason for which nothing can be written any more.

    If calls are `shared`, the thread of a source writes to it within a call; `direct` is what it writes. If that takes `late`'s call,
    it is the thread of this target until all is written. Else there is one of its own from the first write on.
    """

    __slots__ = (
        "_data", "_done", "_fd", "_go", "_has_thread", "_is_late", "_taken_bytes", "_told_bytes", "direct", "error", "is_busy",
        "is_released", "late", "polls", "shared",
    )  # fmt: skip

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self.error: OSError | None = None
        self.polls: list[poll] = []
        self.is_busy = False
        self.is_released = False
        self.shared: poll | None = None
        self.late: Callable[[bytes], None] = _nothing
        self.direct = b""
        self._data = memoryview(b"")
        self._taken_bytes = self._told_bytes = 0
        self._is_late = False
        self._has_thread = False
        self._go, self._done = allocate_lock(), allocate_lock()
        self._go.acquire()
        self._done.acquire()

    @property
    def takes_more(self) -> bool:
        """True if a call of `send` would not raise BlockingIOError."""
        return self._told_bytes == len(self._data) or self._taken_bytes > self._told_bytes

    def go_on(self) -> None:
        """Have the thread write, or end if the descriptor was released."""
        _set(self._go)

    def send(self, data: bytes | memoryview) -> int:
        """Write these bytes, or report how many of those of the last call have been written meanwhile; see `sender`."""
        if self._told_bytes == len(self._data):
            if self.error is not None:
                raise self.error
            self._taken_bytes = self._told_bytes = 0
            self._is_late = False
            self._data = memoryview(data)
            self._done.acquire(blocking=False)
            if not self._has_thread:
                self._has_thread = True
                start_new_thread(self._write_on, ())
            _set(self._go)
            if not self._done.acquire(timeout=PATIENCE_S):
                self._is_late = True
        taken_bytes = self._taken_bytes - self._told_bytes
        if taken_bytes:
            self._told_bytes += taken_bytes
            return taken_bytes
        if self.error is not None:
            raise self.error
        self._is_late = True
        if self._taken_bytes > self._told_bytes or self.error is not None:
            return self.send(data)  # just now
        raise BlockingIOError

    def send_last(self, data: bytes) -> int:
        """Write these bytes in the thread of a source, if one is serving, and all before them is written; see `last_sender`."""
        shared = self.shared
        if shared is None or shared.serving is None or self.is_busy or self._told_bytes != len(self._data):
            return self.send(data)
        if self.error is not None:
            raise self.error
        self.direct, error, written_bytes = data, None, 0
        self.is_busy = True
        shared.begin_write(self)
        try:
            written_bytes = os.write(self._fd, data)
        except OSError as failed:
            error = failed
        with _ending:
            is_late = shared.writing is not self
            if not is_late:
                shared.writing = None
                self.is_busy = False
        if is_late:
            self._write_late(written_bytes, error)
            return len(data)
        if error is not None:
            self.error = error
            raise error
        return written_bytes

    def begin_late(self) -> None:
        """Take note that a write within a call takes long: it is now as if `send` had raised BlockingIOError."""
        self._data = memoryview(self.direct)
        self._taken_bytes = self._told_bytes = 0
        self._is_late = True

    def _write_late(self, written_bytes: int, error: OSError | None) -> None:
        if error is not None:
            self.error = error
        elif written_bytes < len(self._data):
            self._taken_bytes = written_bytes
            self._tell()
            self._write_rest()
            return
        if _end(self, self._fd):
            self._taken_bytes = written_bytes
            self._tell()

    def _write_on(self) -> None:
        while True:
            self._go.acquire()
            if not _begin(self):
                return
            if not self._write_rest():
                return

    def _write_rest(self) -> bool:
        """Write what has not been written. Return False if the descriptor was released meanwhile."""
        rest = self._data[self._taken_bytes :]
        try:
            while rest:
                written_bytes = os.write(self._fd, rest[:READ_BYTES])
                rest = rest[written_bytes:]
                if not rest:  # who is told may write again, which must not meet us
                    break
                self._taken_bytes += written_bytes
                self._tell()
        except OSError as error:
            self.error = error
        if not _end(self, self._fd):
            return False
        if self.error is None:
            self._taken_bytes = len(self._data)
        self._tell()
        return True

    def _tell(self) -> None:
        _set(self._done)
        if self._is_late:
            for waiting in self.polls:
                waiting.wake()


def _nothing(data: bytes) -> None:
    """Do nothing: the action while there is none."""


def _begin(end: _Source | _Target) -> bool:
    """Note that a thread may block with its descriptor from now on. Return False if it was released."""
    with _ending:
        end.is_busy = not end.is_released
        return end.is_busy


def _end(end: _Source | _Target, fd: int) -> bool:
    """Note that it does not block any more. Return False if the descriptor was released meanwhile, and close it."""
    with _ending:
        end.is_busy = False
        if end.is_released:
            close(fd)
        return not end.is_released


def _set(flag: Any) -> None:  # the type of a lock has no name in every version
    """Release a lock that is used as a flag, unless it is released."""
    try:
        if flag.locked():  # an exception costs more
            flag.release()
    except RuntimeError:
        pass


TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Protocol, TypeAlias

    class _Callbacks(Protocol):
        """The calls of `live.stdio.pump.Readiness`: one for each descriptor, and whether one of them has interrupted the turn."""

        interrupted: bool

        @property
        def callback_of(self) -> Callable[[int], Callable[[int], None] | None]: ...

    _Send: TypeAlias = Callable[[bytes | memoryview], int]

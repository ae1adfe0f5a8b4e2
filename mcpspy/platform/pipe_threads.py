"""`poll` and calls that never block, where pipes cannot be waited for, as on Windows: each pipe gets a thread that may block.

    pipe ── os.read ──► thread of a source ── one piece ──► poll, read ──► the caller
    the caller ── send ──► thread of a target ── os.write ──► pipe

A source reads one piece ahead, so memory stays bounded and back-pressure reaches the writer. A target takes one piece at a time.
Bytes count as sent once the system has taken them, as with a non-blocking descriptor. Nothing shows that a pipe has lost its reader
but writing to it. While a thread is blocked in a call of Windows' C library, closing its descriptor would block too: then the
thread closes it, when the call returns.
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

_sources: dict[int, _Source] = {}
_targets: dict[int, _Target] = {}
_ending = allocate_lock()
"""Held while it is decided who closes a descriptor: its thread, or who releases it."""


class poll:  # noqa: N801 - as the C module spells it
    """Descriptors, and the events that are waited for: the part of `select.poll` that mcpspy uses."""

    __slots__ = ("_asked", "_wake")

    def __init__(self) -> None:
        self._asked: dict[int, int] = {}
        self._wake = allocate_lock()
        self._wake.acquire()

    def register(self, fd: int, events: int) -> None:
        """Wait for these events of a descriptor, errors and hang-ups too. From now on only `read` may read from it."""
        self._asked[fd] = events
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
        """Wait for events, at most so long; without a time, or with a negative one, for ever."""
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
    """A descriptor that a thread reads. `piece` is what it has read and nobody has taken: bytes, none at the end, or an error."""

    __slots__ = ("_fd", "_go", "is_busy", "is_released", "piece", "polls")

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self.piece: bytes | OSError | None = None
        self.polls: list[poll] = []
        self.is_busy = False
        self.is_released = False
        self._go = allocate_lock()
        self._go.acquire()
        start_new_thread(self._read_on, ())

    def go_on(self) -> None:
        """Have the thread read on, or end if the descriptor was released."""
        _set(self._go)

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

    def _read_on(self) -> None:
        while _begin(self):
            try:
                piece: bytes | OSError = os.read(self._fd, READ_BYTES)
            except OSError as error:
                piece = error
            if not _end(self, self._fd):
                return
            self.piece = piece
            for waiting in self.polls:
                waiting.wake()
            if not piece or isinstance(piece, OSError):
                return
            self._go.acquire()


class _Target:
    """A descriptor that a thread writes to. `error` is the reason for which nothing can be written any more."""

    __slots__ = (
        "_data", "_done", "_fd", "_go", "_is_late", "_taken_bytes", "_told_bytes", "error", "is_busy", "is_released", "polls",
    )  # fmt: skip

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self.error: OSError | None = None
        self.polls: list[poll] = []
        self.is_busy = False
        self.is_released = False
        self._data = memoryview(b"")
        self._taken_bytes = self._told_bytes = 0
        self._is_late = False
        self._go, self._done = allocate_lock(), allocate_lock()
        self._go.acquire()
        self._done.acquire()
        start_new_thread(self._write_on, ())

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

    def _write_on(self) -> None:
        while True:
            self._go.acquire()
            rest = self._data[self._taken_bytes :]
            if not _begin(self):
                return
            try:
                while rest:
                    written_bytes = os.write(self._fd, rest[:READ_BYTES])
                    rest = rest[written_bytes:]
                    self._taken_bytes += written_bytes
                    if rest:
                        self._tell()
            except OSError as error:
                self.error = error
            if not _end(self, self._fd):
                return
            self._tell()

    def _tell(self) -> None:
        _set(self._done)
        if self._is_late:
            for waiting in self.polls:
                waiting.wake()


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


def _set(flag: object) -> None:
    """Release a lock that is used as a flag, unless it is released."""
    try:
        flag.release()  # type: ignore[attr-defined]  # the type of a lock has no name in every version
    except RuntimeError:
        pass


TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    _Send: TypeAlias = Callable[[bytes | memoryview], int]

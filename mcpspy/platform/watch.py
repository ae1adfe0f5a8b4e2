"""Waiting for files to grow and for folders to get new entries: by inotify, else by a look every 100 ms.

Waiting by inotify costs nothing: it is one blocking `poll`. What is watched is not read.
"""

import os
import signal
from collections.abc import Callable, Iterator
from struct import Struct
from time import monotonic, sleep
from typing import NamedTuple

from .descriptors import POLLERR, POLLHUP, POLLIN, poll
from .native import c_function

IN_MODIFY = 0x2
IN_CLOSE_WRITE = 0x8
IN_MOVED_TO = 0x80
IN_CREATE = 0x100
IN_DELETE_SELF = 0x400
IN_MOVE_SELF = 0x800
IN_IGNORED = 0x8000

FILE_EVENTS = IN_MODIFY | IN_CLOSE_WRITE | IN_DELETE_SELF | IN_MOVE_SELF
FOLDER_EVENTS = IN_CREATE | IN_MOVED_TO | IN_DELETE_SELF | IN_MOVE_SELF

LOOK_S = 0.1
"""Time between two looks without inotify."""

ANYWAY_S = 1.0
"""Time after which a wait without inotify ends though nothing changed: that a writer was killed shows in no file's state."""

SETTLE_S = 0.03
"""Time for more events to come after the first: reading in batches keeps a watcher cheap."""

_EVENTS_BYTES = 1 << 16
_event = Struct("iIII")


class Watch:
    """Files and folders to wait for. `reader_fd` is our output: `wait` raises BrokenPipeError once nobody reads it.

    `input_fd` is a pipe to wait for too. A path that does not exist can be added; it is never reported. If the system's limit on
    watches is reached, `polling` takes over; without `inotify` it does from the start.
    """

    __slots__ = ("_fd", "_folders", "_inotify", "_input_fd", "_known", "_poll", "_reader_fd", "_signal_fds", "_states")

    def __init__(self, *, reader_fd: int | None = None, input_fd: int | None = None, inotify: bool = True) -> None:
        self._known: dict[str, int] = {}
        self._folders: set[int] = set()
        self._states: dict[str, tuple[int, int]] = {}
        self._reader_fd = reader_fd
        self._inotify = _inotify() if inotify else None
        self._fd = -1 if self._inotify is None else self._inotify.begin(os.O_CLOEXEC | os.O_NONBLOCK)
        self._poll = poll()
        if self._fd >= 0:
            self._poll.register(self._fd, POLLIN)
        if reader_fd is not None:
            self._poll.register(reader_fd, 0)  # errors and hang-ups are always reported
        self._input_fd = input_fd
        if input_fd is not None:
            self._poll.register(input_fd, POLLIN)
        self._signal_fds: tuple[int, ...] = ()
        """The pipe by which signals end a wait: its end to read, and that to write."""

    @property
    def polling(self) -> bool:
        """True if files are looked at instead of watched by inotify."""
        return self._fd < 0

    def wake_by_signals(self) -> None:
        """Let each signal that has a handler end a wait, also one that comes just before: the system call would not see that.

        Without inotify this is not needed: no wait is long then.
        """
        if self._fd >= 0:
            self._signal_fds = os.pipe()
            for fd in self._signal_fds:
                os.set_blocking(fd, False)
            self._poll.register(self._signal_fds[0], POLLIN)
            signal.set_wakeup_fd(self._signal_fds[1], warn_on_full_buffer=False)

    def add(self, path: str) -> None:
        """Wait for changes of a file, or in a folder."""
        if path in self._states:
            return
        self._states[path] = _state(path)
        if self._inotify is None or self._fd < 0:
            return
        events = FOLDER_EVENTS if os.path.isdir(path) else FILE_EVENTS
        number = self._inotify.add(self._fd, os.fsencode(path), events)
        if number >= 0:
            self._known[path] = number
            if events == FOLDER_EVENTS:
                self._folders.add(number)
        elif os.path.exists(path):
            self._give_up_inotify()

    def remove(self, path: str) -> None:
        """Stop waiting for `path`."""
        self._states.pop(path, None)
        number = self._known.pop(path, None)
        if self._inotify is not None and self._fd >= 0 and number is not None:
            self._inotify.remove(self._fd, number)

    def remove_input(self) -> None:
        """Stop waiting for the pipe, which has ended."""
        if self._input_fd is not None:
            self._poll.unregister(self._input_fd)
            self._input_fd = None

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait until something changes, or until the time-out. Returns True if something did, or may have.

        Raises: BrokenPipeError: if nobody reads our output any more.
        """
        if self._fd < 0:
            return self._look_until(timeout_s)
        ready = self._polled(None if timeout_s is None else max(0, round(timeout_s * 1000)))
        if not any(fd in (self._fd, self._input_fd) for fd, _ in ready):
            return False
        sleep(SETTLE_S)
        return self._take_events() or any(fd == self._input_fd for fd, _ in ready)

    def close(self) -> None:
        """Close the watch."""
        if self._signal_fds:
            signal.set_wakeup_fd(-1)  # before its descriptor is closed: a second signal must not write to another file
        for fd in self._signal_fds:
            os.close(fd)
        self._signal_fds = ()
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
        self._known.clear()
        self._states.clear()

    def _take_events(self) -> bool:
        """Empty the queue. Returns True if it held anything but the end of our own watches.

        A path that is gone, and a folder that was renamed, is forgotten: adding it again means what is there by then.
        """
        events = b""
        try:
            while read := os.read(self._fd, _EVENTS_BYTES):
                events += read
        except BlockingIOError:
            pass
        masks = list(_masks(events))
        gone = {number for number, mask in masks if mask & IN_IGNORED}
        moved = {number for number, mask in masks if mask & IN_MOVE_SELF} & self._folders
        for path in [path for path, number in self._known.items() if number in gone | moved] if gone or moved else ():
            self.remove(path)
        return any(not mask & IN_IGNORED for _, mask in masks)

    def _give_up_inotify(self) -> None:
        os.close(self._fd)
        self._poll.unregister(self._fd)
        self._fd = -1

    def _look_until(self, timeout_s: float | None) -> bool:
        until = monotonic() + (ANYWAY_S if timeout_s is None else timeout_s)
        while True:
            now = {path: _state(path) for path in self._states}
            if now != self._states:
                self._states = now
                return True
            left = min(LOOK_S, until - monotonic())
            if left <= 0:
                return timeout_s is None
            ready = self._polled(round(left * 1000))
            if any(fd == self._input_fd for fd, _ in ready):
                return True

    def _polled(self, timeout_ms: int | None) -> list[tuple[int, int]]:
        ready = self._poll.poll(timeout_ms)
        if any(fd == self._reader_fd and events & (POLLERR | POLLHUP) for fd, events in ready):
            raise BrokenPipeError
        if self._signal_fds and any(fd == self._signal_fds[0] for fd, _ in ready):
            os.read(self._signal_fds[0], _EVENTS_BYTES)
        return ready


def _masks(events: bytes) -> Iterator[tuple[int, int]]:
    """Yield watch and mask of each `struct inotify_event` (inotify(7)): watch, mask, cookie, the length of a name, the name."""
    at = 0
    while at < len(events):
        number, mask, _, name_bytes = _event.unpack_from(events, at)
        yield number, mask
        at += _event.size + name_bytes


def _state(path: str) -> tuple[int, int]:
    """Return size and time of change, which change when a file grows or a folder gets an entry; zeros for a missing path."""
    try:
        status = os.stat(path)
    except OSError:
        return 0, 0
    return status.st_size, status.st_mtime_ns


class _Inotify(NamedTuple):
    begin: Callable[[int], int]
    add: Callable[[int, bytes, int], int]
    remove: Callable[[int, int], int]


def _inotify() -> _Inotify | None:
    begin, add, remove = map(c_function, ("inotify_init1", "inotify_add_watch", "inotify_rm_watch"))
    return None if begin is None or add is None or remove is None else _Inotify(begin, add, remove)

"""The quota of the store: how many bytes all its captures may take together, and how taps keep the store below it.

The quota is a file in the store that verbs write. It is no environment variable and no option of `run`: a cloned project, with the
`env` block that it may bring along, must not choose what is removed. Where no quota is set, nothing is done.

Taps use this while they forward, so it imports `os` and little else. `QuotaGuard` runs in the thread that waits for the disk, never
in the one that forwards.
"""

from __future__ import annotations

import os
import sys
import time

from ...platform.files import BINARY, NOFOLLOW, try_to_lock
from .folder import EXTENSION, captures_folder, home_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..file.writer import Writer

MIN_QUOTA_BYTES = 1_000_000
"""A smaller quota would have taps remove what was recorded a moment ago."""

_NAME = "quota"
_MAX_DIGITS = 18

LOOK_NS = 60_000_000_000
"""Time between two looks of a recording tap at the store; less if its own capture has grown by a share of the quota."""

SHARES = 16
"""Captures are removed until the store is one of so many shares below its quota: otherwise each look would find it full again."""

PAUSE_S = 0.001
SWITCH_S = 0.0005
"""Looking through captures gives way: it pauses before each, and the thread that forwards waits no longer than this for its turn.

With 2,000 captures, a tap that removes half of them takes 4 s, 0.5 s of them on the processor, and 20 MB of memory instead of 11;
the time that a message takes on its way does not change by more than the noise (CPython 3.11).
"""

_LOCK = "pruning.lock"


def quota_bytes() -> int | None:
    """Read the quota in force, in bytes. None if none was set, which is the default, or if its file makes no sense."""
    try:
        with open(os.path.join(home_folder(), _NAME), "rb") as file:
            text = file.read(_MAX_DIGITS + 2).strip()
    except OSError:
        return None
    is_number = text.isdigit() and len(text) <= _MAX_DIGITS
    return int(text) if is_number and int(text) >= MIN_QUOTA_BYTES else None


def set_quota(max_bytes: int | None) -> None:
    """Have taps keep the store below so many bytes from now on; with None, no longer. Raises: OSError: says what was not done."""
    path = os.path.join(home_folder(), _NAME)
    if max_bytes is None:
        try:
            os.unlink(path)
        except FileNotFoundError:
            pass
        return
    os.makedirs(home_folder(), 0o700, exist_ok=True)
    temporary = f"{path}.{os.getpid()}"
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | NOFOLLOW | BINARY, 0o600)
    try:
        with open(fd, "wb") as file:
            file.write(b"%d\n" % max_bytes)
        os.replace(temporary, path)
    except OSError as error:
        os.unlink(temporary)
        raise OSError(error.errno, f"the quota could not be kept: {error.strerror}", path) from error


def store_size() -> tuple[int, int]:
    """Count the captures in the store, and their bytes. 2,000 take 6 ms (CPython 3.11)."""
    files = size = 0
    try:
        with os.scandir(captures_folder()) as folder:
            for file in folder:
                if file.name.endswith(EXTENSION):
                    try:
                        size += file.stat(follow_symlinks=False).st_size
                    except OSError:
                        continue  # it went away
                    files += 1
    except OSError:
        pass
    return files, size


class QuotaGuard:
    """Watch over the size of the store, for the tap that writes with `writer`. `look` may be called as often as you like.

    One of all taps removes captures at a time. Where that does not make enough room, the tap keeps no more payloads.
    """

    __slots__ = ("_due_ns", "_looked_bytes", "_share_bytes", "_writer")

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._due_ns = 0
        self._looked_bytes = 0
        self._share_bytes = 0

    def look(self) -> None:
        """Make room if it is time and there is none. Never raises: a store that cannot be pruned must not cost the traffic."""
        now_ns, own_bytes = time.monotonic_ns(), self._writer.file_bytes
        has_grown = 0 < self._share_bytes <= own_bytes - self._looked_bytes
        if now_ns < self._due_ns and not has_grown:
            return
        self._due_ns, self._looked_bytes = now_ns + LOOK_NS, own_bytes
        max_bytes = quota_bytes()
        self._share_bytes = (max_bytes or 0) // SHARES
        try:
            is_full = max_bytes is not None and not _has_room(max_bytes)
        except Exception:  # noqa: BLE001  # whatever is wrong with the store, it is not reported on a server's stderr
            is_full = False
        self._writer.keep_payloads(not is_full or own_bytes < self._share_bytes)


def _has_room(max_bytes: int) -> bool:
    """Make the store smaller if it is too large and no other tap does so. Return whether it is small enough now. Raises: OSError."""
    if store_size()[1] <= max_bytes:
        return True
    fd = os.open(os.path.join(home_folder(), _LOCK), os.O_RDWR | os.O_CREAT | NOFOLLOW, 0o600)
    try:
        try_to_lock(fd)
        _make_room(max_bytes - max_bytes // SHARES)
    except BlockingIOError:
        return True  # as far as anybody knows until the next look
    finally:
        os.close(fd)
    return store_size()[1] <= max_bytes


def _make_room(max_bytes: int) -> None:
    before_s = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_S)
    try:
        from .pruning import make_room

        make_room(max_bytes, wall_ns=time.time_ns(), pause=lambda: time.sleep(PAUSE_S))
    finally:
        sys.setswitchinterval(before_s)

"""What keeps the store below its quota: every tap looks now and then, one of them removes, and who cannot help it keeps no payloads.

Called in the thread that waits for the disk, never in the one that forwards. Refuses to do anything where no quota was set.
"""

from __future__ import annotations

import os
import sys
import time

from .folder import home_folder
from .quota import quota_bytes, taken

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..file.writer import Writer

LOOK_NS = 60_000_000_000
"""How often a tap looks at the store, while it records at all; earlier when its own capture has grown by a share of the quota."""

SHARES = 16
"""Down to all but one of so many shares is removed: else each look would find the store full again."""

PAUSE_S = 0.001
SWITCH_S = 0.0005
"""Looking through captures gives way: a pause before each, and the thread that forwards waits no longer than this for its turn.

With 2,000 captures a tap that removes half of them takes 4 s, of which 0.5 s of the processor's, and then 20 MB instead of 11; what a
message takes on its way does not change by more than the noise (CPython 3.11).
"""

_LOCK = "pruning.lock"


class QuotaGuard:
    """Looks after the store for the tap that writes with `writer`. `look` may be called as often as is liked."""

    __slots__ = ("_due_ns", "_looked_bytes", "_share_bytes", "_writer")

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._due_ns = 0
        self._looked_bytes = 0
        self._share_bytes = 0

    def look(self) -> None:
        """If it is time: see to it that there is room. Never raises: a store that cannot be pruned must not cost the traffic."""
        now_ns, own_bytes = time.monotonic_ns(), self._writer.file_bytes
        has_grown = 0 < self._share_bytes <= own_bytes - self._looked_bytes
        if now_ns < self._due_ns and not has_grown:
            return
        self._due_ns, self._looked_bytes = now_ns + LOOK_NS, own_bytes
        max_bytes = quota_bytes()
        self._share_bytes = (max_bytes or 0) // SHARES
        try:
            is_full = max_bytes is not None and not _has_room(max_bytes)
        except Exception:  # noqa: BLE001  # whatever lies in the store, it is not told on a server's stderr
            is_full = False
        self._writer.keep_payloads(not is_full or own_bytes < self._share_bytes)


def _has_room(max_bytes: int) -> bool:
    """Make the store smaller if it is too large and nobody else does so already. Whether it is small enough then. Raises: OSError."""
    if taken()[1] <= max_bytes:
        return True
    from fcntl import LOCK_EX, LOCK_NB, flock

    fd = os.open(os.path.join(home_folder(), _LOCK), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        flock(fd, LOCK_EX | LOCK_NB)
        _make_room(max_bytes - max_bytes // SHARES)
    except BlockingIOError:
        return True  # as far as anybody knows until the next look
    finally:
        os.close(fd)
    return taken()[1] <= max_bytes


def _make_room(max_bytes: int) -> None:
    before_s = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_S)
    try:
        from .pruning import make_room

        make_room(max_bytes, wall_ns=time.time_ns(), pause=lambda: time.sleep(PAUSE_S))
    finally:
        sys.setswitchinterval(before_s)

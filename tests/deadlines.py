"""Time limits of live tests. No test sleeps: it waits for the event it claims, for this long at most, and then fails."""

import select
import time
from collections.abc import Callable
from typing import TypeVar

# Many times what a busy two-core machine needs, and well inside the timeout of pyproject.toml, so that the test fails
# with its own words before pytest ends it.
DEADLINE_S = 30.0

SCENE_S = 90.0
"""The same for a whole scene: several programs that start, talk and end. One takes 3 s, and took more than 20 at a load of 12."""

POLL_S = 0.005

Found = TypeVar("Found")


def eventually(condition: Callable[[], Found | None], what: str, deadline_s: float = DEADLINE_S) -> Found:
    """Wait until `condition` is true, and return its value; for what nothing announces, like a line in a log.

    Raises:
        AssertionError: if it was not true before the deadline; it says `what`.
    """
    deadline = time.monotonic() + deadline_s
    while not (value := condition()):
        assert time.monotonic() < deadline, f"waited {deadline_s} s for {what}"
        time.sleep(POLL_S)
    return value


def readable(fd: int, timeout_s: float) -> bool:
    """Return whether something can be read within this time. A worker may have descriptors above 1,023: too high for `select`."""
    if not hasattr(select, "poll"):
        return bool(select.select([fd], [], [], timeout_s)[0])
    return _polled(fd, select.POLLIN, timeout_s)


def writable(fd: int, timeout_s: float) -> bool:
    """Return whether something can be written within this time, likewise."""
    if not hasattr(select, "poll"):
        return bool(select.select([], [fd], [], timeout_s)[1])
    return _polled(fd, select.POLLOUT, timeout_s)


def _polled(fd: int, event: int, timeout_s: float) -> bool:
    waiting = select.poll()
    waiting.register(fd, event)
    return bool(waiting.poll(timeout_s * 1000))

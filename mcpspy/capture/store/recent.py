"""Which recordings of the store were recorded into since a moment, and what moment of a capture's own clock that is.

A capture's clock is the monotonic one, which stands still while a machine sleeps: the file's time of change says by how much it is
behind. Refuses to read captures further than the catalog does.
"""

from __future__ import annotations

import os
import time
from functools import cache
from typing import TYPE_CHECKING

from .address import addresses
from .catalog import CatalogEntry, Recording, entries, has_message, recordings

if TYPE_CHECKING:
    from ...records import Header


def touched(since_ns: int) -> tuple[list[tuple[str, Recording]], CatalogEntry | None]:
    """The recordings into which was recorded since that moment (Unix time), the newest first; and the capture last heard of, if any.

    Each comes with what WHAT calls it, which is empty where nothing was said in it.
    Raises: OSError: if the store cannot be read.
    """
    known = entries()
    grouped = recordings(known)
    wanted = [any(is_touched(one, since_ns) for one in recording.own) for recording in grouped]
    newest = max(known, key=last_heard_ns, default=None)
    if not any(wanted):
        return [], newest
    until = len(wanted) - wanted[::-1].index(True)
    spoke = [any(map(has_message, recording.entries)) for recording in grouped[:until]]
    names = addresses(spoke) if any(spoke) else [""] * until
    return [(name, one) for name, one, is_wanted in zip(names, grouped, wanted, strict=False) if is_wanted], newest


def is_touched(capture: CatalogEntry, since_ns: int) -> bool:
    """Whether something was recorded into it since that moment, or a tap still stands ready to."""
    return capture.live or last_heard_ns(capture) >= since_ns


def last_heard_ns(capture: CatalogEntry) -> int:
    """When its last record was made, as Unix time; by the file where no record tells."""
    if capture.header is None or not capture.last_ns:
        return max(capture.begin_ns, _changed_ns(capture.path))
    return capture.begin_ns + capture.last_ns + slept_ns(capture.header, capture.path, capture.last_ns)


def slept_ns(header: Header, path: str, last_ns: int) -> int:
    """How far a capture's clock is behind by its last record, which came `last_ns` after it began. 0 where that cannot be told.

    No more than the clocks of this boot have drifted apart since it began: a file may be younger because it was copied.
    """
    if not header.boot_id or header.boot_id != _boot_id():
        return 0
    drift_ns = (time.time_ns() - header.wall_ns) - (time.monotonic_ns() - header.monotonic_ns)
    return max(0, min(drift_ns, _changed_ns(path) - header.wall_ns - last_ns))


def _changed_ns(path: str) -> int:
    try:
        return os.stat(path).st_mtime_ns
    except OSError:
        return 0


@cache
def _boot_id() -> str:
    try:
        with open("/proc/sys/kernel/random/boot_id") as file:
            return file.read().strip()
    except OSError:
        return ""

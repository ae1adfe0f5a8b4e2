"""Recordings of the store that grew since a moment of Unix time, and that moment on a capture's own clock.

A capture's clock is the monotonic one, which stands still while a machine sleeps: the file's time of change says by how much it is
behind. Captures are read no further than the catalog does.
"""

from __future__ import annotations

import os
import time
from functools import cache

from ...records import Header
from .address import addresses
from .catalog import CatalogEntry, Recording, entries, recordings
from .folder import boot_id


def recordings_since(since_ns: int) -> tuple[list[tuple[str, Recording]], CatalogEntry | None]:
    """List the recordings that grew since that moment (Unix time), the newest first; and the capture with the latest record, if any.

    Each recording comes with its address, which is empty if `@` does not count it.
    Raises: OSError: if the store cannot be read.
    """
    known = entries()
    grouped = recordings(known)
    wanted = [any(has_grown_since(capture, since_ns) for capture in recording.own) for recording in grouped]
    newest = max(known, key=last_heard_ns, default=None)
    if not any(wanted):
        return [], newest
    until = len(wanted) - wanted[::-1].index(True)
    named = zip(addresses(grouped[:until]), grouped, wanted, strict=False)
    return [(name, recording) for name, recording, is_wanted in named if is_wanted], newest


def has_grown_since(capture: CatalogEntry, since_ns: int) -> bool:
    """Return whether something was recorded into a capture since that moment, or a tap still runs."""
    return capture.live or last_heard_ns(capture) >= since_ns


def last_heard_ns(capture: CatalogEntry) -> int:
    """Return the time of a capture's last record, as Unix time; the file's time of change if no record tells."""
    if capture.header is None or not capture.last_ns:
        return max(capture.begin_ns, _changed_ns(capture.path))
    return capture.begin_ns + capture.last_ns + slept_ns(capture.header, capture.path, capture.last_ns)


def slept_ns(header: Header, path: str, last_ns: int) -> int:
    """Return how far a capture's clock is behind at its last record, which came `last_ns` after it began; 0 if that is unknown.

    It is no more than the drift between the clocks of this boot since the capture began: a file may be younger because it was copied.
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


_boot_id = cache(boot_id)

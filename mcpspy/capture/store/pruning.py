"""Deletion of old recordings from the store: the oldest first, never one that is being recorded. Callers give the bounds.

The totals of what was removed are kept in the store, for `mcpspy list` to show.
"""

import json
import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec

from ...platform.files import BINARY, CAN_REMOVE_OPEN_FILES, NOFOLLOW, try_to_lock
from .catalog import CatalogEntry, Recording, entry, recordings
from .folder import EXTENSION, INDEX_EXTENSION, captures_folder, home_folder, is_live

LEDGER = "pruned.json"

SETTLED_NS = 60_000_000_000
"""An empty file that is older will stay empty: a tap writes its header at once."""


class Bounds(msgspec.Struct, frozen=True, kw_only=True):
    """Bounds of the store; None is no bound. `before_ns` is Unix time: recordings whose last record is earlier may be removed."""

    before_ns: int | None = None
    recordings: int | None = None
    max_bytes: int | None = None


class PruneTotals(msgspec.Struct, frozen=True, kw_only=True):
    """Totals of what was removed so far, and the time of the last removal, as Unix time."""

    recordings: int = 0
    captures: int = 0
    bytes: int = 0
    last_wall_ns: int = 0


def size_bytes(recording: Recording) -> int:
    """Add up the sizes of a recording's captures."""
    return sum(capture.size_bytes for capture in recording.entries)


def last_ns(recording: Recording) -> int:
    """Return the time of a recording's last record, as Unix time."""
    return max(capture.begin_ns + capture.last_ns for capture in recording.entries)


def recordings_beyond(newest_first: Sequence[Recording], bounds: Bounds) -> list[Recording]:
    """Select the recordings for which the bounds leave no room, the oldest first. A live recording always stays."""
    to_remove: list[Recording] = []
    total = 0
    for number, recording in enumerate(newest_first):
        total += size_bytes(recording)
        is_old = bounds.before_ns is not None and last_ns(recording) < bounds.before_ns
        is_many = bounds.recordings is not None and number >= bounds.recordings
        is_much = bounds.max_bytes is not None and total > bounds.max_bytes
        if (is_old or is_many or is_much) and not _is_live(recording):
            to_remove.append(recording)
            total -= size_bytes(recording)
    return to_remove[::-1]


def make_room(max_bytes: int, *, wall_ns: int, pause: Callable[[], None] = lambda: None) -> None:
    """Remove the oldest recordings until the store takes so many bytes at most; then, if need be, the ended captures of live ones.

    `pause` is called before each file is looked at, so that other work can have its turn. Raises: OSError.
    """
    remove_empty_files(wall_ns=wall_ns)
    remove_indexes()
    known = [capture for path in _paths() if (capture := _entry_after_pause(path, pause)) is not None]
    excess = sum(capture.size_bytes for capture in known) - max_bytes
    for recording in _oldest_first(recordings(known, each_once=True)):
        if excess <= 0:
            return
        pause()
        excess -= prune([recording], wall_ns=wall_ns, by_quota=True).bytes


def _oldest_first(grouped: Sequence[Recording]) -> list[Recording]:
    """Order what may be removed: whole recordings by their last record, then one by one the ended captures of live recordings."""
    over = [recording for recording in grouped if not _is_live(recording)]
    in_live = (capture for recording in grouped if _is_live(recording) for capture in recording.entries)
    ended = [Recording(entries=(capture,)) for capture in in_live if not capture.live]
    return [*sorted(over, key=last_ns), *sorted(ended, key=last_ns)]


def prune(to_remove: Iterable[Recording], *, wall_ns: int, by_quota: bool = False) -> PruneTotals:
    """Remove the captures of these recordings and add them to the totals. Captures that are being written stay. Raises: OSError."""
    count = captures = size = 0
    for recording in to_remove:
        removed = [capture for capture in recording.entries if _remove(capture)]
        count += bool(removed)
        captures += len(removed)
        size += sum(capture.size_bytes for capture in removed)
    totals = PruneTotals(recordings=count, captures=captures, bytes=size, last_wall_ns=wall_ns)
    if captures:
        _add_to_totals(totals, by_quota=by_quota)
    return totals


def empty_files(*, wall_ns: int) -> list[str]:
    """List files of taps that were killed before they wrote anything: empty, a minute old at `wall_ns` (Unix time), and not live."""
    return [path for path in _paths() if _is_empty(path, wall_ns) and not is_live(path)]


def remove_empty_files(*, wall_ns: int) -> int:
    """Remove these files. Return how many there were. Raises: OSError."""
    return sum(map(_unlinked, empty_files(wall_ns=wall_ns)))


def remove_indexes() -> int:
    """Remove the index files that earlier versions kept beside captures. Return how many there were. Raises: OSError."""
    folder = captures_folder()
    names = os.listdir(folder) if os.path.isdir(folder) else []
    return sum(_unlinked(os.path.join(folder, name)) for name in names if EXTENSION + INDEX_EXTENSION in name)


def prune_totals(*, by_quota: bool = False) -> PruneTotals:
    """Read the totals of what was removed, by hand or for the store's quota; zeros if they were never written, or not by us."""
    ledger = _ledger()
    try:
        kept = ledger[_BY_QUOTA] if by_quota else ledger
        return PruneTotals(**{name: int(kept[name]) for name in _NAMES})
    except (ValueError, KeyError, TypeError):
        return PruneTotals()


_BY_QUOTA = "by_quota"
_NAMES = ("recordings", "captures", "bytes", "last_wall_ns")


def _paths() -> list[str]:
    folder = captures_folder()
    try:
        return [os.path.join(folder, name) for name in os.listdir(folder) if name.endswith(EXTENSION)]
    except FileNotFoundError:
        return []


def _is_empty(path: str, wall_ns: int) -> bool:
    try:
        status = os.stat(path)
    except OSError:
        return False
    return status.st_size == 0 and status.st_mtime_ns < wall_ns - SETTLED_NS


def _entry_after_pause(path: str, pause: Callable[[], None]) -> CatalogEntry | None:
    pause()
    return entry(path)


def _is_live(recording: Recording) -> bool:
    return any(capture.live for capture in recording.entries)


def _remove(capture: CatalogEntry) -> bool:
    """Remove a capture unless a tap may record into it, and tell whether that was done.

    The capture's lock is held meanwhile, except on Windows, where what a tap has open cannot be removed anyway.
    """
    try:
        fd = os.open(capture.path, os.O_RDONLY | NOFOLLOW | BINARY)
    except FileNotFoundError:
        return False
    try:
        if _may_be_live(fd, capture):
            return False
        if not CAN_REMOVE_OPEN_FILES:
            os.close(fd)
            fd = -1
        if not _unlinked(capture.path):
            return False
        _unlinked(capture.path + INDEX_EXTENSION)
        from .columns import column_key, columns_folder, remove_columns  # a list need not wait for it

        remove_columns(columns_folder(), column_key(capture.header, os.path.basename(capture.path)))
        return True
    finally:
        if fd >= 0:
            os.close(fd)


def _unlinked(path: str) -> bool:
    """Remove the file, and tell whether it was there: a tap may be making room at the same time. Raises: OSError."""
    try:
        os.unlink(path)
    except FileNotFoundError:
        return False
    except (PermissionError, IsADirectoryError):
        if CAN_REMOVE_OPEN_FILES and not os.path.isdir(path):
            raise
        return False  # somebody reads it, or it is a folder, which is not ours
    return True


def _may_be_live(fd: int, capture: CatalogEntry) -> bool:
    """Return whether a tap still records into a capture; if not, take its lock. Without locks, an `end` record says so."""
    try:
        try_to_lock(fd)
    except BlockingIOError:
        return True
    except OSError:
        return capture.end is None
    return False


def _ledger() -> dict[str, Any]:
    try:
        with open(os.path.join(home_folder(), LEDGER), encoding="utf-8") as file:
            ledger = json.load(file)
    except (OSError, ValueError):
        return {}
    return ledger if isinstance(ledger, dict) else {}


def _add_to_totals(removed: PruneTotals, *, by_quota: bool) -> None:
    """Add to the totals. Of two prunings at one instant, one may be missing in the totals."""
    before = prune_totals(by_quota=by_quota)
    total = {
        "recordings": before.recordings + removed.recordings,
        "captures": before.captures + removed.captures,
        "bytes": before.bytes + removed.bytes,
        "last_wall_ns": removed.last_wall_ns,
    }
    ledger = _ledger()
    path = os.path.join(home_folder(), LEDGER)
    temporary = f"{path}.{os.getpid()}"
    with open(
        os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | NOFOLLOW | BINARY, 0o600), "w", encoding="utf-8"
    ) as file:
        json.dump({**ledger, _BY_QUOTA: total} if by_quota else {**ledger, **total}, file)
    os.replace(temporary, path)

"""Which recordings of the store may go, and letting them go: the oldest first, never one that is being recorded.

What went is written down beside the captures, for `mcpspy list` says it. Refuses to decide by itself that anything has to go.
"""

import json
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from .catalog import CatalogEntry, Recording, entry, recordings
from .folder import EXTENSION, captures_folder, home_folder, is_live

LEDGER = "pruned.json"

SETTLED_NS = 60_000_000_000
"""An empty file that is older will stay empty: a tap writes its header at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """What the store may hold; None bounds nothing. `before_ns` is Unix time: what was last heard earlier may go."""

    before_ns: int | None = None
    recordings: int | None = None
    max_bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PruneTotals:
    """What went so far, and when something last did, as Unix time."""

    recordings: int = 0
    captures: int = 0
    bytes: int = 0
    last_wall_ns: int = 0


def size_bytes(recording: Recording) -> int:
    """What its captures take."""
    return sum(one.size_bytes for one in recording.entries)


def last_ns(recording: Recording) -> int:
    """When it was last heard of, as Unix time."""
    return max(one.begin_ns + one.last_ns for one in recording.entries)


def beyond(found: Sequence[Recording], bounds: Bounds) -> list[Recording]:
    """Those of the recordings, newest first, that the bounds leave no room for; the oldest first. One that is live always stays."""
    going: list[Recording] = []
    total = 0
    for number, one in enumerate(found):
        total += size_bytes(one)
        is_old = bounds.before_ns is not None and last_ns(one) < bounds.before_ns
        is_many = bounds.recordings is not None and number >= bounds.recordings
        is_much = bounds.max_bytes is not None and total > bounds.max_bytes
        if (is_old or is_many or is_much) and not _is_live(one):
            going.append(one)
            total -= size_bytes(one)
    return going[::-1]


def make_room(max_bytes: int, *, wall_ns: int, pause: Callable[[], None] = lambda: None) -> None:
    """Remove the oldest recordings until the store takes no more than so many bytes; then, if need be, what has ended of live ones.

    `pause` is called before each file is looked at: whoever does this beside other work can give way. Raises: OSError.
    """
    remove_empty_files(wall_ns=wall_ns)
    known = [one for path in _paths() if (one := _looked_at(path, pause)) is not None]
    excess = sum(one.size_bytes for one in known) - max_bytes
    for some in _oldest_first(recordings(known, shares_models=False)):
        if excess <= 0:
            return
        pause()
        excess -= prune([some], wall_ns=wall_ns, by_quota=True).bytes


def _oldest_first(found: Sequence[Recording]) -> list[Recording]:
    """What may go: whole recordings, those last heard of longest ago first; then, one by one, what has ended of live ones."""
    over = [one for one in found if not _is_live(one)]
    ended = [
        Recording(entries=(one,)) for recording in found if _is_live(recording) for one in recording.entries if not one.live
    ]
    return [*sorted(over, key=last_ns), *sorted(ended, key=last_ns)]


def prune(going: Iterable[Recording], *, wall_ns: int, by_quota: bool = False) -> PruneTotals:
    """Remove the captures of these recordings and note that they went. Captures that are being written stay. Raises: OSError."""
    count = captures = size = 0
    for recording in going:
        gone = [one for one in recording.entries if _removed(one)]
        count += bool(gone)
        captures += len(gone)
        size += sum(one.size_bytes for one in gone)
    made = PruneTotals(recordings=count, captures=captures, bytes=size, last_wall_ns=wall_ns)
    if captures:
        _write_down(made, by_quota=by_quota)
    return made


def empty_files(*, wall_ns: int) -> list[str]:
    """Files that taps left which were killed before they wrote anything: a minute old at `wall_ns` (Unix time), and nobody's."""
    return [path for path in _paths() if _is_empty(path, wall_ns) and not is_live(path)]


def remove_empty_files(*, wall_ns: int) -> int:
    """Remove them. Returns how many there were. Raises: OSError."""
    return sum(map(_unlinked, empty_files(wall_ns=wall_ns)))


def pruned(*, by_quota: bool = False) -> PruneTotals:
    """What went so far, by hand or for the store's quota; nothing where that was never written down, or not by us."""
    found = _ledger()
    try:
        kept = found[_BY_QUOTA] if by_quota else found
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


def _looked_at(path: str, pause: Callable[[], None]) -> CatalogEntry | None:
    pause()
    return entry(path)


def _is_live(recording: Recording) -> bool:
    return any(one.live for one in recording.entries)


def _removed(one: CatalogEntry) -> bool:
    """Remove it, holding the lock of whoever records into it. Where there are no locks, only what has its end is known to be over."""
    try:
        fd = os.open(one.path, os.O_RDONLY)
    except FileNotFoundError:
        return False
    try:
        return not _may_be_live(fd, one) and _unlinked(one.path)
    finally:
        os.close(fd)


def _unlinked(path: str) -> bool:
    """Remove the file, if nobody else did meanwhile: a tap may be making room at the same time. Raises: OSError."""
    try:
        os.unlink(path)
    except FileNotFoundError:
        return False
    return True


def _may_be_live(fd: int, one: CatalogEntry) -> bool:
    """Whether somebody may still record into it; if not, its lock is ours. Without locks only an `end` tells."""
    from fcntl import LOCK_EX, LOCK_NB, flock

    try:
        flock(fd, LOCK_EX | LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return one.end is None
    return False


def _ledger() -> dict[str, Any]:
    try:
        with open(os.path.join(home_folder(), LEDGER), encoding="utf-8") as file:
            found = json.load(file)
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _write_down(made: PruneTotals, *, by_quota: bool) -> None:
    """Add it to what went before. Another pruning at the same instant may get lost in the count, never a capture."""
    before = pruned(by_quota=by_quota)
    total = {
        "recordings": before.recordings + made.recordings,
        "captures": before.captures + made.captures,
        "bytes": before.bytes + made.bytes,
        "last_wall_ns": made.last_wall_ns,
    }
    ledger = _ledger()
    path = os.path.join(home_folder(), LEDGER)
    temporary = f"{path}.{os.getpid()}"
    with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
        json.dump({**ledger, _BY_QUOTA: total} if by_quota else {**ledger, **total}, file)
    os.replace(temporary, path)

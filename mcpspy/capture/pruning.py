"""Which sittings of the store may go, and letting them go: the oldest first, never one that is being recorded.

What went is written down beside the captures, for `mcpspy list` says it. Refuses to decide by itself that anything has to go.
"""

import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from .catalog import Sitting
from .store import home_folder, is_live

LEDGER = "pruned.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """What the store may hold; None bounds nothing. `before_ns` is Unix time: what was last heard earlier may go."""

    before_ns: int | None = None
    sittings: int | None = None
    max_bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pruned:
    """What went so far, and when something last did, as Unix time."""

    sittings: int = 0
    captures: int = 0
    bytes: int = 0
    last_wall_ns: int = 0


def size_bytes(sitting: Sitting) -> int:
    """What its captures take."""
    return sum(one.size_bytes for one in sitting.entries)


def last_ns(sitting: Sitting) -> int:
    """When it was last heard of, as Unix time."""
    return max(one.begin_ns + one.last_ns for one in sitting.entries)


def beyond(found: Sequence[Sitting], bounds: Bounds) -> list[Sitting]:
    """Those of the sittings, newest first, that the bounds leave no room for; the oldest first. One that is live always stays."""
    going: list[Sitting] = []
    total = 0
    for number, one in enumerate(found):
        total += size_bytes(one)
        is_old = bounds.before_ns is not None and last_ns(one) < bounds.before_ns
        is_many = bounds.sittings is not None and number >= bounds.sittings
        is_much = bounds.max_bytes is not None and total > bounds.max_bytes
        if (is_old or is_many or is_much) and not any(entry.live for entry in one.entries):
            going.append(one)
            total -= size_bytes(one)
    return going[::-1]


def prune(going: Iterable[Sitting], *, wall_ns: int) -> Pruned:
    """Remove the captures of these sittings, and write down that they went. What is being recorded by now stays. Raises: OSError."""
    sittings = captures = size = 0
    for sitting in going:
        gone = [one for one in sitting.entries if not is_live(one.path) and _removed(one.path)]
        sittings += bool(gone)
        captures += len(gone)
        size += sum(one.size_bytes for one in gone)
    made = Pruned(sittings=sittings, captures=captures, bytes=size, last_wall_ns=wall_ns)
    if captures:
        _write_down(made)
    return made


def pruned() -> Pruned:
    """What went so far; nothing where that was never written down, or not by us."""
    try:
        with open(os.path.join(home_folder(), LEDGER), encoding="utf-8") as file:
            found = json.load(file)
        return Pruned(**{name: int(found[name]) for name in ("sittings", "captures", "bytes", "last_wall_ns")})
    except (OSError, ValueError, KeyError, TypeError):
        return Pruned()


def _removed(path: str) -> bool:
    try:
        os.unlink(path)
    except FileNotFoundError:
        return False
    return True


def _write_down(made: Pruned) -> None:
    """Add it to what went before. Another pruning at the same instant may get lost in the count, never a capture."""
    before = pruned()
    total = {
        "sittings": before.sittings + made.sittings,
        "captures": before.captures + made.captures,
        "bytes": before.bytes + made.bytes,
        "last_wall_ns": made.last_wall_ns,
    }
    path = os.path.join(home_folder(), LEDGER)
    temporary = f"{path}.{os.getpid()}"
    with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        json.dump(total, file)
    os.replace(temporary, path)

"""How much the store holds, how much it may hold, and what went: one wording for `list`, `prune` and `wrap`."""

from __future__ import annotations

from ..text.units import counted, size


def keeping_line(files: int, taken_bytes: int, max_bytes: int | None) -> str:
    """What captures take, and what becomes of them; `max_bytes` is the store's quota, None where there is none."""
    held = f"{counted(files, 'capture')}, {size(taken_bytes)}"
    if max_bytes is None:
        return f"{held}; no quota: nothing is removed unless you ask for it (mcpspy prune)"
    return f"{held} of at most {size(max_bytes)}, then the oldest recordings go (mcpspy prune --quota none lifts that)"


def gone_line(recordings: int, captures: int, gone_bytes: int, *, when: str, by_quota: bool) -> str:
    """What was removed so far, and when something last was: `when` is a date in words."""
    what = counted(recordings, "older recording") if recordings else counted(captures, "older capture")
    why = "to keep the store below its quota" if by_quota else "with mcpspy prune"
    return f"{what} ({size(gone_bytes)}) went {why}, the last on {when}."

"""Sentences about the size of the store, its quota, and what was deleted, shared by `list`, `prune` and `wrap`."""

from ..text.units import counted, size


def keeping_line(files: int, taken_bytes: int, max_bytes: int | None) -> str:
    """Return the size of the store and when captures are deleted; `max_bytes` is the store's quota, None for no quota."""
    held = f"{counted(files, 'capture')}, {size(taken_bytes)}"
    if max_bytes is None:
        return f"{held}; no quota: nothing is deleted until you run mcpspy prune"
    rule = "beyond that, the oldest recordings are deleted (mcpspy prune --quota none removes the quota)"
    return f"{held} of at most {size(max_bytes)}; {rule}"


def gone_line(recordings: int, captures: int, gone_bytes: int, *, when: str, by_quota: bool) -> str:
    """Return what was deleted so far, and when something was deleted last; `when` is a date in words."""
    what = counted(recordings, "older recording") if recordings else counted(captures, "older capture")
    why = "to keep the store below its quota" if by_quota else "with mcpspy prune"
    return f"{what} ({size(gone_bytes)}) deleted {why}, the last on {when}."

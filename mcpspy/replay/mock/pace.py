"""When what a model's API said is said again: at the recorded pace, faster, or at once. Refuses to read clocks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .http.answer import Fields

AS_RECORDED: Final = 1.0
RETRY_AFTER: Final = "retry-after"
RETRY_AFTER_MS: Final = "retry-after-ms"
"""The official clients ask for this field first; it is in no standard."""

SHORTEST_MS: Final = 1
"""Clients take 0 for no answer, and wait as long as they please."""


def due_ns(delay_ns: int, speed: float) -> int:
    """So long after the question is said what was recorded `delay_ns` after it; at once with a speed of 0."""
    return int(delay_ns / speed) if speed else 0


def hurried(fields: Fields, speed: float) -> Iterator[tuple[str, str]]:
    """Header fields, with the time after which a client is to try again at the same pace as everything else."""
    if speed == AS_RECORDED:
        yield from fields
        return
    wait_ms: int | None = None
    for name, value in fields:
        factor = {RETRY_AFTER: 1000, RETRY_AFTER_MS: 1}.get(name.lower())
        seconds = _number(value) if factor else None
        if factor is None or seconds is None:
            yield name, value
            continue
        due_ms = max(SHORTEST_MS, round(due_ns(int(seconds * factor * 1e6), speed) / 1e6))
        wait_ms = due_ms if wait_ms is None or factor == 1 else wait_ms
        if factor == 1000:
            yield name, str(due_ms // 1000)
    if wait_ms is not None:
        yield RETRY_AFTER_MS, str(wait_ms)


def _number(text: str) -> float | None:
    try:
        found = float(text)
    except ValueError:  # a date
        return None
    return found if 0 <= found < 1e9 else None

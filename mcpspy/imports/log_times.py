"""Times that lines of a log begin with."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Final

_HEAD_LETTERS: Final = 400
"""The time of a line stands within so many letters."""

_DATED: Final = re.compile(
    r"(\d{4})[-/](\d\d)[-/](\d\d)[T ](\d\d):(\d\d):(\d\d)(?:[.,](\d{1,9}))?\s?(Z\b|UTC\b|[+-]\d\d:?\d\d(?!\d))?"
)
_CLOCK: Final = re.compile(r"(?<![\d:.])(\d\d):(\d\d):(\d\d)(?:[.,](\d{1,9}))?(?![\d:])")
_EPOCH: Final = re.compile(r"\b(?:ts|time|timestamp|t)=(1\d{9}(?:\d{3}|\d{6}|\d{9})?)(?:\.(\d{1,9}))?\b")
_DAY_NS: Final = 86_400_000_000_000


class LogClock:
    """The time of each line of a log, as Unix time in nanoseconds; None for a line without. `day_ns` is a time of its last day."""

    __slots__ = ("_day", "_last_ns", "has_date")

    def __init__(self, day_ns: int) -> None:
        self._day = datetime.fromtimestamp(day_ns / 1e9, UTC).astimezone().replace(hour=0, minute=0, second=0, microsecond=0)
        self._last_ns: int | None = None
        self.has_date = False

    def time_ns(self, head: str) -> int | None:
        """Return the time in the text before a message, or in a whole line."""
        head = head[:_HEAD_LETTERS]
        if (dated := _DATED.search(head)) is not None:
            self.has_date = True
            return _dated_ns(dated)
        if (epoch := _EPOCH.search(head)) is not None:
            self.has_date = True
            return int((epoch[1] + (epoch[2] or "")).ljust(19, "0")[:19])
        if (clock := _CLOCK.search(head)) is not None:
            return self._clock_ns(clock)
        return None

    def _clock_ns(self, clock: re.Match[str]) -> int | None:
        hour, minute, second = map(int, clock.group(1, 2, 3))
        if hour > 23 or minute > 59 or second > 59:
            return None
        at = self._day + timedelta(hours=hour, minutes=minute, seconds=second)
        at_ns = int(at.timestamp()) * 1_000_000_000 + _fraction_ns(clock[4])
        if self._last_ns is not None and at_ns < self._last_ns - _DAY_NS // 2:  # past midnight
            self._day += timedelta(days=1)
            at_ns += _DAY_NS
        self._last_ns = at_ns
        return at_ns


def _dated_ns(dated: re.Match[str]) -> int | None:
    year, month, day, hour, minute, second = map(int, dated.group(1, 2, 3, 4, 5, 6))
    zone = dated[8] or ""
    try:
        at = datetime(year, month, day, hour, minute, min(second, 59))
        if zone[:1] in ("+", "-"):
            offset = timedelta(hours=int(zone[1:3]), minutes=int(zone[-2:]))
            at = at.replace(tzinfo=UTC) - (offset if zone[0] == "+" else -offset)
        else:
            at = at.replace(tzinfo=UTC) if zone else at.astimezone()
        return int(at.timestamp()) * 1_000_000_000 + _fraction_ns(dated[7])
    except (ValueError, OverflowError, OSError):
        return None


def _fraction_ns(digits: str | None) -> int:
    return int((digits or "0").ljust(9, "0"))

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
_DIGITS: Final = re.compile(r"\d+")
_LETTERS: Final = re.compile(r"[^\W_]+")
_DAY_NS: Final = 86_400_000_000_000


class LogClock:
    """The time of each line of a log, as Unix time in nanoseconds; None for a line without. `day_ns` is a time of its last day.

    The time of a line is what stands where messages have theirs. Another one, as in a banner of Python, is a word of the line.
    """

    __slots__ = ("_day", "_heads", "_last_ns")

    def __init__(self, day_ns: int) -> None:
        self._day = datetime.fromtimestamp(day_ns / 1e9, UTC).astimezone().replace(hour=0, minute=0, second=0, microsecond=0)
        self._last_ns: int | None = None
        self._heads: set[tuple[str, int, str]] = set()
        """The text before the time in lines of messages, without its letters, and the form of the time."""

    def time_ns(self, text: str, *, of_message: bool = False) -> int | None:
        """Return the time in the text before a message, or in a line without one."""
        text = text[:_HEAD_LETTERS]
        for pattern, value in ((_DATED, _dated_ns), (_EPOCH, _epoch_ns), (_CLOCK, self._clock_ns)):
            if (found := pattern.search(text)) is not None:
                form = _DIGITS.sub("0", found.group()) if pattern is _DATED else ""
                head = _LETTERS.sub("a", text[: found.start()]), pattern.groups, form
                if of_message:
                    self._heads.add(head)
                return value(found) if head in self._heads else None
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


def _epoch_ns(epoch: re.Match[str]) -> int:
    return int((epoch[1] + (epoch[2] or "")).ljust(19, "0")[:19])


def _fraction_ns(digits: str | None) -> int:
    return int((digits or "0").ljust(9, "0"))

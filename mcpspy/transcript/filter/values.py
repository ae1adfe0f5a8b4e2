"""Values of filters: words with `*` and `?`, amounts with units, points in time.

A text goes in; a test or a `Moment` comes out, or `BadValue`, which says what is wrong and what to write instead. No clock is read: a
time of day becomes a point in time when a transcript shows on which day it began.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, tzinfo
from typing import Final, TypeAlias

from ...lazy_pattern import lazy_pattern

Words: TypeAlias = Callable[[str], object]
"""A test for texts: it returns something true or something false."""

Numbers: TypeAlias = Callable[[int], bool]
"""A test for amounts."""

DURATIONS_NS: Final = {
    "ns": 1, "us": 1_000, "µs": 1_000, "μs": 1_000, "ms": 1_000_000, "s": 1_000_000_000, "m": 60_000_000_000, "h": 3_600_000_000_000,
}  # fmt: skip
SIZES_BYTES: Final = {"": 1, "b": 1, "kb": 1_000, "mb": 1_000_000, "gb": 1_000_000_000}
COUNTS: Final = {"": 1}

_AMOUNT: Final = lazy_pattern(r"(\d{1,18})(?:\.(\d{1,18}))?([a-zµμ]{0,2})", re.ASCII | re.IGNORECASE)
_TIME_OF_DAY: Final = lazy_pattern(r"(\d{1,2}):(\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?", re.ASCII)
_DATE: Final = lazy_pattern(r"\d{4}-\d\d-\d\d([T ].+)?", re.ASCII)
_SECOND_NS: Final = 1_000_000_000

QUOTE_LETTERS: Final = 40
"""Letters of a value that a sentence quotes."""


class BadValue(Exception):  # noqa: N818 - it becomes a FilterError where the column is known
    """A value, or the operator before it, that a key does not take; with what to write instead."""

    def __init__(self, reason: str, advice: str = "", *, is_operator: bool = False) -> None:
        super().__init__(reason, advice)
        self.reason = reason
        self.advice = advice
        self.is_operator = is_operator


def in_quotes(text: str) -> str:
    """Return a text as a sentence quotes it, shortened."""
    return f"“{text[:QUOTE_LETTERS]}…”" if len(text) > QUOTE_LETTERS else f"“{text}”"


def words(text: str, *, is_quoted: bool = False) -> Words:
    """Return a test for texts: `*` is any letters or none, `?` is one letter. In quotation marks both are plain letters.

    The test is linear in the text: each part after a `*` is looked for once, from left to right, and never again.
    """
    if is_quoted or not has_wildcard(text):
        return text.__eq__
    first, *rest = text.split("*")
    if "?" not in text and len(rest) == 1:
        last = rest[0]
        if not last:
            return lambda other: other.startswith(first)
        if not first:
            return lambda other: other.endswith(last)
    # An atomic group does not give back what it has matched, so there is nothing to try again.
    pattern = _signs(first) + "".join(f"(?>.*?{_signs(part)})" for part in rest[:-1] if part)
    if rest:
        pattern += ".*" + _signs(rest[-1])
    return re.compile(pattern, re.DOTALL).fullmatch


def has_wildcard(text: str) -> bool:
    """Return whether an unquoted value has a `*` or a `?`."""
    return "*" in text or "?" in text


def _signs(part: str) -> str:
    return "".join("." if sign == "?" else re.escape(sign) for sign in part)


def amount(text: str, units: dict[str, int]) -> int:
    """Return a number with one of `units`, in the smallest of them. Raises: BadValue: for anything else."""
    match = _AMOUNT.fullmatch(text)
    if match is None:
        raise BadValue(f"{in_quotes(text)} is not a number", _unit_advice(units))
    whole, fraction, unit = match[1], match[2] or "", match[3].lower()
    if unit not in units:
        what = f"{in_quotes(text)} has an unknown unit" if unit else f"{in_quotes(text)} has no unit"
        raise BadValue(what, _unit_advice(units))
    if fraction and units[unit] == 1:
        raise BadValue(f"{in_quotes(text)} is not a whole number", "Write it without a fraction.")
    return int(whole + fraction) * units[unit] // int(10 ** len(fraction))


def _unit_advice(units: dict[str, int]) -> str:
    if units is COUNTS:
        return "Write a whole number."
    example = "2s, 1.5s, 300ms" if units is DURATIONS_NS else "500, 10kb, 1.5mb"
    listed = ", ".join(unit for unit in units if unit.isascii() and unit)
    return f"Write a number and its unit ({listed}), as in {example}."


def numbers(operator: str, text: str, units: dict[str, int]) -> Numbers:
    """Return a test for amounts: `>2s`, or after a colon one amount (`7`) or a range (`7..20`). Raises: BadValue."""
    if operator == ":":
        low_text, dots, high_text = text.partition("..")
        low = amount(low_text, units)
        if not dots:
            return low.__eq__
        high = amount(high_text, units)
        if high < low:
            raise BadValue(f"{in_quotes(text)} ends before it begins", f"Write {high_text}..{low_text}.")
        return lambda value: low <= value <= high
    bound = amount(text, units)
    return {
        ">": lambda value: value > bound,
        ">=": lambda value: value >= bound,
        "<": lambda value: value < bound,
        "<=": lambda value: value <= bound,
    }[operator]


# --- Points in time ---


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """A point in time: since the beginning, on the wall clock, or a time of the day on which the first capture began."""

    since_ns: int | None = None
    wall: datetime | None = None
    of_day_ns: int | None = None


def moment(text: str) -> Moment:
    """Return a point in time: `+2.5s` since the beginning, `12:30:05`, `2026-11-21`, `2026-11-21T12:30:05`. Raises: BadValue."""
    if text.startswith("+"):
        return Moment(since_ns=amount(text[1:], DURATIONS_NS))
    if match := _TIME_OF_DAY.fullmatch(text):
        hours, minutes, seconds = int(match[1]), int(match[2]), int(match[3] or 0)
        if hours > 23 or minutes > 59 or seconds > 59:
            raise BadValue(f"{in_quotes(text)} is not a time of day", "The last one is 23:59:59.")
        fraction_ns = int((match[4] or "").ljust(9, "0"))
        return Moment(of_day_ns=(hours * 3600 + minutes * 60 + seconds) * _SECOND_NS + fraction_ns)
    if _DATE.fullmatch(text):
        try:
            return Moment(wall=datetime.fromisoformat(text))
        except ValueError:
            raise BadValue(
                f"{in_quotes(text)} is not a date", "Write a date as 2026-11-21, and a time as 2026-11-21T12:30:05."
            ) from None
    raise BadValue(
        f"{in_quotes(text)} is not a point in time",
        "Write +2.5s since the beginning, a time of day as 12:30:05, a date as 2026-11-21, or both as 2026-11-21T12:30:05.",
    )


def on_clock_ns(moment: Moment, begin_ns: int | None, zone: tzinfo | None) -> int | None:
    """Return a point in time on the clock of a transcript that began at the Unix time `begin_ns`; None if there is none."""
    if moment.since_ns is not None or begin_ns is None:
        return moment.since_ns
    unix_ns = wall_ns(moment, begin_ns, zone)
    return None if unix_ns is None else unix_ns - begin_ns


def wall_ns(moment: Moment, begin_ns: int, zone: tzinfo | None) -> int | None:
    """Return the Unix time of a date or of a time of day, for a transcript that began at the Unix time `begin_ns`.

    `zone` is the time zone of a moment that names none; None: the system's. The result is None for a time that no clock shows.
    """
    try:
        if moment.wall is not None:
            wall = moment.wall if moment.wall.tzinfo is not None else moment.wall.replace(tzinfo=zone)
            return int(wall.replace(microsecond=0).timestamp()) * _SECOND_NS + wall.microsecond * 1_000
        began = datetime.fromtimestamp(begin_ns // _SECOND_NS, zone)
        midnight = began.replace(hour=0, minute=0, second=0, microsecond=0)
        seconds, rest_ns = divmod(moment.of_day_ns or 0, _SECOND_NS)
        return (
            int(midnight.replace(hour=seconds // 3600, minute=seconds // 60 % 60, second=seconds % 60).timestamp()) * _SECOND_NS
            + rest_ns
        )
    except (ValueError, OverflowError, OSError):
        return None

"""What stands behind a key in a filter: words with `*` and `?`, amounts with units, points in time.

Reading a value either gives something to compare with or raises `BadValue`, which says what is wrong and what to write instead.
Refuses to know keys, and to read clocks: a time of day becomes a point in time when a transcript says on which day it began.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, tzinfo
from typing import Final, TypeAlias

Words: TypeAlias = Callable[[str], object]
"""Whether a text matches; what is returned is true or false."""

Numbers: TypeAlias = Callable[[int], bool]
"""Whether an amount matches."""

DURATIONS_NS: Final = {
    "ns": 1, "us": 1_000, "µs": 1_000, "μs": 1_000, "ms": 1_000_000, "s": 1_000_000_000, "m": 60_000_000_000, "h": 3_600_000_000_000,
}  # fmt: skip
SIZES_BYTES: Final = {"": 1, "b": 1, "kb": 1_000, "mb": 1_000_000, "gb": 1_000_000_000}
COUNTS: Final = {"": 1}

_AMOUNT: Final = re.compile(r"(\d{1,18})(?:\.(\d{1,18}))?([a-zµμ]{0,2})", re.ASCII | re.IGNORECASE)
_TIME_OF_DAY: Final = re.compile(r"(\d{1,2}):(\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?", re.ASCII)
_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d([T ].+)?", re.ASCII)
_SECOND_NS: Final = 1_000_000_000

QUOTE_LETTERS: Final = 40
"""More of a value than this says nothing in a sentence."""


class BadValue(Exception):  # noqa: N818 - it is no error yet: whoever knows the column makes a FilterError of it
    """What is wrong with a value, or with the operator before it, and what to write instead."""

    def __init__(self, reason: str, advice: str = "", *, is_operator: bool = False) -> None:
        super().__init__(reason, advice)
        self.reason = reason
        self.advice = advice
        self.is_operator = is_operator


def named(text: str) -> str:
    """What was written, in a sentence."""
    return f"“{text[:QUOTE_LETTERS]}…”" if len(text) > QUOTE_LETTERS else f"“{text}”"


def words(text: str, *, is_quoted: bool = False) -> Words:
    """A test for texts: `*` stands for any letters, also none, `?` for one. In quotation marks they are letters like any other.

    Linear in the text: what follows a `*` is looked for once, from left to right, and never again.
    """
    if is_quoted or not has_wildcard(text):
        return text.__eq__
    first, *rest = text.split("*")
    if "?" not in text and len(rest) == 1:
        last = rest[0]
        if not last:
            return lambda said: said.startswith(first)
        if not first:
            return lambda said: said.endswith(last)
    # An atomic group does not give back what it has matched, and so there is nothing to try again.
    found = _signs(first) + "".join(f"(?>.*?{_signs(part)})" for part in rest[:-1] if part)
    if rest:
        found += ".*" + _signs(rest[-1])
    return re.compile(found, re.DOTALL).fullmatch


def has_wildcard(text: str) -> bool:
    """Whether an unquoted value has a `*` or a `?`."""
    return "*" in text or "?" in text


def _signs(part: str) -> str:
    return "".join("." if sign == "?" else re.escape(sign) for sign in part)


def amount(text: str, units: dict[str, int]) -> int:
    """A number with one of `units`, in the smallest. Raises: BadValue."""
    found = _AMOUNT.fullmatch(text)
    if found is None:
        raise BadValue(f"{named(text)} is no number", _unit_advice(units))
    whole, fraction, unit = found[1], found[2] or "", found[3].lower()
    if unit not in units:
        what = f"{named(text)} has a unit that is none here" if unit else f"{named(text)} has no unit"
        raise BadValue(what, _unit_advice(units))
    if fraction and units[unit] == 1:
        raise BadValue(f"{named(text)} is no whole number", "Write it without a fraction.")
    return int(whole + fraction) * units[unit] // int(10 ** len(fraction))


def _unit_advice(units: dict[str, int]) -> str:
    if units is COUNTS:
        return "Write a whole number."
    example = "2s, 1.5s, 300ms" if units is DURATIONS_NS else "500, 10kb, 1.5mb"
    listed = ", ".join(unit for unit in units if unit.isascii() and unit)
    return f"Write a number and its unit ({listed}), as in {example}."


def numbers(operator: str, text: str, units: dict[str, int]) -> Numbers:
    """A test for amounts: `>2s`, or behind a colon one (`7`) or from one to another (`7..20`). Raises: BadValue."""
    if operator == ":":
        low_text, dots, high_text = text.partition("..")
        low = amount(low_text, units)
        if not dots:
            return low.__eq__
        high = amount(high_text, units)
        if high < low:
            raise BadValue(f"{named(text)} ends before it begins", f"Write {high_text}..{low_text}.")
        return lambda said: low <= said <= high
    bound = amount(text, units)
    return {
        ">": lambda said: said > bound,
        ">=": lambda said: said >= bound,
        "<": lambda said: said < bound,
        "<=": lambda said: said <= bound,
    }[operator]


# --- Points in time ---


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """A point in time, in one of three ways: since the beginning, on the wall clock, or a time of the day on which it all began."""

    since_ns: int | None = None
    wall: datetime | None = None
    of_day_ns: int | None = None


def moment(text: str) -> Moment:
    """A point in time: `+2.5s` since the beginning, `12:30:05`, `2026-11-21`, `2026-11-21T12:30:05`. Raises: BadValue."""
    if text.startswith("+"):
        return Moment(since_ns=amount(text[1:], DURATIONS_NS))
    if found := _TIME_OF_DAY.fullmatch(text):
        hours, minutes, seconds = int(found[1]), int(found[2]), int(found[3] or 0)
        if hours > 23 or minutes > 59 or seconds > 59:
            raise BadValue(f"{named(text)} is no time of day", "It ends at 23:59:59.")
        fraction_ns = int((found[4] or "").ljust(9, "0"))
        return Moment(of_day_ns=(hours * 3600 + minutes * 60 + seconds) * _SECOND_NS + fraction_ns)
    if _DATE.fullmatch(text):
        try:
            return Moment(wall=datetime.fromisoformat(text))
        except ValueError:
            raise BadValue(
                f"{named(text)} is no date", "Write a date as 2026-11-21, and a time as 2026-11-21T12:30:05."
            ) from None
    raise BadValue(
        f"{named(text)} is no point in time",
        "Write +2.5s since the beginning, a time of day as 12:30:05, a date as 2026-11-21, or both as 2026-11-21T12:30:05.",
    )


def wall_ns(moment: Moment, begin_ns: int, zone: tzinfo | None) -> int | None:
    """Unix time of a moment that is a date or a time of day, for what began at the Unix time `begin_ns`.

    `zone` is the time zone of a moment that names none (None: the system's). None where that is no time that a clock can show.
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

"""Times, sizes and counts in words: `1.20 s`, `4.1 kB`, `2 errors`. Does not colour or pad."""

from datetime import UTC, datetime, tzinfo

MICROSECOND_NS = 1_000
MILLISECOND_NS = 1_000_000
SECOND_NS = 1_000_000_000
HOUR_NS = 3600 * SECOND_NS


def seconds(at_ns: int) -> str:
    """Spell a point in time in seconds since the beginning, to the millisecond: `12.345`."""
    milliseconds = at_ns // MILLISECOND_NS
    sign = "-" if milliseconds < 0 else ""
    whole, rest = divmod(abs(milliseconds), 1000)
    return f"{sign}{whole}.{rest:03d}"


def microseconds(at_ns: int) -> str:
    """Spell a point in time in seconds since the beginning, to the microsecond: `12.345678`."""
    whole, rest = divmod(at_ns, SECOND_NS)
    return f"{whole}.{rest // MICROSECOND_NS:06d}"


def wall_time(wall_ns: int, zone: tzinfo | None = None) -> datetime:
    """Convert Unix time to `zone` (None: the system's). Never fails: a captured time that no calendar holds becomes the epoch."""
    try:
        return datetime.fromtimestamp(wall_ns / 1_000_000_000, UTC).astimezone(zone)
    except (ValueError, OverflowError, OSError):
        return datetime.fromtimestamp(0, UTC)


def duration(lasted_ns: int) -> str:
    """Spell a duration in three digits and a unit: `340 µs`, `1.20 s`, `4210 s`, `3.1 h`. Eight letters at most."""
    if lasted_ns < 0:
        return "-" + duration(-lasted_ns)
    if lasted_ns >= 9_999_500_000_000:
        return f"{lasted_ns / HOUR_NS:.1f} h"
    if lasted_ns >= 999_500_000:
        return _three_digits(lasted_ns / SECOND_NS, "s")
    if lasted_ns >= 999_500:
        return _three_digits(lasted_ns / MILLISECOND_NS, "ms")
    return f"{round(lasted_ns / MICROSECOND_NS)} µs"


def at_least(waited_ns: int) -> str:
    """Spell the duration of a wait that had no end, so that it does not read as an answer: `≥ 3.0 s`. Eight letters at most."""
    seconds_waited = waited_ns / SECOND_NS
    if seconds_waited >= 3_600:
        return f"≥ {waited_ns / HOUR_NS:.1f} h"
    if seconds_waited >= 0.1:
        return f"≥ {seconds_waited:.1f} s" if seconds_waited < 100 else f"≥ {seconds_waited:.0f} s"
    return f"≥ {waited_ns // MILLISECOND_NS} ms"


def size(count: int) -> str:
    """Spell a number of bytes, with kB and MB as powers of 1000: `120 B`, `4.1 kB`, `38 MB`."""
    if count < 1000:
        return f"{count} B"
    number = float(count)
    for unit in ("kB", "MB", "GB"):
        number /= 1000
        if number < 999.5:
            return f"{number:.1f} {unit}" if number < 9.95 else f"{number:.0f} {unit}"
    return f"{number / 1000:.1f} TB"


def counted(count: int, noun: str, plural: str = "") -> str:
    """Spell a number and its noun: `1 call`, `2 calls`. `plural` is given where it is not `noun` with an s."""
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"


def _three_digits(number: float, unit: str) -> str:
    if number < 9.995:
        return f"{number:.2f} {unit}"
    return f"{number:.1f} {unit}" if number < 99.95 else f"{number:.0f} {unit}"

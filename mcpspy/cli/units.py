"""Ages, sizes and quotas on a command line: `30d`, `1h30m`, `2gb`."""

from __future__ import annotations

from typing import Final

from ..capture.store.quota import MIN_QUOTA_BYTES
from ..lazy_pattern import lazy_pattern
from .capture_options import UsageError, size_bytes

_UNITS_NS: Final = {
    "s": 1_000_000_000,
    "m": 60_000_000_000,
    "h": 3_600_000_000_000,
    "d": 86_400_000_000_000,
    "w": 604_800_000_000_000,
}
_ages = lazy_pattern(r"(\d+(?:\.\d+)?)([smhdw])")
_MAX_NS: Final = 1 << 62


def age_ns(text: str) -> int:
    """Read `90s`, `15m`, `1h`, `30d`, `2w` or `1h30m` as nanoseconds. Raises: UsageError."""
    parts = _ages.findall(text)
    total = sum(float(number) * _UNITS_NS[unit] for number, unit in parts)
    if not parts or "".join(number + unit for number, unit in parts) != text or not 0 < total < _MAX_NS:
        raise UsageError(f"an age is a number with s, m, h, d or w, like 30d or 1h30m; not {text}")
    return int(total)


def quota_or_none(text: str) -> int:
    """Read a quota for the store; 0 for `none`. Raises: UsageError."""
    if text == "none":
        return 0
    quota = size_bytes(text)
    if quota < MIN_QUOTA_BYTES:
        raise UsageError(f"a quota is none, or at least 1mb; not {text}")
    return quota

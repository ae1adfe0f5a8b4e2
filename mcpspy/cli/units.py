"""Ages, sizes and quotas on a command line: `30d`, `1h30m`, `2gb`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import click

from ..capture.store.quota import MIN_QUOTA_BYTES
from .capture_options import UsageError, size_bytes

if TYPE_CHECKING:
    from collections.abc import Callable

_UNITS_NS: Final = {
    "s": 1_000_000_000,
    "m": 60_000_000_000,
    "h": 3_600_000_000_000,
    "d": 86_400_000_000_000,
    "w": 604_800_000_000_000,
}
_ages = re.compile(r"(\d+(?:\.\d+)?)([smhdw])").findall
_MAX_NS: Final = 1 << 62


def age_ns(text: str) -> int:
    """Read `90s`, `15m`, `1h`, `30d`, `2w` or `1h30m` as nanoseconds. Raises: UsageError."""
    parts = _ages(text)
    total = sum(float(number) * _UNITS_NS[unit] for number, unit in parts)
    if not parts or "".join(number + unit for number, unit in parts) != text or not 0 < total < _MAX_NS:
        raise UsageError(f"an age is a number with s, m, h, d or w, like 30d or 1h30m; not {text}")
    return int(total)


class _Amount(click.ParamType[int]):
    """A number that `read` makes from a word."""

    def __init__(self, name: str, read: Callable[[str], int]) -> None:
        self.name = name
        self._read = read

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Read the word."""
        try:
            return value if isinstance(value, int) else self._read(str(value))
        except UsageError as error:
            self.fail(str(error), param, ctx)


AGE: Final = _Amount("age", age_ns)
SIZE: Final = _Amount("size", size_bytes)


def _quota(text: str) -> int:
    if text == "none":
        return 0
    quota = size_bytes(text)
    if quota < MIN_QUOTA_BYTES:
        raise UsageError(f"a quota is none, or at least 1mb; not {text}")
    return quota


QUOTA: Final = _Amount("quota", _quota)
"""A quota for the store; 0 for `none`."""

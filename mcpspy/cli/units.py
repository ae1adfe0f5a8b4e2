"""Ages, sizes and quotas on a command line: `30d`, `1h30m`, `2gb`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from ..capture.store.quota import MIN_QUOTA_BYTES
from ..lazy_pattern import lazy_pattern
from .capture_options import UsageError, size_bytes

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

T = TypeVar("T")

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


class Word(click.ParamType[T]):
    """A value that `read` makes from a word; a shell offers the words in `offered`."""

    def __init__(self, name: str, read: Callable[[str], T], offered: Sequence[str] = ()) -> None:
        self.name = name
        self._read = read
        self._offered = offered

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> T:
        """Read the word. A default is a value already."""
        try:
            return self._read(value) if isinstance(value, str) else value
        except UsageError as error:
            self.fail(str(error), param, ctx)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Offer words."""
        from click.shell_completion import CompletionItem

        return [CompletionItem(word) for word in self._offered if word.startswith(incomplete)]


AGE: Final = Word("age", age_ns)
SIZE: Final = Word("size", size_bytes)


def _quota(text: str) -> int:
    if text == "none":
        return 0
    quota = size_bytes(text)
    if quota < MIN_QUOTA_BYTES:
        raise UsageError(f"a quota is none, or at least 1mb; not {text}")
    return quota


QUOTA: Final = Word("quota", _quota)
"""A quota for the store; 0 for `none`."""

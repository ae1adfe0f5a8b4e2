"""What a filter let through, for who shows it. Refuses to know how filters are read and held: to import that takes 20 ms."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..model import ChannelEvent, Log, Numbered, Row

if TYPE_CHECKING:
    from ..findings.rule import Finding
    from .filter import Filter


@dataclass(frozen=True, slots=True, kw_only=True)
class FilterResult:
    """What a filter let through: `rows`, in their order. `matching` and `of` count those with numbers, of these and of all."""

    filter: Filter
    rows: list[Row]
    matching: int
    total: int

    @property
    def numbers(self) -> frozenset[int]:
        """The numbers of the rows, for what refers to rows by them."""
        return frozenset(row.row for row in self.rows if isinstance(row, Numbered))


def findings_about(found: FilterResult, findings: Iterable[Finding]) -> list[Finding]:
    """The findings that point at rows which a filter let through; those about no numbered row by their record, as an exit."""
    numbers = found.numbers
    records = {(row.capture, row.record.number) for row in found.rows if isinstance(row, ChannelEvent)}
    records |= {(row.capture, row.number) for row in found.rows if isinstance(row, Log)}
    return [one for one in findings if one.row in numbers or (one.row is None and (one.capture, one.number) in records)]

"""Result of a filter: the rows that match, and the findings about them.

A module of its own, because every verb that shows rows needs it, and to import how filters are read takes 30 ms more.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import msgspec

from ..findings.rule import Finding
from ..model import ChannelEvent, Log, Numbered, Row

if TYPE_CHECKING:
    from .grammar import Filter


class FilterResult(msgspec.Struct, frozen=True, kw_only=True):
    """The rows that a filter lets through, in their order. `matching` and `total` count rows with numbers: these, and all."""

    filter: Filter
    rows: list[Row]
    matching: int
    total: int

    @property
    def numbers(self) -> frozenset[int]:
        """The numbers of the rows."""
        return frozenset(row.row for row in self.rows if isinstance(row, Numbered))


def findings_about(result: FilterResult, findings: Iterable[Finding]) -> list[Finding]:
    """Return the findings that point at a row of `result`; those that point at no row with a number, by their record."""
    numbers = result.numbers
    records = {(row.capture, row.record.number) for row in result.rows if isinstance(row, ChannelEvent)}
    records |= {(row.capture, row.number) for row in result.rows if isinstance(row, Log)}
    return [
        finding
        for finding in findings
        if not numbers.isdisjoint(finding.rows) or (finding.row is None and (finding.capture, finding.number) in records)
    ]

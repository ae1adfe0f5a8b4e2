"""Medians, and tables of them in Markdown. What was not measured is a dash."""

import statistics
from collections.abc import Iterable, Sequence
from typing import Any

NOT_MEASURED = "–"

Sample = dict[str, Any]
"""Figures of one run of one cell, by name, or `error`."""

Results = dict[str, dict[str, list[Sample]]]
"""peer → cell → one sample per round."""


def median(values: Iterable[float | None]) -> float | None:
    """Return the median of the values there are; None if there are none."""
    present = [value for value in values if value is not None]
    return statistics.median(present) if present else None


def figure(results: Results, peer: str, cell: str, name: str) -> float | None:
    """Return the median over rounds of one figure of one peer in one cell."""
    samples = results.get(peer, {}).get(cell, [])
    return median(sample.get(name) for sample in samples if "error" not in sample)


def number(value: float | None, decimals: int = 1) -> str:
    """Format a figure as a cell of a table."""
    if value is None:
        return NOT_MEASURED
    if abs(value) >= 10_000:
        return f"{value / 1000:,.1f}k"
    return f"{value:,.{decimals}f}"


def ratio(value: float | None, reference: float | None) -> str:
    """Format the ratio of two figures as a cell of a table."""
    return f"{value / reference:.2f}" if value and reference else NOT_MEASURED


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Make a Markdown table: names on the left, figures aligned to the right."""
    lines = [head, ["---"] + ["---:"] * (len(head) - 1), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)

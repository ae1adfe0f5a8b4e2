"""Three sizes of the same test: a sample in `make test`, more in `make more`, which CI runs too, the full count in `make soak`.

`MCPSPY_TIER` names the tier. A test asks for the fixture `tier` of tests/conftest.py; it never reads the environment.
"""

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import TypeVar

import hypothesis

Size = TypeVar("Size")


class Tier(StrEnum):
    """Thoroughness of a test run."""

    SAMPLE = "sample"
    MORE = "more"
    FULL = "full"

    def __call__(self, *, sample: Size, more: Size, full: Size) -> Size:
        """Return the count that belongs to this tier, or the selection."""
        return {Tier.SAMPLE: sample, Tier.MORE: more, Tier.FULL: full}[self]


def current_tier(environment: Mapping[str, str] = os.environ) -> Tier:
    """Return the tier that the environment asks for.

    Raises:
        ValueError: if `MCPSPY_TIER` names no tier.
    """
    return Tier(environment.get("MCPSPY_TIER") or Tier.SAMPLE)


def slow_examples(tier: Tier) -> int:
    """Choose the number of examples of a property of which one takes 50 ms, not 5."""
    return tier(sample=8, more=100, full=2_000)


def load_hypothesis_profile(tier: Tier) -> None:
    """Give hypothesis the number of examples of this tier, and no deadline per example: two cores are shared."""
    hypothesis.settings.register_profile(
        tier.value,
        deadline=None,
        max_examples=tier(sample=20, more=300, full=5_000),
        print_blob=True,
        suppress_health_check=[hypothesis.HealthCheck.too_slow],
    )
    hypothesis.settings.load_profile(tier.value)


def spread(count: int, chosen: int) -> list[bool]:
    """Choose so many of `count` things, the first and the last among them, with equal distances between."""
    chosen = min(chosen, count)
    numbers = {round(number * (count - 1) / max(chosen - 1, 1)) for number in range(chosen)}
    return [number in numbers for number in range(count)]


def covering(cells: Sequence[Mapping[str, int]]) -> list[bool]:
    """Choose cells of a grid so that each value of each axis occurs, and none much more often than others."""
    uses = Counter({value: 0 for cell in cells for value in cell.items()})
    chosen = [False] * len(cells)
    while not all(uses.values()):
        counts = [sorted(uses[value] for value in cell.items()) for cell in cells]
        best = min(range(len(cells)), key=counts.__getitem__)
        chosen[best] = True
        uses.update(cells[best].items())
    return chosen

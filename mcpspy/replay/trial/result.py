"""The result of one trial, and whether it is as it should be."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass

from .outcome import Judgement, PeerEnd, TrialOutcome

Expectations = Mapping[str, tuple[str, ...]]
"""The outcomes that are fine, by the name of the fault."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialResult:
    """A trial: the `fault` and what it is in `words`, the judgement, the end of the peer, its captures and what it printed."""

    fault: str
    words: str
    judgement: Judgement
    end: PeerEnd
    captures: tuple[str, ...]
    log: str

    def is_fine(self, expected: Expectations | None, bad: Container[TrialOutcome]) -> bool:
        """Return whether the outcome is one of those expected; without expectations, whether it is not `bad`."""
        outcome = self.judgement.outcome
        return outcome not in bad if expected is None else outcome.value in expected.get(self.fault, (outcome.value,))

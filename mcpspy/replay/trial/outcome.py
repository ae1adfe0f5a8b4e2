"""Outcomes of trials: what a peer did after a fault."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class TrialOutcome(StrEnum):
    """The outcome of a trial."""

    WENT_ON = "went on"
    """It ended as without the fault."""
    ASKED_AGAIN = "asked again"
    """A client sent the same request once more."""
    GAVE_UP = "gave up"
    """A client did not wait for the answer any longer."""
    REFUSED = "refused"
    """A server answered with an error, and went on."""
    NO_ANSWER = "no answer"
    """A server did not answer the request, and went on."""
    LOST_CALLS = "lost every call"
    """A client went on, and every later call failed."""
    NEVER_CAME_BACK = "never came back"
    """A client made none of the later calls that it makes without the fault."""
    HUNG = "hung"
    """It had to be ended."""
    CRASHED = "crashed"
    """Its process ended by itself, in another way than without the fault."""
    NOT_REACHED = "not reached"
    """Nothing came that the fault could hit."""


BAD: Final = (TrialOutcome.LOST_CALLS, TrialOutcome.NEVER_CAME_BACK, TrialOutcome.HUNG, TrialOutcome.CRASHED)
"""The outcomes that fail a trial, unless others are expected."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerEnd:
    """The end of a peer's process: its exit `status`, negative for a signal; None if it had to be ended, after `took_ns`."""

    status: int | None
    took_ns: int

    @property
    def words(self) -> str:
        """The end in words."""
        if self.status is None:
            return f"ended by mcpspy after {self.took_ns / 1e9:.1f} s"
        return f"exit status {self.status}" if self.status >= 0 else f"killed by signal {-self.status}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """The outcome of one trial: `after_ns` is how long a client waited that gave up; `more` has details in words."""

    outcome: TrialOutcome
    after_ns: int | None = None
    more: str = ""

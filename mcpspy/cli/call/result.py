"""The outcome of a call: how it was answered, and what differs from the recorded answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...transcript.model import Outcome

if TYPE_CHECKING:
    from ...replay.compare.compare import Comparison
    from ...transcript.model import Exchange

SAME, DIFFERENT, NOT_SENT, NO_ANSWER, STOPPED = 0, 1, 2, 4, 130


@dataclass(frozen=True, slots=True, kw_only=True)
class CallResult:
    """A call that was sent, or tried: `live` has the answer; without one `why` says why there is none.

    `comparison` is that with the recorded answer; `path` is the capture that has the call now, where its row is `row`.
    """

    target: dict[str, Any]
    live: Exchange | None = None
    why: str = ""
    comparison: Comparison | None = None
    path: str = ""
    row: int | None = None
    failure: int = NO_ANSWER
    """The exit status if there is no answer."""

    @property
    def status(self) -> int:
        """The exit status."""
        if self.live is None or self.live.response is None:
            return self.failure
        if self.comparison is not None:
            return DIFFERENT if self.comparison.different else SAME
        return SAME if self.live.outcome is Outcome.OK else DIFFERENT

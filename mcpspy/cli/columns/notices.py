"""The course of `mcpspy otlp`, in words on stderr, and with `--json` as objects on stdout, one a line (docs/json.md)."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final

from ...errors import CollectorError
from ...views.text.escape import safe_text
from ...views.text.json_text import SCHEMA, as_json
from ...views.text.units import counted
from ..screen import say

if TYPE_CHECKING:
    from ...telemetry.answers import CollectorAnswer

MAX_MESSAGE: Final = 200
"""A collector's words are cut at so many characters."""


class Rejected:
    """Spans and points of metrics that a collector rejected of what it took, and the last that it said about it."""

    __slots__ = ("message", "points", "spans")

    def __init__(self) -> None:
        self.spans = 0
        self.points = 0
        self.message = ""

    def __bool__(self) -> bool:
        return bool(self.spans or self.points or self.message)

    def add(self, answer: CollectorAnswer, *, are_spans: bool) -> None:
        """Add what one answer says."""
        if are_spans:
            self.spans += answer.rejected
        else:
            self.points += answer.rejected
        if answer.message:
            self.message = answer.message if len(answer.message) <= MAX_MESSAGE else f"{answer.message[: MAX_MESSAGE - 1]}…"

    def join(self, other: Rejected) -> None:
        """Add what others say."""
        self.spans += other.spans
        self.points += other.points
        self.message = other.message or self.message


class OtlpNotices:
    """Notices about one collector. `name` is its URL without what is secret. A trouble is told once, until it has ended."""

    def __init__(self, name: str, *, as_json: bool) -> None:
        self.name = name
        self._as_json = as_json
        self._told: object = None

    def sent(self, spans: int) -> None:
        """Tell programs that the collector has taken so many spans."""
        self._told = None
        self._event("sent", spans=spans)

    def done(self, spans: int) -> None:
        """Tell programs that everything was sent, and how many spans that were altogether."""
        self._event("done", spans=spans)

    def waits(self, error: CollectorError) -> None:
        """Tell that mcpspy tries again. A collector that is busy need not be looked after."""
        if (error.state, error.status) == self._told:
            return
        self._told = error.state, error.status
        words = f"{error.problem}." if error.state == "busy" else f"{error}"
        say(f"mcpspy: {words} mcpspy keeps trying.")
        self._failure("waiting", error)

    def trouble(self, error: OSError) -> None:
        """Tell that something of this machine keeps spans from being sent, such as a full disk."""
        if str(error) != self._told:
            self._told = str(error)
            say(f"mcpspy: {safe_text(str(error))}. mcpspy keeps trying.")

    def failed(self, error: CollectorError) -> None:
        """Tell programs that mcpspy gives up. Its words follow on stderr."""
        self._failure("failed", error)

    def rejected(self, rejected: Rejected, spans: int) -> None:
        """Tell that the collector rejected some of so many spans that it took, or that it warns."""
        self._event(
            "rejected", rejected_spans=rejected.spans, rejected_data_points=rejected.points, message=rejected.message or None
        )
        parts = [f"{rejected.spans:,} of {counted(spans, 'span')}"] if rejected.spans else []
        parts += [f"{counted(rejected.points, 'point')} of metrics"] if rejected.points else []
        words = f"rejected {' and '.join(parts)}" if parts else "warns"
        says = f": {safe_text(rejected.message)}" if rejected.message else ""
        say(f"mcpspy: the collector at {self.name} {words}{says}")

    def _failure(self, event: str, error: CollectorError) -> None:
        self._event(event, state=error.state, status=error.status, retry_after_s=error.retry_s, of_metrics=error.takes_spans)

    def _event(self, event: str, **facts: Any) -> None:
        if self._as_json:
            sys.stdout.write(as_json({"schema": SCHEMA, "event": event, "collector": self.name, **facts}) + "\n")
            sys.stdout.flush()

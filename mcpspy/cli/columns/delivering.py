"""Requests to a collector, repeated where it makes sense: until a collector that is busy or away has taken them."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from ...errors import CollectorError
from ...views.text.escape import safe_text
from .notices import OtlpNotices

if TYPE_CHECKING:
    from ...telemetry.answers import CollectorAnswer

LOOK_S: Final = 2.0
"""The seconds between two attempts, and between two looks at the store."""

TOO_LARGE: Final = 413
"""The HTTP status of a request whose body is too large."""

LONGEST_WAIT_S: Final = 3_600.0
"""A collector that asks to wait longer is asked again after this time."""

PATIENCE_S: Final = 60.0
"""So long one request waits altogether for a busy collector, if mcpspy is not to go on for ever."""


class Delivery:
    """Delivery to one collector. With `is_endless` it waits for one that does not answer, or refuses spans, too."""

    def __init__(self, notices: OtlpNotices, *, is_endless: bool) -> None:
        self._notices = notices
        self._is_endless = is_endless

    def deliver(
        self, send: Callable[[], CollectorAnswer], *, are_spans: bool = True, can_divide: bool = False
    ) -> CollectorAnswer:
        """Send until it was taken. Return the answer.

        Raises: CollectorError: if it is not endless, except where a busy collector says how long, and that is short; if it is, of
            metrics that are refused, and of what is too large and can be divided.
        """
        waited_s = 0.0
        while not (answer := send()).has_taken:
            error = CollectorError(
                self._notices.name,
                answer.status,
                takes_spans=not are_spans,
                retry_s=answer.retry_s,
                trouble=safe_text(answer.trouble),
            )
            pause_s = None if can_divide and answer.status == TOO_LARGE else self._pause_s(error, waited_s)
            if pause_s is None:
                raise error
            self._notices.waits(error)
            time.sleep(pause_s)
            waited_s += pause_s
        return answer

    def _pause_s(self, error: CollectorError, waited_s: float) -> float | None:
        """Return how long to wait before the next attempt; None: make none."""
        asked_s = error.retry_s if error.state == "busy" else None
        if self._is_endless:
            is_hopeless = error.takes_spans and error.state == "refused"
            return None if is_hopeless else min(max(asked_s or 0.0, LOOK_S), LONGEST_WAIT_S)
        return max(asked_s, 1.0) if asked_s is not None and waited_s + asked_s <= PATIENCE_S else None

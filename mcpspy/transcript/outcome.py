"""What becomes of a request: one word for exchanges, and for what a model is asked. Refuses to know how it is told."""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class Outcome(StrEnum):
    """What became of a request."""

    PENDING = "pending"
    """No answer yet, and the capture may still bring one."""
    OK = "ok"
    ERROR = "error"
    """A JSON-RPC error."""
    TOOL_ERROR = "tool error"
    """A result with `isError: true`: the protocol worked, the tool did not."""
    CANCELLED = "cancelled"
    UNANSWERED = "unanswered"
    """The capture, the stream or the process ended first."""
    HTTP_ERROR = "http error"
    """HTTP answered with a status of 400 or more, and without a message."""
    REDIRECTED = "redirected"
    """HTTP answered with a status of 300 to 399: the client asks again elsewhere, or gives up."""
    PROBE = "probe"
    """A first try that failed, by which a client finds out what the server speaks: it goes on another way, and nothing is wrong."""


HTTP_REDIRECTS: Final = 300
HTTP_ERRORS: Final = 400
HTTP_FAILURES: Final = 500
"""From these statuses on; RFC 9110, section 15."""
NO_ANSWERS: Final = {401, 403, 407, 429}
"""Statuses that say nothing of what a server speaks: it wants somebody else to ask, or later."""

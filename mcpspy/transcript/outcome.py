"""Outcomes of exchanges and of model calls, and the HTTP statuses that decide them."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final


class Outcome(StrEnum):
    """The outcome of a request."""

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
    UNKNOWN = "unknown"
    """No answer where not everything was read, on the wire or in an imported file: it may have come."""
    HTTP_ERROR = "http error"
    """An HTTP status of 400 or more, without a message."""
    REDIRECTED = "redirected"
    """An HTTP status of 300 to 399: the client asks again elsewhere, or gives up."""
    PROBE = "probe"
    """A first try that failed, by which a client finds out what the server speaks. It goes on in another way, and nothing is
    wrong.
    """


def outcome_counts(counts: Mapping[Outcome, int]) -> dict[str, int]:
    """Return the number of calls with each outcome, by its name in JSON; of `unknown`, which is rare, if there are any."""
    names = (outcome for outcome in Outcome if outcome is not Outcome.UNKNOWN or counts.get(outcome))
    return {outcome.value.replace(" ", "_"): counts.get(outcome, 0) for outcome in names}


HTTP_REDIRECTS: Final = 300
HTTP_ERRORS: Final = 400
HTTP_FAILURES: Final = 500
"""The first status of redirects, of errors, and of a server's failures (RFC 9110, section 15)."""
NO_ANSWERS: Final = {401, 403, 407, 429}
"""Statuses that do not show what a server speaks: it wants credentials first, or fewer requests."""

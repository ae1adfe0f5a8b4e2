"""Times of requests without an answer: how long they have waited, or did until nobody waited any more."""

from typing import Final

from .exchange import Exchange
from .http.transaction import ScopeKind, Transaction
from .model import CaptureInfo
from .outcome import Outcome

_WITHOUT_ANSWER = (Outcome.PENDING, Outcome.UNANSWERED)


def waited_ns(exchange: Exchange, info: CaptureInfo) -> int | None:
    """Return how long a request without an answer waited: up to now, or until its client left or the capture ended.

    None for a request with an answer, and for one that was cancelled, which both have a duration; and where nothing came after it.
    """
    if exchange.response is not None or exchange.outcome not in _WITHOUT_ANSWER:
        return None
    waited = _end_ns(exchange, info) - exchange.at_ns
    return waited if waited > 0 else None


def _end_ns(exchange: Exchange, info: CaptureInfo) -> int:
    carried = exchange.transaction
    if carried is not None and carried.ended_ns is not None and not _may_come_elsewhere(carried):
        return carried.ended_ns
    left_ns = info.left_ns
    is_left = left_ns is not None and left_ns + info.shift_ns >= exchange.at_ns
    if info.now_ns is not None and not info.closed and not (is_left and exchange.outcome is Outcome.UNANSWERED):
        return info.now_ns
    return info.shift_ns + (left_ns if is_left and left_ns is not None else info.last_ns)


def _may_come_elsewhere(carried: Transaction) -> bool:
    """Return whether the answer can come in another transaction than the one that carried the request."""
    kind = carried.scope.kind
    return kind is ScopeKind.STREAM or (carried.is_stream and kind is ScopeKind.SESSION)


_BACKLOG_NS: Final = 500_000_000
"""An answer that waited for its reader comes so soon after the reader goes on."""


def unread_ns(exchange: Exchange, info: CaptureInfo) -> int:
    """Return how long an answer waited because the side that asked did not read; 0 if it came at another time."""
    response = exchange.response
    for stream, since_ns, until_ns in () if response is None else info.unread:
        began_ns, ended_ns = since_ns + info.shift_ns, until_ns + info.shift_ns
        if response is not None and stream == response.stream and began_ns < response.at_ns <= ended_ns + _BACKLOG_NS:
            return max(0, min(ended_ns, response.at_ns) - max(began_ns, exchange.at_ns))
    return 0

"""Times of requests without an answer: how long they have waited, or did until nobody waited any more."""

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

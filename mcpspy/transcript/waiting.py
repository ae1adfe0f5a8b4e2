"""Times of requests without an answer: how long they have waited, or did until nobody waited any more."""

from collections.abc import Sequence
from typing import Final

from ..records import Stall
from .exchange import Exchange, UnpairedMessage
from .http.transaction import ScopeKind, Transaction
from .model import CaptureInfo, Row
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


_FULL_BYTES: Final = 1 << 15
"""A pipe that is full holds at least so many bytes: Linux gives it 16 pages, of which half may be empty."""

_ROWS_BACK: Final = 10_000


def first_unread(rows: Sequence[Row], info: CaptureInfo, stall: Stall) -> int:
    """Return the number of the first record on a stream that its reader had not read when it stalled.

    The bytes that wait are counted back from the last message before, and those that a full pipe holds. Over HTTP a request has a
    stream of its own, and that is all that waits:

        received  ├ row 3 ─┼─── row 4 ───┼─── row 5 ───┼ row 6, incomplete
        unread           ├ in a full pipe ─┼── waiting_bytes ──┤              rows 4 and 5
    """
    opened = info.streams.get(stall.stream)
    if opened is not None and opened.transaction:
        return 0
    first, left_bytes = stall.number, stall.waiting_bytes + _FULL_BYTES - stall.incomplete_bytes
    for at in range(len(rows) - 1, max(-1, len(rows) - _ROWS_BACK), -1):
        if left_bytes <= 0:
            break
        row = rows[at]
        messages = row.messages if isinstance(row, Exchange) else [row.message] if isinstance(row, UnpairedMessage) else ()
        for message in messages:
            if message.capture == info.index and message.stream == stall.stream and message.number < stall.number:
                first = min(first, message.number)
                left_bytes -= message.size
    return first


def unread_ns(exchange: Exchange, info: CaptureInfo) -> int:
    """Return how long a request and its answer waited because the side that each was sent to did not read."""
    return request_unread_ns(exchange, info) + _answer_unread_ns(exchange, info) if info.unread else 0


def request_unread_ns(exchange: Exchange, info: CaptureInfo) -> int:
    """Return how long a request waited because the side that was asked did not read; 0 if it was answered meanwhile."""
    request, response = exchange.request, exchange.response
    longest_ns = 0
    for stream, _, until_ns, first in info.unread:
        ended_ns = until_ns + info.shift_ns
        if stream == request.stream and first <= request.number and (response is None or ended_ns <= response.at_ns):
            longest_ns = max(longest_ns, ended_ns - request.at_ns)
    return longest_ns


def _answer_unread_ns(exchange: Exchange, info: CaptureInfo) -> int:
    """Return how long an answer waited because the side that asked did not read; 0 if it came at another time."""
    response, total_ns = exchange.response, 0
    if response is None:
        return 0
    due_ns = response.at_ns
    for stream, since_ns, until_ns, _ in reversed(info.unread):  # a reader may have taken a part, and stopped again
        began_ns, ended_ns = since_ns + info.shift_ns, until_ns + info.shift_ns
        if stream == response.stream and began_ns < due_ns <= ended_ns + _BACKLOG_NS:
            total_ns += max(0, min(ended_ns, due_ns) - max(began_ns, exchange.at_ns))
            due_ns = began_ns
    return total_ns

"""Rows in another order than that of time: the slowest, the largest or the most expensive first."""

from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Final

from ...transcript.http.transaction import Transaction
from ...transcript.model import CaptureInfo, Exchange, Kind, ModelCall, Numbered, Row, UnpairedMessage
from ...transcript.stats.tokens import estimated_tokens
from ...transcript.waiting import waited_ns
from .transaction import body_bytes


class Order(StrEnum):
    """The figure by which rows are sorted, the highest first."""

    TOOK = "took"
    SIZE = "size"
    TOKENS = "tokens"


def in_order(rows: Sequence[Row], captures: Sequence[CaptureInfo], order: Order) -> list[Row]:
    """Return the rows that have this figure, the highest first, and equal ones by time. Rows without a number are left out."""
    valued = [
        (value, row) for row in rows if isinstance(row, Numbered) and (value := _VALUES[order](row, captures)) is not None
    ]
    return [row for _, row in sorted(valued, key=lambda pair: -pair[0])]


def result_tokens(row: Row) -> int | None:
    """Estimate the tokens of a call's result; None for every other row."""
    if not isinstance(row, Exchange) or row.response is None or row.response.kind is not Kind.RESULT:
        return None
    from ...transcript.stats.context import result_text

    text = result_text(row.response) if row.method == "tools/call" else row.response.raw
    return estimated_tokens(text)


def _took_ns(row: Numbered, captures: Sequence[CaptureInfo]) -> int | None:
    if isinstance(row, UnpairedMessage):
        return None
    if row.duration_ns is None and isinstance(row, Exchange):
        return waited_ns(row, captures[row.capture])
    return row.duration_ns


def _size_bytes(row: Numbered) -> int:
    match row:
        case Exchange(request=request, response=response):
            return request.size + (0 if response is None else response.size)
        case UnpairedMessage(message=message):
            return message.size
        case ModelCall(transaction=transaction) | (Transaction() as transaction):
            return body_bytes(transaction)


_VALUES: Final[dict[Order, Callable[[Numbered, Sequence[CaptureInfo]], int | None]]] = {
    Order.TOOK: _took_ns,
    Order.SIZE: lambda row, _: _size_bytes(row),
    Order.TOKENS: lambda row, _: result_tokens(row),
}

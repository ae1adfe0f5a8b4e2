"""Exchanges to the number of calls with each outcome: one count for the summary, the statistics, a check and the live view.

The rounds of one call count once. Polls of a task count by themselves, and so does the request that ends a subscription. What
goes wrong besides is counted too: refusals, forced stops and cut streams.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TypeVar

import msgspec

from ..calls.call import Call, CallPart
from ..http.transaction import Transaction
from ..mcp.methods import LISTEN
from ..model import HTTP_ERRORS, CaptureInfo, Exchange, Outcome, Row, Transcript, UnpairedMessage

RowT = TypeVar("RowT", bound=Row)

_LOGIN = 401
_REFUSED = (Outcome.HTTP_ERROR, Outcome.REDIRECTED)
_NOT_OFFERED = (_LOGIN, 404, 405)
"""Refusals of a GET or DELETE that do no harm: the server wants a login first, or has no such stream or document."""


def measured_call(call: Call | None, row: Exchange) -> Call | None:
    """Return the call that counts in place of `row`, one of its rounds; None if the exchange counts by itself.

    An exchange counts by itself if its call has no other, or is a subscription, which has no duration.
    """
    if (
        call is None
        or len(call.exchanges) == 1
        or call.is_subscription
        or call.part(row) is not CallPart.ROUND
        or not call.rounds
    ):
        return None
    return call


def outcomes(transcript: Transcript) -> Counter[Outcome]:
    """Return the number of calls in `transcript`, by outcome. A call that a gateway forwarded counts once, as its client saw it."""
    exchanges = (row for row in transcript.rows if isinstance(row, Exchange))
    return outcomes_of(once(exchanges, transcript) if transcript.hops else exchanges, transcript.captures)


def once(rows: Iterable[RowT], transcript: Transcript) -> list[RowT]:
    """Leave out the calls that a gateway made for others that are in the transcript too."""
    hops = transcript.hops
    return [row for row in rows if not (isinstance(row, Exchange) and row.row in hops and hops[row.row].outer is not row)]


def outcomes_of(rows: Iterable[Exchange], captures: list[CaptureInfo]) -> Counter[Outcome]:
    """Return the number of calls that these exchanges began, by outcome."""
    if not any(info.calls for info in captures):
        return Counter(row.outcome for row in rows)
    counts: Counter[Outcome] = Counter()
    for row in rows:
        call = measured_call(captures[row.capture].calls.get(row.row), row)
        if call is None:
            is_ended = row.method == LISTEN and row.outcome is Outcome.CANCELLED  # as every subscription ends
            counts[Outcome.OK if is_ended else row.outcome] += 1
        elif call.rounds[0] is row:
            counts[call.outcome] += 1
    return counts


class Troubles(msgspec.Struct, kw_only=True):
    """The numbers of refused requests with and without a call, of processes that were ended by force, and of cut streams."""

    refused_calls: int = 0
    """A 401 before a login is none."""
    refused_messages: int = 0
    forced_stops: int = 0
    cut_streams: int = 0

    def __bool__(self) -> bool:
        return bool(self.refused_calls or self.refused_messages or self.forced_stops or self.cut_streams)


def troubles(*transcripts: Transcript) -> Troubles:
    """Count the troubles of all captures, once what both sides of a gateway show; rows are looked at only where there was HTTP."""
    counted = Troubles()
    for transcript in transcripts:
        for info in transcript.captures:
            counted.forced_stops += info.escalations
            counted.cut_streams += sum(map(_is_cut, info.transactions.values()))
        if any(info.transactions for info in transcript.captures):
            _count_refusals(transcript, counted)
    return counted


def _is_cut(transaction: Transaction) -> bool:
    response = transaction.response
    close = None if response is None or response.injected else response.close
    return close is not None and close.by == "server" and close.how != "eof"


def _count_refusals(transcript: Transcript, counted: Troubles) -> None:
    repeated: list[tuple[int, str]] = []  # after a login, or at the place that a redirect names
    ok: set[tuple[int, str]] = set()
    hops = transcript.hops
    messages: Counter[int] = Counter()
    for row in transcript.rows:
        match row:
            case Exchange() if row.row in hops and hops[row.row].outer is not row and hops[row.row].outer.outcome in _REFUSED:
                pass  # counted where its client was
            case Exchange() if row.transaction is not None:
                method = row.capture, row.method
                if row.outcome is Outcome.OK:
                    ok.add(method)
                elif row.outcome in _REFUSED:
                    if row.transaction.status == _LOGIN or row.outcome is Outcome.REDIRECTED:
                        repeated.append(method)
                    else:
                        counted.refused_calls += 1
            case UnpairedMessage():
                messages[row.capture] += _is_refused(row, transcript.captures[row.capture])
            case Transaction() if row.status >= HTTP_ERRORS and row.status not in _NOT_OFFERED:
                counted.refused_messages += "/.well-known/" not in row.target
            case _:
                pass
    for outer, inner in {(call.outer.capture, call.last.capture) for call in hops.values()}:
        messages[inner] -= min(messages[outer], messages[inner])
    counted.refused_messages += messages.total()
    counted.refused_calls += sum(method not in ok for method in repeated)


def _is_refused(row: UnpairedMessage, info: CaptureInfo) -> bool:
    transaction = info.transaction_of(row.message.stream)
    return row.message.sender == "client" and transaction is not None and transaction.status >= HTTP_ERRORS

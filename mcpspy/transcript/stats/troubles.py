"""Numbers of what goes wrong besides the outcomes of calls: refusals, forced stops and cut streams."""

from __future__ import annotations

from collections import Counter

import msgspec

from ..http.transaction import Transaction
from ..model import HTTP_ERRORS, CaptureInfo, Exchange, Outcome, Transcript, UnpairedMessage

_LOGIN = 401
_REFUSED = (Outcome.HTTP_ERROR, Outcome.REDIRECTED)
_NOT_OFFERED = (_LOGIN, 404, 405)
"""Refusals of a GET or DELETE that do no harm: the server wants a login first, or has no such stream or document."""


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

"""The HTTP transactions among the seeds of a capture, with all of their records: those on which later rows depend.

    capture   header  POST initialize  … 100,000 transactions …  POST 7, which waits  …  the newest  │  what came since
    seeds     header  POST initialize                            POST 7                  the newest  │

A transaction is among them if it goes on, if it is the first or the newest of its session, if it carries a message of a row that is
among them, or if it was half-closed. Rows are, if they have a message in such a transaction. Captures whose transactions refer to
each other in more ways have no seeds: those of HTTP+SSE, of streams that can be resumed, of sessions that the server lost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from ..transcript.http.head import LAST_EVENT_ID, SESSION
from ..transcript.http.transaction import ANSWER_REFUSED, ANSWER_TAKEN, ScopeKind, Stream, Transaction
from ..transcript.mcp.methods import OPENINGS
from ..transcript.model import CaptureInfo, Exchange, ModelCall, Numbered, Outcome, Transcript
from .places import Places

_RESUMES: Final = LAST_EVENT_ID.encode()
_SESSION: Final = SESSION.encode()
_REVISION: Final = b"mcp-protocol-version"
_SETTLED: Final = frozenset({ANSWER_TAKEN, ANSWER_REFUSED})
_REFUSED: Final = frozenset({Outcome.HTTP_ERROR, Outcome.REDIRECTED})


def is_plain_http(transcript: Transcript) -> bool:
    """Return whether transactions refer to each other by sessions alone, each of which has an opening."""
    info = transcript.captures[0]
    if not all(opened.transaction for opened in info.streams.values()):
        return False
    sessions: set[int] = set()
    for transaction in info.transactions.values():
        scope, request, response = transaction.scope, transaction.request, transaction.response
        head = b"" if request is None else request.opened.head.lower()
        if scope.kind is ScopeKind.SESSION:
            sessions.add(id(scope))
        elif scope.kind is ScopeKind.STREAM or _SESSION in head:
            return False
        if scope.unknown_since or scope.replaces is not None or _RESUMES in head:
            return False
        if response is not None and response.last_event_id:
            return False
    openings = (row for row in transcript.rows if isinstance(row, Exchange) and row.request.method in OPENINGS)
    return sessions <= {id(row.transaction.scope) for row in openings if row.transaction is not None}


def with_transactions(
    chosen: dict[int, Numbered],
    transcript: Transcript,
    with_equal_keys: Callable[[dict[int, Numbered], Transcript], dict[int, Numbered]],
    most: int,
) -> tuple[dict[int, Numbered], set[int]]:
    """Return the rows that are chosen, the transactions that have to be, and all rows with messages in these; or more than `most`."""
    info = transcript.captures[0]
    numbers = {transaction.number for transaction in _needed(info)}
    chosen = {**chosen, **_first_of_methods(transcript)}
    while len(chosen) <= most and len(numbers) <= most:
        chosen = with_equal_keys(chosen, transcript)
        for row in chosen.values():
            numbers.update(carriers(row, info))
        more = {
            row.row: row
            for row in transcript.rows
            if isinstance(row, Numbered) and row.row not in chosen and not numbers.isdisjoint(carriers(row, info))
        }
        if not more:
            break
        chosen.update(more)
    return chosen, numbers


def records_of(numbers: set[int], info: CaptureInfo, places: Places) -> Iterator[int]:
    """Yield the numbers of the records of transactions."""
    for number in numbers:
        transaction = info.transactions[number]
        yield from (note.number for note in transaction.notes)
        for stream in _streams(transaction):
            yield stream.opened.number
            yield from (number for _, number in places.frames(stream.opened, stream.close))
            if stream.close is not None:
                yield stream.close.number


def is_over(transaction: Transaction) -> bool:
    """Return whether nothing comes any more in the streams of a transaction, and of it."""
    is_settled = transaction.half_closed_ns is None or any(note.topic in _SETTLED for note in transaction.notes)
    return is_settled and transaction.over and all(stream.close is not None for stream in _streams(transaction))


def carriers(row: Numbered, info: CaptureInfo) -> set[int]:
    """Return the numbers of the transactions that have a message of a row."""
    if isinstance(row, Transaction | ModelCall):
        return {row.number} if isinstance(row, Transaction) else set()
    messages = row.messages if isinstance(row, Exchange) else (row.message,)
    return {info.streams[message.stream].transaction for message in messages if message.stream in info.streams}


def _needed(info: CaptureInfo) -> Iterator[Transaction]:
    """Yield the transactions that may go on, and of each session the first, the first that names its revision, and the newest."""
    newest: dict[int, Transaction] = {}
    named: set[int] = set()
    for transaction in info.transactions.values():
        if transaction.scope.kind is ScopeKind.SESSION:
            scope, request = id(transaction.scope), transaction.request
            names = scope not in named and request is not None and _REVISION in request.opened.head.lower()
            if names or scope not in newest:
                yield transaction
            named.update([scope] if names else [])
            newest[scope] = transaction
        if not is_over(transaction) or transaction.method == "DELETE":  # which ends what waits in its session
            yield transaction
    yield from newest.values()


def _first_of_methods(transcript: Transcript) -> dict[int, Numbered]:
    """Return the first call of each method that went well, and all that HTTP refused: whether these count depends on those."""
    chosen: dict[int, Numbered] = {}
    seen: set[str] = set()
    for row in transcript.rows:
        if isinstance(row, Exchange):
            outcome = row.outcome
            if outcome in _REFUSED or (outcome is Outcome.OK and row.method not in seen):
                chosen[row.row] = row
                seen.update([row.method] if outcome is Outcome.OK else [])
    return chosen


def _streams(transaction: Transaction) -> list[Stream]:
    both = (transaction.request, transaction.response, *transaction.interim)
    return [stream for stream in both if stream is not None]

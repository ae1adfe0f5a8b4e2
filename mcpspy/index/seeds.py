"""The records at the beginning of a capture on which the rest depends, so that a capture that has grown is not read whole again.

A fold of these records has the rows that may still change, and goes on with what came since as a fold of all records would:

    capture   header, open  initialize  … 1,000,000 records …  call 7, which waits  …  the newest rows  │  what came since
    seeds     header, open  initialize                         call 7                  the newest rows  │

Over HTTP they are whole transactions (`http_seeds`). Rows keep their numbers, which are kept with the records. A message that may
belong to another row than these raises UnknownExchangeError, and the capture is read whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain, count
from typing import Any, Final

import msgspec

from ..capture.file.payloads import Payloads
from ..capture.file.reader import Reader
from ..errors import CaptureError
from ..transcript.calls.join import TASK_STATUSES
from ..transcript.correlator import PONG
from ..transcript.http.transaction import Transaction
from ..transcript.mcp.methods import OPENINGS, PING
from ..transcript.model import ChannelEvent, Exchange, Log, Message, Numbered, Transcript, UnpairedMessage
from ..transcript.transcribe import Transcriber
from ..wire.lines import Lines
from .facts import COPIED, copied
from .http_seeds import complete, is_plain_http, sent_before, sent_ids, with_transactions
from .places import NotIndexedError, Places
from .transactions import Place

NEWEST_ROWS: Final = 128
"""So many rows are among them whatever they are: most messages that come late are about one of these."""

MAX_SEEDS: Final = 20_000
"""With more records it takes too long to begin with them."""


STDERR: Final = 2
"""The stream of all lines of a log."""


class Seeds(msgspec.Struct, array_like=True):
    """The places of the records, and the numbers of the rows that they begin, the last of which is that of the next row."""

    records: list[Place]
    rows: list[int]
    sent: bytes = b""
    """Over HTTP what `http_seeds.sent_ids` makes of the ids of events."""


def seeds_of(transcript: Transcript, places: Places) -> Seeds | None:
    """Return the seeds of a capture; None if it has none: a model's, missing records, or too much that is open."""
    info = transcript.captures[0]
    if info.is_model or info.gaps or info.damages or info.complete or places.ends_in_parts:
        return None
    if not (is_plain_http(transcript) if info.transactions else _is_plain(transcript)):
        return None
    numbers = {opened.number for opened in info.streams.values() if not opened.transaction}
    numbers.update(row.record.number for row in transcript.rows if isinstance(row, ChannelEvent))
    rows = _with_equal_keys(_open_rows(transcript), transcript)
    if info.transactions:
        rows, records = with_transactions(rows, transcript, _with_equal_keys, places, MAX_SEEDS)
        if not records:
            return None
        numbers |= records
    if len(rows) > MAX_SEEDS or len(numbers) > MAX_SEEDS:
        return None
    for row in () if info.transactions else rows.values():
        for message in _messages(row):
            numbers.update(places.parts_of(message.number, message.raw))
    if len(numbers) > MAX_SEEDS:
        return None
    last = max((row.row for row in transcript.rows if isinstance(row, Numbered)), default=0)
    try:
        sent = sent_ids(info, places).tobytes() if info.transactions else b""
    except (NotIndexedError, CaptureError):
        return None
    return Seeds([places.place(number) for number in sorted(numbers)], [*sorted(rows), last + 1], sent)


def _open_rows(transcript: Transcript) -> dict[int, Numbered]:
    """Return the rows that may change, or that later ones depend on, by their numbers."""
    rows, calls = transcript.rows, transcript.captures[0].calls
    chosen: dict[int, Numbered] = {}
    naming: dict[int, Exchange] = {}
    newest = len(rows) - NEWEST_ROWS
    for at, row in enumerate(rows):
        if isinstance(row, Exchange):
            if at >= newest or row.response is None or row.row in calls or row.request.method in OPENINGS:
                chosen[row.row] = row
            elif row.request.revision is not None and (row.transaction is None or not row.transaction.scope.is_one_transaction):
                naming[_scope(row)] = row
        elif isinstance(row, UnpairedMessage):
            if at >= newest or row.row in calls or row.message.method in TASK_STATUSES:
                chosen[row.row] = row
        elif isinstance(row, Numbered) and at >= newest:
            chosen[row.row] = row
    # the last request of a scope that named a revision tells that of notifications
    chosen.update((row.row, row) for row in naming.values())
    return chosen


def _scope(row: Exchange) -> int:
    """Return what is equal for exchanges whose ids mean the same; 0 on stdio."""
    return 0 if row.transaction is None else id(row.transaction.scope)


def _with_equal_keys(chosen: dict[int, Numbered], transcript: Transcript) -> dict[int, Numbered]:
    """Add the exchanges with the ids and the progress tokens of those that are chosen: the newest with a key is the one it means."""
    keys: set[tuple[int, str, str, str | None]] = set()
    new = list(chosen.values())
    while new and len(chosen) <= MAX_SEEDS:
        keys.update(key for row in new if isinstance(row, Exchange) for key in _keys(row))
        new = [
            row
            for row in transcript.rows
            if isinstance(row, Exchange) and row.row not in chosen and not keys.isdisjoint(_keys(row))
        ]
        chosen.update((row.row, row) for row in new)
    return chosen


def _keys(row: Exchange) -> list[tuple[int, str, str, str | None]]:
    request, scope = row.request, _scope(row)
    keys: list[tuple[int, str, str, str | None]] = [(scope, "id", request.sender, request.id)]
    return keys if request.correlation_key is None else [*keys, (scope, "token", request.sender, request.correlation_key)]


def _messages(row: Numbered) -> Sequence[Message]:
    return row.messages if isinstance(row, Exchange) else (row.message,) if isinstance(row, UnpairedMessage) else ()


def _is_plain(transcript: Transcript) -> bool:
    """Return whether all messages are on streams that were opened before, once, and none is a beat without an id."""
    firsts: dict[int, int] = {}
    for row in transcript.rows:
        if isinstance(row, UnpairedMessage):
            if row.message.method in (PING, PONG):
                return False
            firsts.setdefault(row.message.stream, row.message.number)
        elif isinstance(row, Exchange):
            firsts.setdefault(row.request.stream, row.request.number)
        elif isinstance(row, Log):
            firsts.setdefault(STDERR, row.number)
    streams = transcript.captures[0].streams
    if any(opened.connection or opened.framing != Lines.name for opened in streams.values()):
        return False  # it may have the number of one that goes on
    return all(stream in streams and streams[stream].number < number for stream, number in firsts.items())


def begun(
    seeds: Seeds,
    info: dict[str, Any],
    clients: Iterable[str],
    transactions: Mapping[int, Transaction],
    source: Payloads,
    *,
    keeps_frames: bool,
) -> Transcriber:
    """Return what has taken in the seeds, and knows of the capture what `facts.copied` kept: ready for the records after them.

    `clients` are the names of its clients over HTTP, `transactions` its transactions.
    Raises: NotIndexedError: if they do not make the same lanes; CaptureError; OSError.
    """
    *rows, next_row = seeds.rows
    transcriber = Transcriber(keep_frames=keeps_frames, next_row=chain(rows, count(next_row)).__next__)
    for record in Reader().feed(source.line(0) + b"\n"):
        transcriber.feed(record)
    for place in seeds.records:
        transcriber.feed(source.record(*place))
    capture = transcriber.transcript.captures[0]
    complete(capture, transactions)
    transcriber.lacks_some(clients, sent_before(seeds.sent))
    if (capture.server, capture.client) != (info["server"], info["client"]):
        raise NotIndexedError
    for name in COPIED:
        setattr(capture, name, info[name])
    capture.closed = False
    return transcriber


def proved(
    seeds: Seeds | None, transcript: Transcript, source: Payloads, entries: Callable[[Transcript, set[int], set[int]], object]
) -> Seeds | None:
    """Return the seeds if they make the same rows, calls and transactions as all records did.

    `entries` returns what a transcript has of these rows and transactions, by their numbers.
    """
    if seeds is None:
        return None
    info = transcript.captures[0]
    try:
        made = begun(seeds, copied(info), info.client_names, info.transactions, source, keeps_frames=False).transcript
    except (NotIndexedError, CaptureError, OSError, StopIteration):
        return None
    own, carriers = {row.row for row in made.rows if isinstance(row, Numbered)}, set(made.captures[0].transactions)
    is_same = own == set(seeds.rows[:-1]) and entries(transcript, own, carriers) == entries(made, own, carriers)
    return seeds if is_same else None

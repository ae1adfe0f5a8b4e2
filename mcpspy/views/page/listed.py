"""Rows as the page lists them: plain values, all text made safe.

The script `01-data.js` reads what stands here; the two change together. Refuses to lay out, and to tell what a row carries.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from typing import Final, NamedTuple

from ...records import CLIENT
from ...transcript.http.transaction import Transaction
from ...transcript.model import (
    CaptureInfo,
    ChannelEvent,
    Exchange,
    Log,
    ModelCall,
    Row,
    Transcript,
    UnpairedMessage,
)
from ..text.escape import one_line, safe_text
from ..timeline.calls import with_call
from ..timeline.model_words import model_phrase
from ..timeline.phrases import Phrase, event_phrase, log_text, outcome_phrase, unpaired_phrase
from ..timeline.transaction import transaction_phrase

MAX_TARGET_LETTERS: Final = 200
MAX_LOG_LETTERS: Final = 400

MAX_MARKS: Final = 60
"""So many marks of progress a row has: of more, every second, third and so on."""


class Line(NamedTuple):
    """A row in the list. `row` is 0 for one without a number, `took_ns` None where nothing is awaited or still is.

    `style` is how good the news is; `flagged` says that a finding is about it.
    """

    row: int
    kind: str
    at_ns: int
    took_ns: int | None
    sender: str
    client: str
    server: str
    method: str
    target: str
    outcome: str
    style: str
    detail: str
    bytes: int
    capture: int
    flagged: int


class _Said(NamedTuple):
    """What a row says for itself."""

    kind: str
    sender: str
    method: str
    target: str
    phrase: Phrase
    bytes: int = 0
    took_ns: int | None = None


def listed(transcript: Transcript, rows: Sequence[Row]) -> Iterator[tuple[Row, Line]]:
    """Each row that the page lists, with its line. Events that say nothing are left out."""
    flagged = {one.row for one in transcript.findings if one.row is not None}
    for row in rows:
        line = listed_row(row, transcript.captures[row.capture], flagged=flagged)
        if line is not None:
            yield row, line


def listed_row(row: Row, source: CaptureInfo, *, flagged: Container[int]) -> Line | None:
    """A row's line; `flagged` are the numbers of rows with findings. None for an event that says nothing."""
    said = _said(row, source)
    if said is None:
        return None
    number = 0 if isinstance(row, Log | ChannelEvent) else row.row
    return Line(
        row=number,
        kind=said.kind,
        at_ns=row.at_ns,
        took_ns=said.took_ns,
        sender=said.sender,
        client=safe_text(source.client_of(row)),
        server=safe_text(source.server),
        method=said.method,
        target=said.target,
        outcome=said.phrase.word,
        style=said.phrase.style,
        detail=said.phrase.detail,
        bytes=said.bytes,
        capture=row.capture,
        flagged=int(number in flagged),
    )


def _said(row: Row, source: CaptureInfo) -> _Said | None:
    match row:
        case Exchange():
            return _exchange(row, source)
        case UnpairedMessage():
            phrase = with_call(unpaired_phrase(row, source), row, source)
            return _Said("unpaired", row.message.sender, phrase.word, "", phrase._replace(word=""), row.message.size)
        case Transaction():
            words = one_line(row.method), one_line(row.target, MAX_TARGET_LETTERS)
            return _Said("transaction", CLIENT, *words, transaction_phrase(row), _body_bytes(row), row.duration_ns)
        case ModelCall():
            words = one_line(row.method), one_line(row.target)
            return _Said("model call", CLIENT, *words, model_phrase(row), _body_bytes(row.transaction), row.duration_ns)
        case Log():
            text = one_line(log_text(row.raw, MAX_LOG_LETTERS), MAX_LOG_LETTERS)
            return _Said("log", "", "stderr", text, Phrase("", "dim"), len(row.raw))
        case ChannelEvent():
            said = event_phrase(row.record, source)
            return None if said is None else _Said("event", "", said.word, "", said._replace(word=""))


def _exchange(row: Exchange, source: CaptureInfo) -> _Said:
    words = one_line(row.method), one_line(row.target or "", MAX_TARGET_LETTERS)
    size = row.request.size + (row.response.size if row.response else 0)
    return _Said("exchange", row.sender, *words, with_call(outcome_phrase(row), row, source), size, row.duration_ns)


def _body_bytes(transaction: Transaction) -> int:
    return sum(one.body_bytes for one in (transaction.request, transaction.response) if one is not None)


def progress(rows: Sequence[Row]) -> dict[str, list[int]]:
    """When progress came, by the numbers of rows."""
    return {str(row.row): _marks(row) for row in rows if isinstance(row, Exchange) and row.progress}


def _marks(row: Exchange) -> list[int]:
    times = [one.at_ns for one in row.notifications if one.method == "notifications/progress"]
    return times[:: -(-len(times) // MAX_MARKS) or 1]

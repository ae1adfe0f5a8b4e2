"""Rows for the list of the page, as plain values. All text is safe.

The script `01-data.js` reads this data; change the two together.
"""

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
from ...transcript.waiting import waited_ns
from ..text.escape import one_line, safe_text
from ..timeline.calls import with_call
from ..timeline.details import Detail, params_words
from ..timeline.model_words import model_phrase
from ..timeline.phrases import Phrase, event_phrase, log_text, outcome_phrase, unpaired_phrase
from ..timeline.transaction import body_bytes, transaction_phrase

MAX_TARGET_LETTERS: Final = 200
MAX_LOG_LETTERS: Final = 400

MAX_MARKS: Final = 60
"""The most progress marks of a row; of more, every second, third and so on is kept."""


class PageRow(NamedTuple):
    """A row of the list. `row` is 0 for one without a number; `took_ns` is None if no answer is expected or it is pending.

    `style` says how good the news is; `flagged` is 1 if a finding is about the row. `params` are those of a request, in a few words.
    `waited_ns` is the time that a request without an answer has waited.
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
    params: str
    waited_ns: int | None


class _Words(NamedTuple):
    """Words and figures of a row, without those of its capture."""

    kind: str
    sender: str
    method: str
    target: str
    phrase: Phrase
    bytes: int = 0
    took_ns: int | None = None
    params: str = ""
    waited_ns: int | None = None


def page_rows(transcript: Transcript, rows: Sequence[Row]) -> Iterator[tuple[Row, PageRow]]:
    """Yield each row of the list with its line. Events without a text are left out."""
    flagged = {row for finding in transcript.findings for row in finding.rows}
    for row in rows:
        line = page_row(row, transcript.captures[row.capture], flagged=flagged)
        if line is not None:
            yield row, line


def page_row(row: Row, capture: CaptureInfo, *, flagged: Container[int]) -> PageRow | None:
    """Build the line of a row; `flagged` are the numbers of rows with findings. None for an event without a text."""
    words = _words(row, capture)
    if words is None:
        return None
    number = 0 if isinstance(row, Log | ChannelEvent) else row.row
    return PageRow(
        row=number,
        kind=words.kind,
        at_ns=row.at_ns,
        took_ns=words.took_ns,
        sender=words.sender,
        client=safe_text(capture.client_of(row)),
        server=safe_text(capture.server),
        method=words.method,
        target=words.target,
        outcome=words.phrase.word,
        style=words.phrase.style,
        detail=words.phrase.detail,
        bytes=words.bytes,
        capture=row.capture,
        flagged=int(number in flagged),
        params=words.params,
        waited_ns=words.waited_ns,
    )


def _words(row: Row, capture: CaptureInfo) -> _Words | None:
    match row:
        case Exchange():
            return _exchange(row, capture)
        case UnpairedMessage():
            phrase = with_call(unpaired_phrase(row, capture), row, capture)
            return _Words("unpaired", row.message.sender, phrase.word, "", phrase._replace(word=""), row.message.size)
        case Transaction():
            call = one_line(row.method), one_line(row.target, MAX_TARGET_LETTERS)
            return _Words(
                "transaction", CLIENT, *call, transaction_phrase(row, closed=capture.closed), body_bytes(row), row.duration_ns
            )
        case ModelCall():
            call = one_line(row.method), one_line(row.target)
            return _Words("model call", CLIENT, *call, model_phrase(row), body_bytes(row.transaction), row.duration_ns)
        case Log():
            text = one_line(log_text(row.raw, MAX_LOG_LETTERS), MAX_LOG_LETTERS)
            return _Words("log", "", "stderr", text, Phrase("", "dim"), len(row.raw))
        case ChannelEvent():
            phrase_of_event = event_phrase(row.record, capture)
            if phrase_of_event is None:
                return None
            return _Words("event", "", phrase_of_event.word, "", phrase_of_event._replace(word=""))


def _exchange(row: Exchange, capture: CaptureInfo) -> _Words:
    words = one_line(row.method), one_line(row.target or "", MAX_TARGET_LETTERS)
    size = row.request.size + (row.response.size if row.response else 0)
    phrase = with_call(outcome_phrase(row, Detail.PARAMS), row, capture)
    return _Words(
        "exchange",
        row.sender,
        *words,
        phrase,
        size,
        row.duration_ns,
        params_words(row.request),
        waited_ns(row, capture) if row.duration_ns is None else None,
    )


def progress(rows: Sequence[Row]) -> dict[str, list[int]]:
    """Collect the times of progress notifications, by row number."""
    return {str(row.row): _marks(row) for row in rows if isinstance(row, Exchange) and row.progress}


def _marks(row: Exchange) -> list[int]:
    times = [message.at_ns for message in row.notifications if message.method == "notifications/progress"]
    return times[:: -(-len(times) // MAX_MARKS) or 1]

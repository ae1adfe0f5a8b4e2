"""Rows for the list of the page, and the details of a row: its messages, its HTTP transactions, its request as a command.

All are plain values with safe text. The scripts `01-data.js` and `08-detail.js` read this data; change them together.
"""

from collections.abc import Container, Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

from ...records import CLIENT, SERVER
from ...transcript.http.transaction import Transaction
from ...transcript.llm.tool_trips import ToolTrip
from ...transcript.message import Message
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
from ..curl import curl
from ..json.llm import model_call_object
from ..text.escape import decoded, one_line, safe_text
from ..text.json_text import as_json, payload
from ..text.line import plain
from ..timeline.calls import with_call
from ..timeline.details import Detail, params_words
from ..timeline.exchange import messages_of
from ..timeline.model_call import model_call_lines, model_phrase
from ..timeline.phrases import Phrase, event_phrase, log_text, outcome_phrase, unpaired_phrase
from ..timeline.transaction import body_bytes, transaction_phrase

MAX_TARGET_LETTERS: Final = 200
MAX_LOG_LETTERS: Final = 400

MAX_MARKS: Final = 60
"""The most progress marks of a row; of more, every second, third and so on is kept."""

MAX_DESCRIPTION_LINES = 1_000

MAX_CHUNK_SIZES: Final = 60


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


def row_details(row: Row, transcript: Transcript, tool_trips: Sequence[ToolTrip]) -> dict[str, Any] | None:
    """Build the details of a row. None if it has none.

    `tool_trips` are the tool round trips of the transcript or of the row, for the description of a model call.
    """
    if not isinstance(row, Exchange | UnpairedMessage | Transaction | ModelCall):
        return None
    capture = transcript.captures[row.capture]
    made: dict[str, Any] = {}
    if isinstance(row, ModelCall):
        made |= {"description": description_of_call(row, transcript, tool_trips), "messages": messages_of_call(row, capture)}
    elif messages := messages_of(row):
        made["messages"] = [_message(message) for message in messages]
    transactions = capture.transactions_of(row)
    if transactions:
        made["http"] = [_transaction(transaction) for transaction in transactions]
        made["curl"] = curl_text(transactions[0], capture)
    return made


def curl_text(transaction: Transaction, capture: CaptureInfo) -> str:
    """Write the command that sends the request of a row again. Empty if no request was seen."""
    return "\n".join(curl(transaction, capture)) if transaction.request is not None else ""


def _message(message: Message) -> dict[str, Any]:
    return {
        "from": message.sender,
        "kind": message.kind.value,
        "at": message.at_ns,
        "record": message.number,
        "bytes": message.size,
        **({"lost": True} if message.unkept_bytes else payload(message.raw)),
    }


def _transaction(transaction: Transaction) -> dict[str, Any]:
    request, response = transaction.request, transaction.response
    sizes = [size for frame in (response.kept if response else ()) for size in frame.chunks][:MAX_CHUNK_SIZES]
    return {
        "number": transaction.number,
        "connection": transaction.connection,
        "status": transaction.status,
        "at": transaction.at_ns,
        "waited": None if response is None else response.at_ns - transaction.at_ns,
        "took": transaction.duration_ns,
        "request": "" if request is None else _head(request.raw_head),
        "response": "" if response is None else _head(response.raw_head),
        "chunks": sizes,
    }


def _head(raw: bytes) -> str:
    return "\n".join(safe_text(line) for line in decoded(raw).strip("\r\n").replace("\r\n", "\n").split("\n"))


def description_of_call(row: ModelCall, transcript: Transcript, tool_trips: Iterable[ToolTrip]) -> list[str]:
    """Describe a model call as `show` does, without heading and HTTP: turns folded by role, and the target of each tool use."""
    lines = [plain(line) for line in model_call_lines(transcript, row, tool_trips)]
    blank = next((at for at, line in enumerate(lines) if not line), 0)
    last = len(lines) - 1 - next((at for at, line in enumerate(reversed(lines)) if not line), 0)
    return lines[1:blank] + lines[blank:last][:MAX_DESCRIPTION_LINES]


def messages_of_call(row: ModelCall, capture: CaptureInfo) -> list[dict[str, Any]]:
    """Build the prompt as it was sent, and the answer as it was assembled."""
    made = [prompt_of_call(row)]
    answer = model_call_object(row, capture, whole=True)["answer"]
    response = row.transaction.response
    if answer is not None and response is not None:
        made.append(_call_message(SERVER, "answer", row.ended_ns or response.at_ns, response.record, as_json(answer).encode()))
    return made


def prompt_of_call(row: ModelCall) -> dict[str, Any]:
    """Return the prompt as it was sent."""
    return _call_message(CLIENT, "prompt", row.at_ns, row.number, row.payload)


def _call_message(sender: str, kind: str, at_ns: int, number: int, raw: bytes) -> dict[str, Any]:
    return {"from": sender, "kind": kind, "at": at_ns, "record": number, "bytes": len(raw), **payload(raw)}

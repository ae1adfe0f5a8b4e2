"""Details of a row for the page: its messages, its HTTP transactions, and its request as a command.

The script `08-detail.js` reads this data; change the two together.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Final

from ...records import CLIENT, SERVER
from ...transcript.http.transaction import Transaction
from ...transcript.llm.tool_trips import ToolTrip
from ...transcript.message import Message
from ...transcript.model import CaptureInfo, Exchange, ModelCall, Row, Transcript, UnpairedMessage
from ..curl import curl
from ..json.llm import model_call_object
from ..text.escape import decoded, safe_text
from ..text.json_text import as_json, payload
from ..text.line import plain
from ..timeline.exchange import messages_of
from ..timeline.model_call import model_call_lines

MAX_DESCRIPTION_LINES = 1_000

MAX_CHUNK_SIZES: Final = 60


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
        "request": "" if request is None else _head(request.opened.head),
        "response": "" if response is None else _head(response.opened.head),
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
        made.append(
            _call_message(SERVER, "answer", row.ended_ns or response.at_ns, response.opened.number, as_json(answer).encode())
        )
    return made


def prompt_of_call(row: ModelCall) -> dict[str, Any]:
    """Return the prompt as it was sent."""
    return _call_message(CLIENT, "prompt", row.at_ns, row.number, row.payload)


def _call_message(sender: str, kind: str, at_ns: int, number: int, raw: bytes) -> dict[str, Any]:
    return {"from": sender, "kind": kind, "at": at_ns, "record": number, "bytes": len(raw), **payload(raw)}

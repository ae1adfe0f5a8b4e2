"""What a row carries when somebody looks at it on the page: messages, HTTP, and its request as a command.

The script `08-detail.js` reads what stands here; the two change together. Refuses to lay out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from ...transcript.http.transaction import Transaction
from ...transcript.model import Exchange, ModelCall, Row, Transcript, UnpairedMessage
from ..export.curl import curl
from ..text.escape import decoded, safe_text
from ..text.json_text import payload
from ..timeline.exchange import messages_of
from .model_calls import messages_of_call, told_call

if TYPE_CHECKING:
    from ...transcript.llm.tool_trips import ToolTrip
    from ...transcript.message import Message
    from ...transcript.model import CaptureInfo

MAX_CHUNK_SIZES: Final = 60


def carried(row: Row, transcript: Transcript, tool_trips: Sequence[ToolTrip]) -> dict[str, Any] | None:
    """What a row carries: messages, HTTP, its request as a command. None for one that carries nothing.

    `tool_trips` are those of the transcript or of the row, for what is told of a model call.
    """
    if not isinstance(row, Exchange | UnpairedMessage | Transaction | ModelCall):
        return None
    source = transcript.captures[row.capture]
    made: dict[str, Any] = {}
    if isinstance(row, ModelCall):
        made |= {"told": told_call(row, transcript, tool_trips), "messages": messages_of_call(row, source)}
    elif messages := messages_of(row):
        made["messages"] = [_message(one) for one in messages]
    transactions = source.transactions_of(row)
    if transactions:
        made["http"] = [_transaction(one) for one in transactions]
        made["curl"] = curl_text(transactions[0], source)
    return made


def curl_text(transaction: Transaction, source: CaptureInfo) -> str:
    """The command that sends its request again; empty where none was seen."""
    return "\n".join(curl(transaction, source)) if transaction.request is not None else ""


def _message(one: Message) -> dict[str, Any]:
    said = {"lost": True} if one.unkept_bytes else payload(one.raw)
    return {"from": one.sender, "kind": one.kind.value, "at": one.at_ns, "record": one.number, "bytes": one.size, **said}


def _transaction(one: Transaction) -> dict[str, Any]:
    request, response = one.request, one.response
    sizes = [size for frame in (response.kept if response else ()) for size in frame.chunks][:MAX_CHUNK_SIZES]
    return {
        "number": one.number,
        "connection": one.connection,
        "status": one.status,
        "at": one.at_ns,
        "waited": None if response is None else response.at_ns - one.at_ns,
        "took": one.duration_ns,
        "request": "" if request is None else _head(request.opened.head),
        "response": "" if response is None else _head(response.opened.head),
        "chunks": sizes,
    }


def _head(raw: bytes) -> str:
    return "\n".join(safe_text(line) for line in decoded(raw).strip("\r\n").replace("\r\n", "\n").split("\n"))

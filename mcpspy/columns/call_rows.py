"""Exchanges and unpaired messages to the rows of the tables `messages` and `calls`."""

from __future__ import annotations

from collections.abc import Callable

from ..transcript.message import ERROR, RESULT, Message
from ..transcript.model import CaptureInfo, Exchange, UnpairedMessage
from ..transcript.stats.context import result_text
from ..transcript.stats.tokens import estimated_tokens
from ..views.json.rows import failure_object
from .batches import Values

TOOL_CALL = "tools/call"


class CallRows:
    """Rows of one capture that began at `began_ns`, Unix time. Without `payload`, a mask, they have no payloads."""

    __slots__ = ("_began_ns", "_capture_id", "_info", "_payload", "_shared")

    def __init__(self, capture_id: str, info: CaptureInfo, began_ns: int, payload: Callable[[bytes], str] | None) -> None:
        self._capture_id = capture_id
        self._info = info
        self._began_ns = began_ns - info.shift_ns
        self._payload = payload
        self._shared: set[int] = set()
        """Errors that answer all requests of an HTTP transaction."""

    def add_messages(self, row: Exchange | UnpairedMessage, rows: list[Values]) -> None:
        """Append the messages of a row, each once."""
        if isinstance(row, UnpairedMessage):
            rows.append(self._message(row.message, row.row, row.message.method, row.message.target))
            return
        request, response = row.request, row.response
        method, target = request.method, request.target
        rows.append(self._message(request, row.row, method, target))
        for message in (*row.notifications, *row.partials, *row.more_responses):
            is_response = message.kind is RESULT or message.kind is ERROR
            own = (method, target) if is_response else (message.method, message.target)
            rows.append(self._message(message, row.row, *own))
        if response is None:
            return
        if row.transaction is not None and response.kind is ERROR:
            if id(response) in self._shared:
                return
            self._shared.add(id(response))
        rows.append(self._message(response, row.row, method, target))

    def _message(self, message: Message, row: int, method: str | None, target: str | None) -> Values:
        payload, kind, raw = self._payload, message.kind, message.raw
        return (
            self._capture_id,
            message.number,
            row,
            self._began_ns + message.at_ns,
            message.sender,
            kind,
            method,
            target,
            message.id,
            message.revision,
            len(raw) + message.unkept_bytes,
            message.is_error or kind is ERROR,
            message.batch != b"",
            message.flaws,
            None if payload is None else payload(raw),
        )

    def call(self, row: Exchange) -> Values:
        """Return the row of an exchange."""
        request, response, info = row.request, row.response, self._info
        call = info.calls.get(row.row)
        transaction = row.transaction
        code, words = _failure(row) if response is not None and (response.is_error or response.kind is ERROR) else (None, None)
        is_result = response is not None and response.kind is RESULT and request.method == TOOL_CALL
        return (
            self._capture_id,
            row.row,
            request.number,
            self._began_ns + request.at_ns,
            row.duration_ns,
            info.client_of(row),
            None if transaction is None else transaction.scope.session or None,
            request.sender,
            request.method,
            request.target,
            request.id,
            request.revision,
            row.outcome,
            code,
            words,
            request.size,
            None if response is None else response.size,
            estimated_tokens(result_text(response)) if is_result and response is not None else None,
            row.progress if row.notifications else 0,
            row.row if call is None else call.row,
            None if call is None or len(call.exchanges) == 1 else call.part(row).value,
            None if transaction is None else transaction.number,
        )


def _failure(row: Exchange) -> tuple[int | None, str | None]:
    """Return the code and the message of an error; of a tool that failed, its first text."""
    error = failure_object(row).get("error", {})
    code, words = error.get("code"), error.get("message")
    is_number = isinstance(code, int) and not isinstance(code, bool)
    return code if is_number else None, words if isinstance(words, str) else None

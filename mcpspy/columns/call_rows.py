"""Exchanges and unpaired messages to rows of the tables `messages` and `calls`, as columns in the order of the schema.

A capture may have millions of them: a list for each column takes half the time of a tuple for each row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import repeat
from operator import add
from typing import Any, TypeAlias

import msgspec
from msgspec.structs import astuple

from ..transcript.exchange import shared_answer
from ..transcript.message import ERROR, RESULT, Message
from ..transcript.model import CaptureInfo, Exchange, UnpairedMessage
from ..transcript.stats.context import result_text
from ..transcript.stats.tokens import estimated_tokens
from ..views.json.rows import failure_object
from ..wire.json_spans import UNREADABLE

TOOL_CALL = "tools/call"

_NUMBER, _AT_NS, _SENDER, _KIND, _ID, _METHOD, _TARGET, _REVISION, _IS_ERROR, _BATCH, _FLAWS, _UNKEPT_BYTES = map(
    Message.__struct_fields__.index,
    ("number", "at_ns", "sender", "kind", "id", "method", "target", "revision", "is_error", "batch", "flaws", "unkept_bytes"),
)
"""Positions of the fields of a message. Reading all of its fields at once takes as long as reading six by name."""

Columns: TypeAlias = Sequence[Iterable[Any]]
"""The values of each column of some rows."""


class CallRows:
    """Rows of one capture that began at `began_ns`, Unix time. Without `payload`, a mask, they have no payloads."""

    __slots__ = ("_began_ns", "_capture_id", "_info", "_payload", "_shared")

    def __init__(self, capture_id: str, info: CaptureInfo, began_ns: int, payload: Callable[[bytes], str] | None) -> None:
        self._capture_id = capture_id
        self._info = info
        self._began_ns = began_ns - info.shift_ns
        self._payload = payload
        self._shared: set[object] = set()
        """Errors that answer all requests of an HTTP transaction."""

    def messages(self, rows: Iterable[Exchange | UnpairedMessage]) -> Columns:
        """Return the columns of the table `messages` for one or more rows of a transcript. Each message is in them once."""
        messages: list[Message] = []
        named: list[Message] = []
        """For each message the one whose method and target it has: a response those of its request."""
        numbers: list[int] = []
        for row in rows:
            first = len(messages)
            if isinstance(row, UnpairedMessage):
                messages.append(row.message)
                named.append(row.message)
            else:
                self._add(row, messages, named)
            numbers += repeat(row.row, len(messages) - first)
        return self._message_columns(messages, named, numbers)

    def _add(self, row: Exchange, messages: list[Message], named: list[Message]) -> None:
        request, response = row.request, row.response
        messages.append(request)
        named.append(request)
        if row.notifications or row.partials or row.more_responses:
            for message in (*row.notifications, *row.partials, *row.more_responses):
                messages.append(message)
                named.append(request if message.kind is RESULT or message.kind is ERROR else message)
        if response is None:
            return
        if row.transaction is not None and response.kind is ERROR and (answer := shared_answer(row)) is not None:
            if answer in self._shared:
                return
            self._shared.add(answer)
        messages.append(response)
        named.append(request)

    def _message_columns(self, messages: list[Message], named: list[Message], numbers: list[int]) -> Columns:
        payload, began_ns = self._payload, self._began_ns
        fields = list(zip(*map(astuple, messages), strict=False))  # packed messages have a field more
        raws = [message.raw for message in messages]  # a packed message reads its payload for this
        sizes, unkept, are_errors, batches = [*map(len, raws)], fields[_UNKEPT_BYTES], fields[_IS_ERROR], fields[_BATCH]
        return (
            repeat(self._capture_id, len(messages)),
            fields[_NUMBER],
            numbers,
            [began_ns + at_ns for at_ns in fields[_AT_NS]],
            fields[_SENDER],
            fields[_KIND],
            [message.method for message in named],
            [message.target for message in named],
            fields[_ID],
            fields[_REVISION],
            map(add, sizes, unkept) if any(unkept) else sizes,
            [is_error or kind is ERROR for is_error, kind in zip(are_errors, fields[_KIND], strict=True)],
            map(bool, batches) if any(batches) else repeat(False, len(messages)),
            fields[_FLAWS],
            () if payload is None else map(payload, raws),
        )

    def calls(self, rows: Sequence[Exchange]) -> Columns:
        """Return the columns of the table `calls` for some exchanges."""
        info, began_ns, count = self._info, self._began_ns, len(rows)
        numbers = [row.row for row in rows]
        requests, responses = [row.request for row in rows], [row.response for row in rows]
        fields = list(zip(*map(astuple, requests), strict=False))
        failures = [
            _NO_FAILURE if response is None or not (response.is_error or response.kind is ERROR) else _failure(row, response)
            for row, response in zip(rows, responses, strict=True)
        ]
        sessions: Iterable[str | None] = repeat(None, count)
        transactions: Iterable[int | None] = repeat(None, count)
        if info.transactions:
            carriers = [row.transaction for row in rows]
            sessions = [None if carrier is None else carrier.scope.session or None for carrier in carriers]
            transactions = [None if carrier is None else carrier.number for carrier in carriers]
        call_rows: Iterable[int] = numbers
        parts: Iterable[str | None] = repeat(None, count)
        if info.calls:
            calls = [info.calls.get(number) for number in numbers]
            call_rows = [number if call is None else call.row for number, call in zip(numbers, calls, strict=True)]
            parts = [
                None if call is None or len(call.exchanges) == 1 else call.part(row).value
                for row, call in zip(rows, calls, strict=True)
            ]
        return (
            repeat(self._capture_id, count),
            numbers,
            fields[_NUMBER],
            [began_ns + at_ns for at_ns in fields[_AT_NS]],
            [row.duration_ns for row in rows],
            map(info.client_of, rows) if info.transactions else repeat(info.client, count),
            sessions,
            fields[_SENDER],
            fields[_METHOD],
            fields[_TARGET],
            fields[_ID],
            fields[_REVISION],
            [row.outcome for row in rows],
            [code for code, _ in failures],
            [words for _, words in failures],
            [len(request.raw) + request.unkept_bytes for request in requests],
            [None if response is None else len(response.raw) + response.unkept_bytes for response in responses],
            [
                estimated_tokens(result_text(response))
                if method == TOOL_CALL and response is not None and response.kind is RESULT
                else None
                for method, response in zip(fields[_METHOD], responses, strict=True)
            ],
            [row.progress if row.notifications else 0 for row in rows],
            call_rows,
            parts,
            transactions,
        )


class _ErrorFacts(msgspec.Struct, gc=False):
    code: int | None = None
    message: str | None = None


class _FailedBlock(msgspec.Struct, gc=False):
    text: str | None = None


class _FailedResult(msgspec.Struct, gc=False):
    content: list[_FailedBlock]


class _FailureFacts(msgspec.Struct, gc=False):
    error: _ErrorFacts | None = None
    result: _FailedResult | None = None


_decode = msgspec.json.Decoder(_FailureFacts).decode


_NO_FAILURE: tuple[int | None, str | None] = (None, None)


def _failure(row: Exchange, response: Message) -> tuple[int | None, str | None]:
    """Return the code and the message of an error; of a tool that failed, its first text."""
    try:
        failure = _decode(response.raw)
    except UNREADABLE:
        return _odd_failure(row)
    if response.kind is ERROR:
        return _odd_failure(row) if failure.error is None else (failure.error.code, failure.error.message)
    blocks = () if failure.result is None else failure.result.content
    return None, next((block.text for block in blocks if block.text is not None), None)


def _odd_failure(row: Exchange) -> tuple[int | None, str | None]:
    """Do the same for a failure of any form."""
    error = failure_object(row).get("error", {})
    code, words = error.get("code"), error.get("message")
    is_number = isinstance(code, int) and not isinstance(code, bool)
    return code if is_number else None, words if isinstance(words, str) else None

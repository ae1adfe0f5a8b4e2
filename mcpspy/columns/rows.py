"""Captures, messages and calls to rows of the tables, as columns in the order of the schema.

A capture may have millions of exchanges: a list for each column takes half the time of a tuple for each row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from hashlib import sha256
from itertools import repeat
from operator import add
from shlex import join
from typing import Any, TypeAlias

import msgspec
from msgspec.structs import astuple

from ..records import CLIENT
from ..transcript.definitions import Definition, DefinitionKind, canonical, offers, value_of
from ..transcript.exchange import shared_answer
from ..transcript.mcp.codes import CLIENT_INFO, SERVER_INFO
from ..transcript.message import ERROR, RESULT, Message
from ..transcript.model import CaptureInfo, Exchange, ModelCall, Transcript, UnpairedMessage
from ..transcript.stats.context import definition_text, result_text
from ..transcript.stats.tokens import estimated_tokens
from ..views.json.rows import failure_object
from ..wire.json_spans import UNREADABLE, Slice, members, string
from .batches import Values

INITIALIZE = "initialize"
DISCOVER = "server/discover"

TOOL_CALL = "tools/call"

_NUMBER, _AT_NS, _SENDER, _KIND, _ID, _METHOD, _TARGET, _REVISION, _IS_ERROR, _BATCH, _FLAWS, _UNKEPT_BYTES = map(
    Message.__struct_fields__.index,
    ("number", "at_ns", "sender", "kind", "id", "method", "target", "revision", "is_error", "batch", "flaws", "unkept_bytes"),
)
"""Positions of the fields of a message. Reading all of its fields at once takes as long as reading six by name."""

Columns: TypeAlias = Sequence[Iterable[Any]]
"""The values of each column of some rows."""


class Peers:
    """The names and versions that client and server gave themselves: those of the first that did. `feed` takes exchanges."""

    __slots__ = ("client_version", "is_done", "revision", "server", "server_version")

    def __init__(self) -> None:
        self.is_done = False
        self.client_version: str | None = None
        self.server: str | None = None
        self.server_version: str | None = None
        self.revision: str | None = None

    def feed(self, row: Exchange) -> None:
        request, response = row.request, row.response
        if request.sender != CLIENT:
            return
        if b"clientInfo" in request.raw and self.client_version is None:
            params = members(members(request.raw).get("params", b""))
            info = params.get("clientInfo") or members(params.get("_meta", b"")).get(CLIENT_INFO, b"")
            self.client_version = _string(members(info).get("version", b""))
        if response is None or response.kind is not RESULT or self.is_done:
            return
        if request.method in (INITIALIZE, DISCOVER):
            result = members(members(response.raw).get("result", b""))
            info = result.get("serverInfo") or members(result.get("_meta", b"")).get(SERVER_INFO, b"")
            about = members(info)
            self.server = _string(about.get("name", b""))
            self.server_version = _string(about.get("version", b""))
            self.revision = response.revision
            self.is_done = self.server is not None


def _string(value: Slice) -> str | None:
    return string(value) or None


def finding_rows(capture_id: str, transcript: Transcript, began_ns: int) -> Iterator[Values]:
    """Yield a row for each finding."""
    for number, finding in enumerate(transcript.findings, 1):
        yield (
            capture_id,
            number,
            finding.rule,
            finding.severity.value,
            finding.culprit,
            finding.row,
            finding.rows,
            finding.number,
            began_ns + finding.at_ns - transcript.captures[0].shift_ns,
            finding.count,
            finding.what,
            finding.blame,
            finding.advice,
        )


def definition_rows(
    capture_id: str, transcript: Transcript, began_ns: int, payload: Callable[[bytes], str] | None
) -> Iterator[Values]:
    """Yield a row for each definition that was ever offered."""
    for offer in offers(transcript):
        current = {id(definition) for kind in offer.current.values() for definition in kind.values()}
        for definition in offer.ever.values():
            yield (
                capture_id,
                definition.kind.value,
                definition.name,
                definition.row,
                definition.message.number,
                began_ns + definition.message.at_ns - offer.capture_info.shift_ns,
                id(definition) in current,
                _digest(definition.raw),
                len(definition.raw),
                estimated_tokens(_read_by_models(definition)),
                None if payload is None else payload(definition.raw),
            )


def _digest(raw: bytes) -> str:
    """Return the digest of the canonical form of a definition; of its bytes, if it has none."""
    try:
        return sha256(canonical(value_of(raw))).hexdigest()
    except (ValueError, RecursionError):
        return sha256(raw).hexdigest()


def _read_by_models(definition: Definition) -> bytes:
    return definition_text(definition.raw) if definition.kind is DefinitionKind.TOOL else definition.raw


def transaction_rows(capture_id: str, info: CaptureInfo, began_ns: int) -> Iterator[Values]:
    """Yield a row for each HTTP transaction."""
    for transaction in info.transactions.values():
        request, response = transaction.request, transaction.response
        yield (
            capture_id,
            transaction.number,
            transaction.row or None,
            began_ns + transaction.at_ns - info.shift_ns,
            transaction.duration_ns,
            transaction.connection,
            transaction.scope.client or info.client,
            transaction.scope.session or None,
            transaction.method,
            transaction.target,
            transaction.status or None,
            0 if request is None else request.body_bytes,
            None if response is None else response.body_bytes,
            0 if response is None else response.events,
            transaction.ended_by or None,
        )


def model_call_row(
    capture_id: str, row: ModelCall, info: CaptureInfo, began_ns: int, payload: Callable[[bytes], str] | None
) -> Values:
    """Return the row of a model call."""
    prompt, answer = row.prompt, row.answer
    usage = None if answer is None else answer.usage
    return (
        capture_id,
        row.row,
        row.number,
        began_ns + row.at_ns - info.shift_ns,
        row.duration_ns,
        row.until_first_ns,
        info.client_of(row),
        row.api,
        row.model or None,
        None if answer is None else answer.model or None,
        row.outcome.value,
        row.transaction.status or None,
        None if answer is None else answer.finish or None,
        None if usage is None else usage.input_tokens,
        None if usage is None else usage.output_tokens,
        None if usage is None else usage.cached_tokens,
        None if usage is None else usage.reasoning_tokens,
        len(prompt.turns),
        len(prompt.offers),
        () if answer is None else tuple(use.name for use in answer.turn.uses),
        len(row.payload),
        None if payload is None else payload(row.payload),
    )


def capture_row(capture_id: str, file: str, size_bytes: int, transcript: Transcript, peers: Peers, calls: int) -> Values:
    """Return the row of a capture that could be read, as far as it could."""
    info = transcript.captures[0] if transcript.captures else CaptureInfo(0)
    header, exit = info.header, info.exit
    tapped: dict[str, Any] = {} if header is None else header.tapped
    began_ns = None if header is None else header.wall_ns
    return (
        capture_id,
        file,
        header.label or None if header is not None else None,
        _word(tapped.get("transport")),
        "model" if info.is_model else "mcp",
        began_ns,
        None if began_ns is None else began_ns + info.last_ns,
        info.last_ns,
        info.client,
        peers.client_version,
        peers.server or info.server,
        peers.server_version,
        peers.revision,
        _command(tapped),
        size_bytes,
        info.messages,
        calls,
        len(transcript.findings),
        info.gaps,
        info.damages,
        info.unkept,
        None if exit is None else exit.code,
        None if exit is None or exit.signal is None else str(exit.signal),
        info.now_ns is not None,
        info.complete,
        None,
        None if header is None else header.mcpspy_version or None,
    )


def unreadable_capture_row(capture_id: str, file: str, size_bytes: int, problem: str) -> Values:
    """Return the row of a file of which nothing could be read."""
    unknown = (None,) * 12
    return (capture_id, file, *unknown, size_bytes, 0, 0, 0, 0, 0, 0, None, None, False, False, problem, None)


def _command(tapped: dict[str, Any]) -> str | None:
    argv = tapped.get("argv")
    if isinstance(argv, list):
        return join(map(str, argv))
    return _word(tapped.get("url"))


def _word(value: Any) -> str | None:
    return value if isinstance(value, str) else None


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

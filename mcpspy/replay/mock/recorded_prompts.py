"""Recorded prompts: the requests and responses of captures of a model API, prepared for a mock of that API.

Each request becomes an `Exchange` in which the method is the API's name and the params are the body, so that the matcher of MCP finds
prompts too. Beside them: the replies with their delays, the API's errors for a miss, and the base URLs for clients.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias

from ...records import CLIENT, SERVER
from ...transcript.http.head import EVENT_STREAM, Head
from ...transcript.http.transaction import Stream, Transaction
from ...transcript.llm.apis import api_of
from ...transcript.llm.model_call import METHODS, ModelCall
from ...transcript.message import Kind, Message
from ...transcript.model import CaptureInfo, Exchange, Transcript
from ...wire.encodings import Decompressor
from ...wire.sse import SseEvents
from ..json_values import UnrepresentableValue, read
from .http.answer import Fields, playable_fields
from .http.exchanges import path_of, whole_body

if TYPE_CHECKING:
    from .miss import Miss

Ends: TypeAlias = Literal["whole", "broken"]


class ReplyPart(NamedTuple):
    """A part of a body, and how long after the request it came: an event, or the whole body."""

    delay_ns: int
    data: bytes


class PromptReply(NamedTuple):
    """A recorded response, whose head came `head_ns` after the request. The `parts` of a stream of events are the events.

    `ends` says whether it was `whole` or `broken`, by either side. A `status` of 0: the server closed the connection without a
    response.
    """

    status: int
    reason: str
    fields: Fields
    parts: Sequence[ReplyPart]
    is_stream: bool
    ends: Ends
    head_ns: int


class RecordedPrompt(NamedTuple):
    """One request to a model API, and its response. `unplayable` says why the response cannot be played."""

    exchange: Exchange
    transaction: Transaction
    capture: CaptureInfo
    unplayable: str = ""

    @property
    def reply(self) -> PromptReply:
        """The response, read anew at each access. Only if it is not `unplayable`."""
        return _reply(self.transaction, self.exchange.at_ns, self.capture.shift_ns)


def recorded_prompts(transcript: Transcript) -> list[RecordedPrompt]:
    """List the requests in captures of a model API, in the order in which they came. The transcript has to keep frames."""
    rows = {id(row.transaction): row.row for row in transcript.rows if isinstance(row, ModelCall)}
    prompts = (
        _recorded_prompt(transaction, capture, rows.get(id(transaction), transaction.row))
        for capture in transcript.captures
        if capture.is_model
        for transaction in capture.transactions.values()
        if transaction.response is None or not transaction.response.injected
    )
    return sorted(prompts, key=lambda prompt: prompt.exchange.at_ns)


def prompt_exchange(head: Head, body: bytes, *, row: int = 0, at_ns: int = 0, capture: int = 0) -> Exchange:
    """Make an exchange of a request to the API: its method is `chat.completions`, or `GET /v1/models`, its target the model."""
    api = api_of(head, body)
    params = body.strip()
    value = read(params) if params else {}
    if isinstance(value, UnrepresentableValue):
        params = json.dumps(body.decode("utf-8", "replace")).encode()
    method = f"{head.method} {head.target}" if api is None else METHODS[api]
    raw = b'{"jsonrpc":"2.0","id":%d,"method":%b,"params":%b}' % (row, json.dumps(method).encode(), params or b"{}")
    request = Message(
        capture=capture,
        number=0,
        stream=0,
        sender=CLIENT,
        at_ns=at_ns,
        first_ns=at_ns,
        kind=Kind.REQUEST,
        payload=raw,
        id=str(row),
        method=method,
        target=None if api is None else _model(value),
    )
    return Exchange(row=row, request=request)


def _model(body: Any) -> str | None:
    model = body.get("model") if isinstance(body, dict) else None
    return model if isinstance(model, str) else None


def _recorded_prompt(transaction: Transaction, capture: CaptureInfo, row: int) -> RecordedPrompt:
    request = transaction.request
    body = b"" if request is None else whole_body(request, request.head)
    at_ns = transaction.at_ns if request is None or request.last_ns is None else request.last_ns
    head = Head(f"{transaction.method} {transaction.target}") if request is None else request.head
    exchange = prompt_exchange(head, body or b"", row=row, at_ns=at_ns, capture=transaction.capture)
    return RecordedPrompt(exchange, transaction, capture, _why_unplayable(transaction))


def _why_unplayable(transaction: Transaction) -> str:
    """Say why a response cannot be played; nothing if it can."""
    response = transaction.response
    if response is None:
        return "" if transaction.left_by == SERVER else "no answer to it was recorded"
    return "its answer was not kept" if whole_body(response, response.head) is None else ""


def _reply(transaction: Transaction, request_ns: int, shift_ns: int) -> PromptReply:
    response = transaction.response
    if response is None:
        closed_ns = 0 if transaction.left_ns is None else transaction.left_ns - request_ns
        return PromptReply(0, "", (), (), is_stream=False, ends="broken", head_ns=max(0, closed_ns))
    head, close = response.head, response.close
    is_stream = head.media_type == EVENT_STREAM
    parts = _events(response, request_ns, shift_ns) if is_stream else _body(response, request_ns)
    ends: Ends = "whole" if close is not None and close.how == "eof" else "broken"
    head_ns = max(0, response.at_ns - request_ns)
    return PromptReply(head.status, head.reason, playable_fields(head), list(parts), is_stream, ends, head_ns)


def _body(response: Stream, request_ns: int) -> Iterator[ReplyPart]:
    data = whole_body(response, response.head)
    if data:
        yield ReplyPart(max(0, (response.last_ns or response.at_ns) - request_ns), data)


def _events(response: Stream, request_ns: int, shift_ns: int) -> Iterator[ReplyPart]:
    """Yield the decompressed events of a stream, each at the time of its last byte."""
    pieces: list[bytes] = []
    for at_ns, piece, continues in _pieces(response):
        pieces.append(piece)
        if not continues:
            yield ReplyPart(max(0, at_ns + shift_ns - request_ns), b"".join(pieces))
            pieces.clear()
    if pieces:
        yield ReplyPart(max(0, (response.last_ns or response.at_ns) - request_ns), b"".join(pieces))


def _pieces(response: Stream) -> Iterator[tuple[int, bytes, bool]]:
    """Yield events, or parts of them: the time on the capture's clock, the bytes, and whether more of the event follows."""
    if response.framing == "sse":
        yield from ((frame.at_ns, frame.data, frame.part) for frame in response.kept)
        return
    decompressor, events, at_ns = Decompressor(response.head.get("content-encoding")), SseEvents(), 0
    for frame in response.kept:
        at_ns = frame.at_ns
        yield from _timed(at_ns, events.feed(decompressor.feed(frame.data)), events)
    yield from _timed(at_ns, events.feed(decompressor.close()), events)
    yield from _timed(at_ns, events.close(), events)


def _timed(at_ns: int, pieces: Sequence[bytes], events: SseEvents) -> Iterator[tuple[int, bytes, bool]]:
    last = len(pieces) - 1
    yield from ((at_ns, piece, events.is_part and index == last) for index, piece in enumerate(pieces))


# Delays


AS_RECORDED: Final = 1.0
RETRY_AFTER: Final = "retry-after"
RETRY_AFTER_MS: Final = "retry-after-ms"
"""The official clients look at this field first; it is in no standard."""

SHORTEST_MS: Final = 1
"""Clients ignore 0, and wait as long as they like."""


def scaled_delay_ns(delay_ns: int, speed: float) -> int:
    """Return the delay at this speed; 0 at the speed 0."""
    return int(delay_ns / speed) if speed else 0


def with_scaled_retry(fields: Fields, speed: float) -> Iterator[tuple[str, str]]:
    """Yield header fields, with the time to wait before a retry at this speed."""
    if speed == AS_RECORDED:
        yield from fields
        return
    wait_ms: int | None = None
    for name, value in fields:
        factor = {RETRY_AFTER: 1000, RETRY_AFTER_MS: 1}.get(name.lower())
        number = _number(value) if factor else None
        if factor is None or number is None:
            yield name, value
            continue
        scaled_ms = max(SHORTEST_MS, round(scaled_delay_ns(int(number * factor * 1e6), speed) / 1e6))
        wait_ms = scaled_ms if wait_ms is None or factor == 1 else wait_ms
        if factor == 1000:
            yield name, str(scaled_ms // 1000)
    if wait_ms is not None:
        yield RETRY_AFTER_MS, str(wait_ms)


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:  # a date
        return None
    return number if 0 <= number < 1e9 else None


# Misses, in the words of the API


NOT_FOUND: Final = 404
BAD_REQUEST: Final = 400
"""The official clients do not retry on these statuses."""

CODE: Final = "never_recorded"
"""The `code` of OpenAI's errors. Everything else is in the member `mcpspy`, as in the data of a miss of MCP."""


class ApiError(NamedTuple):
    """An error of an API: the status, and the body."""

    status: int
    body: bytes


def api_error(miss: Miss, *, is_anthropic: bool) -> ApiError:
    """Return the error that answers a miss."""
    return worded_api_error(f"mcpspy mock: {miss.sentence}", miss, is_anthropic=is_anthropic)


def worded_api_error(text: str, miss: Miss, *, is_anthropic: bool) -> ApiError:
    """Return the error that answers a miss, with this text."""
    status = NOT_FOUND if miss.is_unknown else BAD_REQUEST
    kind = "not_found_error" if miss.is_unknown and is_anthropic else "invalid_request_error"
    body: dict[str, Any]
    if is_anthropic:
        body = {"type": "error", "error": {"type": kind, "message": text}, "mcpspy": miss.data}
    else:
        paths = [] if miss.differences is None else [difference.path for difference in miss.differences.listed]
        error = {"message": text, "type": kind, "param": next(iter(paths), None), "code": CODE, "mcpspy": miss.data}
        body = {"error": error}
    return ApiError(status, json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "backslashreplace"))


# Base URLs


OPENAI: Final = "OPENAI_BASE_URL"
ANTHROPIC: Final = "ANTHROPIC_BASE_URL"

_VARIABLES: Final = (
    ("/chat/completions", OPENAI),
    ("/responses", OPENAI),
    ("/v1/messages", ANTHROPIC),
)
"""The path that follows a base URL, and the variable in which the official clients look for that URL."""


def base_url_variables(prompts: Iterable[RecordedPrompt], origin: str) -> list[tuple[str, str]]:
    """Return the variables that point clients to a mock, each with its URL: the recorded base with the mock's `origin`.

    Of several bases of one API it is the most frequent.
    """
    counts: dict[str, Counter[str]] = {}
    for prompt in prompts:
        path = path_of(prompt.transaction.target)
        for end, variable in _VARIABLES:
            if path.endswith(end):
                counts.setdefault(variable, Counter())[path.removesuffix(end)] += 1
    return [(variable, f"{origin}{bases.most_common(1)[0][0]}") for variable, bases in sorted(counts.items(), reverse=True)]

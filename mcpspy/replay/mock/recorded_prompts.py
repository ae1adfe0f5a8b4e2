"""The model's leg of a recording, made ready to be asked: each request as a question, and what the API answered as a reply.

A question is an `Exchange`, made up, so that the matcher of MCP finds prompts too: its method is the API's name, its params are the
body. Refuses to judge which of them a client is to get.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias

from ...records import CLIENT, SERVER
from ...transcript.http.head import EVENT_STREAM, Head
from ...transcript.llm.apis import api_of
from ...transcript.llm.call import METHODS, ModelCall
from ...transcript.message import Kind, Message
from ...transcript.model import Exchange
from ...wire.decompression import Decompressor
from ...wire.encodings import decoded
from ...wire.sse import SseEvents
from ..json.canonical import UnrepresentableValue, read
from .http.answer import playable_fields
from .http.exchanges import path_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ...transcript.http.transaction import Stream, Transaction
    from ...transcript.model import CaptureInfo, Transcript
    from .http.answer import Fields
    from .miss import Miss


Ends: TypeAlias = Literal["whole", "broken"]


class ReplyPart(NamedTuple):
    """What of a body is said so long after the request had come: an event, or all there is."""

    delay_ns: int
    data: bytes


class PromptReply(NamedTuple):
    """A recorded response, whose head came `head_ns` after the request. Of a stream of events `parts` are these.

    `ends` says how: `whole`, or `broken`, by whomever. With a `status` of 0 there was none: the server closed the connection.
    """

    status: int
    reason: str
    fields: Fields
    parts: Sequence[ReplyPart]
    is_stream: bool
    ends: Ends
    head_ns: int


class RecordedPrompt(NamedTuple):
    """One request of the model's leg: as a question, and the response to it. `unknown` says why there is none to be played."""

    exchange: Exchange
    transaction: Transaction
    source: CaptureInfo
    unknown: str = ""

    @property
    def reply(self) -> PromptReply:
        """The response, read anew at each call. Only where it is not `unknown`."""
        return _reply(self.transaction, self.exchange.at_ns, self.source.shift_ns)


def recorded_prompts(transcript: Transcript) -> list[RecordedPrompt]:
    """The requests of the captures of a model's leg, in the order in which they came. Best of a transcript that keeps frames."""
    rows = {id(one.transaction): one.row for one in transcript.rows if isinstance(one, ModelCall)}
    found = (
        _recorded(one, source, rows.get(id(one), one.row))
        for source in transcript.captures
        if source.is_model
        for one in source.transactions.values()
    )
    said = (one for one in found if one.transaction.response is None or not one.transaction.response.injected)
    return sorted(said, key=lambda one: one.exchange.at_ns)


def prompt_exchange(head: Head, body: bytes, *, row: int = 0, at_ns: int = 0, capture: int = 0) -> Exchange:
    """A request to the API as a question: its method is `chat.completions`, or `GET /v1/models`, its target the model."""
    api = api_of(head, body)
    params = body.strip()
    held = read(params) if params else {}
    if isinstance(held, UnrepresentableValue):
        params = json.dumps(body.decode("utf-8", "replace")).encode()
    name = f"{head.method} {head.target}" if api is None else METHODS[api]
    raw = b'{"jsonrpc":"2.0","id":%d,"method":%b,"params":%b}' % (row, json.dumps(name).encode(), params or b"{}")
    asked = Message(
        capture=capture,
        number=0,
        stream=0,
        sender=CLIENT,
        at_ns=at_ns,
        first_ns=at_ns,
        kind=Kind.REQUEST,
        raw=raw,
        id=str(row),
        method=name,
        target=None if api is None else _model(held),
    )
    return Exchange(row=row, request=asked)


def _model(body: Any) -> str | None:
    model = body.get("model") if isinstance(body, dict) else None
    return model if isinstance(model, str) else None


def _recorded(transaction: Transaction, source: CaptureInfo, row: int) -> RecordedPrompt:
    request = transaction.request
    data = b"" if request is None else _bytes(request)
    at_ns = transaction.at_ns if request is None or request.last_ns is None else request.last_ns
    head = Head(f"{transaction.method} {transaction.target}") if request is None else request.head
    asked = prompt_exchange(head, data or b"", row=row, at_ns=at_ns, capture=transaction.capture)
    return RecordedPrompt(asked, transaction, source, _unknown(transaction))


def _unknown(transaction: Transaction) -> str:
    """Why a response cannot be played; empty if it can."""
    response = transaction.response
    if response is None:
        return "" if transaction.left_by == SERVER else "no answer to it was recorded"
    return "its answer was not kept" if _bytes(response) is None else ""


def _bytes(stream: Stream) -> bytes | None:
    """A body with its content encoding taken off; None if not all of it was kept, or if it cannot be read."""
    frames = stream.kept
    if (stream.body_bytes and not frames) or any(frame.length and not frame.data for frame in frames):
        return None
    data = b"".join(frame.data for frame in frames)
    encoding = stream.head.get("content-encoding")
    if not encoding or not data:
        return data
    try:
        return decoded(data, encoding.encode("utf-8", "replace"))
    except ValueError:
        return None


def _reply(transaction: Transaction, asked_ns: int, shift_ns: int) -> PromptReply:
    response = transaction.response
    if response is None:
        gone_ns = 0 if transaction.left_ns is None else transaction.left_ns - asked_ns
        return PromptReply(0, "", (), (), is_stream=False, ends="broken", head_ns=max(0, gone_ns))
    head, close = response.head, response.close
    is_stream = head.media_type == EVENT_STREAM
    parts = _events(response, asked_ns, shift_ns) if is_stream else _body(response, asked_ns)
    ends: Ends = "whole" if close is not None and close.how == "eof" else "broken"
    head_ns = max(0, response.at_ns - asked_ns)
    return PromptReply(head.status, head.reason, playable_fields(head), list(parts), is_stream, ends, head_ns)


def _body(response: Stream, asked_ns: int) -> Iterator[ReplyPart]:
    data = _bytes(response)
    if data:
        yield ReplyPart(max(0, (response.last_ns or response.at_ns) - asked_ns), data)


def _events(response: Stream, asked_ns: int, shift_ns: int) -> Iterator[ReplyPart]:
    """The events of a stream, plain, each when its last byte had come."""
    held: list[bytes] = []
    for at_ns, piece, is_part in _pieces(response):
        held.append(piece)
        if not is_part:
            yield ReplyPart(max(0, at_ns + shift_ns - asked_ns), b"".join(held))
            held.clear()
    if held:
        yield ReplyPart(max(0, (response.last_ns or response.at_ns) - asked_ns), b"".join(held))


def _pieces(response: Stream) -> Iterator[tuple[int, bytes, bool]]:
    """Events, or parts of one, with the time on the capture's clock, and whether more of the same one follows."""
    if response.opened.framing == "sse":
        yield from ((frame.at_ns, frame.data, frame.part) for frame in response.kept)
        return
    unpacking, events, at_ns = Decompressor(response.head.get("content-encoding")), SseEvents(), 0
    for frame in response.kept:
        at_ns = frame.at_ns
        yield from _marked(at_ns, events.feed(unpacking.feed(frame.data)), events)
    yield from _marked(at_ns, events.feed(unpacking.close()), events)
    yield from _marked(at_ns, events.close(), events)


def _marked(at_ns: int, pieces: Sequence[bytes], events: SseEvents) -> Iterator[tuple[int, bytes, bool]]:
    last = len(pieces) - 1
    yield from ((at_ns, piece, events.is_part and place == last) for place, piece in enumerate(pieces))


OPENAI: Final = "OPENAI_BASE_URL"
ANTHROPIC: Final = "ANTHROPIC_BASE_URL"

_VARIABLES: Final = (
    ("/chat/completions", OPENAI),
    ("/responses", OPENAI),
    ("/v1/messages", ANTHROPIC),
)
"""What follows on a base in a path, and the variable from which the official clients take it."""


def base_url_variables(recorded: Iterable[RecordedPrompt], origin: str) -> list[tuple[str, str]]:
    """The variables to set for what was asked, each with its URL; of several bases of one API the most frequent."""
    found: dict[str, Counter[str]] = {}
    for one in recorded:
        for variable, base in _named(path_of(one.transaction.target)):
            found.setdefault(variable, Counter())[base] += 1
    return [(variable, f"{origin}{counts.most_common(1)[0][0]}") for variable, counts in sorted(found.items(), reverse=True)]


def _named(path: str) -> Iterator[tuple[str, str]]:
    yield from ((variable, path.removesuffix(end)) for end, variable in _VARIABLES if path.endswith(end))


NOT_FOUND: Final = 404
BAD_REQUEST: Final = 400

CODE: Final = "never_recorded"
"""What OpenAI's errors say in `code`; what else there is to tell is in `mcpspy`, as in the data of MCP's misses."""


class ApiError(NamedTuple):
    """An error of an API: the status, and the body."""

    status: int
    body: bytes


def api_error(miss: Miss, *, is_anthropic: bool) -> ApiError:
    """The error that answers a miss."""
    return worded_api_error(f"mcpspy mock: {miss.sentence}", miss, is_anthropic=is_anthropic)


def worded_api_error(text: str, miss: Miss, *, is_anthropic: bool) -> ApiError:
    """The same with other words."""
    status = NOT_FOUND if miss.is_unknown else BAD_REQUEST
    kind = "not_found_error" if miss.is_unknown and is_anthropic else "invalid_request_error"
    if is_anthropic:
        body = {"type": "error", "error": {"type": kind, "message": text}, "mcpspy": miss.data}
    else:
        places = [] if miss.differences is None else [one.path for one in miss.differences.listed]
        told = {"message": text, "type": kind, "param": next(iter(places), None), "code": CODE, "mcpspy": miss.data}
        body = {"error": told}
    return ApiError(status, json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "backslashreplace"))


AS_RECORDED: Final = 1.0
RETRY_AFTER: Final = "retry-after"
RETRY_AFTER_MS: Final = "retry-after-ms"
"""The official clients ask for this field first; it is in no standard."""

SHORTEST_MS: Final = 1
"""Clients take 0 for no answer, and wait as long as they please."""


def scaled_delay_ns(delay_ns: int, speed: float) -> int:
    """So long after the question is said what was recorded `delay_ns` after it; at once with a speed of 0."""
    return int(delay_ns / speed) if speed else 0


def with_scaled_retry(fields: Fields, speed: float) -> Iterator[tuple[str, str]]:
    """Header fields, with the time after which a client is to try again at the same pace as everything else."""
    if speed == AS_RECORDED:
        yield from fields
        return
    wait_ms: int | None = None
    for name, value in fields:
        factor = {RETRY_AFTER: 1000, RETRY_AFTER_MS: 1}.get(name.lower())
        seconds = _number(value) if factor else None
        if factor is None or seconds is None:
            yield name, value
            continue
        due_ms = max(SHORTEST_MS, round(scaled_delay_ns(int(seconds * factor * 1e6), speed) / 1e6))
        wait_ms = due_ms if wait_ms is None or factor == 1 else wait_ms
        if factor == 1000:
            yield name, str(due_ms // 1000)
    if wait_ms is not None:
        yield RETRY_AFTER_MS, str(wait_ms)


def _number(text: str) -> float | None:
    try:
        found = float(text)
    except ValueError:  # a date
        return None
    return found if 0 <= found < 1e9 else None

"""Recorded HTTP transactions as replay uses them: the request with its messages, and the response as the client saw it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Final

from ....records import CLIENT, SERVER, Frame
from ....transcript.http.head import EVENT_STREAM, SESSION, Head, read_head
from ....transcript.http.transaction import ScopeKind, Stream, Transaction
from ....transcript.message import CALLED, NOT_PASSED_ON, Message
from ....transcript.model import HTTP_REDIRECTS, Exchange, Kind, Transcript
from ....wire.encodings import decode_body
from ..content import params_value
from ..match_key import MatchRules, match_key
from ..replies import is_served
from .answer import HttpAnswer, playable_fields

ANSWERED_ELSEWHERE: Final = (202, 204)
"""Statuses without an answer: it comes on another stream."""


class RecordedTransaction:
    """One transaction: the client's `messages` in it, and the `exchanges` they began; `host` is the server's name in the request.

    The response is read anew at each access, since most are never needed.
    """

    __slots__ = ("exchanges", "host", "is_authorized", "messages", "method", "path", "session", "target", "transaction")

    def __init__(self, transaction: Transaction, messages: list[Message], exchanges: list[Exchange]) -> None:
        request = Head("") if transaction.request is None else transaction.request.head
        self.transaction = transaction
        self.messages = messages
        self.exchanges = exchanges
        self.method = transaction.method
        self.target = transaction.target
        self.path = path_of(transaction.target)
        self.host = request.get("host")
        self.session = request.get(SESSION)
        self.is_authorized = bool(request.get("authorization"))

    @property
    def head(self) -> Head:
        """The head of the response as the client got it; empty without a response."""
        response = self.transaction.response
        return Head("") if response is None else received_head(response)

    @property
    def answer(self) -> HttpAnswer:
        """The response as the client got it."""
        head, response = self.head, self.transaction.response
        body = b"" if response is None else whole_body(response, head)
        return HttpAnswer(self.status, head.reason, playable_fields(head), body or b"")

    @property
    def is_kept(self) -> bool:
        """True if the whole body is there."""
        response = self.transaction.response
        return response is not None and whole_body(response, self.head) is not None

    @property
    def status(self) -> int:
        """The status; 0 without a response."""
        return self.transaction.status

    @property
    def media_type(self) -> str:
        """The type of the request's body, without parameters; empty if the client named none."""
        return "" if self.transaction.request is None else self.transaction.request.head.media_type

    @property
    def is_stream(self) -> bool:
        """True if the response is a stream of events."""
        return self.head.media_type == EVENT_STREAM

    @property
    def is_mcp(self) -> bool:
        """True if it is certainly MCP: by its messages, its session or its stream."""
        return bool(self.messages or self.session or (self.method == "GET" and self.is_stream))

    @property
    def is_of_sse(self) -> bool:
        """True for HTTP+SSE: the stream that announces an endpoint, or a POST to that endpoint."""
        return self.transaction.scope.kind is ScopeKind.STREAM

    @property
    def is_refused_by_http(self) -> bool:
        """True if HTTP refused it, and no JSON-RPC message in the response says which request is meant."""
        return self.status >= HTTP_REDIRECTS and not any(map(is_served, self.exchanges))

    @property
    def is_answered_by_http(self) -> bool:
        """True if HTTP refused it, or the server answered with a whole body in which no message answers, as with a page."""
        return self.is_refused_by_http or self._is_without_answer

    @property
    def _is_without_answer(self) -> bool:
        transaction, close = self.transaction, None if self.transaction.response is None else self.transaction.response.close
        is_over = close is not None and (close.by, close.how) == (SERVER, "eof")
        is_mute = not self.is_stream or not transaction.response_messages
        is_silent = all(len(exchange.messages) == 1 for exchange in self.exchanges)
        is_mute = is_mute and not self._is_withheld
        is_due = bool(self.exchanges) and (self.status not in ANSWERED_ELSEWHERE or is_silent) and not self.is_of_sse
        return is_over and is_mute and is_due and all(exchange.response is None for exchange in self.exchanges) and self.is_kept

    @property
    def _is_withheld(self) -> bool:
        """True if an intercept kept a body from the client, which got nothing then, not even a head."""
        response = self.transaction.response
        return response is not None and not self.is_stream and any(frame.forwarded == b"" for frame in response.kept)

    @property
    def is_of_unknown_session(self) -> bool:
        """True if its response was the first to say that the session is unknown."""
        return self.transaction.scope.unknown_since == self.transaction.number

    @property
    def is_challenged(self) -> bool:
        """True if the server refused it because it has no Authorization field."""
        response = self.transaction.response
        return self.status == 401 and not self.is_authorized and response is not None and not response.injected


def recorded_transactions(transcript: Transcript) -> list[RecordedTransaction]:
    """List the transactions of a transcript that keeps frames, capture after capture.

    Responses that a tap made itself, as a 502, are left out: the server never sent them. Those of intercepts are kept. What
    `mcpspy call` sent is left out too.
    """
    messages: defaultdict[int, list[Message]] = defaultdict(list)
    for message in transcript.messages:
        if message.sender == CLIENT and message.kind is not Kind.MALFORMED:
            transaction = transcript.captures[message.capture].transaction_of(message.stream)
            messages[id(transaction)].append(message)
    exchanges: defaultdict[int, list[Exchange]] = defaultdict(list)
    for exchange in transcript.exchanges:
        if exchange.sender == CLIENT and exchange.transaction is not None:
            exchanges[id(exchange.transaction)].append(exchange)
    in_order = (transaction for capture in transcript.captures for _, transaction in sorted(capture.transactions.items()))
    return [
        RecordedTransaction(transaction, messages[id(transaction)], exchanges[id(transaction)])
        for transaction in in_order
        if not any(CALLED in message.flaws for message in messages[id(transaction)])
        and (
            transaction.response is None
            or not transaction.response.injected
            or any(NOT_PASSED_ON in message.flaws for message in messages[id(transaction)])
        )
    ]


def path_of(target: str) -> str:
    """Return the path of a request target."""
    return target.partition("?")[0]


def http_match_key(message: Message | None, rules: MatchRules) -> str:
    """Return the match key of a message in an HTTP request; one key for all answers to the server, none without a message."""
    if message is None:
        return ""
    if message.kind not in (Kind.REQUEST, Kind.NOTIFICATION):
        return "an answer"
    method = message.method or ""
    return match_key(method, rules.counted(method, params_value(message)))


def received_head(stream: Stream) -> Head:
    """Return the head as its receiver got it."""
    return stream.head if stream.forwarded is None else read_head(stream.forwarded)


def whole_body(stream: Stream, head: Head) -> bytes | None:
    """Return a body as its receiver got it, without the content encoding that `head` names.

    None if a part of it was not kept, or it cannot be read.
    """
    frames = stream.kept
    if (stream.body_bytes and not frames) or any(frame.length and not frame.data for frame in frames):
        return None
    data = b"".join(_received(frames))
    encoding = head.get("content-encoding")
    if not encoding or not data:
        return data
    try:
        return decode_body(data, encoding.encode("utf-8", "replace"))
    except ValueError:
        return None


def _received(frames: Iterable[Frame]) -> Iterator[bytes]:
    """Yield the bytes that were sent on. What was sent in place of a frame in parts is at its last part."""
    parts: list[bytes] = []
    for frame in frames:
        parts.append(frame.data)
        if not frame.part:
            yield from parts if frame.forwarded is None else (frame.forwarded,)
            parts.clear()
    yield from parts

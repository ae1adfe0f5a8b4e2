"""Recorded HTTP transactions as replay uses them: the request with its messages, and the response as the client saw it."""

from __future__ import annotations

from collections import defaultdict
from typing import Final

from ....records import CLIENT, SERVER
from ....transcript.http.head import EVENT_STREAM, SESSION, Head, read_head
from ....transcript.http.transaction import ScopeKind, Stream, Transaction
from ....transcript.message import Message
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
        if response is None:
            return Head("")
        return read_head(response.opened.head if response.opened.forwarded is None else response.opened.forwarded)

    @property
    def answer(self) -> HttpAnswer:
        """The response as the client got it."""
        head, response = self.head, self.transaction.response
        body = b"" if response is None else whole_body(response, head, as_forwarded=True)
        return HttpAnswer(self.status, head.reason, playable_fields(head), body or b"")

    @property
    def is_kept(self) -> bool:
        """True if the whole body is there."""
        response = self.transaction.response
        return response is not None and whole_body(response, self.head, as_forwarded=True) is not None

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
        is_due = bool(self.exchanges) and (self.status not in ANSWERED_ELSEWHERE or is_silent) and not self.is_of_sse
        return is_over and is_mute and is_due and all(exchange.response is None for exchange in self.exchanges) and self.is_kept

    @property
    def is_of_unknown_session(self) -> bool:
        """True if its response was the first to say that the session is unknown."""
        return self.transaction.scope.unknown_since == self.transaction.number

    @property
    def is_challenged(self) -> bool:
        """True if it was refused because it has no Authorization field."""
        return self.status == 401 and not self.is_authorized


def recorded_transactions(transcript: Transcript) -> list[RecordedTransaction]:
    """List the transactions of a transcript that keeps frames, capture after capture.

    Responses that a tap made itself, as a 502, are left out: the server never sent them.
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
        if transaction.response is None or not transaction.response.injected
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


def whole_body(stream: Stream, head: Head, *, as_forwarded: bool = False) -> bytes | None:
    """Return a body without its content encoding; None if a part of it was not kept, or it cannot be read.

    With `as_forwarded` it is the body that the tap forwarded, where that is another.
    """
    frames = stream.kept
    if (stream.body_bytes and not frames) or any(frame.length and not frame.data for frame in frames):
        return None
    data = b"".join(frame.forwarded if as_forwarded and frame.forwarded is not None else frame.data for frame in frames)
    encoding = head.get("content-encoding")
    if not encoding or not data:
        return data
    try:
        return decode_body(data, encoding.encode("utf-8", "replace"))
    except ValueError:
        return None

"""The transactions of a recording, as replay goes by them: what was asked, and what HTTP said to it, as the client saw it.

Refuses to judge which of them another client is to get.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from ....records import CLIENT
from ....transcript.http.head import EVENT_STREAM, SESSION, Head, read_head
from ....transcript.http.transaction import ScopeKind
from ....transcript.model import HTTP_REDIRECTS, Kind
from ....wire.encodings import decoded
from ..content import params_value
from ..match_key import match_key
from ..replies import is_served
from .answer import HttpAnswer, playable_fields

if TYPE_CHECKING:
    from ....transcript.http.transaction import Stream, Transaction
    from ....transcript.message import Message
    from ....transcript.model import Exchange, Transcript
    from ..match_key import MatchRules


class RecordedTransaction:
    """One transaction: `messages` that its client said, `exchanges` that it began with them; `host` is as what it knew the server.

    The response is read anew each time that it is asked for, since of most transactions nobody asks.
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
        """That of the response as the client got it; without one, an empty one."""
        response = self.transaction.response
        if response is None:
            return Head("")
        return read_head(response.opened.head if response.opened.forwarded is None else response.opened.forwarded)

    @property
    def answer(self) -> HttpAnswer:
        """The response as the client got it; that of a stream without a body."""
        head, response = self.head, self.transaction.response
        body = b"" if response is None or head.media_type == EVENT_STREAM else _body(response, head)
        return HttpAnswer(self.status, head.reason, playable_fields(head), body or b"")

    @property
    def is_kept(self) -> bool:
        """Whether nothing of the body is missing."""
        response = self.transaction.response
        return response is not None and _body(response, self.head) is not None

    @property
    def status(self) -> int:
        """0 where no response came."""
        return self.transaction.status

    @property
    def is_stream(self) -> bool:
        """Whether it was answered by a stream of events."""
        return self.head.media_type == EVENT_STREAM

    @property
    def is_mcp(self) -> bool:
        """Whether it is of MCP beyond doubt: by its messages, its session or its stream."""
        return bool(self.messages or self.session or (self.method == "GET" and self.is_stream))

    @property
    def is_of_sse(self) -> bool:
        """Whether it is of HTTP+SSE: the stream that announces an endpoint, or what is POSTed there."""
        return self.transaction.scope.kind is ScopeKind.STREAM

    @property
    def is_refused_alone(self) -> bool:
        """Whether HTTP refused it, without a word of JSON-RPC that says what of."""
        return self.status >= HTTP_REDIRECTS and not any(map(is_served, self.exchanges))

    @property
    def is_lost(self) -> bool:
        """Whether it was the first to be told that its session is no more."""
        return self.transaction.scope.unknown_since == self.transaction.number

    @property
    def is_challenged(self) -> bool:
        """Whether it was refused for want of what says who asks."""
        return self.status == 401 and not self.is_authorized


def recorded_transactions(transcript: Transcript) -> list[RecordedTransaction]:
    """The transactions of a transcript, those of several captures one after the other. Best of one that keeps frames.

    What a tap answered in its own name, as a 502, the server never said: it is left out.
    """
    messages: defaultdict[int, list[Message]] = defaultdict(list)
    for message in transcript.messages:
        if message.sender == CLIENT and message.kind is not Kind.MALFORMED:
            transaction = transcript.captures[message.capture].transaction_of(message.stream)
            messages[id(transaction)].append(message)
    exchanges: defaultdict[int, list[Exchange]] = defaultdict(list)
    for one in transcript.exchanges:
        if one.sender == CLIENT and one.transaction is not None:
            exchanges[id(one.transaction)].append(one)
    every = (one for source in transcript.captures for _, one in sorted(source.transactions.items()))
    said = (one for one in every if one.response is None or not one.response.injected)
    return [RecordedTransaction(one, messages[id(one)], exchanges[id(one)]) for one in said]


def path_of(target: str) -> str:
    """The path of a request target."""
    return target.partition("?")[0]


def http_match_key(message: Message | None, asking: MatchRules) -> str:
    """What a request of HTTP asks in JSON-RPC: equal for equal questions, and one for all answers to what the server asked."""
    if message is None:
        return ""
    if message.kind not in (Kind.REQUEST, Kind.NOTIFICATION):
        return "an answer"
    method = message.method or ""
    return match_key(method, asking.counted(method, params_value(message)))


def _body(response: Stream, head: Head) -> bytes | None:
    """The body as the client read it; None if not all of it is there."""
    frames = response.kept
    if (response.body_bytes and not frames) or any(frame.length and not frame.data for frame in frames):
        return None
    data = b"".join(frame.data if frame.forwarded is None else frame.forwarded for frame in frames)
    encoding = head.get("content-encoding")
    if not encoding or not data:
        return data
    try:
        return decoded(data, encoding.encode("utf-8", "replace"))
    except ValueError:
        return None

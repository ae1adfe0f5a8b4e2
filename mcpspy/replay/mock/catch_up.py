"""Catch-up of a live server that takes over from a mock: sends it again what the client had sent, so that it knows as much.

A machine: `client_sent` and `mock_sent` take what passes before; from `begin` on, each answer of the live server brings the next
request. Requests of the live server are answered as the client answered the mock. Requests that the mock never answered are not
repeated, and nothing goes to the client, which has seen it all.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

from ...transcript.correlator import spellings
from ...transcript.mcp.codes import INTERNAL_ERROR
from ...transcript.mcp.methods import CANCELLED
from ...transcript.model import Kind
from ...wire.jsonrpc import cut
from .miss import error_line

if TYPE_CHECKING:
    from ...transcript.model import Message
    from ...wire.jsonrpc import Piece
    from .scheduled_send import ScheduledSend

UNKNOWN: Final = "mcpspy mock: nobody has asked this before, so there is no answer to repeat"


class CatchUp:
    """The messages of one client, without its handshake, and its answers."""

    __slots__ = ("_answered", "_answers", "_messages", "_questions", "_to_send", "_waits_for")

    def __init__(self) -> None:
        self._messages: list[Message] = []
        self._answered: set[str] = set()
        """The ids of the client's requests that the mock has answered."""
        self._questions: dict[str, str] = {}
        """The methods of the mock's requests, by id."""
        self._answers: dict[str, deque[tuple[str, bytes]]] = {}
        """By method, the client's answers to the mock's requests: the member's name and its value."""
        self._to_send: deque[Message] = deque()
        self._waits_for = ""

    def client_sent(self, message: Message) -> None:
        """Take a message that the client sent to the mock."""
        if message.kind in (Kind.RESULT, Kind.ERROR):
            method = self._questions.pop(message.id or "", None)
            piece = cut(message.raw)[0]
            if method is not None:
                self._answers.setdefault(method, deque()).append((piece.kind, bytes(piece.content)))
        elif message.kind is Kind.REQUEST or (message.kind is Kind.NOTIFICATION and message.method != CANCELLED):
            self._messages.append(message)

    def mock_sent(self, send: ScheduledSend) -> None:
        """Take what the mock sent to the client."""
        if send.answers:
            self._answered.add(send.state.id)
        elif send.data:
            piece = cut(send.data)[0]
            if piece.kind == "request" and piece.id is not None:
                self._questions[piece.id] = piece.method or ""

    @property
    def is_over(self) -> bool:
        """True if everything is sent again, and answered."""
        return not self._to_send and not self._waits_for

    def begin(self) -> list[bytes]:
        """Return what is sent first."""
        self._to_send.extend(
            message for message in self._messages if message.kind is Kind.NOTIFICATION or message.id in self._answered
        )
        return self._next()

    def server_sent(self, piece: Piece) -> list[bytes]:
        """Take a message of the live server; return what is sent next."""
        if piece.kind in ("result", "error") and self._waits_for in (piece.id, *spellings(piece.id or "")):
            return self._next()
        return [self._answer(piece)] if piece.kind == "request" else []

    def failed(self, id: str | None) -> list[bytes]:
        """Return what is sent next when the live server will not answer the request with this id."""
        return self._next() if id == self._waits_for else []

    def _next(self) -> list[bytes]:
        """Return the next request, and the notifications before it."""
        lines: list[bytes] = []
        self._waits_for = ""
        while self._to_send and not self._waits_for:
            message = self._to_send.popleft()
            lines.append(message.raw)
            if message.kind is Kind.REQUEST:
                self._waits_for = message.id or ""
        return lines

    def _answer(self, question: Piece) -> bytes:
        answers = self._answers.get(question.method or "")
        id = (question.id or "null").encode("utf-8", "surrogatepass")
        if not answers and question.method == "ping":
            return b'{"jsonrpc":"2.0","id":%b,"result":{}}' % id
        if not answers:
            return error_line(question.id, INTERNAL_ERROR, UNKNOWN, {"method": question.method}).rstrip(b"\n")
        name, value = answers.popleft()
        return b'{"jsonrpc":"2.0","id":%b,"%b":%b}' % (id, name.encode(), value)

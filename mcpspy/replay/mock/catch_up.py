"""What a client said to a mock before a live server took over, said again to that server, so that it knows what the client knows.

A machine: `heard` and `said` take what passes before; from `begin` on, each answer brings what is said next, one request at a time.
What the live server asks meanwhile is answered as the client answered the mock. Refuses to repeat what was not answered, and to hand
anything on to the client: it has heard all this.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

from ...transcript.correlate import spellings
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
    """Nothing of a session, at first. The handshake is somebody else's."""

    __slots__ = ("_answers", "_asked", "_is_answered", "_left", "_said", "_waits_for")

    def __init__(self) -> None:
        self._said: list[Message] = []
        self._is_answered: set[str] = set()
        """The ids of the client's requests that the mock has answered."""
        self._asked: dict[str, str] = {}
        """The methods of the mock's questions, by their ids."""
        self._answers: dict[str, deque[tuple[str, bytes]]] = {}
        """What the client answered to questions of each method: the member's name and its value."""
        self._left: deque[Message] = deque()
        self._waits_for = ""

    def heard(self, message: Message) -> None:
        """The client said this to the mock."""
        if message.kind in (Kind.RESULT, Kind.ERROR):
            method = self._asked.pop(message.id or "", None)
            piece = cut(message.raw)[0]
            if method is not None:
                self._answers.setdefault(method, deque()).append((piece.kind, bytes(piece.content)))
        elif message.kind is Kind.REQUEST or (message.kind is Kind.NOTIFICATION and message.method != CANCELLED):
            self._said.append(message)

    def said(self, cue: ScheduledSend) -> None:
        """The mock said this to the client."""
        if cue.answers:
            self._is_answered.add(cue.state.id)
        elif cue.data:
            piece = cut(cue.data)[0]
            if piece.kind == "request" and piece.id is not None:
                self._asked[piece.id] = piece.method or ""

    @property
    def is_over(self) -> bool:
        """Whether all is said again, and answered."""
        return not self._left and not self._waits_for

    def begin(self) -> list[bytes]:
        """What is said first."""
        self._left.extend(one for one in self._said if one.kind is Kind.NOTIFICATION or one.id in self._is_answered)
        return self._next()

    def answered(self, piece: Piece) -> list[bytes]:
        """What is said on what the live server says."""
        if piece.kind in ("result", "error") and self._waits_for in (piece.id, *spellings(piece.id or "")):
            return self._next()
        return [self._answer(piece)] if piece.kind == "request" else []

    def failed(self, id: str | None) -> list[bytes]:
        """What is said when the live server will not answer this."""
        return self._next() if id == self._waits_for else []

    def _next(self) -> list[bytes]:
        """The next request, and the notifications before it."""
        found: list[bytes] = []
        self._waits_for = ""
        while self._left and not self._waits_for:
            message = self._left.popleft()
            found.append(message.raw)
            if message.kind is Kind.REQUEST:
                self._waits_for = message.id or ""
        return found

    def _answer(self, piece: Piece) -> bytes:
        known = self._answers.get(piece.method or "")
        if not known and piece.method == "ping":
            return b'{"jsonrpc":"2.0","id":%b,"result":{}}' % (piece.id or "null").encode("utf-8", "surrogatepass")
        if not known:
            return error_line(piece.id, INTERNAL_ERROR, UNKNOWN, {"method": piece.method}).rstrip(b"\n")
        name, value = known.popleft()
        return b'{"jsonrpc":"2.0","id":%b,"%b":%b}' % (
            (piece.id or "null").encode("utf-8", "surrogatepass"),
            name.encode(),
            value,
        )

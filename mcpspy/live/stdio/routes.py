"""Messages in, the server that each is for out; what a server may not send or get any more is withheld, and the record says so.

An answer goes to the server that asked, a cancellation to the one that was called, everything else to the one that has taken over
last. While there is none, it waits. No clock, no I/O.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ...records import CLIENT, RESTART, SERVER, Intercept
from ...transcript.mcp.fields import notification_facts, request_facts
from ...transcript.mcp.methods import CANCELLED, PROGRESS
from ...wire.edits import ValueEdit, with_values
from ...wire.jsonrpc import Piece, cut
from .handshake import OWN_ID
from .restart_words import NO_SERVER, error_answer
from .session_memory import SessionMemory

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from ...records import Side
    from ..waiting_messages import MessageDecision
    from .intercepting import Decide
    from .server_ends import ServerEnd

SERVING: Final = "serving"
WAITING: Final = "waiting"
DOWN: Final = "down"

_ANSWERS: Final = ("result", "error")


class PlainDecision:
    """The decision that a message passes."""

    __slots__ = (
        "delay_ns", "doubled_by", "fields", "held_by", "hold_ns", "is_cut", "key", "kind", "let_go", "noise", "payload", "records",
        "reply", "status", "then",
    )  # fmt: skip

    def __init__(self, payload: bytes) -> None:
        self.payload: bytes | None = payload
        self.key: Hashable = None
        self.kind = ""
        self.status = 0
        self.fields: tuple[str, ...] = ()
        self.is_cut = False
        self.let_go: Callable[[], None] | None = None
        self.records: list[Intercept] = []
        self.reply: bytes | None = None
        self.noise: bytes | None = None
        self.delay_ns = self.hold_ns = self.held_by = self.doubled_by = 0
        self.then = ""


class ServerQuestion:
    """A request of a server that the client has not answered. `id` is the server's own id key, `token` its progress token."""

    __slots__ = ("id", "server", "token")

    def __init__(self, server: ServerEnd, id: str, token: str | None) -> None:
        self.server = server
        self.id = id
        self.token = token


class Routes:
    """The servers of a session, and what is under way between them and the client.

    `intercepts` returns who else decides. `mode` is `serving`, `waiting` or `down`; messages in `waiting` are for the next server.
    """

    def __init__(self, current: ServerEnd, intercepts: Callable[[], Decide | None]) -> None:
        self.current = current
        self.beside: list[ServerEnd] = []
        self.mode = SERVING
        self.waiting: list[bytes] = []
        self.memory = SessionMemory()
        self.questions: dict[str, ServerQuestion] = {}
        """By the id keys that the client knows."""
        self._intercepts = intercepts
        self._redirected: dict[bytes, ServerEnd] = {}
        self._renamed = 0

    def know(self, memory: SessionMemory) -> None:
        """Go on with this memory, which knows requests that waited before any message passed here."""
        self.memory = memory
        self.current.open = {**memory.open, **self.current.open}
        for id, request in memory.asked.items():
            piece = cut(request)[0]
            token = request_facts(piece.method or "", piece.content)[1]
            self.questions.setdefault(id, ServerQuestion(self.current, id, token))
        memory.asked.clear()

    # Decisions, before a message is recorded

    def from_client(self, sender: Side, payload: bytes, at_ns: int) -> MessageDecision:
        """Decide on a message of the client."""
        decision = self._decided(sender, payload, at_ns)
        if decision.payload is None:
            return decision
        pieces = cut(decision.payload)
        piece = pieces[0]
        if self.mode == DOWN:
            self._refuse(decision, pieces, at_ns)
        elif len(pieces) == 1 and piece.kind in _ANSWERS and piece.id in self.questions:
            question = self.questions.pop(piece.id or "")
            if question.server.has_finished:
                _withhold(decision, "not passed on: the server that asked has ended", at_ns)
            else:
                if question.id != piece.id:
                    _rename(decision, ("id",), question.id, at_ns)
                self._redirected[decision.payload] = question.server
        return decision

    def from_current(self, sender: Side, payload: bytes, at_ns: int) -> MessageDecision:
        """Decide on a message of the server that has taken over last."""
        return self.from_server(self.current, sender, payload, at_ns)

    def from_server(self, server: ServerEnd, sender: Side, payload: bytes, at_ns: int) -> MessageDecision:
        """Decide on a message of a server."""
        decision = self._decided(sender, payload, at_ns)
        pieces = cut(payload)
        late = [piece for piece in pieces if not self._is_expected(server, piece)]
        if decision.payload is None:
            return decision
        piece = pieces[0]
        if late and len(late) == len(pieces):
            _withhold(decision, "not passed on: mcpspy has answered before", at_ns)
        elif len(pieces) == 1 and piece.kind == "request" and piece.id is not None:
            visible = self._visible(server, piece.id)
            self.questions[visible] = ServerQuestion(server, piece.id, request_facts(piece.method or "", piece.content)[1])
            if visible != piece.id:
                _rename(decision, ("id",), visible, at_ns)
        elif len(pieces) == 1 and piece.method == CANCELLED and server.renamed:
            key = notification_facts(CANCELLED, piece.content)[1] or ""
            if key in server.renamed:
                _rename(decision, ("params", "requestId"), server.renamed[key], at_ns)
        return decision

    # Where it goes, once it is sent

    def server_for(self, payload: bytes) -> ServerEnd | None:
        """Return the server that a message of the client is for, and take note of it; None if it has to wait."""
        redirected = self._redirected.pop(payload, None)
        if redirected is not None:
            return redirected
        pieces = cut(payload)
        first = pieces[0]
        server = self._named(first)
        if server is None and (self.mode == SERVING or first.kind in _ANSWERS):
            server = self.current
        if server is None:
            return None
        for piece in pieces:
            if piece.kind == "request" and piece.id is not None:
                server.open[piece.id] = piece.raw
        self.memory.feed(CLIENT, payload)
        return server

    def is_ours(self, id: str, answer: bytes, at_ns: int) -> bool:
        """Return whether a request is a controller's, who then gets this answer."""
        decide = self._intercepts()
        return id.startswith(f'"{OWN_ID}') and decide is not None and decide(SERVER, answer, at_ns).payload is None

    def forget(self, server: ServerEnd) -> list[str]:
        """Take note that a server gets no more answers. Return the ids of its questions that the client may still answer."""
        return [visible for visible, question in self.questions.items() if question.server is server]

    def _named(self, piece: Piece) -> ServerEnd | None:
        """Return the server that a notification is about."""
        if piece.kind != "notification" or piece.method not in (CANCELLED, PROGRESS):
            return None
        key = notification_facts(piece.method, piece.content)[1]
        if key is None:
            return None
        if piece.method == CANCELLED:
            return next((server for server in (self.current, *self.beside) if key in server.open), None)
        asking = (question.server for question in self.questions.values() if question.token == key)
        return next((server for server in asking if not server.has_finished), None)

    def _is_expected(self, server: ServerEnd, piece: Piece) -> bool:
        if piece.kind not in _ANSWERS or piece.id is None:
            return True
        is_open = server.open.pop(piece.id, None) is not None
        if is_open:
            self.memory.feed(SERVER, piece.raw)
        return is_open or piece.id not in server.refused

    def _visible(self, server: ServerEnd, id: str) -> str:
        """Return the id key that the client gets for a request of a server: another one if another server's has the same."""
        question = self.questions.get(id)
        if question is None or question.server is server:
            return id
        self._renamed += 1
        server.renamed[id] = f'"{OWN_ID}{server.number}-{self._renamed}"'
        return server.renamed[id]

    def _decided(self, sender: Side, payload: bytes, at_ns: int) -> MessageDecision:
        decide = self._intercepts()
        return PlainDecision(payload) if decide is None else decide(sender, payload, at_ns)

    def _refuse(self, decision: MessageDecision, pieces: list[Piece], at_ns: int) -> None:
        """Answer requests that no server can answer."""
        answers = [error_answer(piece.id, NO_SERVER) for piece in pieces if piece.kind == "request" and piece.id is not None]
        _withhold(decision, "not passed on: no server runs", at_ns)
        if answers:
            decision.reply = b"[" + b",".join(answers) + b"]" if pieces[0].batch else answers[0]


def _withhold(decision: MessageDecision, words: str, at_ns: int) -> None:
    decision.payload = None
    for record in decision.records:
        record.sent = "nothing"
    decision.records.append(Intercept(at_ns=at_ns, text=RESTART, action=words, sent="nothing"))


def _rename(decision: MessageDecision, steps: tuple[str, ...], id: str, at_ns: int) -> None:
    payload: Any = decision.payload
    decision.payload = with_values(payload, [ValueEdit(steps, id.encode("utf-8", "surrogatepass"))])
    decision.records.append(Intercept(at_ns=at_ns, text=RESTART, action="another id", sent="changed"))

"""Pass-through: a script that hands over to a live server at the first miss, and from then on relays between it and the client.

A machine with the interface of `Script`: messages of the client are fed to it, and it returns scheduled sends. What goes to the live
server is in `out`, and `heard` takes what that server sends. The live server first gets the client's own handshake. Nothing is sent
twice, unless `catches_up` asks for what was played before.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from ...transcript.correlator import known_spelling, spellings
from ...transcript.mcp.codes import INTERNAL_ERROR
from ...transcript.mcp.fields import notification_facts
from ...transcript.mcp.methods import CANCELLED, DISCOVER, INITIALIZE, INITIALIZED, OPENINGS, PROGRESS
from ...transcript.model import Kind, Message
from ...wire.edits import ValueEdit, with_values
from ...wire.jsonrpc import Piece, cut, parse
from .miss import Miss, error_line, request_name
from .scheduled_send import OF_NO_REQUEST, LiveServerBytes, ReplyState, ScheduledSend

if TYPE_CHECKING:
    from .script import MissPolicy, Script

INITIALIZED_LINE: Final = b'{"jsonrpc":"2.0","method":"notifications/initialized"}'


class CancelRequest:
    """The client has cancelled its request with this id: the cancellation goes to the live server in the form of its transport."""

    __slots__ = ("id",)

    def __init__(self, id: str) -> None:
        self.id = id


ToServer: TypeAlias = bytes | CancelRequest


class PassThrough:
    """A script that plays the one that `script_of` makes for this miss policy, until there is a miss.

    `has_streams` says that the live server's messages come on the streams of their requests, as over Streamable HTTP.
    `catches_up` sends what was played before to the live server too. `recorded_opening` is the recorded client's `initialize`, for a
    client that never sent its own. `wants_server` says that the live server is needed; `notes` are sentences for the capture.
    """

    def __init__(
        self,
        script_of: Callable[[MissPolicy], Script],
        *,
        has_streams: bool = False,
        catches_up: bool = False,
        recorded_opening: Message | None = None,
    ) -> None:
        self._script = script_of(self)
        self._has_streams = has_streams
        self.out: deque[ToServer] = deque()
        self.notes: list[str] = []
        self.wants_server = False
        self._phase = "playing"  # then: reaching, opening, catching up, live; gone at any time
        self._why_gone = ""
        self._recorded_opening = recorded_opening
        self._opening: Message | None = None
        """The client's `initialize`, which the capture answered."""
        self._revision: str | None = None
        self._initialized: bytes = b""
        self._catch_up = CatchUp() if catches_up else None
        self._queue: deque[ToServer] = deque()
        """Messages of the client for which the live server was not ready."""
        self._owed: dict[str, ReplyState] = {}
        """The client's requests that the live server has to answer, by id."""
        self._cancelled: set[str] = set()
        self._by_progress_token: dict[str, ReplyState] = {}
        self._server_ids: dict[str, str] = {}
        """The live server's own ids for its requests, by the ids that the client knows."""

    # The interface of a script

    def open(self) -> list[ScheduledSend]:
        return self._script.open()

    def feed(self, message: Message) -> list[ScheduledSend]:
        if self._phase != "playing":
            return self._relay(message)
        sends = self._script.feed(message)
        if not self.wants_server:
            self._remember(message, sends)
            return sends
        self._phase = "reaching"
        if self._opening is None and message.method not in OPENINGS and message.revision is None:
            self._opening, self._initialized = self._recorded_opening, INITIALIZED_LINE
        self._owe(message, sends[-1].state)
        return sends

    @property
    def exit_code(self) -> int:
        return self._script.exit_code

    def close(self) -> list[ScheduledSend]:
        return self._script.close() if self._phase == "playing" else []

    def cancel(self, id: str) -> list[ScheduledSend]:
        if self._owed.pop(id, None) is None:
            return self._script.cancel(id)
        self._pass_on(CancelRequest(id))
        return []

    def skip_unheard(self, request: ScheduledSend) -> list[ScheduledSend]:
        return self._script.skip_unheard(request)

    def is_due(self, send: ScheduledSend) -> bool:
        is_due = self._script.is_due(send)
        if is_due and self._catch_up is not None and self._phase in ("playing", "reaching", "opening"):
            self._catch_up.mock_sent(send)
        return is_due

    def missed(self, miss: Miss) -> bytes | None:
        """Leave the answer to the live server; but refuse a probe for another era, since the capture may know the next request."""
        if miss.request.method == DISCOVER and self._recorded_opening is not None:
            return miss.line
        self.wants_server = True
        return None

    def open_request(self, id: str) -> ReplyState | None:
        """Return the reply to the client's request with this id, as long as it is not answered."""
        return self._owed.get(id) or self._script.open_request(id)

    @property
    def owes(self) -> bool:
        """True if the client waits for an answer of the live server."""
        return any(id not in self._cancelled for id in self._owed)

    @property
    def is_playing(self) -> bool:
        """True as long as only the capture has answered."""
        return self._phase == "playing"

    # The client

    def _remember(self, message: Message, sends: list[ScheduledSend]) -> None:
        """Keep what a live server has to be sent first."""
        if message.kind is Kind.REQUEST and message.method == INITIALIZE:
            self._opening = message
            answer = next((send.data for send in sends if send.answers), b"")
            self._revision = _revision(answer)
        elif message.kind is Kind.NOTIFICATION and message.method == INITIALIZED:
            self._initialized = message.raw
        elif self._catch_up is not None:
            self._catch_up.client_sent(message)

    def _relay(self, message: Message) -> list[ScheduledSend]:
        match message.kind:
            case Kind.REQUEST:
                state = self._script.unrecorded(message)
                if self._phase == "gone":
                    return [self._refusal(state, self._why_gone)]
                self._owe(message, state)
                return [ScheduledSend(state)]  # so that the response to it stays open
            case Kind.NOTIFICATION if message.method == CANCELLED:
                return self._relay_cancel(message)
            case Kind.NOTIFICATION:
                self._pass_on(message.raw)
            case Kind.RESULT | Kind.ERROR:
                return self._relay_answer(message)
        return []

    def _owe(self, message: Message, state: ReplyState) -> None:
        self._owed[message.id or "null"] = state
        if message.correlation_key is not None:
            self._by_progress_token[message.correlation_key] = state
        self._pass_on(message.raw)

    def _relay_cancel(self, message: Message) -> list[ScheduledSend]:
        id = message.correlation_key or ""
        if id not in self._owed:
            return self._script.feed(message)
        self._cancelled.add(id)
        self._pass_on(message.raw)
        return []

    def _relay_answer(self, message: Message) -> list[ScheduledSend]:
        id = message.id or ""
        known = known_spelling(id, self._server_ids)
        if known is not None:
            self._pass_on(_with_id(message.raw, ("id",), self._server_ids.pop(known)))
        elif self._script.has_server_request(id):
            return self._script.feed(message)
        else:
            self._pass_on(message.raw)
        return []

    def _pass_on(self, out: ToServer) -> None:
        if self._phase == "live":
            self.out.append(out)
        elif self._phase != "gone":
            self._queue.append(out)

    # The live server

    def reached(self) -> list[ScheduledSend]:
        """Begin the handshake: the live server was started, or can be reached."""
        if self._opening is not None:
            self._phase = "opening"
            self.out.append(self._opening.raw)
        else:
            self._begin_catch_up()
        return []

    def heard(self, data: bytes, about: str | None) -> list[ScheduledSend]:
        """Take a message of the live server, which came on the stream of the request `about`."""
        piece = cut(data)[0]
        if self._phase == "opening" and piece.kind in ("result", "error") and self._opening is not None:
            return self._opened(piece, self._opening)
        if self._phase == "catching up" and self._catch_up is not None:
            self._go_on(self._catch_up.server_sent(piece))
            return []
        if self._phase == "gone":
            return []
        match piece.kind:
            case "malformed":
                return []
            case "result" | "error":
                return [self._answer(piece, about)]
            case "request":
                return [self._live_send(self._with_free_id(piece), self._state_of(piece, about))]
            case _:
                return [self._live_send(self._with_client_id(piece), self._state_of(piece, about))]

    def failed(self, id: str | None, why: str) -> list[ScheduledSend]:
        """Answer in its place: it will not answer this request, or did not take a notification."""
        if self._phase == "opening":
            return self.lost(f"it did not answer initialize: {why}")
        if self._phase == "catching up" and self._catch_up is not None:
            self._go_on(self._catch_up.failed(id))
            return []
        state = self._owed.pop(id, None) if id is not None else None
        if state is None:
            self.notes.append(f"the live server did not take a message: {why}")
            return []
        return [self._refusal(state, f"the live server gave no answer: {why}")]

    def late(self, patience_s: float) -> list[ScheduledSend]:
        """Give up a handshake that takes longer than this."""
        return self.lost(f"it did not answer initialize within {patience_s:g} s") if self._phase == "opening" else []

    def lost(self, why: str) -> list[ScheduledSend]:
        """Refuse every request from now on: the live server is gone, or there never was one."""
        if self._phase == "gone":
            return []
        self._phase, self._why_gone = "gone", f"the live server is gone: {why}"
        self.notes.append(self._why_gone)
        owed, self._owed = self._owed, {}
        self._queue.clear()
        self.out.clear()
        return [self._refusal(state, self._why_gone) for id, state in owed.items() if id not in self._cancelled]

    def _opened(self, piece: Piece, opening: Message) -> list[ScheduledSend]:
        """Take the live server's answer to the handshake. The client does not get it: it has had the recorded one."""
        if piece.id is not None and opening.id not in (piece.id, *spellings(piece.id)):
            return []
        if piece.kind == "error":
            return self.lost(f"it refused initialize: {bytes(piece.content).decode('utf-8', 'replace')}")
        revision = _revision(piece.raw)
        if self._revision is not None and revision != self._revision:
            self.notes.append(f"the live server speaks {revision}, and the recorded one spoke {self._revision}")
        if self._initialized:
            self.out.append(self._initialized)  # a client that has not sent it yet will do so
        self._begin_catch_up()
        return []

    def _begin_catch_up(self) -> None:
        self._phase = "catching up"
        self._go_on(self._catch_up.begin() if self._catch_up is not None else [])

    def _go_on(self, out: list[bytes]) -> None:
        """Send what is repeated next; after the last of it, what is new."""
        self.out.extend(out)
        if self._catch_up is None or self._catch_up.is_over:
            self._phase = "live"
            self.out.extend(self._queue)
            self._queue.clear()

    # Messages of the live server, for the client

    def _answer(self, piece: Piece, about: str | None) -> ScheduledSend:
        key = known_spelling(piece.id or "null", self._owed)
        if key is None:
            return self._live_send(piece.raw, self._state_of(piece, about))
        self._cancelled.discard(key)
        return ScheduledSend(self._owed.pop(key), LiveServerBytes(piece.raw), answers=True)

    def _with_free_id(self, piece: Piece) -> bytes:
        """Return a request of the live server with an id that no other request to this client has."""
        id = piece.id or "null"
        free = self._script.free_id(id)
        self._server_ids[free] = id
        return piece.raw if free == id else _with_id(piece.raw, ("id",), free)

    def _with_client_id(self, piece: Piece) -> bytes:
        """Return a notification; one that cancels a request, with the id that the client knows."""
        if piece.method != CANCELLED:
            return piece.raw
        cancelled = notification_facts(CANCELLED, piece.content)[1]
        client_id = next((own for own, server_id in self._server_ids.items() if server_id == cancelled), None)
        return piece.raw if client_id in (None, cancelled) else _with_id(piece.raw, ("params", "requestId"), client_id or "")

    def _state_of(self, piece: Piece, about: str | None) -> ReplyState:
        """Find the request that a message belongs to, or none: by its stream, its progress token, else the newest that waits."""
        if about is not None and about in self._owed:
            return self._owed[about]
        if piece.method == PROGRESS:
            state = self._by_progress_token.get(notification_facts(PROGRESS, piece.content)[1] or "")
            return state or self._script.unrecorded(None)
        if self._has_streams or (piece.method or "").endswith(OF_NO_REQUEST) or not self._owed:
            return self._script.unrecorded(None)
        return next(reversed(self._owed.values()))

    @staticmethod
    def _live_send(data: bytes, state: ReplyState) -> ScheduledSend:
        return ScheduledSend(state, LiveServerBytes(data))

    @staticmethod
    def _refusal(state: ReplyState, why: str) -> ScheduledSend:
        request = state.request
        name = "" if request is None else request_name(request)
        data: dict[str, Any] = {} if request is None else {"method": request.method, "target": request.target}
        text = f"mcpspy mock: {name} goes to the live server, as everything after the first miss does, and {why}"
        return ScheduledSend(state, error_line(state.id, INTERNAL_ERROR, text, data), answers=True)


def _revision(answer: bytes) -> str | None:
    """Read the revision in an answer to `initialize`."""
    message = parse(answer)
    result = message.get("result") if isinstance(message, dict) else None
    revision = result.get("protocolVersion") if isinstance(result, dict) else None
    return revision if isinstance(revision, str) else None


def _with_id(data: bytes, path: tuple[str, ...], id: str) -> bytes:
    return with_values(data, [ValueEdit(path, id.encode("utf-8", "surrogatepass"))])


# --- Catch-up ---


UNKNOWN: Final = "mcpspy mock: nobody has asked this before, so there is no answer to repeat"


class CatchUp:
    """Catch-up of a live server that takes over: sends it again what the client had sent, without the handshake.

    `client_sent` and `mock_sent` take what passes before; from `begin` on, each answer of the live server brings the next request.
    Requests of the live server are answered as the client answered the mock. Requests that the mock never answered are not
    repeated, and nothing goes to the client, which has seen it all.
    """

    __slots__ = ("_answered", "_answers", "_messages", "_server_requests", "_to_send", "_waits_for")

    def __init__(self) -> None:
        self._messages: list[Message] = []
        self._answered: set[str] = set()
        """The ids of the client's requests that the mock has answered."""
        self._server_requests: dict[str, str] = {}
        """The methods of the mock's requests, by id."""
        self._answers: dict[str, deque[tuple[str, bytes]]] = {}
        """By method, the client's answers to the mock's requests: the member's name and its value."""
        self._to_send: deque[Message] = deque()
        self._waits_for = ""

    def client_sent(self, message: Message) -> None:
        """Take a message that the client sent to the mock."""
        if message.kind in (Kind.RESULT, Kind.ERROR):
            method = self._server_requests.pop(message.id or "", None)
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
                self._server_requests[piece.id] = piece.method or ""

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

    def _answer(self, request: Piece) -> bytes:
        answers = self._answers.get(request.method or "")
        id = (request.id or "null").encode("utf-8", "surrogatepass")
        if not answers and request.method == "ping":
            return b'{"jsonrpc":"2.0","id":%b,"result":{}}' % id
        if not answers:
            return error_line(request.id, INTERNAL_ERROR, UNKNOWN, {"method": request.method}).rstrip(b"\n")
        name, value = answers.popleft()
        return b'{"jsonrpc":"2.0","id":%b,"%b":%b}' % (id, name.encode(), value)

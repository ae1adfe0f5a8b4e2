"""A script that hands over to a live server at the first miss, and from then on stands between its client and that server.

A machine with the face of `Script`: what the client says is fed to it, and what is to be said to the client comes back as cues. What
is to be said to the live server stands in `out`; what that one says is told by `heard`. The live server is given the client's own
handshake first. Refuses to send anything twice, but where `catches_up` asks for what was played before.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from ...transcript.correlate import spellings
from ...transcript.mcp.codes import INTERNAL_ERROR
from ...transcript.mcp.fields import notification_facts
from ...transcript.mcp.methods import CANCELLED, DISCOVER, INITIALIZE, OPENINGS, PROGRESS
from ...transcript.model import Kind
from ...wire.json_spans import span_at
from ...wire.jsonrpc import Piece, cut, parse
from ...wire.lines import one_line
from .catch_up import CatchUp
from .miss import error_line, request_name
from .scheduled_send import OF_NO_REQUEST, LiveServerBytes, ScheduledSend

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...transcript.model import Message
    from .miss import Miss
    from .on_miss import MissPolicy
    from .scheduled_send import ReplyState
    from .script import Script

INITIALIZED: Final = "notifications/initialized"
INITIALIZED_LINE: Final = b'{"jsonrpc":"2.0","method":"notifications/initialized"}'


class CancelRequest:
    """The live server is to be told that the request with this id is given up, in the way of its transport."""

    __slots__ = ("id",)

    def __init__(self, id: str) -> None:
        self.id = id


ToServer: TypeAlias = bytes | CancelRequest


class PassThrough:
    """Plays what `script_of` makes, which is given what becomes of a miss, until there is one.

    `has_streams` says that the live server tells on whose stream it says something, as over Streamable HTTP. `catches_up`: what was
    played before is said to the live server too. `recorded_opening` is the recorded client's `initialize`, for a client that never
    said its own. `wants_server` says that the live server is to be started; `notes` are sentences on what happened, to be recorded.
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
        self._state = "playing"  # then: reaching, opening, repeating, live; gone at any time
        self._why_gone = ""
        self._recorded_opening = recorded_opening
        self._opening: Message | None = None
        """The client's `initialize`, which the recording answered."""
        self._agreed: str | None = None
        self._initialized: bytes = b""
        self._repeating = CatchUp() if catches_up else None
        self._queue: deque[ToServer] = deque()
        """What the client has said while the live server was not ready for it."""
        self._owed: dict[str, ReplyState] = {}
        """What the live server has to answer, by the ids of the client's requests."""
        self._given_up: set[str] = set()
        self._of_token: dict[str, ReplyState] = {}
        self._renamed: dict[str, str] = {}
        """The live ids of the server's requests, by those under which the client knows them."""

    # The face of a script

    def open(self) -> list[ScheduledSend]:
        return self._script.open()

    def feed(self, message: Message) -> list[ScheduledSend]:
        if self._state != "playing":
            return self._heard_live(message)
        cues = self._script.feed(message)
        if not self.wants_server:
            self._remember(message, cues)
            return cues
        self._state = "reaching"
        if self._opening is None and message.method not in OPENINGS and message.revision is None:
            self._opening, self._initialized = self._recorded_opening, INITIALIZED_LINE
        self._owe(message, cues[-1].state)
        return cues

    @property
    def exit_code(self) -> int:
        return self._script.exit_code

    def close(self) -> list[ScheduledSend]:
        return self._script.close() if self._state == "playing" else []

    def cancel(self, id: str) -> list[ScheduledSend]:
        if self._owed.pop(id, None) is None:
            return self._script.cancel(id)
        self._pass_on(CancelRequest(id))
        return []

    def skip_unheard(self, question: ScheduledSend) -> list[ScheduledSend]:
        return self._script.skip_unheard(question)

    def is_due(self, cue: ScheduledSend) -> bool:
        is_due = self._script.is_due(cue)
        if is_due and self._repeating is not None and self._state in ("playing", "reaching", "opening"):
            self._repeating.said(cue)
        return is_due

    def missed(self, miss: Miss) -> bytes | None:
        """The live server will answer. But a probe for another era is refused: what comes next the recording may know."""
        if miss.request.method == DISCOVER and self._recorded_opening is not None:
            return miss.line
        self.wants_server = True
        return None

    def open_request(self, id: str) -> ReplyState | None:
        """The request of the client's with this id, as long as it is not answered."""
        return self._owed.get(id) or self._script.open_request(id)

    @property
    def owes(self) -> bool:
        """Whether the live server has something to answer that the client still waits for."""
        return any(id not in self._given_up for id in self._owed)

    @property
    def is_playing(self) -> bool:
        """Whether the recording alone has spoken so far."""
        return self._state == "playing"

    # The client

    def _remember(self, message: Message, cues: list[ScheduledSend]) -> None:
        """What a live server has to be told first."""
        if message.kind is Kind.REQUEST and message.method == INITIALIZE:
            self._opening = message
            answer = next((cue.data for cue in cues if cue.answers), b"")
            self._agreed = _revision(answer)
        elif message.kind is Kind.NOTIFICATION and message.method == INITIALIZED:
            self._initialized = message.raw
        elif self._repeating is not None:
            self._repeating.heard(message)

    def _heard_live(self, message: Message) -> list[ScheduledSend]:
        match message.kind:
            case Kind.REQUEST:
                playing = self._script.beside(message)
                if self._state == "gone":
                    return [self._refused(playing, self._why_gone)]
                self._owe(message, playing)
                return [ScheduledSend(playing)]  # so that the response to it stays open
            case Kind.NOTIFICATION if message.method == CANCELLED:
                return self._cancelled(message)
            case Kind.NOTIFICATION:
                self._pass_on(message.raw)
            case Kind.RESULT | Kind.ERROR:
                return self._answered(message)
        return []

    def _owe(self, message: Message, playing: ReplyState) -> None:
        self._owed[message.id or "null"] = playing
        if message.correlation_key is not None:
            self._of_token[message.correlation_key] = playing
        self._pass_on(message.raw)

    def _cancelled(self, message: Message) -> list[ScheduledSend]:
        id = message.correlation_key or ""
        if id not in self._owed:
            return self._script.feed(message)
        self._given_up.add(id)
        self._pass_on(message.raw)
        return []

    def _answered(self, message: Message) -> list[ScheduledSend]:
        id = message.id or ""
        live = next((one for one in (id, *spellings(id)) if one in self._renamed), None)
        if live is not None:
            self._pass_on(_with_value(message.raw, ("id",), self._renamed.pop(live)))
        elif self._script.awaits(id):
            return self._script.feed(message)
        else:
            self._pass_on(message.raw)
        return []

    def _pass_on(self, out: ToServer) -> None:
        if self._state == "live":
            self.out.append(out)
        elif self._state != "gone":
            self._queue.append(out)

    # The live server

    def reached(self) -> list[ScheduledSend]:
        """It was started, or can be reached."""
        if self._opening is not None:
            self._state = "opening"
            self.out.append(self._opening.raw)
        else:
            self._catch_up()
        return []

    def heard(self, data: bytes, about: str | None) -> list[ScheduledSend]:
        """It says this, on the stream of the request `about`."""
        piece = cut(data)[0]
        if self._state == "opening" and piece.kind in ("result", "error") and self._opening is not None:
            return self._opened(piece, self._opening)
        if self._state == "repeating" and self._repeating is not None:
            self._go_on(self._repeating.answered(piece))
            return []
        if self._state == "gone":
            return []
        match piece.kind:
            case "malformed":
                return []
            case "result" | "error":
                return [self._answer(piece, about)]
            case "request":
                return [self._say(self._question(piece), self._whose(piece, about))]
            case _:
                return [self._say(self._restored(piece), self._whose(piece, about))]

    def failed(self, id: str | None, why: str) -> list[ScheduledSend]:
        """It will not answer this request, or did not take a notification."""
        if self._state == "opening":
            return self.lost(f"it did not answer initialize: {why}")
        if self._state == "repeating" and self._repeating is not None:
            self._go_on(self._repeating.failed(id))
            return []
        playing = self._owed.pop(id, None) if id is not None else None
        if playing is None:
            self.notes.append(f"the live server did not take a message: {why}")
            return []
        return [self._refused(playing, f"the live server gave no answer: {why}")]

    def late(self, patience_s: float) -> list[ScheduledSend]:
        """It has had so long for the handshake."""
        return self.lost(f"it did not answer initialize within {patience_s:g} s") if self._state == "opening" else []

    def lost(self, why: str) -> list[ScheduledSend]:
        """It is gone, or there never was one."""
        if self._state == "gone":
            return []
        self._state, self._why_gone = "gone", f"the live server is gone: {why}"
        self.notes.append(self._why_gone)
        owed, self._owed = self._owed, {}
        self._queue.clear()
        self.out.clear()
        return [self._refused(playing, self._why_gone) for id, playing in owed.items() if id not in self._given_up]

    def _opened(self, piece: Piece, opening: Message) -> list[ScheduledSend]:
        """The live server's side of the handshake, which the client does not hear: it has had its own."""
        if piece.id is not None and opening.id not in (piece.id, *spellings(piece.id)):
            return []
        if piece.kind == "error":
            return self.lost(f"it refused initialize: {bytes(piece.content).decode('utf-8', 'replace')}")
        agreed = _revision(piece.raw)
        if self._agreed is not None and agreed != self._agreed:
            self.notes.append(f"the live server speaks {agreed}, and the recorded one spoke {self._agreed}")
        if self._initialized:
            self.out.append(self._initialized)  # if it has not said so yet, it will, and be passed on
        self._catch_up()
        return []

    def _catch_up(self) -> None:
        self._state = "repeating"
        self._go_on(self._repeating.begin() if self._repeating is not None else [])

    def _go_on(self, out: list[bytes]) -> None:
        """Say what is repeated next; behind the last of it comes what is new."""
        self.out.extend(out)
        if self._repeating is None or self._repeating.is_over:
            self._go_live()

    def _go_live(self) -> None:
        self._state = "live"
        self.out.extend(self._queue)
        self._queue.clear()

    # What it says, for the client

    def _answer(self, piece: Piece, about: str | None) -> ScheduledSend:
        id = piece.id or "null"
        found = next((one for one in (id, *spellings(id)) if one in self._owed), None)
        if found is None:
            return self._say(piece.raw, self._whose(piece, about))
        self._given_up.discard(found)
        return ScheduledSend(self._owed.pop(found), LiveServerBytes(one_line(piece.raw)), answers=True)

    def _question(self, piece: Piece) -> bytes:
        """A request of the live server's, under an id that no other question to this client has."""
        id = piece.id or "null"
        free = self._script.free_id(id)
        self._renamed[free] = id
        return piece.raw if free == id else _with_value(piece.raw, ("id",), free)

    def _restored(self, piece: Piece) -> bytes:
        """A notification; one that takes a question back names it as the client knows it."""
        if piece.method != CANCELLED:
            return piece.raw
        named = notification_facts(CANCELLED, piece.content)[1]
        known = next((own for own, live in self._renamed.items() if live == named), None)
        return piece.raw if known in (None, named) else _with_value(piece.raw, ("params", "requestId"), known or "")

    def _whose(self, piece: Piece, about: str | None) -> ReplyState:
        """The request that this belongs to, or none: by its stream, its progress token, else the newest that waits."""
        if about is not None and about in self._owed:
            return self._owed[about]
        if piece.method == PROGRESS:
            found = self._of_token.get(notification_facts(PROGRESS, piece.content)[1] or "")
            return found or self._script.beside(None)
        if self._has_streams or (piece.method or "").endswith(OF_NO_REQUEST) or not self._owed:
            return self._script.beside(None)
        return next(reversed(self._owed.values()))

    @staticmethod
    def _say(data: bytes, playing: ReplyState) -> ScheduledSend:
        return ScheduledSend(playing, LiveServerBytes(one_line(data)))

    @staticmethod
    def _refused(playing: ReplyState, why: str) -> ScheduledSend:
        request = playing.request
        asked = "" if request is None else request_name(request)
        data: dict[str, Any] = {} if request is None else {"method": request.method, "target": request.target}
        text = f"mcpspy mock: {asked} is for the live server, as all is from the first miss on, and {why}"
        return ScheduledSend(playing, error_line(playing.id, INTERNAL_ERROR, text, data), answers=True)


def _revision(answer: bytes) -> str | None:
    """The revision that an answer to `initialize` names."""
    said = parse(answer)
    result = said.get("result") if isinstance(said, dict) else None
    found = result.get("protocolVersion") if isinstance(result, dict) else None
    return found if isinstance(found, str) else None


def _with_value(data: bytes, path: tuple[str, ...], value: str) -> bytes:
    """The message with this value, a token, at a place that it has; every other byte stays."""
    found = span_at(data, path)
    return data if found is None else data[: found[0]] + value.encode("utf-8", "surrogatepass") + data[found[1] :]

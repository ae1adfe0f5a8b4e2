"""On which HTTP stream a mock says what it says, and in which spelling: as the recording had it where that was HTTP.

What belongs to a request goes on the response to it as long as that is open, everything else on the standing stream: the one that a
GET opens, or HTTP+SSE's. Refuses to know live streams. Source: MCP specification, basic/transports of each revision.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from ..records import SERVER
from ..transcript.head import LAST_EVENT_ID, SESSION
from ..transcript.mcp_methods import INITIALIZE
from ..transcript.mcp_revisions import Era
from ..transcript.transaction import ScopeKind
from ..wire.sse import parse, with_data

if TYPE_CHECKING:
    from ..records import Frame
    from ..transcript.model import Exchange, Message, Transcript
    from ..transcript.transaction import Transaction
    from .script import Cue, Playing

OK: Final = 200

STATUSES: Final = {-32700: 400, -32600: 400, -32602: 400, -32020: 400, -32021: 400, -32022: 400, -32601: 404}
"""With which status an error is answered in the modern era (MCP specification 2026-07-28, basic/transports/streamable-http)."""

_OF_NO_REQUEST: Final = ("/list_changed", "/updated", "/complete", "/status")
"""How the notifications end that are news of a server, and of no request: on stdio nothing else says so."""


class Answer(NamedTuple):
    """How the response to a request begins: with which status, and whether it is a stream of events.

    `prelude` are events without a message that come first in that, with their ids.
    """

    status: int = OK
    is_stream: bool = False
    prelude: tuple[tuple[bytes, str | None], ...] = ()


class Routing:
    """How one recording carried what its server said. It never changes; any number of live clients share it.

    The transcript has to keep its frames: they have the ids of events.
    """

    def __init__(self, transcript: Transcript) -> None:
        self._sources = transcript.sources
        self._frames: dict[tuple[int, int], Frame] = {}
        """The kept frames of the server's streams, by capture and record."""
        for source in transcript.sources:
            for one in source.transactions.values():
                if one.response is not None and one.is_stream:
                    self._frames |= {(source.index, frame.number): frame for frame in one.response.kept}
        self.gives_sessions = _gives_sessions(transcript)

    def is_standing(self, cue: Cue) -> bool:
        """Whether a cue was not said on the response to its request, though that may have been open."""
        if cue.playing.request is None:
            return True
        if cue.say is None or cue.answers:
            return False
        message = cue.say.message
        carried = self._transaction(message)
        if carried is not None:
            return carried.method == "GET" and not _resumes(carried)
        belongs = cue.say.exchange is not None and cue.say.exchange is cue.playing.scene.exchange
        return not belongs and (message.method or "").endswith(_OF_NO_REQUEST) and cue.playing.request.era is not Era.MODERN

    def breaks_off(self, cue: Cue) -> bool:
        """Whether the server had ended the response before it said this, so that the client had to come for it (2025-11-25)."""
        exchange = cue.playing.scene.exchange
        carried = None if cue.say is None else self._transaction(cue.say.message)
        if exchange is None or carried is None or carried is exchange.transaction or not _resumes(carried):
            return False
        return exchange.transaction is not None and exchange.transaction.ended_by == SERVER

    def answer(self, playing: Playing, cues: list[Cue]) -> Answer:
        """How the response to a request begins, of which `cues` are what follows on it so far."""
        exchange = playing.scene.exchange
        carried = None if exchange is None else self._carrier(exchange)
        if carried is not None and carried.response is not None:
            return Answer(carried.status, carried.is_stream, self._prelude(carried))
        own = [one for one in cues if one.playing is playing and not self.is_standing(one)]
        first = own[0] if own else None
        if first is None or not first.answers:
            return Answer(is_stream=True)
        return Answer(_status(playing, first))

    def event(self, cue: Cue, id: str | None, line: bytes) -> bytes:
        """The event that says `line`, with this id, else in the spelling of the recording."""
        recorded = self._recorded_event(cue)
        if recorded is None:
            return event(line, id)
        return _with_id(with_data(recorded, _plain(line)), id)

    def event_id(self, cue: Cue) -> str | None:
        """The id of the recorded event; None if it had none."""
        recorded = self._recorded_event(cue)
        return None if recorded is None else parse(recorded).id

    def _recorded_event(self, cue: Cue) -> bytes | None:
        if cue.say is None:
            return None
        message = cue.say.message
        frame = self._frames.get((message.capture, message.number))
        if frame is None or frame.data.count(b"data:") != 1:  # on several lines, and here it is one
            return None
        return frame.data

    def _prelude(self, carried: Transaction) -> tuple[tuple[bytes, str | None], ...]:
        """The events before the first message: those that give a stream its first id (2025-11-25)."""
        found: list[tuple[bytes, str | None]] = []
        for frame in carried.response.kept if carried.response is not None else ():
            said = parse(frame.data)
            if said.data:
                break
            if (said.id or said.retry_ms is not None) and said.is_terminated:
                found.append((frame.data, said.id))
        return tuple(found)

    def _transaction(self, message: Message) -> Transaction | None:
        """What carried a message over Streamable HTTP."""
        found = self._sources[message.capture].transaction_of(message.stream)
        return None if found is None or found.scope.kind is ScopeKind.STREAM else found

    def _carrier(self, exchange: Exchange) -> Transaction | None:
        return self._transaction(exchange.request)


def event(line: bytes, id: str | None = None) -> bytes:
    """An event of a message."""
    named = b"" if id is None else b"id: %b\n" % id.encode()
    return b"event: message\n%bdata: %b\n\n" % (named, _plain(line))


def _plain(line: bytes) -> bytes:
    """A line of stdio as the data of an event: without its end, and without CR, which JSON has between its tokens alone."""
    return line.rstrip(b"\r\n").replace(b"\r", b" ")


def respelled(prelude: bytes, id: str | None) -> bytes:
    """An event without a message, with another id."""
    return _with_id(prelude, id)


def _with_id(event: bytes, id: str | None) -> bytes:
    lines = event.splitlines(keepends=True)
    for at, line in enumerate(lines):
        name = line.rstrip(b"\r\n").partition(b":")[0]
        if name == b"id" and id is not None:
            lines[at] = b"id: %b%b" % (id.encode(), line[len(line.rstrip(b"\r\n")) :])
    return b"".join(lines)


def _resumes(carried: Transaction) -> bool:
    return carried.request is not None and bool(carried.request.head.get(LAST_EVENT_ID))


def _status(playing: Playing, answer: Cue) -> int:
    """The status of an answer that was not recorded over Streamable HTTP."""
    if playing.request is None or playing.request.era is not Era.MODERN:
        return OK
    if answer.miss is not None:
        return STATUSES.get(answer.miss.code, OK)
    error = None if answer.say is None else answer.say.message.error
    code = error.get("code") if isinstance(error, dict) else None
    return STATUSES.get(code, OK) if isinstance(code, int) else OK


def _gives_sessions(transcript: Transcript) -> bool:
    """Whether a live client gets a session: not if the recording shows one that got none over Streamable HTTP."""
    seen = [one for one in transcript.exchanges if one.method == INITIALIZE and one.response is not None]
    carried = [one.transaction for one in seen if one.transaction is not None]
    plain = [one for one in carried if one.scope.kind is not ScopeKind.STREAM and one.response is not None]
    return not plain or any(one.response is not None and one.response.head.get(SESSION) for one in plain)

"""The script of a mock: what to say to what a live client says, from the scenes of a recording.

A machine: `open`, `feed` and `close` return what is to be said, each with how long after what it followed in the recording. Refuses
to read clocks and to wait: who plays it does, and asks `is_due` at its time whether it is still to be said.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from ..transcript.correlate import spellings
from ..transcript.mcp_methods import CANCELLED, LISTEN
from ..transcript.model import Exchange, Kind
from .line import Wants, line
from .scenes import AwaitAnswer, AwaitCancel, Leave, Say, Scene, Scenes

if TYPE_CHECKING:
    from collections.abc import Container

    from ..transcript.model import Message
    from .line import Blank
    from .miss import Miss

ANSWERED_BY_ALL: Final = ("ping", "logging/setLevel")
"""What any server answers with nothing (basic/utilities/ping, server/utilities/logging), so that some clients ask it of each."""


NOTHING: Final = Scene()
"""The scene of a request that has none, since it was never recorded."""


class Finder(Protocol):
    """Finds for what one client asks the recorded exchange that is to be played, as a walk of a matcher does."""

    def match(self, request: Message) -> Exchange | Miss:
        """The exchange, which counts as given then; or why there is none."""


class OnMiss(Protocol):
    """What becomes of a request that the recording has no answer for."""

    def missed(self, miss: Miss) -> Exchange | bytes | None:
        """The recorded exchange to play instead, or the line to say; None to say nothing, as somebody else will answer."""


class Error:
    """The policy that answers a miss with the error that explains it."""

    __slots__ = ()

    def missed(self, miss: Miss) -> bytes:
        """The line of the error."""
        return miss.line


class Nearest:
    """The policy that plays what comes nearest, if anything does: `unkept` are the rows whose answers are not there."""

    __slots__ = ("_unkept",)

    def __init__(self, unkept: Container[int] = ()) -> None:
        self._unkept = unkept

    def missed(self, miss: Miss) -> Exchange | bytes:
        """The recorded exchange, or the line of the error."""
        nearest = miss.nearest
        return miss.line if nearest is None or nearest.row in self._unkept else nearest


ERROR: Final = Error()


class Playing:
    """A scene that is being played. `id` and `token` are the live request's, empty and None where none began it.

    `again` says that it was played before. `next` is the next step, and `began_ns` when, in the recording, that happened which it
    followed. `asked` are the live ids of the server's requests by the recorded ones, `unanswered` the rows of those that were asked
    and not answered yet. `is_over` says that the client gave it up, and in the recording it did not.
    """

    __slots__ = ("again", "asked", "began_ns", "id", "is_over", "next", "request", "scene", "token", "unanswered")

    def __init__(self, scene: Scene, request: Message | None = None) -> None:
        self.scene = scene
        self.request = request
        self.began_ns = scene.at_ns
        self.id = "" if request is None else request.id or "null"
        self.token = None if request is None else request.token
        self.again = False
        self.next = 0
        self.asked: dict[str, str] = {}
        self.unanswered: set[int] = set()
        self.is_over = False


class Cue:
    """What a mock is to do `delay_ns` after what it heard: say `data`, a line, or end its process as the recorded one ended.

    `playing` is the scene that it is of: whose request it belongs to, if any. `say` is the recorded step; there is none where the
    recording has no such words: the answer to a `ping`, and to a miss, of which `miss` tells (without `data` if somebody else
    answers it). `answers` says that it is the answer to the request of `playing`.
    """

    __slots__ = ("answers", "data", "delay_ns", "leave", "miss", "playing", "say")

    def __init__(
        self,
        playing: Playing,
        data: bytes = b"",
        delay_ns: int = 0,
        *,
        say: Say | None = None,
        answers: bool = False,
        miss: Miss | None = None,
        leave: Leave | None = None,
    ) -> None:
        self.playing = playing
        self.data = data
        self.delay_ns = delay_ns
        self.say = say
        self.answers = answers
        self.miss = miss
        self.leave = leave


class Script:
    """What a mock says to one live client, from `scenes`; `finder` finds what was recorded for a request.

    Any number of scripts may share the scenes, which do not change; a finder belongs to one script alone.
    """

    __slots__ = ("_asked", "_finder", "_live", "_next_id", "_on_miss", "_played", "_scenes", "_told", "_waiting")

    def __init__(self, scenes: Scenes, finder: Finder, on_miss: OnMiss = ERROR) -> None:
        self._scenes = scenes
        self._finder = finder
        self._on_miss = on_miss
        self._next_id = 1
        self._played: set[int] = set()
        """The rows whose scenes have been played."""
        self._told: dict[str, int] = {}
        """How many notifications of each method the client has sent."""
        self._asked: dict[str, Playing] = {}
        """What the client has asked and is not answered yet, by the ids of its requests."""
        self._waiting: dict[str, tuple[Playing, int]] = {}
        """What the client has been asked and has not answered yet, by the ids of our requests: the scene, and the row."""
        self._live: dict[int, str] = {}
        """The live ids of subscriptions, by the rows of the recorded ones."""

    def open(self) -> list[Cue]:
        """What the server said before it was asked anything."""
        return self._go_on(Playing(self._scenes.opening))

    def feed(self, message: Message) -> list[Cue]:
        """What follows on a message of the client's. Nothing does on what no server can answer."""
        match message.kind:
            case Kind.REQUEST:
                return self._requested(message)
            case Kind.NOTIFICATION if message.method == CANCELLED:
                return self._cancelled(message.token or "")
            case Kind.NOTIFICATION:
                return self._notified(message.method or "")
            case Kind.RESULT | Kind.ERROR:
                return self._answered(message.id or "")
            case _:
                return []

    def close(self) -> list[Cue]:
        """What the server said when its input had ended."""
        return self._go_on(Playing(self._scenes.closing))

    def cancel(self, id: str) -> list[Cue]:
        """What follows when the client gives its request with this id up; nothing if it is answered, or was never asked."""
        return self._cancelled(id)

    def is_due(self, cue: Cue) -> bool:
        """Whether a cue whose time has come still holds. To be asked once."""
        playing = cue.playing
        if cue.answers and self._asked.get(playing.id) is playing:
            del self._asked[playing.id]
        return not playing.is_over

    # What the client says

    def _requested(self, request: Message) -> list[Cue]:
        found = self._finder.match(request)
        if not isinstance(found, Exchange):
            if request.method in ANSWERED_BY_ALL and found.is_unknown:
                nothing = f'{{"jsonrpc":"2.0","id":{request.id},"result":{{}}}}\n'.encode()
                return [Cue(Playing(NOTHING, request), nothing, answers=True)]
            return self._missed(found)
        if found.row in self._scenes.unkept:
            from .miss import Miss  # 2 ms of start-up, for what may never be missed

            reason = "was recorded past --max-size, where answers were not kept"
            return self._missed(Miss(request=request, reason=reason, refused_by="--max-size", nearest=found))
        return self._play(request, found)

    def _missed(self, miss: Miss) -> list[Cue]:
        from dataclasses import replace

        instead = self._on_miss.missed(miss)
        if isinstance(instead, bytes) or instead is None:
            return [Cue(Playing(NOTHING, miss.request), instead or b"", answers=instead is not None, miss=miss)]
        again = self._finder.match(instead.request)  # so that it is the next of several answers
        played = again if isinstance(again, Exchange) else instead
        return [Cue(Playing(NOTHING, miss.request), miss=replace(miss, played=played)), *self._play(miss.request, played)]

    def _play(self, request: Message, found: Exchange) -> list[Cue]:
        playing = Playing(self._scenes.of_request[found.row], request)
        playing.again = found.row in self._played
        self._played.add(found.row)
        self._asked[playing.id] = playing
        if found.method == LISTEN:
            self._live[found.row] = playing.id
        return self._go_on(playing)

    def _notified(self, method: str) -> list[Cue]:
        scenes = self._scenes.of_notification.get(method, ())
        at = self._told.get(method, 0)
        if at >= len(scenes):
            return []
        self._told[method] = at + 1
        return self._go_on(Playing(scenes[at]))

    def _cancelled(self, id: str) -> list[Cue]:
        """The client gives a request up: the scene goes on behind where it did so in the recording, or not at all."""
        playing = self._asked.get(id)
        if playing is None:
            return []
        steps = playing.scene.steps
        for at in range(playing.next, len(steps)):
            step = steps[at]
            if isinstance(step, AwaitCancel):
                playing.next, playing.began_ns = at + 1, step.at_ns
                return self._go_on(playing)
        playing.is_over = True
        del self._asked[id]
        return []

    def _answered(self, id: str) -> list[Cue]:
        """The client answers a request of ours: the scene goes on if it waited for that."""
        token = next((one for one in (id, *spellings(id)) if one in self._waiting), None)
        if token is None:
            return []
        playing, row = self._waiting.pop(token)
        playing.unanswered.discard(row)
        steps = playing.scene.steps
        step = steps[playing.next] if playing.next < len(steps) else None
        if not isinstance(step, AwaitAnswer) or step.row != row:
            return []
        playing.began_ns = step.at_ns
        return self._go_on(playing)

    # What the server says

    def _go_on(self, playing: Playing) -> list[Cue]:
        """The next steps of a scene, up to where it waits for the client."""
        cues: list[Cue] = []
        steps = playing.scene.steps
        while playing.next < len(steps) and not playing.is_over:
            step = steps[playing.next]
            delay_ns = max(0, step.at_ns - playing.began_ns)
            match step:
                case Say():
                    data = self._said(step, playing)
                    if data is not None:
                        cues.append(Cue(playing, data, delay_ns, say=step, answers=step.answers))
                case Leave():
                    cues.append(Cue(playing, b"", delay_ns, leave=step))
                case AwaitAnswer() if step.row not in playing.unanswered:
                    pass  # it came before it was waited for, or nothing was asked
                case _:
                    break
            playing.next += 1
        return cues

    def _said(self, step: Say, playing: Playing) -> bytes | None:
        """The line, with the live values in its blanks; None if it is not to be said this time."""
        if step.once and playing.again:
            return None
        if step.parts is None:
            step.parts = line(step.message, step.exchange, listeners=self._scenes.listeners)
        filled: list[bytes] = []
        for part in step.parts:
            if isinstance(part, bytes):
                filled.append(part)
            elif (value := self._value(part, step, playing)) is not None:
                filled.append(value.encode("utf-8", "surrogatepass"))
            else:
                return None
        return b"".join(filled)

    def _value(self, blank: Blank, step: Say, playing: Playing) -> str | None:
        """The live value that a blank wants; None where there is none, as a progress token that the client did not give."""
        match blank.wants:
            case Wants.ID:
                return playing.id
            case Wants.TOKEN:
                return playing.token
            case Wants.ASKED:
                return playing.asked.get(blank.token)
            case Wants.LISTENS:
                return self._live.get(self._scenes.listeners.get(blank.token, 0))
            case Wants.OWN_ID:
                return self._own_id(blank.token, step, playing)

    def _own_id(self, recorded: str, step: Say, playing: Playing) -> str:
        id = str(self._next_id)
        self._next_id += 1
        playing.asked[recorded] = id
        if step.exchange is not None:
            self._waiting[id] = playing, step.exchange.row
            playing.unanswered.add(step.exchange.row)
        return id

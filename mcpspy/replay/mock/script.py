"""The script of a mock: what to say to what a live client says, from the scenes of a recording.

A machine: `open`, `feed` and `close` return what is to be said, each with how long after what it followed in the recording. Refuses
to read clocks and to wait: who plays it does, and asks `is_due` at its time whether it is still to be said.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ...transcript.correlate import spellings
from ...transcript.mcp.fields import TASK
from ...transcript.mcp.methods import CANCELLED, LISTEN
from ...transcript.model import Exchange, Kind
from .generated_ids import CallContext, Names, moved, name_in, spelled
from .on_miss import ERROR
from .replies import LIST_CHANGED, AwaitAnswer, AwaitCancel, Leave, Say, Scene, Scenes
from .scheduled_send import NOTHING, Cue, Playing
from .templates import Wants, line

if TYPE_CHECKING:
    from ...transcript.model import Message
    from .generated_ids import Finder
    from .miss import Miss
    from .on_miss import OnMiss
    from .owner import Owner
    from .templates import Blank

_TASK_ID: Final = ("result", "task", "taskId")

ANSWERED_BY_ALL: Final = ("ping", "logging/setLevel")
"""What any server answers with nothing (basic/utilities/ping, server/utilities/logging), so that some clients ask it of each."""


class Script:
    """What a mock says to one live client, from `scenes`; `finder` finds what was recorded for a request.

    Any number of scripts may share the scenes, which do not change; a finder belongs to one script alone. `wall_ns` is Unix time at
    the zero of the client's messages: by it the times of tasks are those of now; 0 leaves them as recorded.
    """

    __slots__ = (
        "_asked",
        "_live",
        "_names",
        "_next_id",
        "_on_miss",
        "_played",
        "_scenes",
        "_taken",
        "_told",
        "_waiting",
        "_wall_ns",
    )

    def __init__(self, scenes: Scenes, finder: Finder, on_miss: OnMiss = ERROR, *, wall_ns: int = 0) -> None:
        self._scenes = scenes
        self._names = Names(finder)
        self._wall_ns = wall_ns
        self._on_miss = on_miss
        self._next_id = 1
        self._played: set[int] = set()
        """The rows whose scenes have been played."""
        self._told: dict[tuple[Owner, str], int] = {}
        """How many notifications of each recorded client and method were played."""
        self._asked: dict[str, Playing] = {}
        """What the client has asked and is not answered yet, by the ids of its requests."""
        self._waiting: dict[str, tuple[Playing, Exchange]] = {}
        """What the client has been asked and has not answered yet, by the ids of our requests: the scene, and what was recorded."""
        self._live: dict[str, str] = {}
        """The live ids of subscriptions, by the recorded ones; of equal ones the latest."""
        self._taken: set[str] = set()
        """The ids under which somebody else asks the client."""

    def open(self) -> list[Cue]:
        """What the server said before it was asked anything."""
        return self._on_its_own(self._scenes.opening)

    def feed(self, message: Message) -> list[Cue]:
        """What follows on a message of the client's. Nothing does on what no server can answer."""
        match message.kind:
            case Kind.REQUEST:
                return self._requested(message)
            case Kind.NOTIFICATION if message.method == CANCELLED:
                return self._cancelled(message.correlation_key or "")
            case Kind.NOTIFICATION:
                return self._notified(message.method or "")
            case Kind.RESULT | Kind.ERROR:
                return self._answered(message)
            case _:
                return []

    def close(self) -> list[Cue]:
        """What the server said when its input had ended."""
        return self._on_its_own(self._scenes.closing)

    def waits(self, id: str) -> Playing | None:
        """The scene of the client's request with this id, if an answer to it is still to come."""
        playing = self._asked.get(id)
        if playing is None or not any(isinstance(step, Say) and step.answers for step in playing.scene.steps):
            return None
        return playing

    def cancel(self, id: str) -> list[Cue]:
        """What follows when the client gives its request with this id up; nothing if it is answered, or was never asked."""
        return self._cancelled(id)

    def unheard(self, question: Cue) -> list[Cue]:
        """What follows on a question that nobody hears for now: what waits for the answer goes on without."""
        playing, asked = question.playing, None if question.say is None else question.say.exchange
        if asked is None or asked.row not in playing.unanswered:
            return []
        playing.unanswered.discard(asked.row)
        return self._go_on(playing)

    def is_due(self, cue: Cue) -> bool:
        """Whether a cue whose time has come still holds. To be asked once."""
        playing = cue.playing
        if cue.answers and self._asked.get(playing.id) is playing:
            self._drop(playing)
        return not playing.is_over and cue.since == playing.given_up

    # What a live server needs that goes on in our place

    def awaits(self, id: str) -> bool:
        """Whether a question of ours is open to which this is the id of the answer."""
        return any(one in self._waiting for one in (id, *spellings(id)))

    def free_id(self, wanted: str) -> str:
        """An id for somebody else's question, the one that is wanted if it is free. No other question gets it."""
        is_used = wanted in self._taken or (wanted.isdigit() and int(wanted) < self._next_id)
        id = self._new_id() if is_used else wanted
        self._taken.add(id)
        self._skip_taken()
        return id

    def beside(self, request: Message | None) -> Playing:
        """What somebody else says on a request of the client's, or on none."""
        return self._playing(NOTHING, request)

    @property
    def exit_code(self) -> int:
        """With what the recorded server exited, on whose way the client is; 0 if nobody knows."""
        return self._scenes.exit_codes.get(self._owner[0], 0)

    @property
    def _owner(self) -> Owner:
        return self._names.first.finder.owner or (0, "")

    # What the client says

    def _playing(self, scene: Scene, request: Message | None = None) -> Playing:
        return Playing(scene, self._names.first, request)

    def _requested(self, asked: Message) -> list[Cue]:
        call_context, request = self._names.call_context_of(asked)
        found = call_context.finder.match(request)
        if not isinstance(found, Exchange):
            if request.method in ANSWERED_BY_ALL and found.is_unknown:
                nothing = f'{{"jsonrpc":"2.0","id":{request.id},"result":{{}}}}\n'.encode()
                return [Cue(self._playing(NOTHING, request), nothing, answers=True)]
            return self._missed(found, call_context)
        why = self._scenes.unknown.get(found.row)
        if why:
            from .miss import Miss  # 2 ms of start-up, for what may never be missed

            return self._missed(Miss(request=request, reason=why, refused_by="capture", nearest=found), call_context)
        return self._play(request, found, call_context)

    def _missed(self, miss: Miss, call_context: CallContext) -> list[Cue]:
        from dataclasses import replace

        instead = self._on_miss.missed(miss)
        if isinstance(instead, bytes) or instead is None:
            return [Cue(self._playing(NOTHING, miss.request), instead or b"", answers=instead is not None, miss=miss)]
        again = call_context.finder.match(instead.request)  # so that it is the next of several answers
        played = again if isinstance(again, Exchange) else instead
        told = Cue(self._playing(NOTHING, miss.request), miss=replace(miss, played=played))
        return [told, *self._play(miss.request, played, call_context)]

    def _play(self, request: Message, found: Exchange, call_context: CallContext) -> list[Cue]:
        scene = self._scenes.of_request[found.row]
        if found.row in call_context.played and scene.gives:
            call_context = self._names.again(call_context, found)
        playing = Playing(scene, call_context, request)
        playing.again, playing.was_played = found.row in call_context.played, found.row in self._played
        call_context.played.add(found.row)
        self._played.add(found.row)
        self._asked[playing.id] = playing
        if found.method == LISTEN:
            self._live[found.request.id or ""] = playing.id
        return self._go_on(playing)

    def _on_its_own(self, scenes: dict[Owner, Scene]) -> list[Cue]:
        scene = scenes.get(self._owner)
        return [] if scene is None else self._go_on(self._playing(scene))

    def _notified(self, method: str) -> list[Cue]:
        told = (self._owner, method)
        scenes = self._scenes.of_notification.get(told, ())
        at = self._told.get(told, 0)
        if at >= len(scenes):
            return []
        self._told[told] = at + 1
        return self._go_on(self._playing(scenes[at]))

    def _cancelled(self, id: str) -> list[Cue]:
        """The client gives a request up: the scene goes on behind where it did so in the recording, or not at all."""
        playing = next((self._asked[one] for one in (id, *spellings(id)) if one in self._asked), None)
        if playing is None:
            return []
        playing.given_up += 1
        steps = playing.scene.steps
        for at in range(playing.next, len(steps)):
            step = steps[at]
            if isinstance(step, AwaitCancel):
                playing.next, playing.began_ns = at + 1, step.at_ns
                return self._go_on(playing)
        playing.is_over = True
        self._drop(playing)
        return []

    def _drop(self, playing: Playing) -> None:
        """A request of the client's is answered, or given up for good: a subscription has no more news then."""
        del self._asked[playing.id]
        exchange = playing.scene.exchange
        if exchange is not None and exchange.method == LISTEN:
            self._live = {recorded: live for recorded, live in self._live.items() if live != playing.id}

    def _answered(self, answer: Message) -> list[Cue]:
        """The client answers a request of ours: the scene goes on if it waited for that."""
        id = answer.id or ""
        token = next((one for one in (id, *spellings(id)) if one in self._waiting), None)
        if token is None:
            return []
        playing, asked = self._waiting.pop(token)
        row = asked.row
        playing.unanswered.discard(row)
        if asked.response is not None and asked.response.result_type == TASK:
            self._take_task(asked.response, answer, playing)
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
        if step.once and (playing.again or (playing.was_played and (step.message.method or "").endswith(LIST_CHANGED))):
            return None
        if step.parts is None:
            step.parts = line(step.message, step.exchange, listeners=self._scenes.listeners)
        filled: list[bytes] = []
        for part in step.parts:
            if isinstance(part, bytes):
                filled.append(part)
            elif (value := self._value(part, step, playing)) is not None:
                filled.append(value.encode("utf-8", "surrogatepass") if isinstance(value, str) else value)
            else:
                return None
        if step.message.kind is Kind.REQUEST:
            self._ask(step, playing)
        return b"".join(filled)

    def _value(self, blank: Blank, step: Say, playing: Playing) -> str | bytes | None:
        """The live value that a blank wants; None where there is none, as a progress token that the client did not give."""
        match blank.wants:
            case Wants.ID:
                return playing.id
            case Wants.TOKEN:
                return playing.token
            case Wants.ASKED:
                return playing.asked.get(blank.token)
            case Wants.LISTENS:
                return self._live.get(blank.token)
            case Wants.OWN_ID:
                return str(self._next_id)
            case Wants.NAME | Wants.TASK:
                name = self._name(blank, step, playing)
                return None if name is None else spelled(name, blank.recorded)
            case Wants.TIME:
                name = self._name(blank, step, playing)
                return moved(blank.recorded, 0 if name is None else self._names.later_ns(name))

    def _name(self, blank: Blank, step: Say, playing: Playing) -> str | None:
        """The live name of what the server gave out; None where it gave none out to this client.

        Answers give names out, and so does whatever comes before the answer that does.
        """
        if blank.wants is Wants.TASK:
            return playing.tasks.get(blank.token)
        if step.answers or playing.scene.gives:
            return self._names.give(blank.token, playing.call_context, self._later_ns(playing))
        return self._names.known(blank.token, playing.call_context)

    def _later_ns(self, playing: Playing) -> int:
        """By how much later a scene is played than it was recorded."""
        if not self._wall_ns or playing.request is None:
            return 0
        return self._wall_ns + playing.request.at_ns - self._scenes.wall_ns - playing.scene.at_ns

    def _take_task(self, recorded: Message, live: Message, playing: Playing) -> None:
        """The client runs a task for the server: what the server asks about it has its live id."""
        names = name_in(recorded.raw, _TASK_ID), name_in(live.raw, _TASK_ID)
        if names[0] is not None and names[1] is not None:
            playing.tasks[names[0]] = names[1]

    def _ask(self, step: Say, playing: Playing) -> None:
        """A request of ours goes out, under the id that its line has."""
        id = self._new_id()
        playing.asked[step.message.id or ""] = id
        if step.exchange is not None:
            self._waiting[id] = playing, step.exchange
            playing.unanswered.add(step.exchange.row)

    def _new_id(self) -> str:
        """An id that no question to this client has had."""
        id = str(self._next_id)
        self._next_id += 1
        self._skip_taken()
        return id

    def _skip_taken(self) -> None:
        while str(self._next_id) in self._taken:
            self._next_id += 1

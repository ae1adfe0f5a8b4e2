"""The script of a mock: what to say to what a live client says, from the replies of a recording.

A machine: `open`, `feed` and `close` return what is to be said, each with how long after what it followed in the recording. Refuses
to read clocks and to wait: who plays it does, and asks `is_due` at its time whether it is still to be said.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ...transcript.correlate import spellings
from ...transcript.mcp.fields import TASK
from ...transcript.mcp.methods import CANCELLED, LISTEN
from ...transcript.model import Exchange, Kind
from .generated_ids import CallContext, GeneratedIds, id_as_json, shifted_time, text_at
from .on_miss import ERROR
from .replies import LIST_CHANGED, AwaitAnswer, AwaitCancel, ExitProcess, RecordedReplies, RecordedReply, SendMessage
from .scheduled_send import NO_REPLY, ReplyState, ScheduledSend
from .templates import PlaceholderKind, line_template

if TYPE_CHECKING:
    from ...transcript.model import Message
    from .generated_ids import ExchangeFinder
    from .miss import Miss
    from .on_miss import MissPolicy
    from .owner import Owner
    from .templates import Placeholder

_TASK_ID: Final = ("result", "task", "taskId")

ANSWERED_BY_ALL: Final = ("ping", "logging/setLevel")
"""What any server answers with nothing (basic/utilities/ping, server/utilities/logging), so that some clients ask it of each."""


class Script:
    """What a mock says to one live client, from `replies`; `finder` finds what was recorded for a request.

    Any number of scripts may share the replies, which do not change; a finder belongs to one script alone. `wall_ns` is Unix time at
    the zero of the client's messages: by it the times of tasks are those of now; 0 leaves them as recorded.
    """

    __slots__ = (
        "_asked",
        "_live",
        "_names",
        "_next_id",
        "_on_miss",
        "_played",
        "_replies",
        "_taken",
        "_told",
        "_waiting",
        "_wall_ns",
    )

    def __init__(
        self, replies: RecordedReplies, finder: ExchangeFinder, on_miss: MissPolicy = ERROR, *, wall_ns: int = 0
    ) -> None:
        self._replies = replies
        self._names = GeneratedIds(finder)
        self._wall_ns = wall_ns
        self._on_miss = on_miss
        self._next_id = 1
        self._played: set[int] = set()
        """The rows whose replies have been played."""
        self._told: dict[tuple[Owner, str], int] = {}
        """How many notifications of each recorded client and method were played."""
        self._asked: dict[str, ReplyState] = {}
        """What the client has asked and is not answered yet, by the ids of its requests."""
        self._waiting: dict[str, tuple[ReplyState, Exchange]] = {}
        """What the client has been asked and has not answered yet, by the ids of our requests: the reply, and what was recorded."""
        self._live: dict[str, str] = {}
        """The live ids of subscriptions, by the recorded ones; of equal ones the latest."""
        self._taken: set[str] = set()
        """The ids under which somebody else asks the client."""

    def open(self) -> list[ScheduledSend]:
        """What the server said before it was asked anything."""
        return self._on_its_own(self._replies.opening)

    def feed(self, message: Message) -> list[ScheduledSend]:
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

    def close(self) -> list[ScheduledSend]:
        """What the server said when its input had ended."""
        return self._on_its_own(self._replies.closing)

    def open_request(self, id: str) -> ReplyState | None:
        """The reply of the client's request with this id, if an answer to it is still to come."""
        state = self._asked.get(id)
        if state is None or not any(isinstance(step, SendMessage) and step.answers for step in state.reply.steps):
            return None
        return state

    def cancel(self, id: str) -> list[ScheduledSend]:
        """What follows when the client gives its request with this id up; nothing if it is answered, or was never asked."""
        return self._cancelled(id)

    def skip_unheard(self, question: ScheduledSend) -> list[ScheduledSend]:
        """What follows on a question that nobody hears for now: what waits for the answer goes on without."""
        state, asked = question.state, None if question.step is None else question.step.exchange
        if asked is None or asked.row not in state.unanswered:
            return []
        state.unanswered.discard(asked.row)
        return self._go_on(state)

    def is_due(self, send: ScheduledSend) -> bool:
        """Whether a send whose time has come still holds. To be asked once."""
        state = send.state
        if send.answers and self._asked.get(state.id) is state:
            self._drop(state)
        return not state.is_over and send.since == state.given_up

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

    def beside(self, request: Message | None) -> ReplyState:
        """What somebody else says on a request of the client's, or on none."""
        return self._playing(NO_REPLY, request)

    @property
    def exit_code(self) -> int:
        """With what the recorded server exited, on whose way the client is; 0 if nobody knows."""
        return self._replies.exit_codes.get(self._owner[0], 0)

    @property
    def _owner(self) -> Owner:
        return self._names.first.finder.owner or (0, "")

    # What the client says

    def _playing(self, reply: RecordedReply, request: Message | None = None) -> ReplyState:
        return ReplyState(reply, self._names.first, request)

    def _requested(self, asked: Message) -> list[ScheduledSend]:
        call_context, request = self._names.call_context_of(asked)
        found = call_context.finder.match(request)
        if not isinstance(found, Exchange):
            if request.method in ANSWERED_BY_ALL and found.is_unknown:
                nothing = f'{{"jsonrpc":"2.0","id":{request.id},"result":{{}}}}\n'.encode()
                return [ScheduledSend(self._playing(NO_REPLY, request), nothing, answers=True)]
            return self._missed(found, call_context)
        why = self._replies.unknown.get(found.row)
        if why:
            from .miss import Miss  # 2 ms of start-up, for what may never be missed

            return self._missed(Miss(request=request, reason=why, refused_by="capture", nearest=found), call_context)
        return self._play(request, found, call_context)

    def _missed(self, miss: Miss, call_context: CallContext) -> list[ScheduledSend]:
        from dataclasses import replace

        instead = self._on_miss.missed(miss)
        if isinstance(instead, bytes) or instead is None:
            return [
                ScheduledSend(self._playing(NO_REPLY, miss.request), instead or b"", answers=instead is not None, miss=miss)
            ]
        again = call_context.finder.match(instead.request)  # so that it is the next of several answers
        played = again if isinstance(again, Exchange) else instead
        told = ScheduledSend(self._playing(NO_REPLY, miss.request), miss=replace(miss, played=played))
        return [told, *self._play(miss.request, played, call_context)]

    def _play(self, request: Message, found: Exchange, call_context: CallContext) -> list[ScheduledSend]:
        reply = self._replies.of_request[found.row]
        if found.row in call_context.played and reply.gives:
            call_context = self._names.again(call_context, found)
        state = ReplyState(reply, call_context, request)
        state.again, state.was_played = found.row in call_context.played, found.row in self._played
        call_context.played.add(found.row)
        self._played.add(found.row)
        self._asked[state.id] = state
        if found.method == LISTEN:
            self._live[found.request.id or ""] = state.id
        return self._go_on(state)

    def _on_its_own(self, replies: dict[Owner, RecordedReply]) -> list[ScheduledSend]:
        reply = replies.get(self._owner)
        return [] if reply is None else self._go_on(self._playing(reply))

    def _notified(self, method: str) -> list[ScheduledSend]:
        told = (self._owner, method)
        replies = self._replies.of_notification.get(told, ())
        at = self._told.get(told, 0)
        if at >= len(replies):
            return []
        self._told[told] = at + 1
        return self._go_on(self._playing(replies[at]))

    def _cancelled(self, id: str) -> list[ScheduledSend]:
        """The client gives a request up: the reply goes on behind where it did so in the recording, or not at all."""
        state = next((self._asked[one] for one in (id, *spellings(id)) if one in self._asked), None)
        if state is None:
            return []
        state.given_up += 1
        steps = state.reply.steps
        for at in range(state.next, len(steps)):
            step = steps[at]
            if isinstance(step, AwaitCancel):
                state.next, state.began_ns = at + 1, step.at_ns
                return self._go_on(state)
        state.is_over = True
        self._drop(state)
        return []

    def _drop(self, state: ReplyState) -> None:
        """A request of the client's is answered, or given up for good: a subscription has no more news then."""
        del self._asked[state.id]
        exchange = state.reply.exchange
        if exchange is not None and exchange.method == LISTEN:
            self._live = {recorded: live for recorded, live in self._live.items() if live != state.id}

    def _answered(self, answer: Message) -> list[ScheduledSend]:
        """The client answers a request of ours: the reply goes on if it waited for that."""
        id = answer.id or ""
        token = next((one for one in (id, *spellings(id)) if one in self._waiting), None)
        if token is None:
            return []
        state, asked = self._waiting.pop(token)
        row = asked.row
        state.unanswered.discard(row)
        if asked.response is not None and asked.response.result_type == TASK:
            self._take_task(asked.response, answer, state)
        steps = state.reply.steps
        step = steps[state.next] if state.next < len(steps) else None
        if not isinstance(step, AwaitAnswer) or step.row != row:
            return []
        state.began_ns = step.at_ns
        return self._go_on(state)

    # What the server says

    def _go_on(self, state: ReplyState) -> list[ScheduledSend]:
        """The next steps of a reply, up to where it waits for the client."""
        sends: list[ScheduledSend] = []
        steps = state.reply.steps
        while state.next < len(steps) and not state.is_over:
            step = steps[state.next]
            delay_ns = max(0, step.at_ns - state.began_ns)
            match step:
                case SendMessage():
                    data = self._said(step, state)
                    if data is not None:
                        sends.append(ScheduledSend(state, data, delay_ns, step=step, answers=step.answers))
                case ExitProcess():
                    sends.append(ScheduledSend(state, b"", delay_ns, exit=step))
                case AwaitAnswer() if step.row not in state.unanswered:
                    pass  # it came before it was waited for, or nothing was asked
                case _:
                    break
            state.next += 1
        return sends

    def _said(self, step: SendMessage, state: ReplyState) -> bytes | None:
        """The line, with the live values in its blanks; None if it is not to be said this time."""
        if step.once and (state.again or (state.was_played and (step.message.method or "").endswith(LIST_CHANGED))):
            return None
        if step.parts is None:
            step.parts = line_template(step.message, step.exchange, listeners=self._replies.listeners)
        filled: list[bytes] = []
        for part in step.parts:
            if isinstance(part, bytes):
                filled.append(part)
            elif (value := self._value(part, step, state)) is not None:
                filled.append(value.encode("utf-8", "surrogatepass") if isinstance(value, str) else value)
            else:
                return None
        if step.message.kind is Kind.REQUEST:
            self._ask(step, state)
        return b"".join(filled)

    def _value(self, blank: Placeholder, step: SendMessage, state: ReplyState) -> str | bytes | None:
        """The live value that a blank wants; None where there is none, as a progress token that the client did not give."""
        match blank.wants:
            case PlaceholderKind.ID:
                return state.id
            case PlaceholderKind.TOKEN:
                return state.token
            case PlaceholderKind.ASKED:
                return state.asked.get(blank.token)
            case PlaceholderKind.LISTENS:
                return self._live.get(blank.token)
            case PlaceholderKind.OWN_ID:
                return str(self._next_id)
            case PlaceholderKind.NAME | PlaceholderKind.TASK:
                name = self._name(blank, step, state)
                return None if name is None else id_as_json(name, blank.recorded)
            case PlaceholderKind.TIME:
                name = self._name(blank, step, state)
                return shifted_time(blank.recorded, 0 if name is None else self._names.later_ns(name))

    def _name(self, blank: Placeholder, step: SendMessage, state: ReplyState) -> str | None:
        """The live name of what the server gave out; None where it gave none out to this client.

        Answers give names out, and so does whatever comes before the answer that does.
        """
        if blank.wants is PlaceholderKind.TASK:
            return state.tasks.get(blank.token)
        if step.answers or state.reply.gives:
            return self._names.give(blank.token, state.call_context, self._later_ns(state))
        return self._names.known(blank.token, state.call_context)

    def _later_ns(self, state: ReplyState) -> int:
        """By how much later a reply is played than it was recorded."""
        if not self._wall_ns or state.request is None:
            return 0
        return self._wall_ns + state.request.at_ns - self._replies.wall_ns - state.reply.at_ns

    def _take_task(self, recorded: Message, live: Message, state: ReplyState) -> None:
        """The client runs a task for the server: what the server asks about it has its live id."""
        names = text_at(recorded.raw, _TASK_ID), text_at(live.raw, _TASK_ID)
        if names[0] is not None and names[1] is not None:
            state.tasks[names[0]] = names[1]

    def _ask(self, step: SendMessage, state: ReplyState) -> None:
        """A request of ours goes out, under the id that its line has."""
        id = self._new_id()
        state.asked[step.message.id or ""] = id
        if step.exchange is not None:
            self._waiting[id] = state, step.exchange
            state.unanswered.add(step.exchange.row)

    def _new_id(self) -> str:
        """An id that no question to this client has had."""
        id = str(self._next_id)
        self._next_id += 1
        self._skip_taken()
        return id

    def _skip_taken(self) -> None:
        while str(self._next_id) in self._taken:
            self._next_id += 1

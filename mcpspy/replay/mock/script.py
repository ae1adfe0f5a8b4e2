"""Script of a mock: what to send to one live client, made from recorded replies.

A machine: `open`, `feed` and `close` return scheduled sends, each with its recorded delay. Whoever plays the script waits, and asks
`is_due` at the time of a send whether it still holds.
"""

from __future__ import annotations

from collections.abc import Container
from typing import TYPE_CHECKING, Final, Protocol

from ...transcript.correlator import known_spelling
from ...transcript.mcp.codes import TASK
from ...transcript.mcp.methods import CANCELLED, LISTEN, PING
from ...transcript.message import mark_words
from ...transcript.model import HTTP_REDIRECTS, Exchange, Kind, Message
from ...wire.lines import UNENDED
from .matching import MatchCursor, Owner
from .replies import LIST_CHANGED, AwaitAnswer, AwaitCancel, ExitProcess, RecordedReplies, RecordedReply, SendMessage
from .scheduled_send import NO_REPLY, ReplyState, ScheduledSend, UnendedLine
from .templates import (
    CallContext,
    GeneratedIds,
    Placeholder,
    PlaceholderKind,
    id_as_json,
    line_template,
    shifted_time,
    spelled,
    text_at,
)

if TYPE_CHECKING:
    from .miss import Miss

_TASK_ID: Final = ("result", "task", "taskId")

ANSWERED_BY_ALL: Final = (PING, "logging/setLevel")
"""Methods that any server answers with an empty result (basic/utilities/ping, server/utilities/logging): some clients use them on
every server."""


class ErrorPolicy:
    """A policy that answers a miss with the error that explains it."""

    __slots__ = ()

    def missed(self, miss: Miss) -> bytes:
        """Return the line of the error."""
        return miss.line


ERROR: Final = ErrorPolicy()


class Script:
    """The script for one live client, from `replies`; `finder` finds the recorded exchange for a request.

    Any number of scripts may share the replies, which do not change; a finder belongs to one script. `wall_ns` is Unix time at the
    zero of the client's messages: the times of tasks are moved to it; 0 leaves them as recorded.
    """

    __slots__ = (
        "_ids", "_next_id", "_notified", "_on_miss", "_open", "_played", "_replies", "_server_requests", "_subscriptions",
        "_taken_ids", "_wall_ns",
    )  # fmt: skip

    def __init__(self, replies: RecordedReplies, finder: MatchCursor, on_miss: MissPolicy = ERROR, *, wall_ns: int = 0) -> None:
        self._replies = replies
        self._ids = GeneratedIds(finder)
        self._wall_ns = wall_ns
        self._on_miss = on_miss
        self._next_id = 1
        self._played: set[int] = set()
        """The rows whose replies have been played."""
        self._notified: dict[tuple[Owner, str | bytes], int] = {}
        """By recorded client and method: how many replies to notifications were played."""
        self._open: dict[str, ReplyState] = {}
        """The client's requests that are not answered yet, by id."""
        self._server_requests: dict[str, tuple[ReplyState, Exchange]] = {}
        """Our requests that the client has not answered yet, by id: the reply that asks, and the recorded exchange."""
        self._subscriptions: dict[str, str] = {}
        """The live ids of subscriptions, by the recorded ones; of equal ones the latest."""
        self._taken_ids: set[str] = set()
        """The ids of requests that somebody else sends to the client."""

    def open(self) -> list[ScheduledSend]:
        """Return what the server sent before the client sent anything, or on a stream without a session."""
        return self._play_on_its_own(self._replies.opening, self._owner) or self._play_on_its_own(
            self._replies.opening, (self._owner[0], "")
        )

    def feed(self, message: Message) -> list[ScheduledSend]:
        """Take a message of the client; return what follows it. Nothing follows what no server can answer."""
        match message.kind:
            case Kind.REQUEST:
                return self._take_request(message)
            case Kind.NOTIFICATION if message.method == CANCELLED:
                return self.cancel(message.correlation_key or "")
            case Kind.NOTIFICATION:
                return self._take_notification(message.method or "")
            case Kind.MALFORMED:
                return self._take_notification(message.raw)
            case Kind.RESULT | Kind.ERROR:
                return self._take_answer(message)

    def close(self) -> list[ScheduledSend]:
        """Return what the server sent after its input had ended."""
        return self._play_on_its_own(self._replies.closing, self._owner)

    def open_request(self, id: str) -> ReplyState | None:
        """Return the reply to the client's request with this id, if its answer is still to come."""
        state = self._open.get(id)
        if state is None or not any(isinstance(step, SendMessage) and step.answers for step in state.reply.steps):
            return None
        return state

    def cancel(self, id: str) -> list[ScheduledSend]:
        """Cancel the client's request with this id: continue after the recorded cancellation, if there is one, else stop.

        Return nothing if the request is answered, or unknown.
        """
        key = known_spelling(id, self._open)
        if key is None:
            return []
        state = self._open[key]
        state.cancels += 1
        steps = state.reply.steps
        for index in range(state.next_step, len(steps)):
            step = steps[index]
            if isinstance(step, AwaitCancel):
                state.next_step, state.since_ns = index + 1, step.at_ns
                return self._go_on(state)
        state.is_over = True
        self._close_request(state)
        return []

    def skip_unheard(self, request: ScheduledSend) -> list[ScheduledSend]:
        """Continue without the answer to a request that no client hears for now."""
        state, exchange = request.state, None if request.step is None else request.step.exchange
        if exchange is None or exchange.row not in state.unanswered:
            return []
        state.unanswered.discard(exchange.row)
        return self._go_on(state)

    def is_due(self, send: ScheduledSend) -> bool:
        """Return whether a send whose time has come still holds. Ask once."""
        state = send.state
        if send.answers and self._open.get(state.id) is state:
            self._close_request(state)
        return not state.is_over and send.cancels == state.cancels

    # For a pass-through, which continues with a live server

    def has_server_request(self, id: str) -> bool:
        """Return whether an answer with this id answers one of our requests."""
        return known_spelling(id, self._server_requests) is not None

    def free_id(self, wanted: str) -> str:
        """Reserve an id for somebody else's request: the wanted one, if it is free."""
        is_used = wanted in self._taken_ids or (wanted.isdigit() and int(wanted) < self._next_id)
        id = self._new_id() if is_used else wanted
        self._taken_ids.add(id)
        self._skip_taken()
        return id

    def unrecorded(self, request: Message | None) -> ReplyState:
        """Return the state of a reply that was not recorded, to this request or to none."""
        return self._state(NO_REPLY, request)

    @property
    def exit_code(self) -> int:
        """The exit code of the recorded server that the client follows; 0 if it is unknown."""
        return self._replies.exit_codes.get(self._owner[0], 0)

    @property
    def _owner(self) -> Owner:
        return self._ids.first.finder.owner or (0, "")

    # Messages of the client

    def _state(self, reply: RecordedReply, request: Message | None = None) -> ReplyState:
        return ReplyState(reply, self._ids.first, request)

    def _take_request(self, live_request: Message) -> list[ScheduledSend]:
        call_context, request = self._ids.call_context_of(live_request)
        match = call_context.finder.match(request)
        if not isinstance(match, Exchange):
            if request.method in ANSWERED_BY_ALL and match.is_unknown:
                empty = f'{{"jsonrpc":"2.0","id":{request.id},"result":{{}}}}\n'.encode()
                return [ScheduledSend(self._state(NO_REPLY, request), empty, answers=True)]
            return self._take_miss(match, call_context)
        why = self._replies.missing_answers.get(match.row)
        if why:
            from .miss import Miss  # 2 ms of start-up, which a mock without a miss saves

            return self._take_miss(Miss(request=request, reason=why, refused_by="capture", nearest=match), call_context)
        return [*self._silence(request, match), *self._play(request, match, call_context)]

    def _silence(self, request: Message, exchange: Exchange) -> list[ScheduledSend]:
        """Say why a request gets no answer, if an intercept took it from the recorded client."""
        is_refused = exchange.transaction is not None and exchange.transaction.status >= HTTP_REDIRECTS
        if exchange.response is not None or is_refused:
            return []
        words = mark_words([exchange.request])
        if not words:
            return []
        from .miss import Miss

        why = Miss(request=request, reason=f"gets no answer, as recorded: {words}", nearest=exchange)
        return [ScheduledSend(self._state(NO_REPLY, request), miss=why)]

    def _take_miss(self, miss: Miss, call_context: CallContext) -> list[ScheduledSend]:
        from dataclasses import replace

        instead = self._on_miss.missed(miss)
        state = self._state(NO_REPLY, miss.request)
        if isinstance(instead, bytes) or instead is None:
            return [ScheduledSend(state, instead or b"", answers=instead is not None, miss=miss)]
        next_match = call_context.finder.match(instead.request)  # of several answers, the next
        played = next_match if isinstance(next_match, Exchange) else instead
        note = ScheduledSend(state, miss=replace(miss, played=played))
        return [note, *self._play(miss.request, played, call_context)]

    def _play(self, request: Message, exchange: Exchange, call_context: CallContext) -> list[ScheduledSend]:
        reply = self._replies.of_request[exchange.row]
        if exchange.row in call_context.played and reply.generates_ids:
            call_context = self._ids.branch(call_context, exchange)
        state = ReplyState(reply, call_context, request)
        state.is_repeated, state.was_played = exchange.row in call_context.played, exchange.row in self._played
        call_context.played.add(exchange.row)
        self._played.add(exchange.row)
        self._open[state.id] = state
        if exchange.method == LISTEN:
            self._subscriptions[exchange.request.id or ""] = state.id
        return self._go_on(state)

    def _play_on_its_own(self, replies: dict[Owner, RecordedReply], owner: Owner) -> list[ScheduledSend]:
        reply = replies.get(owner)
        return [] if reply is None else self._go_on(self._state(reply))

    def _take_notification(self, method: str | bytes) -> list[ScheduledSend]:
        key = (self._owner, method)
        replies = self._replies.of_notification.get(key, ())
        count = self._notified.get(key, 0)
        if method == PING and replies:
            count = min(count, len(replies) - 1)  # a heartbeat without an id goes on as long as the client lives
        if count >= len(replies):
            return []
        self._notified[key] = count + 1
        return self._go_on(self._state(replies[count]))

    def _close_request(self, state: ReplyState) -> None:
        """Forget a request that is answered or cancelled; a subscription gets no more notifications then."""
        del self._open[state.id]
        exchange = state.reply.exchange
        if exchange is not None and exchange.method == LISTEN:
            self._subscriptions = {recorded: live for recorded, live in self._subscriptions.items() if live != state.id}

    def _take_answer(self, answer: Message) -> list[ScheduledSend]:
        """Continue the reply that waited for the answer to one of our requests."""
        key = known_spelling(answer.id or "", self._server_requests)
        if key is None:
            return []
        state, request = self._server_requests.pop(key)
        state.unanswered.discard(request.row)
        if request.response is not None and request.response.result_type == TASK:
            _remember_task(request.response, answer, state)
        steps = state.reply.steps
        step = steps[state.next_step] if state.next_step < len(steps) else None
        if not isinstance(step, AwaitAnswer) or step.row != request.row:
            return []
        state.since_ns = step.at_ns
        return self._go_on(state)

    # Messages of the server

    def _go_on(self, state: ReplyState) -> list[ScheduledSend]:
        """Return the next steps of a reply, up to where it waits for the client."""
        sends: list[ScheduledSend] = []
        steps = state.reply.steps
        while state.next_step < len(steps) and not state.is_over:
            step = steps[state.next_step]
            delay_ns = max(0, step.at_ns - state.since_ns)
            match step:
                case SendMessage():
                    data = self._line(step, state)
                    if data is not None:
                        sends.append(ScheduledSend(state, data, delay_ns, step=step, answers=step.answers))
                case ExitProcess():
                    sends.append(ScheduledSend(state, b"", delay_ns, exit=step))
                case AwaitAnswer() if step.row not in state.unanswered:
                    pass  # the answer came earlier, or nothing was asked
                case _:
                    break
            state.next_step += 1
        return sends

    def _line(self, step: SendMessage, state: ReplyState) -> bytes | None:
        """Return the line with live values for its placeholders; None if it is not sent this time."""
        is_list_change = (step.message.method or "").endswith(LIST_CHANGED)
        if step.once and (state.is_repeated or (state.was_played and is_list_change)):
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
        line = b"".join(filled)
        return UnendedLine(line) if UNENDED in step.message.flaws else line

    def _value(self, placeholder: Placeholder, step: SendMessage, state: ReplyState) -> str | bytes | None:
        """Return the live value for a placeholder; None without one, as a progress token that the client did not give."""
        match placeholder.kind:
            case PlaceholderKind.REQUEST_ID:
                return spelled(state.id, placeholder)
            case PlaceholderKind.PROGRESS_TOKEN:
                return None if state.progress_token is None else spelled(state.progress_token, placeholder)
            case PlaceholderKind.SERVER_REQUEST_ID:
                return state.request_ids.get(placeholder.recorded)
            case PlaceholderKind.SUBSCRIPTION_ID:
                return self._subscriptions.get(placeholder.recorded)
            case PlaceholderKind.OWN_ID:
                return str(self._next_id)
            case PlaceholderKind.GENERATED_ID | PlaceholderKind.CLIENT_TASK_ID:
                id = self._generated_id(placeholder, step, state)
                return None if id is None else id_as_json(id, placeholder.recorded_bytes)
            case PlaceholderKind.TASK_TIME:
                id = self._generated_id(placeholder, step, state)
                return shifted_time(placeholder.recorded_bytes, 0 if id is None else self._ids.later_ns(id))

    def _generated_id(self, placeholder: Placeholder, step: SendMessage, state: ReplyState) -> str | None:
        """Return the live id for a recorded one; None if this client was given none.

        An answer gives ids to the client, and so do the messages before it in the same reply.
        """
        if placeholder.kind is PlaceholderKind.CLIENT_TASK_ID:
            return state.task_ids.get(placeholder.recorded)
        if step.answers or state.reply.generates_ids:
            return self._ids.give(placeholder.recorded, state.call_context, self._later_ns(state))
        return self._ids.find(placeholder.recorded, state.call_context)

    def _later_ns(self, state: ReplyState) -> int:
        """Return how much later a reply is played than it was recorded."""
        if not self._wall_ns or state.request is None:
            return 0
        return self._wall_ns + state.request.at_ns - self._replies.wall_ns - state.reply.at_ns

    def _ask(self, step: SendMessage, state: ReplyState) -> None:
        """Remember a request of ours under the id that its line has."""
        id = self._new_id()
        state.request_ids[step.message.id or ""] = id
        if step.exchange is not None:
            self._server_requests[id] = state, step.exchange
            state.unanswered.add(step.exchange.row)

    def _new_id(self) -> str:
        """Return an id that no request to this client has had."""
        id = str(self._next_id)
        self._next_id += 1
        self._skip_taken()
        return id

    def _skip_taken(self) -> None:
        while str(self._next_id) in self._taken_ids:
            self._next_id += 1


def _remember_task(recorded: Message, live: Message, state: ReplyState) -> None:
    """Remember the live id of a task that the client runs for the server: the server's requests about it have this id."""
    recorded_id, live_id = text_at(recorded.raw, _TASK_ID), text_at(live.raw, _TASK_ID)
    if recorded_id is not None and live_id is not None:
        state.task_ids[recorded_id] = live_id


class MissPolicy(Protocol):
    """The policy of a mock for a miss."""

    def missed(self, miss: Miss) -> Exchange | bytes | None:
        """Return the exchange to play instead, or the line to send; None to send nothing, since somebody else will answer."""


class NearestPolicy:
    """A policy that plays the nearest recorded exchange, if there is one. `unanswered` are the rows whose answers are missing."""

    __slots__ = ("_unanswered",)

    def __init__(self, unanswered: Container[int] = ()) -> None:
        self._unanswered = unanswered

    def missed(self, miss: Miss) -> Exchange | bytes:
        """Return the nearest exchange, or the line of the error."""
        nearest = miss.nearest
        return miss.line if nearest is None or nearest.row in self._unanswered else nearest

"""Joins rows to calls: rounds with the input that was required, a task and what is asked about it, a subscription and its news.

A machine over the rows of one capture, which keep their numbers and know nothing of it. Refuses to guess: what several calls could
mean joins none, and its message has the flaw `ambiguous-call`. Source: see `call`; for how things are named, `naming`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

from ...records import CLIENT, SERVER
from ..mcp.fields import INPUT_REQUIRED, TASK
from ..mcp.methods import LISTEN
from ..model import CaptureInfo, Exchange, Kind, Message, Outcome, UnpairedMessage
from .call import ABOUT_TASKS, SUBSCRIBE, UNSUBSCRIBE, Call, CallPart, Task
from .candidates import NO_MATCH, CandidateMatch, Candidates, Name
from .references import (
    MAY_NEED_INPUT,
    TaskFacts,
    elicitation,
    elicitations,
    fingerprint,
    related_task,
    required_input,
    retry,
    subscription,
    task_facts,
)  # fmt: skip

if TYPE_CHECKING:
    from ...records import Side
    from ..http.transaction import Scope

_ELICIT: Final = "elicitation/create"
_ELICITED: Final = "notifications/elicitation/complete"
_UPDATED: Final = "notifications/resources/updated"
TASK_NEWS: Final = frozenset(("notifications/tasks/status", "notifications/tasks"))
"""Notifications of how a task stands."""

JOINED: Final = frozenset((*ABOUT_TASKS, LISTEN, SUBSCRIBE, UNSUBSCRIBE, _ELICIT, _ELICITED, *TASK_NEWS))
"""Requests and notifications of which a call may be made though there is none yet. Where there is one, all may belong to it."""

_OTHER: Final[dict[Side, Side]] = {CLIENT: SERVER, SERVER: CLIENT}

MAX_LOST_SESSIONS: Final = 8
"""So many sessions that were lost one after the other are asked for a task."""

Asker: TypeAlias = "Scope | str"
"""Who asks, as far as that can be told: a session or a stream of HTTP+SSE, else what the client calls itself; empty on stdio."""


class CallJoiner:
    """The calls of the capture `source`, in `source.calls` by the numbers of all their rows.

    `feed` takes each message with the row it has become part of: where there are calls all of them, else those whose method is
    `JOINED`, errors, and results that are of a type of their own. It returns the first row of the call that it changed, if that is
    another one. `firsts` does the same for rows that changed without a message.
    """

    __slots__ = ("_calls", "_early", "_elicited", "_retries", "_source", "_subscribed", "_tasks", "_tried_again")

    def __init__(self, source: CaptureInfo) -> None:
        self._source = source
        self._calls = source.calls
        self._retries = Candidates()
        """Calls that need input, by all by which a retry may name them."""
        self._tried_again = Candidates()
        """Calls whose user was sent to a URL, by what they ask for."""
        self._tasks = Candidates()
        self._early: dict[tuple[Side, str, Asker], list[UnpairedMessage]] = {}
        """What was told of tasks before the answer that made them: servers are quicker to tell than to answer."""
        self._elicited = Candidates()
        self._subscribed: dict[tuple[str, Asker | None], Call] = {}

    def feed(self, row: Exchange | UnpairedMessage, message: Message) -> Exchange | None:
        """Take in a message. Nothing comes of most."""
        if isinstance(row, UnpairedMessage):
            call = self._told(row, message) if message.kind is Kind.NOTIFICATION else None
        elif row.request is message:
            call = self._asked(row, message)
        elif row.response is message:
            call = self._answered(row, message)
        else:
            call = self._calls.get(row.row)
        return None if call is None or call.first is row else call.first

    def firsts(self, rows: list[Exchange]) -> list[Exchange]:
        """The first rows of the calls that `rows` belong to, where they are others."""
        if not self._calls:
            return []
        calls = {id(call): call for row in rows if (call := self._calls.get(row.row)) is not None and call.first is not row}
        return [call.first for call in calls.values()]

    # Requests

    def _asked(self, row: Exchange, message: Message) -> Call | None:
        method = row.method
        if method in MAY_NEED_INPUT:
            return self._round(row, message)
        if method in ABOUT_TASKS:
            return self._about_task(row, message)
        if method == LISTEN:
            call = self._begin(row)
            self._subscribed[message.id or "", self._scope(message)] = call
            return call
        if method == SUBSCRIBE:
            return self._subscribe(row, message)
        if method == UNSUBSCRIBE:
            return self._join(self._subscribed.get((message.target or "", self._asker(message))), row)
        if method == _ELICIT and (named := elicitation(message)) is not None:
            call = self._begin(row)
            self._elicits(call, [named], message)
            return self._within_task(row, message) or call
        return self._within_task(row, message)

    def _round(self, row: Exchange, message: Message) -> Call | None:
        """A request that may be the next round of a call."""
        raw = message.raw
        if (b"inputResponses" in raw or b"requestState" in raw) and (said := retry(message)) is not None:
            asker = self._asker(message)
            for name, may_be_under_way in said:
                found = self._retries.find(name, asker)
                if found.call is None and not found.ambiguous:
                    found = found.again(may_be_under_way=may_be_under_way)
                if found.ambiguous:
                    _flag(message)
                if found.call is not None or found.ambiguous:
                    return self._next_round(self._retries, found.call, row)
            return None
        if self._tried_again.waits_for(row.method, message.target):
            tried = self._tried_again.find((row.method, message.target, fingerprint(message)), self._asker(message))
            if tried.ambiguous:
                _flag(message)
            return self._next_round(self._tried_again, tried.call, row)
        return None

    def _next_round(self, candidates: Candidates, call: Call | None, row: Exchange) -> Call | None:
        if call is None:
            return None
        candidates.take(call)
        call.rounds.append(row)
        call.answered_by = None
        return self._join(call, row)

    def _about_task(self, row: Exchange, message: Message) -> Call | None:
        task = message.target
        if task is None:
            return None
        found = self._task(row.sender, task, message)
        if found.ambiguous:
            _flag(message)
            return None
        call = found.call
        if call is None:  # it was begun before the capture
            call = self._begin(row)
            call.rounds.clear()
            call.task = Task(task)
            self._tasks.add((row.sender, task), self._asker(message), call)
        else:
            self._join(call, row)
        if ABOUT_TASKS[row.method] is CallPart.POLL:
            call.polls.append(row)
        return call

    def _within_task(self, row: Exchange, message: Message) -> Call | None:
        """What the side that runs a task asks the other one for it."""
        call = self._related(message)
        return None if call is None or row.row in self._calls else self._join(call, row)

    def _subscribe(self, row: Exchange, message: Message) -> Call | None:
        key = message.target or "", self._asker(message)
        before = self._subscribed.get(key)
        if before is not None and before.ended_ns is None:
            before.rounds.append(row)
            return self._join(before, row)
        call = self._subscribed[key] = self._begin(row)
        return call

    # Answers

    def _answered(self, row: Exchange, message: Message) -> Call | None:
        call = self._calls.get(row.row)
        if message.kind is Kind.ERROR:
            named = elicitations(message) if row.method in MAY_NEED_INPUT and b"elicitationId" in message.raw else []
            if named:
                call = call or self._begin(row)
                self._send_to_urls(call, row, named, message)
                return self._add_time(call, row)
        elif message.result_type == INPUT_REQUIRED and row.method in MAY_NEED_INPUT:
            call = call or self._begin(row)
            call.needed_input = row
            for name in required_input(row, message):
                self._retries.add(name, self._asker(row.request), call)
            return self._add_time(call, row)
        elif message.result_type == TASK and (facts := task_facts(message)) is not None:
            call = call or self._begin(row)
            self._become_task(call, row, facts, message)
            return self._add_time(call, row)
        if call is None:
            return None
        self._settle(call, row, message)
        return self._add_time(call, row)

    def _send_to_urls(self, call: Call, row: Exchange, named: list[str], message: Message) -> None:
        call.needed_input = row
        self._elicits(call, named, message)
        name: Name = (row.method, row.target, fingerprint(row.request))
        self._tried_again.add(name, self._asker(row.request), call)

    def _become_task(self, call: Call, row: Exchange, facts: TaskFacts, message: Message) -> None:
        name, asker = (row.sender, facts.id), self._asker(row.request)
        before = self._tasks.find(name, asker).call
        if before is not None and before is not call and before.outcome is not Outcome.PENDING:
            self._tasks.take(before)  # its id is used again
        self._tasks.add(name, asker, call)
        if call.task is None:
            call.task = Task(facts.id)
        for early in self._early.pop((*name, asker), ()):
            call.notifications.append(early)
            self._calls[early.row] = call
        self._note_status(call, facts, message.at_ns)

    def _settle(self, call: Call, row: Exchange, message: Message) -> None:
        """An answer that is one, to an exchange of a call."""
        part, is_error = call.part(row), message.kind is Kind.ERROR
        match part:
            case CallPart.ROUND if row is call.last_round and row.method not in (SUBSCRIBE, _ELICIT):
                call.answered_by = row
            case CallPart.RESULT if not is_error or (call.task is not None and call.task.over):
                call.answered_by = row
            case CallPart.END if not is_error:
                call.ended_ns = message.at_ns
            case CallPart.POLL | CallPart.CANCEL if not is_error:
                facts = task_facts(message)
                if facts is not None and (call.task is None or facts.id == call.task.id):
                    self._note_status(call, facts, message.at_ns)
                elif part is CallPart.CANCEL and call.task is not None and not call.task.over:  # an acknowledgement alone
                    call.task.cancelled = True
                    call.ended_ns = message.at_ns
            case _:
                pass

    # Notifications

    def _told(self, row: UnpairedMessage, message: Message) -> Call | None:
        method = message.method
        call: Call | None = None
        if method in TASK_NEWS:
            call = self._task_news(row, message)
        elif method == _ELICITED:
            call = self._elicitation_done(message)
        elif self._calls:
            if method == _UPDATED:
                call = self._subscribed.get((message.target or "", self._asker(message)))
                call = None if call is None or call.ended_ns is not None else call
            call = call or self._of_subscription(message) or self._related(message)
        if call is not None:
            call.notifications.append(row)
            self._calls[row.row] = call
        return call

    def _task_news(self, row: UnpairedMessage, message: Message) -> Call | None:
        """The side that runs a task tells how it stands."""
        if message.target is None:
            return None
        found = self._task(_OTHER[message.sender], message.target, message)
        if found.ambiguous:
            _flag(message)
        elif found.call is None:
            self._early.setdefault((_OTHER[message.sender], message.target, self._asker(message)), []).append(row)
        facts = None if found.call is None else task_facts(message)
        if found.call is not None and facts is not None:
            self._note_status(found.call, facts, message.at_ns)
        return found.call

    def _elicitation_done(self, message: Message) -> Call | None:
        named = elicitation(message)
        if named is None:
            return None
        found = self._elicited.find((message.sender, named), self._asker(message))
        if found.ambiguous:
            _flag(message)
        call = found.call
        if call is not None:
            call.completed_elicitations += 1
            if call.first.method == _ELICIT and call.completed_elicitations >= call.elicitations and call.ended_ns is None:
                call.ended_ns = message.at_ns
        return call

    def _of_subscription(self, message: Message) -> Call | None:
        """The subscription that a notification names (from 2026-07-28)."""
        named = subscription(message) if b"subscriptionId" in message.raw else None
        return None if named is None else self._subscribed.get((named, self._scope(message)))

    # What they have in common

    def _begin(self, row: Exchange) -> Call:
        call = self._calls[row.row] = Call([row], [row])
        return call

    def _join(self, call: Call | None, row: Exchange) -> Call | None:
        if call is not None:
            call.exchanges.append(row)
            self._calls[row.row] = call
        return call

    def _add_time(self, call: Call, row: Exchange) -> Call:
        if row.sender == call.sender:
            call.wire_ns += row.duration_ns or 0
        return call

    def _elicits(self, call: Call, named: list[str], message: Message) -> None:
        call.elicitations = len(named)
        for one in named:
            self._elicited.add((SERVER, one), self._asker(message), call)

    def _related(self, message: Message) -> Call | None:
        """The call of the task that a message names in its `_meta` (2025-11-25)."""
        named = related_task(message) if b"related-task" in message.raw else None
        if named is None:
            return None
        found = self._task(_OTHER[message.sender], named, message)
        if found.call is None and not found.ambiguous:
            found = self._task(message.sender, named, message)
        if found.ambiguous:
            _flag(message)
        return found.call

    def _task(self, wants: Side, task: str, message: Message) -> CandidateMatch:
        """The call of a task that `wants` asked for. A session that took the place of a lost one knows the tasks of that one."""
        asker = self._asker(message)
        found = self._tasks.find((wants, task), asker)
        for _ in range(MAX_LOST_SESSIONS):
            if found != NO_MATCH or isinstance(asker, str) or asker.replaces is None:
                break
            asker = asker.replaces
            found = self._tasks.find((wants, task), asker)
        return found

    def _note_status(self, call: Call, facts: TaskFacts, at_ns: int) -> None:
        task = call.task
        if task is None:
            return
        was_over = task.over
        task.note(facts.status, at_ns)
        task.ttl_ms = task.ttl_ms if facts.ttl_ms is None else facts.ttl_ms
        task.poll_interval_ms = task.poll_interval_ms if facts.poll_interval_ms is None else facts.poll_interval_ms
        if task.over and not was_over:
            call.ended_ns = at_ns
            call.task_failed = facts.is_error

    def _scope(self, message: Message) -> Scope | None:
        transaction = self._source.transaction_of(message.stream)
        return None if transaction is None else transaction.scope

    def _asker(self, message: Message) -> Asker:
        transaction = self._source.transaction_of(message.stream)
        if transaction is None:
            return ""
        scope = transaction.scope
        return scope.client if scope.is_one_transaction else scope


def _flag(message: Message) -> None:
    message.flaws = (*message.flaws, "ambiguous-call")

"""Rows of one capture to calls: rounds with required input, a task with its polls, a subscription with its updates.

Rows keep their numbers and know nothing of calls. A message that could belong to several calls joins none, and gets the flaw
`ambiguous-call`. `references` knows by which names messages refer to calls. Source: see `call`.
"""

from typing import Final, TypeAlias

from ...records import OTHER_SIDE, SERVER, Side
from ..http.transaction import Scope
from ..mcp.codes import INPUT_REQUIRED, TASK
from ..mcp.methods import LISTEN, MAY_NEED_INPUT
from ..message import ERROR
from ..model import CaptureInfo, Exchange, Kind, Message, Outcome, UnpairedMessage
from .call import ABOUT_TASKS, SUBSCRIBE, UNSUBSCRIBE, Call, CallPart, Task, note_status
from .candidates import NO_MATCH, CandidateMatch, Candidates, Name
from .references import (
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

_ELICIT: Final = "elicitation/create"
_ELICITED: Final = "notifications/elicitation/complete"
_UPDATED: Final = "notifications/resources/updated"
TASK_STATUSES: Final = frozenset(("notifications/tasks/status", "notifications/tasks"))
"""Notifications with the status of a task."""

JOINED: Final = frozenset((*ABOUT_TASKS, LISTEN, SUBSCRIBE, UNSUBSCRIBE, _ELICIT, _ELICITED, *TASK_STATUSES))
"""Methods that may begin a call. Once there is a call, any message may belong to it."""

MAX_REPLACED_SESSIONS: Final = 8
"""The number of replaced sessions, one behind the other, in which a task is looked for."""

Asker: TypeAlias = "Scope | str"
"""The client that makes a call: its session or its stream of HTTP+SSE, else the name it gives itself; empty on stdio."""


class CallJoiner:
    """The calls of one capture, in `CaptureInfo.calls` by the numbers of all their rows.

    `feed` takes each message with the row that it became part of: once there are calls all messages, before that those that may
    begin a call. It returns the first row of the call that it changed, if that is another
    row. `firsts` does the same for rows that changed without a message.
    """

    __slots__ = ("_calls", "_early", "_elicited", "_info", "_retries", "_subscribed", "_tasks", "_tried_again")

    def __init__(self, info: CaptureInfo) -> None:
        self._info = info
        self._calls = info.calls
        self._retries = Candidates()
        """Calls that need input, by all names that a retry may have for them."""
        self._tried_again = Candidates()
        """Calls whose user was sent to a URL, by method, target and fingerprint."""
        self._tasks = Candidates()
        self._early: dict[tuple[Side, str, Asker], list[UnpairedMessage]] = {}
        """Notifications about tasks that came before the answer that began the task."""
        self._elicited = Candidates()
        self._subscribed: dict[tuple[str, Asker | None], Call] = {}

    def may_begin(self, message: Message) -> bool:
        """Return whether a message may begin a call: by its method, as an error, or as a result with a type."""
        return message.method in JOINED or message.result_type is not None or message.kind is ERROR

    def feed(self, row: Exchange | UnpairedMessage, message: Message) -> Exchange | None:
        """Take in a message; most belong to no call."""
        if isinstance(row, UnpairedMessage):
            call = self._notified(row, message) if message.kind is Kind.NOTIFICATION else None
        elif row.request is message:
            call = self._requested(row, message)
        elif row.response is message:
            call = self._answered(row, message)
        else:
            call = self._calls.get(row.row)
        return None if call is None or call.first is row else call.first

    def firsts(self, rows: list[Exchange]) -> list[Exchange]:
        """Return the first rows of the calls of `rows`, where these are other rows."""
        if not self._calls:
            return []
        calls = {id(call): call for row in rows if (call := self._calls.get(row.row)) is not None and call.first is not row}
        return [call.first for call in calls.values()]

    # Requests

    def _requested(self, row: Exchange, message: Message) -> Call | None:
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
        if method == _ELICIT and (id := elicitation(message)) is not None:
            call = self._begin(row)
            self._elicits(call, [id], message)
            return self._within_task(row, message) or call
        return self._within_task(row, message)

    def _round(self, row: Exchange, message: Message) -> Call | None:
        """Join a request that may be the next round of a call."""
        raw = message.raw
        if (b"inputResponses" in raw or b"requestState" in raw) and (names := retry(message)) is not None:
            asker = self._asker(message)
            for name, may_be_under_way in names:
                match = self._retries.find(name, asker)
                if match.call is None and not match.ambiguous:
                    match = match.again(may_be_under_way=may_be_under_way)
                if match.ambiguous:
                    _flag(message)
                if match.call is not None or match.ambiguous:
                    return self._next_round(self._retries, match.call, row)
            return None
        if self._tried_again.waits_for(row.method, message.target):
            match = self._tried_again.find((row.method, message.target, fingerprint(message)), self._asker(message))
            if match.ambiguous:
                _flag(message)
            return self._next_round(self._tried_again, match.call, row)
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
        match = self._find_task(row.sender, task, message)
        if match.ambiguous:
            _flag(message)
            return None
        call = match.call
        if call is None:  # the task began before the capture
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
        """Join a request that the side which runs a task makes for it."""
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
            ids = elicitations(message) if row.method in MAY_NEED_INPUT and b"elicitationId" in message.raw else []
            if ids:
                call = call or self._begin(row)
                self._send_to_urls(call, row, ids, message)
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

    def _send_to_urls(self, call: Call, row: Exchange, ids: list[str], message: Message) -> None:
        call.needed_input = row
        self._elicits(call, ids, message)
        name: Name = (row.method, row.target, fingerprint(row.request))
        self._tried_again.add(name, self._asker(row.request), call)

    def _become_task(self, call: Call, row: Exchange, facts: TaskFacts, message: Message) -> None:
        name, asker = (row.sender, facts.id), self._asker(row.request)
        before = self._tasks.find(name, asker).call
        if before is not None and before is not call and before.outcome is not Outcome.PENDING:
            self._tasks.take(before)  # the id is used again
        self._tasks.add(name, asker, call)
        if call.task is None:
            call.task = Task(facts.id)
        for early in self._early.pop((*name, asker), ()):
            call.notifications.append(early)
            self._calls[early.row] = call
        self._note_status(call, facts, message.at_ns)

    def _settle(self, call: Call, row: Exchange, message: Message) -> None:
        """Take in the final answer to an exchange of a call."""
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
                elif part is CallPart.CANCEL and call.task is not None and not call.task.over:  # only an acknowledgement
                    call.task.cancelled = True
                    call.ended_ns = message.at_ns
            case _:
                pass

    # Notifications

    def _notified(self, row: UnpairedMessage, message: Message) -> Call | None:
        method = message.method
        call: Call | None = None
        if method in TASK_STATUSES:
            call = self._task_status(row, message)
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

    def _task_status(self, row: UnpairedMessage, message: Message) -> Call | None:
        """Take in the status of a task, reported by the side that runs it."""
        if message.target is None:
            return None
        match = self._find_task(OTHER_SIDE[message.sender], message.target, message)
        if match.ambiguous:
            _flag(message)
        elif match.call is None:
            self._early.setdefault((OTHER_SIDE[message.sender], message.target, self._asker(message)), []).append(row)
        facts = None if match.call is None else task_facts(message)
        if match.call is not None and facts is not None:
            self._note_status(match.call, facts, message.at_ns)
        return match.call

    def _elicitation_done(self, message: Message) -> Call | None:
        id = elicitation(message)
        if id is None:
            return None
        match = self._elicited.find((message.sender, id), self._asker(message))
        if match.ambiguous:
            _flag(message)
        call = match.call
        if call is not None:
            call.completed_elicitations += 1
            is_complete = call.first.method == _ELICIT and call.completed_elicitations >= call.elicitations
            if is_complete and call.ended_ns is None:
                call.ended_ns = message.at_ns
        return call

    def _of_subscription(self, message: Message) -> Call | None:
        """Return the subscription that a notification names (from 2026-07-28)."""
        id_key = subscription(message) if b"subscriptionId" in message.raw else None
        return None if id_key is None else self._subscribed.get((id_key, self._scope(message)))

    # Calls

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

    def _elicits(self, call: Call, ids: list[str], message: Message) -> None:
        call.elicitations = len(ids)
        for id in ids:
            self._elicited.add((SERVER, id), self._asker(message), call)

    def _related(self, message: Message) -> Call | None:
        """Return the call of the task that a message names in its `_meta` (2025-11-25)."""
        id = related_task(message) if b"related-task" in message.raw else None
        if id is None:
            return None
        match = self._find_task(OTHER_SIDE[message.sender], id, message)
        if match.call is None and not match.ambiguous:
            match = self._find_task(message.sender, id, message)
        if match.ambiguous:
            _flag(message)
        return match.call

    def _find_task(self, side: Side, task: str, message: Message) -> CandidateMatch:
        """Return the call of a task that `side` began. A session that replaced an unknown one has the tasks of that one, too."""
        asker = self._asker(message)
        match = self._tasks.find((side, task), asker)
        for _ in range(MAX_REPLACED_SESSIONS):
            if match != NO_MATCH or isinstance(asker, str) or asker.replaces is None:
                break
            asker = asker.replaces
            match = self._tasks.find((side, task), asker)
        return match

    def _note_status(self, call: Call, facts: TaskFacts, at_ns: int) -> None:
        task = call.task
        if task is None:
            return
        was_over = task.over
        note_status(task, facts.status, at_ns)
        task.ttl_ms = task.ttl_ms if facts.ttl_ms is None else facts.ttl_ms
        task.poll_interval_ms = task.poll_interval_ms if facts.poll_interval_ms is None else facts.poll_interval_ms
        if task.over and not was_over:
            call.ended_ns = at_ns
            call.task_failed = facts.is_error

    def _scope(self, message: Message) -> Scope | None:
        transaction = self._info.transaction_of(message.stream)
        return None if transaction is None else transaction.scope

    def _asker(self, message: Message) -> Asker:
        transaction = self._info.transaction_of(message.stream)
        if transaction is None:
            return ""
        scope = transaction.scope
        return scope.client if scope.is_one_transaction else scope


def _flag(message: Message) -> None:
    message.flaws = (*message.flaws, "ambiguous-call")

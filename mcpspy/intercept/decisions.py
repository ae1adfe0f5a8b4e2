"""Messages in, decisions out: what a tap does with each message that passes, by the intercepts in force.

No clock is read, and chance is given in: with the same seed and the same traffic, the decisions are the same.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from typing import Final, Protocol

from ..records import CLIENT, OTHER_SIDE, SERVER, Frame, Intercept, Note, Record, Side
from ..transcript.envelope import message_of
from ..transcript.filter.filter import MessageMatcher
from ..transcript.filter.grammar import Filter, possible
from ..transcript.mcp.fields import PARTIAL
from ..transcript.mcp.methods import CANCELLED, PROGRESS, TARGETS
from ..transcript.message import CALL_OF_MCPSPY, NOT_REORDERED, NOTIFICATION, REQUEST, TO_MCPSPY, Kind, Message
from ..transcript.model import CaptureInfo, Exchange
from ..wire.edits import has_value
from ..wire.jsonrpc import cut
from .actions import (
    DUPLICATE,
    Action,
    AnswerStatus,
    CutOff,
    Delay,
    Duplicate,
    Expire,
    Garbage,
    Hold,
    MadeAnswer,
    RemoveValue,
    Reorder,
    SetValue,
    Withhold,
    answered,
    can_answer,
    edited,
    words_of,
)
from .syntax import InterceptRule

MAX_SCOPES: Final = 1024
"""The scope that was not used for the longest time is forgotten when there are more."""

SESSION_UNKNOWN: Final = 404
"""The status of a request in a session that is over."""

MAX_EXPIRED: Final = 1024
"""So many sessions that are over are remembered."""

_ANSWERS: Final = (Kind.RESULT, Kind.ERROR)
_OPENING: Final = "initialize"

MAX_WAITING: Final = 4096
"""The oldest of more requests without an answer is forgotten."""

_ExchangeKey = tuple[Side, str]
"""The side that sent a request, and the id as it spelled it."""


class Chance(Protocol):
    """A source of numbers, such as `random.Random(seed)`."""

    def random(self) -> float: ...


Listener = Callable[[bytes, int, bool], None]
"""A receiver of messages about a call of mcpspy's own: the payload, the time, and whether it is the answer."""


class Decision:
    """The fate of one message. `records` tell it to the capture, in front of the frame; without any it passes as it is.

    `payload` is sent on, and None is not. `reply` goes back to the sender, or over HTTP only a `status` that is not 0, with `fields`.
    `noise` goes before the message. All these are sent `delay_ns` later. `then` is what happens to the channel: `disconnect`, `stall`
    or `kill`. If it `is_cut`, `payload` is only the beginning of the message. `payload` is sent twice if an intercept
    doubles it, whose handle is `doubled_by`. `key` is that of the exchange, and `kind` that of the message.
    Before all that, it is held for `hold_ns` at most, because of the intercept with the handle `held_by`; who holds it sets `let_go`,
    which sends it after what is being sent just now.
    """

    __slots__ = (
        "delay_ns", "doubled_by", "fields", "held_by", "hold_ns", "is_cut", "key", "kind", "let_go", "noise", "payload", "records",
        "reply", "status", "then",
    )  # fmt: skip

    def __init__(self, payload: bytes, key: _ExchangeKey | None = None, kind: str = "") -> None:
        self.payload: bytes | None = payload
        self.key = key
        self.kind = kind
        self.records: list[Intercept] = []
        self.reply: bytes | None = None
        self.status = 0
        self.fields: tuple[str, ...] = ()
        self.is_cut = False
        self.let_go: Callable[[], None] | None = None
        self.noise: bytes | None = None
        self.delay_ns = self.hold_ns = self.held_by = self.doubled_by = 0
        self.then = ""


class _RuleInForce:
    """An intercept with its counts and its chance. `is_noted` is set once it was said that it changed nothing."""

    __slots__ = ("_capture", "_chance", "_matcher", "_matches", "_times", "is_noted", "rule")

    def __init__(self, rule: InterceptRule, capture: CaptureInfo, chance: Chance) -> None:
        self.rule = rule
        self._capture = capture
        self._matcher = MessageMatcher(rule.chosen, capture)
        self._chance = chance
        self._matches = self._times = 0
        self.is_noted = False

    def acts(self, message: Message, exchange: Exchange | None, scope: Hashable) -> bool:
        """Return whether it acts on a message, and count."""
        limits = self.rule.limits
        if limits.most and self._times >= limits.most:
            return False
        if not _is_in_scope(self.rule.scope, message, exchange) or message.at_ns < limits.after_ns:
            return False
        if not _can_act(self.rule.action, message, scope):
            return False
        if not self._matcher.matches(message, exchange):
            return False
        self._matches += 1
        if limits.nth and self._matches != limits.nth:
            return False
        if limits.chance < 1.0 and self._chance.random() >= limits.chance:
            return False
        self._times += not isinstance(self.rule.action, Reorder | SetValue | RemoveValue)
        return True

    def may_act(self, message: Message, request: Message | None, known: frozenset[str], scope: Hashable) -> bool:
        """Return whether it may act on a message of which only facts with the `known` keys are known."""
        limits, is_answer = self.rule.limits, message.kind in _ANSWERS
        if limits.most and self._times >= limits.most:
            return False
        if (request is not None or is_answer) and not _can_act(self.rule.action, message, scope):
            return False
        if self.rule.scope == ("requests" if is_answer else "answers" if request is not None else ""):
            return False
        chosen = Filter(possible(self.rule.chosen.node, keys=known))
        return MessageMatcher(chosen, self._capture).matches(message, None if request is None else Exchange(0, request))

    def count(self) -> None:
        """Count that it has changed the order of two answers, or a message."""
        self._times += 1

    def delay_ns(self, delay: Delay) -> int:
        """Choose a delay."""
        width_ns = delay.most_ns - delay.least_ns
        return delay.least_ns + (int(self._chance.random() * width_ns) if width_ns else 0)


def _nothing(*_: object) -> None:
    """Do nothing: nobody is to be told."""


def _can_act(action: Action, message: Message, scope: Hashable) -> bool:
    match action:
        case MadeAnswer():
            return can_answer(message)
        case AnswerStatus():
            return message.sender == CLIENT
        case Expire():
            return message.sender == CLIENT and isinstance(scope, bytes) and message.method != _OPENING
        case Reorder():
            return message.kind in _ANSWERS
    return True


def _is_in_scope(scope: str, message: Message, exchange: Exchange | None) -> bool:
    if scope == "all":
        return True
    if scope == "answers":
        return message.kind in _ANSWERS
    return message.kind is REQUEST or (message.kind is NOTIFICATION and exchange is None)


class Intercepts:
    """The intercepts in force at one tap. `chances` has one source of numbers for each; `seed` is written down.

    `calls` are those of mcpspy itself that wait for an answer, by id: what the server sends about them is for their listeners alone,
    and no intercept acts on it. `when_idle` is to be called once nothing passes. `sink` takes notes about intercepts that change
    nothing, and `say` takes their texts, with the handle of the intercept.
    """

    __slots__ = (
        "_capture",
        "_doubled",
        "_exchanges",
        "_expired",
        "_rules",
        "_swaps",
        "calls",
        "say",
        "seed",
        "sink",
        "when_idle",
    )

    def __init__(self, rules: Sequence[InterceptRule], chances: Sequence[Chance], seed: int) -> None:
        self._capture = CaptureInfo(0)
        self._rules = [_RuleInForce(rule, self._capture, chance) for rule, chance in zip(rules, chances, strict=True)]
        self._exchanges: OrderedDict[Hashable, _PassingExchanges] = OrderedDict()
        self._expired: OrderedDict[Hashable, _RuleInForce] = OrderedDict()
        self._doubled: OrderedDict[tuple[Hashable, _ExchangeKey], tuple[Intercept, bool]] = OrderedDict()
        self._swaps: list[tuple[Decision, Hashable, _RuleInForce]] = []
        self.seed = seed
        self.calls: dict[str, Listener] = {}
        self.sink: Callable[[Sequence[Record]], object] = _nothing
        self.say: Callable[[str, int], object] = _nothing
        self.when_idle: Callable[[], None] | None = None

    @property
    def texts(self) -> list[str]:
        """The intercepts as they were written."""
        return [in_force.rule.text for in_force in self._rules]

    def add(self, rule: InterceptRule, chance: Chance) -> int:
        """Put one more in force, behind the others. Return what removes it."""
        self._rules.append(_RuleInForce(rule, self._capture, chance))
        return id(self._rules[-1])

    def remove(self, handle: int) -> None:
        """Take one out of force that was added."""
        for scope in [scope for scope, in_force in self._expired.items() if id(in_force) == handle]:
            del self._expired[scope]
        self._rules = [in_force for in_force in self._rules if id(in_force) != handle]

    def decide(
        self, sender: Side, payload: bytes, at_ns: int, scope: Hashable = None, *, is_answered_apart: bool = False
    ) -> Decision:
        """Decide on the next message that a side sent. Batches, and what is no message, pass.

        Within a `scope` ids are not used again: over HTTP that is a session, whose id is the scope, as bytes. `is_answered_apart`
        says that the answer to a second copy of this message would not come here.
        """
        message = self._message(sender, payload, at_ns)
        if message is None:
            return Decision(payload)
        if self.calls and sender == SERVER and self._is_for_us(message):
            return self._kept(payload, message)
        exchange, key = self._exchanges_in(scope).feed(message)
        decision = Decision(payload, key, message.kind)
        if self._doubled and self._is_second_answer(decision, scope, message):
            return decision
        if self._expired and sender == CLIENT and scope in self._expired:
            self._expire(decision, self._expired[scope].rule, message)
            return decision
        is_swapped = bool(self._swaps) and message.kind in _ANSWERS and self._swap(scope, key)
        for in_force in self._rules:
            if isinstance(in_force.rule.action, Reorder) and is_swapped:
                continue
            if in_force.acts(message, exchange, scope):
                self._act(decision, in_force, message, scope)
                if decision.payload is None or decision.is_cut:
                    break
        if decision.doubled_by and message.kind is REQUEST and key is not None and not is_answered_apart:
            if len(self._doubled) >= MAX_EXPIRED:
                self._doubled.popitem(last=False)
            record = next(record for record in decision.records if record.action == DUPLICATE)
            self._doubled[scope, key] = record, False
        return decision

    def _is_second_answer(self, decision: Decision, scope: Hashable, message: Message) -> bool:
        """Withhold the second answer to a request that was sent twice; return whether this message is one."""
        if message.kind is REQUEST and decision.key is not None:
            self._doubled.pop((scope, decision.key), None)  # the id is used again
        if message.kind not in _ANSWERS or message.id is None or message.result_type == PARTIAL:
            return False
        place = scope, (OTHER_SIDE[message.sender], message.id)
        record, is_answered = self._doubled.pop(place, (None, False))
        if record is None or not is_answered:
            if record is not None:
                self._doubled[place] = record, True
            return False
        decision.payload = None
        kept = Intercept(at_ns=message.at_ns, text=record.text, action=DUPLICATE, sent="nothing", seed=self.seed)
        decision.records.append(kept)
        return True

    def _swap(self, scope: Hashable, key: _ExchangeKey | None) -> bool:
        """Let the answers go that wait for another one, which is being sent now; return whether there are any."""
        others = [swap for swap in self._swaps if (swap[1], swap[0].key) != (scope, key)]
        self._swaps = [swap for swap in self._swaps if (swap[1], swap[0].key) == (scope, key)]
        is_swapped = False
        for decision, _, in_force in others:
            if decision.let_go is None:
                continue  # it waited too long, and has gone
            for record in decision.records:
                record.action = "reorder" if record.action == NOT_REORDERED else record.action
            in_force.count()
            decision.let_go()
            is_swapped = True
        return is_swapped

    def _expire(self, decision: Decision, rule: InterceptRule, message: Message) -> None:
        """Answer a request of a session that is over."""
        decision.payload, decision.status = None, SESSION_UNKNOWN
        words = words_of(rule.action)
        record = Intercept(at_ns=message.at_ns, text=rule.text, action=words, sent="nothing", seed=self.seed)
        decision.records.append(record)

    def hand_over(self, payload: bytes, at_ns: int) -> bool:
        """Hand a message of the server to the call of mcpspy's own that it is about; return whether there is such a call."""
        message = self._message(SERVER, payload, at_ns)
        if message is None or not self._is_for_us(message):
            return False
        self._kept(payload, message)
        return True

    def may_act(self, sender: Side, method: str | None, target: str | None, scope: Hashable = None) -> bool:
        """Return whether an intercept may act on a request of which only the head has come, or on the answer to it.

        `method` and `target` are the request's, as the head names them; None if it does not.
        """
        if scope in self._expired or self._doubled or self._swaps:
            return True
        known, is_named = {"sender"}, method is not None and not method.startswith("notifications/")
        if is_named:
            known |= {"method", "dir", *(["kind"] if sender == CLIENT else [])}
        if is_named and (target is not None or method not in TARGETS):
            known |= {"tool", "prompt", "resource", "target"}
        params = {TARGETS.get(method or "", "name"): target}
        request = self._message(
            CLIENT, json.dumps({"jsonrpc": "2.0", "id": 0, "method": method or "", "params": params}).encode(), 0
        )
        message = request if sender == CLIENT else self._message(SERVER, b'{"jsonrpc":"2.0","id":0,"result":{}}', 0)
        assert message is not None
        about = request if is_named else None
        return any(in_force.may_act(message, about, frozenset(known), scope) for in_force in self._rules)

    def observe(self, payload: bytes, at_ns: int, scope: Hashable) -> None:
        """Remember a message of the client that passes, for the answer to it."""
        message = self._message(CLIENT, payload, at_ns)
        if message is not None:
            self._exchanges_in(scope).feed(message)

    def _message(self, sender: Side, payload: bytes, at_ns: int) -> Message | None:
        """Read a payload; None for a batch, and for what is no message."""
        pieces = cut(payload)
        if len(pieces) != 1 or pieces[0].batch or pieces[0].kind == "malformed":
            return None
        return message_of(self._capture, sender, Frame(0, at_ns, at_ns, payload), pieces[0])

    def forget(self, scope: Hashable) -> None:
        """Forget the exchanges of a scope that is over."""
        self._exchanges.pop(scope, None)

    def _exchanges_in(self, scope: Hashable) -> _PassingExchanges:
        exchanges = self._exchanges.get(scope)
        if exchanges is None:
            if len(self._exchanges) >= MAX_SCOPES:
                self._exchanges.popitem(last=False)
            exchanges = self._exchanges[scope] = _PassingExchanges()
        elif len(self._exchanges) > 1:
            self._exchanges.move_to_end(scope)
        return exchanges

    def _is_for_us(self, message: Message) -> bool:
        """Return whether a message of the server is about a call of mcpspy's own."""
        is_progress = message.kind is NOTIFICATION and message.method == PROGRESS
        return (message.correlation_key if is_progress else message.id if message.kind in _ANSWERS else None) in self.calls

    def _kept(self, payload: bytes, message: Message) -> Decision:
        """Hand a message about a call of mcpspy's own to its listener, and keep it from the client."""
        is_answer = message.kind in _ANSWERS and message.result_type != PARTIAL
        key = message.id if message.kind in _ANSWERS else message.correlation_key
        assert key is not None
        listener = self.calls.pop(key) if is_answer else self.calls[key]
        decision = Decision(payload)
        decision.payload = None
        decision.records.append(call_record(message.at_ns, self.seed, TO_MCPSPY))
        listener(payload, message.at_ns, is_answer)
        return decision

    def _act(self, decision: Decision, in_force: _RuleInForce, message: Message, scope: Hashable) -> None:
        """Do what an intercept says. One that changes nothing leaves no record."""
        action, delay_ns, before = in_force.rule.action, 0, decision.payload
        assert before is not None
        sent = "unchanged"
        match action:
            case Delay():
                delay_ns = in_force.delay_ns(action)
                decision.delay_ns += delay_ns
            case Hold(most_ns=most_ns):
                decision.hold_ns, decision.held_by = max(decision.hold_ns, most_ns), id(in_force)
            case Garbage(line=line):
                decision.noise = line if decision.noise is None else decision.noise + b"\n" + line
            case Duplicate():
                decision.doubled_by = id(in_force)
            case Withhold(then=then):
                decision.payload, decision.then, sent = None, "" if then == "drop" else then, "nothing"
            case AnswerStatus(code=code, fields=fields):
                decision.payload, decision.status, decision.fields, sent = None, code, fields, "nothing"
            case Expire():
                if len(self._expired) >= MAX_EXPIRED:
                    self._expired.popitem(last=False)
                self._expired[scope] = in_force
                decision.payload, decision.status, sent = None, SESSION_UNKNOWN, "nothing"
            case Reorder(most_ns=most_ns):
                decision.hold_ns, decision.held_by = max(decision.hold_ns, most_ns), id(in_force)
                self._swaps.append((decision, scope, in_force))
            case CutOff():
                decision.payload, decision.then, sent = edited(action, before), "disconnect", "changed"
                decision.is_cut = True
            case MadeAnswer() if message.kind is REQUEST:
                decision.payload, decision.reply, sent = None, answered(action, message), "nothing"
            case MadeAnswer():
                decision.payload, sent = answered(action, message), "changed"
            case _:
                decision.payload, sent = edited(action, before), "changed"
                if decision.payload == before:
                    self._note_unchanged(in_force, message.at_ns, before)
                    return
                in_force.count()
        until_ns = message.at_ns + decision.delay_ns if delay_ns else None
        record = Intercept(
            at_ns=message.at_ns,
            text=in_force.rule.text,
            action=words_of(action, delay_ns),
            sent=sent,
            until_ns=until_ns,
            seed=self.seed,
        )
        decision.records.append(record)

    def _note_unchanged(self, in_force: _RuleInForce, at_ns: int, payload: bytes) -> None:
        """Say, once for each intercept, that it changed nothing, and why."""
        match in_force.rule.action:
            case SetValue(steps=steps, path=path) if has_value(payload, steps):
                why = f"{path} has this value already"
            case SetValue(path=path):
                why = f"{path} has no place in the message"
            case RemoveValue(path=path):
                why = f"the message has no {path}"
            case _:
                return
        if not in_force.is_noted:
            in_force.is_noted = True
            self.report(f"{why}, so the intercept {in_force.rule.text} changed nothing", at_ns, id(in_force))

    def report(self, text: str, at_ns: int, handle: int) -> None:
        """Say, in the capture and to the user, what the intercept with this handle did not do."""
        self.sink((Note(at_ns=at_ns, topic="not-intercepted", text=text),))
        self.say(text, handle)


def call_record(at_ns: int, seed: int, sent: str = "unchanged") -> Intercept:
    """Make the record in front of a frame of a call of mcpspy's own."""
    return Intercept(at_ns=at_ns, text=CALL_OF_MCPSPY, action=CALL_OF_MCPSPY, sent=sent, seed=seed)


class _PassingExchanges:
    """Exchanges whose answer has not passed yet."""

    __slots__ = ("_by_token", "_waiting")

    def __init__(self) -> None:
        self._waiting: OrderedDict[_ExchangeKey, Exchange] = OrderedDict()
        self._by_token: dict[_ExchangeKey, _ExchangeKey] = {}

    def feed(self, message: Message) -> tuple[Exchange | None, _ExchangeKey | None]:
        """Return the exchange of a message and its key; None for a message that belongs to none."""
        sender, id, token = message.sender, message.id, message.correlation_key
        if message.kind is REQUEST and id is not None:
            return self._begin((sender, id), message), (sender, id)
        if message.kind is NOTIFICATION:
            key = None
            if token is not None and message.method == PROGRESS:
                key = self._by_token.get((OTHER_SIDE[sender], token))
            elif token is not None and message.method == CANCELLED:
                key = (sender, token)
            return (None, None) if key is None else (self._waiting.get(key), key)
        if message.kind is Kind.MALFORMED or id is None:
            return None, None
        key = (OTHER_SIDE[sender], id)
        exchange = self._waiting.pop(key, None)
        if exchange is None:
            return None, None
        exchange.response = message
        self._forget(exchange)
        return exchange, key

    def _begin(self, key: _ExchangeKey, request: Message) -> Exchange:
        if len(self._waiting) >= MAX_WAITING:
            self._forget(self._waiting.popitem(last=False)[1])
        exchange = Exchange(0, request)
        self._waiting[key] = exchange
        if request.correlation_key is not None:
            self._by_token[key[0], request.correlation_key] = key
        return exchange

    def _forget(self, exchange: Exchange) -> None:
        request = exchange.request
        if request.correlation_key is not None:
            self._by_token.pop((request.sender, request.correlation_key), None)

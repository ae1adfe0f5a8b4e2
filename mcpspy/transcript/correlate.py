"""Pairs requests with what became of them, within one scope: an id means something in one scope and one direction only.

Exact ids first: `7`, `"7"` and `7.0` are three ids. Where no exact one waits, spellings of the same number pair too, as in both
official SDKs. Refuses to judge: what is odd can be read from the exchange. Source: JSON-RPC 2.0, sections 4 to 6; MCP specification,
basic/utilities (cancellation, progress).
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Final, TypeVar

from ..records import CLIENT, SERVER
from .mcp.fields import PARTIAL, TASK
from .mcp.methods import CANCELLED, LISTEN, OPENINGS, PROGRESS
from .mcp.negotiation import Negotiation
from .mcp.probes import Openings
from .model import Exchange, Kind, Message, UnpairedMessage

if TYPE_CHECKING:
    from ..records import Side

T = TypeVar("T")

_NUMBER: Final = re.compile(r"-?\d{1,40}(\.\d{1,40})?([eE][+-]?\d{1,2})?", re.ASCII)
_OTHER: Final[dict[Side, Side]] = {CLIENT: SERVER, SERVER: CLIENT}


def spellings(token: str) -> list[str]:
    """Other tokens that a lenient reader takes for the same id, most likely first; none for ids that are no numbers."""
    text = token[1:-1] if token[:1] == '"' else token
    if not _NUMBER.fullmatch(text):
        return []
    number = Decimal(text)
    texts = [text, str(int(number)), f"{int(number)}.0"] if number == int(number) else [text]
    found = [one for text in texts for one in (text, f'"{text}"')]
    return [one for one in dict.fromkeys(found) if one != token]


def appended(few: Sequence[T], one: T) -> Sequence[T]:
    """`few` and one more: a list from the first one on, because most exchanges have none and an empty list weighs 56 bytes."""
    if isinstance(few, list):
        few.append(one)
        return few
    return [one]


def _takes_progress(exchange: Exchange) -> bool:
    """Whether progress may be told of it: until it is answered, and on if the answer is a task (2025-11-25)."""
    return not exchange.over or (exchange.response is not None and exchange.response.result_type == TASK)


class _Asked:
    """What one side has asked: by id what waits for an answer and what has one, by progress token what is told about."""

    __slots__ = ("answered", "by_token", "queued", "sharing", "waiting")

    def __init__(self) -> None:
        self.waiting: dict[str, Exchange] = {}
        self.queued: dict[str, deque[Exchange]] = {}
        """Requests with the id of one that waits already, which nobody should send: they are answered in their order."""
        self.answered: dict[str, Exchange] = {}
        self.by_token: dict[str, Exchange] = {}
        self.sharing: dict[str, list[Exchange]] = {}
        """By a progress token that was given out again while it was in use: those that gave it out, without some that are over."""

    def ask(self, id: str, exchange: Exchange) -> None:
        before = self.waiting.get(id)
        if before is not None and before.cancelled is None and not before.over:
            self.queued.setdefault(id, deque()).append(exchange)
            exchange.request.flaws = (*exchange.request.flaws, "id-in-use")
        else:
            self.waiting[id] = exchange
        token = exchange.request.correlation_key
        if token is not None:
            before = self.by_token.get(token)
            if before is not None and _takes_progress(before):
                exchange.request.flaws = (*exchange.request.flaws, "token-in-use")
                self.sharing.setdefault(token, [before]).append(exchange)
            self.by_token[token] = exchange

    def answer(self, id: str, message: Message) -> Exchange | None:
        """The exchange that `message` answers, or answers again; None if it was never asked for."""
        waiting = self.waiting
        exchange = waiting.pop(id, None)
        if exchange is None:
            alike = [one for one in spellings(id) if one in waiting] if id not in self.answered else []
            if len(alike) > 1:
                message.flaws = (*message.flaws, "ambiguous-id")
                return None
            if not alike:
                return self._answer_again(id, message)
            id, exchange = alike[0], waiting.pop(alike[0])
        else:
            message.id = exchange.request.id  # equal, and so one string less to keep
        if message.result_type == PARTIAL:
            exchange.partials = appended(exchange.partials, message)
            waiting[id] = exchange
            return exchange
        exchange.response = message
        exchange.over = True
        self.answered[id] = exchange
        if id in self.queued:
            self._promote(id)
        return exchange

    def settle(self, exchange: Exchange, message: Message) -> None:
        """`message` answers `exchange`, whatever its id."""
        id = exchange.request.id or ""
        queue = self.queued.get(id)
        if self.waiting.get(id) is exchange:
            del self.waiting[id]
            if queue:
                self._promote(id)
        elif queue and exchange in queue:
            queue.remove(exchange)
            if not queue:
                del self.queued[id]
        self.answered[id] = exchange
        exchange.response = message
        exchange.over = True

    def named(self, id: str) -> Exchange | None:
        """The newest exchange with this id; failing that, with another spelling of it."""
        for spelling in (id, *spellings(id)):
            found = self.waiting.get(spelling) or self.answered.get(spelling)
            if found is not None:
                return found
        return None

    def told(self, message: Message) -> Exchange | None:
        """The newest exchange with the progress token of `message`; failing that, with another spelling of it."""
        by_token, token = self.by_token, message.correlation_key or ""
        found = by_token.get(token)
        if found is None:
            alike = [one for one in spellings(token) if one in by_token]
            if len(alike) != 1:
                message.flaws = (*message.flaws, "ambiguous-progress") if alike else message.flaws
                return None
            token = alike[0]
            found = by_token[token]
        if token in self.sharing:
            found = self._shared(token)
            if found is None:
                message.flaws = (*message.flaws, "ambiguous-progress")
                return None
        if not _takes_progress(found):
            message.flaws = (*message.flaws, "late-progress")
        return found

    def _shared(self, token: str) -> Exchange | None:
        """The one exchange with this token that goes on, if it is the only one; the newest if none does."""
        active = self.sharing[token]
        while active and not _takes_progress(active[-1]):
            active.pop()
        while len(active) > 1 and not _takes_progress(active[-2]):
            del active[-2]
        if len(active) > 1:
            return None
        del self.sharing[token]
        if active:
            self.by_token[token] = active[0]
        return self.by_token[token]

    def listens(self, id: str) -> Exchange | None:
        """The subscription with this id that goes on."""
        found = self.waiting.get(id)
        return found if found is not None and found.method == LISTEN else None

    def close(self) -> list[Exchange]:
        """No answers will come: the exchanges to which that is news."""
        queued = [exchange for queue in self.queued.values() for exchange in queue]
        ended = [exchange for exchange in (*self.waiting.values(), *queued) if not exchange.over]
        for exchange in ended:
            exchange.over = True
        return ended

    def _answer_again(self, id: str, message: Message) -> Exchange | None:
        exchange = next((self.answered[one] for one in (id, *spellings(id)) if one in self.answered), None)
        if exchange is not None:
            exchange.more_responses = appended(exchange.more_responses, message)
        return exchange

    def _promote(self, id: str) -> None:
        queue = self.queued[id]
        self.waiting[id] = queue.popleft()
        if not queue:
            del self.queued[id]


class Correlator:
    """Exchanges and unpaired messages from the messages of one scope; `next_row` gives each its row number.

    `feed` returns what the message began or changed. `close` says that a side sends no more answers, and returns the
    exchanges that are over thereby. What comes after all is taken all the same. `openings` are those of the whole capture.
    """

    __slots__ = ("_asked", "_next_row", "negotiation")

    def __init__(self, next_row: Callable[[], int], openings: Openings | None = None) -> None:
        self._next_row = next_row
        self.negotiation = Negotiation(openings or Openings())
        self._asked: dict[Side, _Asked] = {CLIENT: _Asked(), SERVER: _Asked()}

    def feed(self, message: Message) -> Exchange | UnpairedMessage:
        kind = message.kind
        if kind is Kind.REQUEST:
            exchange = Exchange(self._next_row(), message)
            if message.method in OPENINGS:
                self.negotiation.ask(exchange)
            elif message.revision is None:
                message.revision = self.negotiation.revision
            else:
                self.negotiation.spoken = message.revision
            self._asked[message.sender].ask(message.id or "", exchange)
            return exchange
        found: Exchange | None = None
        if kind is Kind.RESULT or kind is Kind.ERROR:
            found = self._answered(message)
        elif kind is Kind.NOTIFICATION:
            found = self._notified(message)
        if found is not None:
            self._is_of(found, message)
            return found
        if message.revision is None:
            message.revision = self.negotiation.revision or self.negotiation.spoken
        return UnpairedMessage(self._next_row(), message)

    def waits(self, sender: Side, id: str) -> bool:
        """Whether a request of `sender` with exactly this id waits for its answer."""
        return id in self._asked[sender].waiting

    def settle(self, exchange: Exchange, message: Message) -> None:
        """`message` answers `exchange`, though its id does not say so: HTTP does."""
        self._asked[exchange.sender].settle(exchange, message)
        self._is_of(exchange, message)

    def close(self, silent: Side | None = None) -> list[Exchange]:
        """`silent` is the side that sends no more answers; None: both."""
        sides = (CLIENT, SERVER) if silent is None else (_OTHER[silent],)
        return [exchange for side in sides for exchange in self._asked[side].close()]

    def _answered(self, message: Message) -> Exchange | None:
        # An error with a null id says that its sender could not read some id (JSON-RPC 2.0, section 5): it answers none.
        if message.id is None or (message.id == "null" and message.kind is Kind.ERROR):
            return None
        return self._asked[_OTHER[message.sender]].answer(message.id, message)

    def _is_of(self, exchange: Exchange, message: Message) -> None:
        """`message` is of the revision of its exchange, but for the answer that names one for all that follows."""
        request = exchange.request
        if request.method in OPENINGS and exchange.response is message:
            self.negotiation.answer(exchange, message)
        elif message.revision is None:
            message.revision = request.revision

    def _notified(self, message: Message) -> Exchange | None:
        """Progress goes to who asked; a cancellation comes from who asked."""
        if message.correlation_key is None:
            return None
        if message.method == PROGRESS:
            exchange = self._asked[_OTHER[message.sender]].told(message)
        elif message.method == CANCELLED:
            exchange = self._asked[message.sender].named(message.correlation_key)
            if exchange is None:  # a server may end a subscription of its client so (2026-07-28, basic/patterns/cancellation)
                exchange = self._asked[_OTHER[message.sender]].listens(message.correlation_key)
            if exchange is not None and exchange.cancelled is None:
                exchange.cancelled = message
        else:
            return None
        if exchange is not None:
            exchange.notifications = appended(exchange.notifications, message)
        return exchange

"""Messages of one scope of ids to exchanges and unpaired messages.

An id means something in one scope and one direction only. Exact ids pair first: `7`, `"7"` and `7.0` are three ids. Where no
request with the exact id waits, spellings of the same number pair too, as in both official SDKs. What is odd becomes a flaw of
the message.

A result without an id belongs to the one request that waits; then it has the flaw `by-order`. If several wait it stays unpaired, and
the oldest of them are its candidates. Progress in place of a result is a part, like `isComplete: false`:

    → tools/call 4, tools/list 5
    ← result 5
    ← {"result":{"progress":30,"status":"processing"}}          a part of 4
    ← {"result":{"progress":100,"status":"completed"}}          the answer to 4, by order

A notification `pong` answers the oldest `ping` that waits, by order too. A notification `ping` waits no longer once its sender pings
again and the other side has said something else in between: else one lost `pong` would shift all that follow.

Source: JSON-RPC 2.0, sections 4 to 6; MCP specification, basic/utilities (cancellation, progress).
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Container, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Final, TypeVar

from ..lazy_pattern import lazy_pattern
from ..records import CLIENT, OTHER_SIDE, SERVER, Side
from .exchange import Exchange, UnpairedMessage
from .mcp.codes import TASK
from .mcp.fields import PARTIAL, is_progress
from .mcp.methods import CANCELLED, LISTEN, OPENINGS, PING, PROGRESS
from .mcp.negotiation import Negotiation, ProbeDetector
from .message import ERROR, NOTIFICATION, REQUEST, RESULT, Message

if TYPE_CHECKING:
    from .in_order import RequestsInOrder

T = TypeVar("T")

MAX_CANDIDATES: Final = 20
"""The most requests that are named as candidates: where thousands wait, each of thousands of answers would name them all."""

BY_ORDER: Final = "by-order"
"""The flaw of a result without an id that was paired with the one request that waited, and of a `pong` with its request."""

PONG: Final = "pong"

_NUMBER: Final = lazy_pattern(r"-?\d{1,40}(\.\d{1,40})?([eE][+-]?\d{1,2})?", re.ASCII)


def spellings(key: str) -> list[str]:
    """Return the other id keys that a lenient reader takes for the same id, most likely first; empty for ids that are no numbers."""
    text = key[1:-1] if key[:1] == '"' else key
    if not _NUMBER.fullmatch(text):
        return []
    number = Decimal(text)
    texts = [text, str(int(number)), f"{int(number)}.0"] if number == int(number) else [text]
    keys = [spelling for text in texts for spelling in (text, f'"{text}"')]
    return [spelling for spelling in dict.fromkeys(keys) if spelling != key]


def known_spelling(key: str, known: Container[str]) -> str | None:
    """Find an id key among known ones, else another spelling of it; None if none is known."""
    return next((spelling for spelling in (key, *spellings(key)) if spelling in known), None)


def appended(items: Sequence[T], item: T) -> Sequence[T]:
    """Return `items` with one more, as a list from the first one on: most exchanges have none, and an empty list weighs 56 bytes."""
    if isinstance(items, list):
        items.append(item)
        return items
    return [item]


def _takes_progress(exchange: Exchange) -> bool:
    """Return whether progress may be reported: until the answer, and after it if the answer is a task (2025-11-25)."""
    return not exchange.over or (exchange.response is not None and exchange.response.result_type == TASK)


class SideRequests:
    """The requests of one side: by id those that wait and those that were answered, by progress token those that gave it out."""

    __slots__ = ("answered", "by_token", "in_order", "queued", "sharing", "waiting")

    def __init__(self) -> None:
        self.in_order: RequestsInOrder | None = None
        """Those that wait, once an answer without an id has come: hardly any capture has one."""
        self.waiting: dict[str, Exchange] = {}
        self.queued: dict[str, deque[Exchange]] = {}
        """Requests with the id of one that waits already, which nobody should send: they are answered in their order."""
        self.answered: dict[str, Exchange] = {}
        self.by_token: dict[str, Exchange] = {}
        self.sharing: dict[str, list[Exchange]] = {}
        """For each progress token that was given out again while in use: the exchanges that share it; some that are over are gone."""

    def add(self, id: str, exchange: Exchange) -> None:
        before = self.waiting.get(id)
        if before is not None and before.cancelled is None and not before.over:
            self.queued.setdefault(id, deque()).append(exchange)
            exchange.request.flaws = (*exchange.request.flaws, "id-in-use")
        else:
            self.waiting[id] = exchange
            if before is not None and self.in_order is not None:
                self.in_order.discard(before)
        if self.in_order is not None:
            self.in_order.add(exchange)
        token = exchange.request.correlation_key
        if token is not None:
            self.give_out(token, exchange)

    def give_out(self, token: str, exchange: Exchange) -> None:
        """Take in the progress token of a request."""
        before = self.by_token.get(token)
        if before is not None and _takes_progress(before):
            exchange.request.flaws = (*exchange.request.flaws, "token-in-use")
            self.sharing.setdefault(token, [before]).append(exchange)
        self.by_token[token] = exchange

    def answer(self, id: str, message: Message) -> Exchange | None:
        """Return the exchange that `message` answers, for the first time or again; None if there is no such request."""
        waiting = self.waiting
        exchange = waiting.pop(id, None)
        if exchange is None:
            alike = [spelling for spelling in spellings(id) if spelling in waiting] if self.answered.get(id) is None else []
            if len(alike) > 1:
                message.flaws = (*message.flaws, "ambiguous-id")
                return None
            if not alike:
                return self._answer_again(id, message)
            id, exchange = alike[0], waiting.pop(alike[0])
        else:
            message.id = id = exchange.request.id or ""  # an equal string: one less to keep
        if message.result_type == PARTIAL:
            exchange.partials = appended(exchange.partials, message)
            waiting[id] = exchange
            return exchange
        exchange.response = message
        exchange.over = True
        self.answered[id] = exchange
        if id in self.queued:
            self._promote(id)
        if self.in_order is not None:
            self.in_order.discard(exchange)
        return exchange

    def waiting_in_order(self) -> RequestsInOrder:
        """Return the requests that an answer without an id may be meant for."""
        if self.in_order is None:
            from .in_order import RequestsInOrder  # hardly any capture needs it

            queued = (exchange for queue in self.queued.values() for exchange in queue)
            self.in_order = RequestsInOrder((*self.waiting.values(), *queued))
        return self.in_order

    def take_by_order(self, exchange: Exchange, message: Message) -> None:
        """Take a result without an id as the answer to `exchange`, or as a part of it."""
        message.flaws = (*message.flaws, BY_ORDER)
        if message.result_type == PARTIAL or is_progress(message):
            exchange.partials = appended(exchange.partials, message)
        else:
            self.settle(exchange, message)

    def settle(self, exchange: Exchange, message: Message) -> None:
        """Take `message` as the answer to `exchange`, whatever its id."""
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
        if self.in_order is not None:
            self.in_order.discard(exchange)

    def with_id(self, id: str) -> Exchange | None:
        """Return the newest exchange with this id; failing that, with another spelling of it."""
        for spelling in (id, *spellings(id)):
            exchange = self.waiting.get(spelling) or self.answered.get(spelling)
            if exchange is not None:
                return exchange
        return None

    def with_token_of(self, message: Message) -> Exchange | None:
        """Return the newest exchange with the progress token of `message`; failing that, with another spelling of it."""
        by_token, token = self.by_token, message.correlation_key or ""
        exchange = by_token.get(token)
        if exchange is None:
            alike = [spelling for spelling in spellings(token) if by_token.get(spelling) is not None]
            if len(alike) != 1:
                message.flaws = (*message.flaws, "ambiguous-progress") if alike else message.flaws
                return None
            token = alike[0]
            exchange = by_token.get(token)
            assert exchange is not None
        if token in self.sharing:
            exchange = self._only_active(token)
            if exchange is None:
                message.flaws = (*message.flaws, "ambiguous-progress")
                return None
        if not _takes_progress(exchange):
            message.flaws = (*message.flaws, "late-progress")
        return exchange

    def _only_active(self, token: str) -> Exchange | None:
        """Return the exchange with a shared token that goes on, or the newest if none does; None if several go on."""
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

    def subscription(self, id: str) -> Exchange | None:
        """Return the open subscription with this id."""
        exchange = self.waiting.get(id)
        return exchange if exchange is not None and exchange.method == LISTEN else None

    def close(self) -> list[Exchange]:
        """End the requests that wait, because no answers will come; return them."""
        queued = [exchange for queue in self.queued.values() for exchange in queue]
        ended = [exchange for exchange in (*self.waiting.values(), *queued) if not exchange.over]
        for exchange in ended:
            exchange.over = True
        return ended

    def _answer_again(self, id: str, message: Message) -> Exchange | None:
        alike = (id, *spellings(id))
        exchange = next((known for spelling in alike if (known := self.answered.get(spelling)) is not None), None)
        if exchange is None:
            return None
        if exchange.response is not None and BY_ORDER in exchange.response.flaws:  # that was a part, as it turns out
            exchange.partials, exchange.response = appended(exchange.partials, exchange.response), message
        else:
            exchange.more_responses = appended(exchange.more_responses, message)
        return exchange

    def _promote(self, id: str) -> None:
        queue = self.queued[id]
        self.waiting[id] = queue.popleft()
        if not queue:
            del self.queued[id]


class Correlator:
    """Exchanges and unpaired messages from the messages of one scope; `next_row` numbers them.

    `feed` returns the exchange or the unpaired message that a message began or changed. `close` says that a side sends no more
    answers, and returns the exchanges that are over because of it. Messages that come after that are taken in all the same.
    `probes` is shared by all scopes of a capture.
    """

    __slots__ = ("_next_row", "_pings", "_spoken", "negotiation", "requests")

    def __init__(self, next_row: Callable[[], int], probes: ProbeDetector | None = None) -> None:
        self._next_row = next_row
        self.negotiation = Negotiation(probes or ProbeDetector())
        self.requests: dict[Side, SideRequests] = {CLIENT: SideRequests(), SERVER: SideRequests()}
        self._pings: dict[Side, deque[UnpairedMessage]] = {}
        """Notifications `ping`, which some clients send in place of requests, without their `pong`."""
        self._spoken: set[Side] = set()
        """The sides that have sent something else than a `pong` since the last `ping` of the other."""

    def feed(self, message: Message) -> Exchange | UnpairedMessage:
        kind = message.kind
        if self._pings:
            self._give_up_pings(message)
        if kind is REQUEST:
            return self._begin(message)
        owner: Exchange | None = None
        if kind is RESULT or kind is ERROR:
            owner = self._answered(message)
        elif kind is NOTIFICATION and message.correlation_key is not None:
            owner = self._notified(message, message.correlation_key)
        elif kind is NOTIFICATION and message.method == PONG:
            owner = self._pinged(message)
        if owner is not None:
            self._set_revision(owner, message)
            return owner
        if message.revision is None:
            message.revision = self.negotiation.revision or self.negotiation.last_named
        unpaired = UnpairedMessage(self._next_row(), message)
        if kind is RESULT and message.id is None:
            waiting = self.requests[OTHER_SIDE[message.sender]].waiting_in_order()
            unpaired.candidates = tuple(exchange.row for exchange in waiting.oldest(MAX_CANDIDATES))
        elif kind is NOTIFICATION and message.method in (PING, PONG):
            self._beat(unpaired)
        return unpaired

    def _begin(self, request: Message) -> Exchange:
        exchange = Exchange(self._next_row(), request)
        if request.method in OPENINGS:
            self.negotiation.feed_request(exchange)
        elif request.revision is None:
            request.revision = self.negotiation.revision
        else:
            self.negotiation.last_named = request.revision
        self.requests[request.sender].add(request.id or "", exchange)
        return exchange

    def waits(self, sender: Side, id: str) -> bool:
        """Return whether a request of `sender` with exactly this id waits for its answer."""
        return id in self.requests[sender].waiting

    def settle(self, exchange: Exchange, message: Message) -> None:
        """Take `message` as the answer to `exchange`, though not its id says so but HTTP."""
        self.requests[exchange.sender].settle(exchange, message)
        self._set_revision(exchange, message)

    def take_by_order(self, exchange: Exchange, message: Message) -> None:
        """Take a result without an id as the answer to `exchange`, or as a part of it."""
        self.requests[exchange.sender].take_by_order(exchange, message)
        self._set_revision(exchange, message)

    def close(self, silent: Side | None = None) -> list[Exchange]:
        """End the exchanges that wait for answers of `silent`, the side that sends no more; None: of both sides."""
        sides = (CLIENT, SERVER) if silent is None else (OTHER_SIDE[silent],)
        return [exchange for side in sides for exchange in self.requests[side].close()]

    def _answered(self, message: Message) -> Exchange | None:
        # An error with a null id says that its sender could not read some id (JSON-RPC 2.0, section 5): it answers none.
        if message.id is None and message.kind is RESULT:
            requests = self.requests[OTHER_SIDE[message.sender]]
            waiting = requests.waiting_in_order().oldest(2)
            if len(waiting) != 1:
                return None
            requests.take_by_order(waiting[0], message)
            return waiting[0]
        if message.id is None or (message.id == "null" and message.kind is ERROR):
            return None
        return self.requests[OTHER_SIDE[message.sender]].answer(message.id, message)

    def _pinged(self, pong: Message) -> Exchange | None:
        """Return the oldest request `ping` that waits, answered by a notification; None if a `ping` without an id waits for it."""
        sender = OTHER_SIDE[pong.sender]
        exchange = None if self._pings.get(sender) else self.requests[sender].waiting_in_order().oldest_ping()
        if exchange is not None:
            self.requests[sender].take_by_order(exchange, pong)
        return exchange

    def _give_up_pings(self, message: Message) -> None:
        """Wait no longer for the `pong` of a `ping` without an id that the other side has passed over."""
        if message.method == PONG:
            self._spoken.discard(message.sender)
        elif message.method != PING:
            self._spoken.add(message.sender)
        elif (other := OTHER_SIDE[message.sender]) in self._spoken:
            self._pings.get(message.sender, deque()).clear()
            self._spoken.discard(other)

    def _beat(self, row: UnpairedMessage) -> None:
        """Pair a `pong` without an id with the oldest `ping` without one that waits for it."""
        message = row.message
        if message.method == PING:
            self._pings.setdefault(message.sender, deque()).append(row)
        elif pings := self._pings.get(OTHER_SIDE[message.sender]):
            ping = pings.popleft()
            row.candidates, ping.candidates = (ping.row,), (row.row,)

    def _set_revision(self, exchange: Exchange, message: Message) -> None:
        """Give `message` the revision of its exchange; the answer to an opening has its own, and sets it for what follows."""
        request = exchange.request
        if request.method in OPENINGS and exchange.response is message:
            self.negotiation.feed_response(exchange, message)
        elif message.revision is None:
            message.revision = request.revision

    def _notified(self, message: Message, key: str) -> Exchange | None:
        """Return the exchange of a notification: progress goes to the side that asked, a cancellation comes from it."""
        if message.method == PROGRESS:
            exchange = self.requests[OTHER_SIDE[message.sender]].with_token_of(message)
        elif message.method == CANCELLED:
            exchange = self.requests[message.sender].with_id(key)
            if exchange is None:  # a server may end a subscription of its client so (2026-07-28, basic/patterns/cancellation)
                exchange = self.requests[OTHER_SIDE[message.sender]].subscription(key)
            if exchange is not None and exchange.cancelled is None:
                exchange.cancelled = message
        else:
            return None
        if exchange is not None:
            exchange.notifications = appended(exchange.notifications, message)
        return exchange

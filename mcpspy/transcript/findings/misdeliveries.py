"""Responses of a server that went to another client than the one that waits for them, by their ids.

Over HTTP every client counts its requests alone, so an id means something in one scope only. A response that its own scope has no use
for, and whose id waits in another one, was sent to the wrong client:

    session of alice             tools/call 7 ◄─ ─ ─ ─ ─ ─ ─ ┐     never answered
    session of bob               tools/call 9, result 9, result 7  nobody in this session asked with 7
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, NamedTuple

from ...records import SERVER
from ..http.transaction import Scope, ScopeKind
from ..model import CaptureInfo, Exchange, Kind, Message, UnpairedMessage

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


class Misdelivery(NamedTuple):
    """A response in the wrong place: the row that it is in, the response, and the exchange that it belongs to."""

    row: int
    message: Message
    owner: Exchange


class Misdeliveries(NamedTuple):
    """All misdelivered responses of a capture. `ids` are those of responses without a request that another scope gave out as well."""

    responses: Sequence[Misdelivery] = ()
    ids: frozenset[str] = frozenset()

    @property
    def rows(self) -> set[int]:
        """The rows that they explain: those that the responses are in, and those of the requests that wait for them."""
        return {row for misdelivery in self.responses for row in (misdelivery.row, misdelivery.owner.row)}


def misdeliveries(
    capture: CaptureInfo, http: Iterable[Exchange], unmatched: Iterable[UnpairedMessage], repeated: Iterable[Exchange]
) -> Misdeliveries:
    """Find the owners of responses to no request, and of second responses, among the `http` exchanges of other scopes."""
    strays = [(row, message) for row, message in _strays(unmatched, repeated) if message.sender == SERVER and message.id]
    ids = {message.id for _, message in strays}
    waiting: dict[str, list[Exchange]] = {}
    answers: dict[bytes, Exchange] = {}
    known: set[str] = set()
    for exchange in http if strays else ():
        id, response = exchange.request.id, exchange.response
        if id is None or id not in ids or exchange.sender == SERVER:
            continue
        known.add(id)
        if response is None:
            waiting.setdefault(id, []).append(exchange)
        elif response.kind is Kind.RESULT:
            answers[response.raw] = exchange
    found = []
    for row, message in strays:
        transaction = capture.transaction_of(message.stream)
        owner = None if transaction is None else _owner(transaction.scope, message, waiting.get(message.id or "", []), answers)
        if owner is not None:
            found.append(Misdelivery(row, message, owner))
    return Misdeliveries(found, frozenset(known))


def _strays(unmatched: Iterable[UnpairedMessage], repeated: Iterable[Exchange]) -> Iterator[tuple[int, Message]]:
    for unpaired in unmatched:
        yield unpaired.row, unpaired.message
    for exchange in repeated:
        for message in exchange.more_responses:
            if exchange.response is None or message.raw != exchange.response.raw:
                yield exchange.row, message


def _owner(scope: Scope, message: Message, waiting: list[Exchange], answers: dict[bytes, Exchange]) -> Exchange | None:
    """Return the newest request that waits in another scope, which waits no more; else one that got the very same answer."""
    for at in range(bisect_right(waiting, message.at_ns, key=lambda exchange: exchange.at_ns) - 1, -1, -1):
        if _are_two_clients(scope, waiting[at]):
            return waiting.pop(at)
    owner = answers.get(message.raw)
    return owner if owner is not None and owner.at_ns <= message.at_ns and _are_two_clients(scope, owner) else None


def _are_two_clients(scope: Scope, exchange: Exchange) -> bool:
    """Return whether another client, or another session, sent a request. Single transactions show it by clients' names alone."""
    other = None if exchange.transaction is None else exchange.transaction.scope
    if other is None or other is scope:
        return False
    if ScopeKind.TRANSACTION in (scope.kind, other.kind):
        return bool(scope.client and other.client) and scope.client != other.client
    return True

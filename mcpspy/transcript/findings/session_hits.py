"""Hits about requests of a client that depend on what the handshakes of their sessions agreed on, noted in one pass over the rows.

Where a handshake changes what was agreed on after a request was looked at, or hits are many, all requests are looked at again.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from ...records import CLIENT
from ..http.transaction import Transaction
from ..mcp.methods import INITIALIZE
from ..model import Exchange
from .facts import CaptureFacts, agreed_revision, agreed_revisions
from .rule import Hit

MAX_HITS: Final = 10_000
"""More hits are not held."""

Check = Callable[[Exchange, Transaction, str | None], Iterator[Hit]]
"""Takes a request of the client, the transaction that carried it, and the revision that its session agreed on."""


class SessionHits:
    """The hits of a `check` of each request over HTTP."""

    __slots__ = ("_agreed", "_asked", "_check", "_hits", "_is_complete")

    def __init__(self, check: Check) -> None:
        self._check = check
        self._agreed: dict[str, str] = {}
        self._asked: set[str] = set()
        """The sessions of the requests so far."""
        self._hits: list[Hit] = []
        self._is_complete = True

    def feed(self, exchanges: Iterable[Exchange]) -> None:
        """Take in the next exchanges."""
        for exchange in exchanges if self._is_complete else ():
            transaction = exchange.transaction
            if exchange.request.method == INITIALIZE:
                self._learn(exchange)
            if transaction is not None and exchange.request.sender == CLIENT:
                session = transaction.scope.session
                self._asked.add(session)
                self._hits += self._check(exchange, transaction, self._agreed.get(session) if session else None)
        if len(self._hits) > MAX_HITS:
            self._is_complete = False
            self._hits = []

    def _learn(self, initialize: Exchange) -> None:
        agreed = agreed_revision(initialize)
        if agreed is not None:
            session, revision = agreed
            if session in self._asked and self._agreed.get(session) != revision:
                self._is_complete = False
            self._agreed[session] = revision

    def all(self, facts: CaptureFacts) -> Iterator[Hit]:
        """Yield the hits of all requests."""
        if self._is_complete:
            yield from self._hits
            return
        agreed = agreed_revisions(facts)
        for exchange in facts.http:
            transaction = exchange.transaction
            if transaction is not None and exchange.sender == CLIENT:
                session = transaction.scope.session
                yield from self._check(exchange, transaction, agreed.get(session) if session else None)

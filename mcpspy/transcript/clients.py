"""The clients of one capture over HTTP, told apart by what is known of each transaction.

That is its process, if the tap found it, or else its session, the program that it names in `User-Agent`, the name that the client
gave itself, and its connection.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

    from .http.transaction import Transaction
    from .model import CaptureInfo, Exchange

ClientKey = tuple[int, int]
"""The pid of a client's process, and its start time in the system's unit."""


class Traits(NamedTuple):
    """The marks of a client in one transaction; None or empty where it has none."""

    process: ClientKey | None
    program: str
    name: str

    def may_be(self, other: Traits) -> bool:
        """Return whether two transactions may be of one client: of one process, or as far as that is unknown, of one program."""
        if self.process and other.process:
            return self.process == other.process
        return self.program == other.program and (self.name == other.name or not self.name or not other.name)


class KnownClients:
    """The clients of a capture. `openings` are their requests of `initialize` and `server/discover`."""

    __slots__ = ("_info", "_openings", "_processes", "_programs", "_sessions")

    def __init__(self, info: CaptureInfo, openings: Iterable[Exchange] = ()) -> None:
        self._info = info
        self._processes = set(info.client_processes.values())
        self._sessions: dict[str, ClientKey] = {}
        """The process that uses each session, as far as its connections are known."""
        self._programs: dict[str, set[ClientKey]] = {}
        """The processes of each program that transactions name as `User-Agent`."""
        for transaction in info.transactions.values() if self._processes else ():
            if owner := info.client_processes.get(transaction.connection):
                self._programs.setdefault(transaction.user_agent, set()).add(owner)
                if transaction.scope.session:
                    self._sessions[transaction.scope.session] = owner
        self._openings: Counter[tuple[str, str]] = Counter()
        for opening in openings:
            if carrier := opening.transaction:
                self._openings.update((carrier.user_agent, name) for name in {carrier.scope.client, ""})

    def process_of(self, transaction: Transaction) -> ClientKey | None:
        """Return the process of a transaction, by its connection, its session, or its program if only one process runs that."""
        info = self._info
        owner = info.client_processes.get(transaction.connection) or self._sessions.get(transaction.scope.session)
        if owner is not None or not info.closed or len(self._processes) < 2:
            return owner
        owners = self._programs.get(transaction.user_agent, set())
        return min(owners) if len(owners) == 1 else None

    def traits(self, transaction: Transaction) -> Traits:
        """Return the marks of a client in a transaction."""
        return Traits(self.process_of(transaction), transaction.user_agent, transaction.scope.client)

    def key(self, transaction: Transaction | None) -> Hashable:
        """Return a value that two transactions share only if one client made them; None on stdio.

        Without a session or a known process, that is the program if it sent only one initialize, and else the connection.
        """
        if transaction is None:
            return None
        scope, program = transaction.scope, (transaction.user_agent, transaction.scope.client)
        known = scope.session or scope.stream or self.process_of(transaction)
        return known or (program if self._openings[program] == 1 else (transaction.connection,))

"""How clients of one capture open: which first tries were probes, by which a client finds out what a server speaks.

A failed `server/discover` is a probe until the client has agreed with the server on anything; a failed `initialize` becomes one
when the same client succeeds with another: with another revision, or at another address. Source: MCP specification
2026-07-28, basic/versioning; 2025-03-26, basic/transports (backwards compatibility). Refuses to judge what fails otherwise.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..model import Exchange, Kind
from .fields import client_name
from .methods import DISCOVER

if TYPE_CHECKING:
    from ..model import Message


class Openings:
    """What the clients of one capture, told apart by their names, did to open.

    `changed` are exchanges that later ones turned into probes: who reports changes takes them from there.
    """

    __slots__ = ("_agreed", "_discovers", "_tried", "changed")

    def __init__(self) -> None:
        self._agreed: set[str] = set()
        self._discovers: dict[str, Exchange] = {}
        self._tried: dict[str, list[Exchange]] = {}
        self.changed: list[Exchange] = []

    def ask(self, exchange: Exchange) -> None:
        """A client opens, or asks again how it should."""
        name = client_name(exchange.request.raw) or ""
        if exchange.method == DISCOVER:
            exchange.is_probe = name not in self._agreed
            self._discovers[name] = exchange
            return
        self._tried.setdefault(name, []).append(exchange)
        discover = self._discovers.pop(name, None)
        if discover is not None and discover.is_probe and discover.response is None and not discover.over:
            discover.over = True  # who goes on to `initialize` waits for it no longer
            self.changed.append(discover)

    def answer(self, exchange: Exchange, message: Message) -> None:
        """It was answered: by a result, and what was tried before was a probe; or by an error."""
        if message.kind is not Kind.RESULT:
            return
        name = client_name(exchange.request.raw) or ""
        self._agreed.add(name)
        for earlier in self._tried.pop(name, ()):
            if earlier.has_failed and _way(earlier) != _way(exchange):
                earlier.is_probe = True
                self.changed.append(earlier)

    def take(self) -> list[Exchange]:
        """The exchanges that changed, once."""
        changed, self.changed = self.changed, []
        return changed


def _way(exchange: Exchange) -> tuple[str, str]:
    """How an `initialize` tried: the revision it asked for, and the address it went to. The same again is no probe."""
    return exchange.target or "", "" if exchange.transaction is None else exchange.transaction.target

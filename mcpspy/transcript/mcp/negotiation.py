"""Negotiated revisions, one machine for each scope of request ids, and the probes that clients open with.

Exchanges with `initialize` and `server/discover` go in; out come the revision in force, for messages that name none, and the marks of
exchanges that were probes: first tries by which a client finds out what a server speaks.
Source: MCP specification, basic/lifecycle to 2025-11-25; basic/versioning of 2026-07-28; 2025-03-26, basic/transports (backwards
compatibility).
"""

from __future__ import annotations

from sys import intern

from ..exchange import Exchange, was_refused
from ..message import Kind, Message
from .fields import client_name, negotiated
from .methods import DISCOVER


class Negotiation:
    """The agreement of one scope. `revision` is in force; None as long as nobody named one.

    `last_named` is the revision that the last request named in its `_meta`. It binds that request alone, but shows the era of
    messages that the server sends unasked. An `initialize` that fails leaves the revision as it was before.
    """

    __slots__ = ("_before", "_probes", "last_named", "revision")

    def __init__(self, probes: ProbeDetector) -> None:
        self._probes = probes
        self.revision: str | None = None
        self.last_named: str | None = None
        self._before: str | None = None

    def feed_request(self, exchange: Exchange) -> None:
        """Take in an opening: `initialize` asks for a revision, in force until its answer; `server/discover` asks for the list."""
        self._probes.feed_request(exchange)
        request = exchange.request
        if request.method == DISCOVER:
            request.revision = request.revision or self.revision
            return
        if request.revision is None:
            request.revision = request.target  # the target of `initialize` is the revision it asks for
        self._before, self.revision = self.revision, request.revision

    def feed_response(self, exchange: Exchange, message: Message) -> None:
        """Take in the answer to an opening: the result of `initialize` names the revision, an error changes nothing."""
        self._probes.feed_response(exchange, message)
        if exchange.method == DISCOVER:
            message.revision = exchange.request.revision
            return
        agreed = negotiated(message)
        message.revision = agreed or exchange.request.revision
        self.revision = message.revision if agreed else self._before

    def feed_header(self, value: str | None) -> None:
        """Take in the field `MCP-Protocol-Version` of an HTTP request, which counts where no `initialize` was seen."""
        if value and self.revision is None:
            self.revision = intern(value)


class ProbeDetector:
    """The openings of one capture's clients, which are told apart by their names.

    A failed `server/discover` is a probe until the client has agreed with the server on anything. A failed `initialize` becomes a
    probe when the same client succeeds with another: with another revision, or at another address. Other failures are none.
    `changed` holds exchanges that a later one turned into probes.
    """

    __slots__ = ("_agreed", "_discovers", "_initializes", "changed")

    def __init__(self) -> None:
        self._agreed: set[str] = set()
        self._discovers: dict[str, Exchange] = {}
        self._initializes: dict[str, list[Exchange]] = {}
        self.changed: list[Exchange] = []

    def feed_request(self, exchange: Exchange) -> None:
        """Take in an opening."""
        name = client_name(exchange.request.raw) or ""
        if exchange.method == DISCOVER:
            exchange.is_probe = name not in self._agreed
            self._discovers[name] = exchange
            return
        self._initializes.setdefault(name, []).append(exchange)
        discover = self._discovers.pop(name, None)
        if discover is not None and discover.is_probe and discover.response is None and not discover.over:
            discover.over = True  # a client that goes on to `initialize` does not wait for it any longer
            self.changed.append(discover)

    def feed_response(self, exchange: Exchange, message: Message) -> None:
        """Take in the answer to an opening. After a result, earlier failures of the same client are probes."""
        if message.kind is not Kind.RESULT:
            return
        name = client_name(exchange.request.raw) or ""
        self._agreed.add(name)
        for earlier in self._initializes.pop(name, ()):
            if was_refused(earlier) and _attempt(earlier) != _attempt(exchange):
                earlier.is_probe = True
                self.changed.append(earlier)

    def take_changed(self) -> list[Exchange]:
        """Return the exchanges that changed since the last call."""
        changed, self.changed = self.changed, []
        return changed


def _attempt(exchange: Exchange) -> tuple[str, str]:
    """Return the revision and the address that an `initialize` tried. A repeated attempt is no probe."""
    return exchange.target or "", "" if exchange.transaction is None else exchange.transaction.target

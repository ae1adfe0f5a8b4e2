"""Which revision is in force where, for messages that do not name theirs: one machine for each scope of request ids.

Source: MCP specification, basic/lifecycle to 2025-11-25 and basic/versioning of 2026-07-28. Refuses to judge revisions, and to let
what one client asked be undone by an `initialize` that failed.
"""

from sys import intern
from typing import TYPE_CHECKING

from .fields import negotiated
from .methods import DISCOVER

if TYPE_CHECKING:
    from ..model import Exchange, Message
    from .probes import Openings


class Negotiation:
    """What one scope agreed on. `revision` is in force: None as long as nobody said any.

    `spoken` is what a request last named in its `_meta`: it binds that request alone, but tells the era in which its server speaks
    when it says something unasked.
    """

    __slots__ = ("_before", "_openings", "revision", "spoken")

    def __init__(self, openings: "Openings") -> None:
        self._openings = openings
        self.revision: str | None = None
        self.spoken: str | None = None
        self._before: str | None = None

    def ask(self, exchange: "Exchange") -> None:
        """`initialize` asks for a revision, which holds until its answer; `server/discover` asks which there are."""
        self._openings.ask(exchange)
        request = exchange.request
        if request.method == DISCOVER:
            request.revision = request.revision or self.revision
            return
        if request.revision is None:
            request.revision = request.target  # its target is the revision it asks for
        self._before, self.revision = self.revision, request.revision

    def answer(self, exchange: "Exchange", message: "Message") -> None:
        """An opening was answered. Of `initialize` the result names the revision, and an error leaves all as it was."""
        self._openings.answer(exchange, message)
        if exchange.method == DISCOVER:
            message.revision = exchange.request.revision
            return
        agreed = negotiated(message)
        message.revision = agreed or exchange.request.revision
        self.revision = message.revision if agreed else self._before

    def hear(self, field: str | None) -> None:
        """The field `MCP-Protocol-Version` of an HTTP request: it counts where no `initialize` was seen."""
        if field and self.revision is None:
            self.revision = intern(field)

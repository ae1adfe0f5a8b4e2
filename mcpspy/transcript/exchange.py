"""Exchanges and unpaired messages: what the correlators make of messages.

Structs without garbage collection and not frozen, for the reasons that `model` gives. Only `transcript/` assigns to them.
"""

from collections.abc import Hashable, Sequence
from typing import Final

import msgspec

from ..records import Side
from .http.transaction import Transaction, is_unread
from .mcp.methods import LISTEN
from .mcp.revisions import Era
from .message import CALLED, ERROR, UNREAD, Message
from .outcome import HTTP_ERRORS, HTTP_FAILURES, HTTP_REDIRECTS, NO_ANSWERS, Outcome

__all__ = ["Exchange", "ForwardedCall", "UnpairedMessage", "shared_answer"]


_OK: Final = Outcome.OK
"""The outcome of nearly all exchanges. `ERROR` in `message` says why it has a name of its own."""


class Exchange(msgspec.Struct, eq=False, gc=False, array_like=True, tag="exchange"):
    """A request and its outcome. `row` is the number of its row.

    `over` says that nothing waits for an answer any more: the answer came, or the other side can send none.
    """

    row: int
    request: Message
    response: Message | None = None
    notifications: Sequence[Message] = ()
    """Notifications about it, in order: progress with its token, cancellations that name it."""
    cancelled: Message | None = None
    """The first cancellation that names it."""
    more_responses: Sequence[Message] = ()
    """Answers after the first one."""
    partials: Sequence[Message] = ()
    """Results that announced more results, and came before the answer."""
    over: bool = False
    transaction: Transaction | None = None
    """The transaction that carried the request; None on stdio. The answer may have come in another one."""
    left_ns: int | None = None
    """The time at which the client closed the stream on which the answer was due, and did not take it later.

    It cancels a request of the modern era; in the others the client has only given it up. Of a subscription on stdio, the time at
    which the client closed the standard input of its server.
    """
    is_probe: bool = False
    """True if the client tries with it which era the server speaks: if the server refuses it, the client goes on in another way."""

    @property
    def capture(self) -> int:
        """The index of its capture, in `Transcript.captures`."""
        return self.request.capture

    @property
    def sender(self) -> Side:
        """The side that sent the request."""
        return self.request.sender

    @property
    def method(self) -> str:
        """The request's method."""
        return self.request.method or ""

    @property
    def revision(self) -> str | None:
        """The request's revision of MCP."""
        return self.request.revision

    @property
    def era(self) -> Era | None:
        """The request's era."""
        return self.request.era

    @property
    def target(self) -> str | None:
        """The tool, resource or prompt that the request is about."""
        return self.request.target

    @property
    def at_ns(self) -> int:
        """The time at which the request's last byte was read."""
        return self.request.at_ns

    @property
    def is_by_mcpspy(self) -> bool:
        """True if `mcpspy call` sent the request, and not the client."""
        return CALLED in self.request.flaws

    @property
    def messages(self) -> list[Message]:
        """All its messages; the answer is the last."""
        messages = [self.request, *self.notifications, *self.partials, *self.more_responses]
        return messages if self.response is None else [*messages, self.response]

    @property
    def progress(self) -> int:
        """The number of its progress notifications."""
        return sum(1 for message in self.notifications if message.method == "notifications/progress")

    @property
    def outcome(self) -> Outcome:
        """The outcome so far."""
        if self.is_probe and was_refused(self):
            return Outcome.PROBE
        response = self.response
        if response is None:
            if self.cancelled is not None or self.left_ns is not None:
                return Outcome.CANCELLED
            return self._unanswered if self.over else Outcome.PENDING
        cancelled = self.cancelled
        if cancelled is not None and cancelled.at_ns <= response.at_ns and cancelled.sender == self.request.sender:
            return Outcome.CANCELLED
        if self.left_ns is not None and self.left_ns < response.at_ns:
            return Outcome.CANCELLED
        if response.kind is ERROR:
            return Outcome.ERROR
        return Outcome.TOOL_ERROR if response.is_error else _OK

    @property
    def duration_ns(self) -> int | None:
        """From the request's last byte to the answer's last byte, or to the cancellation.

        None while neither came, and where no clock told them apart: in a capture of a log without times.
        """
        end = self.response or self.cancelled
        if end is not None:
            return (end.at_ns - self.request.at_ns) or None
        return None if self.left_ns is None else self.left_ns - self.request.at_ns

    @property
    def given_up_ns(self) -> int | None:
        """The time at which its sender gave it up: by a cancellation, or by closing the stream.

        None if it did not, or if it had the answer by then. A subscription lasts until it is cancelled, which is no giving up.
        """
        cancelled, response = self.cancelled, self.response
        if (cancelled is None and self.left_ns is None) or self.method == LISTEN:
            return None
        if cancelled is None:
            return self.left_ns if response is None or (self.left_ns or 0) < response.at_ns else None
        is_late = response is not None and response.at_ns < cancelled.at_ns
        return None if is_late or cancelled.sender != self.sender else cancelled.at_ns

    @property
    def _unanswered(self) -> Outcome:
        """The outcome without an answer, as far as HTTP shows it."""
        status = 0 if self.transaction is None or self.transaction.request_messages == 0 else self.transaction.status
        if status < HTTP_REDIRECTS:
            unread = self.transaction is not None and is_unread(self.transaction)
            return Outcome.UNKNOWN if unread or UNREAD in self.request.flaws else Outcome.UNANSWERED
        return Outcome.REDIRECTED if status < HTTP_ERRORS else Outcome.HTTP_ERROR


def was_refused(exchange: Exchange) -> bool:
    """Return whether a request brought no result, in a way in which servers refuse what they do not speak."""
    status = 0 if exchange.transaction is None else exchange.transaction.status
    if status in NO_ANSWERS or status >= HTTP_FAILURES or HTTP_REDIRECTS <= status < HTTP_ERRORS:
        return False
    if exchange.response is None:
        return exchange.over or exchange.cancelled is not None or exchange.left_ns is not None
    return exchange.response.kind is ERROR


class ForwardedCall(msgspec.Struct, eq=False, frozen=True):
    """A call of a client, and the calls that a gateway made for it: more than one if it tried again."""

    outer: Exchange
    inner: tuple[Exchange, ...]

    @property
    def last(self) -> Exchange:
        """The last of the gateway's calls, whose answer it passed on."""
        return self.inner[-1]

    @property
    def server_ns(self) -> int | None:
        """The time that the gateway waited for the server; None if the server has not answered."""
        times = [exchange.duration_ns for exchange in self.inner]
        return None if None in times else sum(time for time in times if time is not None)

    @property
    def gateway_ns(self) -> int | None:
        """The time that the call spent in the gateway; None if one of the two has no end."""
        took_ns, server_ns = self.outer.duration_ns, self.server_ns
        return None if took_ns is None or server_ns is None else max(0, took_ns - server_ns)


class UnpairedMessage(msgspec.Struct, eq=False, gc=False, array_like=True, tag="unpaired"):
    """A message in no exchange, with a row of its own: a notification, an answer to no request, a malformed payload."""

    row: int
    message: Message
    candidates: tuple[int, ...] = ()
    """The rows of the oldest requests that a result without an id may answer; of a `ping` or `pong` without an id, the other one.

    Of an answer that was sent to another client, the row of the request that it answers, once there are findings.
    """

    @property
    def capture(self) -> int:
        """The index of its capture, in `Transcript.captures`."""
        return self.message.capture

    @property
    def at_ns(self) -> int:
        """The time at which its last byte was read."""
        return self.message.at_ns


def shared_answer(exchange: Exchange) -> Hashable | None:
    """Return what tells an answer from all others, if its transaction carried several requests; None if it answers no other.

    Over HTTP one error may answer all requests of a transaction. Each of their rows has it, not always as the same object.
    """
    response, transaction = exchange.response, exchange.transaction
    if response is None or transaction is None or transaction.request_messages < 2:
        return None
    return response.capture, response.number, response.id, response.raw

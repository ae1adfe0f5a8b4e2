"""Calls that controllers send through a tap: each has an id of its own, and what the server says about it is for the controller."""

from __future__ import annotations

import os
from itertools import count
from typing import TYPE_CHECKING, Any, Final, Protocol

from ...intercept.decisions import call_record
from ...live.upstream.protocol import cancellation
from ...replay.client.outgoing import ID, PROGRESS_TOKEN, value_edit
from ...wire.edits import has_value, with_values
from ...wire.jsonrpc import cut

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...intercept.decisions import Intercepts
    from ...records import Intercept

    class Caller(Protocol):
        """A controller that sends calls."""

        def tell(self, event: dict[str, Any]) -> None: ...

    class CallRoute(Protocol):
        """The way of one call to the server."""

        def begin(self, on_failed: Callable[[str], None]) -> None:
            """Set what is called if there will be no answer, with the reason."""

        def send(self, payload: bytes, act: Intercept) -> bool:
            """Send a message to the server; return whether that takes messages."""


_OPENING: Final = "initialize"


class CallRefusedError(Exception):
    """A call that is not sent; the text says why."""


class InjectedCalls:
    """The calls of all controllers of one tap. An answer that comes when its controller has left is kept from the client too."""

    __slots__ = ("_callers", "_intercepts", "_names", "_now_ns", "_routes")

    def __init__(self, intercepts: Intercepts, now_ns: Callable[[], int]) -> None:
        self._intercepts = intercepts
        self._now_ns = now_ns
        self._callers: dict[str, Caller] = {}
        """The controllers that wait for an answer, by the id of the call."""
        self._routes: dict[str, CallRoute] = {}
        prefix = os.urandom(4).hex()  # no client has such an id
        self._names = (f'"mcpspy-{prefix}-{number}"' for number in count(1))

    def send(self, payload: object, by: Caller, route: CallRoute, on_answer: Callable[[], None]) -> str:
        """Send a request under a new id, which is returned. Raises: CallRefusedError."""
        data = payload.encode("utf-8", "surrogatepass") if isinstance(payload, str) else b""
        pieces = cut(data)
        if len(pieces) != 1 or pieces[0].kind != "request" or pieces[0].batch or b"\n" in data or b"\r" in data:
            raise CallRefusedError("send needs a payload, a request of JSON-RPC in one line")
        if pieces[0].method == _OPENING:
            raise CallRefusedError("initialize is the client's to send, once a session")
        id = next(self._names)
        edits = [value_edit(steps, id) for steps in (ID, PROGRESS_TOKEN) if has_value(data, steps)]
        begun_ns = self._now_ns()

        def listen(message: bytes, at_ns: int, is_answer: bool) -> None:
            caller = self._callers.pop(id, None) if is_answer else self._callers.get(id)
            if caller is not None:
                facts = {"id": id, "payload": message.decode("utf-8", "surrogateescape"), "took_ns": at_ns - begun_ns}
                caller.tell({"event": "answer" if is_answer else "progress", **facts})
            if is_answer:
                self._routes.pop(id, None)
                on_answer()

        def fail(why: str) -> None:
            if self._intercepts.calls.pop(id, None) is None:
                return
            caller = self._callers.pop(id, None)
            self._routes.pop(id, None)
            if caller is not None:
                caller.tell({"event": "failed", "id": id, "text": why})
            on_answer()

        self._intercepts.calls[id] = listen
        self._callers[id], self._routes[id] = by, route
        route.begin(fail)
        if not route.send(with_values(data, edits), self._record()):
            del self._intercepts.calls[id], self._callers[id], self._routes[id]
            raise CallRefusedError("the server takes no more messages")
        return id

    def cancel(self, id: str, by: Caller) -> None:
        """Cancel a call of this controller, which hears no more of it. Nothing is done if it was answered."""
        if self._callers.get(id) is by:
            del self._callers[id]
            self._routes.pop(id).send(cancellation(id), self._record())

    def abandon(self, by: Caller) -> None:
        """Cancel all calls of a controller that has left."""
        for id in [id for id, caller in self._callers.items() if caller is by]:
            self.cancel(id, by)

    def _record(self) -> Intercept:
        return call_record(self._now_ns(), self._intercepts.seed)

"""A server that has been started and has not taken over: its handshake, and what it says meanwhile.

What only mcpspy and this server say to each other is recorded on two streams of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ...records import BESIDE, CLIENT, SERVER, Frame, Open, Spawn
from ...wire.jsonrpc import cut
from ...wire.lines import one_line
from .handshake import ServerHandshake

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...records import Sink
    from .server_ends import ServerEnd
    from .session_memory import SessionMemory

MAX_WAITING: Final = 1000
"""So many of its notifications wait for it to take over."""

_FIRST_STREAM: Final = 3


class NewServer:
    """A new server. `end` is the one that it will be; it `is_ready` when it has answered all that it was asked."""

    def __init__(self, end: ServerEnd, memory: SessionMemory, sink: Sink, now_ns: Callable[[], int]) -> None:
        self.end = end
        self.handshake = ServerHandshake(memory, self.tell)
        self._sink = sink
        self._now_ns = now_ns
        self._stdin = _FIRST_STREAM + 2 * (end.number - 2)
        self._stdout = self._stdin + 1

    @property
    def is_ready(self) -> bool:
        """True if it may take over."""
        return not self.handshake.waits

    def report(self, at_ns: int) -> None:
        """Record that it has been started."""
        extra, server = {BESIDE: True}, self.end
        self._sink((
            Spawn(at_ns=at_ns, pid=server.pid, start=server.start, extra={"server": server.number}),
            Open(at_ns=at_ns, stream=self._stdin, sender=CLIENT, name="stdin", extra=extra),
            Open(at_ns=at_ns, stream=self._stdout, sender=SERVER, name="stdout", extra=extra),
        ))  # fmt: skip

    def tell(self, payload: bytes) -> None:
        """Send a message that the client does not know of."""
        data, now_ns = one_line(payload), self._now_ns()
        self._sink((Frame(self._stdin, now_ns, now_ns, data, injected=True),))
        assert self.end.outlet is not None
        self.end.outlet.write(data)

    def hear(self, frame: Frame, whole: bytes) -> bool:
        """Take a message. Return false if it is a request, which is for the client."""
        pieces = cut(whole) if whole else []
        piece = pieces[0] if len(pieces) == 1 else None
        if piece is not None and piece.kind == "request":
            return False
        if piece is not None and piece.kind == "notification" and len(self.end.waiting) < MAX_WAITING:
            self.end.waiting.append(frame)
            return True
        self._sink((Frame(self._stdout, frame.at_ns, frame.first_ns, frame.data, frame.part),))
        if piece is not None:
            self.handshake.take(piece)
        return True

    def record_waiting(self) -> None:
        """Record the notifications that the client will not get."""
        for frame in self.end.waiting:
            self._sink((Frame(self._stdout, self._now_ns(), frame.first_ns, frame.data),))

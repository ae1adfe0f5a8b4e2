"""What every mock over HTTP has: an address and who may call it, its connections, its clock, and where it is recorded.

Refuses to answer anything: what a mock plays does.
"""

from __future__ import annotations

from time import monotonic_ns
from typing import TYPE_CHECKING

from ....records import MCPSPY, Note
from ...http.host_check import Gate
from ...http.listener import Authority, bound
from ...http.recorder import Numbers

if TYPE_CHECKING:
    import socket

    from ....records import Sink
    from .connection import Connection
    from .door import Door


class ListeningMock:
    """A mock that listens. Its clock began at `begin_ns` of the monotonic one."""

    def __init__(self, *, begin_ns: int, allowed_hosts: frozenset[str]) -> None:
        self.sink: Sink = _nowhere
        self.numbers = Numbers()
        self.connections: set[Connection] = set()
        self.own = Authority("127.0.0.1", 0)
        self.gate = Gate(port=0)
        self.begin_ns = begin_ns
        self.why = ""
        self._allowed_hosts = allowed_hosts
        self._door: Door | None = None

    def record_to(self, sink: Sink) -> None:
        """Have everything recorded there."""
        self.sink = sink

    def now_ns(self) -> int:
        """Nanoseconds since our clock began."""
        return monotonic_ns() - self.begin_ns

    def listen(self, host: str, port: int) -> socket.socket:
        """Take the address; port 0 picks one. Raises: TapError: if it is taken, or not ours."""
        listener = bound(host, port)
        self.own = Authority(host, listener.getsockname()[1])
        self.gate = Gate(port=self.own.port, allowed_hosts=self._allowed_hosts)
        return listener

    def noted(self, topic: str, text: str, *, by: str = "") -> None:
        """Write down what happened to the process."""
        self.sink((Note(at_ns=self.now_ns(), topic=topic, text=text, extra={"by": by} if by else None),))

    def ended(self, why: str) -> None:
        """It is to end, and why: the name of a signal."""
        self.why = self.why or why

    def _shut(self) -> None:
        """Let nobody in any more."""
        if self._door is not None:
            self._door.close()

    def _leave(self) -> None:
        """Leave who is there."""
        for connection in list(self.connections):
            connection.abort(MCPSPY)


def _nowhere(records: object) -> None:
    """The sink of a mock that has none."""

"""An HTTP tap in a thread of this process, so that a test can shorten its times and see its records."""

import socket
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from mcpspy.live.http.listener import Authority, HttpOrigin
from mcpspy.live.http.tap import HttpTap
from mcpspy.records import Record
from tests.deadlines import DEADLINE_S
from tests.live.http.ends import Upstream, Wire


class Ends:
    """An upstream, connections to a tap in front of it, and the tap's records."""

    def __init__(self, upstream: Upstream, tap: HttpTap) -> None:
        self.upstream = upstream
        self.tap = tap
        self.port = tap.own.port
        self.wires: list[Wire] = []
        self.records: list[Record] = []

    def connect(self) -> Wire:
        self.wires.append(Wire(socket.create_connection(("127.0.0.1", self.port), DEADLINE_S)))
        return self.wires[-1]

    def took(self, records: Sequence[Record]) -> None:
        self.records.extend(records)


@contextmanager
def tapped() -> Iterator[Ends]:
    """Run a tap in front of an upstream that a test plays."""
    upstream = Upstream()
    tap = HttpTap(HttpOrigin("http", Authority("127.0.0.1", upstream.port)), time.monotonic_ns())
    listener = tap.listen("127.0.0.1", 0)
    ends = Ends(upstream, tap)
    tap.record_to(ends.took)
    with serving(tap, listener):
        yield ends
    for wire in ends.wires:
        wire.close()
    upstream.end()


@contextmanager
def serving(tap: HttpTap, listener: socket.socket) -> Iterator[None]:
    """Run a tap in a thread of its own."""
    ready = threading.Event()
    thread = threading.Thread(target=tap.serve, args=(listener, ready.set), daemon=True)
    thread.start()
    assert ready.wait(DEADLINE_S)
    try:
        yield
    finally:
        tap.reactor.wake(tap.reactor.stop)
        thread.join(DEADLINE_S)
        assert not thread.is_alive()

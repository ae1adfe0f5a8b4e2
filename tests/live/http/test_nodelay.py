"""Events go out as they come: the kernel does not delay a small write until the one before it is acknowledged."""

import os
import socket
import stat
import threading

from mcpspy.live.http.listener import Authority, HttpOrigin
from mcpspy.live.http.tap import HttpTap
from tests.deadlines import DEADLINE_S, eventually


def accepted(client: socket.socket) -> socket.socket | None:
    """Find the other end of a connection, if it is in this process and accepted."""
    for name in os.listdir("/proc/self/fd"):
        try:
            if not stat.S_ISSOCK(os.fstat(int(name)).st_mode):
                continue
            end = socket.socket(fileno=os.dup(int(name)))
        except OSError:
            continue  # it was closed meanwhile
        try:
            if end.family == socket.AF_INET and end.getpeername() == client.getsockname():
                return end
        except OSError:
            pass  # it listens
        end.close()
    return None


def test_small_writes_to_a_client_do_not_wait_and_a_client_that_vanishes_is_asked_after() -> None:
    tap = HttpTap(HttpOrigin("http", Authority("127.0.0.1", 1)), 0)
    listener = tap.listen("127.0.0.1", 0)
    ready = threading.Event()
    thread = threading.Thread(target=tap.serve, args=(listener, ready.set), daemon=True)
    thread.start()
    assert ready.wait(DEADLINE_S)

    def has(level: int, option: int) -> bool:
        """Return whether the tap's end of the connection is accepted and has this option."""
        end = accepted(client)
        if end is None:
            return False
        with end:
            return end.getsockopt(level, option) != 0

    with socket.create_connection(("127.0.0.1", tap.own.port), timeout=DEADLINE_S) as client:
        eventually(lambda: has(socket.IPPROTO_TCP, socket.TCP_NODELAY), "the connection to be let in with TCP_NODELAY")
        eventually(lambda: has(socket.SOL_SOCKET, socket.SO_KEEPALIVE), "whoever vanishes to be asked after")
    tap.reactor.wake(tap.reactor.stop)
    thread.join(DEADLINE_S)

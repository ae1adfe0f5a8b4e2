"""The time of one event of a stream in an HTTP tap, with warm caches and with cold ones, as they are when events come one by one.

    python -m benchmarks.events [--events 3000] [--bytes 200]      # MCPSPY_PURE=1: without speedups.c

The tap has real sockets and a capture on disk, and its loop goes on by hand: timed is one poll and all that follows from it. Caches
are cold when other memory and other code were used just before the event.
"""

import argparse
import ctypes
import gc
import os
import shutil
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path
from time import monotonic_ns, perf_counter_ns

from benchmarks.programs import OUT
from mcpspy.capture.file.writer import Writer
from mcpspy.capture.redaction.redactor import Redactor
from mcpspy.capture.redaction.sink import RedactingSink
from mcpspy.compiled import VERSION_SUFFIX
from mcpspy.live.http.connection_pair import ConnectionPair
from mcpspy.live.http.listener import Authority, HostCheck, HttpOrigin
from mcpspy.live.http.tap import HttpTap

OTHER_BYTES = 6 << 20
OTHER_FUNCTIONS = 600
STEPS = 12
READ_BYTES = 1 << 16


def cooler() -> Callable[[], object]:
    """Build a function that uses more memory and code than the caches of one core hold."""
    functions = "".join(
        f"__attribute__((noinline)) static void f{number}(unsigned k) {{"
        + "".join(f"if (x & {1 << step}) x += k * {number * 37 + step}; else x ^= k + {step};" for step in range(STEPS))
        + "}\n"
        for number in range(OTHER_FUNCTIONS)
    )
    calls = "".join(f"f{number}(turn + {number});" for number in range(OTHER_FUNCTIONS))
    source, library = OUT / "cooler.c", OUT / "cooler.so"
    OUT.mkdir(exist_ok=True)
    source.write_text(
        f"static volatile unsigned char other[{OTHER_BYTES}];\nvolatile unsigned x;\n{functions}"
        f"void cool(void) {{ for (unsigned at = 0; at < sizeof other; at += 64) other[at]++;"
        f" for (unsigned turn = 0; turn < 2; turn++) {{ {calls} }} }}\n"
    )
    subprocess.run([shutil.which("gcc") or "cc", "-O1", "-shared", "-fPIC", source, "-o", library], check=True)
    function: Callable[[], object] = ctypes.CDLL(str(library)).cool
    return function


class Stream:
    """A stream of events through a tap."""

    def __init__(self, capture: Path) -> None:
        capture.unlink(missing_ok=True)
        self.tap = HttpTap(HttpOrigin("http", Authority("127.0.0.1", 1)), monotonic_ns())
        self.tap.own, self.tap.host_check = Authority("127.0.0.1", 2), HostCheck(port=2)
        writer = Writer(os.open(capture, os.O_WRONLY | os.O_CREAT | os.O_APPEND), b'{"mcpspy":1}\n')
        writer(())
        self.tap.record_to(RedactingSink(writer, Redactor(b"k" * 32)))
        self.client, own_client = _connection()
        self.server, own_server = _connection()
        pair = ConnectionPair(self.tap, own_client)
        pair.on_connected(own_server)
        pair.on_client_data(b"POST / HTTP/1.1\r\nHost: 127.0.0.1:2\r\nContent-Length: 2\r\n\r\n{}")
        self.server.recv(READ_BYTES)
        self.server.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
        self.turn()
        self.client.recv(READ_BYTES)

    def turn(self) -> None:
        """Wait for events once, and make the calls."""
        reactor = self.tap.reactor
        poll, callbacks = reactor._poll, reactor._callbacks  # noqa: SLF001 - its loop goes on by hand
        for fd, events in poll.poll(30.0, 40):
            callbacks[fd](events)

    def time_ns(self, event: bytes, before: Callable[[], object]) -> int:
        """Send an event, and return how long it takes."""
        self.server.sendall(event)
        before()
        began_ns = perf_counter_ns()
        self.turn()
        took_ns = perf_counter_ns() - began_ns
        assert self.client.recv(READ_BYTES) == event
        return took_ns


def _connection() -> tuple[socket.socket, socket.socket]:
    """Make a TCP connection: the end of a peer, and that of the tap."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        peers = socket.create_connection(listener.getsockname())
        own, _ = listener.accept()
    for end in (peers, own):
        end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    own.setblocking(False)
    return peers, own


def event_of(number: int, size: int) -> bytes:
    """Make an event like those of the other benchmarks."""
    begin = b'data: {"jsonrpc":"2.0","method":"notifications/progress","params":{"i":%d,"t":%d,"pad":"' % (
        number,
        monotonic_ns(),
    )
    event = begin + b"e" * (size - len(begin) - 6) + b'"}} \n\n'
    return b"%x\r\n%b\r\n" % (len(event), event)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Measure one event of a stream, with cold and warm caches.")
    parser.add_argument("--events", type=int, default=3000)
    parser.add_argument("--bytes", type=int, default=200)
    options = parser.parse_args()
    print(f"µs of one event{VERSION_SUFFIX}: the 10th percentile, the median")
    cool = cooler()
    stream = Stream(OUT / "events.mcpspy")
    gc.disable()
    for name, before in (("warm", monotonic_ns), ("cold", cool)):
        took_ns = sorted(stream.time_ns(event_of(number, options.bytes), before) for number in range(options.events))
        print(f"{name}: {took_ns[len(took_ns) // 10] / 1e3:.1f}, {took_ns[len(took_ns) // 2] / 1e3:.1f}")


if __name__ == "__main__":
    main()

"""SIGKILL of an HTTP tap, at any instant, and signals in every phase: the capture lacks nothing that was received."""

import signal
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from mcpspy.capture.file.verify import Status, verify
from mcpspy.records import Damage, End, Frame, Open
from tests.deadlines import DEADLINE_S
from tests.live.http.ends import EVENTS, OK, Proxy, Upstream, Wire, asked, between, chunk
from tests.live.http.test_dial import silent
from tests.live.http.test_pressure import meanwhile
from tests.tiers import Tier

MAX_TRAFFIC_S = 0.08
STOP_S = 2.0
LARGE = 1_000_000_000


def events(random: Random) -> list[bytes]:
    """Many events, mostly short, all different, some with characters that the capture has to escape."""
    sizes = (random.choice((20, 200, 200, 5_000, 70_000)) for _ in range(400))
    return [b'data: {"id":%d,"x":"\xc3\xa9\x01\xff%s"}\n\n' % (random.getrandbits(40), b"y" * size) for size in sizes]


def sent(wire: Wire, pieces: list[bytes]) -> None:
    """Send as many as are taken."""
    try:
        for piece in pieces:
            wire.send(piece)
    except OSError:
        pass


def heard(wire: Wire) -> bytes:
    """Read to the end, however it ends."""
    try:
        return wire.rest()
    except ConnectionError:
        return wire.kept()


def frames(proxy: Proxy, sender: str) -> list[bytes]:
    streams = {record.stream for record in proxy.found(Open) if record.sender == sender}
    return [frame.data for frame in proxy.found(Frame) if frame.stream in streams]


def test_what_a_client_received_whole_is_in_the_capture_whenever_the_tap_is_killed(tier: Tier, tmp_path: Path) -> None:
    random = Random(7)
    for turn in range(tier(sample=5, more=30, full=200)):
        batch = events(random)
        with between(tmp_path / f"{turn}.mcpspy") as (upstream, proxy):
            client, server = asked(upstream, proxy, proxy.request(b"GET /sse", b"Accept: text/event-stream"))
            server.head()
            server.send(EVENTS)
            with meanwhile(lambda server=server, batch=batch: sent(server, [chunk(event) for event in batch])):  # type: ignore[misc]
                threading.Timer(random.uniform(0, MAX_TRAFFIC_S), proxy.process.kill).start()
                got = heard(client)
            proxy.process.wait(DEADLINE_S)
            kept = frames(proxy, "server")
            assert batch[: len(kept)] == kept or b"".join(batch).startswith(b"".join(kept))
            assert (EVENTS + b"".join(map(chunk, kept))).startswith(got[: got.rfind(b"\n\n\r\n") + 4])
            assert all(damage.reason == "torn" for damage in proxy.found(Damage))
            assert verify(str(proxy.capture)).status is Status.INCOMPLETE


def test_what_a_server_received_whole_is_in_the_capture_whenever_the_tap_is_killed(tier: Tier, tmp_path: Path) -> None:
    random = Random(11)
    for turn in range(tier(sample=5, more=30, full=200)):
        with between(tmp_path / f"{turn}.mcpspy") as (upstream, proxy):
            client, server = asked(upstream, proxy, proxy.request(body=b"%020d" % turn))
            threading.Timer(random.uniform(0, MAX_TRAFFIC_S), proxy.process.kill).start()
            bodies = answered(client, server, proxy, random)
            proxy.process.wait(DEADLINE_S)
            assert not Counter(bodies) - Counter(frame.data for frame in proxy.found(Frame))


def answered(client: Wire, server: Wire, proxy: Proxy, random: Random) -> list[bytes]:
    """Answer requests of a client until the tap is gone; the bodies that arrived whole, of both."""
    bodies = []
    try:
        while True:
            server.head()
            body = server.take(20)
            if len(body) == 20:
                bodies.append(body)
            server.send(OK)
            if client.take(len(OK)) == OK:
                bodies.append(OK[-2:])
            client.send(proxy.request(body=b"%020d" % random.getrandbits(60)))
    except (OSError, AssertionError):  # it was killed; the second where that came before a head
        return bodies


# Signals


def idle(proxy: Proxy, upstream: Upstream) -> Wire:
    return proxy.connect()


def connecting(proxy: Proxy, upstream: Upstream) -> Wire:
    client = proxy.connect()
    client.send(proxy.request())
    return client


def answering(proxy: Proxy, upstream: Upstream) -> Wire:
    client, server = asked(upstream, proxy, proxy.request())
    server.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % LARGE)
    threading.Thread(target=sent, args=(server, [b"x" * 1_000_000] * 1000), daemon=True).start()
    client.take(5_000_000)
    return client


def asking(proxy: Proxy, upstream: Upstream) -> Wire:
    head = b"POST / HTTP/1.1\r\nHost: %b\r\nContent-Length: %d\r\n\r\n" % (proxy.host, LARGE)
    client, server = asked(upstream, proxy, head)
    threading.Thread(target=sent, args=(client, [b"x" * 1_000_000] * 1000), daemon=True).start()
    server.take(5_000_000)
    return client


@pytest.mark.grid(4)
@pytest.mark.parametrize("times", [1, 3])
@pytest.mark.parametrize("phase", [idle, connecting, answering, asking])
def test_a_signal_in_any_phase_ends_the_tap_in_time_and_the_capture_with_it(
    phase: Callable[[Proxy, Upstream], Wire], times: int, tmp_path: Path
) -> None:
    with silent() as port:
        upstream = Upstream()
        url = f"http://127.0.0.1:{port}/" if phase is connecting else upstream.url
        proxy = Proxy(url, tmp_path / "x.mcpspy")
        try:
            client = phase(proxy, upstream)
            began_s = time.monotonic()
            for _ in range(times):
                proxy.process.send_signal(signal.SIGINT)
            assert proxy.process.wait(DEADLINE_S) == 0
            assert time.monotonic() - began_s < STOP_S
            heard(client)
            assert proxy.stop() == ""
            assert isinstance(proxy.records()[-1], End)
        finally:
            proxy.end()
            upstream.listener.shutdown(socket.SHUT_RDWR)
            upstream.end()


@pytest.mark.usefixtures("real_proxy")
def test_a_tap_that_is_to_outlive_its_terminal_does(tmp_path: Path) -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as nohup does
    try:
        with between(tmp_path / "x.mcpspy") as (upstream, proxy):
            client, server = asked(upstream, proxy, proxy.request())
            proxy.process.send_signal(signal.SIGHUP)
            server.head()
            server.send(OK)
            assert client.take(len(OK)) == OK
    finally:
        signal.signal(signal.SIGHUP, before)

"""A side that does not read makes the other wait, large bodies pass through little memory, and a full disk stops nothing."""

import os
import resource
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

import pytest

from mcpspy.records import Damage, Frame, Gap
from tests.deadlines import DEADLINE_S
from tests.live.http.ends import EVENTS, OK, Wire, asked, between, chunk
from tests.tiers import Tier

MAX_RESIDENT_KIB = 100_000
MAX_HELD_BYTES = 16_000_000
"""Limit of the bytes held in sockets and in mcpspy while nobody reads."""

PIECE = os.urandom(1 << 15).hex().encode()  # 64 KiB, without line ends


def sent_until_full(wire: Wire, most_bytes: int) -> int:
    """Send until nothing is taken for a while. Returns how many bytes were taken."""
    wire.socket.settimeout(0.5)
    sent = 0
    try:
        while sent < most_bytes:
            sent += wire.socket.send(PIECE)
    except TimeoutError:
        pass
    wire.socket.settimeout(DEADLINE_S)
    return sent


def drained(wire: Wire, count: int, digest: Callable[[bytes], None]) -> None:
    """Read so many bytes."""
    while count:
        data = wire.take(min(count, 1 << 16))
        assert data, f"{count} bytes did not come"
        digest(data)
        count -= len(data)


def flood(wire: Wire, count: int, digest: Callable[[bytes], None]) -> None:
    while count:
        piece = PIECE[: min(count, len(PIECE))]
        wire.send(piece)
        digest(piece)
        count -= len(piece)


@contextmanager
def meanwhile(work: Callable[[], None]) -> Iterator[None]:
    """`work` in a thread of its own, which must have ended when the block does."""
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    yield
    thread.join(DEADLINE_S)
    assert not thread.is_alive()


@pytest.mark.usefixtures("real_proxy")
def test_a_client_that_does_not_read_makes_the_upstream_wait(tmp_path: Path) -> None:
    with between(tmp_path / "x.mcpspy") as (upstream, proxy):
        _, server = asked(upstream, proxy, proxy.request())
        server.head()
        server.send(b"HTTP/1.1 200 OK\r\nContent-Length: 500000000\r\n\r\n")
        assert sent_until_full(server, 200_000_000) < MAX_HELD_BYTES
        assert proxy.peak_kib() < MAX_RESIDENT_KIB


@pytest.mark.usefixtures("real_proxy")
def test_an_upstream_that_does_not_read_makes_the_client_wait(tmp_path: Path) -> None:
    with between(tmp_path / "x.mcpspy") as (upstream, proxy):
        head = b"POST /mcp HTTP/1.1\r\nHost: %b\r\nContent-Length: 500000000\r\n\r\n" % proxy.host
        client = proxy.connect()
        client.send(head + PIECE * 4)  # with the head, so that more comes than is taken when the upstream's connection is there
        upstream.accept()
        assert sent_until_full(client, 100_000_000) < MAX_HELD_BYTES
        assert proxy.peak_kib() < MAX_RESIDENT_KIB


@pytest.mark.usefixtures("real_proxy")
def test_a_large_response_that_is_read_late_arrives_whole_through_little_memory(tmp_path: Path, tier: Tier) -> None:
    count = tier(sample=12, more=100, full=200) * 1_000_000
    sent, got, kept = sha256(), sha256(), sha256()
    with between(tmp_path / "x.mcpspy") as (upstream, proxy):
        client, server = asked(upstream, proxy, proxy.request())
        server.head()
        server.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % count)
        client.head()
        with meanwhile(lambda: flood(server, count, sent.update)):
            drained(client, count, got.update)
        assert proxy.peak_kib() < MAX_RESIDENT_KIB
        assert proxy.ending("response") == ("server", "eof")
        stream = proxy.head("response").stream
        for frame in proxy.found(Frame):
            if frame.stream == stream:
                kept.update(frame.data)
    assert sent.digest() == got.digest() == kept.digest()


@pytest.mark.usefixtures("real_proxy")
def test_a_large_request_to_a_slow_upstream_arrives_whole_through_little_memory(tmp_path: Path, tier: Tier) -> None:
    count = tier(sample=12, more=100, full=200) * 1_000_000
    sent, got = sha256(), sha256()
    with between(tmp_path / "x.mcpspy") as (upstream, proxy):
        client, server = asked(
            upstream, proxy, b"POST /mcp HTTP/1.1\r\nHost: %b\r\nContent-Length: %d\r\n\r\n" % (proxy.host, count)
        )
        server.head()
        with meanwhile(lambda: flood(client, count, sent.update)):
            drained(server, count, got.update)
        assert sent.digest() == got.digest()
        assert proxy.peak_kib() < MAX_RESIDENT_KIB
        server.send(OK)
        assert client.take(len(OK)) == OK


@pytest.mark.usefixtures("real_proxy")
@pytest.mark.parametrize("line", [b"GET /sse", b"POST /mcp"])
def test_one_large_event_arrives_whole_through_little_memory(line: bytes, tmp_path: Path, tier: Tier) -> None:
    count = tier(sample=4, more=16, full=100) << 20
    with between(tmp_path / "x.mcpspy") as (upstream, proxy):
        client, server = asked(upstream, proxy, proxy.request(line, b"Accept: text/event-stream"))
        server.head()
        event = b"data: " + PIECE * (count // len(PIECE)) + b"\n\n"
        body = b"".join(chunk(event[at : at + 50_001]) for at in range(0, len(event), 50_001))
        with meanwhile(lambda: server.send(EVENTS + body)):
            assert client.head() == EVENTS
            digest = sha256()
            drained(client, len(body), digest.update)
        assert digest.digest() == sha256(body).digest()
        assert proxy.body("response") == event
        assert proxy.peak_kib() < MAX_RESIDENT_KIB


def test_a_disk_that_is_full_leaves_the_traffic_alone_and_is_counted(tmp_path: Path) -> None:
    upstream_says = b"HTTP/1.1 200 OK\r\nContent-Length: 20000\r\n\r\n" + b"x" * 20_000
    with between(tmp_path / "x.mcpspy") as (upstream, proxy):
        client, server = asked(upstream, proxy, proxy.request())
        resource.prlimit(proxy.process.pid, resource.RLIMIT_FSIZE, (5000, resource.RLIM_INFINITY))
        for number in range(3):
            server.head()
            server.take(2)
            server.send(upstream_says)
            assert client.take(len(upstream_says)) == upstream_says
            if number == 1:
                resource.prlimit(proxy.process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
            client.send(proxy.request())
        server.head()
        assert "recording stopped" in proxy.stop()
        assert len(proxy.found(Gap)) == 1
        assert proxy.found(Damage) == []
        assert proxy.found(Frame)[-2].data == b"x" * 20_000


def test_a_capture_that_cannot_be_made_leaves_the_traffic_alone(tmp_path: Path) -> None:
    with between(tmp_path / "none" / "x.mcpspy") as (upstream, proxy):
        client, server = asked(upstream, proxy, proxy.request())
        server.head()
        server.send(OK)
        assert client.take(len(OK)) == OK
        assert "not recording" in proxy.stop()


def test_a_thousand_idle_streams_stay_open(tmp_path: Path, tier: Tier) -> None:
    count = tier(sample=100, more=1000, full=1000)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 8192), hard))
    try:
        with between(tmp_path / "x.mcpspy") as (upstream, proxy):
            request = proxy.request(b"GET /sse", b"Accept: text/event-stream")
            both = [asked(upstream, proxy, request) for _ in range(count)]
            for _, server in both:
                server.head()
                server.send(EVENTS + chunk(b": 1\n\n"))
            expected = EVENTS + chunk(b": 1\n\n")
            assert all(client.take(len(expected)) == expected for client, _ in both)
            for client, _ in both:
                client.close()
            assert all(server.rest() == b"" for _, server in both)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.usefixtures("real_proxy")
def test_a_tap_takes_more_connections_than_its_user_may_have_open_by_default(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/proc/self/fd")) + 64, hard))
    try:
        with between(tmp_path / "x.mcpspy") as (_, proxy):
            assert resource.prlimit(proxy.process.pid, resource.RLIMIT_NOFILE) == (
                min(hard, 10_240) if sys.platform == "darwin" else hard,
                hard,
            )
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))

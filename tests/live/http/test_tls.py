"""With an upstream that speaks TLS everything is as with one that does not: bytes, waiting, leaving."""

import os
import socket
import ssl
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import pytest

from tests.deadlines import DEADLINE_S
from tests.live.http.ends import EVENTS, EVENTS_TO_CLOSE, OK, Proxy, Wire, asked, chunk
from tests.live.http.secure_ends import SecureUpstream, securely_between
from tests.live.http.test_pressure import drained, flood, meanwhile, sent_until_full
from tests.tiers import Tier

MAX_HELD_BYTES = 16_000_000
MAX_RESIDENT_KIB = 100_000
EVENT = b'data: {"jsonrpc":"2.0","id":1,"result":{}}\n\n'


@pytest.fixture
def both(tmp_path: Path) -> Iterator[tuple[SecureUpstream, Proxy]]:
    with securely_between(tmp_path) as ends:
        yield ends


@pytest.mark.usefixtures("real_proxy")
def test_large_bodies_pass_both_ways_at_once(both: tuple[SecureUpstream, Proxy], tier: Tier) -> None:
    upstream, proxy = both
    count = tier(sample=12, more=50, full=200) * 1_000_000
    up, down, got_up, got_down = sha256(), sha256(), sha256(), sha256()
    head = b"POST /mcp HTTP/1.1\r\nHost: %b\r\nContent-Length: %d\r\n\r\n" % (proxy.host, count)
    client, server = asked(upstream, proxy, head)
    server.head()
    server.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % count)
    client.head()
    # one at a time: a TLS connection of a test is not for two threads
    with meanwhile(lambda: flood(client, count, up.update)):
        drained(server, count, got_up.update)
    with meanwhile(lambda: drained(client, count, got_down.update)):
        flood(server, count, down.update)
    assert up.digest() == got_up.digest()
    assert down.digest() == got_down.digest()
    assert proxy.peak_kib() < MAX_RESIDENT_KIB
    assert proxy.ending("response") == ("server", "eof")


@pytest.mark.usefixtures("real_proxy")
def test_a_client_that_does_not_read_makes_the_upstream_wait(both: tuple[SecureUpstream, Proxy]) -> None:
    upstream, proxy = both
    client, server = asked(upstream, proxy, proxy.request())
    server.head()
    server.send(b"HTTP/1.1 200 OK\r\nContent-Length: 500000000\r\n\r\n")
    assert sent_until_full(server, 200_000_000) < MAX_HELD_BYTES
    assert proxy.peak_kib() < MAX_RESIDENT_KIB
    client.close()


@pytest.mark.usefixtures("real_proxy")
def test_an_upstream_that_does_not_read_makes_the_client_wait(both: tuple[SecureUpstream, Proxy]) -> None:
    upstream, proxy = both
    client, server = asked(upstream, proxy, b"POST / HTTP/1.1\r\nHost: %b\r\nContent-Length: 500000000\r\n\r\n" % proxy.host)
    server.head()
    assert sent_until_full(client, 100_000_000) < MAX_HELD_BYTES
    assert proxy.peak_kib() < MAX_RESIDENT_KIB


def goodbye(server: Wire) -> None:
    assert isinstance(server.socket, ssl.SSLSocket)
    server.socket.setblocking(False)
    with pytest.raises(ssl.SSLWantReadError):
        server.socket.unwrap()
    server.close()


def no_goodbye(server: Wire) -> None:
    assert isinstance(server.socket, ssl.SSLSocket)
    os.close(server.socket.detach())


@pytest.mark.parametrize("leave", [goodbye, no_goodbye])
def test_a_body_that_ends_with_the_connection_ends_there(leave: object, both: tuple[SecureUpstream, Proxy]) -> None:
    assert callable(leave)
    upstream, proxy = both
    client, server = asked(upstream, proxy, proxy.request(b"GET /sse", b"Accept: text/event-stream"))
    server.head()
    server.send(EVENTS_TO_CLOSE + EVENT)
    leave(server)
    assert client.rest() == EVENTS_TO_CLOSE + EVENT
    assert proxy.ending("response") == ("server", "eof")


@pytest.mark.parametrize("way", ["close", "reset"])
def test_an_upstream_that_dies_within_an_event_is_seen_by_the_client(way: str, both: tuple[SecureUpstream, Proxy]) -> None:
    upstream, proxy = both
    client, server = asked(upstream, proxy, proxy.request(b"GET /sse", b"Accept: text/event-stream"))
    server.head()
    server.send(EVENTS + chunk(EVENT) + b"100\r\n" + EVENT)
    assert client.take(len(EVENTS)) == EVENTS
    getattr(server, way)()
    assert (chunk(EVENT) + b"100\r\n" + EVENT).startswith(client.rest())
    assert proxy.ending("response") == ("server", "abort" if way == "close" else "reset")


def test_an_answer_that_comes_before_the_request_was_read_arrives(both: tuple[SecureUpstream, Proxy], tier: Tier) -> None:
    upstream, proxy = both
    answer = b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 4\r\nConnection: close\r\n\r\nnope"

    def refuse() -> None:
        server = upstream.accept()
        server.head()
        server.send(answer)
        server.close()

    for _ in range(tier(sample=6, more=30, full=300)):
        with meanwhile(refuse):
            client = proxy.connect()
            try:
                client.send(b"POST / HTTP/1.1\r\nHost: %b\r\nContent-Length: 3000000\r\n\r\n" % proxy.host + b"x" * 3_000_000)
            except ConnectionError:
                pass
            try:
                assert client.rest() == answer
            except ConnectionError:
                assert client.kept() == answer


def test_many_records_in_one_segment_are_all_read(both: tuple[SecureUpstream, Proxy]) -> None:
    upstream, proxy = both
    client, server = asked(upstream, proxy, proxy.request(b"GET /sse", b"Accept: text/event-stream"))
    server.head()
    server.send(EVENTS)
    assert client.take(len(EVENTS)) == EVENTS
    server.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 1)
    for number in range(500):
        server.send(chunk(b"id: %d\n" % number + EVENT))
    server.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 0)
    expected = b"".join(chunk(b"id: %d\n" % number + EVENT) for number in range(500))
    assert client.take(len(expected)) == expected


def test_the_name_of_the_server_is_in_its_certificate_or_the_client_gets_a_502(tmp_path: Path) -> None:
    upstream = SecureUpstream(tmp_path)
    proxy = Proxy(upstream.url.replace("localhost", "127.0.0.1"), tmp_path / "x.mcpspy", "--ca", str(upstream.ca))

    def refused() -> None:
        with pytest.raises(ssl.SSLError):
            upstream.accept()

    try:
        with meanwhile(refused):
            client = proxy.connect()
            client.send(proxy.request())
            answer = client.rest()
        assert answer.startswith(b"HTTP/1.1 502 ")
        assert b"certificate verify failed" in answer
    finally:
        proxy.end()
        upstream.end()


def test_what_speaks_no_tls_is_a_502(tmp_path: Path) -> None:
    upstream = SecureUpstream(tmp_path)
    proxy = Proxy(upstream.url, tmp_path / "x.mcpspy")
    try:
        client = proxy.connect()
        client.send(proxy.request())
        plain, _ = upstream.listener.accept()
        plain.settimeout(DEADLINE_S)
        plain.recv(100)
        plain.sendall(OK)
        assert client.rest().startswith(b"HTTP/1.1 502 ")
        plain.close()
    finally:
        proxy.end()
        upstream.end()

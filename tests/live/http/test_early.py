"""A server that answers and leaves before it has read the request: its answer still arrives, as without a tap."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.deadlines import DEADLINE_S
from tests.live.http.ends import Proxy, Upstream, Wire, asked, between
from tests.live.http.test_pressure import sent_until_full
from tests.tiers import Tier

ANSWER = b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 4\r\nConnection: close\r\n\r\nnope"
LARGE = 4_000_000


@contextmanager
def answering_early(upstream: Upstream, way: str) -> Iterator[None]:
    """A server that reads heads, answers, and closes its side; with `lingers` it still takes what the client sends."""

    def answer(wire: Wire) -> None:
        wire.head()
        wire.send(ANSWER)
        if way == "lingers":
            wire.socket.shutdown(socket.SHUT_WR)
            try:
                wire.rest()
            except ConnectionError:
                pass
        wire.close()

    def serve() -> None:
        while True:
            try:
                answer(upstream.accept())
            except OSError:
                return

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield
    finally:
        upstream.listener.shutdown(socket.SHUT_RDWR)
        thread.join(DEADLINE_S)


def answered(proxy: Proxy) -> bytes:
    """Send a large request, or as much as is taken, and return the bytes that come back."""
    client = proxy.connect()
    try:
        client.send(b"POST /mcp HTTP/1.1\r\nHost: %b\r\nContent-Length: %d\r\n\r\n" % (proxy.host, LARGE) + b"x" * LARGE)
    except ConnectionError:
        pass
    try:
        return client.rest()
    except ConnectionError:
        return client.kept()


@pytest.mark.parametrize("way", ["lingers", "leaves"])
def test_an_answer_that_comes_before_the_request_was_read_arrives(way: str, tmp_path: Path, tier: Tier) -> None:
    with between(tmp_path / "x.mcpspy") as (upstream, proxy), answering_early(upstream, way):
        for _ in range(tier(sample=12, more=50, full=500)):
            assert answered(proxy) == ANSWER


def test_an_answer_ends_when_the_server_says_so_though_it_takes_no_more_of_the_request(tmp_path: Path) -> None:
    answer = b"HTTP/1.1 413 Too Large\r\n\r\nno more"
    with between(tmp_path / "x.mcpspy") as (upstream, proxy):
        client, server = asked(upstream, proxy, b"POST / HTTP/1.1\r\nHost: %b\r\nContent-Length: 50000000\r\n\r\n" % proxy.host)
        server.head()
        sent_until_full(client, 50_000_000)
        server.send(answer)
        server.socket.shutdown(socket.SHUT_WR)
        assert client.rest() == answer
        assert proxy.ending("request") == ("server", "broken")
        assert proxy.ending("response") == ("server", "eof")

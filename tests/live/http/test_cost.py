"""The cost of an HTTP tap over time: nothing while it is idle, and nothing is left of closed connections."""

import os
import resource
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mcpspy.live.http.listener import REST_S
from mcpspy.live.http.tap import SPARE_DESCRIPTORS
from mcpspy.platform.socket_owners import CAN_FIND_OWNERS
from mcpspy.records import CLIENT_PROCESSES, Close, Note, Open, Stall
from tests.deadlines import DEADLINE_S, eventually
from tests.live.http.ends import EVENTS, OK, Proxy, Upstream, Wire, asked, between, chunk
from tests.live.http.test_pressure import sent_until_full
from tests.live.stdio.test_cost import effort, resident_kib, rests
from tests.tiers import Tier, current_tier

MAX_GROWTH_KIB = 4_000
LARGE = 100_000_000


def with_a_client_that_says_nothing(upstream: Upstream, proxy: Proxy) -> None:
    proxy.connect()


def with_half_a_request(upstream: Upstream, proxy: Proxy) -> None:
    asked(upstream, proxy, proxy.request(body=b"x" * 100)[:-1])


def with_half_a_head(upstream: Upstream, proxy: Proxy) -> None:
    proxy.connect().send(b"POST /mcp HTT")


def with_a_server_that_does_not_answer(upstream: Upstream, proxy: Proxy) -> None:
    asked(upstream, proxy, proxy.request())[1].head()


def with_half_an_event(upstream: Upstream, proxy: Proxy) -> None:
    _, server = asked(upstream, proxy, proxy.request())
    server.send(EVENTS + chunk(b"data: 1\n\ndata: ha"))


def with_a_client_that_does_not_read(upstream: Upstream, proxy: Proxy) -> None:
    _, server = asked(upstream, proxy, proxy.request())
    server.head()
    server.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % LARGE)
    sent_until_full(server, LARGE)
    eventually(lambda: proxy.found(Stall), "the stall to be told")


def with_a_server_that_does_not_read(upstream: Upstream, proxy: Proxy) -> None:
    client, _ = asked(upstream, proxy, b"POST / HTTP/1.1\r\nHost: %b\r\nContent-Length: %d\r\n\r\n" % (proxy.host, LARGE))
    sent_until_full(client, LARGE)
    eventually(lambda: proxy.found(Stall), "the stall to be told")


def with_neither_reading(upstream: Upstream, proxy: Proxy) -> None:
    client, server = asked(upstream, proxy, b"POST / HTTP/1.1\r\nHost: %b\r\nContent-Length: %d\r\n\r\n" % (proxy.host, LARGE))
    server.head()
    server.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % LARGE)
    sent_until_full(client, LARGE)
    sent_until_full(server, LARGE)
    client.socket.shutdown(socket.SHUT_WR)
    server.socket.shutdown(socket.SHUT_WR)
    eventually(lambda: len(proxy.found(Stall)) > 1, "both stalls to be told")


STATES = [
    with_neither_reading,
    with_half_a_request,
    with_a_client_that_says_nothing,
    with_half_a_head,
    with_a_server_that_does_not_answer,
    with_half_an_event,
    with_a_client_that_does_not_read,
    with_a_server_that_does_not_read,
]


@pytest.mark.usefixtures("real_proxy")
@pytest.mark.parametrize("state", STATES[:2] if current_tier() is Tier.SAMPLE else STATES, ids=lambda state: state.__name__)
def test_a_tap_does_nothing(state: Callable[[Upstream, Proxy], None], tmp_path: Path) -> None:
    with between(tmp_path / "x.mcpspy") as (upstream, proxy):
        state(upstream, proxy)
        assert rests(proxy.process.pid)


# What is left of connections


def leave(client: Wire, request: bytes) -> None:
    client.close()


def leave_by_reset(client: Wire, request: bytes) -> None:
    client.reset()


def leave_within_a_head(client: Wire, request: bytes) -> None:
    client.send(request[:20])
    client.reset()


def leave_within_a_body(client: Wire, request: bytes) -> None:
    client.send(request[:-1])
    client.close()


def leave_before_the_answer(client: Wire, request: bytes) -> None:
    client.send(request)
    client.reset()


def say_no_more(client: Wire, request: bytes) -> None:
    client.send(request)
    client.socket.shutdown(socket.SHUT_WR)
    client.rest()


def take_some(client: Wire, request: bytes) -> None:
    client.send(request)
    client.take(1)
    client.reset()


def take_all(client: Wire, request: bytes) -> None:
    client.send(request)
    client.rest()


def say_many_things(client: Wire, request: bytes) -> None:
    client.send(50 * request)
    client.reset()


def say_nonsense(client: Wire, request: bytes) -> None:
    client.send(b"\0" + os.urandom(300).replace(b"\n", b""))  # else it may begin as a head does, of which more is waited for
    client.rest()


CLIENTS = [
    leave, leave_by_reset, leave_within_a_head, leave_within_a_body, leave_before_the_answer, say_no_more, take_some, take_all,
    say_many_things, say_nonsense,
]  # fmt: skip


def vanish(server: Wire) -> None:
    server.reset()


def break_off_a_head(server: Wire) -> None:
    server.head()
    server.send(b"HTTP/1.1 200 OK\r\nCon")
    server.reset()


def break_off_an_event(server: Wire) -> None:
    server.head()
    server.send(EVENTS + b"20\r\ndata: ha")
    server.close()


def answer_and_say_more(server: Wire) -> None:
    server.head()
    server.send(b"HTTP/1.1 204 No Content\r\n\r\nmore" + OK)
    server.close()


SERVERS = [vanish, break_off_a_head, break_off_an_event, answer_and_say_more]


@contextmanager
def serving(upstream: Upstream, serve: Callable[[Wire], None]) -> Iterator[None]:
    """Handle each connection so, in a thread."""

    def run() -> None:
        while True:
            try:
                connection = Wire(upstream.listener.accept()[0])
            except OSError:
                return
            try:
                serve(connection)
            except (OSError, AssertionError):  # the client was gone before it had said anything
                pass
            connection.close()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield
    finally:
        upstream.listener.shutdown(socket.SHUT_RDWR)
        thread.join(DEADLINE_S)
        assert not thread.is_alive()


@pytest.mark.parametrize("serve", SERVERS)
def test_connections_that_end_badly_leave_no_descriptor_and_no_stream_open(
    serve: Callable[[Wire], None], tmp_path: Path, tier: Tier
) -> None:
    with between(tmp_path / "x.mcpspy") as (upstream, proxy), serving(upstream, serve):
        before = proxy.open_sockets()
        for _ in range(tier(sample=5, more=50, full=1000)):
            for behave in CLIENTS:
                client = proxy.connect()
                try:
                    behave(client, proxy.request())
                except OSError:
                    pass
                client.close()
        eventually(lambda: proxy.open_sockets() == before, "all connections to be closed")
        assert proxy.stop() == ""
        closed = [record.stream for record in proxy.found(Close)]
        assert sorted(closed) == [record.stream for record in proxy.found(Open)]


@pytest.mark.usefixtures("real_proxy")
@pytest.mark.timeout(1200)
def test_memory_is_the_same_after_many_requests(tmp_path: Path, tier: Tier) -> None:
    rounds = tier(sample=4_000, more=40_000, full=500_000)
    with between(tmp_path / "x.mcpspy") as (upstream, proxy):
        client, server = asked(upstream, proxy, proxy.request(body=b"%9d" % 0))
        for turn in range(rounds):
            if turn == rounds // 4:
                before = resident_kib(proxy.process.pid)
            server.head()
            server.take(9)
            server.send(OK)
            assert client.take(len(OK)) == OK
            if turn % 100 == 99:  # the next one on a connection of its own
                client.close()
                client, server = asked(upstream, proxy, proxy.request(body=b"%9d" % turn))
            else:
                client.send(proxy.request(body=b"%9d" % turn))
        assert resident_kib(proxy.process.pid) < before + MAX_GROWTH_KIB


def test_a_client_is_let_in_only_if_its_request_can_be_forwarded(tmp_path: Path) -> None:
    with between(tmp_path / "x.mcpspy") as (upstream, proxy):
        pid = proxy.process.pid
        soft, hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)
        own = max(map(int, os.listdir(f"/proc/{pid}/fd"))) + 1 + SPARE_DESCRIPTORS
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (own + 4, hard))
        clients = [proxy.connect() for _ in range(8)]
        for client in clients:
            client.send(proxy.request())
        for server in (upstream.accept(), upstream.accept()):
            server.head()
            server.send(OK)
        assert [client.take(len(OK)) for client in clients[:2]] == [OK, OK]
        assert proxy.open_sockets() == 5
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (soft, hard))
        for _ in clients[2:]:
            server = upstream.accept()
            server.head()
            server.send(OK)
        assert [client.take(len(OK)) for client in clients[2:]] == [OK] * 6


def test_a_client_that_comes_when_there_is_no_descriptor_left_is_let_in_when_there_is_one(tmp_path: Path) -> None:
    with between(tmp_path / "x.mcpspy") as (upstream, proxy):
        held = [proxy.connect() for _ in range(3)]
        eventually(
            lambda: (
                not CAN_FIND_OWNERS
                or any(record.topic == CLIENT_PROCESSES for record in proxy.records() if isinstance(record, Note))
            ),
            "the search for the clients' processes, which takes descriptors, to end",
        )
        eventually(lambda: proxy.open_sockets() == 4, "three clients to be let in")
        pid = proxy.process.pid
        soft, hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (max(map(int, os.listdir(f"/proc/{pid}/fd"))) + 1, hard))
        late = proxy.connect()
        late.send(proxy.request())
        woke_up, _ = effort(pid)
        threading.Event().wait(2 * REST_S)
        assert effort(pid)[0] - woke_up < 10
        held.pop().close()
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (soft, hard))
        server = upstream.accept()
        server.head()
        server.send(OK)
        assert late.take(len(OK)) == OK

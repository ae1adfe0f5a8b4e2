"""Tests of connecting to the upstream, and of the errors when that fails; the tap runs in this process, with short times."""

import errno
import os
import resource
import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import pytest

from mcpspy.live.http import dial
from mcpspy.live.http.dial import Dial
from mcpspy.live.http.listener import Authority, HttpOrigin
from mcpspy.live.http.reactor import Reactor
from tests.deadlines import DEADLINE_S, writable

CONNECT_S = 0.3


class Outcome:
    """The result of an attempt: connections and failures."""

    def __init__(self, reactor: Reactor) -> None:
        self._reactor = reactor
        self.connections: list[socket.socket] = []
        self.failures: list[tuple[int, str]] = []

    def connected(self, connection: socket.socket) -> None:
        self.connections.append(connection)
        self._reactor.stop()

    def failed(self, status: int, reason: str) -> None:
        self.failures.append((status, reason))
        self._reactor.stop()


def unexpected(error: Exception) -> None:
    raise error


@pytest.fixture
def reactor() -> Iterator[Reactor]:
    made = Reactor(unexpected)
    made.later(DEADLINE_S, made.stop)
    yield made
    made.close()


def tried(reactor: Reactor, host: str, port: int, tls: ssl.SSLContext | None = None) -> Outcome:
    """Return the outcome of one attempt."""
    outcome = Outcome(reactor)
    to = HttpOrigin("https" if tls else "http", Authority(host, port))
    Dial(reactor, to, tls, on_connected=outcome.connected, on_failed=outcome.failed)
    reactor.run()
    for connection in outcome.connections:
        connection.close()
    return outcome


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


@contextmanager
def listening(family: socket.AddressFamily = socket.AF_INET, host: str = "127.0.0.1") -> Iterator[int]:
    with socket.create_server((host, 0), family=family) as listener:
        yield listener.getsockname()[1]


def resolving(*addresses: tuple[str, ...]) -> Callable[..., Sequence[object]]:
    """Make a resolver that knows one name."""

    def getaddrinfo(host: str, port: int, *, flags: int = 0, **wanted: int) -> Sequence[object]:
        if flags & socket.AI_NUMERICHOST:
            raise socket.gaierror(socket.EAI_NONAME, "not numeric")
        return [
            (socket.AF_INET6 if ":" in address else socket.AF_INET, wanted["type"], 0, "", (address, port))
            for (address,) in addresses
        ]

    return getaddrinfo


def test_an_address_is_connected_to(reactor: Reactor) -> None:
    with listening() as port:
        assert len(tried(reactor, "127.0.0.1", port).connections) == 1


def test_an_address_of_version_6_is_connected_to(reactor: Reactor) -> None:
    with listening(socket.AF_INET6, "::1") as port:
        assert len(tried(reactor, "::1", port).connections) == 1


def test_a_name_whose_first_address_refuses_is_reached_at_its_second(reactor: Reactor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", resolving(("::1",), ("127.0.0.1",)))
    with listening() as port:
        outcome = tried(reactor, "both.example", port)
    assert len(outcome.connections) == 1
    assert outcome.failures == []


def test_a_name_all_of_whose_addresses_refuse_is_a_502_that_says_so_once(
    reactor: Reactor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", resolving(("::1",), ("127.0.0.1",)))
    with listening() as port:
        pass
    outcome = tried(reactor, "both.example", port)
    assert outcome.failures == [(502, f"http://both.example:{port} cannot be reached: Connection refused")]


@pytest.mark.parametrize("host", ["nobody.invalid", "x" * 70 + ".invalid", "a..b"])
def test_a_name_that_nobody_knows_is_a_502(host: str, reactor: Reactor) -> None:
    outcome = tried(reactor, host, 80)
    assert outcome.connections == []
    assert [status for status, _ in outcome.failures] == [502]


@contextmanager
def silent() -> Iterator[int]:
    """A port that answers no attempt to connect: its queue is full."""
    with socket.create_server(("127.0.0.1", 0), backlog=0) as listener:
        port = listener.getsockname()[1]
        waiting = []
        while True:
            connection = socket.socket()
            connection.setblocking(False)
            connection.connect_ex(("127.0.0.1", port))
            waiting.append(connection)
            if not writable(connection.fileno(), 0.1):
                break
        yield port
        for connection in waiting:
            connection.close()


@contextmanager
def mute() -> Iterator[int]:
    """A port that takes connections and says nothing."""
    with listening() as port:
        yield port


@pytest.mark.parametrize(("place", "scheme"), [(silent, "http"), (mute, "https")])
def test_an_upstream_that_does_not_accept_is_a_504_and_leaves_no_descriptor(
    place: Callable[[], object], scheme: str, reactor: Reactor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dial, "CONNECT_S", CONNECT_S)
    with place() as port:  # type: ignore[attr-defined]
        before = descriptors()
        outcome = tried(reactor, "127.0.0.1", port, ssl.create_default_context() if scheme == "https" else None)
        assert [status for status, _ in outcome.failures] == [504]
        assert descriptors() == before


def test_a_resolver_that_comes_too_late_tells_nothing_more(reactor: Reactor, monkeypatch: pytest.MonkeyPatch) -> None:
    too_late, resolving = threading.Event(), threading.Event()

    def slow(*arguments: object, flags: int = 0, **named: object) -> None:
        if not flags:
            resolving.set()
            too_late.wait(DEADLINE_S)
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(dial, "CONNECT_S", CONNECT_S)
    monkeypatch.setattr(socket, "getaddrinfo", slow)
    outcome = Outcome(reactor)
    outcome.failed = lambda status, reason: outcome.failures.append((status, reason))  # type: ignore[method-assign]
    Dial(
        reactor,
        HttpOrigin("http", Authority("slow.example", 80)),
        None,
        on_connected=outcome.connected,
        on_failed=outcome.failed,
    )
    reactor.later(2 * CONNECT_S, too_late.set)
    reactor.later(4 * CONNECT_S, reactor.stop)
    reactor.run()
    assert resolving.is_set()
    assert [status for status, _ in outcome.failures] == [504]


@pytest.mark.parametrize("place", [silent, mute])
def test_an_attempt_that_is_cancelled_leaves_no_descriptor_and_tells_nothing(
    place: Callable[[], object], reactor: Reactor
) -> None:
    outcome = Outcome(reactor)
    with place() as port:  # type: ignore[attr-defined]
        before = descriptors()
        to = HttpOrigin("https", Authority("127.0.0.1", port))
        tls = ssl.create_default_context()
        begun = Dial(reactor, to, tls, on_connected=outcome.connected, on_failed=outcome.failed)
        reactor.later(0.1, begun.cancel)
        reactor.later(0.2, reactor.stop)
        reactor.run()
        assert descriptors() == before
    assert not outcome.connections
    assert not outcome.failures


def test_without_a_descriptor_it_is_a_502_that_says_so(reactor: Reactor) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with listening() as port:
        free = os.dup(0)
        os.close(free)
        resource.setrlimit(resource.RLIMIT_NOFILE, (free, hard))
        try:
            outcome = tried(reactor, "127.0.0.1", port)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    ((status, reason),) = outcome.failures
    assert status == 502
    assert os.strerror(errno.EMFILE) in reason


def test_an_upstream_that_resets_within_its_handshake_is_a_502(reactor: Reactor) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def reset() -> None:
            connection, _ = listener.accept()
            connection.close()  # with a greeting in it that nobody has read: a reset

        thread = threading.Thread(target=reset, daemon=True)
        thread.start()
        outcome = tried(reactor, "127.0.0.1", listener.getsockname()[1], ssl.create_default_context())
        thread.join(DEADLINE_S)
    assert [status for status, _ in outcome.failures] == [502]

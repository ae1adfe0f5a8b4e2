"""Tests of how long a tap waits for a slow request; the tap runs in this process, with short times."""

import threading
import time
from collections.abc import Iterator

import pytest

from mcpspy.live.http import timers
from tests.deadlines import DEADLINE_S, eventually, readable
from tests.live.http.ends import EVENTS, OK, Wire, chunk
from tests.live.in_process import Ends, tapped

PATIENCE_S = 1.0

HEAD = b"POST / HTTP/1.1\r\nHost: localhost:%d\r\nContent-Length: 5\r\n\r\n"


@pytest.fixture
def ends(monkeypatch: pytest.MonkeyPatch) -> Iterator[Ends]:
    monkeypatch.setattr(timers, "REQUEST_S", PATIENCE_S)
    with tapped() as both:
        yield both


def dribbled(wire: Wire, data: bytes, seconds: float) -> None:
    """Send byte after byte, evenly, for so long or until they are not taken any more."""
    for byte in data:
        try:
            wire.send(bytes([byte]))
        except OSError:
            return
        threading.Event().wait(seconds / len(data))


def test_a_head_that_does_not_come_to_its_end_is_not_waited_for(ends: Ends) -> None:
    client = ends.connect()
    client.send(b"POST / HTTP/1.1\r\nHost: loc")
    assert client.rest().startswith(b"HTTP/1.1 408 Request Timeout\r\n")
    assert not ends.upstream.was_called


def test_a_head_has_its_time_as_a_whole_however_often_something_comes(ends: Ends) -> None:
    client = ends.connect()
    began_s = time.monotonic()
    client.send(b"POST / HTTP/1.1\r\nX: ")
    while not readable(client.socket.fileno(), PATIENCE_S / 10):
        assert time.monotonic() - began_s < DEADLINE_S
        client.send(b"x")
    assert client.rest().startswith(b"HTTP/1.1 408 ")


def test_a_body_that_does_not_go_on_is_not_waited_for(ends: Ends) -> None:
    client = ends.connect()
    client.send(HEAD % ends.port + b"abc")
    server = ends.upstream.accept()
    assert client.rest().startswith(b"HTTP/1.1 408 ")
    assert server.rest().endswith(b"\r\n\r\nabc")


def test_a_body_may_take_its_time_as_long_as_it_goes_on(ends: Ends) -> None:
    client = ends.connect()
    client.send(HEAD % ends.port)
    dribbled(client, b"abcde", 3 * PATIENCE_S)
    server = ends.upstream.accept()
    server.head()
    assert server.take(5) == b"abcde"
    server.send(OK)
    assert client.take(len(OK)) == OK


def test_nobody_is_hurried_between_requests_and_before_the_first(ends: Ends) -> None:
    client = ends.connect()
    server: Wire | None = None
    for _ in range(2):
        threading.Event().wait(2 * PATIENCE_S)
        client.send(HEAD % ends.port + b"abcde")
        server = server or ends.upstream.accept()
        server.head()
        server.take(5)
        server.send(OK)
        assert client.take(len(OK)) == OK


def test_a_response_may_take_for_ever(ends: Ends) -> None:
    client = ends.connect()
    client.send(HEAD % ends.port + b"abcde")
    server = ends.upstream.accept()
    server.head()
    threading.Event().wait(2 * PATIENCE_S)
    server.send(EVENTS)
    assert client.head() == EVENTS
    threading.Event().wait(2 * PATIENCE_S)
    server.send(chunk(b"data: 1\n\n"))
    assert client.take(len(chunk(b"data: 1\n\n"))) == chunk(b"data: 1\n\n")


def test_a_client_that_waits_for_a_slow_upstream_is_not_slow(ends: Ends) -> None:
    size = 30_000_000
    client = ends.connect()
    client.send(b"POST / HTTP/1.1\r\nHost: localhost:%d\r\nContent-Length: %d\r\n\r\n" % (ends.port, size))
    thread = threading.Thread(target=lambda: client.send(b"x" * size), daemon=True)
    thread.start()
    server = ends.upstream.accept()
    server.head()
    threading.Event().wait(4 * PATIENCE_S)
    assert len(server.take(size)) == size
    thread.join(DEADLINE_S)
    server.send(OK)
    assert client.take(len(OK)) == OK


def test_a_slow_request_behind_a_stream_that_is_open_waits_for_its_end(ends: Ends) -> None:
    client = ends.connect()
    client.send(HEAD % ends.port + b"abcde" + b"GET / HT")
    server = ends.upstream.accept()
    server.send(EVENTS + chunk(b"data: 1\n\n"))
    threading.Event().wait(2 * PATIENCE_S)
    server.send(chunk(b"data: 2\n\n") + b"0\r\n\r\n")
    assert client.rest().partition(b"0\r\n\r\n")[2].startswith(b"HTTP/1.1 408 ")


def test_a_client_that_does_not_leave_behind_a_injected_answer_is_left(ends: Ends, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timers, "LINGER_S", PATIENCE_S)
    client = ends.connect()
    client.send(b"GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n")
    assert client.rest().startswith(b"HTTP/1.1 421 ")

    def was_left() -> bool:
        try:
            client.send(b"more")
        except ConnectionError:
            return True
        return False

    eventually(was_left, "the tap to leave")

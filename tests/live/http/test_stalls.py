"""Tests of what an HTTP tap records when somebody has to wait; the tap runs in this process, with short times."""

from collections.abc import Iterator

import pytest

from mcpspy.live.http import connection_pair, timers
from mcpspy.records import Frame, Open, Partial, Record, Stall
from tests.deadlines import DEADLINE_S, eventually, readable
from tests.live.http.ends import EVENTS, OK, Wire, chunk
from tests.live.in_process import Ends, tapped

WAIT_NS = 100_000_000
HEAD = b"POST / HTTP/1.1\r\nHost: localhost:%d\r\nContent-Length: %d\r\n\r\n"
MORE_THAN_SOCKETS_HOLD = 30_000_000


@pytest.fixture
def ends(monkeypatch: pytest.MonkeyPatch) -> Iterator[Ends]:
    monkeypatch.setattr(timers, "STALL_NS", WAIT_NS)
    monkeypatch.setattr(timers, "PARTIAL_NS", WAIT_NS)
    with tapped() as both:
        yield both


def records_of(ends: Ends, kind: type[Record]) -> list[Record]:
    return [record for record in ends.records if isinstance(record, kind)]


def sent_until_told(ends: Ends, wire: Wire) -> int:
    """Send until a stall is recorded. Returns how many bytes were taken."""
    sent = 0
    wire.socket.setblocking(False)

    def is_told() -> bool:
        nonlocal sent
        try:
            while sent < MORE_THAN_SOCKETS_HOLD:
                sent += wire.socket.send(b"x" * min(1 << 16, MORE_THAN_SOCKETS_HOLD - sent))
        except BlockingIOError:
            pass
        return bool(records_of(ends, Stall))

    eventually(is_told, "the stall to be told")
    wire.socket.settimeout(DEADLINE_S)
    return sent


def sender_of(ends: Ends, stream: int) -> str:
    return next(record.sender for record in ends.records if isinstance(record, Open) and record.stream == stream)


def test_a_client_that_stops_reading_is_told_and_told_again_when_it_goes_on(ends: Ends) -> None:
    client = ends.connect()
    client.send(HEAD % (ends.port, 0))
    server = ends.upstream.accept()
    server.head()
    server.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % MORE_THAN_SOCKETS_HOLD)
    sent = sent_until_told(ends, server)
    stall = records_of(ends, Stall)[0]
    assert isinstance(stall, Stall)
    assert sender_of(ends, stall.stream) == "server"
    assert stall.waiting_bytes > 0
    client.head()
    client.take(sent)
    eventually(lambda: len(records_of(ends, Stall)) == 2, "its end to be told")
    over = records_of(ends, Stall)[1]
    assert isinstance(over, Stall)
    assert over.stream == stall.stream
    assert over.lasted_ns is not None
    assert over.lasted_ns >= WAIT_NS


def test_an_upstream_that_stops_reading_is_told(ends: Ends) -> None:
    client = ends.connect()
    client.send(HEAD % (ends.port, MORE_THAN_SOCKETS_HOLD))
    ends.upstream.accept().head()
    sent_until_told(ends, client)
    stall = records_of(ends, Stall)[0]
    assert isinstance(stall, Stall)
    assert sender_of(ends, stall.stream) == "client"


def test_half_an_event_is_told_once_and_comes_again_whole(ends: Ends) -> None:
    client = ends.connect()
    client.send(HEAD % (ends.port, 0))
    server = ends.upstream.accept()
    server.head()
    server.send(EVENTS + chunk(b"data: 1\n\n") + chunk(b"data: half"))
    eventually(lambda: bool(records_of(ends, Partial)), "the half event to be told")
    server.send(chunk(b" an event\n\n"))
    client.head()
    client.take(len(chunk(b"data: 1\n\n") + chunk(b"data: half") + chunk(b" an event\n\n")))
    (partial,) = records_of(ends, Partial)
    assert isinstance(partial, Partial)
    assert partial.data == b"data: half"
    events = [record for record in records_of(ends, Frame) if isinstance(record, Frame) and record.stream == partial.stream]
    assert [frame.data for frame in events] == [b"data: 1\n\n", b"data: half an event\n\n"]
    assert events[1].first_ns == partial.first_ns


def test_half_a_body_is_told(ends: Ends) -> None:
    client = ends.connect()
    client.send(HEAD % (ends.port, 4) + b"ab")
    ends.upstream.accept().head()
    eventually(lambda: bool(records_of(ends, Partial)), "the half body to be told")
    (partial,) = records_of(ends, Partial)
    assert isinstance(partial, Partial)
    assert partial.data == b"ab"
    assert sender_of(ends, partial.stream) == "client"


def test_a_client_may_not_ask_without_end_while_nothing_is_answered(ends: Ends, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_pair, "MAX_PIPELINED", 4)
    client = ends.connect()
    request = HEAD % (ends.port, 1) + b"x"
    for _ in range(4):
        client.send(request)
    server = ends.upstream.accept()
    for _ in range(4):
        server.head()
        server.take(1)
    client.send(request)
    assert not readable(server.socket.fileno(), 0.2)
    server.send(OK)
    assert client.take(len(OK)) == OK
    server.head()
    assert server.take(1) == b"x"

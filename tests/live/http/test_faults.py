"""A fault of mcpspy's own ends one connection and is recorded; the tap goes on with the others. The tap runs in this process."""

import gc
import logging
from collections.abc import Sequence

import pytest

from mcpspy.live.http.channel import Channel
from mcpspy.live.http.connection_pair import ConnectionPair
from mcpspy.live.http.dial import Dial
from mcpspy.records import Close, Frame, Note, Open, Record
from tests.deadlines import eventually
from tests.live.http.ends import OK, Wire
from tests.live.in_process import Ends, tapped

HEAD = b"POST / HTTP/1.1\r\nHost: localhost:%d\r\nContent-Length: 5\r\n\r\n"
SECRET = b"hunter2"


class Unsound:
    """A sink that cannot take one sort of record."""

    def __init__(self, ends: Ends, fault: str) -> None:
        self._ends = ends
        self._fault = fault

    def __call__(self, records: Sequence[Record]) -> None:
        for record in records:
            data = record.data if isinstance(record, Frame) else record.head if isinstance(record, Open) else b""
            if data.endswith(b"fault"):
                raise ZeroDivisionError(SECRET)
            if isinstance(record, Close) and self._fault == "at its end":
                raise ZeroDivisionError(SECRET)
        self._ends.took(records)


def talked(ends: Ends, body: bytes = b"abcde") -> tuple[Wire, Wire]:
    client = ends.connect()
    client.send(HEAD % ends.port + body)
    server = ends.upstream.accept()
    server.head()
    assert server.take(5) == body
    return client, server


def in_the_clients_bytes(ends: Ends) -> tuple[Wire, Wire]:
    client, server = talked(ends)
    server.send(OK)
    client.take(len(OK))
    client.send(HEAD % ends.port + b"fault")
    return client, server


def in_the_servers_bytes(ends: Ends) -> tuple[Wire, Wire]:
    client, server = talked(ends)
    server.send(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nfault")
    return client, server


@pytest.mark.parametrize("fault", [in_the_clients_bytes, in_the_servers_bytes])
def test_a_fault_of_our_own_ends_its_connection_and_no_other(fault: object, caplog: pytest.LogCaptureFixture) -> None:
    assert callable(fault)
    with tapped() as ends, caplog.at_level(logging.ERROR):
        ends.tap.record_to(Unsound(ends, ""))
        other, others = talked(ends)
        client, server = fault(ends)
        assert client.rest() == b""
        server.rest()
        others.send(OK)
        assert other.take(len(OK)) == OK
        again, server = talked(ends)
        server.send(OK)
        assert again.take(len(OK)) == OK
        (note,) = (record for record in ends.records if isinstance(record, Note) and record.topic == "fault")
        assert "ZeroDivisionError in test_faults.py:" in note.text
        assert note.text in caplog.text
        assert SECRET.decode() not in caplog.text + note.text
        assert note.extra == {"connection": 2, "by": "mcpspy"}


def test_a_fault_while_a_connection_ends_leaves_nothing_open(caplog: pytest.LogCaptureFixture) -> None:
    with tapped() as ends, caplog.at_level(logging.ERROR):
        ends.tap.record_to(Unsound(ends, "at its end"))
        client = ends.connect()
        client.send(HEAD % ends.port + b"abc")
        server = ends.upstream.accept()
        server.head()
        client.reset()
        assert server.rest() == b"abc"
        ends.tap.record_to(ends.took)
        again, server = talked(ends)
        server.send(OK)
        assert again.take(len(OK)) == OK


def of_a_connection() -> list[object]:
    return [item for item in gc.get_objects() if isinstance(item, ConnectionPair | Channel | Dial)]


def test_a_connection_that_is_gone_leaves_nothing_to_the_garbage_collector() -> None:
    gc.collect()
    gc.disable()
    try:
        with tapped() as ends:
            for _ in range(5):
                client, server = talked(ends)
                server.send(OK)
                client.take(len(OK))
                client.close()
                server.rest()
                refused = ends.connect()
                refused.send(b"GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n")
                refused.rest()
                refused.close()
            eventually(lambda: len(of_a_connection()) <= 1, "connections to be forgotten")  # one may be a loop's own
    finally:
        gc.enable()

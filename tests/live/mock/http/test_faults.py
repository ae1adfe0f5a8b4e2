"""Connections of a mock over HTTP in this process: bytes cut anywhere, bytes of any kind, and faults of mcpspy's own."""

from __future__ import annotations

import asyncio
import json
import os
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from hypothesis import given
from hypothesis import strategies as st

from mcpspy.live.http.listener import HostCheck
from mcpspy.live.http.recorder import Numbers
from mcpspy.live.mock.http.connection import Connection
from mcpspy.live.mock.http.server import HttpMock, serve
from mcpspy.records import Close, Frame, Note, Open
from mcpspy.replay.mock.http.recorded_http import HttpFacts
from mcpspy.replay.mock.http.routing import Routing
from mcpspy.replay.mock.matching import RequestMatcher
from mcpspy.replay.mock.replies import read_replies
from mcpspy.transcript.transcribe import transcribe
from tests.deadlines import DEADLINE_S
from tests.transcript.dialogue import Dialogue, request, result, tool_call
from tests.transcript.traffic import modern

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mcpspy.live.mock.http.connection import Request, Response
    from mcpspy.records import Record, Sink


class Echo:
    """A mock that answers each request with its method and its body, and keeps its records."""

    def __init__(self) -> None:
        self.numbers = Numbers()
        self.host_check = HostCheck(port=80)
        self.connections: set[Connection] = set()
        self.records: list[Record] = []
        self.sink: Sink = self.records.extend

    def now_ns(self) -> int:
        return 0

    def answer(self, request: Request, response: Response) -> None:
        response.whole(200, [], f"{request.method} {request.target} ".encode() + request.body)


class Written(asyncio.Transport):
    """A transport that keeps what is written."""

    def __init__(self) -> None:
        super().__init__()
        self.data = b""

    def write(self, data: bytes | bytearray | memoryview[Any]) -> None:
        self.data += data

    def can_write_eof(self) -> bool:
        return False

    def resume_reading(self) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""


def fed(pieces: Sequence[bytes]) -> tuple[bytes, list[Record]]:
    """Return what is written and recorded for these pieces on one connection."""
    echo, written = Echo(), Written()

    async def feed() -> None:
        connection = Connection(echo)
        connection.connection_made(written)
        for piece in pieces:
            connection.data_received(piece)
        connection.connection_lost(None)

    asyncio.run(feed())
    return written.data, echo.records


def output_and_facts(pieces: Sequence[bytes]) -> tuple[bytes, list[str]]:
    """Return the same with a short form of the records: how streams open and close, and their joined frames."""
    output, records = fed(pieces)
    frames: dict[int, bytes] = {}
    for record in records:
        if isinstance(record, Frame):
            frames[record.stream] = frames.get(record.stream, b"") + record.data
    facts = [
        f"{record.stream} {record.name} {record.head!r} {frames.get(record.stream)!r}"
        for record in records
        if isinstance(record, Open)
    ]
    facts += [f"{record.stream} {record.by} {record.how}" for record in records if isinstance(record, Close)]
    return output, sorted(facts)


SENT = (
    b"POST /a HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhello"
    b"POST /b HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n1\r\nd\r\n0\r\n\r\n"
    b"\r\nGET /c HTTP/1.1\r\nHost: localhost\r\n\r\n"
)


@given(st.lists(st.integers(0, len(SENT)), max_size=8))
def test_it_does_not_matter_where_what_a_client_sends_is_cut(places: list[int]) -> None:
    bounds = [0, *sorted(places), len(SENT)]
    outcome = output_and_facts([SENT[begin:end] for begin, end in pairwise(bounds) if end > begin])
    assert outcome == output_and_facts([SENT])
    assert [part.partition(b"\r\n\r\n")[2] for part in outcome[0].split(b"HTTP/1.1 200 OK")[1:]] == [
        b"POST /a hello", b"POST /b abcd", b"GET /c ",
    ]  # fmt: skip


@given(
    st.lists(
        st.one_of(st.binary(max_size=40), st.sampled_from([SENT, SENT[:30], b"\r\n", b"\r\n\r\n", b"HTTP/1.1"])), max_size=6
    )
)
def test_no_bytes_raise_and_each_stream_that_opens_closes(pieces: list[bytes]) -> None:
    _, facts = output_and_facts([piece for piece in pieces if piece])
    assert sum(1 for fact in facts if " request " in fact or " response " in fact) == sum(
        1 for fact in facts if fact.endswith((" eof", " abort", " broken", " reset"))
    )


def test_what_is_no_request_is_refused_in_a_transaction_of_its_own() -> None:
    output, records = fed([SENT, b"GARBAGE\r\n\r\n"])
    assert [output.count(b"HTTP/1.1 %d" % status) for status in (200, 400)] == [3, 1]
    answered = [record.transaction for record in records if isinstance(record, Open) and record.name == "response"]
    assert answered == [1, 2, 3, 4]


def served(
    break_it: Callable[[HttpMock], None], *messages: Any, until: bytes = b"", silent_s: float = 15.0
) -> tuple[list[bytes], list[Record]]:
    """Return what a mock in this process answers to messages, each on a connection of its own, and its records.

    `until` is read what it says, or else to the end.
    """
    recorded = (
        Dialogue().client(request(1)).server(result(1)).client(tool_call(2)).server(result(2)).client(tool_call(3, "silent"))
    )
    transcript = transcribe(recorded.closes().records)
    replies = read_replies(transcript)
    facts = HttpFacts(transcript)
    records: list[Record] = []
    finder, routing = RequestMatcher(replies.exchanges), Routing(transcript, facts)
    mock = HttpMock(replies, finder, facts, routing, begin_ns=0, silent_s=silent_s, tell=lambda miss: None)
    mock.record_to(records.extend)
    break_it(mock)

    async def play() -> list[bytes]:
        listener = mock.listen("127.0.0.1", 0)
        read, write = os.pipe()
        ready = asyncio.Event()
        serving = asyncio.create_task(serve([(mock, listener)], read, ready.set))
        await asyncio.wait_for(ready.wait(), DEADLINE_S)
        outputs = [await asyncio.wait_for(ask(mock.own.port, message, until), DEADLINE_S) for message in messages]
        os.write(write, bytes([15]))
        await asyncio.wait_for(serving, DEADLINE_S)
        os.close(read)
        os.close(write)
        return outputs

    return asyncio.run(play()), records


async def ask(port: int, message: Any, until: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    body = json.dumps(message).encode()
    writer.write(
        b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nConnection: close\r\nContent-Type: application/json\r\n"
        b"Content-Length: %d\r\n\r\n" % (port, len(body))
    )
    writer.write(body)
    try:
        output = await (reader.readuntil(until) if until else reader.read())
    except ConnectionError:
        output = b""
    writer.close()
    return output


def test_a_fault_of_our_own_ends_its_connection_and_no_other() -> None:
    def break_it(mock: HttpMock) -> None:
        answer = mock.answer

        def asked_or_broken(request: Request, response: Response) -> None:
            if b"break" in request.body:
                raise RuntimeError("a secret")
            answer(request, response)

        mock.answer = asked_or_broken  # type: ignore[method-assign]  # that is the fault

    outputs, records = served(break_it, modern(1, name="break"), modern(2))
    assert outputs[0] == b""
    assert b'"result"' in outputs[1]
    (fault,) = [record for record in records if isinstance(record, Note) and record.topic == "fault"]
    assert ("RuntimeError in test_faults.py" in fault.text, "secret" in fault.text) == (True, False)
    assert any(isinstance(record, Note) and record.topic == "left" and record.extra["by"] == "mcpspy" for record in records)


def test_a_stream_on_which_nothing_is_said_is_kept_alive() -> None:
    outputs, records = served(
        lambda mock: None, modern(1, "tools/call", name="silent"), until=b": keep-alive\n\n", silent_s=0.01
    )
    assert outputs[0].endswith(b"e\r\n: keep-alive\n\n")
    assert any(isinstance(record, Frame) and record.data == b": keep-alive\n\n" for record in records)

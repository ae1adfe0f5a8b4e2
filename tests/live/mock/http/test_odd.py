"""`mcpspy mock --listen`, as a process, with clients that are odd, hostile, slow or gone."""

import json
import os
import resource
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from mcpspy.records import CLIENT, SERVER, Close, Note, Open
from tests.deadlines import eventually
from tests.live.mock.mocking import written
from tests.live.mock.mocking_http import HttpMocking
from tests.transcript.dialogue import Dialogue, notification, request, result, tool_call
from tests.transcript.traffic import Traffic, initialize


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpMocking]:
    """A mock without sessions: a list of tools, and a call without an answer."""
    recorded = Traffic()
    recorded.post(initialize(0)).answer(200, result(0))
    recorded.post(request(1)).answer(200, result(1, {"tools": []}))
    recorded.post(tool_call(2)).stream()
    with HttpMocking(written(tmp_path_factory.mktemp("mock") / "plain.mcpspy", recorded.records)) as mock:
        yield mock


@pytest.fixture
def mock(serving: HttpMocking) -> Iterator[HttpMocking]:
    yield serving
    serving.hang_up()
    assert serving.connect().ask(request("after")).answer == result("after", {"tools": []})  # it goes on
    serving.hang_up()


def posted(mock: HttpMocking, body: bytes, *fields: str, version: str = "HTTP/1.1", host: str = "") -> bytes:
    own = (f"Host: {host or mock.host}", "Content-Type: application/json", f"Content-Length: {len(body)}")
    head = [f"POST /mcp {version}", *own, *fields]
    return "\r\n".join([*head, "", ""]).encode() + body


def listed(id: int) -> bytes:
    return json.dumps(request(id)).encode()


HOSTILE = [
    b"", b"\n", b"not JSON", b"\xff\xfe\x00", b"[]", b"7", b'{"id":1}', b'{"jsonrpc":"2.0","id":{"a":1},"method":"tools/list"}',
    b'{"method":"tools/call","id":"a","params":{"name":{"b":' + b"[" * 20_000 + b"]" * 20_000 + b"}}}", b"{" * 100_000,
    b'[{"jsonrpc":"2.0","id":1,"method":"tools/list"},7]',
]  # fmt: skip


@pytest.mark.parametrize("body", HOSTILE, ids=range(len(HOSTILE)))
def test_a_body_that_is_no_message_is_refused(mock: HttpMocking, body: bytes) -> None:
    reply = mock.connect().ask(body)
    assert (reply.status, reply.answer["error"]["code"]) == (400, -32700)


@pytest.mark.parametrize("media_type", ["", "text/plain", "application/x-www-form-urlencoded", "application/jsonp"])
def test_a_body_that_is_not_json_by_its_type_is_refused(media_type: str, mock: HttpMocking) -> None:
    reply = mock.connect().ask(listed(1), Content_Type=media_type)
    assert (reply.status, reply.answer["error"]["code"]) == (415, -32000)


@pytest.mark.parametrize("transport", ["streamable", "sse"])
def test_a_type_that_the_recorded_server_took_for_json_is_taken(transport: str, tmp_path: Path) -> None:
    recorded = Traffic()
    recorded.post(request(1), Content_Type="Text/Plain; charset=utf-8").answer(200, result(1, {"tools": []}))
    with HttpMocking(written(tmp_path / "plain.mcpspy", recorded.records), "--transport", transport) as mock:
        asking = mock.connect()
        path = asking.again().ask(method="GET").event()["data"] if transport == "sse" else ""
        assert asking.ask(request(1), path=path, Content_Type="text/plain").status < 300
        assert asking.again().ask(request(1), path=path, Content_Type="text/html").status == 415


def test_what_no_server_can_answer_is_accepted(mock: HttpMocking) -> None:
    for message in (notification("notifications/cancelled", {"requestId": []}), result(None, 7), result("never asked")):
        assert mock.connect().ask(message).status == 202


def test_requests_that_come_at_once_are_answered_in_their_order(mock: HttpMocking) -> None:
    wire = mock.wire()
    wire.send(b"".join(posted(mock, listed(id)) for id in range(50)) + posted(mock, listed(50), "Connection: close"))
    answers = [json.loads(response.partition(b"\r\n\r\n")[2]) for response in wire.rest().split(b"HTTP/1.1 200 OK")[1:]]
    assert [answer["id"] for answer in answers] == list(range(51))


def test_a_request_may_come_in_pieces_and_in_chunks(mock: HttpMocking) -> None:
    wire = mock.wire()
    body = listed(1)
    fields = ("Content-Type: application/json", "Transfer-Encoding: chunked", "Connection: close")
    head = "\r\n".join(["POST /mcp HTTP/1.1", f"Host: {mock.host}", *fields, "", ""]).encode()
    for at in range(0, len(head), 40):
        wire.send(head[at : at + 40])
    wire.send(b"%x\r\n%b\r\n" % (10, body[:10]))
    wire.send(b"%x\r\n%b\r\n0\r\n\r\n" % (len(body) - 10, body[10:]))
    assert wire.rest().endswith(json.dumps(result(1, {"tools": []})).encode())


def test_a_client_that_waits_to_be_told_to_go_on_is_told(mock: HttpMocking) -> None:
    wire = mock.wire()
    body = listed(1)
    wire.send(posted(mock, body, "Expect: 100-continue", "Connection: close")[: -len(body)])
    assert wire.head() == b"HTTP/1.1 100 Continue\r\n\r\n"
    wire.send(body)
    assert wire.rest().startswith(b"HTTP/1.1 200 OK")


def test_http_1_0_gets_its_events_up_to_the_close(mock: HttpMocking) -> None:
    wire = mock.wire()
    wire.send(posted(mock, json.dumps([request(1)]).encode(), version="HTTP/1.0"))
    head, _, body = wire.rest().partition(b"\r\n\r\n")
    assert b"chunked" not in head.lower()
    assert body == b"event: message\ndata: %b\n\n" % json.dumps(result(1, {"tools": []})).encode()


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"POST /mcp HTTP/1.1\r\nHost: evil.example\r\nContent-Length: 2\r\n\r\n{}", b"421"),
        (b"POST /mcp HTTP/1.1\r\nHost: HOST\r\nOrigin: http://evil.example\r\nContent-Length: 2\r\n\r\n{}", b"403"),
        (b"GARBAGE\r\n\r\n", b"400"),
        (b"POST /mcp HTTP/1.1\r\nHost: HOST\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}", b"400"),
        (b"GET /elsewhere HTTP/1.1\r\nHost: HOST\r\nConnection: close\r\n\r\n", b"404"),
        (b"PUT /mcp HTTP/1.1\r\nHost: HOST\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}", b"405"),
        (b"HEAD /mcp HTTP/1.1\r\nHost: HOST\r\nConnection: close\r\n\r\n", b"405"),
        (b"OPTIONS /mcp HTTP/1.1\r\nHost: HOST\r\nConnection: close\r\n\r\n", b"405"),
    ],
)
def test_what_nobody_recorded_is_refused_in_mcpspys_own_name(mock: HttpMocking, sent: bytes, status: bytes) -> None:
    wire = mock.wire()
    wire.send(sent.replace(b"HOST", mock.host.encode()))
    output = wire.rest()
    assert output.startswith(b"HTTP/1.1 " + status)
    assert output.partition(b"\r\n\r\n")[2].startswith(b"" if sent.startswith(b"HEAD") else b"mcpspy: ")


# Clients that leave


def test_who_closed_what_is_written_down(tmp_path: Path) -> None:
    recorded = Traffic()
    recorded.post(initialize(0)).answer(200, result(0))
    recorded.post(tool_call(1)).stream()
    with HttpMocking(written(tmp_path / "plain.mcpspy", recorded.records)) as mock:
        wire = mock.wire()
        wire.send(posted(mock, json.dumps(tool_call(9)).encode()))
        wire.head()
        wire.close()
        half = mock.wire()
        half.send(posted(mock, b'{"jsonrpc"', "X: y")[:-3])
        half.close()
        mock.connect().ask(initialize(0)).response.read()
        mock.ends()
    sender = {record.stream: record.sender for record in mock.records if isinstance(record, Open)}
    closes = [(sender[record.stream], record.by, record.how) for record in mock.records if isinstance(record, Close)]
    assert (SERVER, CLIENT, "broken") in closes
    assert (CLIENT, CLIENT, "abort") in closes


def test_a_client_that_leaves_before_the_response_begins_is_noted(tmp_path: Path) -> None:
    recorded = Dialogue().client(initialize(0)).server(result(0)).client(tool_call(1)).wait(60_000).server(result(1))
    with HttpMocking(written(tmp_path / "slow.mcpspy", recorded.closes().records[:-1]), "--speed", "1") as mock:
        asking = mock.connect()
        asking.ask(initialize(0)).response.read()
        leaving = asking.again()
        leaving.send(tool_call(9))
        eventually(
            lambda: any(exchange.method == "tools/call" for exchange in mock.transcript.exchanges), "the call to be heard"
        )
        leaving.close()
        eventually(lambda: "half-closed" in mock.topics, "its leaving to be noted")
        mock.ends()
    (left,) = [record for record in mock.records if isinstance(record, Note) and record.topic == "left"]
    assert left.extra["by"] == CLIENT


def test_a_client_that_closes_its_half_gets_its_answer_when_it_is_due(tmp_path: Path) -> None:
    recorded = Dialogue().client(initialize(0)).server(result(0)).client(request(1)).wait(300).server(result(1, {"tools": []}))
    with HttpMocking(written(tmp_path / "slow.mcpspy", recorded.closes().records[:-1]), "--speed", "1") as mock:
        asking = mock.connect()
        asking.ask(initialize(0)).response.read()
        wire = mock.wire()
        wire.send(posted(mock, json.dumps(request(9)).encode(), f"Mcp-Session-Id: {asking.session}"))
        wire.socket.shutdown(socket.SHUT_WR)
        assert json.loads(wire.rest().partition(b"\r\n\r\n")[2]) == result(9, {"tools": []})


# Clients that do not read


LARGE = {"text": "x" * 1_000_000}


def test_a_client_that_does_not_read_its_stream_is_not_heard_until_it_does(tmp_path: Path) -> None:
    recorded = Dialogue().client(tool_call(1)).server(result(1, LARGE))
    capture = written(tmp_path / "large.mcpspy", recorded.closes().records[:-1])
    with HttpMocking(capture, "--transport", "sse", is_real=True) as mock:
        stream = mock.connect().ask(method="GET")
        posting = []
        endpoint = stream.event()["data"]
        for id in range(60):
            asking = mock.connect()
            asking.path = endpoint
            asking.send(tool_call(id))
            posting.append(asking)
        assert [stream.next()["id"] for _ in range(60)] == list(range(60))
        assert {asking.told().status for asking in posting} == {202}
        assert mock.peak_kib() < 200_000


def test_what_it_says_meanwhile_is_refused_when_it_closes_the_stream_that_it_did_not_read(tmp_path: Path) -> None:
    capture = written(tmp_path / "large.mcpspy", Dialogue().client(tool_call(1)).server(result(1, LARGE)).closes().records[:-1])
    with HttpMocking(capture, "--transport", "sse") as mock:
        getting = mock.connect()
        stream = getting.ask(method="GET")
        endpoint = stream.event()["data"]
        posting = [mock.connect() for _ in range(40)]
        for id, asking in enumerate(posting):
            asking.path = endpoint
            asking.send(tool_call(id))
        assert posting[0].told().status == 202
        getting.close()
        assert posting[-1].told().status == 404


def test_what_waits_for_a_stream_that_nobody_opens_is_bounded_and_what_is_dropped_is_noted(tmp_path: Path) -> None:
    recorded = Dialogue().client(initialize(0)).server(result(0)).client(tool_call(1))
    for number in range(400):
        recorded.server(notification("notifications/resources/updated", {"uri": f"n:{number}"}))
    with HttpMocking(written(tmp_path / "news.mcpspy", recorded.server(result(1)).closes().records[:-1])) as mock:
        asking = mock.connect()
        asking.ask(initialize(0)).response.read()
        for id in range(3):
            assert asking.ask(tool_call(id)).answer == result(id)
        first = asking.again().ask(method="GET").next()
        mock.ends()
    assert first["params"]["uri"] == "n:200"
    assert mock.topics == ["dropped"]


def test_who_resumes_a_stream_that_ended_gets_the_rest_of_it_on_the_connection_that_it_ended_on(tmp_path: Path) -> None:
    recorded = Traffic()
    recorded.post(initialize(0)).answer(200, result(0), Mcp_Session_Id="s")
    recorded.post(tool_call(1), session="s").stream().event("", id="p").event(result(1), id="a").close()
    with HttpMocking(written(tmp_path / "http.mcpspy", recorded.records)) as mock:
        asking = mock.connect()
        asking.ask(initialize(0)).response.read()
        reply = asking.ask(tool_call(9))
        first, answer = reply.event(), reply.event()
        assert reply.messages == []
        resumed = asking.ask(method="GET", Last_Event_ID=first["id"])
        assert [resumed.event(), resumed.messages] == [answer, []]
        assert asking.ask(request("p", "ping")).answer == {"jsonrpc": "2.0", "id": "p", "result": {}}
        assert mock.ends() == (0, "", "")


def test_a_client_that_comes_when_there_is_no_descriptor_left_is_let_in_when_there_is_one(tmp_path: Path) -> None:
    recorded = Dialogue().client(initialize(0)).server(result(0)).closes()
    with HttpMocking(written(tmp_path / "weather.mcpspy", recorded.records[:-1])) as mock:
        asking = mock.connect()
        asking.ask(initialize(0)).response.read()
        pid = mock.process.pid
        soft, hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (max(map(int, os.listdir(f"/proc/{pid}/fd"))) + 1, hard))
        late = mock.connect()
        late.send(initialize(1))
        asking.ask(initialize(2)).response.read()
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (soft, hard))
        assert late.told().answer == result(1)
        assert mock.ends() == (0, "", "")
    assert mock.topics == []


def test_a_request_that_got_an_empty_202_and_no_answer_gets_the_same(tmp_path: Path) -> None:
    recorded = Traffic()
    recorded.post(initialize(1)).answer(200, result(1))
    recorded.post(request(2)).answer(202)
    with HttpMocking(written(tmp_path / "own.mcpspy", recorded.records)) as mock:
        client = mock.connect()
        assert client.ask(initialize(1)).answer == result(1)
        told = client.ask(request(2))
        assert (told.status, told.response.read()) == (202, b"")


def test_live_ids_of_events_whose_lines_end_with_cr_replace_the_recorded_ones(tmp_path: Path) -> None:
    recorded = Traffic()
    recorded.post(initialize(1)).answer(200, result(1))
    for id in (2, 3):
        stream = recorded.post(tool_call(id)).stream()
        stream.raw(b": first\rid: x%d\rdata: %b\r\r" % (id, json.dumps(result(id)).encode())).close()
    with HttpMocking(written(tmp_path / "own.mcpspy", recorded.records)) as mock:
        client = mock.connect()
        assert client.ask(initialize(1)).answer == result(1)
        bodies = [client.ask(tool_call(id)).response.read() for id in (2, 3)]
    assert [body.split(b"\r")[1] for body in bodies] == [b"id: 1", b"id: 2"]

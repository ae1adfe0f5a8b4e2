"""`duplicate` over HTTP: a request is posted twice, and nobody but the capture gets the second answer."""

from __future__ import annotations

from pathlib import Path

import pytest

from mcpspy.records import Frame, Intercept, Note, Record
from mcpspy.transcript.findings.run import all_findings
from tests.live.http.ends import EVENTS, Wire, chunk
from tests.live.http.test_intercepts import (
    CALL,
    INITIALIZED,
    OTHER,
    OTHER_RESULT,
    RESULT,
    acts,
    answer,
    body_of,
    chunks_of,
    event,
    intercepted,
    post,
    read_back,
    rows_of,
)

ACCEPTED = b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n"
AGAIN = RESULT.replace(b"found", b"again")
LOGGED = b'{"jsonrpc":"2.0","method":"notifications/message"}'
RENAMED = CALL.replace(b"search", b"x")


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    return tmp_path / "doubled.mcpspy"


def answer_in(way: str, data: bytes) -> bytes:
    return answer(data) if way == "json" else EVENTS + chunk(event(data)) + b"0\r\n\r\n"


def answer_of(way: str, client: Wire) -> bytes:
    """Read one response of the client's."""
    if way == "json":
        return body_of(client)[1]
    client.head()
    data = chunks_of(client, 1)
    assert client.take(5) == b"0\r\n\r\n"
    return data.removeprefix(b"data: ").strip()


def kept(records: list[Record]) -> list[bytes]:
    """Return the messages that nobody got."""
    return [
        record.data.removeprefix(b"data: ").strip()
        for record in records
        if isinstance(record, Frame) and record.forwarded == b""
    ]


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("way", ["json", "events"])
@pytest.mark.parametrize(
    ("texts", "sent"),
    [
        (["tool:search => duplicate"], CALL),
        (["tool:search => duplicate", 'tool:search => set params.name="x"'], RENAMED),
        (['tool:search => set params.name="x"', "id:1 => duplicate"], RENAMED),
        (["tool:search => delay 50ms", "tool:search => duplicate"], CALL),
    ],
)
def test_a_call_is_posted_twice_and_answered_once(texts: list[str], sent: bytes, way: str, first: int, capture: Path) -> None:
    with intercepted(capture, *texts) as (upstream, proxy, client):
        client.send(post(proxy, CALL, b"X-Odd:  yes"))
        servers = [upstream.accept(), upstream.accept()]
        heads, bodies = zip(*(body_of(server) for server in servers), strict=True)
        assert (bodies, heads[0]) == ((sent, sent), heads[1])
        for at in (first, 1 - first):
            servers[at].send(answer_in(way, AGAIN if at else RESULT))
        got = answer_of(way, client)
        client.send(post(proxy, OTHER))  # the connection goes on, with nothing behind the answer
        assert body_of(servers[0] if got == RESULT else servers[1])[1] == OTHER
        records, transcript = read_back(proxy)
    assert [got, *kept(records)] in ([RESULT, AGAIN], [AGAIN, RESULT])
    doubled = [act for act in acts(records) if act[0] == "duplicate"]
    assert sorted(doubled) == [("duplicate", "nothing"), ("duplicate", "unchanged"), ("duplicate", "unchanged")]
    assert all_findings(transcript) == []
    assert [row.request.id for row in rows_of(transcript)] == ["1", "1", "2"]


def test_a_notification_is_posted_twice_and_taken_once(capture: Path) -> None:
    with intercepted(capture, "method:notifications/initialized => duplicate") as (upstream, proxy, client):
        client.send(post(proxy, INITIALIZED))
        for server in (upstream.accept(), upstream.accept()):
            assert body_of(server)[1] == INITIALIZED
            server.send(ACCEPTED)
        assert client.take(len(ACCEPTED)) == ACCEPTED
        client.send(post(proxy, OTHER))
        records, _ = read_back(proxy)
    assert kept(records) == []


@pytest.mark.parametrize("then", ["drop", 'error -32000 "no"', "status 503", "expire"])
def test_what_is_not_sent_is_not_sent_twice(then: str, capture: Path) -> None:
    texts = ("tool:search => duplicate", f"tool:search => {then}")
    with intercepted(capture, *texts) as (upstream, proxy, client):
        client.send(post(proxy, CALL, b"Mcp-Session-Id: s"))
        other = proxy.connect()
        other.send(post(proxy, OTHER))
        server = upstream.accept()
        assert body_of(server)[1] == OTHER
        server.send(answer(OTHER_RESULT))
        assert body_of(other)[1] == OTHER_RESULT
        assert not upstream.was_called
        proxy.stop()


def test_the_second_answer_on_a_stream_of_events_does_not_reach_the_client(capture: Path) -> None:
    with intercepted(capture, "tool:search => duplicate") as (upstream, proxy, client):
        client.send(proxy.request(b"GET /sse", b"Accept: text/event-stream"))
        stream = upstream.accept()
        stream.head()
        announced = b"event: endpoint\ndata: /messages?session=1\n\n"
        stream.send(EVENTS + chunk(announced))
        client.head()
        assert chunks_of(client, 1) == announced
        for round_ in (RESULT, AGAIN):  # the same id is used again
            poster = proxy.connect()
            poster.send(post(proxy, CALL, target=b"/messages?session=1"))
            for server in (upstream.accept(), upstream.accept()):
                assert body_of(server)[1] == CALL
                server.send(ACCEPTED)
            poster.take(len(ACCEPTED))
            stream.send(chunk(event(round_)) + chunk(event(LOGGED)))
            assert chunks_of(client, 2) == event(round_) + event(LOGGED)
            stream.send(chunk(event(round_)))
        stream.send(chunk(event(LOGGED)))
        assert chunks_of(client, 1) == event(LOGGED)
        records, transcript = read_back(proxy)
    assert kept(records) == [RESULT, AGAIN]
    assert all_findings(transcript) == []


def test_an_event_comes_twice_and_the_second_answer_to_it_stays_here(capture: Path) -> None:
    asked = b'{"jsonrpc":"2.0","id":7,"method":"roots/list"}'
    reply = b'{"jsonrpc":"2.0","id":7,"result":{"roots":[]}}'
    with intercepted(capture, "method:roots/list => duplicate", "kind:result tool:search => duplicate") as (
        upstream,
        proxy,
        client,
    ):
        client.send(post(proxy, CALL, b"Mcp-Session-Id: s"))
        server = upstream.accept()
        body_of(server)
        server.send(EVENTS + chunk(event(asked, b"id: 1")))
        client.head()
        assert chunks_of(client, 2) == event(asked, b"id: 1") * 2
        poster = proxy.connect()
        poster.send(post(proxy, reply, b"Mcp-Session-Id: s"))
        second = upstream.accept()
        assert body_of(second)[1] == reply
        second.send(ACCEPTED)
        poster.take(len(ACCEPTED))
        poster.send(post(proxy, reply, b"Mcp-Session-Id: s"))
        assert poster.head().startswith(b"HTTP/1.1 202 ")
        server.send(chunk(event(RESULT)))
        assert chunks_of(client, 2) == event(RESULT) * 2
        records, _ = read_back(proxy)
    assert kept(records) == [reply]


def test_a_json_body_cannot_come_twice_and_a_note_says_so(capture: Path) -> None:
    with intercepted(capture, "kind:result tool:search => duplicate") as (upstream, proxy, client):
        client.send(post(proxy))
        server = upstream.accept()
        body_of(server)
        sent = answer(RESULT, b"X-Odd:  yes")
        server.send(sent)
        assert client.take(len(sent)) == sent
        records, _ = read_back(proxy)
    assert [record for record in records if isinstance(record, Intercept)] == []
    (note,) = [record for record in records if isinstance(record, Note) and record.topic == "not-intercepted"]
    assert "cannot come twice" in note.text

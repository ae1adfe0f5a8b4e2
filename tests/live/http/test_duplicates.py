"""`duplicate` over HTTP: a request is posted twice, and nobody but the capture gets the second answer."""

from __future__ import annotations

from pathlib import Path

import pytest

from mcpspy.records import Close, Frame, Intercept, Note, Open, Record
from mcpspy.transcript.findings.run import all_findings
from tests.deadlines import eventually
from tests.live.http.ends import EVENTS, Proxy, Upstream, Wire, chunk
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
from tests.live.stdio.test_control import Controller, socket_in

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


# A copy that cannot be sent, or is not answered


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["tool:search => duplicate"], CALL),
        (["tool:search => delay 50ms", "tool:search => duplicate"], CALL),
        (["tool:search => duplicate", 'tool:search => set params.name="x"'], CALL),
        (["method:notifications/initialized => duplicate"], INITIALIZED),
    ],
)
def test_a_copy_that_cannot_be_posted_is_reported(texts: list[str], message: bytes, capture: Path) -> None:
    with intercepted(capture, *texts) as (upstream, proxy, client):
        server = begun(upstream, proxy, client)
        upstream.close()
        client.send(post(proxy, message))
        body_of(server)
        (note,) = eventually(lambda: notes(proxy.records()), "the note")
        server.send(answer(RESULT))
        assert body_of(client)[1] == RESULT
        client.send(post(proxy, OTHER))  # nothing else is changed
        body_of(server)
        server.send(answer(OTHER_RESULT))
        assert body_of(client)[1] == OTHER_RESULT
        said = proxy.stop()
    assert f"127.0.0.1:{upstream.port} cannot be reached: Connection refused" in note
    assert note.startswith("the copy of a message was not sent: ")
    assert said == f"mcpspy: {note}\n"
    assert len([record for record in proxy.records() if isinstance(record, Note) and record.topic == "fault"]) == 0


def test_a_copy_that_is_posted_is_not_reported(capture: Path) -> None:
    with intercepted(capture, "tool:search => duplicate") as (upstream, proxy, client):
        client.send(post(proxy, CALL))
        for server in (upstream.accept(), upstream.accept()):
            body_of(server)
            server.close()
        client.rest()
        assert proxy.stop() == ""
    assert notes(proxy.records()) == []


@pytest.mark.parametrize(
    "reached", ["nothing", "an interim response", "a head", "half a body", "an event", "half an event", "all"]
)
def test_each_stream_of_a_copy_is_closed_when_the_tap_ends(reached: str, capture: Path) -> None:
    response = {
        "nothing": b"",
        "an interim response": b"HTTP/1.1 103 Early Hints\r\n\r\n",
        "a head": EVENTS,
        "half a body": answer(AGAIN)[:-9],
        "an event": EVENTS + chunk(event(AGAIN)),
        "half an event": EVENTS + chunk(event(AGAIN)[:20]),
        "all": answer(AGAIN),
    }[reached]
    with intercepted(capture, "tool:search => duplicate") as (upstream, proxy, client):
        first = begun(upstream, proxy, client)
        client.send(post(proxy, CALL))
        second = upstream.accept()
        body_of(first)
        body_of(second)
        second.send(response)
        if response:
            eventually(lambda: len(proxy.found(Open)) == 5, "the response to the copy")
        first.send(answer(RESULT))
        assert body_of(client)[1] == RESULT
        proxy.stop()
    opened = sorted(record.stream for record in proxy.found(Open))
    assert sorted(record.stream for record in proxy.found(Close)) == opened
    if reached not in ("nothing", "an interim response", "all"):
        assert proxy.ending("response", 1) == ("mcpspy", "abort")


def test_the_controller_that_added_an_intercept_hears_that_a_copy_was_not_sent(
    capture: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MCPSPY_HOME", str(capture.parent))
    with intercepted(capture, "tool:nothing => drop") as (upstream, proxy, client):
        server = begun(upstream, proxy, client)
        adder, other = (Controller(socket_in(capture.parent)) for _ in range(2))
        assert adder.ask(do="intercept", text="tool:search => duplicate")["ok"]
        upstream.close()
        client.send(post(proxy, CALL))
        body_of(server)
        told = adder.event()
        assert other.ask(do="status")["ok"]
        said = proxy.stop()
        adder.leave()
        other.leave()
    assert (told["event"], f"mcpspy: {told['text']}\n") == ("note", said)
    assert notes(proxy.records()) == [told["text"]]


@pytest.mark.parametrize("response", [b"", EVENTS, EVENTS + chunk(event(LOGGED)), answer(RESULT)[:-9]])
def test_each_stream_of_a_call_of_a_controller_is_closed_when_the_tap_ends(
    response: bytes, capture: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MCPSPY_HOME", str(capture.parent))
    with intercepted(capture) as (upstream, proxy, client):
        begun(upstream, proxy, client)
        controller = Controller(socket_in(capture.parent))
        facts = {"session": "", "target": "/mcp", "fields": []}
        id = controller.ask(do="send", payload=CALL.decode(), **facts)["id"]
        server = upstream.accept()
        body_of(server)
        server.send(response)
        if response:
            eventually(lambda: len(proxy.found(Open)) == 4, "the response to the call")
        assert proxy.stop() == ""
        assert controller.event() == {"event": "failed", "id": id, "text": "mcpspy ended"}
        controller.leave()
    assert sorted(record.stream for record in proxy.found(Close)) == [record.stream for record in proxy.found(Open)]


def begun(upstream: Upstream, proxy: Proxy, client: Wire) -> Wire:
    """Have a call on this connection answered, so that a copy of the next one is all that needs another."""
    client.send(post(proxy, OTHER))
    server = upstream.accept()
    body_of(server)
    server.send(answer(OTHER_RESULT))
    assert body_of(client)[1] == OTHER_RESULT
    return server


def notes(records: list[Record]) -> list[str]:
    return [record.text for record in records if isinstance(record, Note) and record.topic == "not-intercepted"]

"""Intercepts over HTTP: the receiver gets what the capture says, no other byte changes, and nothing hangs."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from mcpspy.records import Frame, Intercept, Note, Record
from mcpspy.transcript.findings.run import all_findings
from mcpspy.transcript.model import Exchange, Transcript
from mcpspy.transcript.transcribe import transcribe
from tests.cli.terminal import run
from tests.deadlines import DEADLINE_S, eventually
from tests.live.client import MCPSPY
from tests.live.http.ends import EVENTS, HEAD_END, Proxy, Upstream, Wire, between, chunk

CALL = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"search","arguments":{"q":"x"}}}'
OTHER = CALL.replace(b"search", b"other").replace(b'"id":1', b'"id":2')
RESULT = b'{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"found"}]}}'
NOTHING = RESULT.replace(b"found", b"nothing")
OTHER_RESULT = RESULT.replace(b'"id":1', b'"id":2')
INITIALIZED = b'{"jsonrpc":"2.0","method":"notifications/initialized"}'
JSON = b"Content-Type: application/json"
ERROR = b'{"jsonrpc": "2.0", "id": 1, "error": {"code": -32000, "message": "no"}}'


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    return tmp_path / "intercepted.mcpspy"


def answer(body: bytes = RESULT, *fields: bytes) -> bytes:
    return b"\r\n".join((b"HTTP/1.1 200 OK", JSON, *fields, b"Content-Length: %d" % len(body), b"", b"")) + body


def event(data: bytes, *lines: bytes) -> bytes:
    return b"".join(line + b"\r\n" for line in (*lines, b"data: " + data, b""))


def body_of(wire: Wire) -> tuple[bytes, bytes]:
    """Read a message with a Content-Length."""
    head = wire.head()
    length = next((line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")), b":0")
    return head, wire.take(int(length.partition(b":")[2]))


def chunks_of(wire: Wire, count: int) -> bytes:
    """Read chunks, and return what is in them."""
    data = b""
    for _ in range(count):
        line = wire.until(b"\r\n")
        data += wire.take(int(line, 16) + 2)[:-2]
    return data


def post(proxy: Proxy, body: bytes = CALL, *fields: bytes, target: bytes = b"/mcp") -> bytes:
    return proxy.request(b"POST " + target, JSON, *fields, body=body)


@contextmanager
def intercepted(capture: Path, *texts: str) -> Iterator[tuple[Upstream, Proxy, Wire]]:
    with between(capture, *(word for text in texts for word in ("--intercept", text))) as (upstream, proxy):
        yield upstream, proxy, proxy.connect()


def read_back(proxy: Proxy) -> tuple[list[Record], Transcript]:
    proxy.stop()
    records = proxy.records()
    return records, transcribe(records)


def acts(records: list[Record]) -> list[tuple[str, str]]:
    return [(record.action, record.sent) for record in records if isinstance(record, Intercept)]


def rows_of(transcript: Transcript) -> list[Exchange]:
    return [row for row in transcript.rows if isinstance(row, Exchange)]


# Requests


def test_what_no_intercept_matches_passes_byte_for_byte(capture: Path) -> None:
    with intercepted(capture, "tool:nothing => drop") as (upstream, proxy, client):
        client.send(post(proxy))
        server = upstream.accept()
        head, body = body_of(server)
        assert (body, b"\r\nHost: 127.0.0.1:%d\r\n" % upstream.port in head) == (CALL, True)
        sent = answer(RESULT, b"X-Odd:  yes")
        server.send(sent)
        assert client.take(len(sent)) == sent
        records, _ = read_back(proxy)
        assert acts(records) == []


def test_a_request_is_answered_with_an_error_and_the_server_never_sees_it(capture: Path) -> None:
    with intercepted(capture, 'tool:search => error -32000 "no"') as (upstream, proxy, client):
        client.send(post(proxy))
        head, body = body_of(client)
        assert (head.startswith(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"), body) == (True, ERROR)
        assert not upstream.was_called
        client.send(post(proxy, OTHER))  # the connection goes on
        server = upstream.accept()
        assert body_of(server)[1] == OTHER
        server.send(answer(OTHER_RESULT))
        assert body_of(client)[1] == OTHER_RESULT
        records, transcript = read_back(proxy)
        assert acts(records) == [("error -32000", "nothing")]
        first, second = rows_of(transcript)
        assert first.response is not None
        assert first.response.error == {"code": -32000, "message": "no"}
        assert (first.request.flaws, first.response.flaws) == (
            ("intercepted: error -32000", "intercepted: not passed on"),
            ("intercepted: sent by mcpspy",),
        )
        assert second.request.flaws == ()
        assert all_findings(transcript) == []


def test_a_status_answers_a_request(capture: Path) -> None:
    with intercepted(capture, "tool:search => status 503", "method:notifications/* => status 500") as (upstream, proxy, client):
        client.send(post(proxy))
        assert body_of(client)[0].startswith(b"HTTP/1.1 503 Service Unavailable\r\n")
        client.send(post(proxy, INITIALIZED))
        assert body_of(client)[0].startswith(b"HTTP/1.1 500 ")
        assert not upstream.was_called
        records, transcript = read_back(proxy)
        assert acts(records) == [("status 503", "nothing"), ("status 500", "nothing")]
        assert all_findings(transcript) == []


def test_a_status_has_the_fields_that_the_intercept_names(capture: Path) -> None:
    text = 'tool:search => status 429 "Retry-After: 1" "X-Odd: yes"'
    with intercepted(capture, text) as (_, proxy, client):
        client.send(post(proxy))
        assert body_of(client)[0].startswith(b"HTTP/1.1 429 Too Many Requests\r\nRetry-After: 1\r\nX-Odd: yes\r\n")
        records, transcript = read_back(proxy)
        assert acts(records) == [("status 429", "nothing")]
        assert all_findings(transcript) == []


def test_a_session_that_expired_is_unknown_and_another_is_not(capture: Path) -> None:
    with intercepted(capture, "tool:search => expire max=1") as (upstream, proxy, client):
        for body in (CALL, INITIALIZED, OTHER):
            client.send(post(proxy, body, b"Mcp-Session-Id: first"))
            assert body_of(client)[0].startswith(b"HTTP/1.1 404 Not Found\r\n")
        assert not upstream.was_called
        client.send(post(proxy, CALL, b"Mcp-Session-Id: second"))
        assert body_of(upstream.accept())[1] == CALL
        records, _ = read_back(proxy)
        assert acts(records) == [("expire", "nothing")] * 3


def test_what_has_no_session_does_not_expire(capture: Path) -> None:
    with intercepted(capture, "tool:search => expire") as (upstream, proxy, client):
        client.send(post(proxy))
        assert body_of(upstream.accept())[1] == CALL


def test_a_changed_request_has_its_new_length_and_no_other_byte_changes(capture: Path) -> None:
    with intercepted(capture, 'tool:search => set params.arguments.q="longer"') as (upstream, proxy, client):
        client.send(post(proxy, CALL, b"X-Odd:  yes"))
        head, body = body_of(upstream.accept())
        assert body == CALL.replace(b'"x"', b'"longer"')
        assert b"\r\nX-Odd:  yes\r\nContent-Length: %d\r\n" % len(body) in head
        assert proxy.body("request") == CALL
        assert proxy.head("request").forwarded == head


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_a_request_in_chunks_and_pieces_is_taken_whole(size: int, capture: Path) -> None:
    with intercepted(capture, "tool:search => set params.arguments.q=1") as (upstream, proxy, client):
        whole = proxy.request(b"POST /mcp", JSON).replace(b"Content-Length: 2\r\n\r\n{}", b"Transfer-Encoding: chunked\r\n\r\n")
        whole += chunk(CALL[:20]) + chunk(CALL[20:]) + b"0\r\n\r\n"
        for at in range(0, len(whole), size):
            client.send(whole[at : at + size])
        head, body = body_of(upstream.accept())
        assert (body, b"chunked" in head) == (CALL.replace(b'"x"', b"1"), False)


def test_a_compressed_request_is_changed_and_sent_plain(capture: Path) -> None:
    with intercepted(capture, "tool:search => set params.arguments.q=1") as (upstream, proxy, client):
        client.send(post(proxy, gzip.compress(CALL), b"Content-Encoding: gzip"))
        head, body = body_of(upstream.accept())
        assert (body, b"ncoding" in head) == (CALL.replace(b'"x"', b"1"), False)
        _, transcript = read_back(proxy)
        assert rows_of(transcript)[0].request.params["arguments"] == {"q": 1}
        assert gzip.decompress(proxy.body("request")) == CALL
        assert all_findings(transcript) == []


def test_a_client_that_waits_for_leave_to_send_gets_it(capture: Path) -> None:
    with intercepted(capture, "tool:search => set params.arguments.q=1") as (upstream, proxy, client):
        head, _, _ = post(proxy, CALL, b"Expect: 100-continue").partition(HEAD_END)
        client.send(head + HEAD_END)
        assert client.head() == b"HTTP/1.1 100 Continue\r\n\r\n"
        client.send(CALL)
        server = upstream.accept()
        sent, body = body_of(server)
        assert (body, b"xpect" in sent) == (CALL.replace(b'"x"', b"1"), False)
        server.send(answer())
        assert body_of(client)[1] == RESULT


def test_a_dropped_call_is_not_answered_and_a_dropped_notification_is_taken(capture: Path) -> None:
    with intercepted(capture, "method:* => drop") as (upstream, proxy, client):
        client.send(post(proxy, INITIALIZED))
        assert body_of(client)[0].startswith(b"HTTP/1.1 202 ")
        client.send(post(proxy))
        eventually(lambda: len(proxy.found(Intercept)) == 2, "the intercept")
        assert not upstream.was_called
        assert client.kept() == b""
        records, transcript = read_back(proxy)
        assert acts(records) == [("drop", "nothing"), ("drop", "nothing")]
        (row,) = rows_of(transcript)
        assert (row.response, all_findings(transcript)) == (None, [])


def test_a_delayed_request_reaches_a_server_that_has_closed_its_idle_connection(capture: Path) -> None:
    with intercepted(capture, "tool:search => delay 300ms") as (upstream, proxy, client):
        client.send(post(proxy, OTHER))
        server = upstream.accept()
        server.head()
        server.send(answer(OTHER_RESULT))
        assert body_of(client)[1] == OTHER_RESULT
        client.send(post(proxy))
        eventually(lambda: proxy.found(Intercept), "the intercept")
        server.close()
        again = upstream.accept()
        assert body_of(again)[1] == CALL
        again.send(answer())
        assert body_of(client)[1] == RESULT
        _, second = rows_of(read_back(proxy)[1])
        assert (second.duration_ns or 0) >= 300_000_000


def test_a_disconnect_closes_both_connections(capture: Path) -> None:
    with intercepted(capture, "tool:search => disconnect") as (upstream, proxy, client):
        client.send(post(proxy, OTHER))
        server = upstream.accept()
        server.head()
        server.send(answer(OTHER_RESULT))
        body_of(client)
        client.send(post(proxy))
        assert (client.rest(), server.rest().endswith(OTHER)) == (b"", True)
        records, transcript = read_back(proxy)
        assert acts(records) == [("disconnect", "nothing")]
        assert all_findings(transcript) == []


def test_nothing_follows_a_stalled_request_on_its_connection(capture: Path) -> None:
    with intercepted(capture, "tool:search => stall") as (upstream, proxy, client):
        client.send(post(proxy) + post(proxy, OTHER))
        eventually(lambda: proxy.found(Intercept), "the intercept")
        other = proxy.connect()
        other.send(post(proxy, OTHER))
        assert body_of(upstream.accept())[1] == OTHER
        assert not upstream.was_called


# Answers in JSON


@pytest.mark.grid
@pytest.mark.parametrize("size", [1, 9, 1000])
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('tool:search => set result.content[0].text="nothing"', NOTHING),
        ("tool:search => remove result.content", b'{"jsonrpc":"2.0","id":1,"result":{}}'),
        ("tool:search => truncate 20", RESULT[:20]),
        ('tool:search => garbage "hm"', b"hm\n" + RESULT),
        ('kind:result tool:search => error -32000 "no"', ERROR),
        ("kind:result tool:search => delay 50ms", RESULT),
    ],
)
def test_a_json_answer_is_changed_with_its_length(text: str, expected: bytes, size: int, capture: Path) -> None:
    with intercepted(capture, text) as (upstream, proxy, client):
        client.send(post(proxy))
        server = upstream.accept()
        server.head()
        sent = answer(RESULT, b"X-Odd:  yes")
        for at in range(0, len(sent), size):
            server.send(sent[at : at + size])
        head, body = body_of(client)
        assert (body, b"\r\nX-Odd:  yes\r\nContent-Length: %d\r\n" % len(expected) in head) == (expected, True)
        client.send(post(proxy, OTHER))
        server.head()
        server.send(answer(OTHER_RESULT))
        assert body_of(client)[1] == OTHER_RESULT
        records, transcript = read_back(proxy)
        assert proxy.body("response") == RESULT
        assert len(acts(records)) == 1
        assert {finding.culprit for finding in all_findings(transcript)} <= {"unclear"}
        assert any(
            "intercepted" in flaw for row in rows_of(transcript)[:1] for message in row.messages for flaw in message.flaws
        )


def test_a_compressed_answer_is_changed_and_sent_plain(capture: Path) -> None:
    with intercepted(capture, "tool:search => set result.content=7") as (upstream, proxy, client):
        client.send(post(proxy, CALL, b"Accept-Encoding: gzip"))
        server = upstream.accept()
        assert b"Accept-Encoding: identity" in server.head()
        server.send(answer(gzip.compress(RESULT), b"Content-Encoding: gzip"))
        head, body = body_of(client)
        assert (json.loads(body)["result"], b"gzip" in head) == ({"content": 7}, False)
        _, transcript = read_back(proxy)
        (row,) = rows_of(transcript)
        assert row.response is not None
        assert row.response.result == {"content": 7}
        assert all_findings(transcript) == []


def test_a_compressed_answer_that_is_not_changed_passes_as_it_is(capture: Path) -> None:
    with intercepted(capture, "tool:other => set result.content=7") as (upstream, proxy, client):
        client.send(post(proxy))
        server = upstream.accept()
        server.head()
        sent = answer(gzip.compress(RESULT), b"Content-Encoding: gzip")
        server.send(sent)
        assert client.take(len(sent)) == sent


def test_an_answer_until_the_end_of_the_connection_is_taken_whole(capture: Path) -> None:
    with intercepted(capture, "tool:search => set result.content=7", "kind:result => delay 100ms") as (upstream, proxy, client):
        client.send(post(proxy))
        server = upstream.accept()
        server.head()
        server.send(b"HTTP/1.1 200 OK\r\n" + JSON + b"\r\n\r\n" + RESULT)
        server.close()
        head, _, body = client.rest().partition(HEAD_END)
        assert (json.loads(body)["result"], b"Content-Length: %d" % len(body) in head) == ({"content": 7}, True)


def test_a_connection_is_closed_within_a_json_answer(capture: Path) -> None:
    with intercepted(capture, "tool:search => disconnect 20") as (upstream, proxy, client):
        client.send(post(proxy))
        server = upstream.accept()
        server.head()
        server.send(answer())
        assert client.rest() == answer()[: -len(RESULT)] + RESULT[:20]
        records, transcript = read_back(proxy)
        assert (acts(records), proxy.body("response")) == ([("disconnect 20", "changed")], RESULT)
        assert {finding.culprit for finding in all_findings(transcript)} <= {"unclear"}


def test_an_answer_waits_for_that_on_another_connection(capture: Path) -> None:
    with intercepted(capture, "kind:result => reorder 20s max=1") as (upstream, proxy, client):
        other = proxy.connect()
        servers = []
        for wire, body in ((client, CALL), (other, OTHER)):
            wire.send(post(proxy, body))
            servers.append(upstream.accept())
            servers[-1].head()
        servers[0].send(answer())
        eventually(lambda: any("is held" in note.text for note in proxy.found(Note)), "the answer is held")
        assert client.kept() == b""
        servers[1].send(answer(OTHER_RESULT))
        assert body_of(other)[1] == OTHER_RESULT
        assert body_of(client)[1] == RESULT
        records, transcript = read_back(proxy)
        assert acts(records) == [("reorder", "unchanged")]
        assert {finding.culprit for finding in all_findings(transcript)} <= {"unclear"}


def test_a_dropped_json_answer_never_comes_and_marks_its_request(capture: Path) -> None:
    with intercepted(capture, "kind:result tool:search => drop") as (upstream, proxy, client):
        client.send(post(proxy))
        server = upstream.accept()
        server.head()
        server.send(answer())
        eventually(lambda: proxy.found(Intercept), "the intercept")
        assert client.kept() == b""
        _, transcript = read_back(proxy)
        (row,) = rows_of(transcript)
        assert (row.response, "intercepted: the answer was not passed on" in row.request.flaws) == (None, True)
        assert all_findings(transcript) == []


# Answers in events


@pytest.mark.grid
@pytest.mark.parametrize("size", [1, 11, 1000])
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            'tool:search => set result.content[0].text="nothing"',
            event(NOTHING, b"event: message", b"id: 7"),
        ),
        ("tool:search => truncate 20", event(RESULT[:20], b"event: message", b"id: 7")),
        ('tool:search => garbage "hm"', b"data: hm\n\n" + event(RESULT, b"event: message", b"id: 7")),
        ('kind:result tool:search => error -32000 "no"', event(ERROR, b"event: message", b"id: 7")),
        ("kind:result tool:search => drop", b""),
        ("kind:result tool:search => delay 50ms", event(RESULT, b"event: message", b"id: 7")),
    ],
)
def test_an_event_is_changed_and_the_framing_around_it_stays(text: str, expected: bytes, size: int, capture: Path) -> None:
    first = b": hello\r\nretry: 500\r\n\r\n" + b"id: 6\r\ndata:\r\n\r\n"
    last = b": bye\r\n\r\n"
    with intercepted(capture, text) as (upstream, proxy, client):
        client.send(post(proxy))
        server = upstream.accept()
        server.head()
        body = first + event(RESULT, b"event: message", b"id: 7") + last
        sent = EVENTS + b"".join(chunk(body[at : at + 13]) for at in range(0, len(body), 13)) + b"0\r\n\r\n"
        for at in range(0, len(sent), size):
            server.send(sent[at : at + size])
        assert client.head() == EVENTS
        data = b""
        while (length := int(client.until(b"\r\n"), 16)) > 0:
            data += client.take(length + 2)[:-2]
        assert (data, client.take(2)) == (
            (first + expected + last, b"\r\n") if "delay" not in text else (first + last + expected, b"\r\n")
        )
        client.send(post(proxy, OTHER))
        server.head()
        server.send(answer(OTHER_RESULT))
        assert body_of(client)[1] == OTHER_RESULT
        records, transcript = read_back(proxy)
        assert len(acts(records)) == 1
        assert {finding.culprit for finding in all_findings(transcript)} <= {"unclear"}
        assert b"".join(frame.data for frame in frames_of(proxy, records) if not frame.injected) == body


def frames_of(proxy: Proxy, records: list[Record]) -> list[Frame]:
    stream = proxy.head("response").stream
    return [record for record in records if isinstance(record, Frame) and record.stream == stream]


def test_noise_before_a_delayed_last_event_is_a_chunk_too(capture: Path) -> None:
    with intercepted(capture, 'tool:search => garbage "hm"', "kind:result => delay 50ms") as (upstream, proxy, client):
        client.send(post(proxy))
        server = upstream.accept()
        server.head()
        server.send(EVENTS + chunk(event(RESULT)) + b"0\r\n\r\n")
        client.head()
        assert chunks_of(client, 2) == b"data: hm\n\n" + event(RESULT)
        assert client.take(5) == b"0\r\n\r\n"


def test_a_connection_is_closed_within_an_event(capture: Path) -> None:
    with intercepted(capture, "tool:search => disconnect 20") as (upstream, proxy, client):
        client.send(post(proxy))
        server = upstream.accept()
        server.head()
        server.send(EVENTS + chunk(event(INITIALIZED)) + chunk(event(RESULT, b"id: 7")) + b"0\r\n\r\n")
        client.head()
        assert chunks_of(client, 1) == event(INITIALIZED)
        assert client.rest() == chunk(b"id: 7\r\ndata: " + RESULT[:20])
        records, transcript = read_back(proxy)
        assert acts(records) == [("disconnect 20", "changed")]
        assert {finding.culprit for finding in all_findings(transcript)} <= {"unclear"}


def test_events_with_ids_keep_their_order_behind_a_delayed_one(capture: Path) -> None:
    with intercepted(capture, "kind:result tool:search => delay 100ms") as (upstream, proxy, client):
        client.send(post(proxy))
        server = upstream.accept()
        server.head()
        events = [event(RESULT, b"id: 1"), event(INITIALIZED, b"id: 2"), b": no id\r\n\r\n"]
        server.send(EVENTS + b"".join(map(chunk, events)) + b"0\r\n\r\n")
        client.head()
        assert chunks_of(client, 3) == events[2] + events[0] + events[1]


def test_events_with_a_length_come_in_chunks(capture: Path) -> None:
    with intercepted(capture, "tool:search => set result.content=7") as (upstream, proxy, client):
        client.send(post(proxy))
        server = upstream.accept()
        server.head()
        data = event(RESULT)
        server.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: %d\r\n\r\n%b" % (len(data), data))
        assert b"\r\nTransfer-Encoding: chunked\r\n" in client.head()
        assert b'"content":7' in chunks_of(client, 1)
        assert client.take(5) == b"0\r\n\r\n"


def test_nothing_follows_a_stalled_event(capture: Path) -> None:
    with intercepted(capture, "kind:result tool:search => stall") as (upstream, proxy, client):
        client.send(post(proxy))
        server = upstream.accept()
        server.head()
        server.send(EVENTS + chunk(event(INITIALIZED)) + chunk(event(RESULT)) + chunk(event(INITIALIZED)) + b"0\r\n\r\n")
        eventually(lambda: len(proxy.found(Intercept)) == 2, "both intercepts")
        client.head()
        assert chunks_of(client, 1) == event(INITIALIZED)
        assert client.kept() == b""
        records, transcript = read_back(proxy)
        assert acts(records) == [("stall", "nothing"), ("stall", "nothing")]
        assert all_findings(transcript) == []


# HTTP+SSE


@contextmanager
def with_stream(capture: Path, *texts: str) -> Iterator[tuple[Upstream, Proxy, Wire, Wire]]:
    """Open the stream of HTTP+SSE; yield its ends, the server's first."""
    with between(capture, *(word for text in texts for word in ("--intercept", text))) as (upstream, proxy):
        stream = proxy.connect()
        stream.send(proxy.request(b"GET /sse", b"Accept: text/event-stream"))
        server = upstream.accept()
        server.head()
        server.send(EVENTS + chunk(b"event: endpoint\ndata: http://127.0.0.1:%d/m?s=1\n\n" % upstream.port))
        assert stream.head() == EVENTS
        assert chunks_of(stream, 1) == b"event: endpoint\ndata: http://127.0.0.1:%d/m?s=1\n\n" % proxy.port
        yield upstream, proxy, server, stream


def test_an_error_comes_on_the_stream_of_events(capture: Path) -> None:
    with with_stream(capture, 'tool:search => error -32000 "no"') as (upstream, proxy, _, stream):
        client = proxy.connect()
        client.send(post(proxy, target=b"/m?s=1"))
        assert body_of(client)[0].startswith(b"HTTP/1.1 202 ")
        assert chunks_of(stream, 1) == b"event: message\ndata: " + ERROR + b"\n\n"
        assert not upstream.was_called
        records, transcript = read_back(proxy)
        assert acts(records) == [("error -32000", "nothing")]
        (row,) = rows_of(transcript)
        assert row.response is not None
        assert (row.response.error["code"], row.response.flaws) == (-32000, ("intercepted: sent by mcpspy",))
        assert all_findings(transcript) == []


def test_an_answer_on_the_stream_belongs_to_the_call_that_was_posted(capture: Path) -> None:
    with with_stream(capture, "tool:search => set result.content=7") as (upstream, proxy, server, stream):
        client = proxy.connect()
        posted: Wire | None = None
        for body, result in ((OTHER, OTHER_RESULT), (CALL, RESULT)):
            client.send(post(proxy, body, target=b"/m?s=1"))
            posted = posted or upstream.accept()
            assert body_of(posted)[1] == body
            posted.send(b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n")
            body_of(client)
            server.send(chunk(event(result)))
        assert chunks_of(stream, 1) == event(OTHER_RESULT)
        assert b'"content":7' in chunks_of(stream, 1)


def test_a_dropped_call_is_taken_and_a_disconnect_ends_the_stream(capture: Path) -> None:
    with with_stream(capture, "tool:search => drop", "tool:other => disconnect") as (upstream, proxy, _, stream):
        client = proxy.connect()
        client.send(post(proxy, target=b"/m?s=1"))
        assert body_of(client)[0].startswith(b"HTTP/1.1 202 ")
        client.send(post(proxy, OTHER, target=b"/m?s=1"))
        assert (client.rest(), stream.rest()) == (b"", b"")
        assert not upstream.was_called


# The control socket


def control(*arguments: str) -> subprocess.CompletedProcess[str]:
    return run("control", *arguments)


def listed(label: str = "weather") -> dict[str, Any]:
    return dict(json.loads(control(label, "--json").stdout)["taps"][0])


@pytest.fixture
def labelled(capture: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Upstream, Proxy]]:
    """A proxy in a store of its own, without intercepts."""
    monkeypatch.setenv("MCPSPY_HOME", str(tmp_path))
    with between(capture, "--label", "weather") as ends:
        yield ends


def test_a_controller_takes_hold_of_connections_that_are_open(labelled: tuple[Upstream, Proxy]) -> None:
    upstream, proxy = labelled
    client, stream = proxy.connect(), proxy.connect()
    stream.send(proxy.request(b"GET /mcp", b"Accept: text/event-stream"))
    events = upstream.accept()
    events.head()
    events.send(EVENTS + b"5\r\ndata:")  # half an event
    stream.head()
    client.send(post(proxy))
    server = upstream.accept()
    server.head()
    server.send(answer())
    body_of(client)
    for text in ('method:* => error -32000 "no"', "method:notifications/initialized kind:notification => set method=7"):
        assert control("weather", "--intercept", text, "--keep").returncode == 0
    client.send(post(proxy))
    assert body_of(client)[1] == ERROR
    events.send(b"\r\n" + chunk(INITIALIZED + b"\n\n"))
    assert chunks_of(stream, 2) == b"data:" + INITIALIZED + b"\n\n"  # it was on its way
    events.send(chunk(event(INITIALIZED)))
    assert chunks_of(stream, 1) == event(INITIALIZED.replace(b'"notifications/initialized"', b"7"))
    assert [intercept["id"] for intercept in listed()["intercepts"]] == [1, 2]
    assert control("weather", "--remove", "1", "--remove", "2").returncode == 0
    client.send(post(proxy))
    server.head()
    sent = answer(RESULT)
    server.send(sent)
    assert client.take(len(sent)) == sent
    events.send(b"5;x=y\r\n" + b"data:" + b"\r\n")  # byte for byte again
    assert stream.take(14) == b"5;x=y\r\ndata:\r\n"


@pytest.mark.parametrize("what", ["release", "edit", "drop"])
@pytest.mark.parametrize("side", ["request", "json", "events"])
def test_a_held_message_is_let_go(labelled: tuple[Upstream, Proxy], what: str, side: str) -> None:
    upstream, proxy = labelled
    kind = "request" if side == "request" else "result"
    assert control("weather", "--intercept", f"kind:{kind} tool:search => hold", "--keep").returncode == 0
    client = proxy.connect()
    client.send(post(proxy))
    if side != "request":
        server = upstream.accept()
        server.head()
        server.send(answer() if side == "json" else EVENTS + chunk(event(RESULT)) + b"0\r\n\r\n")
    held = eventually(lambda: next(iter(listed()["held"]), None), "a held message")
    assert (held["sender"], held["payload"].encode()) == (("client", CALL) if side == "request" else ("server", RESULT))
    if what == "edit":
        words = [*MCPSPY, "control", "weather", "--edit", str(held["id"])]
        editor = {**os.environ, "EDITOR": "sed -i -e s/search/other/ -e s/found/edited/"}
        assert subprocess.run(words, env=editor, timeout=DEADLINE_S, check=False).returncode == 0
    else:
        assert control("weather", f"--{what}", str(held["id"])).returncode == 0
    if side == "request" and what != "drop":
        assert body_of(upstream.accept())[1] == (CALL if what == "release" else CALL.replace(b"search", b"other"))
    elif side == "json" and what != "drop":
        assert body_of(client)[1] == (RESULT if what == "release" else RESULT.replace(b"found", b"edited"))
    elif side == "events":
        client.head()
        expected = {"release": event(RESULT), "edit": event(RESULT.replace(b"found", b"edited")), "drop": b""}[what]
        assert chunks_of(client, 1 if expected else 0) + client.take(5) == expected + b"0\r\n\r\n"
    records, transcript = read_back(proxy)
    (act,) = [record for record in records if isinstance(record, Intercept)]
    assert act.action.startswith("hold ")
    assert act.sent == {"release": "unchanged", "edit": "changed", "drop": "nothing"}[what]
    assert all_findings(transcript) == []

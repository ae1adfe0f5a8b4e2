"""Tests of every way in which a side leaves: the other side sees it as without a tap, and the capture says who left."""

import signal
import time
from pathlib import Path

import pytest

from mcpspy.records import End
from tests.deadlines import DEADLINE_S, eventually
from tests.live.http.ends import EVENTS, EVENTS_TO_CLOSE, OK, asked, between, chunk

LEFT_S = 5.0
"""Five times the second within which the upstream has to see that a client has left."""

STOP_S = 2.0
"""Clients and users give two seconds."""

EVENT = b'data: {"jsonrpc":"2.0","id":1,"result":{}}\n\n'


def test_a_client_that_leaves_an_idle_stream_leaves_the_upstream_too(tmp_path: Path) -> None:
    with between(tmp_path / "x.mcpspy") as (upstream, proxy):
        client, server = asked(upstream, proxy, proxy.request(b"GET /sse", b"Accept: text/event-stream"))
        server.head()
        server.send(EVENTS + chunk(EVENT))
        client.take(len(EVENTS + chunk(EVENT)))
        client.close()
        left_s = time.monotonic()
        assert server.rest() == b""
        assert time.monotonic() - left_s < LEFT_S
        server.close()
        assert proxy.ending("response")[0] == "client"


def test_a_client_that_resets_leaves_the_upstream_too(tmp_path: Path) -> None:
    with between(tmp_path / "x.mcpspy") as (upstream, proxy):
        client, server = asked(upstream, proxy, proxy.request())
        server.head()
        client.reset()
        assert server.rest() == b"{}"
        eventually(lambda: "left" in proxy.topics(), "the note that the client left")


BROKEN = {
    "within an event": (EVENTS, chunk(EVENT) + chunk(b'data: {"js')),
    "within a chunk": (EVENTS, chunk(EVENT) + b"100\r\n" + EVENT),
    "between chunks": (EVENTS, chunk(EVENT)),
    "within a chunk size": (EVENTS, chunk(EVENT) + b"10"),
    "within a length": (b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n", b"x" * 99),
    "within an event of an endless body": (EVENTS_TO_CLOSE, EVENT + b'data: {"js'),
}
WAYS = [("close", "abort"), ("reset", "reset")]


@pytest.mark.grid
@pytest.mark.parametrize(("way", "how"), WAYS)
@pytest.mark.parametrize("name", BROKEN)
@pytest.mark.parametrize("line", [b"POST /mcp", b"GET /sse"])
def test_an_upstream_that_dies_is_seen_by_the_client(line: bytes, name: str, way: str, how: str, tmp_path: Path) -> None:
    head, body = BROKEN[name]
    with between(tmp_path / "x.mcpspy") as (upstream, proxy):
        client, server = asked(upstream, proxy, proxy.request(line, b"Accept: text/event-stream"))
        server.head()
        server.take(0 if line.startswith(b"GET") else 2)
        server.send(head + body)
        assert client.head() == head
        assert client.take(len(body) - 4) == body[:-4]  # all but what may be held back, so that a reset does not overtake it
        getattr(server, way)()
        try:
            got = client.rest()
            was_reset = False
        except ConnectionResetError:
            got, was_reset = client.kept(), True
        assert body[:-4] + got == body
        assert was_reset == (way == "reset" and head == EVENTS_TO_CLOSE)
        assert proxy.ending("response") == ("server", "eof" if way == "close" and head == EVENTS_TO_CLOSE else how)


def test_an_upstream_that_closes_an_idle_connection_closes_the_clients(tmp_path: Path) -> None:
    with between(tmp_path / "x.mcpspy") as (upstream, proxy):
        client, server = asked(upstream, proxy, proxy.request())
        server.head()
        server.send(OK)
        client.take(len(OK))
        server.close()
        assert client.rest() == b""
        assert len(proxy.records()) > 0
        assert "injected" not in proxy.capture.read_text()


UNANSWERED = {
    "nothing": b"",
    "half a head": b"HTTP/1.1 200 OK\r\nContent-Le",
    "an interim response": b"HTTP/1.1 100 Continue\r\n\r\n",
}


@pytest.mark.parametrize("way", ["close", "reset"])
@pytest.mark.parametrize("name", UNANSWERED)
def test_an_upstream_that_closes_without_an_answer_is_one_clean_502_and_no_second_request(
    name: str, way: str, tmp_path: Path
) -> None:
    with between(tmp_path / "x.mcpspy") as (upstream, proxy):
        client, server = asked(upstream, proxy, proxy.request())
        server.head()
        server.take(2)
        server.send(UNANSWERED[name])
        if name == "an interim response":
            client.head()
        getattr(server, way)()
        answer = client.rest()
        assert answer.startswith(b"HTTP/1.1 502 Bad Gateway\r\n")
        assert answer.count(b"HTTP/1.1") == 1
        assert b"jsonrpc" not in answer
        assert not upstream.was_called


def test_a_stale_connection_gets_one_request_or_one_502_and_never_a_second_request(tmp_path: Path) -> None:
    with between(tmp_path / "x.mcpspy") as (upstream, proxy):
        client, server = asked(upstream, proxy, proxy.request())
        server.head()
        server.take(2)
        server.send(OK)
        client.take(len(OK))
        client.send(proxy.request())
        server.head()
        server.close()
        assert client.rest().startswith(b"HTTP/1.1 502 ")
        assert not upstream.was_called


def test_an_upstream_that_refuses_connections_is_a_502(tmp_path: Path) -> None:
    with between(tmp_path / "x.mcpspy") as (upstream, proxy):
        upstream.close()
        client = proxy.connect()
        client.send(proxy.request(body=b"x" * 1_000_000))
        answer = client.rest()
        assert answer.startswith(b"HTTP/1.1 502 Bad Gateway\r\n")
        assert b"cannot be reached" in answer
        assert proxy.head("response").injected


def test_a_response_head_that_is_none_is_relayed_as_it_comes_and_noted(tmp_path: Path) -> None:
    junk = b"HTTP/1.1 200 OK\nContent-Length: 2\n\nok"
    with between(tmp_path / "x.mcpspy") as (upstream, proxy):
        client, server = asked(upstream, proxy, proxy.request())
        server.head()
        server.take(2)
        server.send(junk)
        server.close()
        assert client.rest() == junk
        assert "response-refused" in proxy.topics()


def test_a_malformed_chunk_is_relayed_as_it_comes_and_noted(tmp_path: Path) -> None:
    junk = EVENTS + chunk(EVENT) + b"zz\r\nrest"
    with between(tmp_path / "x.mcpspy") as (upstream, proxy):
        client, server = asked(upstream, proxy, proxy.request(b"GET /sse", b"Accept: text/event-stream"))
        server.head()
        server.send(junk)
        server.close()
        assert client.rest() == junk
        assert "response-refused" in proxy.topics()
        assert proxy.ending("response") == ("server", "abort")


def test_an_answer_that_comes_before_the_request_is_whole_arrives(tmp_path: Path) -> None:
    answer = b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    with between(tmp_path / "x.mcpspy") as (upstream, proxy):
        client, server = asked(upstream, proxy, proxy.request(body=b"x" * 1000)[:-500])
        server.head()
        server.take(500)
        server.send(answer)
        server.close()
        assert client.rest() == answer
        assert proxy.ending("request") == ("server", "broken")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_open_streams_within_two_seconds_and_the_capture_is_whole(number: signal.Signals, tmp_path: Path) -> None:
    with between(tmp_path / "x.mcpspy") as (upstream, proxy):
        client, server = asked(upstream, proxy, proxy.request(b"GET /sse", b"Accept: text/event-stream"))
        server.head()
        server.send(EVENTS + chunk(EVENT))
        client.take(len(EVENTS + chunk(EVENT)))
        silent = proxy.connect()
        half, _ = asked(upstream, proxy, proxy.request(body=b"x" * 100)[:-50])
        began_s = time.monotonic()
        proxy.process.send_signal(number)
        assert proxy.process.wait(DEADLINE_S) == 0
        assert time.monotonic() - began_s < STOP_S
        assert client.rest() == silent.rest() == half.rest() == b""
        assert server.rest() == b""
        assert isinstance(proxy.records()[-1], End)
        assert proxy.ending("response") == ("mcpspy", "abort")


def test_a_tap_is_there_when_its_first_line_is_and_ends_well_at_once(tmp_path: Path) -> None:
    with between(tmp_path / "x.mcpspy") as (_, proxy):
        proxy.stop()
        assert isinstance(proxy.records()[-1], End)


def test_what_was_received_whole_is_in_the_capture_of_a_tap_that_is_killed(tmp_path: Path) -> None:
    with between(tmp_path / "x.mcpspy") as (upstream, proxy):
        client, server = asked(upstream, proxy, proxy.request(b"GET /sse", b"Accept: text/event-stream"))
        server.head()
        server.send(EVENTS)
        client.take(len(EVENTS))
        for number in range(20):
            event = b"id: %d\n" % number + EVENT
            server.send(chunk(event))
            client.take(len(chunk(event)))
        proxy.process.kill()
        proxy.process.wait(DEADLINE_S)
        assert proxy.body("response").count(EVENT) == 20


def test_the_answer_to_a_head_request_that_cannot_be_forwarded_has_no_body(tmp_path: Path) -> None:
    with between(tmp_path / "x.mcpspy") as (upstream, proxy):
        upstream.close()
        client = proxy.connect()
        client.send(b"HEAD / HTTP/1.1\r\nHost: %b\r\n\r\n" % proxy.host)
        head = client.head()
        assert head.startswith(b"HTTP/1.1 502 ")
        assert client.rest() == b""


def test_a_request_that_is_refused_behind_its_own_answer_is_recorded_to_its_end(tmp_path: Path) -> None:
    with between(tmp_path / "x.mcpspy") as (upstream, proxy):
        head = b"POST / HTTP/1.1\r\nHost: %b\r\nTransfer-Encoding: chunked\r\n\r\n" % proxy.host
        client, server = asked(upstream, proxy, head + b"2\r\nok\r\n")
        server.head()
        server.send(OK)
        assert client.take(len(OK)) == OK
        client.send(b"zz\r\n")
        assert client.rest() == b""
        assert proxy.ending("request") == ("mcpspy", "abort")

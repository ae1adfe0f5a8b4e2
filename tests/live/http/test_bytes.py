"""An HTTP tap passes on what came, byte for byte, both ways, and records the same bytes."""

import gzip
from pathlib import Path

import pytest

from tests.live.http.ends import OK, asked, between, chunk

CHUNKS = b"".join(
    (b"5;why=not\r\nhello\r\n", b"0000001\r\n,\r\n", b"A ; a=b\r\n0123456789\r\n", b"0;last\r\nX-Sum: 1\r\nx-sum: 2\r\n\r\n")
)
CHUNKED = b"Transfer-Encoding: chunked\r\n\r\n"

RESPONSES = {
    "of a length": (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", b"hello"),
    "in chunks": (b"HTTP/1.1 200 OK\r\n" + CHUNKED + CHUNKS, b"hello,0123456789"),
    "without a body": (b"HTTP/1.1 204 No Content\r\n\r\n", b""),
    "not modified, with a length": (b'HTTP/1.1 304 Not Modified\r\nETag: "x"\r\nContent-Length: 99\r\n\r\n', b""),
    "accepted": (b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n", b""),
    "with fields in disorder": (b"HTTP/1.1 200 Fine, thanks\r\nb: 1\r\nA:2\r\nB:  3 \r\nb: 1\r\ncontent-LENGTH: 1\r\n\r\nx", b"x"),
    "with bytes that are no UTF-8": (b"HTTP/1.1 200 \xff\r\nX: \xe9\r\nContent-Length: 3\r\n\r\n\xff\x00\xfe", b"\xff\x00\xfe"),
    "compressed": (
        b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n%b"
        % (len(gzip.compress(b"{}", mtime=0)), gzip.compress(b"{}", mtime=0)),
        gzip.compress(b"{}", mtime=0),
    ),
    "of events": (
        b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n" + CHUNKED + chunk(b": ping\n\nid: 1\r\ndata:")
        + chunk(b" {}\r\n\r\n\r") + b"0\r\n\r\n",
        b": ping\n\nid: 1\r\ndata: {}\r\n\r\n\r",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", RESPONSES)
def test_a_response_arrives_as_it_was_sent_and_is_recorded_as_it_came(name: str, tmp_path: Path) -> None:
    response, body = RESPONSES[name]
    with between(tmp_path / "x.mcpspy") as (upstream, proxy):
        client, server = asked(upstream, proxy, proxy.request())
        server.head()
        server.send(response)
        assert client.take(len(response)) == response
        assert proxy.ending("response") == ("server", "eof")
        assert proxy.head("response").head == response[: response.index(b"\r\n\r\n") + 4]
        assert proxy.body("response") == body
        assert proxy.head("response").forwarded is None


@pytest.mark.parametrize("name", ["in chunks", "of events", "with fields in disorder"])
def test_a_response_that_comes_byte_by_byte_arrives_as_it_was_sent(name: str, tmp_path: Path) -> None:
    response, body = RESPONSES[name]
    with between(tmp_path / "x.mcpspy") as (upstream, proxy):
        client, server = asked(upstream, proxy, proxy.request())
        server.head()
        for at in range(len(response)):
            server.send(response[at : at + 1])
        assert client.take(len(response)) == response
        assert proxy.body("response") == body


def test_a_response_that_ends_with_the_connection_ends_the_clients_too(tmp_path: Path) -> None:
    response = b"HTTP/1.0 200 OK\r\nContent-Type: application/json\r\n\r\n" + b'{"a": 1}'
    with between(tmp_path / "x.mcpspy") as (upstream, proxy):
        client, server = asked(upstream, proxy, proxy.request())
        server.send(response)
        server.head()
        server.take(2)
        server.close()
        assert client.rest() == response
        assert proxy.body("response") == b'{"a": 1}'
        assert proxy.ending("response") == ("server", "eof")


def test_a_request_arrives_as_it_was_sent_but_for_the_name_of_the_server(tmp_path: Path) -> None:
    head = (
        b"POST /mcp?a=%%2F&b=%%20 HTTP/1.1\r\nx-a: 1\r\nhOST:   %b  \r\nX-A:2\r\nx-a: 1\r\nTransfer-Encoding: chunked\r\n\r\n"
    )
    with between(tmp_path / "x.mcpspy") as (upstream, proxy):
        client, server = asked(upstream, proxy, head % proxy.host + CHUNKS)
        forwarded = head % (b"127.0.0.1:%d" % upstream.port)
        assert server.take(len(forwarded + CHUNKS)) == forwarded + CHUNKS
        server.send(OK)
        assert client.take(len(OK)) == OK
        assert proxy.head("request").head == head % proxy.host
        assert proxy.head("request").forwarded == forwarded
        assert proxy.body("request") == b"hello,0123456789"


def test_a_head_that_names_the_upstream_already_is_no_other(tmp_path: Path) -> None:
    with between(tmp_path / "x.mcpspy", "--allowed-host", "127.0.0.1") as (upstream, proxy):
        request = b"GET / HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n" % upstream.port
        client, server = asked(upstream, proxy, request)
        assert server.head() == request
        server.send(OK)
        client.take(len(OK))
        assert proxy.head("request").forwarded is None


def test_the_answer_to_a_head_request_has_no_body_whatever_its_length_says(tmp_path: Path) -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"
    with between(tmp_path / "x.mcpspy") as (upstream, proxy):
        client, server = asked(upstream, proxy, b"HEAD / HTTP/1.1\r\nHost: %b\r\n\r\n" % proxy.host + proxy.request())
        server.send(head + OK)
        assert client.take(len(head + OK)) == head + OK
        assert proxy.body("response", 0) == b""
        assert proxy.body("response", 1) == b"ok"


def test_interim_responses_pass_and_are_recorded(tmp_path: Path) -> None:
    interim = b"HTTP/1.1 100 Continue\r\n\r\n"
    with between(tmp_path / "x.mcpspy") as (upstream, proxy):
        head, _, body = proxy.request(b"POST /mcp", b"Expect: 100-continue").partition(b"{}")
        client, server = asked(upstream, proxy, head)
        server.head()
        server.send(interim)
        assert client.take(len(interim)) == interim
        client.send(b"{}" + body)
        assert server.take(2) == b"{}"
        server.send(b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" + OK)
        assert client.take(len(OK) + 40).endswith(OK)
        assert [record.head[9:12] for record in (proxy.head("response", nth) for nth in range(3))] == [b"100", b"103", b"200"]


def test_requests_that_do_not_wait_for_each_other_are_answered_in_their_order(tmp_path: Path) -> None:
    with between(tmp_path / "x.mcpspy") as (upstream, proxy):
        client, server = asked(upstream, proxy, b"".join(proxy.request(body=b"%d" % number) for number in range(5)))
        for number in range(5):
            server.head()
            assert server.take(1) == b"%d" % number
        answers = b"".join(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n%d" % number for number in range(5))
        server.send(answers)
        assert client.take(len(answers)) == answers
        for number in range(5):
            assert proxy.body("request", number) == proxy.body("response", number) == b"%d" % number
            assert proxy.head("request", number).transaction == proxy.head("response", number).transaction == number + 1


def test_one_connection_of_the_client_is_one_to_the_upstream(tmp_path: Path) -> None:
    with between(tmp_path / "x.mcpspy") as (upstream, proxy):
        client, server = asked(upstream, proxy, proxy.request())
        for _ in range(3):
            server.head()
            server.take(2)
            server.send(OK)
            assert client.take(len(OK)) == OK
            client.send(proxy.request())
        server.head()
        assert not upstream.was_called


def test_an_upgrade_is_relayed_and_recorded_as_bytes(tmp_path: Path) -> None:
    switched = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n"
    with between(tmp_path / "x.mcpspy") as (upstream, proxy):
        request = proxy.request(b"GET /ws", b"Upgrade: websocket", b"Connection: Upgrade")
        client, server = asked(upstream, proxy, request)
        server.head()
        server.send(switched + b"\x81\x02hi")
        assert client.take(len(switched) + 4) == switched + b"\x81\x02hi"
        client.send(b"\x81\x80\x00GET / HTTP/1.1\r\n\r\n")
        assert server.take(21) == b"\x81\x80\x00GET / HTTP/1.1\r\n\r\n"
        client.close()
        assert server.rest() == b""
        assert proxy.ending("response", 1) == ("client", "eof")
        assert proxy.body("request", 1) == b"\x81\x80\x00GET / HTTP/1.1\r\n\r\n"
        assert proxy.body("response", 1) == b"\x81\x02hi"

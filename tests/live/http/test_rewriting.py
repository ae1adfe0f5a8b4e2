"""Names that a tap rewrites, and those that stay: in `endpoint` events, redirects and OAuth's metadata."""

import json
from pathlib import Path

import pytest

from mcpspy.records import Frame, Note
from tests.live.http.ends import EVENTS, EVENTS_TO_CLOSE, Proxy, Upstream, Wire, asked, between, chunk

SSE = b"Accept: text/event-stream"
TYPED = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"


def named(text: bytes, upstream: Upstream, proxy: Proxy) -> bytes:
    """Put the addresses of this test into `text`."""
    return text.replace(b"UPSTREAM", b"%d" % upstream.port).replace(b"PORT", b"%d" % proxy.port)


def opened(upstream: Upstream, proxy: Proxy, host: bytes = b"127.0.0.1:PORT") -> tuple[Wire, Wire]:
    """Make a client that has asked for a stream of events under this name."""
    own = named(host, upstream, proxy)
    client, server = asked(upstream, proxy, b"GET /sse HTTP/1.1\r\nHost: %b\r\n%b\r\n\r\n" % (own, SSE))
    server.head()
    return client, server


MAPPED = [
    (b"127.0.0.1:PORT", b"http://127.0.0.1:UPSTREAM/messages?session_id=1&x=%2F", b"http://127.0.0.1:PORT/messages?session_id=1&x=%2F"),
    (b"localhost:PORT", b"http://127.0.0.1:UPSTREAM/m", b"http://localhost:PORT/m"),
    (b"LocalHost:PORT", b"http://127.0.0.1:UPSTREAM/m", b"http://LocalHost:PORT/m"),
    (b"127.0.0.1:PORT", b"http://localhost:UPSTREAM/m", b"http://127.0.0.1:PORT/m"),
    (b"127.0.0.1:PORT", b"http://0.0.0.0:UPSTREAM/m", b"http://127.0.0.1:PORT/m"),
    (b"127.0.0.1:PORT", b"http://[::1]:UPSTREAM/m#f", b"http://127.0.0.1:PORT/m#f"),
    (b"127.0.0.1:PORT", b"HTTP://127.0.0.1:UPSTREAM", b"http://127.0.0.1:PORT"),
    (b"127.0.0.1:PORT", b"//127.0.0.1:UPSTREAM/m", b"//127.0.0.1:PORT/m"),
    (b"127.0.0.1:PORT", b"http://127.0.0.1:UPSTREAM/\xc3\xa9/\xff", b"http://127.0.0.1:PORT/\xc3\xa9/\xff"),
    (b"127.0.0.1:PORT", b'{"uri": "http://127.0.0.1:UPSTREAM/m", "n":1e400}', b'{"uri": "http://127.0.0.1:PORT/m", "n":1e400}'),
    (b"127.0.0.1:PORT", rb'{"uri":"http:\/\/127.0.0.1:UPSTREAM\/m"}', b'{"uri":"http://127.0.0.1:PORT/m"}'),
]  # fmt: skip


@pytest.mark.grid(5)
@pytest.mark.parametrize(("host", "sent", "arrives"), MAPPED)
def test_an_endpoint_at_the_upstream_becomes_one_at_the_name_that_the_client_used(
    host: bytes, sent: bytes, arrives: bytes, tmp_path: Path
) -> None:
    with between(tmp_path / "x.mcpspy") as (upstream, proxy):
        client, server = opened(upstream, proxy, host)
        event, other = (b"event: endpoint\ndata: " + named(text, upstream, proxy) + b"\n\n" for text in (sent, arrives))
        server.send(EVENTS + chunk(event) + chunk(b"data: 1\n\n") + b"0\r\n\r\n")
        expected = EVENTS + chunk(other + b"data: 1\n\n") + b"0\r\n\r\n"
        assert client.take(len(expected)) == expected
        assert proxy.body("response") == event + b"data: 1\n\n"
        assert [frame.forwarded for frame in proxy.found(Frame)] == [other, None]


UNTOUCHED = [
    b"/messages/?session_id=1",
    b"messages",
    b"?x=http://127.0.0.1:UPSTREAM/",
    b"ws://127.0.0.1:UPSTREAM/m",
    b"/@127.0.0.1:UPSTREAM/m",
    b'{"url": "http://127.0.0.1:UPSTREAM/m"}',
    b'{"uri": 5}',
    b"{",
    b"",
]


@pytest.mark.parametrize("sent", UNTOUCHED)
def test_an_endpoint_that_names_no_origin_of_the_upstream_is_untouched(sent: bytes, tmp_path: Path) -> None:
    with between(tmp_path / "x.mcpspy") as (upstream, proxy):
        client, server = opened(upstream, proxy)
        body = chunk(b"event: endpoint\ndata: " + named(sent, upstream, proxy) + b"\n\n") + b"3;x=y\r\n:\n\n\r\n"
        server.send(EVENTS + body)
        assert client.take(len(EVENTS + body)) == EVENTS + body
        assert [frame.forwarded for frame in proxy.found(Frame)] == [None, None]
        assert "endpoint" not in proxy.topics()


THIRD = [
    b"http://127.0.0.1:1/m",
    b"http://evil.example/m",
    b"https://evil.example:UPSTREAM/m",
    b"//evil.example/m",
    b"http://user@127.0.0.1:UPSTREAM/m",
    b"http://user:s3cr3t@127.0.0.1:UPSTREAM/m",
    b"//user:s3cr3t@127.0.0.1:UPSTREAM/m",
    rb'{"uri":"http:\/\/user:s3cr3t@127.0.0.1:UPSTREAM\/m"}',
    b"http://127.0.0.1:UPSTREAM@evil.example/m",
]


@pytest.mark.parametrize("sent", THIRD)
def test_an_endpoint_of_somebody_else_passes_as_it_is_and_is_noted(sent: bytes, tmp_path: Path) -> None:
    with between(tmp_path / "x.mcpspy") as (upstream, proxy):
        client, server = opened(upstream, proxy)
        body = chunk(b"event: endpoint\ndata: " + named(sent, upstream, proxy) + b"\n\n")
        server.send(EVENTS + body)
        assert client.take(len(EVENTS + body)) == EVENTS + body
        assert [frame.forwarded for frame in proxy.found(Frame)] == [None]
        (note,) = [note for note in proxy.found(Note) if note.topic == "endpoint"]
        assert "s3cr3t" not in note.text


@pytest.mark.parametrize("sent", [url for url in THIRD if b"s3cr3t" in url])
def test_the_password_in_an_endpoint_reaches_no_disk(sent: bytes, tmp_path: Path) -> None:
    with between(tmp_path / "x.mcpspy", redact="credentials") as (upstream, proxy):
        client, server = opened(upstream, proxy)
        body = chunk(b"event: endpoint\ndata: " + named(sent, upstream, proxy) + b"\n\n")
        server.send(EVENTS + body)
        assert b"s3cr3t" in client.take(len(EVENTS + body))
        assert "endpoint" in proxy.topics()
        assert b"s3cr3t" not in (tmp_path / "x.mcpspy").read_bytes()


def test_an_endpoint_of_somebody_else_is_mapped_if_the_user_says_so(tmp_path: Path) -> None:
    with between(tmp_path / "x.mcpspy", "--allow-endpoint", "http://gateway.example") as (upstream, proxy):
        client, server = opened(upstream, proxy)
        server.send(EVENTS + chunk(b"event: endpoint\ndata: http://gateway.example/m\n\n"))
        expected = EVENTS + chunk(b"event: endpoint\ndata: http://127.0.0.1:%d/m\n\n" % proxy.port)
        assert client.take(len(expected)) == expected
        assert proxy.topics() == []


def dechunked(body: bytes) -> bytes:
    """Read the payload of a chunked body that ends with a last chunk."""
    payload = b""
    while True:
        size, _, body = body.partition(b"\r\n")
        length = int(size.partition(b";")[0], 16)
        if not length:
            return payload
        payload, body = payload + body[:length], body[length:]
        assert body.startswith(b"\r\n")
        body = body[2:]


@pytest.mark.grid
@pytest.mark.parametrize("size", [1, 7, 1000])
@pytest.mark.parametrize("step", [1, 3, 1000])
@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_an_endpoint_is_mapped_however_it_is_cut(size: int, step: int, end: bytes, tmp_path: Path) -> None:
    with between(tmp_path / "x.mcpspy") as (upstream, proxy):
        client, server = opened(upstream, proxy)
        lines = (
            b"\xef\xbb\xbf: hello",
            b"",
            b"retry: 5",
            b"",
            b"id: 0",
            b"event: endpoint",
            b"data: http://127.0.0.1:UPSTREAM/m",
        )
        before = named(end.join((*lines, b"", b"")), upstream, proxy)
        after = b"data: http://127.0.0.1:%d/other" % upstream.port + 2 * end
        body = before + after + after
        sent = b"".join(chunk(body[at : at + size]) for at in range(0, len(body), size)) + b"0\r\n\r\n"
        server.send(EVENTS)
        for at in range(0, len(sent), step):
            server.send(sent[at : at + step])
        assert client.head() == EVENTS
        got = b""
        while not got.endswith(b"0\r\n\r\n"):
            got += client.take(1)
        expected = before.replace(b"%d/m" % upstream.port, b"%d/m" % proxy.port) + after + after
        assert dechunked(got) == expected
        assert proxy.body("response") == body
        assert len([frame for frame in proxy.found(Frame) if frame.forwarded is not None]) == 1


def test_an_endpoint_in_a_body_without_chunks_is_mapped(tmp_path: Path) -> None:
    with between(tmp_path / "x.mcpspy") as (upstream, proxy):
        client, server = opened(upstream, proxy)
        server.send(EVENTS_TO_CLOSE + b"event: endpoint\ndata: http://127.0.0.1:%d/m\n\n" % upstream.port)
        expected = EVENTS_TO_CLOSE + b"event: endpoint\ndata: http://127.0.0.1:%d/m\n\n" % proxy.port
        assert client.take(len(expected)) == expected
        server.send(b"data: 1\n\n")
        server.close()
        assert client.rest() == b"data: 1\n\n"


def test_behind_the_first_message_no_endpoint_is_looked_for(tmp_path: Path) -> None:
    with between(tmp_path / "x.mcpspy") as (upstream, proxy):
        client, server = opened(upstream, proxy)
        body = chunk(b"data: {}\n\n") + chunk(b"event: endpoint\ndata: http://127.0.0.1:%d/m\n\n" % upstream.port)
        server.send(EVENTS + body)
        assert client.take(len(EVENTS + body)) == EVENTS + body


def test_comments_before_any_event_pass_at_once(tmp_path: Path) -> None:
    with between(tmp_path / "x.mcpspy") as (upstream, proxy):
        client, server = opened(upstream, proxy)
        server.send(EVENTS)
        client.head()
        for number in range(3):
            server.send(chunk(b": %d\n\n" % number))
            assert client.take(len(chunk(b": 0\n\n"))) == chunk(b": %d\n\n" % number)


def test_a_get_that_is_answered_by_something_else_is_not_held_back(tmp_path: Path) -> None:
    with between(tmp_path / "x.mcpspy") as (upstream, proxy):
        client, server = opened(upstream, proxy)
        head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
        server.send(head + b"5\r\n[1,2,\r\n"[:-2])
        assert client.take(len(head) + 8) == head + b"5\r\n[1,2,"


def test_a_stream_of_events_is_asked_for_without_compression(tmp_path: Path) -> None:
    with between(tmp_path / "x.mcpspy") as (upstream, proxy):
        request = proxy.request(b"GET /sse", SSE, b"accept-encoding: gzip, br")
        _, server = asked(upstream, proxy, request)
        forwarded = request.replace(b"gzip, br", b"identity").replace(b"%d" % proxy.port, b"%d" % upstream.port)
        assert server.head() == forwarded
        assert proxy.head("request").head == request
        assert proxy.head("request").forwarded == forwarded


HEADS = [
    (b"Location: http://127.0.0.1:UPSTREAM/mcp/?a=%20", b"Location: http://127.0.0.1:PORT/mcp/?a=%20"),
    (b"Location: /mcp/", b"Location: /mcp/"),
    (b"Location: http://localhost:UPSTREAM/mcp/", b"Location: http://127.0.0.1:PORT/mcp/"),
    (b"Location: http://0.0.0.0:UPSTREAM/mcp/", b"Location: http://127.0.0.1:PORT/mcp/"),
    (b"Location: HTTP://[::1]:UPSTREAM/mcp/#x", b"Location: http://127.0.0.1:PORT/mcp/#x"),
    (b"Location: //LocalHost:UPSTREAM/mcp/?a", b"Location: //127.0.0.1:PORT/mcp/?a"),
    (b"Location: //evil.example:UPSTREAM/", b"Location: //evil.example:UPSTREAM/"),
    (b"Location: http://localhost:1/", b"Location: http://localhost:1/"),
    (b"Location: https://127.0.0.1:UPSTREAM/mcp", b"Location: https://127.0.0.1:UPSTREAM/mcp"),
    (b"Location: http://u@localhost:UPSTREAM/mcp", b"Location: http://u@localhost:UPSTREAM/mcp"),
    (b"location:http://evil.example/", b"location:http://evil.example/"),
    (
        b'WWW-Authenticate: Bearer error="x", resource_metadata="http://127.0.0.1:UPSTREAM/.well-known/y", scope="z"',
        b'WWW-Authenticate: Bearer error="x", resource_metadata="http://127.0.0.1:PORT/.well-known/y", scope="z"',
    ),
    (
        b'WWW-Authenticate: Bearer resource_metadata="http://localhost:UPSTREAM/.well-known/y"',
        b'WWW-Authenticate: Bearer resource_metadata="http://127.0.0.1:PORT/.well-known/y"',
    ),
    (b"WWW-Authenticate: Basic", b"WWW-Authenticate: Basic"),
    (b"X: http://127.0.0.1:UPSTREAM/", b"X: http://127.0.0.1:UPSTREAM/"),
]


@pytest.mark.grid(6)
@pytest.mark.parametrize(("sent", "arrives"), HEADS)
def test_addresses_in_heads_are_mapped_where_they_are_the_upstreams(sent: bytes, arrives: bytes, tmp_path: Path) -> None:
    with between(tmp_path / "x.mcpspy") as (upstream, proxy):
        client, server = asked(upstream, proxy, proxy.request())
        server.head()
        before, after = (
            b"HTTP/1.1 307 Moved\r\nA: 1\r\n%b\r\nContent-Length: 0\r\n\r\n" % named(text, upstream, proxy)
            for text in (sent, arrives)
        )
        server.send(before)
        assert client.head() == after
        assert proxy.head("response").head == before
        assert proxy.head("response").forwarded == (after if after != before else None)


@pytest.mark.parametrize("framed", ["by length", "in chunks"])
def test_the_metadata_of_a_protected_resource_names_the_proxy(framed: str, tmp_path: Path) -> None:
    with between(tmp_path / "x.mcpspy") as (upstream, proxy):
        line = b"GET /.well-known/oauth-protected-resource/mcp"
        client, server = asked(upstream, proxy, proxy.request(line, b"Accept-Encoding: gzip"))
        assert b"identity" in server.head()
        metadata = b'{"resource":"http://127.0.0.1:%d/mcp", "authorization_servers" :["http://127.0.0.1:%d/as"]}'
        body, expected = (metadata % (port, port) for port in (upstream.port, proxy.port))
        is_chunked = framed == "in chunks"
        framing = b"Transfer-Encoding: chunked" if is_chunked else b"Content-Length: %d" % len(body)
        end = b"0\r\n\r\n"
        server.send(TYPED + framing + b"\r\n\r\n" + (chunk(body[:9]) + chunk(body[9:]) + end if is_chunked else body))
        assert b"Content-Length: %d\r\n" % len(expected) in client.head()
        assert client.take(len(expected)) == expected
        assert json.loads(expected)["resource"] == f"http://127.0.0.1:{proxy.port}/mcp"
        assert proxy.body("response") == body
        assert [frame.forwarded for frame in proxy.found(Frame)] == [expected]


@pytest.mark.parametrize("resource", [b"https://mcp.example.com", b"http://localhost:UPSTREAM/mcp"])
def test_metadata_of_a_resource_that_the_client_did_not_ask_for_passes_as_it_came(resource: bytes, tmp_path: Path) -> None:
    with between(tmp_path / "x.mcpspy") as (upstream, proxy):
        client, server = asked(upstream, proxy, proxy.request(b"GET /.well-known/oauth-protected-resource"))
        server.head()
        answer = (
            TYPED
            + b"Transfer-Encoding: chunked\r\n\r\n"
            + chunk(b'{"resource":"%b"}' % named(resource, upstream, proxy))
            + b"0\r\nX: 1\r\n\r\n"
        )
        server.send(answer)
        assert client.take(len(answer)) == answer


def test_metadata_that_breaks_off_is_passed_on_as_far_as_it_came(tmp_path: Path) -> None:
    with between(tmp_path / "x.mcpspy") as (upstream, proxy):
        client, server = asked(upstream, proxy, proxy.request(b"GET /.well-known/oauth-protected-resource"))
        server.head()
        answer = TYPED + b'Content-Length: 100\r\n\r\n{"resource":'
        server.send(answer)
        server.close()
        assert client.rest() == answer


def test_fields_that_the_user_wants_go_into_every_request(tmp_path: Path) -> None:
    options = ("--header", "Authorization: Bearer xyz", "--header", "X-Team: a: b")
    with between(tmp_path / "x.mcpspy", *options) as (upstream, proxy):
        _, server = asked(upstream, proxy, proxy.request(b"GET /mcp", b"authorization: old", b"Z: 1"))
        fields = (b"Host: 127.0.0.1:%d" % upstream.port, b"authorization: Bearer xyz", b"Z: 1", b"X-Team: a: b")
        assert server.head() == b"\r\n".join((b"GET /mcp HTTP/1.1", *fields, b"", b""))


def test_a_proof_that_cannot_work_is_noted(tmp_path: Path) -> None:
    with between(tmp_path / "x.mcpspy") as (upstream, proxy):
        _, server = asked(upstream, proxy, proxy.request(b"GET /mcp", b"DPoP: eyJ"))
        server.head()
        assert proxy.topics() == ["dpop"]

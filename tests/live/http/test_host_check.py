"""The host check of an HTTP tap: a refused request is answered and recorded, and never reaches the upstream."""

from pathlib import Path

import pytest

from mcpspy.records import Frame
from tests.live.http.ends import OK, Proxy, Upstream, Wire, asked, between

FOLLOWED = b"Sec-Fetch-Mode: navigate\r\nSec-Fetch-Dest: document\r\n"
"""Headers of a browser that follows a link."""

REFUSED = {
    "a foreign Host": (421, b"GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n"),
    "a foreign Host with our port": (421, b"GET / HTTP/1.1\r\nHost: evil.example:PORT\r\n\r\n"),
    "a Host that begins like a loopback one": (421, b"GET / HTTP/1.1\r\nHost: 127.0.0.1.evil.example:PORT\r\n\r\n"),
    "a loopback Host with another port": (421, b"GET / HTTP/1.1\r\nHost: 127.0.0.1:1\r\n\r\n"),
    "a loopback Host without a port": (421, b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"),
    "the address of every interface": (421, b"GET / HTTP/1.1\r\nHost: 0.0.0.0:PORT\r\n\r\n"),
    "no Host": (400, b"GET / HTTP/1.1\r\n\r\n"),
    "no Host in HTTP/1.0": (400, b"GET / HTTP/1.0\r\n\r\n"),
    "an empty Host": (400, b"GET / HTTP/1.1\r\nHost:\r\n\r\n"),
    "two Hosts": (400, b"GET / HTTP/1.1\r\nHost: localhost:PORT\r\nHost: localhost:PORT\r\n\r\n"),
    "userinfo in Host": (400, b"GET / HTTP/1.1\r\nHost: localhost:PORT@evil.example\r\n\r\n"),
    "a user in Host": (400, b"GET / HTTP/1.1\r\nHost: evil@localhost:PORT\r\n\r\n"),
    "a foreign Origin": (403, b"GET / HTTP/1.1\r\nHost: localhost:PORT\r\nOrigin: http://evil.example\r\n\r\n"),
    "an Origin that begins like ours": (
        403,
        b"GET / HTTP/1.1\r\nHost: localhost:PORT\r\nOrigin: http://localhost:PORT.evil.example\r\n\r\n",
    ),
    "an opaque Origin": (403, b"GET / HTTP/1.1\r\nHost: localhost:PORT\r\nOrigin: null\r\n\r\n"),
    "an empty Origin": (403, b"GET / HTTP/1.1\r\nHost: localhost:PORT\r\nOrigin:\r\n\r\n"),
    "a picture on a foreign page": (403, b"GET /sse HTTP/1.1\r\nHost: localhost:PORT\r\nSec-Fetch-Site: cross-site\r\n\r\n"),
    "a foreign frame": (
        403,
        b"GET / HTTP/1.1\r\nHost: localhost:PORT\r\nSec-Fetch-Site: Cross-Site\r\n"
        + FOLLOWED.replace(b"document", b"iframe")
        + b"\r\n",
    ),
    "a foreign form without an Origin": (
        403,
        b"POST / HTTP/1.1\r\nHost: localhost:PORT\r\nSec-Fetch-Site: cross-site\r\nContent-Length: 0\r\n" + FOLLOWED + b"\r\n",
    ),
    "a kind of page that is not known": (403, b"GET / HTTP/1.1\r\nHost: localhost:PORT\r\nSec-Fetch-Site: x\r\n\r\n"),
    "two Origins": (
        400,
        b"GET / HTTP/1.1\r\nHost: localhost:PORT\r\nOrigin: http://localhost\r\nOrigin: http://evil.example\r\n\r\n",
    ),
    "absolute form": (400, b"GET http://evil.example/ HTTP/1.1\r\nHost: localhost:PORT\r\n\r\n"),
    "absolute form to ourselves": (400, b"GET http://localhost:PORT/ HTTP/1.1\r\nHost: localhost:PORT\r\n\r\n"),
    "a tunnel": (405, b"CONNECT evil.example:443 HTTP/1.1\r\nHost: localhost:PORT\r\n\r\n"),
    "two slashes": (400, b"GET //evil.example/ HTTP/1.1\r\nHost: localhost:PORT\r\n\r\n"),
    "a slash and its mirror": (400, b"GET /\\evil.example/ HTTP/1.1\r\nHost: localhost:PORT\r\n\r\n"),
    "an asterisk": (400, b"OPTIONS * HTTP/1.1\r\nHost: localhost:PORT\r\n\r\n"),
    "LF alone": (400, b"GET / HTTP/1.1\nHost: localhost:PORT\n\n"),
    "a folded field": (400, b"GET / HTTP/1.1\r\nHost: localhost:PORT\r\nX: a\r\n b\r\n\r\n"),
    "both lengths": (
        400,
        b"POST / HTTP/1.1\r\nHost: localhost:PORT\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    ),
    "two lengths": (400, b"POST / HTTP/1.1\r\nHost: localhost:PORT\r\nContent-Length: 0\r\nContent-Length: 1\r\n\r\n"),
    "NUL in a field": (400, b"GET / HTTP/1.1\r\nHost: localhost:PORT\r\nX: a\0b\r\n\r\n"),
    "CR in a field": (400, b"GET / HTTP/1.1\r\nHost: localhost:PORT\r\nX: a\rb\r\n\r\n"),
    "a space before a colon": (400, b"GET / HTTP/1.1\r\nHost : localhost:PORT\r\n\r\n"),
    "a head without end": (400, b"GET / HTTP/1.1\r\nHost: localhost:PORT\r\nX: " + b"x" * 70_000),
    "another protocol": (400, b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"),
    "HTTP/2": (400, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
}


def refused(upstream: Upstream, proxy: Proxy, request: bytes) -> tuple[int, Wire]:
    """Return the status of mcpspy's own answer to this request, after which it closes."""
    client = proxy.connect()
    client.send(request.replace(b"PORT", b"%d" % proxy.port))
    answer = client.rest()
    assert not upstream.was_called
    head, _, body = answer.partition(b"\r\n\r\n")
    assert b"\r\nConnection: close" in head
    assert body.startswith(b"mcpspy: ")
    return int(head.split(b" ")[1]), client


def test_what_is_refused_is_answered_and_recorded_and_the_upstream_sees_nothing(tmp_path: Path) -> None:
    with between(tmp_path / "x.mcpspy") as (upstream, proxy):
        for number, (name, (status, request)) in enumerate(REFUSED.items()):
            got, client = refused(upstream, proxy, request)
            client.close()
            assert got == status, name
            answer = proxy.head("response", number)
            assert answer.injected, name
            assert answer.head.startswith(b"HTTP/1.1 %d " % status), name


@pytest.mark.parametrize("name", ["two lengths", "LF alone", "another protocol", "a foreign Host"])
def test_the_bytes_of_a_refused_request_are_recorded(name: str, tmp_path: Path) -> None:
    _, request = REFUSED[name]
    with between(tmp_path / "x.mcpspy") as (upstream, proxy):
        refused(upstream, proxy, request)[1].close()
        heads = b"".join(record.head for record in proxy.found(type(proxy.head("response"))) if not record.injected)
        frames = b"".join(frame.data for frame in proxy.found(Frame) if frame.stream != proxy.head("response").stream)
        assert heads + frames == request.replace(b"PORT", b"%d" % proxy.port)


@pytest.mark.parametrize(
    "host", [b"localhost:PORT", b"127.0.0.1:PORT", b"LOCALHOST:PORT", b"localhost.:PORT", b"127.8.9.1:PORT", b"[::1]:PORT"]
)
def test_every_loopback_name_with_our_port_is_ours(host: bytes, tmp_path: Path) -> None:
    with between(tmp_path / "x.mcpspy") as (upstream, proxy):
        own = host.replace(b"PORT", b"%d" % proxy.port)
        _, server = asked(upstream, proxy, b"GET / HTTP/1.1\r\nHost: %b\r\n\r\n" % own)
        assert server.head() == b"GET / HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n" % upstream.port


@pytest.mark.parametrize(
    ("sent", "forwarded"),
    [
        (b"http://localhost:3000", b"http://localhost:3000"),
        (b"http://[::1]", b"http://[::1]"),
        (b"http://127.0.0.1:PORT", b"http://127.0.0.1:UPSTREAM"),
    ],
)
def test_pages_of_this_machine_are_let_in(sent: bytes, forwarded: bytes, tmp_path: Path) -> None:
    with between(tmp_path / "x.mcpspy") as (upstream, proxy):
        origin = sent.replace(b"PORT", b"%d" % proxy.port)
        _, server = asked(upstream, proxy, proxy.request(b"GET /", b"Origin: " + origin))
        assert b"Origin: " + forwarded.replace(b"UPSTREAM", b"%d" % upstream.port) in server.head().split(b"\r\n")


@pytest.mark.parametrize(
    "fields",
    [
        [b"Sec-Fetch-Site: same-origin"],
        [b"Sec-Fetch-Site: same-site"],
        [b"Sec-Fetch-Site: none"],
        [b"Origin: http://localhost:3000", b"Sec-Fetch-Site: cross-site"],
        [b"Sec-Fetch-Site: cross-site", b"Sec-Fetch-Mode: navigate", b"Sec-Fetch-Dest: document"],
    ],
)
def test_what_a_browser_calls_here_for_a_person_or_a_page_of_this_machine_is_let_in(
    fields: list[bytes], tmp_path: Path
) -> None:
    with between(tmp_path / "x.mcpspy") as (upstream, proxy):
        _, server = asked(upstream, proxy, proxy.request(b"GET /", *fields))
        assert server.head().startswith(b"GET / ")


def test_a_page_of_the_same_site_is_not_one_of_this_machine_where_another_name_is_allowed(tmp_path: Path) -> None:
    with between(tmp_path / "x.mcpspy", "--allowed-host", "mcp.example") as (upstream, proxy):
        request = b"GET / HTTP/1.1\r\nHost: mcp.example\r\nSec-Fetch-Site: same-site\r\n\r\n"
        assert refused(upstream, proxy, request)[0] == 403


def test_a_refused_request_waits_for_the_answers_to_those_before_it(tmp_path: Path) -> None:
    with between(tmp_path / "x.mcpspy") as (upstream, proxy):
        evil = b"GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n"
        client, server = asked(upstream, proxy, proxy.request() + evil)
        server.head()
        server.take(2)
        server.send(OK)
        answers = client.rest()
        assert answers.startswith(OK + b"HTTP/1.1 421 ")
        assert server.rest() == b""


def test_a_large_request_that_is_refused_gets_its_answer_whole(tmp_path: Path) -> None:
    with between(tmp_path / "x.mcpspy") as (upstream, proxy):
        client = proxy.connect()
        client.send(b"POST / HTTP/1.1\r\nHost: evil.example\r\nContent-Length: 3000000\r\n\r\n")
        client.head()
        client.send(b"x" * 3_000_000)
        assert client.rest().startswith(b"mcpspy: ")
        assert not upstream.was_called


def test_a_malformed_chunk_in_a_request_is_refused_after_its_beginning_went_on(tmp_path: Path) -> None:
    with between(tmp_path / "x.mcpspy") as (upstream, proxy):
        head = b"POST / HTTP/1.1\r\nHost: %b\r\nTransfer-Encoding: chunked\r\n\r\n" % proxy.host
        client, server = asked(upstream, proxy, head + b"2\r\nok\r\n")
        server.head()
        assert server.take(7) == b"2\r\nok\r\n"
        client.send(b"zz\r\n")
        assert client.rest().startswith(b"HTTP/1.1 400 ")
        assert server.rest() == b""

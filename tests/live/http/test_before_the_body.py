"""Answers that come while the client still sends its body, and leave to send it: with and without intercepts that wait for the body.

Each way of a table is a tap that does something else with the body: it passes, it is read along, or it is kept until it is whole.
A kept request is unknown to the server, so only mcpspy can give leave to send its body.
"""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest

from mcpspy.records import Open
from tests.cli.terminal import run
from tests.deadlines import eventually
from tests.live.http.ends import OK, Proxy, Wire, between
from tests.live.http.test_held_bodies import SEARCH
from tests.live.http.test_intercepts import CALL, JSON, body_of, post

CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
HALF = len(CALL) // 2
PASSING = {
    "without intercepts": (),
    "an intercept of another tool": ("tool:other => drop",),
    "an intercept of the answer": ("tool:search sender:server => set result.a=1",),
    "a delay of the answer": ("tool:search kind:result => delay 1ms",),
    "an intercept of notifications": ("kind:notification => drop",),
}
KEEPING = {
    "an edit": ("tool:search => set params.x=1",),
    "a delay": ("tool:search => delay 1ms",),
    "an edit of a later one": ("tool:search => set params.x=1 nth=9",),
}
BODIES = {"a length": False, "chunks": True}

EARLY = {
    "401": b"HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Bearer\r\nContent-Length: 0\r\n\r\n",
    "413 that closes": b"HTTP/1.1 413 Content Too Large\r\nConnection: close\r\nContent-Length: 4\r\n\r\nlong",
    "400 in JSON": b'HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\nContent-Length: 13\r\n\r\n{"error":"x"}',
    "400 in JSON-RPC": b"HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\nContent-Length: 79\r\n\r\n"
    b'{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"the body is bad"}}',
    "400 in chunks": b"HTTP/1.1 400 Bad Request\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nbad\r\n0\r\n\r\n",
    "417": b"HTTP/1.1 417 Expectation Failed\r\nContent-Length: 0\r\n\r\n",
    "307": b"HTTP/1.1 307 Temporary Redirect\r\nLocation: /other\r\nContent-Length: 0\r\n\r\n",
    "503": b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\n",
    "a notice before": b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\nHTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n",
    "200": OK,
}


def options(texts: tuple[str, ...]) -> list[str]:
    return [word for text in texts for word in ("--intercept", text)]


def request_of(proxy: Proxy, *fields: bytes, chunked: bool = False, version: bytes = b"1.1") -> tuple[bytes, list[bytes]]:
    """Write the head of a call, and its body in two parts."""
    parts = [CALL[:HALF], CALL[HALF:]]
    length = b"Content-Length: %d" % len(CALL)
    if chunked:
        parts = [b"%x\r\n%b\r\n" % (len(part), part) for part in parts]
        parts[1] += b"0\r\n\r\n"
        length = b"Transfer-Encoding: chunked"
    line = b"POST /mcp HTTP/" + version
    return b"\r\n".join((line, b"Host: " + proxy.host, JSON, *fields, length, b"", b"")), parts


def goes_on(client: Wire, server: Wire, proxy: Proxy) -> None:
    """Let another call pass on the same connections."""
    client.send(post(proxy, CALL.replace(b"search", b"third")))
    assert b"third" in body_of(server)[1]
    server.send(OK)
    assert client.take(len(OK)) == OK


def accusations(capture: Path) -> set[str]:
    findings = json.loads(run("check", "--json", str(capture)).stdout)["findings"]
    return {finding["rule"] for finding in findings if finding["culprit"] in ("server", "mcpspy")}


@pytest.mark.grid(6)
@pytest.mark.parametrize("early", EARLY)
@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("way", PASSING)
def test_an_answer_passes_at_once_while_the_client_sends_and_the_rest_of_the_body_follows(
    way: str, body: str, early: str, tmp_path: Path
) -> None:
    with between(tmp_path / "x.mcpspy", *options(PASSING[way])) as (upstream, proxy):
        client, answer = proxy.connect(), EARLY[early]
        head, parts = request_of(proxy, *SEARCH, chunked=BODIES[body])
        client.send(head + parts[0])
        server = upstream.accept()
        server.head()
        assert server.take(len(parts[0])) == parts[0]
        server.send(answer)
        assert client.take(len(answer)) == answer
        client.send(parts[1])
        assert server.take(len(parts[1])) == parts[1]
        if early != "413 that closes":
            goes_on(client, server, proxy)
        else:
            server.close()
            assert client.rest() == b""
        assert proxy.body("request") == CALL


@pytest.mark.grid(5)
@pytest.mark.parametrize("early", [name for name in EARLY if name != "200"])
@pytest.mark.parametrize("way", PASSING)
def test_an_answer_that_comes_before_the_first_byte_of_the_body_passes_and_the_client_may_leave(
    way: str, early: str, tmp_path: Path
) -> None:
    with between(tmp_path / "x.mcpspy", *options(PASSING[way])) as (upstream, proxy):
        client, answer = proxy.connect(), EARLY[early]
        client.send(request_of(proxy, *SEARCH)[0])
        server = upstream.accept()
        server.head()
        server.send(answer)
        assert client.take(len(answer)) == answer
        client.close()
        assert server.rest() == b""
    assert accusations(tmp_path / "x.mcpspy") <= {"http-error", "redirect-loses-body"}


LEAVES = {
    "100": (CONTINUE, OK),
    "100 twice": (CONTINUE * 2, OK),
    "100 with fields": (b"HTTP/1.1 100 Go\r\nX: 1\r\n\r\n", OK),
    "100 and a notice": (CONTINUE + b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n", OK),
    "100 and 401": (CONTINUE, EARLY["401"]),
    "nothing": (b"", OK),
    "nothing and 413": (b"", EARLY["413 that closes"]),
}
SPELLINGS = (b"Expect: 100-continue", b"expect:100-Continue", b"EXPECT: \t100-continue ")


@pytest.mark.grid(6)
@pytest.mark.parametrize("leave", LEAVES)
@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("way", PASSING)
def test_leave_to_send_comes_from_the_server_where_the_body_passes(
    way: str, body: str, spelling: bytes, leave: str, tmp_path: Path
) -> None:
    with between(tmp_path / "x.mcpspy", *options(PASSING[way])) as (upstream, proxy):
        client, (given, answer) = proxy.connect(), LEAVES[leave]
        head, parts = request_of(proxy, *SEARCH, spelling, chunked=BODIES[body])
        client.send(head)
        server = upstream.accept()
        assert spelling in server.head()
        server.send(given)
        assert client.take(len(given)) == given
        for part in parts:
            client.send(part)
            assert server.take(len(part)) == part
        server.send(answer)
        assert client.take(len(answer)) == answer


@pytest.mark.grid(6)
@pytest.mark.parametrize("early", [name for name in EARLY if name != "a notice before"])
@pytest.mark.parametrize("then", ["leaves", "sends all the same", "sends another"])
@pytest.mark.parametrize("way", PASSING)
def test_a_final_answer_in_place_of_leave_passes(way: str, then: str, early: str, tmp_path: Path) -> None:
    with between(tmp_path / "x.mcpspy", *options(PASSING[way])) as (upstream, proxy):
        client, answer = proxy.connect(), EARLY[early]
        head, parts = request_of(proxy, *SEARCH, SPELLINGS[0])
        client.send(head)
        server = upstream.accept()
        server.head()
        server.send(answer)
        assert client.take(len(answer)) == answer
        if then != "leaves":
            client.send(b"".join(parts))
            assert server.take(len(CALL)) == CALL
        if then == "sends another" and early != "413 that closes":
            goes_on(client, server, proxy)
        client.close()
        assert server.rest() == b""
    if early != "200" and then != "sends another":
        assert accusations(tmp_path / "x.mcpspy") <= {"http-error", "redirect-loses-body"}


@pytest.mark.grid(6)
@pytest.mark.parametrize("comes", ["after its leave", "at once", "byte by byte"])
@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("way", KEEPING)
def test_leave_to_send_a_kept_body_comes_once_and_the_server_is_not_asked_for_it(
    way: str, body: str, spelling: bytes, comes: str, tmp_path: Path
) -> None:
    with between(tmp_path / "x.mcpspy", *options(KEEPING[way])) as (upstream, proxy):
        client = proxy.connect()
        head, parts = request_of(proxy, spelling, chunked=BODIES[body])
        if comes == "at once":
            client.send(head + b"".join(parts))
        elif comes == "after its leave":
            client.send(head)
            assert client.head() == CONTINUE
            client.send(parts[0])
            client.send(parts[1])
        else:
            for byte in head + b"".join(parts):
                client.send(bytes((byte,)))
        server = upstream.accept()
        got = server.head()
        assert b"xpect" not in got.lower()
        assert b"search" in (server.until(b"0\r\n\r\n") if b"chunked" in got else server.take(len(CALL)))
        server.send(OK)
        arrived = client.take(len(OK))
        if arrived.startswith(CONTINUE):
            arrived = arrived[len(CONTINUE) :] + client.take(len(CONTINUE))
        assert arrived == OK
        goes_on(client, server, proxy)


OTHER_EXPECTATIONS = (b"Expect: 200-ok", b"Expect: 100-continue, x=1", b"Expect: continue", b"Expect:")


@pytest.mark.parametrize("expectation", OTHER_EXPECTATIONS)
@pytest.mark.parametrize("way", [*PASSING, *KEEPING])
def test_another_expectation_is_for_the_server_to_judge(way: str, expectation: bytes, tmp_path: Path) -> None:
    with between(tmp_path / "x.mcpspy", *options({**PASSING, **KEEPING}[way])) as (upstream, proxy):
        client = proxy.connect()
        head, parts = request_of(proxy, *SEARCH, expectation)
        client.send(head + b"".join(parts))
        server = upstream.accept()
        assert expectation in server.head()
        server.send(EARLY["417"])
        assert client.take(len(EARLY["417"])) == EARLY["417"]


@pytest.mark.parametrize("way", [*PASSING, *KEEPING])
def test_a_client_of_http_1_0_gets_no_leave_to_send_from_mcpspy(way: str, tmp_path: Path) -> None:
    with between(tmp_path / "x.mcpspy", *options({**PASSING, **KEEPING}[way])) as (upstream, proxy):
        client = proxy.connect()
        head, parts = request_of(proxy, SPELLINGS[0], version=b"1.0")
        client.send(head + b"".join(parts))
        server = upstream.accept()
        server.head()
        server.send(OK)
        assert client.take(len(OK)) == OK


@pytest.mark.parametrize("way", KEEPING)
@pytest.mark.parametrize("sent", ["its head", "half of its body"])
def test_a_client_that_leaves_before_its_kept_body_is_whole_leaves_no_trace_at_the_server(
    way: str, sent: str, tmp_path: Path
) -> None:
    with between(tmp_path / "x.mcpspy", *options(KEEPING[way])) as (upstream, proxy):
        client = proxy.connect()
        head, parts = request_of(proxy, SPELLINGS[0])
        client.send(head)
        assert client.head() == CONTINUE
        client.send(parts[0] if sent == "half of its body" else b"")
        client.close()
        eventually(lambda: "request" in [record.name for record in proxy.found(Open)], "the request")
        assert proxy.ending("request")[0] == "client"
        assert not upstream.was_called or upstream.accept().rest() == b""
    assert accusations(tmp_path / "x.mcpspy") == set()


@pytest.mark.parametrize("status", [401, 413])
def test_a_status_of_an_intercept_comes_once_the_body_is_whole(status: int, tmp_path: Path) -> None:
    with between(tmp_path / "x.mcpspy", "--intercept", f"tool:search => status {status}") as (_, proxy):
        client = proxy.connect()
        head, parts = request_of(proxy, SPELLINGS[0])
        client.send(head)
        assert client.head() == CONTINUE
        client.send(b"".join(parts))
        assert client.head().startswith(b"HTTP/1.1 %d " % status)


@pytest.mark.parametrize("way", KEEPING)
@pytest.mark.parametrize("end", ["a close", "408"])
def test_a_server_that_ends_its_idle_connection_while_a_body_is_kept_has_its_answer_passed_or_is_asked_again(
    end: str, way: str, tmp_path: Path
) -> None:
    timeout = b"HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
    with between(tmp_path / "x.mcpspy", *options(KEEPING[way])) as (upstream, proxy):
        client = proxy.connect()
        client.send(post(proxy, CALL.replace(b"search", b"first")))
        server = upstream.accept()
        body_of(server)
        server.send(OK)
        assert client.take(len(OK)) == OK
        head, parts = request_of(proxy)
        client.send(head + parts[0])
        server.send(timeout if end == "408" else b"")
        server.socket.shutdown(socket.SHUT_WR)
        assert server.rest() == b"", "so mcpspy has seen the end"
        if end == "408":
            assert client.rest() == timeout
            return
        client.send(parts[1])
        server = upstream.accept()
        assert b"search" in body_of(server)[1]
        server.send(OK)
        assert client.take(len(OK)) == OK

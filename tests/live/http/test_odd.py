"""Odd JSON in bodies and events: it passes unchanged, is recorded unchanged, and is paired as far as it can be read."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from mcpspy import transcribe
from tests.live.http.ends import EVENTS, HEAD_END, OK, Proxy, Upstream, asked, between, chunk
from tests.live.stdio.test_bytes import AWKWARD

CALL = b'{"jsonrpc":"2.0","id":%b,"method":"tools/call","params":{"name":"x","arguments":%b}}'
IDS = [b"1", b'"1"', b"1.0", b"10", b"123456789012345678901234567890", b"123456789012345678901234567891", b'"null"', b"-0"]
VALUES = [
    b"[" * 100_000 + b"]" * 100_000,
    b"[" * 100_000,
    b'{"a":1,"a":2}',
    b"NaN",
    b"1e400",
    b'"\\ud800"',
    b'"\xff\xfe"',
    b"[" + b"0," * 200_000 + b"0]",
]


def exchanged(upstream: Upstream, proxy: Proxy, request: bytes, response: bytes) -> None:
    """Send one POST and its answer, which must arrive as they were sent."""
    client, server = asked(upstream, proxy, proxy.request(b"POST /mcp", b"Content-Type: application/json", body=request))
    server.head()
    assert server.take(len(request)) == request
    answer = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b" % (len(response), response)
    server.send(answer)
    assert client.take(len(answer)) == answer
    client.close()
    server.rest()


def test_odd_values_pass_and_are_kept_and_their_exchanges_are_paired(tmp_path: Path) -> None:
    with between(tmp_path / "x.mcpspy") as (upstream, proxy):
        for value in VALUES:
            exchanged(upstream, proxy, CALL % (b"1", value), b'{"jsonrpc":"2.0","id":1,"result":{"x":%b}}' % value)
        proxy.stop()
        for nth, value in enumerate(VALUES):
            assert proxy.body("request", nth) == CALL % (b"1", value)
        assert transcribe(proxy.records()).rows


def test_answers_on_one_stream_are_paired_by_the_type_and_all_digits_of_their_ids(tmp_path: Path) -> None:
    with between(tmp_path / "x.mcpspy") as (upstream, proxy):
        stream, events = asked(upstream, proxy, proxy.request(b"GET /sse", b"Accept: text/event-stream"))
        events.head()
        events.send(EVENTS + chunk(b"event: endpoint\ndata: /messages?session_id=1\n\n"))
        stream.head()
        for id in IDS:
            client, server = asked(upstream, proxy, proxy.request(b"POST /messages?session_id=1", body=CALL % (id, id)))
            server.head()
            server.send(b"HTTP/1.1 202 Accepted\r\nContent-Length: 8\r\n\r\nAccepted")
            client.head()
        for id in reversed(IDS):
            event = chunk(b'data: {"jsonrpc":"2.0","id":%b,"result":{"is":%b}}\n\n' % (id, id))
            events.send(event)
            stream.take(1)
        events.send(b"0\r\n\r\n")
        proxy.ending("response")
        proxy.stop()
        exchanges = transcribe(proxy.records()).exchanges
        assert len(exchanges) == len(IDS)
        for id, exchange in zip(IDS, exchanges, strict=True):
            assert exchange.response is not None, id
            assert b'"is":%b}' % id in exchange.response.raw


@pytest.mark.grid(8)
@pytest.mark.parametrize("name", AWKWARD)
def test_awkward_bytes_pass_and_are_kept(name: str, tmp_path: Path) -> None:
    with between(tmp_path / "x.mcpspy") as (upstream, proxy):
        exchanged(upstream, proxy, AWKWARD[name], AWKWARD[name])
        client, server = asked(upstream, proxy, proxy.request())
        server.head()
        body = b"data: " + AWKWARD[name] + b"\n\n"
        server.send(EVENTS + chunk(body) + b"0\r\n\r\n")
        expected = EVENTS + chunk(body) + b"0\r\n\r\n"
        assert client.take(len(expected)) == expected
        proxy.stop()
        assert proxy.body("request") == AWKWARD[name]
        assert proxy.body("response") == AWKWARD[name]
        assert proxy.body("response", 1) == body
        transcribe(proxy.records())


LARGE_FIELD = b"X-Large: " + b"x" * 60_000


def test_heads_larger_than_most_servers_take_pass(tmp_path: Path) -> None:
    with between(tmp_path / "x.mcpspy") as (upstream, proxy):
        client, server = asked(upstream, proxy, proxy.request(b"POST /mcp", LARGE_FIELD))
        assert LARGE_FIELD in server.head()
        answer = OK.replace(b"\r\n", b"\r\n" + LARGE_FIELD + b"\r\n", 1)
        server.send(answer)
        assert client.take(len(answer)) == answer
        assert LARGE_FIELD in proxy.head("response").head


SMUGGLED = {
    "two lengths": b"Content-Length: 5\r\nContent-Length: 6",
    "a length and chunks": b"Content-Length: 5\r\nTransfer-Encoding: chunked",
    "an ambiguous coding": b"Transfer-Encoding: chunked, identity",
    "a folded field": b"X: a\r\n b",
    "a head that is too large": b"X: " + b"x" * 70_000,
}


@pytest.mark.parametrize("name", SMUGGLED)
def test_a_response_that_can_be_read_in_two_ways_is_relayed_as_it_comes_and_noted(name: str, tmp_path: Path) -> None:
    with between(tmp_path / "x.mcpspy") as (upstream, proxy):
        client, server = asked(upstream, proxy, proxy.request())
        server.head()
        server.take(2)
        answer = b"HTTP/1.1 200 OK\r\n" + SMUGGLED[name] + HEAD_END + b"5\r\nhello\r\n0\r\n\r\n"
        server.send(answer)
        server.close()
        assert client.rest() == answer
        assert "response-refused" in proxy.topics()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(pieces=st.lists(st.binary(min_size=1, max_size=300), min_size=1, max_size=6))
@example(pieces=[b"H", b"H"])
@example(pieces=[b"HTTP/1.", b"H"])
def test_whatever_a_server_says_arrives_and_ends(pieces: list[bytes], shared: tuple[Upstream, Proxy]) -> None:
    upstream, proxy = shared
    client, server = asked(upstream, proxy, proxy.request())
    server.head()
    server.take(2)
    for piece in pieces:
        server.send(piece)
    server.close()
    passed, injected, _ = client.rest().partition(b"HTTP/1.1 502 ")
    sent = b"".join(pieces)
    begun = sent.removeprefix(passed)
    assert passed + begun == sent
    assert begun[:7] in {b"", b"\r", *(b"HTTP/1."[:end] for end in range(1, 8))}  # what may have become an answer, and did not
    assert injected or not begun
    client.close()


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> object:
    with between(tmp_path_factory.mktemp("odd") / "x.mcpspy") as both:
        yield both

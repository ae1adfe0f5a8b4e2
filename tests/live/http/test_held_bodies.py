"""A body is held only if what its head says leaves it possible that an intercept acts on it."""

from __future__ import annotations

from pathlib import Path

import pytest

from mcpspy.records import Intercept
from tests.live.http.ends import HEAD_END, Proxy
from tests.live.http.test_intercepts import (
    CALL,
    JSON,
    OTHER,
    RESULT,
    acts,
    answer,
    body_of,
    intercepted,
    post,
    read_back,
)

SEARCH = (b"Mcp-Method: tools/call", b"Mcp-Name: search")
OF_OTHER = (b"Mcp-Method: tools/call", b"Mcp-Name: other")
LIST = (b"Mcp-Method: tools/list",)
ENCODED = (b"mcp-method: tools/call", b"mcp-name: =?base64?b3RoZXI=?=")
SUBSCRIBE = (b"Mcp-Method: resources/subscribe",)
HALF = len(CALL) // 2


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    return tmp_path / "held.mcpspy"


def halves(proxy: Proxy, *fields: bytes) -> tuple[bytes, bytes]:
    """Return a request up to the middle of its body, and the rest."""
    request = post(proxy, CALL, *fields)
    return request[: -len(CALL) + HALF], request[-len(CALL) + HALF :]


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        ("tool:search => drop", OF_OTHER),
        ("tool:search => drop", LIST),
        ("tool:search => drop", ENCODED),
        ("prompt:search => drop", SEARCH),
        ("method:tools/list => drop", SEARCH),
        ("sender:server => drop", ()),
        ("sender:server tool:search => delay 1s", SEARCH),
        ("kind:result => drop", SEARCH),
        ("kind:notification => drop", SEARCH),
        ("tool:search => truncate 5", SEARCH),
        ("tool:search => set result.a=1", SEARCH),
        ("tool:search => reorder", SEARCH),
        ("not tool:search => drop", SEARCH),
        ("tool:x or tool:search method:tools/list => drop", SEARCH),
        ('tool:x "search" => drop', SEARCH),
        ("tool:search size>1 => drop", OF_OTHER),
        ("resource:* => drop", LIST),
    ],
)
def test_a_body_that_its_head_rules_out_passes_as_it_comes(text: str, fields: tuple[bytes, ...], capture: Path) -> None:
    with intercepted(capture, text) as (upstream, proxy, client):
        first, rest = halves(proxy, *fields)
        client.send(first)
        server = upstream.accept()
        server.head()
        assert server.take(HALF) == CALL[:HALF]
        client.send(rest)
        assert server.take(len(rest)) == rest
        proxy.stop()


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        ("tool:search => set params.x=1", SEARCH),
        ("tool:search => set params.x=1", ()),
        ("tool:search => set params.x=1", (b"Mcp-Method: tools/call",)),
        ('"search" => set params.x=1', OF_OTHER),
        ("id:1 => set params.x=1", OF_OTHER),
        ("size>1 => set params.x=1", LIST),
        ("not tool:other => set params.x=1", SEARCH),
        ("resource:* or kind:request => set params.x=1", SUBSCRIBE),
        ("sender:client => set params.x=1", SEARCH),
        ("tool:se* => set params.x=1", SEARCH),
        ("not sender:server => set params.x=1", ()),
    ],
)
def test_a_body_that_its_head_does_not_rule_out_is_changed(text: str, fields: tuple[bytes, ...], capture: Path) -> None:
    with intercepted(capture, text) as (upstream, proxy, client):
        first, rest = halves(proxy, *fields)
        client.send(first)
        client.send(rest)
        assert body_of(upstream.accept())[1] == CALL[:-2] + b',"x":1}}'
        proxy.stop()


@pytest.mark.parametrize("status", [b"413 Content Too Large", b"401 Unauthorized", b"200 OK"])
def test_an_answer_that_comes_before_the_end_of_the_body_is_passed_on_at_once(status: bytes, capture: Path) -> None:
    with intercepted(capture, "tool:other => drop", "tool:search => truncate 5") as (upstream, proxy, client):
        first, rest = halves(proxy, *SEARCH)
        client.send(first)
        server = upstream.accept()
        server.head()
        early = b"HTTP/1.1 %b\r\n%b\r\nContent-Length: 5\r\n\r\nearly" % (status, b"Content-Type: text/plain")
        server.send(early)
        assert client.take(len(early)) == early
        client.send(rest)
        assert server.take(len(CALL)) == CALL
        client.send(post(proxy, OTHER.replace(b"other", b"third")))
        assert b"third" in body_of(server)[1]
        proxy.stop()


def test_a_json_answer_that_no_intercept_may_act_on_passes_as_it_comes(capture: Path) -> None:
    texts = ("tool:search => truncate 5", "method:tools/list => drop")
    with intercepted(capture, *texts) as (upstream, proxy, client):
        client.send(post(proxy, OTHER, *OF_OTHER))
        server = upstream.accept()
        body_of(server)
        sent = answer(RESULT)
        server.send(sent[:-9])
        assert client.take(len(sent) - 9) == sent[:-9]
        server.send(sent[-9:])
        assert client.take(9) == sent[-9:]
        records, _ = read_back(proxy)
    assert not any(isinstance(record, Intercept) for record in records)


@pytest.mark.parametrize("fields", [SEARCH, ()])
@pytest.mark.parametrize("size", [7, 1000])
def test_an_answer_is_changed_though_its_request_was_not_held(fields: tuple[bytes, ...], size: int, capture: Path) -> None:
    with intercepted(capture, "tool:search sender:server => set result.a=1") as (upstream, proxy, client):
        request = post(proxy, CALL, *fields)
        for at in range(0, len(request), size):
            client.send(request[at : at + size])
        server = upstream.accept()
        assert body_of(server)[1] == CALL
        server.send(answer(RESULT))
        assert body_of(client)[1] == RESULT[:-2] + b',"a":1}}'
        records, _ = read_back(proxy)
    assert acts(records) == [("set result.a", "changed")]


@pytest.mark.parametrize("text", ["tool:search => set params.x=1 max=1", "tool:search => delay 10ms max=1"])
def test_the_last_time_that_an_intercept_acts_it_acts(text: str, capture: Path) -> None:
    with intercepted(capture, text) as (upstream, proxy, client):
        client.send(post(proxy, CALL, *SEARCH))
        server = upstream.accept()
        body_of(server)
        server.send(answer(RESULT))
        body_of(client)
        client.send(post(proxy, CALL, *SEARCH))
        assert body_of(server)[1] == CALL
        records, _ = read_back(proxy)
    assert len(acts(records)) == 1


def test_a_client_that_waits_for_leave_to_send_gets_it_from_the_server_where_the_body_passes(capture: Path) -> None:
    with intercepted(capture, "tool:other => drop") as (upstream, proxy, client):
        request = proxy.request(b"POST /mcp", JSON, *SEARCH, b"Expect: 100-continue", body=CALL)
        head, _, body = request.partition(HEAD_END)
        client.send(head + HEAD_END)
        server = upstream.accept()
        assert b"\r\nExpect: 100-continue\r\n" in server.head()
        server.send(b"HTTP/1.1 100 Continue\r\n\r\n")
        assert client.head() == b"HTTP/1.1 100 Continue\r\n\r\n"
        client.send(body)
        assert server.take(len(CALL)) == CALL
        proxy.stop()

"""`mcpspy call` into a session over HTTP: in a request of its own with the client's session, unseen by the client."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest
from mcp import Client

from mcpspy import read
from mcpspy.records import Frame, Open
from mcpspy.transcript.findings.run import all_findings
from mcpspy.transcript.transcribe import transcribe
from tests.cli.terminal import run
from tests.cli.test_intercepted_http_sessions import EVENTS, JSON, KINDS, _target, proxied
from tests.deadlines import DEADLINE_S, eventually
from tests.live.http.ends import Proxy, Upstream, between
from tests.live.http.test_intercepts import CALL, RESULT, answer, body_of, event, post
from tests.live.stdio.test_control import Controller, socket_in

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def capture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MCPSPY_HOME", str(tmp_path / "home"))
    return tmp_path / "sums.mcpspy"


def row_of_call(capture: Path) -> int:
    return next(exchange.row for exchange in transcribe(list(read(capture))).exchanges if exchange.method == "tools/call")


@pytest.mark.parametrize(("kind", "mode"), [*((kind, "legacy") for kind in KINDS), (JSON, "auto"), (EVENTS, "auto")])
def test_a_call_goes_into_the_session_and_its_client_does_not_see_it(kind: str, mode: str, capture: Path) -> None:
    again = [f"{capture}:CALL", "--yes"]
    tool = [str(capture), "add", "a=20", "b=22", "--yes"]
    with proxied(kind, capture) as proxy:

        async def visit() -> list[Any]:
            async with asyncio.timeout(3 * DEADLINE_S), Client(_target(kind, proxy.address), mode=mode) as client:
                await client.list_tools()
                first: Any = await client.call_tool("add", {"a": 1, "b": 2})
                again[0] = f"{capture}:{row_of_call(capture)}"
                done = [await asyncio.to_thread(run, "call", *words, "--json") for words in (again, tool)]
                later: Any = await client.call_tool("add", {"a": 3, "b": 4})
                assert (first.content[0].text, later.content[0].text) == ("3", "7")
            return done

        first, second = asyncio.run(visit())
    for printed, text in ((first, "3"), (second, "42")):
        assert printed.returncode == 0, printed.stdout + printed.stderr
        output = json.loads(printed.stdout)
        assert (output["outcome"], output["target"]["transport"]) == ("ok", "http")
        assert text in json.dumps(output)
    records = list(read(capture))
    transcript = transcribe(records)
    ours = [exchange for exchange in transcript.exchanges if exchange.is_by_mcpspy]
    assert [exchange.response is not None for exchange in ours] == [True, True]
    assert [exchange.is_by_mcpspy for exchange in transcript.exchanges if exchange.method == "initialize"] in ([], [False])
    assert len([record for record in records if isinstance(record, Open) and record.injected]) == 2
    assert not {exchange.row for exchange in ours} & {finding.row for finding in all_findings(transcript)}
    shown = run("show", str(capture)).stdout
    assert shown.count(", by mcpspy call") == 2
    assert run("verify", str(capture)).returncode == 0


# What servers do


@pytest.fixture
def ends(capture: Path) -> Iterator[tuple[Upstream, Proxy]]:
    with between(capture, "--label", "weather") as both:
        yield both


SESSION = {"session": "", "target": "/mcp", "fields": []}


def called(ends: tuple[Upstream, Proxy], home: Path) -> Controller:
    """Let a client call once; return a controller."""
    upstream, proxy = ends
    client = proxy.connect()
    client.send(post(proxy))
    server = upstream.accept()
    server.head()
    server.send(answer())
    assert body_of(client)[1] == RESULT
    return Controller(socket_in(home))


def test_what_a_server_sends_besides_the_answer_is_recorded_and_a_request_refused(
    ends: tuple[Upstream, Proxy], capture: Path, tmp_path: Path
) -> None:
    upstream, _ = ends
    controller = called(ends, tmp_path / "home")
    id = json.loads(controller.ask(do="send", payload=CALL.decode(), **SESSION)["id"])
    server = upstream.accept()
    body = body_of(server)[1]
    assert json.loads(body) | {"id": 1} == json.loads(CALL)
    question = b'{"jsonrpc":"2.0","id":"q","method":"roots/list"}'
    server.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n" + event(question))
    refusal = json.loads(body_of(upstream.accept())[1])
    assert (refusal["id"], refusal["error"]["code"]) == ("q", -32601)
    server.send(event(RESULT.replace(b'"id":1', json.dumps({"id": id})[1:-1].encode())))
    event_ = json.loads(controller._lines.readline())
    assert (event_["event"], json.loads(event_["payload"])["result"]) == ("answer", json.loads(RESULT)["result"])
    controller.leave()
    frames = [record for record in read(capture) if isinstance(record, Frame)]
    assert sum(question in frame.data for frame in frames) == 1


@pytest.mark.parametrize(
    ("response", "words"),
    [
        (b"HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\n\r\ngone", "the server answered with status 404: gone"),
        (b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n", "the server ended its response without an answer"),
        (b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 90\r\n\r\n{", "closed the connection before"),
        (b"", "the server closed the connection before it had answered"),
    ],
)
def test_a_call_without_an_answer_says_why(ends: tuple[Upstream, Proxy], tmp_path: Path, response: bytes, words: str) -> None:
    controller = called(ends, tmp_path / "home")
    assert controller.ask(do="send", payload=CALL.decode(), **SESSION)["ok"]
    server = ends[0].accept()
    body_of(server)
    server.send(response)
    server.close()
    failed = json.loads(controller._lines.readline())
    assert (failed["event"], words in failed["text"]) == ("failed", True)
    controller.leave()


def test_a_call_is_cancelled_when_its_controller_leaves(ends: tuple[Upstream, Proxy], tmp_path: Path) -> None:
    controller = called(ends, tmp_path / "home")
    id = json.loads(controller.ask(do="send", payload=CALL.decode(), **SESSION)["id"])
    server = ends[0].accept()
    body_of(server)
    controller.leave()
    cancellation = json.loads(body_of(ends[0].accept())[1])
    assert (cancellation["method"], cancellation["params"]["requestId"]) == ("notifications/cancelled", id)
    assert server.rest() == b""


def test_a_call_into_a_session_that_nobody_has_is_refused(ends: tuple[Upstream, Proxy], tmp_path: Path) -> None:
    controller = called(ends, tmp_path / "home")
    for facts in ({"session": "gone", "target": "/mcp", "fields": []}, {"session": "", "target": "/other", "fields": []}):
        assert (
            "no client has sent anything in that session" in controller.ask(do="send", payload=CALL.decode(), **facts)["error"]
        )
    assert "over HTTP, send needs a session" in controller.ask(do="send", payload=CALL.decode())["error"]
    assert not ends[0].was_called
    controller.leave()


def test_a_call_into_a_session_is_sent_until_its_client_ends_it(ends: tuple[Upstream, Proxy], tmp_path: Path) -> None:
    upstream, proxy = ends
    client = proxy.connect()
    client.send(post(proxy, CALL, b"Mcp-Session-Id: its-own"))
    server = upstream.accept()
    body_of(server)
    server.send(answer())
    body_of(client)
    (row,) = transcribe(list(read(proxy.capture))).exchanges
    assert row.transaction is not None
    assert row.transaction.request is not None
    facts = {**SESSION, "session": row.transaction.request.head.get("mcp-session-id")}
    controller = Controller(socket_in(tmp_path / "home"))
    assert controller.ask(do="send", payload=CALL.decode(), **facts)["ok"]
    assert b"\r\nMcp-Session-Id: its-own\r\n" in upstream.accept().head()
    client.send(proxy.request(b"DELETE /mcp", b"Mcp-Session-Id: its-own"))
    server.head()
    server.send(b"HTTP/1.1 204 No Content\r\n\r\n")
    assert client.head().startswith(b"HTTP/1.1 204 ")
    assert "or it is over" in controller.ask(do="send", payload=CALL.decode(), **facts)["error"]
    controller.leave()


def test_the_tap_takes_the_short_way_again_after_a_call(ends: tuple[Upstream, Proxy], tmp_path: Path) -> None:
    upstream, proxy = ends
    controller = called(ends, tmp_path / "home")
    controller.ask(do="send", payload=CALL.decode(), **SESSION)
    server = upstream.accept()
    body_of(server)
    server.send(answer(RESULT.replace(b'"id":1', b'"id":7')))
    assert json.loads(controller._lines.readline())["event"] == "failed"
    eventually(lambda: controller.ask(do="status")["intercepts"] == [], "no intercept")
    client = proxy.connect()
    client.send(post(proxy, CALL, b"Accept-Encoding: gzip"))
    assert b"Accept-Encoding: gzip" in upstream.accept().head()
    controller.leave()

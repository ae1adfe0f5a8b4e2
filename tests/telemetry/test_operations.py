"""Spans of MCP operations, by the table of the semantic conventions: one case a row."""

from collections.abc import Callable
from typing import Any

import pytest

from mcpspy.telemetry.operations import OperationSpans
from mcpspy.telemetry.span import TelemetrySpan, own_context, trace_context
from tests.transcript.dialogue import Dialogue, request, result
from tests.transcript.traffic import Traffic
from tests.views.scenes import call, failed, given_up, opened, refused

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def span_of(scene: Dialogue, **options: Any) -> TelemetrySpan:
    (span,) = OperationSpans(scene.transcript, {}, **options).spans()
    return span


def answered(message: dict[str, Any], answer: dict[str, Any] | None = None) -> Dialogue:
    return opened("weather").client(message).wait(7).server(answer or result(message["id"]))


CASES: dict[str, tuple[Dialogue, dict[str, Any]]] = {
    "the method": (answered(request(1, "ping")), {"mcp.method.name": "ping"}),
    "a JSON-RPC error": (
        answered(call(1, "x"), refused(1, -32602, "no")),
        {"error.type": "-32602", "rpc.response.status_code": "-32602"},
    ),
    "a tool that failed": (
        answered(call(1, "x"), failed(1, "no")),
        {"error.type": "tool_error", "rpc.response.status_code": None},
    ),
    "a timeout": (
        opened("weather").client(call(1, "x")).wait(60_000).client(given_up(1, "request timed out")),
        {"error.type": "timeout"},
    ),
    "a call that its user gave up": (
        opened("weather").client(call(1, "x")).wait(5).client(given_up(1, "the user pressed Escape")),
        {"error.type": None},
    ),
    "a call that nobody answered": (opened("weather").client(call(1, "x")).closes(), {"error.type": "_OTHER"}),
    "a tool": (answered(call(1, "add")), {"gen_ai.tool.name": "add", "gen_ai.operation.name": "execute_tool"}),
    "a prompt": (
        answered(request(1, "prompts/get", {"name": "greet"})),
        {"gen_ai.prompt.name": "greet", "gen_ai.tool.name": None, "gen_ai.operation.name": None},
    ),
    "a resource": (
        answered(request(1, "resources/read", {"uri": "file:///x"})),
        {"mcp.resource.uri": "file:///x", "gen_ai.tool.name": None},
    ),
    "an id": (answered(request(7, "ping")), {"jsonrpc.request.id": "7"}),
    "an id that is text": (answered(request("a b", "ping")), {"jsonrpc.request.id": "a b"}),
    "an id that is null": (
        answered({"jsonrpc": "2.0", "id": None, "method": "ping"}, {"jsonrpc": "2.0", "id": None, "result": {}}),
        {"jsonrpc.request.id": None},
    ),
    "another version of JSON-RPC": (
        answered({"jsonrpc": "1.9", "id": 1, "method": "ping"}),
        {"jsonrpc.protocol.version": "1.9"},
    ),
    "no version of JSON-RPC": (answered({"id": 1, "method": "ping"}), {"jsonrpc.protocol.version": "1.0"}),
    "a revision of MCP": (
        answered(request(1, "ping", {"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}})),
        {"mcp.protocol.version": "2026-07-28"},
    ),
    "JSON-RPC 2.0": (answered(request(1, "ping")), {"jsonrpc.protocol.version": None}),
    "standard streams": (answered(request(1, "ping")), {"network.transport": "pipe", "network.protocol.name": None}),
    "arguments": (
        answered(call(1, "add", a=1)),
        {"gen_ai.tool.call.arguments": None, "gen_ai.tool.call.result": None},
    ),
}


def posted(status: int = 200, url: str = "http://127.0.0.1:3001/mcp", **fields: str) -> Traffic:
    traffic = Traffic(url=url)
    traffic.post(call(1, "add"), session="s1", fields=fields).answer(status, result(1) if status == 200 else b"")
    return traffic.ends()


HTTP_CASES: dict[str, tuple[Traffic, dict[str, Any]]] = {
    "HTTP": (posted(), {"network.transport": "tcp", "network.protocol.name": "http", "network.protocol.version": "1.1"}),
    "the upstream": (posted(), {"server.address": "127.0.0.1", "server.port": 3001}),
    "an upstream on the port of its scheme": (
        posted(url="https://mcp.example.com/mcp"),
        {"server.address": "mcp.example.com", "server.port": 443},
    ),
    "a session": (posted(), {"mcp.session.id": "s1", "error.type": None}),
    "an HTTP status": (posted(500), {"error.type": "500", "rpc.response.status_code": None}),
}


@pytest.mark.parametrize("name", HTTP_CASES)
def test_over_http_a_span_has_the_attributes_of_the_conventions(name: str) -> None:
    traffic, wanted = HTTP_CASES[name]
    (span,) = OperationSpans(traffic.transcript, {}).spans()
    assert {key: span.attributes.get(key) for key in wanted} == wanted
    assert (span.error is not None) is ("error.type" in span.attributes)


def test_a_context_in_a_field_of_http_is_a_link_and_no_parent() -> None:
    (span,) = OperationSpans(posted(traceparent=PARENT).transcript, {}).spans()
    assert (span.links, span.parent) == ([trace_context(PARENT)], None)


@pytest.mark.parametrize("name", CASES)
def test_a_span_has_the_attributes_of_the_conventions(name: str) -> None:
    scene, wanted = CASES[name]
    attributes = span_of(scene).attributes
    assert {key: attributes.get(key) for key in wanted} == wanted


NAMES: dict[str, tuple[dict[str, Any], str]] = {
    "a tool": (call(1, "add"), "tools/call add"),
    "a prompt": (request(1, "prompts/get", {"name": "greet"}), "prompts/get greet"),
    "a resource": (request(1, "resources/read", {"uri": "file:///x"}), "resources/read"),
    "a ping": (request(1, "ping"), "ping"),
}


@pytest.mark.parametrize("name", NAMES)
def test_a_span_is_named_by_method_and_target_but_never_by_a_uri(name: str) -> None:
    message, wanted = NAMES[name]
    assert span_of(answered(message)).name == wanted


def test_it_is_the_clients_unless_the_servers_is_asked_for() -> None:
    scene = answered(call(1, "add"))
    assert (span_of(scene).is_server, span_of(scene, as_server=True).is_server) == (False, True)


def test_the_description_of_an_error_is_its_message() -> None:
    assert span_of(answered(call(1, "x"), refused(1, -32602, "no such city"))).error == "no such city"
    assert span_of(answered(call(1, "x"))).error is None


def test_it_takes_as_long_as_the_call() -> None:
    scene = answered(call(1, "x"))
    (exchange,) = scene.exchanges
    span = span_of(scene)
    assert span.ended_ns - span.began_ns == exchange.duration_ns


def test_its_parent_is_the_span_that_the_request_names() -> None:
    message = request(1, "tools/call", {"name": "add", "_meta": {"traceparent": PARENT, "tracestate": "a=1"}})
    span = span_of(answered(message))
    assert span.parent == trace_context(PARENT, "a=1")
    assert f"{span.context.trace_id:032x}" == PARENT.split("-")[1]


@pytest.mark.parametrize(
    "value",
    [
        "",
        "x",
        PARENT.upper(),
        PARENT + "-x",
        "ff" + PARENT[2:],
        f"00-{'0' * 32}-b7ad6b7169203331-01",
        PARENT[:36] + "0" * 16 + "-01",
    ],
)
def test_what_is_no_trace_context_is_no_parent(value: str) -> None:
    span = span_of(answered(request(1, "tools/call", {"name": "add", "_meta": {"traceparent": value}})))
    assert span.parent is None


def test_ids_follow_from_the_capture() -> None:
    first, second = span_of(answered(call(1, "x"))), span_of(answered(call(1, "x")))
    assert first.context == second.context
    assert own_context("a", 1) != own_context("a", 2)
    assert own_context("a", 1).trace_id != own_context("b", 1).trace_id


def test_a_pending_call_has_no_span_yet() -> None:
    growing: Callable[[], Dialogue] = lambda: opened("weather").client(call(1, "x"))  # noqa: E731
    transcript = growing().transcript
    for exchange in transcript.exchanges:
        exchange.over = False
    assert list(OperationSpans(transcript, {}).spans()) == []


def test_findings_are_events() -> None:
    scene = answered(call(1, "x"), failed(1, "no"))
    transcript = scene.transcript
    about = [finding.rule for finding in transcript.findings if transcript.exchanges[0].row in finding.rows]
    (span,) = OperationSpans(transcript, {}).spans()
    assert [event.attributes["mcpspy.rule"] for event in span.events] == about

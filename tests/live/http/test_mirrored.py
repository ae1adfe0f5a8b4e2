"""Header fields that repeat parts of a body follow an edit of the body, and no other field changes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.live.upstream.headers import MirroredArguments, with_mirrored
from mcpspy.records import Open
from tests.intercept.test_edits import JSON, Spelled, message_of
from tests.live.http.ends import EVENTS, Wire, between, chunk
from tests.live.http.test_intercepts import answer, body_of, event, post, read_back

VERSION = "io.modelcontextprotocol/protocolVersion"
CALL = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "tools/call",
    "params": {"name": "search", "arguments": {"region": "eu", "q": "x", "deep": {"n": 1}}, "_meta": {VERSION: "2026-07-28"}},
}
READ = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "resources/read",
    "params": {"uri": "lab://a", "_meta": {VERSION: "2026-07-28"}},
}
TASK = {"jsonrpc": "2.0", "id": 1, "method": "tasks/get", "params": {"taskId": "t1", "_meta": {VERSION: "2026-07-28"}}}
FIELDS = {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "search", "Mcp-Param-Region": "eu"}
SCHEMA = {
    "properties": {
        "region": {"x-mcp-header": "Region"},
        "deep": {"properties": {"n": {"x-mcp-header": "Count"}}},
        "late": {"x-mcp-header": "Late"},
    }
}
TOOLS = {"jsonrpc": "2.0", "id": 9, "result": {"tools": [{"name": "search", "inputSchema": SCHEMA}, {"name": "other"}]}}


def lines_of(fields: dict[str, str]) -> list[bytes]:
    return [f"{name}: {value}".encode() for name, value in fields.items()]


def mirrored(head: bytes) -> dict[str, str]:
    """Return the fields of a head that may repeat a body."""
    pairs = (line.split(":", 1) for line in head.decode().split("\r\n")[1:] if line.lower().startswith("mcp-"))
    return {name: value.strip() for name, value in pairs}


def through(
    capture: Path, action: str, message: dict[str, Any], fields: dict[str, str], tools: bytes = b""
) -> tuple[dict[str, str], dict[str, str]]:
    """Send a message through a proxy, after a list of tools; return the fields that the server gets, and those in the capture."""
    with between(capture, "--intercept", f"id:1 => {action}") as (upstream, proxy):
        client, body = proxy.connect(), json.dumps(message).encode()
        if tools:
            client.send(post(proxy, b'{"jsonrpc":"2.0","id":9,"method":"tools/list"}'))
            server = upstream.accept()
            body_of(server)
            server.send(tools)
            client.take(len(tools))
        client.send(post(proxy, body, *lines_of(fields)))
        head, sent = body_of(server if tools else upstream.accept())
        json.loads(sent)
        records, _ = read_back(proxy)
    opened = [record for record in records if isinstance(record, Open) and b"POST" in record.head[:4]]
    return mirrored(head), mirrored(opened[-1].forwarded or opened[-1].head)


def without(name: str) -> dict[str, str]:
    return {key: value for key, value in FIELDS.items() if key != name}


@pytest.mark.parametrize(
    ("action", "expected"),
    [
        ('set params.name="x"', FIELDS | {"Mcp-Name": "x"}),
        ('set $.params["name"]=" ö"', FIELDS | {"Mcp-Name": "=?base64?IMO2?="}),
        ('set params.name="=?base64?YQ==?="', FIELDS | {"Mcp-Name": "=?base64?PT9iYXNlNjQ/WVE9PT89?="}),
        ('set method="prompts/get"', without("Mcp-Param-Region") | {"Mcp-Method": "prompts/get"}),
        ('set method="tools/list"', {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/list"}),
        ("remove params.name", without("Mcp-Name")),
        ("set params.name=5", without("Mcp-Name")),
        (f'set params._meta["{VERSION}"]="2027-01-01"', FIELDS | {"MCP-Protocol-Version": "2027-01-01"}),
        ("remove params._meta", FIELDS),
        ('set params.arguments.region="us"', FIELDS | {"Mcp-Param-Region": "us"}),
        ('set params.arguments={"region":"us"}', FIELDS | {"Mcp-Param-Region": "us"}),
        ("set params.arguments.region=true", FIELDS | {"Mcp-Param-Region": "true"}),
        ("set params.arguments.region=17", FIELDS | {"Mcp-Param-Region": "17"}),
        ("remove params.arguments.region", without("Mcp-Param-Region")),
        ("set params.arguments.region=null", without("Mcp-Param-Region")),
        ('set params.arguments.q="y"', FIELDS),
        ('set params.arguments.q="eu"', FIELDS),
        ("set id=2", FIELDS),
    ],
)
def test_fields_follow_an_edit_of_what_they_repeat(action: str, expected: dict[str, str], tmp_path: Path) -> None:
    assert through(tmp_path / "a.mcpspy", action, CALL, FIELDS) == (expected, expected)


@pytest.mark.parametrize(
    ("action", "expected"),
    [
        ('set params.arguments.region="us"', {"Mcp-Param-Region": "us", "Mcp-Param-Count": "1"}),
        ("set params.arguments.deep.n=2", {"Mcp-Param-Region": "eu", "Mcp-Param-Count": "2"}),
        ("remove params.arguments.deep", {"Mcp-Param-Region": "eu"}),
        ('set params.arguments.late="no"', {"Mcp-Param-Region": "eu", "Mcp-Param-Count": "1", "Mcp-Param-Late": "no"}),
        ('set params.name="other"', {"Mcp-Name": "other"}),
        ('set params.name="search"', {"Mcp-Param-Region": "eu", "Mcp-Param-Count": "1"}),
    ],
)
@pytest.mark.parametrize("way", ["json", "events"])
def test_what_the_list_of_tools_marks_is_followed(way: str, action: str, expected: dict[str, str], tmp_path: Path) -> None:
    body = json.dumps(TOOLS).encode()
    tools = answer(body) if way == "json" else EVENTS + chunk(event(body)) + b"0\r\n\r\n"
    fields = FIELDS | {"Mcp-Param-Count": "1"}
    sent, _ = through(tmp_path / "a.mcpspy", action, CALL, fields, tools)
    assert sent == {name: value for name, value in FIELDS.items() if "Param" not in name} | expected


@pytest.mark.parametrize(
    ("message", "action", "fields", "expected"),
    [
        (READ, 'set params.uri="lab://b"', {"Mcp-Method": "resources/read", "Mcp-Name": "lab://a"}, {"Mcp-Name": "lab://b"}),
        (TASK, 'set params.taskId="t2"', {"Mcp-Method": "tasks/get", "Mcp-Name": "t1"}, {"Mcp-Name": "t2"}),
        (CALL, 'set params.name="x"', {"mcp-method": "tools/call", "mcp-name": "=?base64?c2VhcmNo?="}, {"mcp-name": "x"}),
        (CALL, 'set params.name="x"', {"Mcp-Session-Id": "s"}, {}),  # an older revision has no such fields
        (CALL, 'set params.arguments.q="y"', FIELDS | {"Mcp-Name": "wrong", "Mcp-Method": "odd"}, {}),
        (CALL, 'set params.arguments.region="us"', FIELDS | {"Mcp-Param-Region": "wrong"}, {}),
    ],
)
def test_fields_that_do_not_repeat_what_was_edited_stay(
    message: dict[str, Any], action: str, fields: dict[str, str], expected: dict[str, str], tmp_path: Path
) -> None:
    sent, recorded = through(tmp_path / "a.mcpspy", action, message, fields)
    assert sent == recorded == fields | expected


@pytest.mark.parametrize("action", ['garbage "x"', "kind:request tool:search => truncate 20"])
def test_fields_stay_where_a_body_is_broken(action: str, tmp_path: Path) -> None:
    text = action if "=>" in action else f"id:1 => {action}"
    with between(tmp_path / "a.mcpspy", "--intercept", text if "=>" in action else f"kind:request {text}") as (upstream, proxy):
        client: Wire = proxy.connect()
        client.send(post(proxy, json.dumps(CALL).encode(), *lines_of(FIELDS)))
        head, _ = body_of(upstream.accept())
        proxy.stop()
    assert mirrored(head) == FIELDS


HEAD = b"POST /mcp HTTP/1.1\r\nMcp-Method: tools/call\r\nMcp-Name: x\r\nMcp-Param-\xf6: 1\r\nMcp-Param-a: true\r\nX: y\r\n\r\n"


@given(JSON, JSON, st.sampled_from(["x/y", "tools/call", "resources/read", "tasks/get"]))
def test_whatever_a_body_becomes_only_fields_that_repeat_it_change(before: Spelled, after: Spelled, method: str) -> None:
    bodies = [message_of(params, "")[0].replace(b"x/y", method.encode()) for params in (before, after)]
    head = with_mirrored(HEAD, bodies[0], bodies[1], MirroredArguments())
    kept = [line for line in HEAD.split(b"\r\n") if not line.startswith((b"Mcp-Name", b"Mcp-Param-a"))]
    assert [line for line in head.split(b"\r\n") if not line.startswith((b"Mcp-Name", b"Mcp-Param-a", b"MCP-Pro"))] == kept
    assert with_mirrored(HEAD, bodies[0], bodies[0], MirroredArguments()) is HEAD

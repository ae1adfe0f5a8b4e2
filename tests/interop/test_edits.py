"""Edited messages of 2026-07-28 at real servers: each is answered as if the client itself had sent it as it is after the edit.

A server of this revision refuses a request whose header fields contradict its body. So for each row the message is also sent without
mcpspy, edited here, with the fields that a client would give it: both answers are the same.
"""

from __future__ import annotations

import copy
import json
from base64 import b64encode
from collections.abc import Iterator
from dataclasses import dataclass
from http.client import HTTPConnection
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.conftest import BuiltProgram
from tests.deadlines import DEADLINE_S
from tests.interop.serving import HttpScene, recorded, serving
from tests.interop.test_generations import SERVERS

META = "io.modelcontextprotocol/"
VERSION = f"{META}protocolVersion"
REVISION = "2026-07-28"
ENVELOPE = {VERSION: REVISION, f"{META}clientInfo": {"name": "c", "version": "1"}, f"{META}clientCapabilities": {}}
MARKS = {"region": "Region", "nearby": "Nearby"}
NAMES = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}


def request(method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": method, "params": {**params, "_meta": ENVELOPE}}


ADD = request("tools/call", name="add", arguments={"a": 1, "b": 2})
PLACE = request("tools/call", name="place", arguments={"region": "eu", "nearby": 3})
PROMPT = request("prompts/get", name="question", arguments={"about": "x"})
READ = request("resources/read", uri="lab://note")
LIST = request("tools/list")
DISCOVER = request("server/discover")
HEADER_MISMATCH = -32020
GONE = object()
"""In place of a value: the member is removed."""
REST = ("params", "_meta")

EDITS: list[tuple[dict[str, Any], tuple[str | int, ...], Any]] = [
    (ADD, ("params", "name"), "count"),
    (ADD, ("params", "name"), "place"),
    (ADD, ("params", "name"), "none"),
    (ADD, ("params", "name"), " \u00f6 \u4e0a"),
    (ADD, ("params", "name"), "=?base64?YQ==?="),
    (ADD, ("params", "name"), ""),
    (ADD, ("params", "name"), GONE),
    (ADD, ("params", "arguments"), {"a": 5, "b": 6}),
    (ADD, ("params", "arguments"), {}),
    (ADD, ("params", "arguments"), GONE),
    (ADD, ("params", "arguments", "a"), 40),
    (ADD, ("params", "arguments", "b"), "two"),
    (ADD, ("params", "arguments", "b"), GONE),
    (ADD, ("params", "arguments", "deep"), {"er": [1, {"x": "\u00e9\n"}]}),
    (ADD, ("method",), "tools/list"),
    (ADD, ("method",), "prompts/get"),
    (ADD, ("method",), "resources/read"),
    (ADD, ("method",), "server/discover"),
    (ADD, ("method",), "no/such"),
    (ADD, (*REST, VERSION), "2027-01-01"),
    (ADD, (*REST, "x.example/y"), {"z": 1}),
    (ADD, (*REST, f"{META}clientInfo"), {"name": "other", "version": "2"}),
    (ADD, (*REST, f"{META}clientInfo"), GONE),
    (ADD, (*REST, f"{META}clientCapabilities"), {"elicitation": {}}),
    (ADD, (*REST, f"{META}clientCapabilities"), GONE),
    (ADD, (*REST, VERSION), GONE),
    (ADD, REST, GONE),
    (ADD, (*REST, "progressToken"), 7),
    (ADD, ("params",), GONE),
    (ADD, ("jsonrpc",), "1.0"),
    (ADD, ("extra",), [None]),
    (ADD, ("jsonrpc",), GONE),
    (ADD, ("method",), GONE),
    (ADD, ("method",), 5),
    (ADD, ("method",), ""),
    (ADD, ("method",), "tools/call\r\nX: 1"),
    (ADD, ("id",), "abc"),
    (ADD, ("id",), 2),
    (ADD, ("id",), None),
    (ADD, ("id",), GONE),
    (ADD, ("id",), 1.5),
    (ADD, ("params",), []),
    (ADD, ("params",), "x"),
    (ADD, ("params", "name"), 5),
    (ADD, ("params", "name"), None),
    (ADD, ("params", "name"), ["add"]),
    (ADD, ("params", "name"), "add\r\nX: 1"),
    (ADD, ("params", "name"), "x" * 20_000),
    (ADD, ("params", "arguments"), []),
    (ADD, ("params", "arguments", "a"), 2**53 + 1),
    (ADD, ("params", "arguments", "a"), 1.5),
    (ADD, ("params", "arguments", "a"), None),
    (ADD, REST, None),
    (ADD, REST, {}),
    (ADD, (*REST, VERSION), 5),
    (ADD, (*REST, VERSION), None),
    (ADD, (*REST, VERSION), ""),
    (ADD, (*REST, VERSION), "\u00e9"),
    (PLACE, ("params", "arguments", "region"), 5),
    (PLACE, ("params", "arguments", "region"), True),
    (PLACE, ("params", "arguments", "region"), None),
    (PLACE, ("params", "arguments", "region"), {"x": 1}),
    (PLACE, ("params", "arguments", "nearby"), "3"),
    (PLACE, ("params", "arguments", "nearby"), 3.0),
    (PLACE, ("params", "arguments", "nearby"), 1.5),
    (PLACE, ("params", "arguments", "nearby"), 2**60),
    (PLACE, ("params", "arguments", "nearby"), False),
    (PLACE, ("params", "arguments"), "x"),
    (READ, ("params", "uri"), "lab://caf\u00e9/\u4e0a"),
    (READ, ("params", "uri"), 5),
    (PLACE, ("params", "arguments", "region"), "us"),
    (PLACE, ("params", "arguments", "region"), " caf\u00e9"),
    (PLACE, ("params", "arguments", "region"), GONE),
    (PLACE, ("params", "arguments", "region"), ""),
    (PLACE, ("params", "arguments", "nearby"), 12),
    (PLACE, ("params", "arguments", "nearby"), -1),
    (PLACE, ("params", "arguments", "nearby"), GONE),
    (PLACE, ("params", "arguments", "nearby"), None),
    (PLACE, ("params", "arguments"), GONE),
    (PLACE, ("params", "arguments"), {"region": "asia"}),
    (PLACE, ("params", "name"), "add"),
    (PLACE, ("method",), "tools/list"),
    (PROMPT, ("params", "name"), "other"),
    (PROMPT, ("params", "arguments", "about"), "y\u00ff"),
    (PROMPT, ("params", "arguments"), GONE),
    (PROMPT, ("method",), "tools/call"),
    (READ, ("params", "uri"), "lab://other"),
    (READ, ("params", "uri"), GONE),
    (READ, ("method",), "prompts/list"),
    (LIST, ("method",), "resources/list"),
    (LIST, ("params", "cursor"), "none"),
    (LIST, (*REST, VERSION), "2025-11-25"),
    (DISCOVER, ("method",), "tools/list"),
    (DISCOVER, ("method",), "tools/call"),
    (DISCOVER, (*REST, VERSION), "1999-01-01"),
]  # fmt: skip


ADDED: list[tuple[dict[str, Any], tuple[str | int, ...], Any]] = [
    (request("tools/call", name="place", arguments={}), ("params", "arguments", "region"), "us"),
    (request("tools/call", name="place"), ("params", "arguments"), {"nearby": 4}),
    (request("tools/call", name="add", arguments={"region": "us"}), ("params", "name"), "place"),
]
"""Edits that add an argument which a field repeats: only the list of tools says which one."""

RESULTS: list[tuple[dict[str, Any], tuple[str | int, ...], Any]] = [
    (ADD, ("result", "content", 0, "text"), "4"),
    (ADD, ("result", "content"), []),
    (ADD, ("result", "content", 0), GONE),
    (ADD, ("result", "isError"), True),
    (ADD, ("result", "_meta"), {"x": "\u00e9"}),
    (ADD, ("result", "resultType"), "input_required"),
    (ADD, ("result",), {}),
    (LIST, ("result", "tools", 0, "name"), "sum"),
    (LIST, ("result", "tools", 1), GONE),
    (LIST, ("result", "tools", 0, "inputSchema", "properties", "a"), {"type": "string"}),
    (READ, ("result", "contents", 0, "text"), "another note\n"),
    (DISCOVER, ("result", "supportedVersions"), ["2027-01-01"]),
]
"""Edits of answers."""


def edited(message: dict[str, Any], path: tuple[str | int, ...], value: Any) -> dict[str, Any]:
    """Set or remove a member of a message."""
    whole = copy.deepcopy(message)
    holder: Any = whole
    for step in path[:-1]:
        holder = holder[step]
    if value is GONE:
        del holder[path[-1]]
    else:
        holder[path[-1]] = value
    return whole


def rule(id: int, path: tuple[str | int, ...], value: Any, kind: str = "request") -> str:
    """Write the same edit as an intercept."""
    spelled = "$" + "".join(f"[{json.dumps(step)}]" for step in path)
    action = f"remove {spelled}" if value is GONE else f"set {spelled}={json.dumps(value)}"
    return f"id:{id} kind:{kind} => {action}"


def fields(message: dict[str, Any]) -> dict[str, str]:
    """Give the header fields that a client gives this message."""
    method, params = message.get("method"), as_object(message.get("params"))
    version = as_object(params.get("_meta")).get(VERSION)
    values = {
        "MCP-Protocol-Version": version if isinstance(version, str) and version else REVISION,
        "Mcp-Method": method or None,
        "Mcp-Name": params.get(NAMES.get(str(method), "")),
    }
    values = {name: value for name, value in values.items() if isinstance(value, str)}
    if method == "tools/call" and params.get("name") == "place":
        arguments = as_object(params.get("arguments"))
        values |= {f"Mcp-Param-{MARKS[name]}": arguments[name] for name in MARKS if isinstance(arguments.get(name), str | int)}
    return {name: spelled(value if isinstance(value, str) else json.dumps(value)) for name, value in values.items()}


def as_object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def spelled(value: str) -> str:
    is_plain = value.isascii() and value.isprintable() and value == value.strip() and value and not value.startswith("=?")
    return value if is_plain else f"=?base64?{b64encode(value.encode()).decode()}?="


def answer(url: str, message: dict[str, Any]) -> tuple[int, Any]:
    """Send a message with its fields; return the status and the answer to it, which comes as JSON or as an event."""
    parts = urlsplit(url)
    connection = HTTPConnection(parts.hostname or "", parts.port or 0, timeout=DEADLINE_S)
    try:
        head = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream", **fields(message)}
        connection.request("POST", parts.path, json.dumps(message), head)
        response = connection.getresponse()
        body = response.read().decode()
    finally:
        connection.close()
    if response.getheader("content-type", "").startswith("text/event-stream"):
        (body,) = [line.removeprefix("data:") for line in body.splitlines() if line.startswith("data:")]
    return response.status, json.loads(body) if body else None


@dataclass(frozen=True)
class Ways:
    """The URLs of one server: its own, and two of mcpspy before it, which edits request N as row N says.

    Lists of tools pass through the one at `lists`; only then, if both are the same, does the other know what fields repeat.
    """

    direct: str
    through: str
    lists: str

    def answer(self, sent: dict[str, Any], edit: dict[str, Any] | None = None) -> tuple[int, Any]:
        """Send a message through mcpspy, which makes `edit` of it."""
        has_list = "tools/list" in (sent["method"], (edit or sent).get("method"))
        return answer(self.lists if has_list else self.through, sent)


FIRST_EDIT, FIRST_RESULT, FIRST_ACTION, FIRST_ADDED = 1000, 2000, 3000, 4000
ACTIONS = ("delay 1ms", "duplicate", "hold 10ms")
SPEAKERS = ("Python 2", "fastmcp 4", "TypeScript 2")
"""The servers that speak this revision."""


@pytest.fixture(scope="module", params=[(server, what) for server in SPEAKERS for what in ("listed", "unlisted")])
def ways(request: pytest.FixtureRequest, built: BuiltProgram, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ways]:
    """A server, and mcpspy before it that has seen its list of tools, or has not."""
    server, what = request.param
    if SERVERS[server].needs:
        built(SERVERS[server].needs)
    rules = [rule(FIRST_EDIT + at, *row[1:]) for at, row in enumerate(EDITS)]
    rules += [rule(FIRST_RESULT + at, *row[1:], "result") for at, row in enumerate(RESULTS)]
    rules += [rule(FIRST_ADDED + at, *row[1:]) for at, row in enumerate(ADDED)]
    rules += [f"id:{FIRST_ACTION + at} kind:request => {action}" for at, action in enumerate(ACTIONS)]
    scene = HttpScene(client=(), server=(*SERVERS[server].words, "http", "mirrored"), path="/mcp")
    folder = tmp_path_factory.mktemp("edits")
    intercepts = folder / "intercepts.txt"
    intercepts.write_text("\n".join(rules) + "\n")
    with (
        serving(scene, folder / "run") as url,
        recorded(url, folder, "--intercepts", str(intercepts)) as through,
        recorded(url, folder / "run", "--intercepts", str(intercepts)) as other,
    ):
        both = Ways(url, through, through if what == "listed" else other)
        assert both.answer(LIST | {"id": 1}) == answer(url, LIST | {"id": 1})
        yield both


def named(row: tuple[dict[str, Any], tuple[str | int, ...], Any]) -> str:
    message, path, value = row
    return f"{message['method']} {'.'.join(map(str, path))} {'removed' if value is GONE else json.dumps(value)}"


@pytest.mark.parametrize("at", range(len(EDITS)), ids=[named(row)[:80] for row in EDITS])
def test_an_edited_message_is_answered_as_if_the_client_had_sent_it(at: int, ways: Ways) -> None:
    message, path, value = EDITS[at]
    sent = message | {"id": FIRST_EDIT + at}
    expected = edited(sent, path, value)
    assert ways.answer(sent, expected) == answer(ways.direct, expected)


@pytest.mark.parametrize("message", [ADD, PLACE, PROMPT, READ, LIST, DISCOVER], ids=lambda message: str(message["method"]))
def test_a_message_that_no_intercept_names_is_answered_as_ever(message: dict[str, Any], ways: Ways) -> None:
    status, direct = answer(ways.direct, message | {"id": 1})
    assert status == 200
    assert ways.answer(message | {"id": 1}) == (status, direct)


@pytest.mark.parametrize("at", range(len(RESULTS)), ids=[named(row)[:80] for row in RESULTS])
def test_an_answer_changes_where_it_was_edited_and_nowhere_else(at: int, ways: Ways) -> None:
    message, path, value = RESULTS[at]
    status, direct = answer(ways.direct, message | {"id": FIRST_RESULT + at})
    assert ways.answer(message | {"id": FIRST_RESULT + at}) == (status, edited(direct, path, value))


@pytest.mark.parametrize("at", range(len(ACTIONS)), ids=ACTIONS)
@pytest.mark.parametrize("message", [ADD, PLACE, LIST], ids=lambda message: str(message["params"].get("name", "list")))
def test_a_message_that_is_kept_or_sent_twice_is_answered_once(message: dict[str, Any], at: int, ways: Ways) -> None:
    sent = message | {"id": FIRST_ACTION + at}
    assert ways.answer(sent) == answer(ways.direct, sent)


@pytest.mark.parametrize("at", range(len(ADDED)), ids=[named(row) for row in ADDED])
def test_an_argument_that_is_added_has_its_field_if_the_list_of_tools_was_seen(at: int, ways: Ways) -> None:
    message, path, value = ADDED[at]
    sent = message | {"id": FIRST_ADDED + at}
    status, got = ways.answer(sent)
    if ways.through == ways.lists:
        assert (status, got) == answer(ways.direct, edited(sent, path, value))
    else:
        assert (status, got["error"]["code"]) == (400, HEADER_MISMATCH)

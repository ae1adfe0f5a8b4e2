"""Property tests: whatever peers send, no rule raises, and no schema of theirs takes endless work."""

import json
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.records import Record
from mcpspy.transcript.findings.json_schema import MAX_STEPS
from mcpspy.transcript.findings.protocol import schemas, types
from mcpspy.transcript.findings.run import all_findings
from mcpspy.transcript.mcp.methods import METHODS
from mcpspy.transcript.transcribe import transcribe
from tests.findings.account import records
from tests.findings.hits import findings_of
from tests.transcript.dialogue import Dialogue, request, result, tool_call
from tests.transcript.traffic import Traffic

NAMES = st.sampled_from([*dict.fromkeys(method.name for method in METHODS), "x", "pong", ""])
REVISIONS = st.sampled_from(["2024-11-05", "2025-03-26", "2025-11-25", "2026-07-28", "2024.11.05", "draft", "", 5, None])
IDS = st.sampled_from([0, 1, 2, "1", 1.0, None, 10**30, True])
SCHEMAS: st.SearchStrategy[Any] = st.recursive(
    st.sampled_from(
        [{"type": "object"}, {"type": 5}, {"required": ["a"]}, {"$ref": "http://127.0.0.1:1/x"}, {"$ref": "#"}, [], None, "x"]
    ),
    lambda inner: st.builds(lambda schema: {"type": "object", "properties": {"a": schema}, "items": schema}, inner),
    max_leaves=4,
)  # fmt: skip
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | IDS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "name", "method", "_meta"]), inner, max_size=3)
    ),
    max_leaves=6,
)
CAPABILITIES = st.dictionaries(st.sampled_from(["tools", "roots", "tasks", "logging"]), VALUES, max_size=3)
META = st.fixed_dictionaries(
    {},
    optional={
        "io.modelcontextprotocol/protocolVersion": REVISIONS,
        "io.modelcontextprotocol/clientCapabilities": CAPABILITIES | VALUES,
        "progressToken": VALUES,
    },
)
PARAMS = st.fixed_dictionaries(
    {},
    optional={
        "protocolVersion": REVISIONS,
        "capabilities": CAPABILITIES | VALUES,
        "name": st.sampled_from(["a", "b", 5]),
        "arguments": VALUES,
        "requestId": IDS,
        "progressToken": IDS,
        "progress": VALUES,
        "taskId": st.sampled_from(["t", 5]),
        "requestState": VALUES,
        "inputResponses": VALUES,
        "_meta": META | VALUES,
    },
)
TOOLS = st.lists(
    st.fixed_dictionaries({"name": st.sampled_from(["a", "b", 5])}, optional={"inputSchema": SCHEMAS, "outputSchema": SCHEMAS})
    | VALUES
)
RESULTS = st.fixed_dictionaries(
    {},
    optional={
        "protocolVersion": REVISIONS,
        "capabilities": CAPABILITIES | VALUES,
        "tools": TOOLS | VALUES,
        "content": VALUES,
        "structuredContent": VALUES,
        "isError": VALUES,
        "resultType": st.sampled_from(["complete", "input_required", "task", "x", 5]),
        "inputRequests": st.dictionaries(
            st.text(max_size=2), st.fixed_dictionaries({"method": NAMES | VALUES}) | VALUES, max_size=2
        )
        | VALUES,
        "requestState": VALUES,
        "task": VALUES,
        "taskId": st.sampled_from(["t", 5]),
        "pollInterval": VALUES,
    },
)
MESSAGES = st.one_of(
    st.builds(
        lambda id, method, params: {"jsonrpc": "2.0", "id": id, "method": method, "params": params}, IDS, NAMES, PARAMS | VALUES
    ),
    st.builds(lambda method, params: {"jsonrpc": "2.0", "method": method, "params": params}, NAMES, PARAMS | VALUES),
    st.builds(lambda id, value: {"jsonrpc": "2.0", "id": id, "result": value}, IDS, RESULTS | VALUES),
    st.builds(
        lambda id, value: {"jsonrpc": "2.0", "id": id, "error": value}, IDS, st.fixed_dictionaries({"code": VALUES}) | VALUES
    ),
)
LINES = st.lists(st.tuples(st.integers(0, 1), MESSAGES | st.lists(MESSAGES, max_size=2)), max_size=12)
FIELDS = st.dictionaries(
    st.sampled_from(["Mcp_Method", "Mcp_Name", "Mcp_Protocol_Version", "Mcp_Session_Id"]),
    st.sampled_from(["", "s", "tools/call", "2025-11-25", "2026-07-28", "=?base64?%%?=", "=?base64?/w==?="]),
)


def nothing_raises(records: list[Record]) -> None:
    transcript = transcribe(records)
    assert len(all_findings(transcript)) >= len(transcript.findings)


@given(LINES)
def test_no_dialogue_raises(lines: list[tuple[int, Any]]) -> None:
    dialogue = Dialogue()
    for stream, message in lines:
        dialogue.line(stream, message)
    nothing_raises(dialogue.closes().records)


@given(
    st.lists(
        st.tuples(MESSAGES, MESSAGES, FIELDS, FIELDS, st.sampled_from([200, 202, 400, 404, 409, 500]), st.booleans()),
        max_size=6,
    )
)
def test_no_traffic_raises(calls: list[Any]) -> None:
    traffic = Traffic()
    for sent, answered, fields, more, status, is_stream in calls:
        call = traffic.post(sent, fields=fields)
        if is_stream:
            call.stream(status, **more).event(answered).event(sent).close()
        else:
            call.answer(status, answered, **more)
    nothing_raises(traffic.ends().records)


# --- Hostile schemas ---


def with_schema(schema: Any, arguments: Any, calls: int = 1) -> Dialogue:
    dialogue = Dialogue().client(request(1)).server(result(1, {"tools": [{"name": "forecast", "inputSchema": schema}]}))
    for id in range(2, 2 + calls):
        call = tool_call(id)
        call["params"]["arguments"] = arguments
        dialogue.client(call).server(result(id))
    return dialogue.closes()


def rules(dialogue: Dialogue) -> list[str]:
    return [finding.rule for finding in findings_of(schemas, dialogue.transcript)]


def test_arguments_are_held_against_the_schema() -> None:
    assert rules(with_schema({"type": "object", "required": ["city"]}, {})) == ["arguments-invalid"]


@pytest.mark.parametrize(("values", "culprit"), [([], "server"), (["Oslo"], "agent")])
def test_arguments_that_no_schema_could_take_are_the_servers_fault(values: list[str], culprit: str) -> None:
    schema = {"type": "object", "properties": {"city": {"enum": values}}}
    (finding,) = findings_of(schemas, with_schema(schema, {"city": "Bergen"}).transcript)
    assert (finding.rule, finding.culprit) == ("arguments-invalid", culprit)


def test_a_schema_that_doubles_its_work_at_each_step_has_an_end() -> None:
    definitions = {f"d{at}": {"allOf": [{"$ref": f"#/$defs/d{at + 1}"}, {"$ref": f"#/$defs/d{at + 1}"}]} for at in range(64)}
    schema = {"type": "object", "$ref": "#/$defs/d0", "$defs": {**definitions, "d64": {"required": ["never"]}}}
    schema["$defs"]["d64"] = {"type": "object"}  # type: ignore[index]  # a schema
    assert rules(with_schema(schema, {}, calls=3)) == []


def test_a_schema_that_refers_to_itself_has_an_end() -> None:
    assert rules(with_schema({"type": "object", "$ref": "#"}, {})) == []


def test_nothing_is_fetched_for_a_schema(monkeypatch: pytest.MonkeyPatch) -> None:
    def fetch(*_: Any, **__: Any) -> None:
        raise AssertionError("somebody went to fetch something")

    monkeypatch.setattr("urllib.request.urlopen", fetch)
    monkeypatch.setattr("socket.create_connection", fetch)
    assert rules(with_schema({"type": "object", "properties": {"a": {"$ref": "http://127.0.0.1:9/x"}}}, {"a": 1})) == []


def test_no_expression_of_a_schema_is_run() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string", "pattern": "^(a+)+$"}}}
    assert rules(with_schema(schema, {"a": "a" * 5000 + "!"})) == []


def test_no_expression_is_run_to_see_which_properties_are_left() -> None:
    schema = {
        "type": "object",
        "patternProperties": {"^(a+)+$": {}},
        "additionalProperties": False,
        "unevaluatedProperties": False,
    }
    assert rules(with_schema(schema, {"a" * 5000 + "!": 1})) == []


def test_long_lists_of_what_is_allowed_are_counted_by_their_length() -> None:
    items = {"enum": list(range(9000))}
    assert rules(with_schema({"type": "object", "properties": {"a": {"items": items}}}, {"a": [8999] * 40_000})) == []


def test_names_within_a_schema_are_not_looked_for() -> None:
    definitions = {f"d{at}": {"$anchor": f"a{at}"} for at in range(1500)}
    schema = {"type": "object", "properties": {"a": {"items": {"$ref": "#a1499"}}}, "$defs": definitions}
    assert rules(with_schema(schema, {"a": [1] * 40_000})) == []


def test_a_schema_nested_too_deep_is_left_alone() -> None:
    schema: Any = {"type": "object"}
    for _ in range(400):
        schema = {"type": "object", "properties": {"a": schema}}
    value: Any = {}
    for _ in range(400):
        value = {"a": value}
    assert rules(with_schema(schema, value)) == []


def test_the_steps_of_a_capture_are_counted_together() -> None:
    properties = {f"p{at}": {"type": "integer"} for at in range(1000)}
    dialogue = with_schema(
        {"type": "object", "properties": properties}, dict.fromkeys(properties, 1), calls=5 + MAX_STEPS // 1000
    )
    assert rules(dialogue) == []


def test_without_the_official_types_only_main_members_count(monkeypatch: pytest.MonkeyPatch) -> None:
    listed = '→ tools/list 1\n← result 1 {"tools":[{"name":5,"inputSchema":{}}]}'
    transcript = transcribe(records(f"· handshake 2025-11-25, server: tools\n{listed}"))
    assert [finding.rule for finding in findings_of(types, transcript)] == [types.NOT_AS_SPECIFIED.name]
    monkeypatch.setitem(sys.modules, "mcp_types", None)
    assert findings_of(types, transcript) == []


# --- Many of one kind ---


@pytest.mark.parametrize(
    "message", ['"method":"m%d"', '"method":"notifications/cancelled","params":{"requestId":%d}', '"id":%d,"error":%d']
)
def test_thousands_of_odd_messages_take_no_longer_than_others(message: str) -> None:
    dialogue = Dialogue()
    for number in range(5000):
        dialogue.server(b'{"jsonrpc":"2.0",%s}\n' % message.replace("%d", str(number)).encode())
    assert len(dialogue.closes().transcript.findings) <= 5000


def test_only_the_first_messages_are_read_for_names_that_come_twice() -> None:
    dialogue = Dialogue()
    for number in range(10_050):
        params = b'"a":1,"a":2' if number in (0, 10_040) else b'"a":1'
        dialogue.server(b'{"jsonrpc":"2.0","method":"x","params":{%s}}\n' % params)
    (finding,) = [finding for finding in dialogue.closes().findings if finding.rule == "duplicate-keys"]
    assert (finding.count, json.dumps("a")[1] in finding.what) == (1, True)


ODD_NAMES = """\
· handshake 2025-11-25, server: tools tasks.requests.tools.call
→ tools/call 1 {"name":"a","task":5}
← {"jsonrpc":"2.0","id":1,"result":{"task":{"taskId":"\\ud800","status":"working"}}}
→ {"jsonrpc":"2.0","id":2,"method":"tasks/get","params":{"taskId":"\\ud800"}}
← {"jsonrpc":"2.0","id":2,"result":{"taskId":"\\udfff","status":["x"]}}
→ {"jsonrpc":"2.0","id":3,"method":"tasks/get","params":{"taskId":"\\ud800"}}
← {"jsonrpc":"2.0","id":3,"result":{"taskId":"\\ud800","status":"completed"}}
→ {"jsonrpc":"2.0","id":4,"method":"tasks/get","params":{"taskId":"\\ud800"}}
← {"jsonrpc":"2.0","id":4,"result":{"taskId":"\\ud800","status":"\\ud801"}}"""


def test_a_task_whose_id_is_half_a_surrogate_pair_is_named_in_valid_text() -> None:
    findings = transcribe(records(ODD_NAMES)).findings
    sentences = [finding.what for finding in findings if finding.rule in ("other-task", "task-goes-on")]
    assert len(sentences) == 2
    assert all(sentence.encode() for sentence in sentences)


# --- Hostile refusals ---

SURROGATES = "\\xff\\xfe\\xed\\xa0\\x80"
REFUSALS = {
    "a huge body": ("500 Internal Server Error", "", "⟪x×3000000⟫"),
    "a body that is no UTF-8": ("502 Bad Gateway", "  Content-Type: text/html\n", SURROGATES),
    "a body that looks like a page without an end": ("502 Bad Gateway", "", "⟪<center>×300000⟫"),
    "a host that is no text": ("421 Misdirected Request", "", f"host {SURROGATES}"),
    "a challenge without an end": (
        "403 Forbidden",
        '  WWW-Authenticate: Bearer error="insufficient_scope", scope="⟪a×99999⟫\n',
        "",
    ),
    "a date of no calendar": ("429 Too Many Requests", "  Retry-After: Wed, 99 Nov 99999 99:99:99 GMT\n", ""),
    "a wait without an end": ("429 Too Many Requests", "  Retry-After: ⟪9×5000⟫\n", ""),
    "a status that is no number": ("abc", "", "x"),
}


@pytest.mark.parametrize(("status", "fields", "body"), REFUSALS.values(), ids=list(REFUSALS))
def test_a_refusal_is_said_in_short_sentences_whatever_it_holds(status: str, fields: str, body: str) -> None:
    request = "→ POST /mcp\n  Authorization: Bearer redacted-aa\n  tools/list %d\n"
    refusal = f"← {status}\n{fields}" + (f"  {body}\n" if body else "")
    findings = transcribe(records(request % 1 + refusal + request % 2 + refusal)).findings
    assert all(len(sentence.encode()) < 1000 for found in findings for sentence in (found.what, found.blame, found.advice))


def test_thousands_of_misdelivered_answers_take_no_longer_than_others() -> None:
    traffic = Traffic()
    for id in range(3000):
        traffic.post(request(id), fields={"Mcp-Session-Id": "alice"})
        traffic.post(request(-id), fields={"Mcp-Session-Id": "bob"}).answer(200, result(id))
    assert "misdelivered-answer" in {finding.rule for finding in traffic.ends().transcript.findings}

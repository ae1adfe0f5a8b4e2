"""Logs of programs that do not write everything as JSON, or write what came before: nobody is accused of what such a log lacks."""

import json

import pytest

from mcpspy.imports.formats import recognized
from mcpspy.imports.logs import LogImporter
from mcpspy.imports.source import Source
from tests.imports.test_logs_of_others import (
    HELLO,
    INIT,
    LIST,
    PING,
    PONG,
    READY,
    TALK,
    TOOLS,
    gaps,
    notes,
    outcomes,
    read,
    rules,
    seen,
    stamp,
    timed,
)

LATER = [("recv", PING), ("send", PONG)]

# An answer in a form that is not read

PRINTED = {
    "an object of node": "{ jsonrpc: '2.0', id: 1, result: { tools: [ [Object], [Object] ] } }",
    "an object of node, the result first": "{ result: { tools: [] }, jsonrpc: '2.0', id: 1 }",
    "an object of deno": '{ jsonrpc: "2.0", id: 1, result: { tools: [] } }',
    "an error of node": "{ jsonrpc: '2.0', id: 1, error: { code: -32601, message: 'no' } }",
    "a tight object": "{jsonrpc: '2.0', id: 1, result: {tools: []}}",
    "an object that is cut": "{ jsonrpc: '2.0', id: 1, result: { tools: [ { name: 'x', descr...",
    "a record of Java": "JSONRPCResponse[jsonrpc=2.0, id=1, result={tools=[]}, error=null]",
    "a record of Java after words": "Received message: JSONRPCResponse[jsonrpc=2.0, id=1, result={tools=[]}, error=null]",
    "a struct of Rust": "JsonRpcResponse { jsonrpc: JsonRpcVersion2_0, id: Number(1), result: ListToolsResult { tools: [] } }",
    "an error of Rust": "Error(JsonRpcError { jsonrpc: JsonRpcVersion2_0, id: Number(1), error: ErrorData { code: -32601 } })",
    "JSON that is cut": '{"jsonrpc":"2.0","id":1,"result":{"tools":[',
}
NOT_A_MESSAGE = [
    "it expects jsonrpc: '2.0' and an id: none came",
    "{ port: 8080, stdio: false }",
    "JSONRPCResponse is not known",
    "JsonRpcError: the other side left",
    "[server stderr] expected a notification, got JsonRpcRequest { jsonrpc: JsonRpcVersion2_0, id: Number(1) }",
    "{ jsonrpc: '1.0', id: 1, result: null }",
]


@pytest.mark.parametrize("form", ["{at} {word} {message}", "{at} [debug] {word}: {message}"])
@pytest.mark.parametrize("name", PRINTED)
def test_an_answer_that_is_not_read_is_a_gap_and_no_missing_answer(name: str, form: str) -> None:
    (records,) = read(timed([*TALK[:4], ("send", PRINTED[name]), *LATER], form))
    (gap,) = gaps(records)
    assert gap.startswith("line 5 of the log has ")
    assert ("only the beginning" in gap) == name.startswith("JSON")
    assert outcomes(records) == ["ok", "unknown", "ok"]
    assert "unanswered-request" not in rules(records)


@pytest.mark.parametrize("line", NOT_A_MESSAGE)
def test_words_about_messages_hide_no_missing_answer(line: str) -> None:
    (records,) = read(timed([*TALK[:4], ("saw", line), *LATER]))
    assert gaps(records) == []
    assert outcomes(records) == ["ok", "unanswered", "ok"]
    assert "unanswered-request" in rules(records)


def test_a_log_without_any_json_is_not_read() -> None:
    assert (
        recognized(timed([("send", text) for text in PRINTED.values() if "jsonrpc" in text and text[1] != '"']).encode())
        is None
    )


# Messages before `initialize`

_STATUS = '{"jsonrpc":"2.0","id":1,"method":"server_status"}'
_STATUS_ERROR = '{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"no"}}'
EARLIER: dict[str, tuple[list[tuple[str, str]], list[str]]] = {
    "a method that is not known": ([("<<<", _STATUS), (">>>", _STATUS_ERROR)], ["→server_status", "←1"]),
    "a method that is not known, unanswered": ([("<<<", _STATUS)], ["→server_status"]),
    "its answer": ([(">>>", _STATUS_ERROR)], ["←1"]),
    "a ping": ([("<<<", PING), (">>>", PONG)], ["→ping", "←7"]),
    "what only a client sends": ([("<<<", LIST), (">>>", TOOLS)], ["→tools/list", "←1"]),
    "both": ([("<<<", _STATUS), (">>>", _STATUS_ERROR), ("<<<", LIST)], ["→server_status", "←1", "→tools/list"]),
}


@pytest.mark.parametrize("name", EARLIER)
def test_what_came_before_initialize_is_of_an_earlier_session(name: str) -> None:
    earlier, messages = EARLIER[name]
    sessions = read(timed([*earlier, ("<<<", INIT), (">>>", HELLO), ("<<<", READY)]))
    assert [[text for text in seen(records) if text[0] != "!"] for records in sessions] == [
        messages,
        ["→initialize", "←0", "→notifications/initialized"],
    ]
    assert "early-request" not in rules(*sessions)


@pytest.mark.parametrize("lines", ["", "starting\n", f"{stamp(0)} server is up on 8080\n{stamp(0)} ready\n"])
def test_lines_before_initialize_are_of_its_session(lines: str) -> None:
    (records,) = read(lines + timed(TALK))
    assert next(text for text in seen(records) if text[0] != "!") == "→initialize"
    assert len([text for text in seen(records) if text[0] == "!"]) == lines.count("\n")


def test_a_request_between_initialize_and_its_answer_is_early() -> None:
    (records,) = read(timed([("<<<", INIT), ("<<<", LIST), (">>>", HELLO), ("<<<", READY), (">>>", TOOLS)]))
    assert "early-request" in rules(records)


# Messages that nothing tells the sender of


@pytest.mark.parametrize(("count", "said"), [(1, "1 × "), (3, "3 × "), (0, "")])
def test_messages_of_unknown_senders_are_counted_if_there_is_no_session(count: int, said: str) -> None:
    importer = LogImporter(Source(name="x.log", format="log", wall_ns=1, sha256="ab"))
    answers = [json.dumps({"jsonrpc": "2.0", "id": id, "error": {"code": id, "message": "no"}}) for id in range(count)]
    assert [*importer.feed("\n".join(answers).encode()), *importer.close()] == []
    assert importer.passed_over() == ([f"not read: {said}a message whose sender is unknown"] if said else [])


def test_in_a_session_a_gap_names_them() -> None:
    (records,) = read(timed(TALK) + _STATUS_ERROR.replace(":1,", ":99,") + "\n")
    assert (gaps(records), notes(records)) == (["left out: 1 × a message whose sender is unknown, line 8"], [])


# A server's output that was saved

OUTPUT = {
    "results": ([HELLO, TOOLS], ["←0", "←1"]),
    "results and notifications": ([HELLO, '{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}', TOOLS], None),
    "a banner first": (["server 1.0", HELLO, TOOLS], ["←0", "←1"]),
    "blanks before them": ([f"  {HELLO}", f"\t{TOOLS}"], ["←0", "←1"]),
    "a result that both sides may send, among others": ([HELLO, PONG], ["←0"]),
}
NO_OUTPUT = {
    "only results that both sides may send": [PONG, _STATUS_ERROR],
    "results after words of a document": [f"> {HELLO}", f"- {TOOLS}"],
    "a result in quotes": [f"`{HELLO}`"],
}


@pytest.mark.parametrize("name", OUTPUT)
def test_the_output_of_a_server_has_no_messages_of_a_client(name: str) -> None:
    lines, messages = OUTPUT[name]
    (records,) = read("\n".join(lines) + "\n")
    assert [text for text in seen(records) if text[0] != "!"] == (messages or ["←0", "←notifications/tools/list_changed", "←1"])
    assert any("client" in gap or "sender is unknown" in gap for gap in gaps(records))
    assert rules(records) == {"recording-gap"}


@pytest.mark.parametrize("name", NO_OUTPUT)
def test_what_is_no_output_of_a_server_is_left_out(name: str) -> None:
    importer = LogImporter(Source(name="x.log", format="log", wall_ns=1, sha256="ab"))
    assert [*importer.feed("\n".join(NO_OUTPUT[name]).encode()), *importer.close()] == []


def test_a_result_of_which_the_request_is_left_out_has_no_side() -> None:
    (records,) = read(f"{INIT}\n{HELLO}\n{READY}\n{TOOLS}\n")
    assert gaps(records) == ["left out: 1 × a message whose sender is unknown, line 4"]
    assert "unpaired-response" not in rules(records)


# Requests of the Python SDK that HTTP refused


def test_a_gap_of_the_python_sdk_does_not_say_that_an_answer_came() -> None:
    before = f"{stamp(1)} - mcp.client.streamable_http - DEBUG - Sending client message: "
    request = "root=JSONRPCRequest(method='initialize', params={}, jsonrpc='2.0', id=0)"
    (records,) = read(f'{before}{request}\n{stamp(2)} - httpx - INFO - HTTP Request: POST http://a/ "HTTP/1.1 404 Not Found"\n')
    assert gaps(records) == ["the Python SDK does not log answers that come as JSON, nor errors of HTTP"]

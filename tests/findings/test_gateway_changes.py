"""Tests of the finding that a gateway changed a message, and of the changes that it may make."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.transcript.findings.run import all_findings
from mcpspy.transcript.transcribe import transcribe
from tests.findings.account import Account

TRACE = '"traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"'
META = f'"_meta":{{"progressToken":"t",{TRACE}}}'
RULES = {"changed-by-gateway", "withheld-by-gateway"}


def call(arguments: str = '{"a":1}', *, meta: str = META, name: str = "add") -> str:
    """Write a call."""
    return f'→ tools/call 1 {{"name":"{name}","arguments":{arguments},{meta}}}\n'


def found(outer: str, inner: str, request: str = "", *, passed: str = "") -> list[tuple[str, str]]:
    """Give the rules and sentences of findings where the client got the answer `outer`, and the server sent `inner`.

    The gateway made of the request what is `passed`; nothing: the same.
    """
    request = request or call()
    begin = "· handshake 2025-11-25, server: tools\n"
    accounts = (
        Account(f"{begin}{request}· 1.0 s later\n{outer}"),
        Account(f"{begin}· 0.2 s later\n{passed or request}· 0.1 s later\n{inner}", "behind"),
    )
    findings = all_findings(transcribe(*(account.records for account in accounts)), rules=RULES)
    assert {finding.culprit for finding in findings} <= {"gateway"}
    return [(finding.severity, finding.what) for finding in findings]


def result(value: str) -> str:
    return f"← result 1 {value}\n"


def text(value: str, rest: str = "") -> str:
    return result(f'{{"content":[{{"type":"text","text":{json.dumps(value, ensure_ascii=False)}}}]{rest}}}')


def tools(*items: str, cursor: str = "") -> str:
    return result(f'{{"tools":[{",".join(items)}]{cursor}}}')


DONE = text("done")
LIST = f"→ tools/list 1 {{{META}}}\n"
ADD = '{"name":"add","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}'
PROGRESS = '← notifications/progress {"progressToken":"t","progress":1}\n'

CHANGED = {
    "a number that lost its last digits": (
        (DONE, DONE, call('{"id":12345678901234567890}')),
        {"passed": call('{"id":12345678901234567000}')},
        "$.arguments.id: 12345678901234567890 became 12345678901234567000",
    ),
    "a number that became a double": (
        (DONE, DONE, call('{"id":12345678901234567890}')),
        {"passed": call('{"id":1.2345678901234567e19}')},
        "$.arguments.id: 12345678901234567890 became 1.2345678901234567e+19",
    ),
    "a number that became a text": (
        (DONE, DONE, call('{"a":1}')),
        {"passed": call('{"a":"1"}')},
        '$.arguments.a: 1 became "1"',
    ),
    "an object that became a list": (
        (DONE, DONE, call('{"a":{}}')),
        {"passed": call('{"a":[]}')},
        "$.arguments.a: {} became []",
    ),
    "true that became 1": ((DONE, DONE, call('{"a":true}')), {"passed": call('{"a":1}')}, "$.arguments.a: true became 1"),
    "an argument that was left out": (
        (DONE, DONE, call('{"a":1,"b c":"x"}')),
        {"passed": call('{"a":1}')},
        "$.arguments['b c'] \"x\" was left out",
    ),
    "an argument that was added": ((DONE, DONE), {"passed": call('{"a":1,"b":2}')}, "$.arguments.b 2 was added"),
    "a progress token that was left out": (
        (DONE, DONE),
        {"passed": call(meta=f'"_meta":{{{TRACE}}}')},
        '$._meta.progressToken "t" was left out',
    ),
    "a text that was cut": ((text("do"), DONE), {}, '$.content[0].text: "do" became "done"'),
    "structured content that was left out": (
        (DONE, text("done", ',"structuredContent":{"sum":3}')),
        {},
        '$.structuredContent {"sum": 3} was left out',
    ),
    "a block that was added": (
        (result('{"content":[{"type":"text","text":"done"},{"type":"text","text":"buy"}]}'), DONE),
        {},
        "$.content: ",
    ),
    "an error with another code": (
        ("← error 1 -32000 Unknown tool\n", "← error 1 -32602 Unknown tool\n"),
        {},
        "$.code: -32602 became -32000",
    ),
    "a result that became an error": (("← error 1 -32000 no\n", DONE), {}, '$: {"content": '),
    "a tool that lost its annotations": (
        (tools(ADD.replace(',"annotations":{"readOnlyHint":true}', "")), tools(ADD), LIST),
        {},
        '$.tools[0].annotations {"readOnlyHint": true} was left out',
    ),
    "a list that lost its next page": (
        (tools(ADD), tools(ADD, cursor=',"nextCursor":"2"'), LIST),
        {},
        '$.nextCursor "2" was left out',
    ),
    "progress that did not come through": (
        (DONE, f"{PROGRESS}{PROGRESS}{DONE}"),
        {},
        "The server sent notifications/progress about tools/call add (row 6) 2 times",
    ),
}


@pytest.mark.parametrize(("messages", "more", "expected"), CHANGED.values(), ids=list(CHANGED))
def test_a_change_is_found_with_its_place_and_both_values(
    messages: tuple[str, ...], more: dict[str, str], expected: str
) -> None:
    if expected.startswith('$.content[0].text: "do"'):
        expected = '$.content[0].text: "done" became "do"'
    ((severity, what),) = found(*messages, **more)
    assert severity == "warning"
    assert expected in what


MAY = {
    "the same": ((DONE, DONE), {}),
    "other ids and progress tokens": (
        (DONE, DONE.replace("result 1", "result 7")),
        {"passed": call(meta=META.replace('"t"', '"u"')).replace("call 1", "call 7")},
    ),
    "a trace of its own, and more in _meta": (
        (DONE, DONE),
        {"passed": call(meta=META.replace("b7ad6b7169203331", "00f067aa0ba902b7").replace('"_meta":{', '"_meta":{"x/y":1,'))},
    ),
    "a name without its prefix": ((DONE, DONE, call(name="demo_add")), {"passed": call()}),
    "other cursors": (
        (tools(ADD, cursor=',"nextCursor":"MQ=="'), tools(ADD, cursor=',"nextCursor":"1"'), LIST),
        {},
    ),
    "a list with the tools of other servers, and prefixes": (
        (tools(ADD.replace("add", "demo_add"), ADD.replace("add", "x_read")), tools(ADD), LIST),
        {},
    ),
    "numbers and members spelled otherwise": (
        (result('{"isError":false,"structuredContent":{"b":1.0,"a":100},"content":[]}'),
         result('{"content":[],"structuredContent":{"a":1e2,"b":1}}')),
        {},
    ),
    "JSON in a text, spelled otherwise": ((text('{"b": 1, "a": 2}'), text('{"a":2,"b":1}')), {}),
    "an error that says where it came from": (
        ("← error 1 -32602 demo: Unknown tool\n", "← error 1 -32602 Unknown tool\n"),
        {},
    ),
    "what both sides may leave out": ((text("done", ',"_meta":{"gateway":"x"},"ttlMs":0'), DONE), {}),
    "some of the progress": ((f"{PROGRESS}{DONE}", f"{PROGRESS}{PROGRESS}{DONE}"), {}),
    "progress that the client did not ask for": (
        (DONE, f"{PROGRESS}{DONE}", call(meta=f'"_meta":{{{TRACE}}}')),
        {"passed": call()},
    ),
}  # fmt: skip


@pytest.mark.parametrize(("messages", "more"), MAY.values(), ids=list(MAY))
def test_what_a_gateway_may_change_is_no_finding(messages: tuple[str, ...], more: dict[str, str]) -> None:
    assert found(*messages, **more) == []


def test_an_error_that_became_the_error_of_a_tool_is_a_note() -> None:
    ((severity, _),) = found(text("Unknown tool", ',"isError":true'), "← error 1 -32602 Unknown tool\n")
    assert severity == "note"


def test_many_changes_are_counted_and_long_values_cut() -> None:
    before = json.dumps({f"a{number}": "x" * 500 for number in range(9)})
    ((_, what),) = found(DONE, DONE, call(before), passed=call(before.replace("x", "y")))
    assert "and 6 more places" in what
    assert len(what) < 700


NAMES = st.sampled_from(["a", "_meta", "name", "content", "nextCursor", "x y"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda some: st.lists(some) | st.dictionaries(NAMES, some),
    max_leaves=8,
)


def answered(value: Any) -> str:
    return result(json.dumps({"x": value}))


@given(before=VALUES, after=VALUES)
def test_any_two_answers_can_be_compared_and_equal_ones_are_equal(before: Any, after: Any) -> None:
    found(answered(after), answered(before))
    assert found(answered(before), answered(before)) == []


def test_values_that_are_nested_deep_are_compared() -> None:
    deep = "[" * 900 + "]" * 900
    assert found(result(f'{{"x":{deep}}}'), result(f'{{"x":{deep}}}')) == []
    found(result(f'{{"x":{deep}}}'), result(f'{{"x":{deep.replace("[]", "[1]")}}}'))

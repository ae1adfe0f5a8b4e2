"""Calls of a session that belong together: lists and cycles that repeat, ids that nobody gave out, calls that hold up others."""

import json
from typing import Any

import pytest

from mcpspy.transcript.findings.run import all_findings
from mcpspy.transcript.findings.sequences.loops import MAX_PERIOD, cycles
from mcpspy.transcript.transcribe import transcribe
from tests.findings.account import records

BEGIN = "· handshake 2025-11-25, server: tools resources.subscribe\n"
RULES = {
    "listed-again", "calls-in-circles", "same-failure", "invented-id", "text-contradicts", "blocked-by-call", "other-resource",
    "update-missing", "events-in-burst", "progress-in-burst",
}  # fmt: skip


def found(account: str, begin: str = BEGIN) -> list[tuple[str, str, str]]:
    """Give the rules of these findings, with severity and culprit."""
    findings = all_findings(transcribe(records(begin + account)), rules=RULES)
    return [(finding.rule, finding.severity, finding.culprit) for finding in findings]


def call(number: int, name: str, arguments: str = "{}", answer: str = "ok", rest: str = "") -> str:
    result = f'{{"content":[{{"type":"text","text":{json.dumps(answer)}}}]{rest}}}'
    return f'→ tools/call {number} {{"name":"{name}","arguments":{arguments}}}\n← result {number} {result}\n'


def calls(*names: str) -> str:
    """Write calls, each of a tool or of a tool and an argument."""
    return "".join(call(at, name.partition(" ")[0], f'{{"a":"{name.partition(" ")[2]}"}}') for at, name in enumerate(names, 1))


def lists(times: int, between: str = "", rest: str = "", params: str = "") -> str:
    tools = f'{{"tools":[{{"name":"a","inputSchema":{{"type":"object"}}}}]{rest}}}'
    return between.join(f"→ tools/list {at}{params}\n← result {at} {tools}\n" for at in range(1, times + 1))


HTTP = "· HTTP\n· handshake 2025-11-25, server: tools\n"
TOOLS = '→ tools/list 90\n← result 90 {"tools":[%s]}\n'
READS = '{"name":"%s","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}'
NOT_FOUND = ',"isError":true'
ORDERS = call(1, "orders", answer="ORD-1, ORD-2")


def order(number: int, id: str, answer: str = "Order not found", rest: str = NOT_FOUND, name: str = "order_id") -> str:
    return call(number, "order", f'{{"{name}":{json.dumps(id)}}}', answer, rest)


def waits(*later: str, after: str = "5.0", before: str = "0.6") -> str:
    return f'→ tools/call 1 {{"name":"report"}}\n· {before} s later\n{"".join(later)}· {after} s later\n← result 1\n'


PING, ADD = "→ ping 2\n", '→ tools/call 3 {"name":"add"}\n'
DONE = "← result 2\n← result 3\n"
UNREAD = (
    f'→ tools/call 1 {{"name":"report"}}\n{PING}{ADD}· 4.0 s later\n· stdout stalls: 65536 bytes waiting\n'
    f"· 1.0 s later\n· stdout flows again after %s s\n← result 1\n{DONE}"
)
MEMO = '→ resources/read %d {"uri":"memo:///%s"}\n← result %d {"contents":[{"uri":"memo:///%s","text":"%s"}]}\n'
SUBSCRIBED = '→ resources/subscribe 9 {"uri":"memo:///a"}\n← result 9 {}\n'
UPDATED = '← notifications/resources/updated {"uri":"memo:///a"}\n'


def memo(number: int, asked: str, came: str = "", text: str = "A") -> str:
    return MEMO % (number, asked, number, came or asked, text)


def both(text: str, structured: str) -> str:
    return call(1, "weather", answer=text, rest=f',"structuredContent":{structured}')


def failures(*names: str, text: str = "No API key", rest: str = ',"isError":true') -> str:
    """Write calls that fail, each of a tool or of a tool and an argument."""
    return "".join(
        call(at, name.partition(" ")[0], f'{{"a":"{name.partition(" ")[2]}"}}', text, rest) for at, name in enumerate(names, 1)
    )


LISTED, CIRCLES, INVENTED, ALIKE = "listed-again", "calls-in-circles", "invented-id", "same-failure"
CASES = {
    "a list eight times": (lists(8), [(LISTED, "warning", "client")]),
    "a list five times": (lists(5), [(LISTED, "note", "client")]),
    "a list four times": (lists(4), []),
    "a list after each change": (lists(9, "← notifications/tools/list_changed\n"), []),
    "a list each two minutes": (lists(9, "· 120.0 s later\n"), []),
    "a list whose time is over": (lists(9, "· 2.0 s later\n", ',"ttlMs":1000'), []),
    "a list whose time is not over": (lists(9, "· 2.0 s later\n", ',"ttlMs":60000'), [(LISTED, "warning", "client")]),
    "pages of a list": (lists(9, params=' {"cursor":"x"}'), []),
    "lists that differ": ("".join(lists(1, rest=f',"n":{at}').replace(" 1", f" {at}") for at in range(9)), []),
    "do and undo": (calls(*("lock", "unlock") * 3), [(CIRCLES, "warning", "agent")]),
    "edit, test, edit back, test": (calls(*("edit a", "run", "edit b", "run") * 3), [(CIRCLES, "warning", "agent")]),
    "a cycle that only reads, by its names": (calls(*("get_a", "get_b") * 3), [(CIRCLES, "note", "agent")]),
    "a cycle that only reads, as the server says": (
        TOOLS % ",".join((READS % "a", READS % "b")) + calls(*("a", "b") * 3),
        [(CIRCLES, "note", "agent")],
    ),
    "twice the same": (calls(*("lock", "unlock") * 2), []),
    "the same tests after other edits": (calls("edit a", "run", "edit b", "run", "edit c", "run", "edit d", "run"), []),
    "polling of a status": (calls(*("status",) * 9), []),
    "polling of two states": (
        "· 15.0 s later\n".join(calls("get_a", "get_b") for _ in range(4)),
        [],
    ),
    "five tools that fail alike": (failures(*"abcde"), [(ALIKE, "note", "unclear")]),
    "five arguments that fail alike": (failures("a 1", "a 2", "a 3", "a 4", "a 5"), [(ALIKE, "note", "unclear")]),
    "five errors with one text": (
        "".join(f'→ tools/call {at} {{"name":"{name}"}}\n← error {at} -32603 No API key\n' for at, name in enumerate("abcde", 1)),
        [(ALIKE, "note", "unclear")],
    ),
    "four tools that fail alike": (failures(*"abcd"), []),
    "one call that fails five times": (failures(*"aaaaa"), []),
    "five tools that work": (failures(*"abcde", rest=""), []),
    "five failures of different texts": (failures("a") + failures("b", text="Not found") + failures(*"cde"), []),
    "a success between failures": (failures(*"abc") + call(4, "d") + failures("e", "f"), []),
    "failures without a text": (failures(*"abcde", text=""), []),
    "a circle of calls that fail": (failures(*("a", "b", "c", "d", "e") * 3), [(CIRCLES, "warning", "agent")]),
    "two ids that nobody gave out": (ORDERS + order(2, "ORD-70") + order(3, "ORD-71"), [(INVENTED, "warning", "agent")]),
    "two numbers that nobody gave out": (
        call(1, "orders", answer='{"order_id": 1041}') + order(2, "7001") + order(3, "7002"),
        [(INVENTED, "warning", "agent")],
    ),
    "one id that nobody gave out": (ORDERS + order(2, "ORD-70"), []),
    "ids that a result gave out": (ORDERS + order(2, "ORD-1") + order(3, "ORD-2"), []),
    "ids of things that the agent made": (
        ORDERS + call(2, "make", '{"id":"ORD-70"}') + call(3, "make", '{"id":"ORD-71"}') + order(4, "ORD-70") + order(5, "ORD-71"),
        [],
    ),
    "ids that the server knows": (ORDERS + order(2, "ORD-70", "open", "") + order(3, "ORD-71", "open", ""), []),
    "ids of another kind than any before": (ORDERS + order(2, "u_9-x") + order(3, "u_8-y"), []),
    "words that are no ids": (ORDERS + order(2, "ORD-70", name="query") + order(3, "ORD-71", name="query"), []),
    "a ping and a call that wait": (waits(PING, ADD) + DONE, [("blocked-by-call", "warning", "server")]),
    "two calls that wait for less than two seconds": (
        waits(ADD.replace("3", "2"), ADD, after="1.0") + DONE,
        [("blocked-by-call", "note", "server")],
    ),
    "requests whose answers the client did not read": (UNREAD % "5.0", []),
    "requests that waited long before the client stopped reading": (
        UNREAD % "2.0",
        [("blocked-by-call", "warning", "server")],
    ),
    "one that is answered meanwhile": (waits(PING, ADD, "← result 2\n") + "← result 3\n", []),
    "requests just before the end": (waits(PING, ADD, after="0.1") + DONE, []),
    "one request that waits": (waits(PING) + "← result 2\n", []),
    "calls that are worked off one after the other": (waits(PING, ADD) + "← result 2\n· 1.0 s later\n← result 3\n", []),
    "contents of another resource": (memo(1, "a") + memo(2, "b", "a"), [("other-resource", "warning", "server")]),
    "the children of a resource": (memo(1, "d/x") + memo(2, "d", "d/x"), []),
    "contents under a URI that nobody asked for": (memo(1, "a") + memo(2, "b", "c"), []),
    "another name of a resource": (memo(1, "a") + memo(2, "latest", "a"), []),
    "a URI in another spelling": (memo(1, "a b") + memo(2, "a%20b", "a b"), []),
    "a change that nobody reported": (SUBSCRIBED + memo(1, "a") + memo(2, "a", text="B"), [("update-missing", "warning", "server")]),
    "a change that was reported": (SUBSCRIBED + memo(1, "a") + UPDATED + memo(2, "a", text="B"), []),
    "a change that is reported just after": (SUBSCRIBED + memo(1, "a") + memo(2, "a", text="B") + UPDATED, []),
    "contents with a time": (SUBSCRIBED + memo(1, "a", text="at 12:01") + memo(2, "a", text="at 12:02"), []),
    "a change without a subscription": (memo(1, "a") + memo(2, "a", text="B"), []),
    "a change after the end of the subscription": (
        SUBSCRIBED + memo(1, "a") + SUBSCRIBED.replace("sub", "unsub").replace("9", "8") + memo(2, "a", text="B"),
        [],
    ),
    "a text that says something else": (both('{"c":4}', '{"c":21}'), [("text-contradicts", "warning", "server")]),
    "a text that says the same": (both('{"c":4}', '{"c":4.0}'), []),
    "a text that rounds": (both('{"c":4.1}', '{"c":4.1234}'), []),
    "a summary": (both("4 degrees", '{"c":21}'), []),
    "a text with other members": (both('{"summary":"cold"}', '{"c":21}'), []),
}  # fmt: skip


@pytest.mark.parametrize(("account", "expected"), CASES.values(), ids=list(CASES))
def test_a_fault_of_a_sequence_is_found_and_what_looks_like_it_is_not(
    account: str, expected: list[tuple[str, str, str]]
) -> None:
    assert found(account) == expected


def test_contents_out_of_a_cache_are_a_gateways() -> None:
    read = '→ POST /mcp\n  resources/read %d {"uri":"memo:///%s"}\n← 200 OK\n%s  result %d {"contents":[{"uri":"memo:///a","text":"A"}]}\n'
    account = read % (1, "a", "", 1) + read % (2, "b", "  X-Cache: HIT\n", 2)
    assert found(account, HTTP) == [("other-resource", "warning", "gateway")]


EVENTS = (
    '  data: notifications/progress {"progressToken":1,"progress":1}\n'
    '← data: result 1 {"content":[]}\n· the server closes the stream\n'
)
STREAMED = '→ POST /mcp\n  tools/call 1 {"name":"a","_meta":{"progressToken":1}}\n· %s s later\n← 200 OK\n%s'
BUFFERED = {
    "a Content-Length": ("5.0", "  Content-Length: 300\n", "unclear"),
    "a Content-Length, and a gateway's field": ("5.0", "  Server: nginx\n  Content-Length: 300\n", "gateway"),
}


@pytest.mark.parametrize(("later", "fields", "culprit"), BUFFERED.values(), ids=list(BUFFERED))
def test_a_stream_that_came_whole_was_held_back(later: str, fields: str, culprit: str) -> None:
    assert found(STREAMED % (later, fields) + EVENTS, HTTP) == [("events-in-burst", "warning", culprit)]


def test_a_quick_stream_with_its_length_was_not_held_back() -> None:
    assert found(STREAMED % ("0.1", "  Content-Length: 300\n") + EVENTS, HTTP) == []


def test_one_event_with_its_length_was_not_held_back() -> None:
    event = '  data: result 1 {"content":[]}\n· the server closes the stream\n'
    assert found(STREAMED % ("5.0", "  Content-Length: 300\n") + event, HTTP) == []


class CountedKeys(list[int]):
    """Keys that count how often one is read."""

    reads = 0

    def __getitem__(self, at: Any) -> Any:
        self.reads += 1
        return super().__getitem__(at)


@pytest.mark.parametrize("turn", [[1], [1, 2], [1, 1, 2], [*range(8)], [*range(9)]], ids=len)
def test_calls_are_compared_a_few_times_each_however_they_repeat(turn: list[int]) -> None:
    keys = CountedKeys(turn * (1_000 // len(turn)))
    found = [(cycle.at, cycle.period) for cycle in cycles(keys)]
    assert found == ([(0, len(turn))] if 1 < len(turn) <= MAX_PERIOD else [])
    assert keys.reads < 6 * MAX_PERIOD * len(keys)

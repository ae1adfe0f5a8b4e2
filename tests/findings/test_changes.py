"""Notifications of changes that come too often, to the wrong client, or not at all; and ids that a model wrote into a text."""

import json

import pytest

from mcpspy.transcript.findings.run import all_findings
from mcpspy.transcript.transcribe import transcribe
from tests.findings.account import Account, records

BEGIN = "· handshake 2025-11-25, server: tools.listChanged resources.subscribe\n"
LIST_CHANGED = "← notifications/tools/list_changed\n"
FILE = "file:///notes/a.txt"
SUBSCRIBE = f'→ resources/subscribe 9 {{"uri":"{FILE}"}}\n← result 9\n'
UNSUBSCRIBE = f'→ resources/unsubscribe 8 {{"uri":"{FILE}"}}\n← result 8\n'
UPDATED = f'← notifications/resources/updated {{"uri":"{FILE}"}}\n'
LATER = "· 9.0 s later\n"
RULES = {"change-storm", "unasked-update", "update-missing", "invented-id"}


def found(account: str) -> list[tuple[str, str, str]]:
    findings = all_findings(transcribe(records(BEGIN + account)), rules=RULES)
    return [(finding.rule, finding.severity, finding.culprit) for finding in findings]


def call(number: int, name: str, answer: str = "ok", rest: str = "", **arguments: str) -> str:
    params = json.dumps({"name": name, "arguments": arguments})
    return f'→ tools/call {number} {params}\n← result {number} {{"content":[{{"type":"text","text":"{answer}"}}]{rest}}}\n'


@pytest.mark.parametrize(
    ("account", "expected"),
    [
        (LIST_CHANGED * 20, [("change-storm", "warning", "server")]),
        (LIST_CHANGED * 19, []),
        (f"{LIST_CHANGED}{LATER}" * 30, []),
        (f"{SUBSCRIBE}{UPDATED * 25}", [("change-storm", "warning", "server")]),
        (f"{SUBSCRIBE}{UPDATED}", []),
        (UPDATED, [("unasked-update", "note", "server")]),
        (f"{SUBSCRIBE}{UNSUBSCRIBE}{UPDATED}", []),
        (f"{SUBSCRIBE}{UNSUBSCRIBE}{LATER}{UPDATED}", [("unasked-update", "note", "server")]),
        (f'{SUBSCRIBE}← notifications/resources/updated {{"uri":"{FILE}#page"}}\n', []),
    ],
)
def test_changes_are_to_be_announced_seldom_and_to_who_asked(account: str, expected: list[tuple[str, str, str]]) -> None:
    assert found(account) == expected


FAILED = ',"isError":true'
WRITES = call(1, "write_file", path="/notes/a.txt", text="x")


@pytest.mark.parametrize(
    ("account", "expected"),
    [
        (f"{SUBSCRIBE}{WRITES}{LATER}", [("update-missing", "note", "server")]),
        (f"{SUBSCRIBE}{WRITES}{UPDATED}{LATER}", []),
        (f"{SUBSCRIBE}{WRITES}", []),
        (f"{WRITES}{LATER}", []),
        (f"{SUBSCRIBE}{call(1, 'read_file', path='/notes/a.txt')}{LATER}", []),
        (f"{SUBSCRIBE}{call(1, 'write_file', path='/notes/b.txt')}{LATER}", []),
        (f"{SUBSCRIBE}{call(1, 'write_file', 'denied', FAILED, path='/notes/a.txt')}{LATER}", []),
    ],
)
def test_a_tool_that_writes_to_a_subscribed_resource_makes_an_update(
    account: str, expected: list[tuple[str, str, str]]
) -> None:
    assert found(account) == expected


ORDERS = call(1, "orders", "ORD-1041 and ORD-1042 are open")


def questions(*ids: str, answer: str = "no such order") -> str:
    return "".join(call(at, "ask", answer, FAILED, question=f"Where is {id} now?") for at, id in enumerate(ids, 2))


@pytest.mark.parametrize(
    ("account", "expected"),
    [
        (ORDERS + questions("ORD-7730", "ORD-7731"), [("invented-id", "note", "agent")]),
        (ORDERS + questions("ORD-1041", "ORD-1042"), []),
        (ORDERS + questions("ORD-7730", "ORD-7731", answer="the server is busy"), []),
        (ORDERS + questions("ORD-7730"), []),
        (questions("ORD-7730", "ORD-7731"), []),
        (ORDERS + questions("2026-11-20", "covid-19"), []),
    ],
)
def test_an_id_in_a_text_is_invented_if_no_message_had_it_and_nobody_knows_it(
    account: str, expected: list[tuple[str, str, str]]
) -> None:
    assert found(account) == expected


CALL = '→ tools/call %d {"name":"pay","arguments":{"to":"%s"}}\n'
ANSWER = '← result %d {"content":[{"type":"text","text":"paid %s"}]}\n'
OUTER = f"{BEGIN}{CALL % (1, 'a')}· 0.6 s later\n{ANSWER % (1, 'a')}"
INNER = f"{BEGIN}· 0.2 s later\n{CALL % (1, 'a')}{ANSWER % (1, 'a')}· 0.5 s later\n"
SECOND = CALL % (2, "b")
PAID = ANSWER % (2, "b")
GIVE_UP = '→ notifications/cancelled {"requestId":2}\n'
QUESTION = '← sampling/createMessage "s" {"messages":[],"maxTokens":1}\n'
REPLY = '→ result "s" {"role":"assistant","content":{"type":"text","text":"x"},"model":"m"}\n'

HOPS = {
    "a cancellation that the server never hears of": (
        f"{SECOND}· 3.0 s later\n{GIVE_UP}{LATER}",
        f"{SECOND}· 8.0 s later\n{PAID}",
        [("withheld-by-gateway", "warning")],
    ),
    "a cancellation that crosses the answer": (
        f"{SECOND}· 3.0 s later\n{GIVE_UP}{LATER}",
        f"{SECOND}· 3.5 s later\n{PAID}",
        [],
    ),
    "a cancellation that it passes on": (
        f"{SECOND}· 3.0 s later\n{GIVE_UP}{LATER}",
        f"{SECOND}· 3.0 s later\n{GIVE_UP}· 5.0 s later\n",
        [],
    ),
    "a change of a list": (
        f"{SECOND}· 2.0 s later\n{PAID}{LATER}",
        f"{SECOND}{LIST_CHANGED}{PAID}{LATER}",
        [("withheld-by-gateway", "warning")],
    ),
    "a change of a list that it passes on": (
        f"{SECOND}· 2.0 s later\n{LIST_CHANGED}{PAID}{LATER}",
        f"{SECOND}{LIST_CHANGED}{PAID}{LATER}",
        [],
    ),
    "a call that it repeats after its own time limit": (
        f"{SECOND}· 12.0 s later\n{PAID}",
        f"{SECOND}{LATER}{GIVE_UP}{CALL % (3, 'b')}· 1.0 s later\n{ANSWER % (3, 'b')}",
        [("repeated-by-gateway", "note")],
    ),
    "a call that it repeats while the first one runs": (
        f"{SECOND}· 12.0 s later\n{PAID}",
        f"{SECOND}{LATER}{CALL % (3, 'b')}· 1.0 s later\n{PAID}{ANSWER % (3, 'b')}",
        [("resent-call", "warning")],
    ),
    "a call that it repeats after an error": (
        f"{SECOND}· 12.0 s later\n{PAID}",
        f"{SECOND}← error 2 -32000 busy\n{LATER}{CALL % (3, 'b')}{ANSWER % (3, 'b')}",
        [],
    ),
    "an answer of the client to a question of the server": (
        f"{SECOND}· 0.2 s later\n{QUESTION}{REPLY}{LATER}",
        f"{SECOND}{QUESTION}{LATER}",
        [("unanswered-request", "error")],
    ),
}


@pytest.mark.parametrize(("outer", "inner", "expected"), HOPS.values(), ids=HOPS)
def test_a_gateway_passes_on_what_concerns_both_sides(outer: str, inner: str, expected: list[tuple[str, str]]) -> None:
    begins = [begin.replace("server:", "client: sampling, server:") for begin in (OUTER, INNER)]
    hops = [Account(begins[0] + outer).records, Account(begins[1] + inner, "behind").records]
    findings = all_findings(transcribe(*hops))
    assert [(finding.rule, finding.severity) for finding in findings if finding.culprit == "gateway"] == expected

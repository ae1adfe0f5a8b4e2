"""The rows of a capture that are compared with its replay."""

from collections.abc import Iterable
from typing import Any

from mcpspy.replay.client.counterpart import PlayedPlan, compared_sides
from mcpspy.replay.client.plan import UnsentMessage
from mcpspy.replay.client.player import Report
from mcpspy.replay.client.read_plan import read_plans
from mcpspy.replay.compare.compare import Comparison, compare
from tests.transcript.dialogue import Dialogue, error, request, result, tool_call
from tests.transcript.traffic import Traffic, opened_session

ROOTS = request(0, "roots/list")


def compared(
    recorded: Dialogue | Traffic,
    live: Dialogue | Traffic,
    sent: Iterable[int],
    *,
    selected: Iterable[int] | None = None,
    **facts: Any,
) -> Comparison:
    """Compare a capture, of which these rows were sent with their own ids, with the live dialogue."""
    (plan,) = read_plans(recorded.transcript)
    report = Report(
        sent={request.row: request.request.id or "" for request in plan.requests if request.row in set(sent)},
        server_requests={"0": 2},
    )
    report.unsent = [
        UnsentMessage(row=send.row, message=send.message, why="")
        for send in plan.sends
        if send.exchange and send.row not in report.sent
    ]
    played = PlayedPlan(plan=plan, report=report, selected=None if selected is None else frozenset(selected), **facts)
    return compare(*compared_sides(recorded.transcript, live.transcript, played))


def calls(*ids: int, answers: int = 9) -> Dialogue:
    dialogue = Dialogue()
    for id in ids:
        dialogue.client(tool_call(id, n=id))
        if id <= answers:
            dialogue.server(result(id, {"n": id}))
    return dialogue


def test_pongs_long_after_the_last_call_are_compared_as_their_pings_are() -> None:
    ping, pong = ({"jsonrpc": "2.0", "method": method} for method in ("ping", "pong"))
    recorded = calls(1).wait(5000).client(ping).server(pong).closes()
    assert not compared(recorded, calls(1).client(ping).server(pong).closes(), [1]).different
    assert compared(recorded, calls(1).client(ping).closes(), [1]).different


def test_a_notification_long_after_the_last_call_may_come_and_need_not() -> None:
    changed = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
    recorded = calls(1).wait(5000).server(changed).closes()
    assert not compared(recorded, calls(1).server(changed).closes(), [1]).different
    assert not compared(recorded, calls(1).closes(), [1]).different
    assert compared(calls(1).closes(), calls(1).server(changed).closes(), [1]).different


def test_a_correlated_value_in_a_notification_is_no_difference() -> None:
    def updated(uri: str) -> Any:
        return {"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": {"uri": uri}}

    recorded, live = (calls(1).server(updated(uri)).client(tool_call(2)).server(result(2)).closes() for uri in ("then", "live"))
    assert compared(recorded, live, [1, 3]).different
    assert not compared(recorded, live, [1, 3], restore=lambda _, raw: raw.replace(b"live", b"then")).different


def test_what_was_not_sent_is_not_missing() -> None:
    comparison = compared(calls(1, 2, 3).closes(), calls(1).closes(), [1])
    assert not comparison.different
    assert comparison.servers[0].same == 1


def test_a_request_that_the_server_sent_on_elsewhere_is_one_request() -> None:
    recorded, live = Traffic(), Traffic()
    opened_session(recorded, "s1")
    opened_session(live, "s2")
    recorded.post(request(7), session="s1").answer(200, result(7))
    live.post(request(7), session="s2").answer(307, Location="/there")
    live.post(request(7), "/there", session="s2").answer(200, result(7))
    comparison = compared(recorded.ends(), live.ends(), [1, 3])
    assert (comparison.different, comparison.servers[0].same) == (False, 2)


def test_of_rows_that_were_asked_for_the_others_are_not_compared() -> None:
    live = Dialogue().client(tool_call(1, n=1)).server(result(1)).client(tool_call(2, n=2)).server(result(2, {"n": 2})).closes()
    comparison = compared(calls(1, 2).closes(), live, [1, 2], selected=[2])
    assert (comparison.different, comparison.servers[0].same) == (False, 1)


def test_what_the_server_asked_after_an_unsent_request_is_not_missing() -> None:
    recorded = calls(1).client(tool_call(2)).server(ROOTS).client(result(0)).server(result(2)).closes()
    assert not compared(recorded, calls(1).closes(), [1]).different


def test_what_the_server_does_not_ask_any_more_is_missing() -> None:
    recorded = Dialogue().client(tool_call(1)).server(ROOTS).client(result(0)).server(result(1)).closes()
    live = Dialogue().client(tool_call(1)).server(result(1)).closes()
    (change,) = compared(recorded, live, [1]).servers[0].calls
    assert (change.how, change.before and change.before.method) == ("removed", "roots/list")


def test_an_answer_that_a_capture_breaks_off_before_may_have_come() -> None:
    assert not compared(calls(1, 2, answers=1), calls(1, 2).closes(), [1, 2]).different


def test_an_answer_that_never_came_is_another_outcome() -> None:
    assert compared(calls(1, 2, answers=1).closes(), calls(1, 2).closes(), [1, 2]).different


def test_correlated_values_are_restored_before_the_comparison() -> None:
    live = Dialogue().client(tool_call(1, n=1)).server(result(1, {"n": 77})).closes()
    assert not compared(calls(1).closes(), live, [1], restore=lambda _, data: data.replace(b"77", b"1")).different


def test_regenerated_values_are_restored_wherever_the_server_uses_them() -> None:
    def run(id: str) -> Dialogue:
        question = request(0, "elicitation/create", {"elicitationId": id, "url": "https://example.org"})
        text = {"content": [{"type": "text", "text": f"You were asked in {id}."}]}
        return Dialogue().client(tool_call(1)).server(question).client(result(0)).server(result(1, text)).closes()

    assert not compared(run("3b98b610-85bc"), run("bb809e03-30b7"), [1]).different
    assert compared(run("3b98"), run("bb80"), [1]).different  # too short to be told from what stands there by chance


def test_regenerated_values_in_an_error_are_restored_too() -> None:
    def run(id: str) -> Dialogue:
        refused = {
            **error(1, -32042),
            "error": {"code": -32042, "message": "", "data": {"elicitations": [{"elicitationId": id}]}},
        }
        return Dialogue().client(tool_call(1)).server(refused).closes()

    assert not compared(run("3b98b610-85bc"), run("bb809e03-30b7"), [1]).different


def test_a_request_that_never_reached_the_wire_is_not_missing() -> None:
    comparison = compared(calls(1, 2).closes(), calls(1).closes(), [1, 2])
    assert not comparison.different


def test_what_stands_where_something_was_redacted_is_no_difference() -> None:
    def run(name: str, rest: str = "!") -> Dialogue:
        text = {"content": [{"type": "text", "text": f"Hello, {name}{rest}"}]}
        return Dialogue().client(tool_call(1)).server(result(1, text)).closes()

    recorded = run("redacted-0123456789ab")
    assert not compared(recorded, run("Ada"), [1]).different
    assert compared(recorded, run("Ada", "?"), [1]).different

"""Task ids, `requestState` and cursors: as recorded when a call is played for the first time, new when it is played again."""

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.capture.file.reader import read
from mcpspy.replay.mock.templates import shifted_time
from mcpspy.transcript.mcp.codes import RELATED_TASK
from tests.conftest import ROOT
from tests.replay.mock.script_playing import Play
from tests.transcript.dialogue import MS, Dialogue, cancelled, make_header, notification, request, result, tool_call

WALL_NS = 10**18
"""The time at which the captures began: 2001-09-09T01:46:40Z."""


def task(id: str, status: str = "working", at: str = "2001-09-09T01:46:40.001Z") -> dict[str, Any]:
    return {"taskId": id, "status": status, "createdAt": at, "lastUpdatedAt": at}


def about(method: str, task_id: str) -> Any:
    return lambda id: request(id, f"tasks/{method}", {"taskId": task_id})


def status(id: str, status: str = "working") -> dict[str, Any]:
    return notification("notifications/tasks/status", task(id, status))


def a_task(id: str = "t") -> Dialogue:
    """Return a call that becomes a task, which is polled twice and then done."""
    recorded = Dialogue().client(tool_call(1, "research")).server(status(id)).server(result(1, {"task": task(id)}))
    recorded.client(about("get", id)(2)).server(result(2, task(id))).server(status(id, "completed"))
    recorded.client(about("get", id)(3)).server(result(3, task(id, "completed")))
    recorded.client(about("result", id)(4))
    return recorded.server(result(4, {"content": [], "_meta": {RELATED_TASK: {"taskId": id}}}))


def begin(play: Play, id: int) -> str:
    """Call the tool; return the live id of its task, which the notification before the answer has too."""
    notification, answer = play.messages(tool_call(id, "research"))
    task_id: str = answer["result"]["task"]["taskId"]
    assert notification["params"]["taskId"] == task_id
    return task_id


def test_the_first_call_has_the_recorded_task_and_each_other_one_of_its_own() -> None:
    play = Play(a_task())
    assert [begin(play, id) for id in range(3)] == ["t", "t-2", "t-3"]


def test_each_of_two_tasks_at_once_is_asked_after_from_its_beginning() -> None:
    play = Play(a_task())
    ids = begin(play, 1), begin(play, 2)
    for method, status in (("get", "working"), ("get", "completed")):
        for id in ids:
            answer, *news = play.messages(about(method, id)(9))
            assert (answer["result"]["taskId"], answer["result"]["status"]) == (id, status)
            assert [notification["params"]["taskId"] for notification in news] == ([id] if status == "working" else [])
    for id in reversed(ids):
        (answer,) = play.messages(about("result", id)(9))
        assert answer["result"]["_meta"][RELATED_TASK]["taskId"] == id


def test_a_task_that_nobody_began_is_not_told_about() -> None:
    play = Play(a_task().client(request(5)).server(status("t")).server(result(5)))
    assert play.messages(request(8)) == [result(8)]
    begin(play, 1)
    begin(play, 2)
    assert [message["params"]["taskId"] for message in play.messages(request(9)) if "method" in message] == ["t"]


def test_a_task_of_the_extension_has_an_id_of_its_own_too() -> None:
    made = {"resultType": "task", **task("t")}
    recorded = Dialogue().client(tool_call(1)).server(result(1, made))
    recorded.client(request(2, "tasks/update", {"taskId": "t", "inputResponses": {"q": {}}})).server(result(2, {"taskId": "t"}))
    play = Play(recorded)
    ids = [play.messages(tool_call(id))[0]["result"]["taskId"] for id in (1, 2)]
    assert ids == ["t", "t-2"]
    for id in ids:
        update = request(3, "tasks/update", {"taskId": id, "inputResponses": {"q": {"action": "accept"}}})
        assert play.messages(update) == [result(3, {"taskId": id})]


def test_the_times_of_a_task_are_those_of_now() -> None:
    play = Play(a_task(), wall_ns=WALL_NS + 3_600 * 10**9 + 5 * MS)
    (notification, answer), (again, _) = (play.messages(tool_call(id, "research")) for id in (1, 2))
    for item in (notification["params"], again["params"], answer["result"]["task"]):
        assert item["createdAt"] == item["lastUpdatedAt"] == "2001-09-09T02:46:40.005Z"
    assert play.messages(about("get", "t")(3))[0]["result"]["createdAt"] == "2001-09-09T02:46:40.005Z"


@pytest.mark.parametrize(
    ("recorded", "later_ns", "now"),
    [
        (b'"2026-11-21T02:33:50.183Z"', 0, b'"2026-11-21T02:33:50.183Z"'),
        (b'"2026-11-21T02:33:50.183Z"', 1_000 * MS, b'"2026-11-21T02:33:51.183Z"'),
        (b'"2026-11-21T02:33:50.183999Z"', 900 * MS, b'"2026-11-21T02:33:51.083999Z"'),
        (b'"2026-12-31T23:59:59+01:00"', 1_000 * MS, b'"2027-01-01T00:00:00+01:00"'),
        (b'"2026-11-21T02:33:50Z"', -1 * MS, b'"2026-11-21T02:33:49Z"'),
        (b'"9999-12-31T23:59:59Z"', 1_000 * MS, b'"9999-12-31T23:59:59Z"'),
        (b'"2026-02-31T02:33:50Z"', 1_000 * MS, b'"2026-02-31T02:33:50Z"'),
        (b'"yesterday"', 1_000 * MS, b'"yesterday"'),
        (b"17", 1_000 * MS, b"17"),
    ],
)
def test_a_time_is_moved_and_spelled_as_it_was(recorded: bytes, later_ns: int, now: bytes) -> None:
    assert shifted_time(recorded, later_ns) == now


def test_what_a_server_asks_for_a_task_of_the_client_has_the_live_id() -> None:
    sampling = request(7, "sampling/createMessage", {"task": {}})
    recorded = Dialogue().client(tool_call(1)).server(sampling).client(result(7, {"task": task("recorded")}))
    recorded.server(about("get", "recorded")(8)).client(result(8, task("recorded", "completed"))).server(result(1))
    play = Play(recorded)
    (question,) = play.messages(tool_call(1))
    (poll,) = play.messages(result(question["id"], {"task": task("live")}))
    assert (poll["method"], poll["params"]) == ("tasks/get", {"taskId": "live"})
    assert play.messages(result(poll["id"], task("live", "completed"))) == [result(1)]


def test_each_of_two_calls_asks_after_its_own_task_of_the_client() -> None:
    sampling = request(7, "sampling/createMessage", {"task": {}})
    recorded = Dialogue().client(tool_call(1)).server(sampling).client(result(7, {"task": task("recorded")}))
    recorded.server(about("get", "recorded")(8)).client(result(8, task("recorded"))).client(status("recorded", "completed"))
    recorded.server(about("result", "recorded")(9)).client(result(9, {})).server(result(1))
    play = Play(recorded)
    ids = [play.messages(tool_call(id))[0]["id"] for id in (1, 2)]
    polls = [play.messages(result(id, {"task": task(f"live {id}")}))[0] for id in ids]
    last = [play.messages(result(poll["id"], task("")))[0] for poll in polls]
    assert (
        [item["params"]["taskId"] for item in polls]
        == [item["params"]["taskId"] for item in last]
        == [f"live {id}" for id in ids]
    )
    assert [item["method"] for item in last] == ["tasks/result"] * 2
    assert [play.messages(result(item["id"])) for item in last] == [[result(1)], [result(2)]]


def test_a_client_that_answers_at_once_is_not_asked_after_a_task() -> None:
    sampling = request(7, "sampling/createMessage", {"task": {}})
    recorded = Dialogue().client(tool_call(1)).server(sampling).client(result(7, {"task": task("recorded")}))
    recorded.server(about("get", "recorded")(8)).client(result(8, task("recorded", "completed"))).server(result(1))
    play = Play(recorded)
    (question,) = play.messages(tool_call(1))
    assert play.messages(result(question["id"], {"content": {}})) == [result(1)]


def greeting(id: Any, state: str = "", name: str = "who") -> dict[str, Any]:
    """Return a call, or with `state` its retry with the answer of a user."""
    more = {"requestState": state, "inputResponses": {name: {"action": "accept"}}} if state else {}
    return request(id, "tools/call", {"name": "greet", **more})


def needing(state: str, name: str = "who") -> dict[str, Any]:
    return {"resultType": "input_required", "inputRequests": {name: {"method": "elicitation/create"}}, "requestState": state}


def in_rounds(first: str = "s", second: str = "s2") -> Dialogue:
    recorded = Dialogue().client(greeting(1)).server(result(1, needing(first)))
    recorded.client(greeting(2, first)).server(result(2, needing(second, "how")))
    return recorded.client(greeting(3, second, "how")).server(result(3, {"said": "hello"}))


def test_calls_in_rounds_that_run_at_once_do_not_share_their_state() -> None:
    play = Play(in_rounds())
    states = [play.messages(greeting(id))[0]["result"]["requestState"] for id in (1, 2)]
    assert states == ["s", "s-2"]
    second = [play.messages(greeting(id, state))[0]["result"]["requestState"] for id, state in ((3, states[1]), (4, states[0]))]
    assert second == ["s2-2", "s2"]
    for id, state in enumerate(second):
        assert play.messages(greeting(id, state, "how")) == [result(id, {"said": "hello"})]


def test_a_pseudonym_is_never_given_out_and_what_is_given_out_instead_is_known() -> None:
    play = Play(in_rounds("redacted-0123456789ab", "v1.redacted-ffffffffffff"))
    states = [play.messages(greeting(id))[0]["result"]["requestState"] for id in (1, 2)]
    assert states == ["mock-1", "mock-2"]
    (last,) = [play.messages(greeting(3, state))[0]["result"]["requestState"] for state in states[1:]]
    assert "redacted" not in last
    assert play.messages(greeting(4, last, "how")) == [result(4, {"said": "hello"})]


def test_a_redacted_cursor_leads_on() -> None:
    cursor = "redacted-0123456789ab"
    recorded = Dialogue().client(request(1)).server(result(1, {"tools": [], "nextCursor": cursor}))
    play = Play(recorded.client(request(2, params={"cursor": cursor})).server(result(2, {"tools": [1]})))
    (first,) = play.messages(request(1))
    assert first["result"]["nextCursor"] == "mock-1"
    assert play.messages(request(2, params={"cursor": "mock-1"})) == [result(2, {"tools": [1]})]


def test_a_cursor_is_as_it_was_recorded() -> None:
    play = Play(Dialogue().client(request(1)).server(b'{"id":1,"result":{"tools":[],"nextCursor":"\\u0061=="}}\n'))
    assert play.lines(request(1)) == play.lines(request(1)) == [b'{"id":1,"result":{"tools":[],"nextCursor":"\\u0061=="}}\n']


def test_a_name_of_another_spelling_is_the_same() -> None:
    play = Play(in_rounds("sé"))
    assert play.messages(greeting(1))[0]["result"]["requestState"] == "sé"
    retry = greeting(2, "STATE")
    line = str(retry).replace("'", '"').replace("STATE", "s\\u00e9").encode() + b"\n"
    assert play.messages(line)[0]["result"]["requestState"] == "s2"


def test_a_call_with_a_name_that_is_given_up_leaves_the_others_alone() -> None:
    play = Play(a_task())
    first = begin(play, 1)
    play.messages(cancelled(1))
    second = begin(play, 2)
    assert play.messages(about("get", second)(3))[0]["result"]["taskId"] == second != first


def test_other_clients_have_names_of_their_own() -> None:
    play = Play(a_task())
    other = play.another()
    assert (begin(play, 1), begin(other, 1)) == ("t", "t")
    assert play.messages(about("get", "t")(2)) == other.messages(about("get", "t")(2))


def test_a_recorded_task_is_played_twice_at_once() -> None:
    """Play a tool of server-everything that runs as a task and asks its user meanwhile."""
    recording = ROOT / "tests" / "transcript" / "recorded" / "research.mcpspy"
    play = Play(SimpleNamespace(records=list(read(str(recording)))))
    call = {"name": "simulate-research-query", "arguments": {"topic": "tap", "ambiguous": True}, "task": {}}
    ids = [play.messages(request(id, "tools/call", call))[-1]["result"]["task"]["taskId"] for id in (1, 2)]
    assert len(set(ids)) == 2
    questions = {}
    for id in ids:
        (question,) = play.messages(request(id, "tasks/result", {"taskId": id, "task": {}}))
        assert question["method"] == "elicitation/create"
        questions[id] = question["id"]
    for id in ids:
        *news, answer = play.messages(result(questions[id], {"action": "accept", "content": {"interpretation": "technical"}}))
        assert {notification["params"]["taskId"] for notification in news} == {id}
        assert answer["id"] == id


NAMED = st.sampled_from(["t", "t-2", "t-3", "s", "redacted-0123456789ab", "mock-1", ""])


@given(st.lists(st.tuples(st.sampled_from(["call", "get", "result", "retry", "list"]), NAMED), max_size=12))
def test_whatever_is_asked_no_two_calls_share_a_name(steps: list[tuple[str, str]]) -> None:
    play = Play(a_task().client(greeting(5)).server(result(5, needing("redacted-0123456789ab"))))
    given_out: list[str] = []
    for id, (what, name) in enumerate(steps):
        match what:
            case "call":
                given_out.append(play.messages(tool_call(id, "research"))[-1]["result"]["task"]["taskId"])
            case "retry":
                given_out += [
                    message["result"]["requestState"] for message in play.messages(greeting(id, name)) if "result" in message
                ]
            case "list":
                given_out += [message["result"]["requestState"] for message in play.messages(greeting(id))]
            case _:
                assert len(play.messages(about(what, name)(id))) >= 1
    assert len(set(given_out)) == len(given_out)
    assert not any("redacted" in item for item in given_out)


def test_two_captures_tell_their_times_by_their_own_clocks() -> None:
    first = Dialogue(header=make_header(wall_ns=WALL_NS)).client(request(1)).server(result(1))
    play = Play(first)
    assert play.replies.wall_ns == WALL_NS

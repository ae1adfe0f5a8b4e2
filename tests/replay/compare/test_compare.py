"""Comparisons of two transcripts: identity, definitions, calls with any ids, durations, findings."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.replay.compare.compare import CallChange, ComparedSide, Comparison, Limit, ServerComparison, compare
from mcpspy.transcript.model import Outcome, Transcript
from tests.transcript.dialogue import Dialogue, error, notification, request, result

TOOL = {"name": "read", "description": "Reads.", "inputSchema": {"type": "object", "properties": {"path": {"type": "string"}}}}
CLIENT: dict[str, Any] = {"protocolVersion": "2025-11-25", "clientInfo": {"name": "c", "version": "1"}, "capabilities": {}}
SERVER: dict[str, Any] = {
    "protocolVersion": "2025-11-25",
    "serverInfo": {"name": "s", "version": "1"},
    "capabilities": {"tools": {}},
}


def call(id: Any, name: str = "read", meta: Any = None, **arguments: Any) -> dict[str, Any]:
    return request(id, "tools/call", {"name": name, "arguments": arguments, **({"_meta": meta} if meta else {})})


def text(id: Any, words: str, **more: Any) -> dict[str, Any]:
    return result(id, {"content": [{"type": "text", "text": words}], **more})


def dialogue_of(*calls: tuple[dict[str, Any], Any]) -> Dialogue:
    """Return requests with their answers; None for no answer."""
    made = Dialogue()
    for params, answer in calls:
        made.client(params)
        if answer is not None:
            made.server(answer)
    return made


def opened(client: Any = None, server: Any = None, tools: Any = (TOOL,)) -> Dialogue:
    made = dialogue_of((request(0, "initialize", client or CLIENT), result(0, server or SERVER)))
    made.client(notification())
    return made.client(request(1, "tools/list")).server(result(1, {"tools": list(tools)}))


def compared(before: Dialogue, after: Dialogue, *ignore: str, limit: Limit | None = None) -> Comparison:
    return compare(ComparedSide(transcript=before.transcript), ComparedSide(transcript=after.transcript), ignore, limit)


def only(comparison: Comparison) -> ServerComparison:
    (server,) = comparison.servers
    return server


def changes(before: Dialogue, after: Dialogue, *ignore: str) -> list[str]:
    return [spelled(change) for change in only(compared(before, after, *ignore)).calls]


def spelled(change: CallChange) -> str:
    shown = change.after or change.before
    assert shown is not None
    places = [differences.path for differences in (*change.params.listed, *change.answer.listed)]
    return " ".join([change.how, shown.target or shown.method, *places])


# --- Calls ---


def test_a_dialogue_does_not_differ_from_itself() -> None:
    made = opened().client(call(2, path="a")).server(text(2, "x")).closes()
    comparison = compared(made, made)
    assert (comparison.different, only(comparison).same) == (False, 3)


def test_ids_and_their_order_count_for_nothing() -> None:
    before = dialogue_of((call(1, path="a"), text(1, "x")), (call(2, path="b"), text(2, "y")))
    after = dialogue_of((call("q", path="b"), text("q", "y")), (call(77, path="a"), text(77, "x")))
    assert changes(before, after) == []


def test_how_params_are_spelled_counts_for_nothing() -> None:
    before = Dialogue().client(b'{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":1.0,"b":2}}\n').server(result(1))
    after = Dialogue().client(b'{"jsonrpc":"2.0","id":1,"method":"x","params":{"b":2,"a":1}}\n').server(result(1))
    assert changes(before, after) == []


def test_tokens_count_for_nothing() -> None:
    before = dialogue_of((call(1, meta={"progressToken": 7}, path="a"), text(1, "x")))
    after = dialogue_of((call(1, path="a"), text(1, "x")))
    assert changes(before, after) == []


def test_params_that_are_not_there_are_empty_ones() -> None:
    assert changes(dialogue_of((request(1, "x"), result(1))), dialogue_of((request(1, "x", {}), result(1)))) == []


def test_calls_come_and_go() -> None:
    before = dialogue_of((call(1, "one"), text(1, "x")), (call(2, "two"), text(2, "x")))
    after = dialogue_of((call(1, "two"), text(1, "x")), (call(2, "three"), text(2, "x")))
    assert changes(before, after) == ["removed one", "added three"]


def test_a_call_that_is_asked_otherwise_is_changed() -> None:
    before = dialogue_of((call(1, path="a", depth=1), text(1, "x")))
    after = dialogue_of((call(1, path="b", depth=1), text(1, "x")))
    assert changes(before, after) == ["changed read $.arguments.path"]


def test_of_several_that_are_left_the_most_alike_are_brought_together() -> None:
    before = dialogue_of(
        (call(1, path="a/long/way/one", depth=1), text(1, "x")), (call(2, path="other", depth=9), text(2, "y"))
    )
    after = dialogue_of((call(1, path="other", depth=8), text(1, "y")), (call(2, path="a/long/way/two", depth=1), text(2, "x")))
    assert changes(before, after) == ["changed read $.arguments.depth", "changed read $.arguments.path"]


def test_equal_calls_are_brought_together_in_order() -> None:
    before = dialogue_of(*((call(id, path="a"), text(id, words)) for id, words in enumerate(["1", "2", "3"])))
    after = dialogue_of(*((call(id, path="a"), text(id, words)) for id, words in enumerate(["1", "2", "4", "5"])))
    assert changes(before, after) == ["changed read $.result.content[0].text", "added read"]


def test_very_many_calls_of_one_tool_are_brought_together_in_order() -> None:
    before, after = (dialogue_of(*((call(id, path=f"{name}{id}"), text(id, "x")) for id in range(300))) for name in ("a", "b"))
    server = only(compared(before, after))
    assert len(server.calls) == 300
    assert all(
        change.before is not None and change.after is not None and change.before.row == change.after.row
        for change in server.calls
    )


def test_an_outcome_that_changed_is_told_with_what_came_instead() -> None:
    (change,) = only(compared(dialogue_of((call(1), text(1, "x"))), dialogue_of((call(1), error(1))))).calls
    assert change.outcomes == (Outcome.OK, Outcome.ERROR)
    assert [difference.path for difference in change.answer.listed] == ["$.result", "$.error"]


def test_a_call_that_was_left_alone_differs_from_one_that_was_answered() -> None:
    before = dialogue_of((call(1), text(1, "x"))).closes()
    (change,) = only(compared(before, dialogue_of((call(1), None)).closes())).calls
    assert change.outcomes == (Outcome.OK, Outcome.UNANSWERED)


def test_what_the_server_asks_is_compared_too() -> None:
    before, after = (
        Dialogue().server(request(0, "roots/list")).client(result(0, {"roots": roots})) for roots in ([], [{"uri": "file:///"}])
    )
    assert changes(before, after) == ["changed roots/list $.result.roots[0]"]


def test_json_in_texts_is_compared_by_what_it_means() -> None:
    before, after = (dialogue_of((call(1), text(1, words))) for words in ('{"t": 20, "at": 1}', '{"at":2,"t":20.0}'))
    assert changes(before, after) == ["changed read $.result.content[0].text.at"]
    assert changes(before, after, "$.result.content[*].text.at") == []


def test_rules_leave_out_params_too() -> None:
    before, after = (dialogue_of((call(1, at=at), text(1, "x"))) for at in (1, 2))
    assert changes(before, after) == ["changed read $.arguments.at"]
    assert changes(before, after, "$.arguments.at") == []


def test_members_that_a_payload_has_twice_are_said() -> None:
    before = Dialogue().client(request(1, "x")).server(b'{"jsonrpc":"2.0","id":1,"result":{"a":1,"a":2}}\n')
    after = Dialogue().client(request(1, "x")).server(result(1, {"a": 3}))
    (change,) = only(compared(before, after)).calls
    assert (spelled(change), change.repeated) == ("changed x $.result.a", ("a",))


def test_two_single_calls_are_compared_whatever_they_ask() -> None:
    made = dialogue_of((call(1, "one", path="a"), text(1, "x")), (call(2, "two", path="a"), text(2, "x"))).transcript
    first, second = (ComparedSide(transcript=made, rows=frozenset({row})) for row in (1, 2))
    (change,) = only(compare(first, second)).calls
    assert spelled(change) == "changed two $.name"


def test_only_the_last_poll_of_a_task_counts() -> None:
    def task(id: str, *statuses: str) -> Dialogue:
        made = dialogue_of((call(1), result(1, {"task": {"taskId": id, "status": "working", "ttl": 1, "createdAt": id}})))
        for at, status in enumerate(statuses, 2):
            made.client(request(at, "tasks/get", {"taskId": id})).server(result(at, {"taskId": id, "status": status}))
        return made

    assert changes(task("t1", "working", "working", "completed"), task("t2", "completed")) == []
    assert changes(task("t1", "working", "completed"), task("t2", "working", "failed")) == ["changed t2 $.result.status"]


# --- Who speaks, what is offered, what was found ---


@pytest.mark.parametrize(
    ("client", "server", "paths"),
    [
        ({**CLIENT, "clientInfo": {"name": "c", "version": "2"}}, SERVER, ["$.client.version"]),
        ({**CLIENT, "capabilities": {"roots": {}}}, SERVER, ["$.client.capabilities.roots"]),
        (CLIENT, {**SERVER, "serverInfo": {"name": "z", "version": "1"}}, ["$.server.name"]),
        (CLIENT, {**SERVER, "capabilities": {}}, ["$.server.capabilities.tools"]),
        ({**CLIENT, "protocolVersion": "2025-06-18"}, {**SERVER, "protocolVersion": "2025-06-18"}, ["$.revision"]),
    ],
)
def test_what_either_side_says_of_itself_is_compared(client: Any, server: Any, paths: list[str]) -> None:
    server_changes = only(compared(opened(), opened(client, server)))
    assert [difference.path for difference in server_changes.identity.listed] == paths
    assert server_changes.calls == []


def test_how_the_server_ended_is_compared_where_both_ended() -> None:
    assert [difference.path for difference in only(compared(opened().exits(0), opened().exits(3))).identity.listed] == [
        "$.server.exit.code"
    ]
    assert not only(compared(opened().exits(3), opened())).identity


def test_a_tool_that_changed_says_in_which_field() -> None:
    changed = {**TOOL, "description": "Sends.", "inputSchema": {"type": "object", "properties": {"to": {"type": "string"}}}}
    server = only(compared(opened(), opened(tools=[changed, {**TOOL, "name": "new"}])))
    assert [(change.how, change.name, [place.path for place in change.fields.listed]) for change in server.definitions] == [
        ("changed", "read", ["$.description", "$.inputSchema.properties.path", "$.inputSchema.properties.to"]),
        ("added", "new", []),
    ]
    assert server.calls == []


def test_a_tool_that_is_gone_is_told() -> None:
    assert [(change.how, change.name) for change in only(compared(opened(), opened(tools=[]))).definitions] == [
        ("removed", "read")
    ]


def test_of_a_list_that_was_not_fetched_nothing_is_missing() -> None:
    before = dialogue_of((request(0, "initialize", CLIENT), result(0, SERVER)))
    assert only(compared(before, opened())).definitions == []
    assert only(compared(opened(), before)).definitions == []


def test_findings_come_and_go() -> None:
    before, after = opened(), opened().server(b"noise\n")
    (change,) = only(compared(before, after)).findings
    assert (change.how, change.finding.rule) == ("added", "stdout-noise")
    (change,) = only(compared(after, before)).findings
    assert change.how == "removed"


# --- Time ---


def took(before_ms: int, after_ms: int, limit: Limit | None = None) -> Comparison:
    before, after = (Dialogue().client(call(1)).wait(ms).server(text(1, "x")) for ms in (before_ms, after_ms))
    return compared(before, after, limit=limit)


@pytest.mark.parametrize(
    ("before_ms", "after_ms", "count"), [(10, 500, 1), (500, 10, 1), (10, 100, 0), (1000, 1500, 0), (200, 350, 0)]
)
def test_times_are_told_past_a_limit(before_ms: int, after_ms: int, count: int) -> None:
    server = took(before_ms, after_ms)
    assert len(only(server).took) == count
    assert not server.different


def test_longer_is_a_difference_where_that_is_asked_for() -> None:
    limit = Limit(factor=3, counts=True)
    assert took(100, 1000, limit).different
    assert not took(1000, 100, limit).different
    assert not took(1000, 2500, limit).different


# --- Servers ---


def labelled(*labels: str) -> Transcript:
    from mcpspy.transcript.transcribe import transcribe
    from tests.transcript.dialogue import make_header

    made = [
        Dialogue(header=make_header(label=label, wall_ns=10**18 + at, monotonic_ns=at)).client(call(1)).server(text(1, label))
        for at, label in enumerate(labels)
    ]
    return transcribe(*(item.records for item in made))


def test_servers_are_brought_together_by_label_in_order() -> None:
    before, after = labelled("git", "time", "time"), labelled("time", "git", "time")
    comparison = compare(ComparedSide(transcript=before), ComparedSide(transcript=after))
    assert sorted(server.name for server in comparison.servers) == ["git", "time", "time 2"]
    assert not comparison.different


def test_a_server_on_one_side_alone_is_a_difference() -> None:
    comparison = compare(ComparedSide(transcript=labelled("git", "time")), ComparedSide(transcript=labelled("git", "new")))
    assert [(server.name, server.before is None, server.after is None) for server in comparison.servers] == [
        ("git", False, False),
        ("time", False, True),
        ("new", True, False),
    ]
    assert comparison.different


def test_one_server_on_either_side_is_the_same_whatever_its_label() -> None:
    comparison = compare(ComparedSide(transcript=labelled("old")), ComparedSide(transcript=labelled("new")))
    assert [spelled(change) for change in only(comparison).calls] == ["changed read $.result.content[0].text"]


# --- Everything ---

CALLS = st.lists(
    st.tuples(
        st.sampled_from(["read", "list", "x"]), st.integers(min_value=0, max_value=3), st.sampled_from(["a", '{"b": 1}', None])
    ),
    max_size=8,
)


@given(CALLS, CALLS)
def test_every_call_is_the_same_or_stands_in_one_change(before: list[Any], after: list[Any]) -> None:
    made = [
        dialogue_of(
            *((call(id, name, n=n), None if words is None else text(id, words)) for id, (name, n, words) in enumerate(calls))
        )
        for calls in (before, after)
    ]
    server = only(compared(made[0], made[1]))
    olds = [change.before.row for change in server.calls if change.before is not None]
    news = [change.after.row for change in server.calls if change.after is not None]
    assert len(set(olds)) == len(olds) == len(before) - server.same
    assert len(set(news)) == len(news) == len(after) - server.same
    assert server.same == len(before) or compared(made[0], made[1]).different
    assert not compared(made[0], made[0]).different


# --- Progress ---


def working(told: int, *, token: Any = "t", first_ms: int = 0, took_ms: int = 0, answer: Any = None) -> Dialogue:
    """Return a call that tells so many times how far it is, first after so long."""
    made = Dialogue().client(call(1, meta=None if token is None else {"progressToken": token}, path="a")).wait(first_ms)
    for step in range(told):
        made.server(notification("notifications/progress", {"progressToken": token, "progress": step + 1}))
    return made.wait(took_ms).server(text(1, "x") if answer is None else answer)


STOPPED, BEGAN = ["changed read $.progress"], ["changed read $.progress"]
PROGRESS = [
    (working(3), working(0), STOPPED),
    (working(1), working(0), STOPPED),
    (working(0), working(2), BEGAN),
    (working(3, token="a"), working(0, token=7), STOPPED),
    (working(3, first_ms=600), working(0), STOPPED),
    (working(3, first_ms=2_000), working(0, took_ms=2_500), STOPPED),
    (working(3, answer=error(1)), working(0, answer=error(1)), STOPPED),
    (working(3), working(0, answer=text(1, "y")), ["changed read $.result.content[0].text $.progress"]),
    (working(2, first_ms=300, took_ms=5_000), working(0, took_ms=10), STOPPED),
    # twins: how often it came depends on time, a server need not send what nobody asked for, and a short call had no time for it
    (working(3), working(1), []),
    (working(1), working(300), []),
    (working(3), working(0, token=None), []),
    (working(0, token=None), working(2), []),
    (working(3, first_ms=2_000), working(0, took_ms=100), []),
    (working(0, took_ms=100), working(3, first_ms=2_000), []),
    (working(0), working(0), []),
]


@pytest.mark.parametrize(("before", "after", "expected"), PROGRESS)
def test_progress_that_stopped_or_began_is_a_difference(before: Dialogue, after: Dialogue, expected: list[str]) -> None:
    assert changes(before, after) == expected
    assert changes(before, after, "$.progress", "$.result") == []


def test_progress_of_a_call_that_nobody_answered_is_none() -> None:
    before, after = working(3).closes(), Dialogue().client(call(1, meta={"progressToken": "t"}, path="a")).closes()
    (change,) = only(compared(before, after)).calls
    assert [difference.path for difference in change.answer.listed] == ["$.result"]

"""Calls of several exchanges over stdio: rounds, tasks, subscriptions, elicitations."""

from typing import Any

import pytest

from mcpspy.transcript.calls.call import Call, CallPart
from mcpspy.transcript.model import Exchange, Outcome, UnpairedMessage
from tests.transcript.dialogue import MS, Dialogue, cancelled, error, notification, progress, request, result

NAME = {"name": {"method": "elicitation/create", "params": {"message": "What is your name?", "requestedSchema": {}}}}
BOB = {"name": {"action": "accept", "content": {"name": "Bob"}}}


def ask(id: Any, tool: str = "greet", **params: Any) -> dict[str, Any]:
    """Return a call of a tool; `params` are further members."""
    return request(id, "tools/call", {"name": tool, **params})


def required(id: Any, state: Any = None, requests: Any = None) -> dict[str, Any]:
    """Return the answer that input is required."""
    content = {"resultType": "input_required", "inputRequests": NAME if requests is None else requests}
    return result(id, content if state is None else {**content, "requestState": state})


def again(id: Any, tool: str = "greet", state: Any = None, **params: Any) -> dict[str, Any]:
    """Return the same request with the required input."""
    return ask(id, tool, inputResponses=BOB, **({} if state is None else {"requestState": state}), **params)


def calls(dialogue: Dialogue) -> list[list[int]]:
    """Return the rows of the exchanges of each call."""
    return [[exchange.row for exchange in call.exchanges] for call in dialogue.transcript.calls]


def only(dialogue: Dialogue) -> Call:
    """Return the only call."""
    (call,) = dialogue.transcript.calls
    return call


def flaws(dialogue: Dialogue) -> list[tuple[int, str]]:
    """Return rows and flaws of all requests and unpaired messages."""
    rows = [row for row in dialogue.transcript.rows if isinstance(row, Exchange | UnpairedMessage)]
    messages = [(row.row, row.request if isinstance(row, Exchange) else row.message) for row in rows]
    return [(row, flaw) for row, message in messages for flaw in message.flaws]


# --- Rounds ---


def test_an_exchange_that_needs_no_other_is_no_call() -> None:
    assert Dialogue().client(ask(1)).server(result(1)).transcript.calls == []


def test_a_retry_with_the_state_is_the_next_round() -> None:
    dialogue = Dialogue().client(ask(1)).server(required(1, "s")).client(again(2, state="s")).server(result(2))
    assert calls(dialogue) == [[1, 2]]


def test_both_rounds_know_their_call() -> None:
    transcript = Dialogue().client(ask(1)).server(required(1, "s")).client(again(2, state="s")).transcript
    assert [transcript.call_of(row) for row in transcript.exchanges] == [transcript.calls[0]] * 2


def test_a_retry_without_a_state_is_found_by_what_it_asks_and_brings() -> None:
    dialogue = Dialogue().client(ask(1)).server(required(1)).client(again(2)).server(result(2))
    assert calls(dialogue) == [[1, 2]]


def test_a_retry_may_bring_the_state_alone() -> None:
    dialogue = Dialogue().client(ask(1)).server(required(1, "s", {})).client(ask(2, requestState="s")).server(result(2))
    assert calls(dialogue) == [[1, 2]]


def test_a_call_takes_as_many_rounds_as_the_server_wants() -> None:
    dialogue = Dialogue().client(ask(1)).server(required(1, "a"))
    dialogue.client(again(2, state="a")).server(required(2, "b")).client(again(3, state="b")).server(result(3))
    assert (calls(dialogue), len(only(dialogue).rounds)) == ([[1, 2, 3]], 3)


def test_the_time_on_the_wire_and_the_time_it_took_are_two() -> None:
    dialogue = Dialogue().client(ask(1)).server(required(1, "s")).wait(3000).client(again(2, state="s")).server(result(2))
    call = only(dialogue)
    assert (call.wire_ns, call.duration_ns) == (2 * MS, 3003 * MS)


def test_a_call_is_pending_while_input_is_required() -> None:
    call = only(Dialogue().client(ask(1)).server(required(1, "s")).closes())
    assert (call.outcome, call.needs_input, call.duration_ns) == (Outcome.PENDING, True, None)


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        (result(2), Outcome.OK),
        (result(2, {"isError": True}), Outcome.TOOL_ERROR),
        (error(2), Outcome.ERROR),
        (cancelled(7), Outcome.PENDING),
    ],
)
def test_what_became_of_a_call_is_what_became_of_its_last_round(answer: Any, outcome: Outcome) -> None:
    dialogue = Dialogue().client(ask(1)).server(required(1, "s")).client(again(2, state="s")).server(answer)
    actual = only(dialogue).outcome
    assert actual is (Outcome.UNANSWERED if outcome is Outcome.PENDING else outcome)  # the capture ends here


def test_a_cancelled_retry_cancels_the_call() -> None:
    dialogue = Dialogue().client(ask(1)).server(required(1, "s")).client(again(2, state="s")).client(cancelled(2))
    assert (only(dialogue).outcome, only(dialogue).duration_ns) == (Outcome.CANCELLED, 3 * MS)


@pytest.mark.parametrize("method", ["prompts/get", "resources/read"])
def test_prompts_and_resources_may_need_input_too(method: str) -> None:
    params = {"name": "x", "uri": "x"}
    dialogue = Dialogue().client(request(1, method, params)).server(required(1, "s"))
    dialogue.client(request(2, method, {**params, "inputResponses": BOB, "requestState": "s"})).server(result(2))
    assert calls(dialogue) == [[1, 2]]


def test_other_requests_need_no_input() -> None:
    dialogue = Dialogue().client(request(1, "tools/list")).server(required(1, "s"))
    assert calls(dialogue) == []


def test_equal_calls_at_once_are_told_apart_by_their_states() -> None:
    dialogue = Dialogue().client(ask(1)).client(ask(2)).server(required(1, "a")).server(required(2, "b"))
    dialogue.client(again(3, state="b")).client(again(4, state="a")).server(result(3)).server(result(4))
    assert (calls(dialogue), flaws(dialogue)) == ([[1, 4], [2, 3]], [])


def test_equal_calls_at_once_without_a_state_are_ambiguous() -> None:
    dialogue = (
        Dialogue().client(ask(1)).client(ask(2)).server(required(1)).server(required(2)).client(again(3)).client(again(4))
    )
    assert (calls(dialogue), flaws(dialogue)) == ([[1], [2]], [(3, "ambiguous-call"), (4, "ambiguous-call")])


def test_one_state_for_all_tells_calls_apart_by_what_they_ask() -> None:
    dialogue = Dialogue().client(ask(1, "a")).client(ask(2, "b")).server(required(1, "s")).server(required(2, "s"))
    dialogue.client(again(3, "b", "s")).client(again(4, "a", "s"))
    assert calls(dialogue) == [[1, 4], [2, 3]]


def test_one_state_for_equal_calls_is_ambiguous() -> None:
    dialogue = (
        Dialogue().client(ask(1)).client(ask(2)).server(required(1, "s")).server(required(2, "s")).client(again(3, state="s"))
    )
    assert (calls(dialogue), flaws(dialogue)) == ([[1], [2]], [(3, "ambiguous-call")])


def test_a_state_finds_its_call_though_the_retry_asks_for_something_else() -> None:
    dialogue = Dialogue().client(ask(1, city="Rome")).server(required(1, "s")).client(again(2, state="s", city="Oslo"))
    assert calls(dialogue) == [[1, 2]]


def test_an_unknown_state_joins_nothing() -> None:
    dialogue = Dialogue().client(ask(1)).server(required(1, "s")).client(again(2, state="S"))
    assert calls(dialogue) == [[1]]


def test_a_state_may_be_any_json_and_is_compared_as_it_stands() -> None:
    dialogue = Dialogue().client(ask(1)).server(required(1, 7)).client(again(2, state="7")).client(again(3, state=7))
    assert calls(dialogue) == [[1, 3]]


def test_a_retry_for_other_input_joins_nothing() -> None:
    dialogue = Dialogue().client(ask(1)).server(required(1)).client(ask(2, inputResponses={"age": {}}))
    assert calls(dialogue) == [[1]]


def test_what_a_request_asks_is_the_same_in_any_order_and_with_other_meta() -> None:
    dialogue = Dialogue().client(ask(1, arguments={"a": 1, "b": 2}, _meta={"progressToken": 1})).server(required(1))
    dialogue.client(again(2, arguments={"b": 2, "a": 1}, _meta={"progressToken": 2}))
    assert calls(dialogue) == [[1, 2]]


def test_arguments_that_speak_of_input_are_no_retry() -> None:
    dialogue = (
        Dialogue().client(ask(1)).server(required(1)).client(ask(2, arguments={"inputResponses": BOB, "requestState": "s"}))
    )
    assert calls(dialogue) == [[1]]


def test_a_round_that_failed_may_be_tried_again_with_the_same_state() -> None:
    dialogue = Dialogue().client(ask(1)).server(required(1, "s")).client(again(2, state="s")).server(error(2))
    dialogue.client(again(3, state="s")).server(result(3))
    assert (calls(dialogue), only(dialogue).outcome) == ([[1, 2, 3]], Outcome.OK)


def test_a_state_that_has_served_its_call_joins_no_other() -> None:
    dialogue = Dialogue().client(ask(1)).server(required(1, "s")).client(again(2, state="s")).server(result(2))
    assert calls(dialogue.client(again(3, state="s"))) == [[1, 2]]


def test_the_same_call_made_later_is_another_one() -> None:
    dialogue = Dialogue().client(ask(1)).server(required(1)).client(again(2)).server(result(2))
    dialogue.client(ask(3)).server(required(3)).client(again(4)).server(result(4))
    assert calls(dialogue) == [[1, 2], [3, 4]]


def test_progress_of_each_round_stays_with_it() -> None:
    dialogue = Dialogue().client(ask(1, _meta={"progressToken": 1})).server(progress(1)).server(required(1, "s"))
    dialogue.client(again(2, state="s", _meta={"progressToken": 2})).server(progress(2)).server(progress(2)).server(result(2))
    assert [exchange.progress for exchange in dialogue.exchanges] == [1, 2]


def test_a_result_that_says_it_is_complete_is_complete() -> None:
    dialogue = Dialogue().client(ask(1)).server(result(1, {"resultType": "complete"}))
    assert (dialogue.exchange.response and dialogue.exchange.response.result_type, dialogue.transcript.calls) == (None, [])


# --- URL elicitation ---


def to_urls(id: Any, *named: str) -> dict[str, Any]:
    """Return the error that sends the user to URLs."""
    listed = [{"mode": "url", "elicitationId": id, "url": f"https://example.org/{id}", "message": "Log in"} for id in named]
    data = {"elicitations": listed}
    return {"jsonrpc": "2.0", "id": id, "error": {"code": -32042, "message": "URL elicitation required", "data": data}}


def url_elicitation(id: Any, named: str) -> dict[str, Any]:
    """Return a request of the server that sends the user to a URL."""
    return request(id, "elicitation/create", {"mode": "url", "elicitationId": named, "url": "https://x", "message": "Log in"})


def done(named: str) -> dict[str, Any]:
    """Return the notification that an elicitation is complete."""
    return notification("notifications/elicitation/complete", {"elicitationId": named})


def test_the_end_of_an_elicitation_belongs_to_the_request_that_began_it() -> None:
    dialogue = Dialogue().server(url_elicitation(1, "e")).client(result(1, {"action": "accept"})).wait(5000).server(done("e"))
    call = only(dialogue)
    assert (call.completed_elicitations, [notification.row for notification in call.notifications], call.duration_ns) == (
        1,
        [2],
        5002 * MS,
    )


def test_elicitations_end_in_any_order() -> None:
    dialogue = Dialogue().server(url_elicitation(1, "a")).server(url_elicitation(2, "b"))
    dialogue.server(done("b")).client(result(1)).client(result(2)).server(done("a"))
    assert [(call.row, [notification.row for notification in call.notifications]) for call in dialogue.transcript.calls] == [
        (1, [4]),
        (2, [3]),
    ]


def test_the_end_of_an_unknown_elicitation_is_in_no_call() -> None:
    dialogue = Dialogue().server(url_elicitation(1, "a")).server(done("b"))
    assert only(dialogue).notifications == []


def test_a_form_is_no_call_of_more_than_an_exchange() -> None:
    assert calls(Dialogue().server(request(1, "elicitation/create", {"message": "City?"})).client(result(1))) == []


def test_a_request_that_was_sent_to_urls_is_tried_again() -> None:
    dialogue = Dialogue().client(ask(1)).server(to_urls(1, "e", "f")).server(done("e")).server(done("f"))
    dialogue.client(ask(2)).server(result(2))
    call = only(dialogue)
    assert (calls(dialogue), call.completed_elicitations, call.elicitations, call.outcome) == ([[1, 4]], 2, 2, Outcome.OK)


def test_another_request_is_no_retry() -> None:
    assert calls(Dialogue().client(ask(1)).server(to_urls(1, "e")).client(ask(2, arguments={"a": 1}))) == [[1]]


def test_equal_requests_that_were_both_sent_to_urls_are_ambiguous() -> None:
    dialogue = Dialogue().client(ask(1)).client(ask(2)).server(to_urls(1, "e")).server(to_urls(2, "f")).client(ask(3))
    assert (calls(dialogue), flaws(dialogue)) == ([[1], [2]], [(3, "ambiguous-call")])


def test_an_error_that_only_looks_like_it_sends_nobody_anywhere() -> None:
    dialogue = Dialogue().client(ask(1)).server({**error(1), "error": {"code": 5, "message": "elicitationId -32042"}})
    assert dialogue.transcript.calls == []


# --- Tasks ---

LEGACY, EXTENSION = "2025-11-25", "2026-07-28"


def task(id: str, status: str = "working", revision: str = LEGACY, **more: Any) -> dict[str, Any]:
    """Return a task, as both generations of tasks spell it."""
    names = ("ttl", "pollInterval") if revision == LEGACY else ("ttlMs", "pollIntervalMs")
    return {"taskId": id, "status": status, "createdAt": "x", "lastUpdatedAt": "x", names[0]: 60_000, names[1]: 1000, **more}


def created(id: Any, name: str = "t", revision: str = LEGACY) -> dict[str, Any]:
    """Return the answer that a request runs as a task."""
    made = task(name, revision=revision)
    return result(id, {"task": made} if revision == LEGACY else {"resultType": "task", **made})


def poll(id: Any, name: str = "t", method: str = "tasks/get") -> dict[str, Any]:
    """Return a request about a task."""
    return request(id, method, {"taskId": name})


def polled(dialogue: Dialogue, count: int, revision: str = LEGACY) -> Dialogue:
    """Return a task that was polled so often and still works."""
    dialogue.client(ask(0)).server(created(0, revision=revision))
    for id in range(1, count + 1):
        dialogue.wait(998).client(poll(id)).server(result(id, task("t", revision=revision)))
    return dialogue


def status_told(name: str, status: str, revision: str = LEGACY, **more: Any) -> dict[str, Any]:
    """Return a notification about a task."""
    method = "notifications/tasks/status" if revision == LEGACY else "notifications/tasks"
    return notification(method, task(name, status, revision, **more))


@pytest.mark.parametrize("revision", [LEGACY, EXTENSION])
def test_a_task_is_one_call_with_its_polls(revision: str) -> None:
    call = only(polled(Dialogue(), 17, revision))
    assert (len(call.polls), len(call.rounds), call.task and (call.task.id, call.task.status)) == (17, 1, ("t", "working"))


@pytest.mark.parametrize("revision", [LEGACY, EXTENSION])
def test_a_task_says_how_often_to_poll_it(revision: str) -> None:
    task_facts = only(polled(Dialogue(), 1, revision)).task
    assert task_facts is not None
    assert (task_facts.ttl_ms, task_facts.poll_interval_ms) == (60_000, 1000)


def test_a_call_lasts_until_the_result_of_its_task() -> None:
    dialogue = polled(Dialogue(), 3).client(poll(4)).server(result(4, task("t", "completed")))
    dialogue.client(poll(5, method="tasks/result")).server(result(5, {"content": []}))
    call = only(dialogue)
    assert (call.outcome, call.duration_ns, call.wire_ns) == (Outcome.OK, 3005 * MS, 6 * MS)


def test_a_result_within_the_answer_to_a_poll_ends_the_call() -> None:
    dialogue = polled(Dialogue(), 3, EXTENSION).client(poll(4)).server(result(4, task("t", "completed", EXTENSION, result={})))
    call = only(dialogue)
    assert (call.outcome, call.duration_ns, call.task and call.task.over) == (Outcome.OK, 3003 * MS, True)


@pytest.mark.parametrize(
    ("status", "more", "outcome"),
    [
        ("completed", {"result": {"content": []}}, Outcome.OK),
        ("completed", {"result": {"isError": True}}, Outcome.TOOL_ERROR),
        ("failed", {"error": {"code": 1, "message": "no"}}, Outcome.ERROR),
        ("cancelled", {}, Outcome.CANCELLED),
        ("working", {}, Outcome.PENDING),
        ("input_required", {"inputRequests": NAME}, Outcome.PENDING),
        ("of an extension", {}, Outcome.PENDING),
    ],
)
def test_what_became_of_a_task_is_what_became_of_its_call(status: str, more: Any, outcome: Outcome) -> None:
    dialogue = polled(Dialogue(), 1, EXTENSION).client(poll(4)).server(result(4, task("t", status, EXTENSION, **more)))
    assert only(dialogue).outcome is outcome


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [(result(5, {"isError": True}), Outcome.TOOL_ERROR), (error(5), Outcome.ERROR), (result(5), Outcome.OK)],
)
def test_the_result_of_a_task_is_that_of_its_call(answer: Any, outcome: Outcome) -> None:
    dialogue = polled(Dialogue(), 1).server(status_told("t", "failed")).client(poll(5, method="tasks/result")).server(answer)
    assert only(dialogue).outcome is outcome


def test_a_task_that_has_no_result_yet_goes_on() -> None:
    dialogue = polled(Dialogue(), 1).client(poll(5, method="tasks/result")).server(error(5, -32602))
    assert only(dialogue).outcome is Outcome.PENDING


@pytest.mark.parametrize("revision", [LEGACY, EXTENSION])
def test_the_server_may_report_the_status_of_a_task(revision: str) -> None:
    dialogue = polled(Dialogue(), 0, revision).server(status_told("t", "completed", revision))
    call = only(dialogue)
    assert (len(call.notifications), call.outcome, call.duration_ns) == (1, Outcome.OK, 2 * MS)


def test_a_status_before_the_answer_that_begins_the_task_belongs_to_its_call() -> None:
    dialogue = Dialogue().client(ask(1)).server(status_told("t", "working")).server(created(1))
    assert [notification.row for notification in only(dialogue).notifications] == [2]


def test_a_status_after_the_end_of_a_task_changes_nothing() -> None:
    dialogue = polled(Dialogue(), 0).server(status_told("t", "completed")).server(status_told("t", "working"))
    assert only(dialogue).outcome is Outcome.OK


def test_a_task_is_cancelled_by_a_request_of_its_own() -> None:
    dialogue = polled(Dialogue(), 1).client(poll(5, method="tasks/cancel")).server(result(5, task("t", "cancelled")))
    assert (only(dialogue).outcome, only(dialogue).duration_ns) == (Outcome.CANCELLED, 1003 * MS)


def test_a_cancellation_that_was_acknowledged_need_not_have_stopped_the_task() -> None:
    dialogue = (
        polled(Dialogue(), 0, EXTENSION).client(poll(5, method="tasks/cancel")).server(result(5, {"resultType": "complete"}))
    )
    assert only(dialogue).outcome is Outcome.CANCELLED
    dialogue.client(poll(6)).server(result(6, task("t", "completed", EXTENSION, result={})))
    assert only(dialogue).outcome is Outcome.OK


def test_input_for_a_task_is_a_part_of_the_call() -> None:
    dialogue = polled(Dialogue(), 1, EXTENSION).client(poll(5, method="tasks/update")).server(result(5))
    call = only(dialogue)
    assert [call.part(exchange) for exchange in call.exchanges] == [CallPart.ROUND, CallPart.POLL, CallPart.INPUT]


def test_what_the_server_asks_for_a_task_is_a_part_of_the_call() -> None:
    related = {"_meta": {"io.modelcontextprotocol/related-task": {"taskId": "t"}}}
    dialogue = polled(Dialogue(), 0).server(request(1, "elicitation/create", related)).client(result(1))
    dialogue.server(request(2, "sampling/createMessage", related)).server(request(3, "roots/list"))
    call = only(dialogue)
    assert ([call.part(exchange) for exchange in call.exchanges], call.wire_ns) == (
        [CallPart.ROUND, CallPart.QUESTION, CallPart.QUESTION],
        MS,
    )


def test_a_notification_about_a_task_belongs_to_the_call() -> None:
    related = {"_meta": {"io.modelcontextprotocol/related-task": {"taskId": "t"}}, "level": "info"}
    dialogue = (
        polled(Dialogue(), 0)
        .server(notification("notifications/message", related))
        .server(notification("notifications/message"))
    )
    assert [notification.row for notification in only(dialogue).notifications] == [2]


def test_progress_of_a_task_goes_on_after_the_answer_that_made_it() -> None:
    dialogue = Dialogue().client(ask(1, _meta={"progressToken": 7})).server(created(1)).server(progress(7)).server(progress(7))
    assert (dialogue.exchange.progress, flaws(dialogue)) == (2, [])


def test_the_client_may_run_a_task_for_the_server() -> None:
    dialogue = Dialogue().server(request(1, "sampling/createMessage", {"task": {}})).client(created(1))
    dialogue.server(poll(2)).client(result(2, task("t", "completed"))).server(poll(3, method="tasks/result")).client(result(3))
    assert (calls(dialogue), only(dialogue).sender, only(dialogue).outcome) == ([[1, 2, 3]], "server", Outcome.OK)


def test_both_sides_may_run_a_task_of_the_same_name() -> None:
    dialogue = Dialogue().client(ask(1)).server(created(1)).server(request(1, "sampling/createMessage")).client(created(1))
    dialogue.client(poll(2)).server(result(2, task("t"))).server(poll(2)).client(result(2, task("t", "failed")))
    dialogue.server(status_told("t", "completed"))
    assert [(call.sender, call.outcome) for call in dialogue.transcript.calls] == [
        ("client", Outcome.OK),
        ("server", Outcome.ERROR),
    ]


def test_a_task_from_before_the_capture_is_a_call_of_polls() -> None:
    dialogue = Dialogue().client(poll(1)).server(result(1, task("t"))).client(poll(2)).server(result(2, task("t", "completed")))
    call = only(dialogue)
    assert (calls(dialogue), len(call.rounds), len(call.polls), call.outcome) == ([[1, 2]], 0, 2, Outcome.OK)


def test_a_name_may_be_used_again_after_the_end_of_its_task() -> None:
    dialogue = polled(Dialogue(), 0).server(status_told("t", "completed")).client(ask(8)).server(created(8)).client(poll(9))
    assert calls(dialogue) == [[1], [3, 4]]


def test_a_name_that_two_tasks_have_is_ambiguous() -> None:
    dialogue = polled(Dialogue(), 0).client(ask(8)).server(created(8)).client(poll(9)).server(status_told("t", "completed"))
    assert (calls(dialogue), flaws(dialogue)) == ([[1], [2]], [(3, "ambiguous-call"), (4, "ambiguous-call")])


def test_input_may_be_required_before_there_is_a_task() -> None:
    dialogue = (
        Dialogue().client(ask(1)).server(required(1, "s")).client(again(2, state="s")).server(created(2, revision=EXTENSION))
    )
    dialogue.client(poll(3)).server(result(3, task("t", "completed", EXTENSION, result={})))
    assert (calls(dialogue), len(only(dialogue).rounds), len(only(dialogue).polls)) == ([[1, 2, 3]], 2, 1)


# --- Subscriptions ---


def listen(id: Any) -> dict[str, Any]:
    """Return the request that subscribes to notifications."""
    return request(id, "subscriptions/listen", {"notifications": {"toolsListChanged": True}})


def on(id: Any, method: str = "tools/list_changed") -> dict[str, Any]:
    """Return a notification of a subscription."""
    return notification(f"notifications/{method}", {"_meta": {"io.modelcontextprotocol/subscriptionId": id}})


def test_what_a_subscription_brings_belongs_to_it() -> None:
    dialogue = Dialogue().client(listen(1)).server(on(1, "subscriptions/acknowledged")).server(on(1)).server(on(2))
    assert [notification.row for notification in only(dialogue).notifications] == [2, 3]


def test_subscriptions_interleave() -> None:
    dialogue = Dialogue().client(listen(1)).client(listen("1")).server(on("1")).server(on(1)).server(on("1"))
    assert [[notification.row for notification in call.notifications] for call in dialogue.transcript.calls] == [[4], [3, 5]]


@pytest.mark.parametrize(
    ("end", "outcome"),
    [
        (lambda dialogue: dialogue.server(result(1)), Outcome.OK),
        (lambda dialogue: dialogue.client(cancelled(1)), Outcome.CANCELLED),
        (lambda dialogue: dialogue.server(cancelled(1)), Outcome.CANCELLED),
        (lambda dialogue: dialogue.server(cancelled(1)).server(result(1)), Outcome.OK),
        (lambda dialogue: dialogue.closes(), Outcome.CANCELLED),
        (lambda dialogue: dialogue.server_closes_stdout().exits(1).ends(), Outcome.UNANSWERED),
    ],
)
def test_a_subscription_ends_in_several_ways(end: Any, outcome: Outcome) -> None:
    ended = end(Dialogue().client(listen(1)).server(on(1)))
    assert (only(ended).outcome, ended.transcript.exchanges[0].outcome) == (outcome, outcome)


def test_a_server_cancels_no_other_request_of_the_client() -> None:
    dialogue = Dialogue().client(ask(1)).server(cancelled(1)).server(result(1))
    assert (dialogue.exchange.outcome, dialogue.unpaired.method) == (Outcome.OK, "notifications/cancelled")


def subscribe(id: Any, uri: str = "x:1", method: str = "subscribe") -> dict[str, Any]:
    """Return a legacy request that begins or ends a subscription to a resource."""
    return request(id, f"resources/{method}", {"uri": uri})


def updated(uri: str = "x:1") -> dict[str, Any]:
    """Return the notification that a resource changed."""
    return notification("notifications/resources/updated", {"uri": uri})


def test_the_updates_of_a_resource_belong_to_its_subscription() -> None:
    dialogue = Dialogue().client(subscribe(1)).server(result(1)).server(updated()).server(updated("x:2")).server(updated())
    assert ([notification.row for notification in only(dialogue).notifications], only(dialogue).outcome) == (
        [2, 4],
        Outcome.PENDING,
    )


def test_unsubscribing_ends_a_subscription() -> None:
    dialogue = Dialogue().client(subscribe(1)).server(result(1)).client(subscribe(2, method="unsubscribe")).server(result(2))
    dialogue.server(updated())
    call = only(dialogue)
    assert (calls(dialogue), call.outcome, call.duration_ns, call.notifications) == ([[1, 2]], Outcome.OK, 3 * MS, [])


def test_subscribing_twice_is_one_subscription() -> None:
    dialogue = Dialogue().client(subscribe(1)).server(result(1)).client(subscribe(2)).server(result(2)).server(updated())
    assert (calls(dialogue), len(only(dialogue).notifications)) == ([[1, 2]], 1)


def test_a_resource_can_be_subscribed_to_again() -> None:
    dialogue = Dialogue().client(subscribe(1)).server(result(1)).client(subscribe(2, method="unsubscribe")).server(result(2))
    dialogue.client(subscribe(3)).server(result(3)).server(updated())
    assert (calls(dialogue), [len(call.notifications) for call in dialogue.transcript.calls]) == ([[1, 2], [3]], [0, 1])


def test_a_subscription_that_was_refused_has_failed() -> None:
    assert only(Dialogue().client(subscribe(1)).server(error(1))).outcome is Outcome.ERROR

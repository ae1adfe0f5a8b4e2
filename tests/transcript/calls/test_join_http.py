"""Calls over HTTP: whose round it is where each transaction is a scope of its own, and a hundred clients who say the same."""

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.transcript.model import Exchange, Outcome
from mcpspy.transcript.transcribe import Transcriber, transcribe
from tests.transcript.calls.test_join import BOB, ask, calls, created, done, listen, on, poll, required, task, url_elicitation
from tests.transcript.dialogue import MS, Dialogue, notification, request, result, spelled, tool_call
from tests.transcript.traffic import Call, Traffic, modern, opened_session

NAMES = st.integers(0, 4)


def round_one(told: Traffic, client: str, state: Any = "s", **params: Any) -> Call:
    """The first round of a modern client, answered that input is required."""
    return told.post(modern(1, "tools/call", client, name="greet", **params)).answer(200, required(1, state))


def round_two(told: Traffic, client: str, state: Any = "s", **params: Any) -> Call:
    """The second round, answered whole."""
    retry = modern(
        2, "tools/call", client, name="greet", inputResponses=BOB, **({"requestState": state} if state else {}), **params
    )
    return told.post(retry).answer(200, result(2, client))


def rows(told: Traffic) -> list[list[int]]:
    """The rows of the exchanges of each call."""
    return [[one.row for one in call.exchanges] for call in told.transcript.calls]


def flagged(told: Traffic) -> list[int]:
    """The rows whose requests could belong to several calls."""
    return [one.row for one in told.exchanges if "ambiguous-call" in one.request.flaws]


# --- Rounds ---


def test_rounds_are_joined_over_transactions() -> None:
    told = Traffic()
    round_one(told, "ada")
    told.wait(1000)
    round_two(told, "ada")
    (call,) = told.transcript.calls
    assert (rows(told), call.duration_ns, call.wire_ns) == ([[1, 2]], 1009 * MS, 6 * MS)


def test_rounds_of_clients_with_different_names_are_told_apart_though_all_is_equal() -> None:
    told = Traffic()
    for name in ("ada", "bob"):
        round_one(told, name)
    for name in ("bob", "ada"):
        round_two(told, name)
    assert (rows(told), flagged(told)) == ([[1, 4], [2, 3]], [])


def test_rounds_of_clients_with_one_name_are_told_apart_by_their_states() -> None:
    told = Traffic()
    for state in ("a", "b"):
        round_one(told, "claude", state)
    for state in ("b", "a"):
        round_two(told, "claude", state)
    assert rows(told) == [[1, 4], [2, 3]]


def test_equal_rounds_of_clients_with_one_name_are_ambiguous() -> None:
    told = Traffic()
    for _ in range(2):
        round_one(told, "claude")
    for _ in range(2):
        round_two(told, "claude")
    assert (rows(told), flagged(told)) == ([[1], [2]], [3, 4])


def test_a_round_whose_stream_broke_is_issued_again() -> None:
    told = Traffic()
    round_one(told, "ada")
    told.post(modern(2, "tools/call", "ada", name="greet", inputResponses=BOB, requestState="s")).stream().close(
        "server", "reset"
    )
    round_two(told, "ada")
    (call,) = told.transcript.calls
    assert (rows(told), call.outcome) == ([[1, 2, 3]], Outcome.OK)


def test_closing_the_stream_of_a_round_cancels_the_call() -> None:
    told = Traffic()
    round_one(told, "ada")
    told.post(modern(2, "tools/call", "ada", name="greet", inputResponses=BOB, requestState="s")).stream().close(
        "client", "reset"
    )
    assert told.transcript.calls[0].outcome is Outcome.CANCELLED


def test_the_modern_era_takes_rounds_over_http_sse_too() -> None:
    told = Traffic()
    stream = told.get("/sse").stream().event("/messages?s=1", kind="endpoint")
    told.post(modern(1, "tools/call", name="greet"), "/messages?s=1").answer(202)
    stream.event(required(1, "s"))
    told.post(modern(2, "tools/call", name="greet", inputResponses=BOB, requestState="s"), "/messages?s=1").answer(202)
    stream.event(result(2))
    assert [[one.request.id for one in call.exchanges] for call in told.transcript.calls] == [["1", "2"]]


# --- Tasks and elicitations ---


def legacy_task(told: Traffic, session: str, name: str = "t") -> Call:
    """A task of a session."""
    return told.post(ask(1), session=session).answer(200, created(1, name))


def polled(told: Traffic, session: str, status: str = "working", name: str = "t") -> Call:
    """It is asked for."""
    return told.post(poll(2, name), session=session).answer(200, result(2, task(name, status)))


def test_tasks_of_one_name_in_two_sessions_are_two() -> None:
    told = Traffic()
    for session in ("a", "b"):
        opened_session(told, session)
        legacy_task(told, session)
    polled(told, "b", "failed")
    polled(told, "a", "completed")
    assert [call.outcome for call in told.transcript.calls] == [Outcome.OK, Outcome.ERROR]


def test_a_task_is_found_again_in_the_session_that_followed_its_own() -> None:
    told = Traffic()
    opened_session(told, "a")
    legacy_task(told, "a")
    told.post(poll(2), session="a").answer(404)
    opened_session(told, "b")
    polled(told, "b", "completed")
    (call,) = told.transcript.calls
    assert (len(call.polls), call.outcome) == (2, Outcome.OK)


def test_a_task_of_another_session_is_somebody_elses() -> None:
    told = Traffic()
    for session in ("a", "b"):
        opened_session(told, session)
    legacy_task(told, "a")
    polled(told, "b")
    assert [len(call.exchanges) for call in told.transcript.calls] == [1, 1]


def test_the_end_of_an_elicitation_is_found_on_another_stream_of_its_session() -> None:
    told = Traffic()
    opened_session(told, "a")
    get = told.get(session="a").stream()
    told.post(tool_call(1), session="a").stream().event(url_elicitation(1, "e"))
    told.post(result(1, {"action": "accept"}), session="a").answer(202)
    get.event(done("e"))
    assert [(call.first.method, len(call.notifications)) for call in told.transcript.calls] == [("elicitation/create", 1)]


def test_a_subscription_is_that_of_its_own_stream() -> None:
    told = Traffic()
    streams = [told.post(modern(1, "subscriptions/listen", name)).stream() for name in ("ada", "ada")]
    streams[1].event(on(1, "subscriptions/acknowledged")).event(on(1))
    streams[0].event(on(1))
    assert [len(call.notifications) for call in told.transcript.calls] == [1, 2]


# --- Whatever happens ---


def whose(exchange: Exchange) -> Any:
    """The client that a request names in its arguments, or the name of its task."""
    params = exchange.request.params
    return params["arguments"]["client"] if "arguments" in params else params["taskId"]


@pytest.mark.parametrize("way", ["names", "states", "sessions"])
def test_a_hundred_clients_with_the_same_ids_keep_their_own_calls(way: str) -> None:
    told = Traffic()
    shuffle = random.Random(7).shuffle
    clients = list(range(100))
    if way == "sessions":
        for client in clients:
            opened_session(told, f"s{client}")
            told.post(ask(1, arguments={"client": client}), session=f"s{client}").answer(200, created(1))
    else:
        for client in clients:
            round_one(told, _name(client, way), _state(client, way), arguments={"client": client})
    shuffle(clients)
    for client in clients:
        if way == "sessions":
            polled(told, f"s{client}", "completed")
        else:
            round_two(told, _name(client, way), _state(client, way), arguments={"client": client})
    joined = [[whose(one) for one in call.exchanges] for call in told.transcript.calls]
    assert joined == (
        [[client, "t"] for client in range(100)] if way == "sessions" else [[client] * 2 for client in range(100)]
    )
    scopes = [[one.transaction.scope.session for one in call.exchanges if one.transaction] for call in told.transcript.calls]
    assert way != "sessions" or scopes == [[f"s{client}"] * 2 for client in range(100)]


def _name(client: int, way: str) -> str:
    return f"client {client}" if way == "names" else "claude-code"


def _state(client: int, way: str) -> str:
    return f"state {client}" if way == "states" else "s"


@given(st.lists(st.tuples(NAMES, st.sampled_from(["state", "no state", "one state"]), st.booleans()), max_size=14))
def test_no_round_is_joined_to_the_call_of_another_client(steps: list[tuple[int, str, bool]]) -> None:
    told = Traffic()
    for client, way, begins in steps:
        state = {"state": f"{client}", "no state": None}.get(way, "s")
        (round_one if begins else round_two)(told, f"client {client}", state)
    for call in told.transcript.calls:
        assert len({one.transaction.scope.client for one in call.exchanges if one.transaction}) == 1


@given(st.lists(st.tuples(NAMES, st.sampled_from(["begin", "working", "completed"]), NAMES), max_size=14))
def test_no_poll_is_joined_to_the_task_of_another_session(steps: list[tuple[int, str, int]]) -> None:
    told = Traffic()
    for session in range(5):
        opened_session(told, f"s{session}")
    for session, what, name in steps:
        if what == "begin":
            legacy_task(told, f"s{session}", f"t{name}")
        else:
            polled(told, f"s{session}", what, f"t{name}")
    for call in told.transcript.calls:
        assert len({one.transaction.scope.session for one in call.exchanges if one.transaction}) == 1


STEPS = st.one_of(
    st.builds(ask, NAMES),
    st.builds(lambda id, state: ask(id, inputResponses=BOB, **({"requestState": state} if state else {})), NAMES, NAMES),
    st.builds(poll, NAMES, st.sampled_from(["t", "u"]), st.sampled_from(["tasks/get", "tasks/result", "tasks/cancel"])),
    st.builds(listen, NAMES),
    st.builds(url_elicitation, NAMES, st.sampled_from(["e", "f"])),
    st.builds(
        lambda id, method: request(id, f"resources/{method}", {"uri": "x"}),
        NAMES,
        st.sampled_from(["subscribe", "unsubscribe"]),
    ),
    st.builds(required, NAMES, st.none() | NAMES),
    st.builds(created, NAMES, st.sampled_from(["t", "u"])),
    st.builds(
        lambda id, status: result(id, task("t", status)), NAMES, st.sampled_from(["working", "completed", "cancelled", "?"])
    ),
    st.builds(result, NAMES, st.sampled_from([{}, {"task": 5}, {"resultType": 7}, {"taskId": 1}, {"inputRequests": []}, 5])),
    st.builds(on, NAMES),
    st.builds(done, st.sampled_from(["e", "f"])),
    st.builds(
        lambda status: notification("notifications/tasks/status", task("t", status)), st.sampled_from(["working", "failed"])
    ),
    st.just({"jsonrpc": "2.0", "id": 1, "error": {"code": -32042, "data": {"elicitations": [{"elicitationId": "e"}, 5]}}}),
)
DIALOGUES = st.lists(st.tuples(st.booleans(), STEPS), max_size=25)


def dialogue(steps: list[tuple[bool, Any]], label: str = "weather") -> Dialogue:
    """It is told by both sides."""
    told = Dialogue(label)
    for is_client, line in steps:
        (told.client if is_client else told.server)(line)
    return told


@given(DIALOGUES)
def test_every_exchange_is_in_one_call_at_most_and_once(steps: list[tuple[bool, Any]]) -> None:
    transcript = dialogue(steps).transcript
    joined = [row.row for call in transcript.calls for row in call.exchanges]
    joined += [row.row for call in transcript.calls for row in call.notifications]
    assert len(joined) == len(set(joined))
    assert set(joined) == {row for source in transcript.captures for row in source.calls}
    for call in transcript.calls:
        assert (call.outcome is not None, call.wire_ns >= 0, (call.duration_ns or 0) >= 0) == (True, True, True)


@given(DIALOGUES, DIALOGUES)
def test_captures_together_have_the_calls_that_they_have_alone(
    one: list[tuple[bool, Any]], other: list[tuple[bool, Any]]
) -> None:
    alone = [calls(dialogue(steps)) for steps in (one, other)]
    together = transcribe(dialogue(one, "one").records, dialogue(other, "other").records)
    sizes = sorted(len(call.exchanges) for call in together.calls)
    assert sizes == sorted(len(found) for found in (*alone[0], *alone[1]))


@given(DIALOGUES)
def test_who_follows_the_changes_knows_all_calls(steps: list[tuple[bool, Any]]) -> None:
    transcriber = Transcriber()
    known: dict[int, Any] = {}
    for record in dialogue(steps).records:
        known.update(_stood(transcriber, transcriber.feed(record)))
    known.update(_stood(transcriber, transcriber.close()))
    assert known == {call.row: _standing(call) for call in transcriber.transcript.calls}


HTTP_STEPS = st.lists(
    st.tuples(st.integers(0, 2), STEPS, STEPS, st.sampled_from(["json", "events", "left", "open", "404"])), max_size=8
)


@given(HTTP_STEPS)
def test_over_http_too_who_follows_the_changes_knows_all_calls(steps: list[tuple[int, Any, Any, str]]) -> None:
    told = Traffic()
    opened_session(told, "s0")
    for session, line, answer, how in steps:
        post = told.post(line, session=f"s{session}" if session else "")
        match how:
            case "json":
                post.answer(200, answer)
            case "404":
                post.answer(404)
            case "open":
                post.stream().event(answer, id="e")
            case _:
                post.stream().event(answer, id="e").close("client" if how == "left" else "server")
    transcriber = Transcriber()
    known: dict[int, Any] = {}
    for record in told.records:
        known.update(_stood(transcriber, transcriber.feed(record)))
    known.update(_stood(transcriber, transcriber.close()))
    assert known == {call.row: _standing(call) for call in transcriber.transcript.calls}


def _stood(transcriber: Transcriber, changed: Any) -> dict[int, Any]:
    """How the calls stand whose first rows changed."""
    found = [call for row in changed if (call := transcriber.transcript.call_of(row)) is not None and call.first is row]
    return {call.row: _standing(call) for call in found}


def _standing(call: Any) -> Any:
    return (
        call.outcome,
        call.duration_ns,
        call.wire_ns,
        len(call.rounds),
        len(call.polls),
        len(call.notifications),
        spelled(call.task),
    )


def test_ten_thousand_equal_rounds_take_time_in_proportion() -> None:
    told = Dialogue()
    for id in range(10_000):
        told.client(ask(id)).server(required(id))
    for id in range(10_000):
        told.client(ask(id, inputResponses=BOB)).server(result(id))
    assert len(told.transcript.calls) == 10_000

"""Calls over HTTP: rounds in transactions that are scopes of their own, and a hundred clients with the same requests."""

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.transcript.model import Exchange, Outcome
from mcpspy.transcript.transcribe import Transcriber, transcribe
from tests.tiers import Tier
from tests.transcript.calls.test_join import BOB, ask, calls, created, done, listen, on, poll, required, task, url_elicitation
from tests.transcript.dialogue import MS, Dialogue, notification, request, result, spelled, tool_call
from tests.transcript.traffic import Call, Traffic, modern, opened_session

NAMES = st.integers(0, 4)


def round_one(traffic: Traffic, client: str, state: Any = "s", **params: Any) -> Call:
    """Make the first round of a modern client; the answer requires input."""
    return traffic.post(modern(1, "tools/call", client, name="greet", **params)).answer(200, required(1, state))


def round_two(traffic: Traffic, client: str, state: Any = "s", **params: Any) -> Call:
    """Make the second round, with its final answer."""
    retry = modern(
        2, "tools/call", client, name="greet", inputResponses=BOB, **({"requestState": state} if state else {}), **params
    )
    return traffic.post(retry).answer(200, result(2, client))


def rows(traffic: Traffic) -> list[list[int]]:
    """Return the rows of the exchanges of each call."""
    return [[exchange.row for exchange in call.exchanges] for call in traffic.transcript.calls]


def flagged(traffic: Traffic) -> list[int]:
    """Return the rows whose requests could belong to several calls."""
    return [exchange.row for exchange in traffic.exchanges if "ambiguous-call" in exchange.request.flaws]


# --- Rounds ---


def test_rounds_are_joined_over_transactions() -> None:
    traffic = Traffic()
    round_one(traffic, "ada")
    traffic.wait(1000)
    round_two(traffic, "ada")
    (call,) = traffic.transcript.calls
    assert (rows(traffic), call.duration_ns, call.wire_ns) == ([[1, 2]], 1009 * MS, 6 * MS)


def test_rounds_of_clients_with_different_names_are_told_apart_though_all_is_equal() -> None:
    traffic = Traffic()
    for name in ("ada", "bob"):
        round_one(traffic, name)
    for name in ("bob", "ada"):
        round_two(traffic, name)
    assert (rows(traffic), flagged(traffic)) == ([[1, 4], [2, 3]], [])


def test_rounds_of_clients_with_one_name_are_told_apart_by_their_states() -> None:
    traffic = Traffic()
    for state in ("a", "b"):
        round_one(traffic, "claude", state)
    for state in ("b", "a"):
        round_two(traffic, "claude", state)
    assert rows(traffic) == [[1, 4], [2, 3]]


def test_equal_rounds_of_clients_with_one_name_are_ambiguous() -> None:
    traffic = Traffic()
    for _ in range(2):
        round_one(traffic, "claude")
    for _ in range(2):
        round_two(traffic, "claude")
    assert (rows(traffic), flagged(traffic)) == ([[1], [2]], [3, 4])


def test_a_round_whose_stream_broke_is_issued_again() -> None:
    traffic = Traffic()
    round_one(traffic, "ada")
    traffic.post(modern(2, "tools/call", "ada", name="greet", inputResponses=BOB, requestState="s")).stream().close(
        "server", "reset"
    )
    round_two(traffic, "ada")
    (call,) = traffic.transcript.calls
    assert (rows(traffic), call.outcome) == ([[1, 2, 3]], Outcome.OK)


def test_closing_the_stream_of_a_round_cancels_the_call() -> None:
    traffic = Traffic()
    round_one(traffic, "ada")
    traffic.post(modern(2, "tools/call", "ada", name="greet", inputResponses=BOB, requestState="s")).stream().close(
        "client", "reset"
    )
    assert traffic.transcript.calls[0].outcome is Outcome.CANCELLED


def test_the_modern_era_takes_rounds_over_http_sse_too() -> None:
    traffic = Traffic()
    stream = traffic.get("/sse").stream().event("/messages?s=1", kind="endpoint")
    traffic.post(modern(1, "tools/call", name="greet"), "/messages?s=1").answer(202)
    stream.event(required(1, "s"))
    traffic.post(modern(2, "tools/call", name="greet", inputResponses=BOB, requestState="s"), "/messages?s=1").answer(202)
    stream.event(result(2))
    assert [[exchange.request.id for exchange in call.exchanges] for call in traffic.transcript.calls] == [["1", "2"]]


# --- Tasks and elicitations ---


def legacy_task(traffic: Traffic, session: str, name: str = "t") -> Call:
    """Begin a task in a session."""
    return traffic.post(ask(1), session=session).answer(200, created(1, name))


def polled(traffic: Traffic, session: str, status: str = "working", name: str = "t") -> Call:
    """Ask for its status."""
    return traffic.post(poll(2, name), session=session).answer(200, result(2, task(name, status)))


def test_tasks_of_one_name_in_two_sessions_are_two() -> None:
    traffic = Traffic()
    for session in ("a", "b"):
        opened_session(traffic, session)
        legacy_task(traffic, session)
    polled(traffic, "b", "failed")
    polled(traffic, "a", "completed")
    assert [call.outcome for call in traffic.transcript.calls] == [Outcome.OK, Outcome.ERROR]


def test_a_task_is_found_again_in_the_session_that_followed_its_own() -> None:
    traffic = Traffic()
    opened_session(traffic, "a")
    legacy_task(traffic, "a")
    traffic.post(poll(2), session="a").answer(404)
    opened_session(traffic, "b")
    polled(traffic, "b", "completed")
    (call,) = traffic.transcript.calls
    assert (len(call.polls), call.outcome) == (2, Outcome.OK)


def test_a_task_of_another_session_is_somebody_elses() -> None:
    traffic = Traffic()
    for session in ("a", "b"):
        opened_session(traffic, session)
    legacy_task(traffic, "a")
    polled(traffic, "b")
    assert [len(call.exchanges) for call in traffic.transcript.calls] == [1, 1]


def test_the_end_of_an_elicitation_is_found_on_another_stream_of_its_session() -> None:
    traffic = Traffic()
    opened_session(traffic, "a")
    get = traffic.get(session="a").stream()
    traffic.post(tool_call(1), session="a").stream().event(url_elicitation(1, "e"))
    traffic.post(result(1, {"action": "accept"}), session="a").answer(202)
    get.event(done("e"))
    assert [(call.first.method, len(call.notifications)) for call in traffic.transcript.calls] == [("elicitation/create", 1)]


def test_a_subscription_is_that_of_its_own_stream() -> None:
    traffic = Traffic()
    streams = [traffic.post(modern(1, "subscriptions/listen", name)).stream() for name in ("ada", "ada")]
    streams[1].event(on(1, "subscriptions/acknowledged")).event(on(1))
    streams[0].event(on(1))
    assert [len(call.notifications) for call in traffic.transcript.calls] == [1, 2]


# --- Whatever happens ---


def whose(exchange: Exchange) -> Any:
    """Return the client that a request names in its arguments, or the name of its task."""
    params = exchange.request.params
    return params["arguments"]["client"] if "arguments" in params else params["taskId"]


@pytest.mark.parametrize("way", ["names", "states", "sessions"])
def test_a_hundred_clients_with_the_same_ids_keep_their_own_calls(way: str) -> None:
    traffic = Traffic()
    shuffle = random.Random(7).shuffle
    clients = list(range(100))
    if way == "sessions":
        for client in clients:
            opened_session(traffic, f"s{client}")
            traffic.post(ask(1, arguments={"client": client}), session=f"s{client}").answer(200, created(1))
    else:
        for client in clients:
            round_one(traffic, _name(client, way), _state(client, way), arguments={"client": client})
    shuffle(clients)
    for client in clients:
        if way == "sessions":
            polled(traffic, f"s{client}", "completed")
        else:
            round_two(traffic, _name(client, way), _state(client, way), arguments={"client": client})
    joined = [[whose(exchange) for exchange in call.exchanges] for call in traffic.transcript.calls]
    assert joined == (
        [[client, "t"] for client in range(100)] if way == "sessions" else [[client] * 2 for client in range(100)]
    )
    scopes = [
        [exchange.transaction.scope.session for exchange in call.exchanges if exchange.transaction]
        for call in traffic.transcript.calls
    ]
    assert way != "sessions" or scopes == [[f"s{client}"] * 2 for client in range(100)]


def _name(client: int, way: str) -> str:
    return f"client {client}" if way == "names" else "claude-code"


def _state(client: int, way: str) -> str:
    return f"state {client}" if way == "states" else "s"


@given(st.lists(st.tuples(NAMES, st.sampled_from(["state", "no state", "one state"]), st.booleans()), max_size=14))
def test_no_round_is_joined_to_the_call_of_another_client(steps: list[tuple[int, str, bool]]) -> None:
    traffic = Traffic()
    for client, way, begins in steps:
        state = {"state": f"{client}", "no state": None}.get(way, "s")
        (round_one if begins else round_two)(traffic, f"client {client}", state)
    for call in traffic.transcript.calls:
        assert len({exchange.transaction.scope.client for exchange in call.exchanges if exchange.transaction}) == 1


@given(st.lists(st.tuples(NAMES, st.sampled_from(["begin", "working", "completed"]), NAMES), max_size=14))
def test_no_poll_is_joined_to_the_task_of_another_session(steps: list[tuple[int, str, int]]) -> None:
    traffic = Traffic()
    for session in range(5):
        opened_session(traffic, f"s{session}")
    for session, what, name in steps:
        if what == "begin":
            legacy_task(traffic, f"s{session}", f"t{name}")
        else:
            polled(traffic, f"s{session}", what, f"t{name}")
    for call in traffic.transcript.calls:
        assert len({exchange.transaction.scope.session for exchange in call.exchanges if exchange.transaction}) == 1


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
    """Return a dialogue in which both sides report the status."""
    dialogue = Dialogue(label)
    for is_client, line in steps:
        (dialogue.client if is_client else dialogue.server)(line)
    return dialogue


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
    first: list[tuple[bool, Any]], other: list[tuple[bool, Any]]
) -> None:
    alone = [calls(dialogue(steps)) for steps in (first, other)]
    together = transcribe(dialogue(first, "one").records, dialogue(other, "other").records)
    sizes = sorted(len(call.exchanges) for call in together.calls)
    assert sizes == sorted(len(exchanges) for exchanges in (*alone[0], *alone[1]))


@given(DIALOGUES)
def test_the_changed_rows_have_all_calls(steps: list[tuple[bool, Any]]) -> None:
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
def test_the_changed_rows_over_http_have_all_calls(steps: list[tuple[int, Any, Any, str]]) -> None:
    traffic = Traffic()
    opened_session(traffic, "s0")
    for session, line, answer, how in steps:
        post = traffic.post(line, session=f"s{session}" if session else "")
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
    for record in traffic.records:
        known.update(_stood(transcriber, transcriber.feed(record)))
    known.update(_stood(transcriber, transcriber.close()))
    assert known == {call.row: _standing(call) for call in transcriber.transcript.calls}


def _stood(transcriber: Transcriber, changed: Any) -> dict[int, Any]:
    """Return the state of the calls whose first rows changed."""
    stood = [call for row in changed if (call := transcriber.transcript.call_of(row)) is not None and call.first is row]
    return {call.row: _standing(call) for call in stood}


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


def test_thousands_of_equal_rounds_take_time_in_proportion(tier: Tier) -> None:
    dialogue, count = Dialogue(), tier(sample=3_000, more=10_000, full=10_000)
    for id in range(count):
        dialogue.client(ask(id)).server(required(id))
    for id in range(count):
        dialogue.client(ask(id, inputResponses=BOB)).server(result(id))
    assert len(dialogue.transcript.calls) == count

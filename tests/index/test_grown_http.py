"""A capture of HTTP that grew since its index was written shows what a reader of the whole capture shows, but for findings."""

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from tests.index.showing import make_blocks_small, written
from tests.index.test_grown import CUTS, assert_grows
from tests.tiers import current_tier, slow_examples
from tests.transcript.dialogue import cancelled, error, notification, progress, request, result, tool_call
from tests.transcript.traffic import Call, Traffic, modern, opened_session


@pytest.fixture(scope="module", autouse=True)
def small_blocks() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        make_blocks_small(patch)
        yield


ACTIONS = st.sampled_from([
    "call", "answer", "last", "progress", "cancel", "ask", "reply", "note", "list", "get", "drop", "push", "session", "modern",
    "poll", "leave", "refuse", "login", "delete", "metadata", "half", "taken", "late",
])  # fmt: skip


FEW = max(1, slow_examples(current_tier()) // 4)
"""One example takes a second: all that can be shown of a session is shown twice."""


class Web:
    """Clients with sessions of Streamable HTTP, and without: calls that are answered in any order, and whatever comes between."""

    def __init__(self) -> None:
        self.traffic = Traffic()
        self.sessions: list[str] = []
        self.open: list[tuple[Call, int]] = []
        """Calls whose stream goes on, with the ids of their requests."""
        self.streams: list[Call] = []
        self.session_of: dict[int, str] = {}
        """By the number of a transaction its session."""
        self.asked: list[tuple[str, int]] = []
        self.half: list[Call] = []
        self.begin(0)

    def begin(self, pick: int) -> None:
        session = f"s{len(self.sessions)}"
        opened_session(self.traffic, session, "claude-code" if pick < 4 else "cursor")
        self.sessions.append(session)

    def post(self, message: dict[str, Any], pick: int) -> Call:
        call = self.traffic.post(message, session=self.sessions[pick % len(self.sessions)])
        self.session_of[call.number] = self.sessions[pick % len(self.sessions)]
        return call

    def act(self, id: int, action: str, pick: int) -> None:
        traffic = self.traffic
        match action:
            case "call":
                self.open.append((self.post(tool_call(id, f"tool{pick % 3}", token=id), pick).stream(), id))
            case "answer" | "last" if self.open:
                call, asked = self.open.pop(0 if action == "answer" else -1)
                task = {"task": {"taskId": f"t{asked}", "status": "working"}}
                call.event(error(asked) if pick == 1 else result(asked, task if pick == 2 else {"isError": pick == 3}))
                call.close("client" if pick == 4 else "server", "eof" if pick < 5 else "reset")
            case "progress" if self.open:
                call, asked = self.open[pick % len(self.open)]
                call.event(progress(asked, pick))
            case "cancel" if self.open:
                self.post(cancelled(self.open[pick % len(self.open)][1]), pick).answer(202)
            case "ask" if self.streams or self.open:
                call = self.streams[-1] if self.streams else self.open[-1][0]
                call.event(request(id, "sampling/createMessage", {"messages": []}))
                self.asked.append((self.session_of.get(call.number, "s0"), id))
            case "reply" if self.asked:
                session, asked = self.asked.pop()
                traffic.post(result(asked), session=session).answer(202)
            case "get":
                session = self.sessions[pick % len(self.sessions)]
                self.streams.append(traffic.get(session=session).stream())
                self.session_of[self.streams[-1].number] = session
            case "push" if self.streams:
                self.streams[pick % len(self.streams)].event(
                    notification("notifications/message", {"level": "info", "data": pick})
                )
            case "drop" if self.streams:
                self.streams.pop(pick % len(self.streams)).close("client" if pick % 2 else "server")
            case "session":
                self.begin(pick)
            case "modern":
                call = traffic.post(modern(pick, "tools/call", name="add", arguments={}))
                call.answer(200, result(pick)) if pick % 2 else self.open.append((call.stream(), pick))
            case "late" if self.streams:
                self.streams[-1].event(result(pick))
            case _:
                self.act_alone(id, action, pick)

    def act_alone(self, id: int, action: str, pick: int) -> None:
        """Do what is over at once."""
        traffic, session = self.traffic, self.sessions[pick % len(self.sessions)]
        match action:
            case "poll":
                self.post(request(id, "tasks/get", {"taskId": f"t{pick}"}), pick).answer(200, result(id, {"status": "working"}))
            case "leave":
                self.post(tool_call(id), pick).leave()
            case "refuse":
                self.post(tool_call(id), pick).answer(500 if pick else 404)
            case "login":
                traffic.post(request(id, "prompts/list")).answer(401)
            case "delete":
                traffic.call("DELETE", fields={"Mcp_Session_Id": session}).answer(200)
            case "metadata":
                traffic.call("GET", "/.well-known/oauth-protected-resource").answer(404)
            case "half":
                call = self.post(tool_call(id), pick)
                self.half.append(call.note("half-closed", "client closed its half"))
            case "taken" if self.half:
                self.half.pop().answer(200, result(id)).note("answer-taken" if pick else "answer-refused", "it was there")
            case _:
                self.post(request(id), pick).answer(200, result(id, {"tools": []}))


def web(actions: list[tuple[str, int]]) -> Web:
    made = Web()
    for id, (action, pick) in enumerate(actions, 1):
        made.act(id, action, pick)
    return made


@settings(max_examples=FEW)
@given(st.lists(st.tuples(ACTIONS, st.integers(0, 5)), max_size=60), CUTS, st.sampled_from(["", "ends", "ended"]))
def test_sessions_over_http_that_go_on_are_taken_up(actions: list[tuple[str, int]], cut: int, how: str) -> None:
    is_used = assert_grows(written(web(actions).traffic.records), cut, how)
    event("taken up" if is_used else "read whole")


USUAL = st.sampled_from(
    ["call", "answer", "last", "progress", "list", "get", "push", "ask", "reply", "session", "modern", "poll"]
)


@settings(max_examples=FEW)
@given(st.lists(st.tuples(USUAL, st.integers(0, 3)), min_size=20, max_size=40), CUTS, st.sampled_from(["", "ends"]))
def test_usual_sessions_over_http_are_taken_up(actions: list[tuple[str, int]], cut: int, how: str) -> None:
    is_used = assert_grows(written(web(actions).traffic.records), cut, how)
    event("taken up" if is_used else "read whole")


def grown_with(scene: Web, act: Any) -> bool:
    """Index a capture as it is, let this happen, and return whether the index was used."""
    lines = len(scene.traffic.records)
    act(scene)
    return assert_grows(written(scene.traffic.records), lines - 1, "")


def many() -> Web:
    return web([("call", 1), ("list", 0), ("modern", 1), ("answer", 0)] * 12)


def test_calls_that_come_after_the_index_are_taken_up() -> None:
    assert grown_with(many(), lambda scene: [scene.act(id, "list", 0) for id in range(100, 110)])


def test_an_answer_to_a_call_from_before_the_index_is_taken_up() -> None:
    scene = web([("call", 1)] + [("list", 0)] * 40)
    assert grown_with(scene, lambda scene: scene.act(100, "answer", 0))


def test_a_session_that_begins_after_the_index_is_taken_up() -> None:
    assert grown_with(many(), lambda scene: (scene.act(100, "session", 0), scene.act(101, "call", 1)))


def test_a_second_answer_to_a_call_that_is_not_known_has_the_capture_read_whole() -> None:
    scene = web([("list", 0)] * 40 + [("get", 0)])
    assert not grown_with(scene, lambda scene: scene.streams[-1].event(result(3)))


def test_a_session_that_the_server_has_lost_has_the_capture_read_whole() -> None:
    assert not grown_with(many(), lambda scene: scene.post(tool_call(100), 0).answer(404))


def test_a_stream_that_is_resumed_has_no_seeds() -> None:
    scene = many()
    scene.traffic.get(session="s0", Last_Event_ID="1").stream().event(result(1)).close()
    assert not grown_with(scene, lambda scene: scene.act(100, "list", 0))

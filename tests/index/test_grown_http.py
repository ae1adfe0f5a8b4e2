"""A capture of HTTP that grew since its index was written shows what a reader of the whole capture shows, but for findings."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from mcpspy.index.file import open_older_index
from mcpspy.index.seeds import Seeds
from mcpspy.records import Frame, Open, Record
from tests.index.showing import VERSION, make_blocks_small, written
from tests.index.test_grown import CUTS, assert_grows, index
from tests.tiers import current_tier, slow_examples
from tests.transcript.dialogue import cancelled, error, notification, progress, request, result, tool_call
from tests.transcript.traffic import Call, Traffic, initialize, modern, opened_session


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


class OldWeb:
    """Clients of HTTP+SSE: each has a stream on which all is answered that it POSTs to the endpoint of that stream."""

    def __init__(self, traffic: Traffic) -> None:
        self.traffic = traffic
        self.streams: list[Call] = []
        self.targets: list[str] = []
        """The endpoint of each stream."""
        self.closed: set[int] = set()
        self.open: list[tuple[int, int]] = []
        """The streams of calls that wait, and the ids of their requests."""
        self.asked: list[tuple[int, int]] = []
        self.begin(0)

    def begin(self, pick: int) -> None:
        at = len(self.streams)
        self.targets.append(f"/messages?session_id={at}")
        self.streams.append(self.traffic.get("/sse").stream())
        if pick == 3:
            self.streams[at].raw(b": hello\r\n\r\n")
        if pick != 4:  # else it has no endpoint
            self.send(at, self.targets[at], "endpoint")
        if pick != 5:  # else it has no opening
            self.post(initialize(0, "claude-code" if pick else "cursor"), at)
            self.send(at, {"jsonrpc": "2.0", "id": 0, "result": {}})

    def post(self, message: dict[str, Any], at: int) -> None:
        self.traffic.post(message, self.targets[at]).answer(202, b"Accepted")

    def send(self, at: int, data: Any, kind: str = "message", *, in_parts: bool = False) -> None:
        if at in self.closed:
            return
        if in_parts:
            event = b"data: " + json.dumps(data).encode() + b"\r\n\r\n"
            self.streams[at].raw(event[:9], part=True, chunks=(30,)).raw(event[9:], chunks=(30,))
        else:
            self.streams[at].event(data, kind=kind)

    def act(self, id: int, action: str, pick: int) -> None:
        at = pick % len(self.streams)
        match action:
            case "call":
                self.post(tool_call(id, f"tool{pick % 3}", token=id), at)
                self.open.append((at, id))
            case "answer" | "last" if self.open:
                at, asked = self.open.pop(0 if action == "answer" else -1)
                task = {"task": {"taskId": f"t{asked}", "status": "working"}}
                answer = error(asked) if pick == 1 else result(asked, task if pick == 2 else {"isError": pick == 3})
                batch = [answer, notification("notifications/tools/list_changed")]
                self.send(at, batch if pick == 4 else answer, in_parts=pick == 5)
            case "progress" if self.open:
                at, asked = self.open[pick % len(self.open)]
                self.send(at, progress(asked, pick))
            case "cancel" if self.open:
                at, asked = self.open[pick % len(self.open)]
                self.post(cancelled(asked), at)
            case "ask":
                self.send(at, request(id, "sampling/createMessage", {"messages": []}))
                self.asked.append((at, id))
            case "reply" if self.asked:
                at, asked = self.asked.pop()
                self.post(result(asked), at)
            case "push":
                self.send(at, notification("notifications/message", {"level": "info", "data": pick}))
            case "poll" | "list":
                self.post(request(id, "tasks/get", {"taskId": f"t{pick}"}) if action == "poll" else request(id), at)
                self.send(at, result(id, {"status": "working", "tools": []}))
            case "session":
                self.begin(pick)
            case "late":
                self.send(at, result(pick))
            case _:
                self.act_alone(id, action, at, pick)

    def act_alone(self, id: int, action: str, at: int, pick: int) -> None:
        """Do what is no usual part of a conversation."""
        traffic = self.traffic
        match action:
            case "drop" if at not in self.closed:
                self.closed.add(at)
                self.streams[at].close("client" if pick % 2 else "server", "eof" if pick < 4 else "reset")
            case "refuse":
                traffic.post(tool_call(id), self.targets[at]).answer(500 if pick else 404)
            case "leave":
                traffic.post(tool_call(id), self.targets[at]).leave()
            case "get":
                traffic.get("/sse").answer(405)
            case "delete":
                self.targets[at] += "&again=1"
                self.send(at, self.targets[at], "endpoint")
            case "half" if at not in self.closed:
                self.streams[at].raw(b": still here\r\n\r\n")
            case "taken":
                self.send(at, "{broken")
            case "metadata":
                self.send(at, "what", "other" if pick % 2 else "ping")
            case "login":
                traffic.post(request(id), self.targets[at]).answer(200, result(id))
            case _:
                self.post(notification("notifications/roots/list_changed"), at)


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


def both(actions: list[tuple[bool, str, int]]) -> Traffic:
    """Play clients of both transports, at once."""
    new = Web()
    old = OldWeb(new.traffic)
    for id, (is_old, action, pick) in enumerate(actions, 1):
        (old if is_old else new).act(id, action, pick)
    return new.traffic


def with_ids(records: list[Record], last: int) -> list[Record]:
    """Give events ids: each its own, but for those after which the count begins anew, at `last`."""
    events = {record.stream for record in records if isinstance(record, Open) and record.framing == "sse"}
    number = 0
    for record in records:
        if isinstance(record, Frame) and record.stream in events and b"\n" in record.data[-1:] + record.data[:1]:
            number = 1 if number == last else number + 1
            record.data = b"id: %d\r\n" % number + record.data
    return records


OLD = st.tuples(st.just(value=True), ACTIONS, st.integers(0, 5))
EITHER = st.tuples(st.booleans(), ACTIONS, st.integers(0, 5))


@settings(max_examples=FEW)
@given(st.lists(OLD, max_size=60) | st.lists(EITHER, max_size=60), CUTS, st.sampled_from(["", "ends", "ended"]))
def test_streams_of_http_sse_that_go_on_are_taken_up(actions: list[tuple[bool, str, int]], cut: int, how: str) -> None:
    is_used = assert_grows(written(both(actions).records), cut, how)
    event("taken up" if is_used else "read whole")


@settings(max_examples=FEW)
@given(st.lists(EITHER, min_size=5, max_size=40), CUTS, st.sampled_from([0, 5, 30]), st.sampled_from(["", "ends"]))
def test_streams_whose_events_have_ids_are_taken_up(
    actions: list[tuple[bool, str, int]], cut: int, last: int, how: str
) -> None:
    is_used = assert_grows(written(with_ids(both(actions).records, last)), cut, how)
    event("taken up" if is_used else "read whole")


USUAL = st.sampled_from(
    ["call", "answer", "last", "progress", "list", "get", "push", "ask", "reply", "session", "modern", "poll"]
)


@settings(max_examples=FEW)
@given(st.lists(st.tuples(USUAL, st.integers(0, 3)), min_size=20, max_size=40), CUTS, st.sampled_from(["", "ends"]))
def test_usual_sessions_over_http_are_taken_up(actions: list[tuple[str, int]], cut: int, how: str) -> None:
    is_used = assert_grows(written(web(actions).traffic.records), cut, how)
    event("taken up" if is_used else "read whole")


def grown_with(scene: Web | OldWeb, act: Any) -> bool:
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


def old(actions: list[tuple[str, int]]) -> OldWeb:
    made = OldWeb(Traffic())
    for id, (action, pick) in enumerate(actions, 1):
        made.act(id, action, pick)
    return made


def test_an_answer_on_the_stream_of_http_sse_to_a_call_from_before_the_index_is_taken_up() -> None:
    scene = old([("call", 0), *[("list", 0)] * 40])
    assert grown_with(scene, lambda scene: scene.act(100, "answer", 0))


def test_two_clients_of_http_sse_with_equal_ids_are_taken_up() -> None:
    scene = old([("session", 0), *[("list", 0), ("list", 1)] * 20])
    scene.act(7, "call", 0)
    scene.act(7, "call", 1)
    assert grown_with(scene, lambda scene: (scene.act(100, "last", 0), scene.act(100, "last", 0), scene.act(101, "list", 1)))


def test_the_end_of_a_stream_of_http_sse_that_was_open_before_the_index_is_taken_up() -> None:
    scene = old([("call", 0), ("half", 0), *[("list", 0)] * 40])
    assert grown_with(scene, lambda scene: (scene.act(100, "half", 0), scene.act(101, "drop", 5)))


def test_a_second_endpoint_of_a_stream_is_known_after_the_index() -> None:
    scene = old([("list", 0)] * 20 + [("delete", 0)] + [("list", 0)] * 20)
    assert grown_with(scene, lambda scene: scene.act(100, "list", 0))


def test_an_answer_that_another_client_got_has_the_capture_read_whole() -> None:
    scene = old([("session", 0), ("call", 0), *[("list", 0)] * 40])
    assert not grown_with(scene, lambda scene: scene.send(1, result(2)))


def test_a_call_that_another_client_got_the_answer_to_has_the_capture_read_whole() -> None:
    scene = old([("session", 0), ("call", 0), *[("list", 0)] * 40])
    scene.send(1, result(2))
    scene.act(100, "list", 0)
    assert not grown_with(scene, lambda scene: scene.act(101, "answer", 0))


@pytest.mark.parametrize("scene", [web([("get", 0)]), old([])], ids=["Streamable HTTP", "HTTP+SSE"])
def test_a_beat_without_an_id_has_no_seeds(scene: Web | OldWeb) -> None:
    scene.streams[-1].event(notification("ping"))
    for id in range(1, 20):
        scene.act(id, "list", 0)
    assert not grown_with(scene, lambda scene: scene.streams[-1].event(notification("pong")))


@pytest.mark.parametrize("transport", [Web, OldWeb])
def test_a_stream_that_goes_on_costs_only_the_seeds_that_later_rows_depend_on(transport: type[Web | OldWeb]) -> None:
    scene = Web() if transport is Web else OldWeb(Traffic())
    scene.act(1, "get", 0)
    for id in range(2, 200):
        scene.act(id, "push", 0)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "x.mcpspy"
        path.write_bytes(written(scene.traffic.records))
        assert index(path, ends=False)
        opened = open_older_index(str(path), os.open(path, os.O_RDONLY), VERSION)
        assert opened is not None
        seeds = msgspec.msgpack.decode(opened[0].section("seeds"), type=Seeds)
    assert len(seeds.records) < 30 < len(scene.traffic.records)


DAMAGES = st.lists(st.tuples(st.integers(-3, 3), st.integers(0), st.integers(1, 255)), min_size=1, max_size=2)
"""Lines, counted from the cut; the place in the line; what is changed there."""


@settings(max_examples=FEW)
@given(st.lists(EITHER, min_size=10, max_size=40), CUTS, DAMAGES, st.sampled_from(["", "ends"]))
def test_sessions_with_damaged_lines_around_the_cut_are_shown_the_same(
    actions: list[tuple[bool, str, int]], cut: int, damages: list[tuple[int, int, int]], how: str
) -> None:
    lines = written(both(actions).records).splitlines(keepends=True)
    for line, place, change in damages:
        at = (1 + cut % len(lines) + line) % len(lines)
        changed = bytearray(lines[at])
        changed[place % (len(changed) - 1)] ^= change
        lines[at] = bytes(changed).replace(b"\n", b" ", 1) if b"\n" in changed[:-1] else bytes(changed)
    is_used = assert_grows(b"".join(lines), cut, how)
    event("taken up" if is_used else "read whole")


def with_events(ids: range) -> Web:
    scene = many()
    scene.act(50, "get", 0)
    for id in ids:
        scene.streams[-1].event(notification("notifications/message", {"level": "info", "data": 1}), id=f"e{id}")
    return scene


def test_an_event_with_a_new_id_is_taken_up() -> None:
    assert grown_with(with_events(range(40)), lambda scene: scene.streams[-1].event(notification("x"), id="e40"))


def test_an_event_with_an_id_from_before_the_index_has_the_capture_read_whole() -> None:
    assert not grown_with(with_events(range(40)), lambda scene: scene.streams[-1].event(notification("x"), id="e7"))


def test_an_id_that_another_session_has_is_taken_up() -> None:
    scene = with_events(range(40))
    scene.act(60, "session", 0)
    scene.traffic.get(session="s1").stream().event(notification("x"), id="other")
    assert grown_with(scene, lambda scene: scene.traffic.get(session="s1").stream().event(notification("x"), id="e7"))


def test_a_stream_that_is_resumed_after_the_index_has_the_capture_read_whole() -> None:
    assert not grown_with(with_events(range(40)), lambda scene: scene.traffic.get(session="s0", Last_Event_ID="e39").stream())


def test_a_stream_that_is_resumed_has_no_seeds() -> None:
    scene = many()
    scene.traffic.get(session="s0", Last_Event_ID="1").stream().event(result(1)).close()
    assert not grown_with(scene, lambda scene: scene.act(100, "list", 0))

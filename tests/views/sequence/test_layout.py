"""Tests of the layout of rows: groups, rows drawn as one, lanes of streams and of mcpspy, and rows that are left out."""

from pathlib import Path

import pytest

from mcpspy import read, transcribe
from mcpspy.transcript.model import Transcript
from mcpspy.views.sequence.diagram import (
    Activations,
    Arrow,
    ArrowKind,
    Aside,
    Diagram,
    Fragment,
    FragmentKind,
    OmittedMessages,
    flat,
)
from mcpspy.views.sequence.layout import Drawing, diagram
from mcpspy.views.timeline.details import Detail
from tests.transcript.calls.test_join import polled
from tests.transcript.dialogue import Dialogue, notification, request, result
from tests.transcript.traffic import Traffic
from tests.views.http_scenes import http_scene
from tests.views.scenes import call, opened, three_servers

CAPTURES = Path(__file__).parents[3] / "captures"
NAMES = sorted(path.stem for path in CAPTURES.glob("*.mcpspy"))


def recorded(name: str, **wanted: object) -> Diagram:
    transcript = transcribe(read(CAPTURES / f"{name}.mcpspy"))
    return diagram(transcript, transcript.rows, Drawing(**wanted))  # type: ignore[arg-type]  # of this test's own making


def drawn(scene: Dialogue | Transcript, **wanted: object) -> Diagram:
    transcript = scene.transcript if isinstance(scene, Dialogue) else scene
    return diagram(transcript, transcript.rows, Drawing(**wanted))  # type: ignore[arg-type]  # of this test's own making


def texts(layout: Diagram) -> list[str]:
    return [step.text for step in flat(layout.steps) if isinstance(step, Arrow | Aside)]


def titles(layout: Diagram, kind: FragmentKind) -> list[str]:
    groups = [step for step in layout.steps if isinstance(step, Fragment)]
    groups += [inner for fragment in groups for inner in fragment.steps if isinstance(inner, Fragment)]
    return [fragment.title for fragment in groups if fragment.kind is kind]


def test_phases_follow_each_other_as_they_did() -> None:
    names = [title.split(" · ")[0] for title in titles(recorded("time"), FragmentKind.PHASE)]
    assert names == ["start", "handshake", "discovery", "calls", "shutdown"]


def test_a_request_and_its_answer_are_in_one_phase_unless_another_began_between_them() -> None:
    (handshake,) = [
        step for step in recorded("time").steps if isinstance(step, Fragment) and step.title.startswith("handshake")
    ]
    assert [step.text.split(" ")[1] for step in handshake.steps if isinstance(step, Arrow)] == [
        "initialize",
        "ok",
        "notifications/initialized",
    ]


def test_over_http_the_end_of_a_session_is_the_shutdown() -> None:
    (shutdown,) = [
        step for step in recorded("streamable").steps if isinstance(step, Fragment) and step.title.startswith("shutdown")
    ]
    assert [step.text for step in flat(shutdown.steps) if isinstance(step, Arrow)] == [
        "11 DELETE /mcp",
        "3 closed by server after 2 events",
        "11 200",
    ]


def test_a_stream_that_ends_when_nothing_more_is_said_ends_with_all() -> None:
    last = recorded("sse").steps[-1]
    assert isinstance(last, Fragment)
    assert last.title.startswith("shutdown")
    assert [step.text for step in flat(last.steps) if isinstance(step, Arrow)] == ["1 disconnected by client after 4 events"]


def test_pings_after_the_last_call_are_a_phase() -> None:
    traffic = Traffic()
    stream = traffic.get("/sse").stream().event("/messages?sessionId=s", kind="endpoint")
    for id, method in enumerate(("initialize", "tools/list", "tools/call"), 1):
        traffic.post(request(id, method), "/messages?sessionId=s").answer(202)
        stream.event(result(id))
    for _ in range(2):
        traffic.post(notification("ping"), "/messages?sessionId=s").answer(202)
        stream.event(notification("pong"))
    names = [title.split(" · ")[0] for title in titles(drawn(traffic.transcript), FragmentKind.PHASE)]
    assert names == ["start", "handshake", "discovery", "calls", "heartbeat"]


def test_several_servers_have_no_phases() -> None:
    assert titles(drawn(three_servers()), FragmentKind.PHASE) == []


def test_the_rounds_of_a_call_are_a_loop() -> None:
    (title,) = titles(recorded("question"), FragmentKind.LOOP)
    assert title.startswith("tools/call greet: 2 rounds · ")


def test_polls_of_a_task_that_bring_nothing_new_are_drawn_as_one_from_the_first_to_the_last() -> None:
    scene = polled(Dialogue(), 17)
    assert texts(drawn(scene))[1:] == [
        "1 tools/call greet",
        "1 ok · 1.00 ms: task t working, poll every 1.00 s",
        "2–18 tasks/get t ×17",
        "2–18 ok: working",
    ]
    question, answered = list(flat(drawn(scene).steps))[-2:]
    assert answered.at_ns - question.at_ns >= 16 * 10**9


def test_flat_has_no_groups() -> None:
    layout = recorded("question", with_fragments=False)
    assert not [step for step in layout.steps if isinstance(step, Fragment)]
    assert texts(layout) == texts(recorded("question"))


def test_pages_of_a_list_are_drawn_as_one_with_all_that_they_hold() -> None:
    a, b, c = ({"name": name, "inputSchema": {"type": "object"}} for name in "abc")
    scene = Dialogue(begins=False).client(request(1, "tools/list")).server(result(1, {"tools": [a], "nextCursor": "x"}))
    scene.client(request(2, "tools/list", {"cursor": "x"})).server(result(2, {"tools": [b, c]}))
    assert texts(drawn(scene)) == ["1–2 tools/list ×2", "1–2 ok: 3 tools on 2 pages"]


def test_a_page_that_failed_is_drawn_by_itself() -> None:
    scene = opened("weather").client(request(1, "tools/list")).server(result(1, {"tools": [{"name": "a"}], "nextCursor": "x"}))
    scene.client(request(2, "tools/list", {"cursor": "x"})).server({"jsonrpc": "2.0", "id": 2, "error": {"code": -32602}})
    assert [text.split(" · ")[0] for text in texts(drawn(scene))[1:]] == ["1 tools/list", "1 ok", "2 tools/list", "2 error"]


def test_news_that_say_the_same_again_and_again_are_one_arrow() -> None:
    changed = notification("notifications/tools/list_changed")
    scene = opened("weather").server(changed).server(changed).server(changed).server(notification("notifications/other"))
    assert texts(drawn(scene))[1:] == ["1–3 notifications/tools/list_changed ×3", "4 notifications/other"]


def test_a_lane_is_busy_from_a_request_to_its_answer() -> None:
    scene = opened("weather").client(call(1, "forecast")).server(result(1))
    there, back = (step for step in flat(drawn(scene).steps) if isinstance(step, Arrow))
    assert (there.opens, there.closes, back.opens, back.closes) == ("server1", "", "", "server1")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("http", [False, True])
def test_no_bar_ends_that_did_not_begin(name: str, http: bool) -> None:  # noqa: FBT001
    bars = Activations()
    for step in flat(recorded(name, with_http=http).steps):
        if isinstance(step, Arrow) and step.closes:
            assert bars.closes(step), step
        if isinstance(step, Arrow):
            bars.opens(step)


def test_more_messages_than_are_wanted_are_counted() -> None:
    layout = recorded("everything", max_messages=3)
    steps = list(flat(layout.steps))
    assert sum(isinstance(step, Arrow) for step in steps) == 3
    (left_out,) = [step for step in steps if isinstance(step, OmittedMessages)]
    assert left_out.count == sum(isinstance(step, Arrow) for step in flat(recorded("everything").steps)) - 3


def test_what_happened_last_is_told_after_what_is_left_out() -> None:
    assert texts(recorded("everything", max_messages=1))[-1] == "server exited 0"


def test_lanes_and_the_diagram_are_called_what_the_user_wants() -> None:
    layout = recorded("time", title="What time is it?", names={"time": "the clock"})
    assert (layout.title, [participant.name for participant in layout.participants]) == (
        "What time is it?",
        ["stepclient", "the clock"],
    )


def test_with_the_proxy_every_message_goes_by_way_of_it() -> None:
    layout = recorded("time", with_proxy=True)
    assert [participant.id for participant in layout.participants] == ["client1", "mcpspy", "server1"]
    ends = [(step.start, step.end) for step in flat(layout.steps) if isinstance(step, Arrow)]
    assert ends[:4] == [("client1", "mcpspy"), ("mcpspy", "server1"), ("server1", "mcpspy"), ("mcpspy", "client1")]
    assert len(ends) == 2 * sum(isinstance(step, Arrow) for step in flat(recorded("time").steps))


def test_with_the_proxy_a_server_works_until_what_cancels_it_reaches_it() -> None:
    last = list(flat(recorded("stateless", with_proxy=True).steps))[-2:]
    cancellations = [
        (step.end, step.closes) for step in last if isinstance(step, Arrow) and step.kind is ArrowKind.CANCELLATION
    ]
    assert cancellations == [("mcpspy", ""), ("server1", "server1")]


def test_signs_that_json_escapes_are_shown_as_signs_where_they_can_be_seen() -> None:
    scene = opened("x").client(b'{"jsonrpc":"2.0","method":"m","params":{"a":"21 \\u00b0C \\u5317 \\u202e \\u0022"}}\n')
    assert texts(drawn(scene, detail=Detail.PARAMS))[-1].endswith('a = “21 °C 北 \\u202e "”')


def test_the_long_stream_of_http_with_sse_is_a_lane_beside_the_posts() -> None:
    layout = recorded("sse", with_http=True)
    assert [(participant.id, participant.name) for participant in layout.participants][1] == ("stream1", "GET /sse")
    arrows = [(step.start, step.end, step.text.split(" · ")[0]) for step in flat(layout.steps) if isinstance(step, Arrow)]
    assert ("client1", "server1", "4 tools/list") in arrows
    assert ("server1", "client1", "4 202 Accepted") in arrows
    assert ("stream1", "client1", "4 ok") in arrows


def test_folded_the_same_is_a_request_and_its_answer() -> None:
    arrows = [(step.start, step.end) for step in flat(recorded("sse").steps) if isinstance(step, Arrow) and step.row == 4]
    assert arrows == [("client1", "server1"), ("server1", "client1")]


def test_the_endpoint_and_the_session_are_noted() -> None:
    assert any(text.startswith("1 endpoint /messages/?session_id=redacted-") for text in texts(recorded("sse")))
    assert any(text.startswith("session redacted-") for text in texts(recorded("streamable")))


def test_the_last_words_of_a_server_that_failed_stand_with_its_end() -> None:
    assert any(text.startswith("server exited 1, last words: Error: None of") for text in texts(recorded("refused")))


def test_params_stand_in_the_line_of_a_message_if_that_is_wanted() -> None:
    scene = opened("weather").client(call(1, "forecast", city="北京")).server(result(1, {"ok": True}))
    lines = texts(drawn(scene, detail=Detail.PARAMS))
    assert lines[1:] == ["1 tools/call forecast city = “北京”", "1 ok · 1.00 ms: ok = true"]


def test_payloads_stand_below_a_message_if_that_is_wanted() -> None:
    scene = opened("weather").client(call(1, "forecast", city="北京")).server(result(1))
    there = next(step for step in flat(drawn(scene, detail=Detail.FULL).steps) if isinstance(step, Arrow))
    assert there.details == ("{", '  "city": "北京"', "}")


def test_a_long_payload_is_cut_and_that_is_said() -> None:
    scene = opened("weather").client(call(1, "forecast", days=list(range(100)))).server(result(1))
    there = next(step for step in flat(drawn(scene, detail=Detail.FULL).steps) if isinstance(step, Arrow))
    assert (len(there.details), there.details[-1]) == (25, "… 80 more lines")


def test_what_mcpspy_refused_goes_no_further_than_its_lane_and_the_answer_comes_from_there() -> None:
    layout = drawn(http_scene().transcript, with_proxy=True)
    refused = [step for step in flat(layout.steps) if isinstance(step, Arrow) and step.text.startswith(("17 ", "18 "))]
    assert [(step.start.rstrip("1234"), step.end.rstrip("1234")) for step in refused] == 2 * [
        ("client", "mcpspy"),
        ("mcpspy", "client"),
    ]

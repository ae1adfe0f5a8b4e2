"""Tests of an agent run as a diagram: the user's and the model's lanes beside client and server, in the order of time."""

from xml.etree import ElementTree as ET

import pytest

from mcpspy import read
from mcpspy.transcript.model import Transcript
from mcpspy.transcript.transcribe import transcribe
from mcpspy.views.markdown import report
from mcpspy.views.sequence.diagram import Arrow, ArrowKind, Aside, Diagram, Fragment, FragmentKind, flat
from mcpspy.views.sequence.layout import Drawing, diagram
from mcpspy.views.sequence.mermaid import mermaid
from mcpspy.views.sequence.plantuml import plantuml
from mcpspy.views.sequence.svg import svg
from mcpspy.views.timeline.details import Detail
from tests.conftest import ROOT, MermaidReader
from tests.transcript.dialogue import request, result
from tests.transcript.llm.traffic import ModelTraffic, completion, delta, sse
from tests.transcript.traffic import Traffic, initialize
from tests.views.scenes import call
from tests.views.sequence.test_mermaid import HOSTILE, words
from tests.views.sequence.test_mermaid import drawn as said_by
from tests.views.sequence.test_svg import HARMLESS, SVG
from tests.views.test_markdown import OURS, TAGS, rendered

USE = {"id": "u1", "type": "function", "function": {"name": "get_weather", "arguments": '{"city":"杭州"}'}}
OFFER = {"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object"}}}
RETURN = {"role": "tool", "tool_call_id": "u1", "content": "杭州 25°C"}


def weather_run() -> Transcript:
    """Make the run of a published walkthrough: a question, a tool that is called for it, and the answer."""
    server, model = Traffic("weather"), ModelTraffic("gpt")
    server.post(initialize(0, "agent")).answer(200, result(0, {"protocolVersion": "2025-11-25"}))
    server.post(request(1, "tools/list")).answer(200, result(1, {"tools": [{"name": "get_weather"}]}))
    model.wait(20)
    model.ask("user: 杭州的天气", tools=[OFFER]).answer(200, completion(tool_calls=[USE]))
    server.wait(30)
    weather = result(2, {"content": [{"type": "text", "text": "杭州 25°C"}]})
    server.post(call(2, "get_weather", city="杭州")).answer(200, weather)
    messages = [{"role": "user", "content": "杭州的天气"}, {"role": "assistant", "content": None, "tool_calls": [USE]}, RETURN]
    model.wait(40).post({"model": "m", "messages": messages, "tools": [OFFER]}, "/v1/chat/completions").answer(
        200, completion("杭州晴 25°C。")
    )
    return transcribe(server.ends().records, model.ends().records)


def drawn(transcript: Transcript, **wanted: object) -> Diagram:
    return diagram(transcript, transcript.rows, Drawing(**wanted))  # type: ignore[arg-type]  # whatever the test wants


def arrows(layout: Diagram) -> list[tuple[str, str, str]]:
    return [(step.start, step.end, step.text.partition(" · ")[0]) for step in flat(layout.steps) if isinstance(step, Arrow)]


def alone(model: ModelTraffic) -> list[Arrow]:
    return [step for step in flat(drawn(model.ends().transcript).steps) if isinstance(step, Arrow)]


def test_user_client_model_and_server_stand_in_this_order() -> None:
    assert [(participant.id, participant.name) for participant in drawn(weather_run()).participants] == [
        ("user", "user"),
        ("client1", "agent"),
        ("model1", "gpt"),
        ("server1", "weather"),
    ]


def test_a_run_goes_from_the_users_question_to_the_answer_by_way_of_model_and_server() -> None:
    assert arrows(drawn(weather_run()))[4:] == [
        ("user", "client1", "“杭州的天气”"),
        ("client1", "model1", "3 m: 1 turn"),
        ("model1", "client1", "3 ok"),
        ("client1", "server1", "4 tools/call get_weather"),
        ("server1", "client1", "4 ok"),
        ("client1", "model1", "5 m: ← get_weather “杭州 25°C”"),
        ("model1", "client1", "5 ok"),
        ("client1", "user", "“杭州晴 25°C。”"),
    ]


def test_what_the_model_wants_done_stands_in_its_answer() -> None:
    (answer,) = [
        step.text for step in flat(drawn(weather_run()).steps) if isinstance(step, Arrow) and step.text.startswith("3 ok")
    ]
    assert answer.endswith(': → get_weather {"city":"杭州"}')


def test_the_client_is_busy_from_the_question_to_the_answer() -> None:
    with_user = [
        step for step in flat(drawn(weather_run()).steps) if isinstance(step, Arrow) and "user" in (step.start, step.end)
    ]
    assert [(arrow.opens, arrow.closes) for arrow in with_user] == [("client1", ""), ("", "client1")]


def test_a_run_is_a_group_that_says_whose_time_it_was_and_phases_stand_around_it() -> None:
    groups = [step for step in drawn(weather_run()).steps if isinstance(step, Fragment)]
    assert [fragment.kind for fragment in groups] == [FragmentKind.PHASE, FragmentKind.PHASE, FragmentKind.RUN]
    assert groups[-1].title.startswith("“杭州的天气” · ")
    assert "ms: model " in groups[-1].title
    assert ", server " in groups[-1].title


def test_two_runs_at_once_are_not_grouped() -> None:
    model = ModelTraffic()
    call, other = model.ask("user: a"), model.ask("user: b")
    other.answer(200, completion("B"))
    call.answer(200, completion("A"))
    assert not [step for step in drawn(model.ends().transcript).steps if isinstance(step, Fragment)]


def test_what_passes_between_user_and_client_does_not_pass_mcpspy() -> None:
    drawn_arrows = arrows(drawn(weather_run(), with_proxy=True))
    assert ("user", "client1", "“杭州的天气”") in drawn_arrows
    assert ("client1", "mcpspy", "3 m: 1 turn") in drawn_arrows
    assert ("mcpspy", "model1", "3 m: 1 turn") in drawn_arrows


def test_the_user_is_drawn_as_a_person() -> None:
    layout = drawn(weather_run())
    assert "    actor user as user" in list(mermaid(layout))
    assert 'actor "user" as user' in list(plantuml(layout))


def test_the_lane_of_the_user_is_called_as_is_wanted() -> None:
    assert drawn(weather_run(), names={"user": "用户"}).participants[0].name == "用户"


def test_payloads_are_turns_that_are_new_and_tools_that_are_offered() -> None:
    details_of = {
        step.text[:6]: step.details for step in flat(drawn(weather_run(), detail=Detail.FULL).steps) if isinstance(step, Arrow)
    }
    assert details_of["3 m: 1"] == ("user: 杭州的天气", "offered: get_weather")
    assert details_of["3 ok ·"] == ('assistant: → get_weather {"city":"杭州"}',)
    assert details_of["5 m: ←"] == ("tool: 杭州 25°C",)


def test_a_call_that_the_api_refused_ends_with_its_status_and_answers_nobody() -> None:
    model = ModelTraffic()
    model.ask("user: a").answer(429, {"error": {"message": "Too many requests", "type": "rate_limit_error"}})
    *_, end = alone(model)
    assert (end.start, end.end, end.kind) == ("model1", "client1", ArrowKind.RESPONSE)
    assert ": 429" in end.text


def test_a_client_that_leaves_cancels_the_call() -> None:
    model = ModelTraffic()
    model.ask("user: a", stream=True).stream().raw(sse(delta("b"))).close("client", "broken")
    *_, end = alone(model)
    assert (end.start, end.end, end.kind, end.closes) == ("client1", "model1", ArrowKind.CANCELLATION, "model1")


def test_an_answer_whose_end_never_came_is_lost() -> None:
    model = ModelTraffic()
    model.ask("user: a", stream=True).stream().raw(sse(delta("b"))).close("server", "reset")
    *_, end = alone(model)
    assert (end.start, end.end, end.kind) == ("model1", "client1", ArrowKind.LOST)


def test_a_call_that_goes_on_is_pending() -> None:
    model = ModelTraffic()
    model.ask("user: a")
    transcript = model.transcript
    (aside,) = [step for step in flat(drawn(transcript).steps) if isinstance(step, Aside)]
    assert (aside.at, aside.text) == ("model1", "1 pending")


def test_what_mcpspy_answered_instead_of_the_api_says_so() -> None:
    model = ModelTraffic()
    model.ask("user: a").answer(502, b"mcpspy: nobody there", injected=True, by="mcpspy")
    question, ended = alone(model)[-2:]
    assert (question.stops, ended.injected) == (True, True)


@pytest.mark.parametrize("detail", [Detail.NAMES, Detail.FULL])
def test_mermaid_reads_a_run_as_it_was_drawn(detail: Detail, read_mermaid: MermaidReader) -> None:
    layout = drawn(weather_run(), detail=detail)
    (read,) = read_mermaid(["\n".join(mermaid(layout)) + "\n"])
    assert [participant["text"] for participant in read["participants"]] == ["user", "agent", "gpt", "weather"]
    assert [step.text for step in flat(layout.steps)][4] == "“杭州的天气”"  # type: ignore[union-attr]
    assert {"“杭州的天气”", "“杭州晴 25°C。”"} <= set(words(read))


STEPS = [
    "GET /sse", "connected", "endpoint /messages", "initialize", "weather", "initialized", "“杭州的天气”", "tools/list", "2 tools",
    "1 turn · 2 tools offered", "→ get_weather {\"city\":\"杭州\"}", "tools/call get_weather", "ok", "← get_weather “杭州",
    "“杭州的天气是晴", "“杭州的天气是晴", "disconnected by client",
]  # fmt: skip
"""Steps 1 to 15 of published walkthroughs, and the end; without those inside the client, which nobody sees."""


def test_the_run_that_a_walkthrough_tells_is_drawn_step_by_step(read_mermaid: MermaidReader) -> None:
    transcript = transcribe(*(read(ROOT / "captures" / f"agent-{name}.mcpspy") for name in ("model", "weather")))
    (read_back,) = read_mermaid(["\n".join(mermaid(drawn(transcript, with_fragments=False))) + "\n"])
    assert [participant["text"] for participant in read_back["participants"]] == ["user", "agent", "model", "weather"]
    signals = [text.replace("<br/>", " ") for text in words(read_back)]
    assert [step for step, signal in zip(STEPS, signals, strict=True) if step not in signal] == []


def hostile(text: str) -> Transcript:
    """`text` in every place of a model's leg that a client or an API can fill."""
    use = {"id": text, "type": "function", "function": {"name": text, "arguments": text}}
    back = {"role": "tool", "tool_call_id": text, "content": text}
    model = ModelTraffic(text)
    model.ask(f"user: {text}", f"{text}: {text}", model=text, tools=[{"type": "function", "function": {"name": text}}]).answer(
        200, completion(text, tool_calls=[use])
    )
    messages = [{"role": "user", "content": text}, {"role": "assistant", "content": text, "tool_calls": [use]}, back]
    model.post({"model": text, "messages": messages}, "/v1/chat/completions").answer(200, completion(text))
    model.ask(f"user: {text}", model=text).answer(429, {"error": {"message": text, "type": text}})
    return model.ends().transcript


def test_mermaid_reads_hostile_words_of_users_and_models_as_words(read_mermaid: MermaidReader) -> None:
    layouts = [drawn(hostile(text), detail=Detail.FULL) for text in HOSTILE]
    for text, layout, read_back in zip(
        HOSTILE, layouts, read_mermaid(["\n".join(mermaid(layout)) + "\n" for layout in layouts]), strict=True
    ):
        assert "error" not in read_back, (text, read_back)
        assert len(read_back["participants"]) == len(layout.participants), text
        details = sum(bool(step.details) for step in flat(layout.steps) if isinstance(step, Arrow))
        assert len(words(read_back)) == len(said_by(layout.steps)) + details, text


@pytest.mark.grid(20)
@pytest.mark.parametrize("text", HOSTILE)
def test_what_users_and_models_say_is_text_in_a_picture_and_a_report(text: str) -> None:
    transcript = hostile(text)
    root = ET.fromstring("\n".join(svg(drawn(transcript, detail=Detail.FULL, title=text))))
    assert {element.tag.removeprefix(SVG) for element in root.iter()} <= HARMLESS
    shown = rendered("\n".join(report(transcript, transcript.rows, version="1", is_part=True)))
    assert set(TAGS.findall(shown)) <= OURS

"""Model calls: in a row, in full, in statistics and in JSON; from the agent runs of captures/."""

import json
from datetime import UTC
from functools import cache
from itertools import dropwhile
from typing import Any

import pytest

from mcpspy.capture.file.reader import read
from mcpspy.transcript.llm.model_call import ModelCall
from mcpspy.transcript.llm.tool_trips import tool_trips
from mcpspy.transcript.model import Row, Transcript
from mcpspy.transcript.transcribe import transcribe
from mcpspy.views.json.rows import transcript_json
from mcpspy.views.json.server_statistics import statistics_json
from mcpspy.views.statistics import statistics_lines
from mcpspy.views.text.line import Line, line_cells, plain
from mcpspy.views.timeline.model_call import MAX_LINES, bodies, model_call_lines
from mcpspy.views.timeline.timeline import timeline
from tests.conftest import ROOT
from tests.findings.account import Account
from tests.transcript.llm.traffic import RESPONSES, ModelTraffic, completion
from tests.views.golden import same_as_golden

RUNS = {"agent": ("agent-model", "agent-weather"), "tags": ("tags-model", "tags-example-server")}
WIDTHS = (20, 40, 80, 120, 200)


@cache
def run(name: str) -> Transcript:
    return transcribe(*(read(str(ROOT / "captures" / f"{capture}.mcpspy")) for capture in RUNS[name]))


def told(account: str) -> Transcript:
    telling = Account(account)
    assert telling.model is not None
    return transcribe(telling.records, telling.model.records)


def whole(transcript: Transcript, at: int = 0, width: int | None = None) -> list[str]:
    return [
        plain(line) for line in model_call_lines(transcript, transcript.model_calls[at], tool_trips(transcript), width=width)
    ]


def all_whole(transcript: Transcript, width: int | None) -> list[Line]:
    trips = tool_trips(transcript)
    return [line for call in transcript.model_calls for line in [*model_call_lines(transcript, call, trips, width=width), []]]


def objects(transcript: Transcript, *, whole: bool = False) -> Any:
    return json.loads("".join(transcript_json(transcript, transcript.rows, live=False, whole=whole)))


def only(transcript: Transcript) -> ModelCall:
    (call,) = transcript.model_calls
    return call


@pytest.mark.parametrize("width", [80, 200])
@pytest.mark.parametrize("name", RUNS)
def test_a_run_is_shown_as_before(name: str, width: int) -> None:
    lines = [*timeline(run(name), width=width, zone=UTC), [], *all_whole(run(name), width)]
    assert same_as_golden(f"model-{name}-{width}", lines)


@pytest.mark.parametrize("width", [80, 200])
def test_the_numbers_of_a_run_are_shown_as_before(width: int) -> None:
    lines = statistics_lines(run("agent"), width=width, zone=UTC)
    assert same_as_golden(f"model-numbers-{width}", dropwhile(lambda line: line, lines))


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", RUNS)
def test_no_line_is_wider_than_the_screen(name: str, width: int) -> None:
    lines = all_whole(run(name), width) + list(statistics_lines(run(name), width=width, zone=UTC))
    assert [plain(line) for line in lines if line_cells(line) > width] == []


def test_docs_model_shows_a_call_as_it_is_printed() -> None:
    page = (ROOT / "docs" / "model.md").read_text(encoding="utf-8")
    assert "\n".join(whole(run("agent"), width=100)) in page


def test_a_row_shows_tool_uses_and_tokens() -> None:
    shown = [plain(line) for line in timeline(run("agent"), width=None, zone=UTC)]
    assert any('→ get_weather {"city":"杭州"} · 88 tokens in, 15 out' in line for line in shown)


def test_a_tool_use_names_its_call_and_the_row_that_returned_its_result() -> None:
    text = "\n".join(whole(run("agent")))
    assert "→ row 6 get_weather of weather: ok" in text
    assert "returned in row 7, matched by name and arguments" in text


def test_turns_of_the_call_before_are_counted_by_role() -> None:
    shown = whole(run("tags"), 1)
    assert any(line.strip() == "2 turns as in row 5: 1 system, 1 user" for line in shown)
    assert not any("What is" in line for line in shown)


def test_a_system_message_is_cut_to_its_line() -> None:
    traffic = ModelTraffic()
    traffic.ask("system: " + "be kind " * 100, "user: hello").answer(200, completion("hi"))
    (line,) = [line for line in whole(traffic.transcript, width=80) if "system" in line]
    assert "800 characters" in line


def test_a_long_text_is_cut_on_a_screen_and_complete_on_a_pipe() -> None:
    traffic = ModelTraffic()
    traffic.ask("user: " + "\n".join(f"line {n}" for n in range(200))).answer(200, completion("hi"))
    on_screen, on_pipe = whole(traffic.transcript, width=80), whole(traffic.transcript)
    assert f"… {200 - MAX_LINES} more lines" in "\n".join(on_screen)
    assert "line 199" in "\n".join(on_pipe)


def test_an_id_that_is_wide_on_the_screen_gets_a_line_of_its_own() -> None:
    prompt = {"model": "m", "input": [{"type": "function_call_output", "call_id": "天気🎉" * 15, "output": "x"}]}
    traffic = ModelTraffic()
    traffic.post(json.dumps(prompt).encode(), RESPONSES).answer(200, {})
    lines = all_whole(traffic.transcript, 80)
    assert [plain(line) for line in lines if line_cells(line) > 80] == []


def test_a_tool_use_without_a_recorded_call_says_so() -> None:
    account = (
        '→ tools/list 1\n← result 1 {"tools":[]}\n⇒ asks x\n⇐ uses c1 shell {"command":"ls"}\n⇒ returns c1 a.txt\n⇐ says y'
    )
    assert "no call recorded · id c1" in "\n".join(whole(told(account)))


def test_a_truncated_answer_shows_the_reason_in_its_row() -> None:
    shown = [plain(line) for line in timeline(told("⇒ asks x\n⇐ says y\n  finish length"), width=None, zone=UTC)]
    assert any("ok ⚑: “y” · length" in line for line in shown)


def test_an_error_of_the_api_is_shown_in_its_row() -> None:
    shown = [plain(line) for line in timeline(told("⇒ asks x\n⇐ 429 Too many requests"), width=None, zone=UTC)]
    assert any("http error ⚑: 429: error: Too many requests" in line for line in shown)


def test_the_summary_counts_model_calls_separately() -> None:
    first = plain(next(iter(timeline(run("agent"), width=None, zone=UTC))))
    assert "3 calls" in first
    assert "2 model calls" in first


def test_a_row_in_json_has_the_model_its_usage_and_its_uses() -> None:
    (row, _) = [row for row in objects(run("agent"))["rows"] if row["kind"] == "model_call"]
    assert (row["method"], row["target"], row["outcome"], row["before"]) == ("chat.completions", "gpt-4o-mini", "ok", None)
    assert (row["answer"]["usage"]["input_tokens"], row["answer"]["uses"][0]["arguments"]) == (88, '{"city":"杭州"}')


def test_json_has_turns_and_offers_for_selected_rows() -> None:
    plain_rows, whole_rows = (objects(run("agent"), whole=whole)["rows"] for whole in (False, True))
    assert not any("prompt" in row for row in plain_rows)
    (row, _) = [row for row in whole_rows if row["kind"] == "model_call"]
    assert [turn["text"] for turn in row["prompt"]["turns"]] == ["杭州的天气"]
    assert [offer["name"] for offer in row["prompt"]["offers"]] == ["get_weather", "suggest_activity"]
    assert row["prompt"]["offers"][0]["schema"]["required"] == ["city"]


def test_json_has_tool_trips_and_runs() -> None:
    made = objects(run("agent"))
    (tool_trip,) = made["tool_trips"]
    assert (tool_trip["row"], tool_trip["call_row"], tool_trip["returned_row"]) == (5, 6, 7)
    (agent_run,) = made["runs"]
    assert agent_run["model_ns"] + agent_run["server_ns"] + agent_run["client_ns"] == agent_run["duration_ns"]
    assert (agent_run["asked"], agent_run["rows"], agent_run["whole"]) == ("杭州的天气", [5, 7], True)


def test_json_without_a_model_has_no_tool_trips() -> None:
    telling = Account("→ ping 1\n← result 1")
    assert objects(transcribe(telling.records)).keys() == {"schema", "captures", "summary", "rows", "findings"}


def test_tokens_are_those_that_the_api_counted() -> None:
    made = json.loads(statistics_json(run("agent"), live=False))
    (model,) = made["models"]
    assert (model["count"], model["counted"], model["input_tokens"], model["output_tokens"]) == (2, 2, 126, 27)
    assert [server["server"] for server in made["servers"]] == ["weather"]


def test_tokens_that_the_api_did_not_count_are_estimated_and_marked() -> None:
    (model,) = json.loads(statistics_json(run("tags"), live=False))["models"]
    assert (model["counted"], model["input_tokens"]) == (0, 0)
    assert model["estimated_input_tokens"] > 100
    assert any("~" in plain(line) for line in statistics_lines(run("tags"), width=None, zone=UTC))


def test_a_tool_has_the_tokens_of_its_offers_and_the_number_of_its_uses() -> None:
    tools = {tool["tool"]: tool for tool in json.loads(statistics_json(run("agent"), live=False))["tools"]}
    assert [(tool["prompts"], tool["uses"], tool["called"]) for tool in tools.values()] == [(1, 1, 1), (1, 0, 0)]
    assert tools["suggest_activity"]["offered_tokens"] > 10


def test_rows_that_were_left_out_are_not_counted() -> None:
    rows: list[Row] = [*run("agent").model_calls[:1]]
    (model,) = json.loads(statistics_json(run("agent"), rows, live=False))["models"]
    assert model["count"] == 1


def test_the_bytes_of_a_prompt_and_its_answer_end_in_a_line_each() -> None:
    traffic = ModelTraffic()
    traffic.ask("user: hello").answer(200, completion("hi"))
    (prompt, answer) = [raw for _, raw in bodies(only(traffic.wire))]
    assert json.loads(prompt)["messages"] == [{"role": "user", "content": "hello"}]
    assert json.loads(answer)["choices"][0]["message"]["content"] == "hi"
    assert prompt.endswith(b"}\n")

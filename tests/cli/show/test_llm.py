"""The verbs that look, on an agent's run: its model's leg and its server's."""

import json
from pathlib import Path

from tests.cli.terminal import run

CAPTURES = Path(__file__).parents[3] / "captures"
MODEL, SERVER = (str(CAPTURES / f"agent-{name}.mcpspy") for name in ("model", "weather"))


def test_both_legs_are_one_timeline() -> None:
    text = run("show", SERVER, MODEL).stdout
    assert text.startswith("✗ 3 calls")
    assert [text.count(words) for words in ("→ chat.completions gpt-4o-mini", "→ tools/call get_weather")] == [2, 1]


def test_a_model_call_is_shown_in_full() -> None:
    text = run("show", f"{MODEL}:1").stdout
    assert all(words in text for words in ("row 1 · chat.completions gpt-4o-mini · ok", "2 tools offered", "no call recorded"))


def test_raw_has_the_prompt_and_the_answer_each_on_a_line() -> None:
    prompt, answer = map(json.loads, run("show", f"{MODEL}:1", "--raw").stdout.splitlines())
    assert prompt["messages"][0]["content"] == "杭州的天气"
    assert answer["choices"][0]["finish_reason"] == "tool_calls"


def test_the_numbers_of_both_legs_are_in_one_object() -> None:
    made = json.loads(run("show", SERVER, MODEL, "--stats", "--json").stdout)
    assert (len(made["servers"]), made["models"][0]["count"], len(made["runs"])) == (1, 2, 1)


def test_a_check_holds_both_legs_against_each_other() -> None:
    done = run("check", SERVER, MODEL, "--select", "model", "--json")
    assert done.returncode == 1
    assert [(finding["rule"], finding["culprit_name"]) for finding in json.loads(done.stdout)["findings"]] == [
        ("use-id-mismatch", "client agent")
    ]


def test_a_filter_finds_who_wanted_a_tool_and_the_call() -> None:
    rows = json.loads(run("show", SERVER, MODEL, "-F", "tool:get_weather", "--json").stdout)["rows"]
    assert [row["kind"] for row in rows] == ["model_call", "exchange"]


def test_diff_says_that_it_does_not_compare_calls_of_models() -> None:
    done = run("diff", MODEL, MODEL)
    assert done.returncode == 0
    assert "model calls are not compared" in done.stderr

"""The tools that look: what they answer, page by page, and what they refuse."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from mcpspy.agent.tools import DEFINITIONS, SENDING
from mcpspy.transcript.stats.tokens import estimated_tokens
from tests.agent.agents import CAPTURES, Agent, call, capture, play
from tests.cli.recording import Recording


@pytest.mark.parametrize(("calls", "max_tokens"), [(False, 1_300), (True, 1_500)])
def test_the_list_of_tools_costs_few_tokens(calls: bool, max_tokens: int) -> None:  # noqa: FBT001 - a column
    async def scene(agent: Agent) -> None:
        listed = await agent.client.list_tools()
        text = json.dumps([tool.model_dump(by_alias=True, exclude_none=True) for tool in listed.tools])
        assert [tool.name for tool in listed.tools] == list(DEFINITIONS) + list(SENDING) * calls
        for tool in listed.tools:
            assert tool.annotations is not None
            assert tool.annotations.read_only_hint == (tool.name in DEFINITIONS)
        assert estimated_tokens(text.encode()) <= max_tokens

    play(scene, calls=calls)


def test_an_empty_store_is_no_error() -> None:
    told = call("", "recordings")
    assert not told.is_error
    assert told.content == {"recordings": []}
    assert "mcpspy run" in told.text


def test_recordings_are_named_so_that_other_tools_take_them() -> None:
    Recording("weather")

    async def scene(agent: Agent) -> None:
        told = await agent.call("recordings")
        (recording,) = told.content["recordings"]
        assert recording["live"]
        assert recording["captured"]["servers"] == ["weather"]
        assert not (await agent.call("timeline", what=f"@{recording['id']}")).is_error

    play(scene)


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="counts the open files of this process")
def test_no_answer_about_a_session_that_goes_on_leaves_its_file_open() -> None:
    recording = Recording("weather").ask(1).answer(1)

    async def scene(agent: Agent) -> None:
        asked: dict[str, dict[str, Any]] = {
            "timeline": {"what": "@"},
            "row": {"what": "@:1"},
            "findings": {"what": "@"},
            "compare": {"before": "@", "after": "@"},
            "wait_for": {"timeout_s": 0.01},
        }
        for tool, arguments in asked.items():
            recording.line(0, {"jsonrpc": "2.0", "method": "notifications/initialized"})  # so that it is read again
            assert not (await agent.call(tool, **arguments)).is_error, tool
            opened = [os.path.realpath(f"/proc/self/fd/{name}") for name in os.listdir("/proc/self/fd")]
            assert opened.count(str(recording.path)) == 1, tool  # its writer's

    play(scene)


def test_pages_of_a_timeline_have_every_row_once_and_end() -> None:
    async def scene(agent: Agent) -> None:
        rows: list[dict[str, Any]] = []
        cursor: str | None = ""
        while cursor is not None:
            told = await agent.call("timeline", max_tokens=300, cursor=cursor)
            rows += told.content["rows"]
            cursor = told.content.get("next_cursor")
        numbers = [row["row"] for row in rows if row["row"]]
        assert numbers == list(range(1, len(numbers) + 1))
        assert len(rows) == told.content["total"]
        assert agent.calls > 3

    play(scene, capture("everything"))


def test_an_answer_keeps_to_its_budget_of_tokens() -> None:
    for tool, arguments in (("timeline", {}), ("row", {"what": "@:3"})):
        for max_tokens in (300, 700):
            told = call(capture("everything"), tool, max_tokens=max_tokens, **arguments)
            assert estimated_tokens(told.text.encode()) < max_tokens + 200
            assert "next_cursor" in told.content


def test_a_filter_selects_rows() -> None:
    told = call(capture("everything"), "timeline", filter="tool:trigger-sampling-request")
    assert [row["row"] for row in told.content["rows"]] == [12]
    assert "match the filter" in told.ours


def test_a_row_is_shown_whole_or_as_the_value_at_a_path() -> None:
    path = "@:12"
    whole = call(capture("everything"), "row", what=path)
    assert "sampling" in whole.captured
    assert whole.content["outcome"] == "ok"
    value = call(capture("everything"), "row", what=path, path="params.arguments.prompt")
    assert value.captured == "What is a tap?"


def test_findings_name_the_culprit_the_evidence_and_what_to_do(tmp_path: Path) -> None:
    told = call(Path("tests/findings/stdout-noise.mcpspy"), "findings")
    finding = told.content["findings"][0]
    assert finding["rule"] == "stdout-noise"
    assert finding["culprit"] == "server"
    assert finding["captured"]["advice"] in told.captured


def test_nothing_found_is_said_with_the_calls_that_wait() -> None:
    recording = Recording()
    recording.ask(1, "tools/list")
    told = call(recording.path, "findings")
    assert told.content["total"] == 0
    assert "1 call without an answer yet: rows 1" in told.text


def test_two_rows_are_compared() -> None:
    path = capture("everything")
    told = call(path, "compare", before=f"{path}", after=f"{path}")
    assert told.content["different"] is False
    assert told.ours.startswith("The two captures do not differ")  # and not that capture from that capture
    assert call(path, "compare", before="@", after=f"{path}").ours.startswith("@ and that capture do not differ")
    other = call(path, "compare", before="@", after=f"{capture('git')}")
    assert other.is_error, "a file that was not named at the start"


@pytest.mark.parametrize(
    ("tool", "arguments", "words"),
    [
        ("timeline", {"what": "/etc/passwd"}, "only recorded captures can be named"),
        ("timeline", {"what": "-"}, "only recorded captures can be named"),
        ("timeline", {"what": "../captures/git.mcpspy"}, "only recorded captures can be named"),
        ("timeline", {"what": "nothing-of-this-name"}, "nothing has been recorded yet"),
        ("timeline", {"filter": "colour:red"}, "there is no key"),
        ("timeline", {"cursor": "x"}, "is no cursor"),
        ("timeline", {"max_tokens": 3}, "less than the minimum"),
        ("timeline", {"colour": "red"}, "colour"),
        ("row", {}, "'what' is a required property"),
        ("row", {"what": "@"}, "No row is named"),
        ("row", {"what": "@:7000"}, "there is no row 7000"),
        ("row", {"what": "@:3", "path": "params.x"}, "has no params.x"),
        ("row", {"what": "@:3", "path": "..x"}, "is no path"),
        ("shout", {}, "There is no such tool"),
    ],
)
def test_a_call_that_cannot_be_answered_says_why(tool: str, arguments: dict[str, Any], words: str) -> None:
    told = call(capture("everything"), tool, **arguments)
    assert told.is_error
    assert words in told.text


def test_files_are_read_only_if_the_user_named_them() -> None:
    async def scene(agent: Agent) -> None:
        assert not (await agent.call("timeline", what=str(capture("git")))).is_error
        assert (await agent.call("timeline", what=str(capture("time")))).is_error

    play(scene, capture("everything"), capture("git"))


def test_every_capture_of_the_project_can_be_read_by_every_tool() -> None:
    for path in sorted(CAPTURES.glob("*.mcpspy")):

        async def scene(agent: Agent, path: Path = path) -> None:
            for tool, arguments in (("timeline", {}), ("findings", {}), ("row", {"what": f"{path}:1"})):
                told = await agent.call(tool, **arguments)
                assert not told.is_error, (path, tool, told.text)

        play(scene, path)


def test_a_recording_that_grows_is_read_again() -> None:
    recording = Recording()
    recording.ask(1, "tools/list")

    async def scene(agent: Agent) -> None:
        assert (await agent.call("row", what="@:1")).content["outcome"] == "pending"
        recording.answer(1, result={"tools": []})
        assert (await agent.call("row", what="@:1")).content["outcome"] == "ok"

    play(scene)

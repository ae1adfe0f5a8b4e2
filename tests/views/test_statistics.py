"""Statistics: in their columns, within the screen, harmless, and in JSON under documented names."""

import json
import re
from collections.abc import Callable
from datetime import UTC
from itertools import dropwhile
from pathlib import Path
from typing import Any

import pytest

from mcpspy import transcribe
from mcpspy.transcript.model import Transcript
from mcpspy.views.json.server_statistics import statistics_json
from mcpspy.views.statistics import MAX_ROWS, Column, statistics_lines, table_lines
from mcpspy.views.text.line import line_cells, plain
from tests.transcript.dialogue import Dialogue, request, result, tool_call
from tests.views.golden import same_as_golden
from tests.views.http_scenes import http_scene
from tests.views.scenes import busy_scene, hostile_scene, opened, three_servers
from tests.views.test_hostile import HOSTILE

PAGE = (Path(__file__).parents[2] / "docs" / "json.md").read_text(encoding="utf-8")
WIDTHS = (20, 40, 60, 80, 120, 200)


def shown(transcript: Transcript, width: int | None = None) -> list[str]:
    return [plain(line) for line in statistics_lines(transcript, width=width, zone=UTC)]


def document(transcript: Transcript) -> Any:
    return json.loads(statistics_json(transcript, live=False))


def line_of(lines: list[str], word: str) -> list[str]:
    """Return the words of the first line that begins with `word`."""
    return next(line.split() for line in lines if line.strip().startswith(word))


SCENES: dict[str, Callable[[], Transcript]] = {
    "busy": lambda: busy_scene().transcript,
    "three": three_servers,
    "http": lambda: http_scene().transcript,
}


@pytest.mark.parametrize("width", [80, 200])
@pytest.mark.parametrize("name", ["busy", "three"])
def test_the_numbers_are_shown_as_before(name: str, width: int) -> None:
    """Compare the statistics without the summary, which has its own tests."""
    lines = statistics_lines(SCENES[name](), width=width, zone=UTC)
    assert same_as_golden(f"numbers-{name}-{width}", dropwhile(lambda line: line, lines))


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", SCENES)
def test_no_line_is_wider_than_the_screen(name: str, width: int) -> None:
    lines = statistics_lines(SCENES[name](), width=width, zone=UTC)
    assert [plain(line) for line in lines if line_cells(line) > width] == []


@pytest.mark.parametrize("width", [20, 80])
@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_no_hostile_name_makes_a_line_wider_than_the_screen(text: str, width: int) -> None:
    lines = statistics_lines(hostile_scene(text).transcript, width=width, zone=UTC)
    assert [plain(line) for line in lines if line_cells(line) > width] == []


def test_a_tool_is_below_its_method_with_its_count_and_its_times() -> None:
    scene = Dialogue().client(tool_call(1)).wait(41).server(result(1)).client(tool_call(2)).wait(9).server(result(2))
    words = line_of(shown(scene.transcript, 200), "forecast")
    assert words[:12] == ["forecast", "2", "10.0", "ms", "10.0", "ms", "42.0", "ms", "42.0", "ms", "42.0", "ms"]


def test_the_sums_over_all_servers_come_first() -> None:
    lines = shown(three_servers())
    begin = lines.index("all 3 servers")
    assert lines[begin + 2] == "calls     9 calls · 3 failed · p50 10.0 ms, max 15.0 ms · 3 server requests"
    assert begin < lines.index("weather")
    assert not [line for line in shown(busy_scene().transcript) if line.startswith("all ")]
    totals = document(three_servers())["totals"]
    assert (totals["servers"], totals["calls"], totals["failed"], totals["requests"]) == (3, 9, 3, 3)
    assert totals["latency"]["p50_ns"] == 10_000_000


def test_the_cost_of_all_tool_lists_is_that_of_each_together() -> None:
    tools = {"tools": [{"name": "look", "description": "Look at the sky " * 40, "inputSchema": {"type": "object"}}]}
    scenes = [opened(name).client(request(1, "tools/list")).server(result(1, tools)) for name in ("a", "b")]
    single = document(scenes[0].transcript)["servers"][0]["context"]["definition_tokens"]
    both = shown(transcribe(*(scene.records for scene in scenes)))
    assert f"context   tool lists cost this agent {2 * single:,} tokens · 2 tools never called" in both


def test_wide_names_keep_the_columns_in_line() -> None:
    scene = (
        opened("weather")
        .client(tool_call(1, "天気予報を取得する"))
        .server(result(1))
        .client(tool_call(2, "a"))
        .server(result(2))
    )
    lines = list(statistics_lines(scene.transcript, width=80, zone=UTC))
    table = [line for line in lines if plain(line).startswith(("  天気", "  a  "))]
    assert len(table) == 2
    assert {line_cells(line) for line in table} == {line_cells(table[0])}


def test_failures_are_below_the_table_if_their_column_does_not_fit() -> None:
    narrow, wide = shown(busy_scene().transcript, 80), shown(busy_scene().transcript, 200)
    assert "  resources/subscribe: 1 error -32601" in narrow
    assert any(line.endswith("1 error -32601") and line.startswith("resources/subscribe") for line in wide)


def test_on_a_pipe_every_row_of_a_table_is_there() -> None:
    scene = Dialogue()
    for id in range(MAX_ROWS + 10):
        scene.client(request(id, f"method/{id:03}")).server(result(id))
    transcript = scene.transcript
    assert sum(line.startswith("method/") for line in shown(transcript)) == MAX_ROWS + 10
    assert f"… {10} more rows" in shown(transcript, 80)


def test_a_capture_without_a_message_has_numbers_too() -> None:
    assert any("0 messages" in line for line in shown(Dialogue().transcript, 80))


def test_the_start_up_is_shown() -> None:
    scene = Dialogue().client(request(0, "initialize")).wait(2999).stderr(b"up\n").wait(199).server(result(0))
    assert "start-up  first log line after 3.00 s · first answer after 3.20 s" in shown(scene.transcript, 80)


COLUMNS = (Column("name"), Column("a", 1), Column("b", 2), Column("c"))


def test_the_least_needed_column_is_dropped_first() -> None:
    rows = [[("x" * 30, ""), ("1234567", ""), ("1234567", ""), ("1234567", "")]]
    heads = [plain(next(table_lines(COLUMNS, rows, width))).split() for width in (60, 50, 40)]
    assert heads == [["name", "a", "b", "c"], ["name", "a", "c"], ["name", "c"]]


def test_an_empty_column_is_left_out() -> None:
    rows = [[("x", ""), ("", ""), ("1", ""), ("2", "")]]
    assert plain(next(table_lines(COLUMNS, rows, None))).split() == ["name", "b", "c"]


# --- JSON ---


def names(value: Any) -> set[str]:
    """Return every member name, except captured ones: HTTP methods, statuses, codes, what was tapped."""
    if isinstance(value, list):
        return {name for item in value for name in names(item)}
    if not isinstance(value, dict):
        return set()
    ours = {name: item for name, item in value.items() if name != "tapped"}
    inner = {name: item for name, item in ours.items() if name not in {"codes", "methods", "statuses"}}
    return set(ours) | {name for item in inner.values() for name in names(item)}


@pytest.mark.parametrize("name", SCENES)
def test_every_field_of_the_numbers_is_documented(name: str) -> None:
    assert not names(document(SCENES[name]())) - set(re.findall(r"`(\w+)`", PAGE))


def test_the_json_has_the_counts_of_each_tool() -> None:
    (server,) = document(busy_scene().transcript)["servers"]
    (tools,) = [call for call in server["calls"] if call["method"] == "tools/call"]
    counts = {target["target"]: (target["count"], target["failed"], target["tool_error"]) for target in tools["targets"]}
    assert counts["get_weather"] == (2, 1, 1)


def test_an_unanswered_call_has_no_latency_in_json() -> None:
    (server,) = document(Dialogue().client(tool_call(1)).transcript)["servers"]
    assert server["calls"][0]["latency"] is None

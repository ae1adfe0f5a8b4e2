"""The Chrome trace: bars that do not overlap in their lanes, one for each exchange."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy import read, transcribe
from mcpspy.views.trace import _in_lanes, trace
from tests.views.scenes import hostile_scene, three_servers

CAPTURES = Path(__file__).parents[2] / "captures"
NAMES = sorted(path.stem for path in CAPTURES.glob("*.mcpspy"))


def events(text: str) -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = json.loads(text)["traceEvents"]
    return made


def assert_no_overlap(bars: list[dict[str, Any]]) -> None:
    ends: dict[tuple[int, int], float] = {}
    for one in sorted((one for one in bars if one["ph"] == "X"), key=lambda one: one["ts"]):
        lane = one["pid"], one["tid"]
        assert one["ts"] >= ends.get(lane, 0) - 0.001
        ends[lane] = one["ts"] + one["dur"]


@pytest.mark.parametrize("name", NAMES)
def test_each_exchange_is_a_bar_and_no_two_overlap_in_a_lane(name: str) -> None:
    transcript = transcribe(read(CAPTURES / f"{name}.mcpspy"))
    found = events("\n".join(trace(transcript, transcript.rows)))
    bars = [one for one in found if one["ph"] == "X" and one["cat"] != "http"]
    assert sorted(one["args"]["row"] for one in bars) == sorted(one.row for one in transcript.exchanges)
    assert_no_overlap(found)


def test_each_server_has_a_track_of_its_own() -> None:
    transcript = three_servers()
    named = [
        one["args"]["name"] for one in events("\n".join(trace(transcript, transcript.rows))) if one["name"] == "process_name"
    ]
    assert [one.split(" → ")[1] for one in named] == ["weather", "filesystem-of-a-long-name", "天気"]


@given(st.lists(st.tuples(st.integers(0, 1_000), st.integers(0, 100))))
def test_bars_take_the_first_free_lane(spans: list[tuple[int, int]]) -> None:
    bars: list[tuple[int, int, str, dict[str, Any]]] = [
        (begin * 1_000, (begin + length) * 1_000, "x", {}) for begin, length in spans
    ]
    found = list(_in_lanes(0, "calls", bars))
    assert_no_overlap(found)
    assert len([one for one in found if one["ph"] == "X"]) == len(spans)


def test_names_of_peers_are_harmless() -> None:
    transcript = hostile_scene("\x1b]52;c;x\x07").transcript
    assert "\x1b" not in json.dumps(events("\n".join(trace(transcript, transcript.rows))), ensure_ascii=False)

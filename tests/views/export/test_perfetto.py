"""The Chrome trace: bars that do not overlap in their lanes, one for each exchange."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy import read, transcribe
from mcpspy.views.export.perfetto import _in_lanes, trace
from tests.transcript.llm.traffic import ModelTraffic, delta, sse
from tests.views.scenes import hostile_scene, three_servers

CAPTURES = Path(__file__).parents[3] / "captures"
NAMES = sorted(path.stem for path in CAPTURES.glob("*.mcpspy"))


def events(text: str) -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = json.loads(text)["traceEvents"]
    return made


def assert_no_overlap(bars: list[dict[str, Any]]) -> None:
    """Check whole nanoseconds too, because Perfetto truncates beginnings and durations separately."""
    ends: dict[tuple[int, int], int] = {}
    for bar in sorted((bar for bar in bars if bar["ph"] == "X"), key=lambda bar: bar["ts"]):
        lane = bar["pid"], bar["tid"]
        assert int(bar["ts"] * 1_000) >= ends.get(lane, 0)
        ends[lane] = int(bar["ts"] * 1_000) + int(bar["dur"] * 1_000)


@pytest.mark.parametrize("name", NAMES)
def test_each_exchange_is_a_bar_and_no_two_overlap_in_a_lane(name: str) -> None:
    transcript = transcribe(read(CAPTURES / f"{name}.mcpspy"))
    trace_events = events("\n".join(trace(transcript, transcript.rows)))
    bars = [event for event in trace_events if event["ph"] == "X" and event["cat"] != "http"]
    rows = [exchange.row for exchange in transcript.exchanges] + [call.row for call in transcript.model_calls]
    assert sorted(bar["args"]["row"] for bar in bars) == sorted(rows)
    assert_no_overlap(trace_events)


def test_each_server_has_a_track_of_its_own() -> None:
    transcript = three_servers()
    named = [
        event["args"]["name"]
        for event in events("\n".join(trace(transcript, transcript.rows)))
        if event["name"] == "process_name"
    ]
    assert [name.split(" → ")[1] for name in named] == ["weather", "filesystem-of-a-long-name", "天気"]


NS = st.integers(0, 300) | st.integers(10**15, 10**15 + 300)
"""Times that are near to each other, at the beginning of a capture and 11 days later."""


@given(st.lists(st.tuples(NS, st.integers(0, 100))))
def test_bars_take_the_first_free_lane(spans: list[tuple[int, int]]) -> None:
    bars: list[tuple[int, int, str, dict[str, Any]]] = [(begin, begin + length, "x", {}) for begin, length in spans]
    in_lanes = list(_in_lanes(0, "calls", bars))
    assert_no_overlap(in_lanes)
    assert len([event for event in in_lanes if event["ph"] == "X"]) == len(spans)


@pytest.mark.parametrize("first_ns", [0, 1_001, 10**12 + 1, 10**15 + 3])
def test_adjacent_bars_do_not_overlap_after_rounding(first_ns: int) -> None:
    bars: list[tuple[int, int, str, dict[str, Any]]] = [
        (first_ns + 7 * at, first_ns + 7 * at + 7, "x", {}) for at in range(500)
    ]
    assert_no_overlap(list(_in_lanes(0, "calls", bars)))


def test_a_model_call_is_a_bar_with_its_first_token_marked() -> None:
    model = ModelTraffic()
    model.ask("user: a", stream=True).stream().raw(sse(delta("b", "stop"))).raw(sse(b"[DONE]")).close("server")
    transcript = model.ends().transcript
    trace_events = events("\n".join(trace(transcript, transcript.rows)))
    assert [(event["name"], event["args"]["outcome"]) for event in trace_events if event["ph"] == "X"] == [
        ("chat.completions m", "ok")
    ]
    assert [event["name"] for event in trace_events if event["ph"] == "i"] == ["first token"]


def test_names_of_peers_are_harmless() -> None:
    transcript = hostile_scene("\x1b]52;c;x\x07").transcript
    assert "\x1b" not in json.dumps(events("\n".join(trace(transcript, transcript.rows))), ensure_ascii=False)

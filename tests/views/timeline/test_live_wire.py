"""The wire view of captures that grow: the pieces are the lines of the finished capture, and nothing is shown twice."""

import json
from typing import Any

import pytest

from mcpspy.transcript.transcribe import Transcriber
from mcpspy.views.json.transactions import LiveWireJson, http_lines
from mcpspy.views.text.line import plain
from mcpspy.views.timeline.exchange import carrying_transactions
from mcpspy.views.timeline.http_wire import LiveWire, wire_lines
from tests.transcript.dialogue import request, result
from tests.transcript.traffic import Traffic
from tests.views.http_scenes import http_scene


def told_live(traffic: Traffic, step: int, wire: LiveWire | LiveWireJson) -> list[list[Any]]:
    """Yield the lines of the wire view after every `step` records."""
    transcriber = Transcriber(keep_frames=True)
    batches: list[list[Any]] = []
    for begin in range(0, len(traffic.records), step):
        for record in traffic.records[begin : begin + step]:
            for row in transcriber.feed(record):
                wire.row(row)
        batches.append(wire.feed(transcriber.transcript.captures))
    return batches


def entries(lines: list[str]) -> list[str]:
    """Return the lines without headings, notes and margins."""
    bare = [line.strip() for line in lines if line.startswith(" ")]
    return sorted(line for line in bare if line)


@pytest.mark.parametrize("step", [1, 2, 7, 1_000])
@pytest.mark.parametrize("width", [80, 200, None])
def test_live_lines_are_the_lines_of_the_finished_capture(step: int, width: int | None) -> None:
    traffic = http_scene()
    # the margins differ by as many cells
    room = None if width is None else width + len("9999.000000") - len("0.106000")
    live = [plain(line) for batch in told_live(traffic, step, LiveWire(room)) for line in batch]
    transcript = traffic.wire
    whole = [plain(line) for line in wire_lines(transcript, carrying_transactions(transcript, transcript.rows), width=width)]
    assert entries(live) == entries(whole)


def test_an_event_is_shown_once_when_it_comes() -> None:
    traffic = Traffic()
    stream = traffic.get("/sse").stream()
    stream.event("one").event("two").close()
    batches = [[plain(line) for line in batch] for batch in told_live(traffic, 1, LiveWire(None))]
    assert [[word for word in ("one", "two") if any(f"data: {word}" in line for line in batch)] for batch in batches] == [
        [], [], [], [], ["one"], ["two"], [],
    ]  # fmt: skip


def test_a_heading_is_shown_when_the_transaction_changes() -> None:
    traffic = Traffic()
    stream = traffic.get("/sse").stream()
    stream.event("one")
    traffic.post(request(1)).answer(202)
    stream.event("two").event("three").close()
    lines = [plain(line) for batch in told_live(traffic, 1, LiveWire(None)) for line in batch]
    headings = [line.split(" · ")[0] for line in lines if line.startswith("transaction")]
    assert headings == ["transaction 1", "transaction 2", "transaction 1"]


def test_a_heading_names_the_row_once_it_is_known() -> None:
    traffic = Traffic()
    traffic.post(request(1)).answer(200, result(1))
    (batch,) = told_live(traffic, 100, LiveWire(None))
    assert "row 1" in plain(batch[0])


def test_chunk_sizes_are_explained_once() -> None:
    lines = [plain(line) for batch in told_live(http_scene(), 1, LiveWire(None)) for line in batch]
    assert sum(line.startswith("chunk 0x51 81 is") for line in lines) == 1


def test_cut_lines_are_explained_once() -> None:
    traffic = Traffic()
    for number in range(3):
        traffic.post(request(number)).answer(200, result(number, "x" * 5_000))
    lines = [plain(line) for batch in told_live(traffic, 1, LiveWire(None)) for line in batch]
    assert sum("more bytes" in line for line in lines) == 3
    assert sum("Long lines are cut." in line for line in lines) == 1


def test_transactions_without_selected_rows_can_be_left_out() -> None:
    traffic = Traffic()
    traffic.post(request(1)).answer(200, result(1))
    traffic.post(request(2)).answer(200, result(2))
    wire = LiveWire(None, only_rows=True)
    transcriber = Transcriber(keep_frames=True)
    for record in traffic.records:
        for row in transcriber.feed(record):
            if getattr(row, "row", 0) == 2:
                wire.row(row)
    lines = [plain(line) for line in wire.feed(transcriber.transcript.captures)]
    assert [line.split(" · ")[0] for line in lines if line.startswith("transaction")] == ["transaction 2"]


@pytest.mark.parametrize("step", [1, 3, 1_000])
def test_the_frames_of_all_objects_are_the_stream(step: int) -> None:
    traffic = http_scene()
    transcript = traffic.wire
    whole = [json.loads(line) for line in http_lines(transcript, carrying_transactions(transcript, transcript.rows))]
    live = [json.loads(line) for batch in told_live(traffic, step, LiveWireJson()) for line in batch]
    for made in whole:
        states = [transaction for transaction in live if transaction["transaction"] == made["transaction"]]
        for name in ("http_request", "http_response"):
            frames = [frame for transaction in states for frame in (transaction[name] or {"frames": []})["frames"]]
            assert frames == (made[name] or {"frames": []})["frames"]
        last = states[-1]
        assert {key: last[key] for key in ("status", "method", "target")} == {
            key: made[key] for key in ("status", "method", "target")
        }
        assert (last["http_response"] or {}).get("close") == (made["http_response"] or {}).get("close")


def test_an_unchanged_transaction_makes_no_object() -> None:
    traffic = Traffic()
    traffic.get("/sse").stream()
    traffic.post(request(1)).answer(202)
    traffic.post(request(2)).answer(202)
    batches = told_live(traffic, 1, LiveWireJson())
    numbers = [[json.loads(line)["transaction"] for line in batch] for batch in batches]
    assert max(map(len, numbers)) == 1

"""The benchmark of the reader measures captures that are what they say. Its figures are no test's business."""

from pathlib import Path

import pytest

from benchmarks import reader
from benchmarks.shapes import SHAPES
from mcpspy.capture.file.reader import read
from mcpspy.transcript.model import Kind, Outcome
from mcpspy.transcript.transcribe import transcribe


@pytest.fixture(params=SHAPES)
def capture(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / "bench.mcpspy"
    SHAPES[request.param](path, 500)
    return path


def test_a_capture_is_complete_has_its_messages_and_is_free_of_findings(capture: Path) -> None:
    transcript = transcribe(read(capture))
    (info,) = transcript.captures
    assert {finding.rule for finding in transcript.findings} <= {"deprecated-transport"}
    assert info.complete
    assert 500 <= len(transcript.messages) <= 510
    assert len({message.size for message in transcript.messages}) > 20
    assert {exchange.outcome for exchange in transcript.exchanges} <= {Outcome.OK, Outcome.ERROR, Outcome.TOOL_ERROR}


@pytest.mark.parametrize("name", reader.MEASURES)
def test_every_measure_takes_time(name: str, capture: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "SAMPLE", 100)
    assert reader.MEASURES[name](capture) > 0


def test_the_mixed_capture_has_a_bit_of_everything(tmp_path: Path) -> None:
    SHAPES["mixed"](path := tmp_path / "mixed.mcpspy", 500)
    transcript = transcribe(read(path))
    assert {exchange.outcome for exchange in transcript.exchanges} == {Outcome.OK, Outcome.ERROR, Outcome.TOOL_ERROR}
    assert {exchange.sender for exchange in transcript.exchanges} == {"client", "server"}
    assert {message.kind for message in transcript.messages} == set(Kind) - {Kind.MALFORMED}

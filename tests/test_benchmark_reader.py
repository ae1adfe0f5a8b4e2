"""The benchmark of the reader measures what it says it does. Its figures are no test's business."""

from pathlib import Path

import pytest

from benchmarks import mixed, reader
from mcpspy.capture.file.reader import read
from mcpspy.transcript.model import Kind, Outcome
from mcpspy.transcript.transcribe import transcribe


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    path = tmp_path / "bench.mcpspy"
    reader.write(path, reader.frames(20), messages=20)
    return path


def test_every_message_has_200_bytes(capture: Path) -> None:
    assert {message.size for message in transcribe(read(capture)).messages} == {200}


def test_half_of_them_are_calls_and_the_other_half_their_results(capture: Path) -> None:
    assert [exchange.outcome for exchange in transcribe(read(capture)).exchanges] == [Outcome.OK] * 10


def test_what_is_measured_is_free_of_findings_and_complete(capture: Path) -> None:
    transcript = transcribe(read(capture))
    assert (transcript.findings, transcript.captures[0].complete) == ([], True)


@pytest.mark.parametrize("name", reader.MEASURES)
def test_every_measure_takes_time(name: str, capture: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "SAMPLE", 100)
    assert reader.MEASURES[name](capture) > 0


@pytest.fixture
def mixed_capture(tmp_path: Path) -> Path:
    path = tmp_path / "mixed.mcpspy"
    reader.write(path, mixed.frames(500), messages=500)
    return path


def test_the_mixed_capture_has_a_bit_of_everything(mixed_capture: Path) -> None:
    transcript = transcribe(read(mixed_capture))
    assert 500 <= len(transcript.messages) <= 510
    assert {exchange.outcome for exchange in transcript.exchanges} == {Outcome.OK, Outcome.ERROR, Outcome.TOOL_ERROR}
    assert {exchange.sender for exchange in transcript.exchanges} == {"client", "server"}
    assert {message.kind for message in transcript.messages} == set(Kind) - {Kind.MALFORMED}


def test_the_mixed_capture_is_free_of_findings(mixed_capture: Path) -> None:
    assert transcribe(read(mixed_capture)).findings == []


@pytest.mark.parametrize("name", reader.OF_MIXED)
def test_every_measure_of_the_mixed_capture_takes_time(name: str, mixed_capture: Path) -> None:
    assert reader.MEASURES[name](mixed_capture) > 0

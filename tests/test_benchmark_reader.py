"""The benchmark of the reader measures what it says it does. Its figures are no test's business."""

from pathlib import Path

import pytest

from benchmarks import reader
from mcpspy.capture.reader import read
from mcpspy.transcript.model import Outcome
from mcpspy.transcript.transcribe import transcribe


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    path = tmp_path / "bench.mcpspy"
    reader.write(path, 20)
    return path


def test_every_message_has_200_bytes(capture: Path) -> None:
    assert {message.size for message in transcribe(read(capture)).messages} == {200}


def test_half_of_them_are_calls_and_the_other_half_their_results(capture: Path) -> None:
    assert [one.outcome for one in transcribe(read(capture)).exchanges] == [Outcome.OK] * 10


def test_what_is_measured_is_free_of_findings_and_complete(capture: Path) -> None:
    transcript = transcribe(read(capture))
    assert (transcript.findings, transcript.sources[0].complete) == ([], True)


@pytest.mark.parametrize("name", reader.MEASURES)
def test_every_measure_takes_time(name: str, capture: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "SAMPLE", 100)
    assert reader.MEASURES[name](capture) > 0

"""Findings of packed rows are those of rows that are kept as they are. Small blocks show this on captures of a few rows."""

from pathlib import Path
from typing import Any

import pytest

from mcpspy.capture.file import reader
from mcpspy.capture.file.reader import read
from mcpspy.cli.credential_search import CredentialSearch
from mcpspy.transcript import packed_rows, transcribe
from mcpspy.transcript.findings.rule import Unchecked
from mcpspy.transcript.findings.run import all_findings
from mcpspy.transcript.model import Exchange, Row, Transcript
from tests.transcript.dialogue import spelled

ROOT = Path(__file__).parents[2]
CAPTURES = [*(ROOT / "captures").glob("*.mcpspy"), *(ROOT / "tests" / "findings").glob("*.mcpspy")]


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packed_rows, "BLOCK_ROWS", 3)
    monkeypatch.setattr(packed_rows, "NEWEST_ROWS", 0)
    monkeypatch.setattr(packed_rows, "MOST_NEWEST_ROWS", 0)
    monkeypatch.setattr(transcribe, "LARGE_ROWS", 0)
    monkeypatch.setattr(transcribe, "LARGE_BYTES", 0)
    monkeypatch.setattr(reader, "_BATCH_BYTES", 700)


def checked(transcript: Transcript) -> tuple[Any, ...]:
    limits: dict[Unchecked, None] = {}
    return all_findings(transcript, limits=limits), limits


@pytest.mark.usefixtures("small_blocks")
def test_packed_rows_have_the_findings_of_other_rows() -> None:
    packed = 0
    for path in CAPTURES:
        plain = transcribe.transcribe(read(path), credentials=CredentialSearch())
        transcript = transcribe.transcribe(read(path), pack_rows=True, credentials=CredentialSearch())
        packed += isinstance(transcript.rows, packed_rows.PackedRows)
        assert checked(transcript) == checked(plain), path.name
    assert packed > 100


@pytest.mark.usefixtures("small_blocks")
def test_the_search_for_credentials_makes_no_packed_rows_again(monkeypatch: pytest.MonkeyPatch) -> None:
    path = ROOT / "captures" / "everything.mcpspy"
    made: list[int] = []
    block = packed_rows.PackedRows._block

    def counted(rows: packed_rows.PackedRows, number: int) -> list[Row]:
        made.append(number)
        return block(rows, number)

    monkeypatch.setattr(packed_rows.PackedRows, "_block", counted)
    counts = []
    for credentials in (None, CredentialSearch()):
        made.clear()
        checked(transcribe.transcribe(read(path), pack_rows=True, credentials=credentials))
        counts.append(len(made))
    assert counts[0] == counts[1]


@pytest.mark.usefixtures("small_blocks")
def test_packed_rows_say_what_other_rows_say() -> None:
    path = ROOT / "captures" / "everything.mcpspy"
    plain = transcribe.transcribe(read(path)).rows
    packed = transcribe.transcribe(read(path), pack_rows=True).rows
    assert len(packed) == len(plain)
    for row, other in zip(packed, plain, strict=True):
        assert row.at_ns == other.at_ns
        if isinstance(row, Exchange):
            assert isinstance(other, Exchange)
            for message, own in zip(row.messages, other.messages, strict=True):
                assert spelled(message)[1:] == spelled(own)[1:]
    assert [packed[-1].at_ns, packed[0].at_ns] == [plain[-1].at_ns, plain[0].at_ns]


def test_rows_of_a_small_file_are_not_packed(monkeypatch: pytest.MonkeyPatch) -> None:
    path = ROOT / "captures" / "everything.mcpspy"
    monkeypatch.setattr(packed_rows, "NEWEST_ROWS", 0)
    monkeypatch.setattr(packed_rows, "MOST_NEWEST_ROWS", 0)
    monkeypatch.setattr(transcribe, "LARGE_ROWS", 0)
    monkeypatch.setattr(reader, "_BATCH_BYTES", 700)
    size = path.stat().st_size
    for least_bytes, is_packed in ((size, True), (size + 1, False)):
        monkeypatch.setattr(transcribe, "LARGE_BYTES", least_bytes)
        rows = transcribe.transcribe(read(path), pack_rows=True).rows
        assert isinstance(rows, packed_rows.PackedRows) is is_packed

"""Counts of records by their bytes are those of the records that a reader makes."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.capture.file import counts
from mcpspy.capture.file.reader import RecordCounts, read

ROOT = Path(__file__).parents[3]
CAPTURES = sorted([*(ROOT / "captures").glob("*.mcpspy"), *(ROOT / "tests" / "findings").glob("*.mcpspy")])


def of_records(path: Path) -> tuple[int, int]:
    known = RecordCounts()
    for record in read(path):
        known.feed(record)
    return known.messages, known.gaps


def of_bytes(path: Path) -> tuple[int, int]:
    known = counts.counted(str(path), 1 << 30)
    return known.messages, known.gaps


def test_all_captures_have_the_counts_of_their_records(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counts, "CHUNK_BYTES", 777)
    assert [path.name for path in CAPTURES if of_bytes(path) != of_records(path)] == []


def test_most_captures_are_counted_without_reading_records(monkeypatch: pytest.MonkeyPatch) -> None:
    unread = [path for path in CAPTURES if b'"part":true' not in path.read_bytes()]
    monkeypatch.setattr(counts, "_read", lambda path, _: pytest.fail(path))
    read_too = {"capture-damaged", "capture-edited"}
    for path in unread:
        if not any(path.name.startswith(name) for name in read_too):
            of_bytes(path)


@pytest.mark.parametrize("chunk_bytes", [777, 1 << 20])
@pytest.mark.parametrize("times", [1, 2, 3])
@pytest.mark.parametrize(("first", "last"), [(5, 6), (5, 12), (1, 8), (4, 30), (12, 13)])
def test_lines_that_occur_again_are_counted_once(
    first: int, last: int, times: int, chunk_bytes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(counts, "CHUNK_BYTES", chunk_bytes)
    lines = (ROOT / "captures" / "logs.mcpspy").read_bytes().splitlines(keepends=True)[:-1]
    sound, damaged = tmp_path / "sound.mcpspy", tmp_path / "damaged.mcpspy"
    sound.write_bytes(b"".join(lines))
    damaged.write_bytes(b"".join([*lines[:last], *lines[first:last] * times, *lines[last:]]))
    assert of_bytes(damaged) == of_records(damaged) == of_bytes(sound) == of_records(sound)


def test_lines_in_the_place_of_as_many_others_are_counted_once(tmp_path: Path) -> None:
    lines = (ROOT / "captures" / "logs.mcpspy").read_bytes().splitlines(keepends=True)[:-1]
    damaged = tmp_path / "damaged.mcpspy"
    damaged.write_bytes(b"".join([*lines[:10], *lines[6:10], *lines[14:]]))
    assert of_bytes(damaged) == of_records(damaged)


@given(st.data())
def test_a_capture_that_was_cut_or_changed_has_the_counts_of_its_records(data: st.DataObject) -> None:
    whole = (ROOT / "captures" / data.draw(st.sampled_from(["logs.mcpspy", "streamable.mcpspy"]))).read_bytes()
    header = whole.index(b"\n") + 1
    end = data.draw(st.integers(header, len(whole)))
    at = data.draw(st.integers(header, len(whole) - 1))
    changed = bytearray(whole[:end])
    if at < end and data.draw(st.booleans()):
        changed[at] ^= 1 << data.draw(st.integers(0, 6))
    path = Path(os.environ.get("TMPDIR", "/tmp")) / f"mcpspy-counts-{os.getpid()}.mcpspy"
    try:
        path.write_bytes(changed)
        assert of_bytes(path)[0] == of_fed(path)
    finally:
        path.unlink()


def of_fed(path: Path) -> int:
    """Count the messages of a reader that does not know yet that nothing more comes."""
    return counts._read(str(path), 1 << 30).messages

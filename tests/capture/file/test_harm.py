"""A capture that others cut, remove or replace while it is recorded: that is said, and what comes after it can be read."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from mcpspy.capture.file.format import header_line
from mcpspy.capture.file.reader import read
from mcpspy.capture.file.verify import Status, verify
from mcpspy.capture.file.writer import Writer
from mcpspy.capture.store.folder import create
from mcpspy.records import Damage, End, Frame, Gap, Header, Note, Open, Record
from tests.capture.making import REQUEST, header, opens, talk

BEFORE = 40
"""The number of frames before the harm."""


class Recording:
    """A capture that is being recorded, with a header, four records and some frames that were synced."""

    def __init__(self, path: Path) -> None:
        self.complaints: list[str] = []
        fd, made = create(str(path), "x", wall_ns=0)
        self.path = Path(made)
        self.writer = Writer(fd, header_line(header()), complain=self.complaints.append, begin_ns=None, path=made)
        self.writer(opens())
        self.sent = 0
        self.frames(BEFORE)
        self.writer.sync()

    def frames(self, count: int) -> None:
        """Record so many frames, each with its number."""
        for _ in range(count):
            self.writer.frame(0, 1_000 + self.sent, b'{"id":%d}\n' % self.sent)
            self.sent += 1

    def end(self) -> None:
        self.writer.close(10_000)


@pytest.fixture
def recording(tmp_path: Path) -> Recording:
    """A capture in a folder of its own."""
    folder = tmp_path / "folder"
    folder.mkdir()
    return Recording(folder / "x.mcpspy")


def cut(recording: Recording, size_bytes: int) -> None:
    os.truncate(recording.path, size_bytes)


def overwrite(recording: Recording, data: bytes) -> None:
    recording.path.write_bytes(data)


def copy_over(recording: Recording) -> None:
    overwrite(recording, recording.path.read_bytes())


def replace(recording: Recording, data: bytes) -> None:
    other = recording.path.with_name("other")
    other.write_bytes(data)
    other.rename(recording.path)


def with_frames(harm: Callable[[Recording], None], count: int = 5) -> Callable[[Recording], None]:
    """Record some frames after the harm, before anybody looks."""

    def both(recording: Recording) -> None:
        harm(recording)
        recording.frames(count)

    return both


HEADER_BYTES = len(header_line(header()))


def to_nothing(recording: Recording) -> None:
    cut(recording, 0)


def in_the_header(recording: Recording) -> None:
    cut(recording, 100)


def in_its_first_word(recording: Recording) -> None:
    cut(recording, 3)


def behind_the_header(recording: Recording) -> None:
    cut(recording, HEADER_BYTES)


def in_a_line(recording: Recording) -> None:
    cut(recording, recording.path.stat().st_size // 2 // 80 * 80 + 7)


def at_a_line_end(recording: Recording) -> None:
    lines = recording.path.read_bytes().splitlines(keepends=True)
    cut(recording, len(b"".join(lines[: BEFORE // 2])))


def removed(recording: Recording) -> None:
    recording.path.unlink()


def linked(recording: Recording) -> None:
    recording.path.unlink()
    recording.path.symlink_to("elsewhere")


def foreign(recording: Recording) -> None:
    overwrite(recording, b"mine\n")


def foreign_that_looks_like_records(recording: Recording) -> None:
    overwrite(recording, b'{"n":true,"mine":1}\n{"n":99999,"mine":1}\n')


def zeros(recording: Recording) -> None:
    cut(recording, 0)
    cut(recording, 1 << 16)


CUT_AT_THE_HEAD: dict[str, Callable[[Recording], None]] = {
    "to nothing": to_nothing,
    "to nothing, with frames since": with_frames(to_nothing),
    "to nothing, and grown longer since": with_frames(to_nothing, 3 * BEFORE),
    "in the header": in_the_header,
    "in the header, with frames since": with_frames(in_the_header),
    "in its first word": in_its_first_word,
    "in its first word, with frames since": with_frames(in_its_first_word),
}
CUT_BEHIND_IT: dict[str, Callable[[Recording], None]] = {
    "behind the header": behind_the_header,
    "behind the header, with frames since": with_frames(behind_the_header),
    "behind the header, and grown longer since": with_frames(behind_the_header, 3 * BEFORE),
    "in a line": in_a_line,
    "in a line, with frames since": with_frames(in_a_line),
    "at a line's end": at_a_line_end,
    "at a line's end, with frames since": with_frames(at_a_line_end),
}
REPLACED: dict[str, Callable[[Recording], None]] = {
    "removed": removed,
    "removed, with frames since": with_frames(removed),
    "replaced by another file": lambda recording: replace(recording, b"mine"),
    "replaced by another file, with frames since": with_frames(lambda recording: replace(recording, b"mine")),
    "replaced by a copy of itself": lambda recording: replace(recording, recording.path.read_bytes()),
    "replaced by a link": linked,
    "overwritten": foreign,
    "overwritten, with frames since": with_frames(foreign),
    "overwritten with what looks like records": foreign_that_looks_like_records,
    "overwritten with what looks like records, with frames since": with_frames(foreign_that_looks_like_records),
    "a file of zeros": zeros,
}
HARMLESS: dict[str, Callable[[Recording], None]] = {
    "nothing": lambda recording: None,
    "overwritten with itself": copy_over,
    "read-only": lambda recording: recording.path.chmod(0o400),
    "a second name": lambda recording: os.link(recording.path, recording.path.with_name("second")),
    "touched": lambda recording: os.utime(recording.path, (1, 1)),
    "a sync of nothing new": lambda recording: recording.writer.sync(),
}


def records_after(recording: Recording, harm: Callable[[Recording], None]) -> list[Record]:
    """Do the harm, look, go on recording, and return what the file that is recorded to has."""
    harm(recording)
    since = recording.sent
    recording.writer.sync()
    recording.frames(5)
    recording.writer.sync()
    recording.frames(5)
    recording.end()
    records = list(read(recording.writer._path))
    ids = [frame.data for frame in records if isinstance(frame, Frame)]
    assert ids[-10:] == [b'{"id":%d}\n' % number for number in range(since, recording.sent)]
    return records


def lost_frames(recording: Recording, records: list[Record]) -> set[int]:
    there = {int(frame.data[6:-2]) for frame in records if isinstance(frame, Frame)}
    return set(range(recording.sent)) - there


@pytest.mark.parametrize("harm", CUT_AT_THE_HEAD)
def test_a_file_that_lost_its_header_begins_with_one_again_and_a_gap_for_what_is_gone(harm: str, recording: Recording) -> None:
    records = records_after(recording, CUT_AT_THE_HEAD[harm])
    assert Path(recording.writer._path) == recording.path
    assert [type(record) for record in records[:5]] == [Header, Gap, Open, Open, Open]
    assert recording.complaints == [
        f"mcpspy: {recording.path}, which is being recorded, was cut by another program; the records cut off are lost"
    ]
    summary = verify(str(recording.path))
    assert (summary.status, [problem.reason for problem in summary.problems]) == (Status.INCOMPLETE, ["gap"])
    assert lost_frames(recording, records) == set(range(BEFORE))
    assert isinstance(records[1], Gap)
    assert records[1].frames == BEFORE
    end = records[-1]
    assert isinstance(end, End)
    assert (end.frames, end.messages, end.gaps) == (recording.sent - BEFORE, recording.sent - BEFORE, 1)


@pytest.mark.parametrize("harm", CUT_BEHIND_IT)
def test_a_file_that_was_cut_behind_its_header_goes_on_with_a_note(harm: str, recording: Recording) -> None:
    records = records_after(recording, CUT_BEHIND_IT[harm])
    assert Path(recording.writer._path) == recording.path
    assert isinstance(records[0], Header)
    assert [note.topic for note in records if isinstance(note, Note)] == ["cut"]
    assert len(recording.complaints) == 1
    summary = verify(str(recording.path))
    assert summary.status is Status.DAMAGED
    assert any(problem.reason == "number" and "missing" in problem.text for problem in summary.problems)
    assert max(lost_frames(recording, records)) <= BEFORE  # and one that was joined with the rest of a line


@pytest.mark.parametrize("harm", REPLACED)
def test_recording_goes_on_in_a_new_file_and_what_others_put_there_stays(harm: str, recording: Recording) -> None:
    records = records_after(recording, REPLACED[harm])
    is_removed = harm.startswith("removed")
    assert Path(recording.writer._path) == (recording.path if is_removed else recording.path.with_name("x-2.mcpspy"))
    assert Path(recording.writer._path).stat().st_mode & 0o777 == 0o600
    if "another file" in harm:
        assert recording.path.read_bytes() == b"mine"
    elif "looks like" in harm:
        assert recording.path.read_bytes().startswith(b'{"n":true,"mine":1}\n{"n":99999,"mine":1}\n')
    elif harm.startswith("overwritten"):
        assert recording.path.read_bytes().startswith(b"mine\n")
    assert [type(record) for record in records[:5]] == [Header, Gap, Open, Open, Open]
    assert (
        len(recording.complaints) == 1
        if is_removed
        else recording.complaints[1:] == [f"mcpspy: recording to {recording.path.with_name('x-2.mcpspy')}"]
    )
    assert verify(recording.writer._path).status is Status.INCOMPLETE
    assert [record for record in records if isinstance(record, Damage)] == []


@pytest.mark.parametrize("harm", HARMLESS)
def test_what_does_no_harm_is_not_spoken_of(harm: str, recording: Recording) -> None:
    records_after(recording, HARMLESS[harm])
    assert recording.complaints == []
    assert verify(str(recording.path)).status is Status.INTACT


def test_a_renamed_file_is_recorded_on(recording: Recording) -> None:
    moved = recording.path.with_name("moved.mcpspy")
    recording.path.rename(moved)
    recording.writer.sync()
    recording.frames(5)
    recording.end()
    assert (recording.complaints, verify(str(moved)).status) == ([], Status.INTACT)
    assert not recording.path.exists()


def test_without_its_folder_recording_waits_until_there_is_one_again(recording: Recording) -> None:
    shutil.rmtree(recording.path.parent)
    recording.writer.sync()
    recording.frames(3)
    assert len(recording.complaints) == 2
    assert recording.complaints[1].endswith("(no new file can be made: No such file or directory); traffic goes on unrecorded")
    recording.path.parent.mkdir()
    recording.frames(3)
    recording.end()
    records = list(read(recording.path))
    assert [gap.frames for gap in records if isinstance(gap, Gap)] == [BEFORE, 3]
    assert [frame.data for frame in records if isinstance(frame, Frame)] == [b'{"id":%d}\n' % id for id in (43, 44, 45)]
    assert verify(str(recording.path)).status is Status.INCOMPLETE


def test_the_folders_of_the_store_are_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MCPSPY_HOME", str(tmp_path / "home"))
    recording = Recording.__new__(Recording)
    recording.complaints = []
    fd, made = create(None, "x", wall_ns=0)
    recording.path, recording.sent = Path(made), 0
    recording.writer = Writer(fd, header_line(header()), complain=recording.complaints.append, path=made)
    recording.writer(opens())
    shutil.rmtree(tmp_path / "home")
    recording.writer.sync()
    recording.frames(3)
    recording.end()
    assert verify(made).frames == 3
    assert (tmp_path / "home").stat().st_mode & 0o777 == (tmp_path / "home" / "captures").stat().st_mode & 0o777 == 0o700


def test_a_file_that_is_cut_again_and_again_is_mended_again_and_again(recording: Recording) -> None:
    for _ in range(3):
        cut(recording, 0)
        recording.frames(4)
        recording.writer.sync()
        recording.frames(2)
        recording.writer.sync()
    recording.end()
    summary = verify(str(recording.path))
    assert (summary.status, summary.frames, len(recording.complaints)) == (Status.INCOMPLETE, 6, 3)


@pytest.mark.parametrize("seed", range(40))
def test_a_cut_at_any_byte_leaves_a_capture_that_can_be_read(seed: int, recording: Recording) -> None:
    size = recording.path.stat().st_size
    cut(recording, seed * size // 40)
    if seed % 2:
        recording.frames(seed % 7)
    recording.writer.sync()
    recording.writer(talk())
    recording.writer.frame(0, 9_000, REQUEST)
    recording.end()
    records = list(read(recording.path))
    assert isinstance(records[0], Header)
    assert sum(isinstance(record, Frame) and record.data == REQUEST for record in records) >= 2
    assert isinstance(records[-1], End)


def test_where_no_names_are_counted_one_new_file_is_made_and_no_more(
    recording: Recording, monkeypatch: pytest.MonkeyPatch
) -> None:
    fstat = os.fstat
    monkeypatch.setattr(os, "fstat", lambda fd: os.stat_result((*fstat(fd)[:3], 0, *fstat(fd)[4:])))
    for _ in range(5):
        recording.writer.sync()
        recording.frames(3)
    recording.end()
    assert sorted(os.listdir(recording.path.parent)) == ["x-2.mcpspy", "x.mcpspy"]

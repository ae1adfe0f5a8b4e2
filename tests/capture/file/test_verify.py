"""Problems that verify finds, with their lines; and the files that repair makes."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from mcpspy.capture.file.format import header_line, record_line
from mcpspy.capture.file.reader import read
from mcpspy.capture.file.repair import repair
from mcpspy.capture.file.verify import Status, Summary, verify
from mcpspy.errors import CaptureError, RepairError
from mcpspy.records import Damage, End, Frame, Gap, Header, Note
from tests.capture.making import closes, header, lines, opens, talk

WHOLE = lines([*opens(), *talk(), *closes()])
LINES = WHOLE.splitlines(keepends=True)
"""A header, four records of the start (1-4), three frames (5-7), close, exit and end (8-10)."""


@pytest.fixture
def capture(tmp_path: Path) -> Callable[[bytes], str]:
    """Return a function that writes bytes to a file and returns its path."""

    def made(data: bytes) -> str:
        path = tmp_path / "x.mcpspy"
        path.write_bytes(data)
        return str(path)

    return made


Capture = Callable[[bytes], str]


def flipped(line: bytes) -> bytes:
    return line.replace(b'"at_ns":', b'"at_nr":', 1)


def without(*numbers: int) -> bytes:
    return b"".join(line for number, line in enumerate(LINES) if number not in numbers)


def with_line(number: int, line: bytes) -> bytes:
    return b"".join([*LINES[:number], line, *LINES[number + 1 :]])


def reasons(summary: Summary) -> list[tuple[str, int]]:
    return [(problem.reason, problem.line) for problem in summary.problems]


def test_a_capture_as_the_writer_leaves_it_is_intact(capture: Capture) -> None:
    summary = verify(capture(WHOLE))
    assert (summary.status, summary.records, summary.frames, summary.problems) == (Status.INTACT, 10, 3, ())


@pytest.mark.parametrize(
    ("name", "data", "status", "problems"),
    [
        ("no end record", without(10), Status.INCOMPLETE, [("end", 10)]),
        ("a torn last line", WHOLE[:-20], Status.INCOMPLETE, [("torn", 11), ("end", 11)]),
        ("a last line without its newline", WHOLE[:-1], Status.INCOMPLETE, [("torn", 11)]),
        ("a torn header", WHOLE[:30], Status.INCOMPLETE, [("torn", 1), ("end", 1)]),
        ("an empty file", b"", Status.INCOMPLETE, [("torn", 1), ("end", 1)]),
        ("a header and no more", LINES[0], Status.INCOMPLETE, [("end", 1)]),
        ("a flipped line", with_line(6, flipped(LINES[6])), Status.DAMAGED, [("crc", 7), ("number", 8)]),
        ("a foreign line", with_line(6, b"hello\n" + LINES[6]), Status.DAMAGED, [("json", 7)]),
        ("a blank line", with_line(6, b"\n" + LINES[6]), Status.DAMAGED, [("json", 7)]),
        ("records that are missing", without(5, 6), Status.DAMAGED, [("number", 6)]),
        ("a record twice", with_line(6, LINES[6] * 2), Status.DAMAGED, [("number", 8)]),
        ("two lines in the wrong order", without(6)[: -len(LINES[10])] + LINES[6] + LINES[10], Status.DAMAGED,
         [("number", 7), ("number", 10)]),
        ("a flipped header", with_line(0, LINES[0].replace(b"weather", b"weasher")), Status.DAMAGED, [("crc", 1)]),
        ("a spoilt header", with_line(0, LINES[0].replace(b'"pid"', b'"pid')), Status.DAMAGED, [("crc", 1)]),
        ("an end record that is gone", with_line(10, flipped(LINES[10])), Status.DAMAGED, [("crc", 11), ("end", 11)]),
        ("something behind the end", WHOLE + LINES[9], Status.DAMAGED, [("end", 12)]),
        ("two captures in one file", WHOLE + WHOLE, Status.DAMAGED, [("shape", 12), *[("end", line) for line in range(13, 23)]]),
        ("an end record that counts something else", b"".join(LINES[:10]) + record_line(10, End(at_ns=1, frames=9, bytes=1)),
         Status.DAMAGED, [("end", 11)]),
        ("a line edited by hand", with_line(6, LINES[6][: -len(',"crc":"01234567"}\n')] + b"}\n"), Status.INTACT, [("edited", 7)]),
    ],
)  # fmt: skip
def test_a_problem_is_found_with_its_line(
    name: str, data: bytes, status: Status, problems: list[tuple[str, int]], capture: Capture
) -> None:
    summary = verify(capture(data))
    assert (summary.status, reasons(summary)) == (status, problems)


def test_a_gap_makes_a_capture_incomplete_and_says_what_was_lost(capture: Capture) -> None:
    gap = Gap(at_ns=4, since_ns=3, frames=17, bytes=4321, why="No space left on device")
    summary = verify(capture(lines([*opens(), gap])))
    assert summary.status is Status.INCOMPLETE
    assert summary.problems[0].text == "17 frames, 4321 bytes are not recorded: No space left on device"


def test_the_offset_of_a_problem_is_the_first_byte_of_its_line(capture: Capture) -> None:
    summary = verify(capture(with_line(6, flipped(LINES[6]))))
    assert summary.problems[0].offset == sum(map(len, LINES[:6]))


def test_missing_records_are_named(capture: Capture) -> None:
    assert verify(capture(without(5, 6))).problems[0].text == "records 5 to 6 are missing"


def test_many_problems_are_counted_and_a_bounded_number_kept(capture: Capture) -> None:
    summary = verify(capture(LINES[0] + b"junk\n" * 3_000))
    assert len(summary.problems) + summary.more_problems == 3_001
    assert len(summary.problems) == 1_000


def test_a_line_of_a_gigabyte_is_one_problem_and_no_memory(capture: Capture) -> None:
    path = capture(LINES[0])
    os.truncate(path, 1 << 28)  # a hole in the file: NULs
    with open(path, "ab") as file:
        file.write(b"\n" + LINES[1])
    summary = verify(path)
    assert reasons(summary) == [("json", 2), ("end", 3)]
    assert summary.records == 1


@pytest.mark.parametrize("data", [b"hello\n", b"{}\n", b"[1]\n", b"\x7fELF", b'{"mcpspy":1}\n', b"\n"])
def test_a_file_that_is_no_capture_is_an_error(data: bytes, capture: Capture) -> None:
    if data == b'{"mcpspy":1}\n':
        assert verify(capture(data)).status is Status.DAMAGED
    else:
        with pytest.raises(CaptureError, match="not an mcpspy capture"):
            verify(capture(data))


def test_a_capture_of_a_newer_version_asks_for_a_newer_mcpspy(capture: Capture) -> None:
    with pytest.raises(CaptureError, match="update mcpspy"):
        verify(capture(header_line(header(format=7, min_reader=7))))


def test_a_newer_capture_that_older_readers_may_read_is_read(capture: Capture) -> None:
    summary = verify(capture(header_line(header(format=7, min_reader=1)) + record_line(1, Note(at_ns=1, topic="x", text="y"))))
    assert (summary.records, reasons(summary)) == (1, [("end", 2)])


# --- Repair ---


def repaired(data: bytes, capture: Capture, tmp_path: Path) -> bytes:
    out = tmp_path / "out.mcpspy"
    repair(capture(data), str(out))
    return out.read_bytes()


DAMAGED = {
    "a flipped line": with_line(6, flipped(LINES[6])),
    "a foreign line": with_line(6, b"hello\n" + LINES[6]),
    "records that are missing": without(5, 6),
    "a record twice": with_line(6, LINES[6] * 2),
    "a torn last line": WHOLE[:-20],
    "a torn frame at the end": b"".join(LINES[:7])[:-5],
    "a flipped header": with_line(0, LINES[0].replace(b"weather", b"weasher")),
    "no header": with_line(0, LINES[0].replace(b'"pid"', b'"pid')),
    "no header and no end": with_line(0, LINES[0].replace(b'"pid"', b'"pid'))[:-20],
    "something behind the end": WHOLE + LINES[9],
    "two captures in one file": WHOLE + WHOLE,
    "damage at the beginning and the end": with_line(1, b"x\n")[:-30] + b"\nx\n\ny",
    "a wrong end record": b"".join(LINES[:10]) + record_line(10, End(at_ns=1, frames=9, bytes=1)),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_a_repaired_capture_reads_without_damage(name: str, capture: Capture, tmp_path: Path) -> None:
    (tmp_path / "out").write_bytes(repaired(DAMAGED[name], capture, tmp_path))
    assert not [record for record in read(tmp_path / "out") if isinstance(record, Damage)]
    assert verify(str(tmp_path / "out")).status is not Status.DAMAGED


@pytest.mark.parametrize("name", DAMAGED)
def test_every_sound_line_is_in_the_repaired_capture_byte_for_byte(name: str, capture: Capture, tmp_path: Path) -> None:
    out = repaired(DAMAGED[name], capture, tmp_path)
    sound = [line for line in DAMAGED[name].splitlines(keepends=True) if line in LINES[1:10]]
    assert [line for line in dict.fromkeys(sound) if line not in out] == []


@pytest.mark.parametrize("name", DAMAGED)
def test_repair_leaves_the_old_file_alone(name: str, capture: Capture, tmp_path: Path) -> None:
    path = Path(capture(DAMAGED[name]))
    before = (path.read_bytes(), path.stat().st_mtime_ns)
    repair(str(path), str(tmp_path / "out"))
    assert (path.read_bytes(), path.stat().st_mtime_ns) == before


@pytest.mark.parametrize("data", [WHOLE, without(10), with_line(6, LINES[6][: -len(',"crc":"01234567"}\n')] + b"}\n")])
def test_repairing_a_sound_capture_copies_it(data: bytes, capture: Capture, tmp_path: Path) -> None:
    assert repaired(data, capture, tmp_path) == data


def test_a_last_line_that_lacks_its_newline_gets_it(capture: Capture, tmp_path: Path) -> None:
    assert repaired(WHOLE[:-1], capture, tmp_path) == WHOLE


def test_lines_that_are_left_out_become_a_gap(capture: Capture, tmp_path: Path) -> None:
    data = with_line(5, flipped(LINES[5])).replace(LINES[6], b"")
    (tmp_path / "out").write_bytes(repaired(data, capture, tmp_path))
    gap = next(record for record in read(tmp_path / "out") if isinstance(record, Gap))
    assert (gap.number, gap.missing, gap.frames, gap.bytes) == (6, 1, 2, len(LINES[5]))
    assert (gap.since_ns, gap.at_ns) == (1, 3_000)


def test_the_end_record_counts_what_is_there(capture: Capture, tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.write_bytes(repaired(with_line(6, flipped(LINES[6])), capture, tmp_path))
    *_, end = read(path)
    assert isinstance(end, End)
    assert (end.frames, end.messages, end.gaps, end.why) == (2, 2, 1, "repaired")
    assert verify(str(path)).status is Status.INCOMPLETE


def test_a_capture_without_an_end_gets_none(capture: Capture, tmp_path: Path) -> None:
    (tmp_path / "out").write_bytes(repaired(WHOLE[:-20], capture, tmp_path))
    assert isinstance([*read(tmp_path / "out")][-1], Gap)


def test_a_lost_header_is_replaced_and_the_new_one_says_so(capture: Capture, tmp_path: Path) -> None:
    (tmp_path / "out").write_bytes(repaired(DAMAGED["no header"], capture, tmp_path))
    first = next(iter(read(tmp_path / "out")))
    assert isinstance(first, Header)
    assert (first.label, first.extra) == ("x", {"repaired": "the header was lost"})


def test_a_frame_after_lost_lines_is_read_as_before(capture: Capture, tmp_path: Path) -> None:
    (tmp_path / "out").write_bytes(repaired(with_line(6, flipped(LINES[6])), capture, tmp_path))
    frames = [record for record in read(tmp_path / "out") if isinstance(record, Frame)]
    assert [frame.number for frame in frames] == [5, 7]


def test_repair_overwrites_no_file(capture: Capture, tmp_path: Path) -> None:
    path = capture(WHOLE)
    with pytest.raises(RepairError, match="exists"):
        repair(path, path)
    assert Path(path).read_bytes() == WHOLE


@pytest.mark.parametrize("data", [b"", WHOLE[:30]])
def test_nothing_is_written_if_no_line_is_sound(data: bytes, capture: Capture, tmp_path: Path) -> None:
    with pytest.raises(RepairError, match="nothing in"):
        repair(capture(data), str(tmp_path / "out"))
    assert not (tmp_path / "out").exists()


def test_a_file_that_is_no_capture_is_not_repaired(capture: Capture, tmp_path: Path) -> None:
    with pytest.raises(CaptureError):
        repair(capture(b"hello\n"), str(tmp_path / "out"))
    assert not (tmp_path / "out").exists()

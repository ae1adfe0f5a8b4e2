"""The writer: one write per batch, failures that never reach the traffic, gaps that say what is missing."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.capture.file.format import header_line
from mcpspy.capture.file.reader import Reader, read
from mcpspy.capture.file.verify import Status, verify
from mcpspy.capture.file.writer import Writer
from mcpspy.records import CLIENT, Damage, End, Frame, Gap, Header, Note, Open, Partial, Record
from tests.capture.making import REQUEST, closes, header, lines, opens, talk
from tests.deadlines import DEADLINE_S


class Capture:
    """A writer on a new file, and its complaints."""

    def __init__(self, path: Path, max_bytes: int = 0) -> None:
        self.path = path
        self.complaints: list[str] = []
        self.syncs: list[Callable[[], None]] = []
        self.fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o600)
        self.writer = Writer(
            self.fd, header_line(header()), max_bytes=max_bytes, complain=self.complaints.append, later=self.syncs.append
        )

    def records(self) -> list[Record]:
        return list(read(self.path))


@pytest.fixture
def capture(tmp_path: Path) -> Capture:
    """A writer on a new file."""
    return Capture(tmp_path / "x.mcpspy")


def frame(at_ns: int, data: bytes = REQUEST, stream: int = 0) -> Frame:
    return Frame(stream, at_ns, at_ns, data)


def test_the_header_goes_with_the_first_batch(capture: Capture) -> None:
    assert capture.path.read_bytes() == b""
    capture.writer(())
    assert capture.records() == [header()]


def test_a_batch_is_one_write() -> None:
    reading, writing = os.pipe2(os.O_DIRECT)  # in packet mode a read returns what one write wrote
    writer = Writer(writing, b"")
    writer(talk())
    writer(closes())
    packets = [os.read(reading, 1 << 16).count(b"\n") for _ in range(2)]
    os.close(reading)
    os.close(writing)
    assert packets == [3, 2]


def test_a_record_is_in_the_file_when_the_call_returns(capture: Capture) -> None:
    capture.writer(opens())
    assert len(capture.records()) == 5


def test_numbers_have_no_gap_however_records_come(capture: Capture) -> None:
    capture.writer(opens())
    capture.writer.frame(0, 5, REQUEST)
    capture.writer.frames(0, 6, [REQUEST, REQUEST])
    capture.writer(talk())
    capture.writer.frame(0, 9, b"\xff\n")
    capture.writer.frames(0, 9, [REQUEST, b"\xff\n"])
    capture.writer.event(0, 9, b"data: 1\n\n")
    capture.writer.events(talk(), 0, 9, [b"data: 1\n\n", b"data: 2\n\n"])
    assert [record.number for record in capture.records()] == list(range(17 + len(talk())))


def test_the_fast_methods_write_the_same_as_the_general_one(tmp_path: Path) -> None:
    captures = [Capture(tmp_path / name) for name in ("record", "frame", "frames")]
    data = [REQUEST, b"\xff\x00\n", b'"\\\n', b"", b"x" * 5_000 + b"\n"]
    for payload in data:
        captures[0].writer((frame(7, payload),))
        captures[1].writer.frame(0, 7, payload)
    captures[2].writer.frames(0, 7, data)
    assert captures[0].path.read_bytes() == captures[1].path.read_bytes() == captures[2].path.read_bytes()


def test_the_fast_methods_for_events_write_the_same_as_the_general_one(tmp_path: Path) -> None:
    captures = [Capture(tmp_path / name) for name in ("records", "event", "events")]
    data = [b"data: 1\n\n", b"data: \xff\n\n", b'data: "\\"\r\n\r\n', b": " + b"x" * 5_000 + b"\n\n", b"data: 2\n\n"]
    before = [Frame(0, 7, 6, b"data: 0\n\n"), Frame(3, 7, 7, b"part", part=True)]
    captures[0].writer(before)
    captures[1].writer(before)
    for payload in data:
        captures[0].writer((Frame(0, 7, 7, payload, chunks=(len(payload),)),))
        captures[1].writer.event(0, 7, payload)
    captures[2].writer(before[:1])
    captures[2].writer.events(before[1:], 0, 7, data[:1])
    captures[2].writer.events((), 0, 7, data[1:])
    for way in captures:
        way.writer.close(8)
    assert captures[0].path.read_bytes() == captures[1].path.read_bytes() == captures[2].path.read_bytes()


def test_the_end_record_counts_frames_bytes_messages_and_gaps(capture: Capture) -> None:
    capture.writer(opens())
    capture.writer([*talk(), Frame(0, 5, 5, b"x", part=True), Frame(0, 6, 6, b"y\n")])
    capture.writer.frame(1, 7, REQUEST)
    capture.writer((Gap(at_ns=8, since_ns=7, frames=1, bytes=1, why="x"),))
    before = capture.path.stat().st_size
    capture.writer.close(9, "client closed stdin")
    assert capture.records()[-1] == End(
        at_ns=9, frames=6, bytes=before, messages=4, gaps=1, why="client closed stdin", number=capture.writer.number - 1
    )


def test_a_sync_is_ordered_once_until_it_is_done(capture: Capture) -> None:
    capture.writer(opens())
    capture.writer.frame(0, 5, REQUEST)
    ordered = len(capture.syncs)
    capture.syncs[0]()
    capture.writer.frame(0, 6, REQUEST)
    assert (ordered, len(capture.syncs)) == (1, 2)


def test_a_sync_after_the_end_syncs_no_other_file(capture: Capture) -> None:
    capture.writer(opens())
    capture.writer.close(5)
    again = os.open(capture.path, os.O_RDONLY)
    capture.syncs[0]()
    os.close(again)
    assert capture.writer._fd == -1


# --- When the disk fails ---


def test_a_full_disk_is_reported_once_and_never_raised() -> None:
    complaints: list[str] = []
    writer = Writer(os.open("/dev/full", os.O_WRONLY), header_line(header()), complain=complaints.append)
    writer(opens())
    writer.frame(0, 5, REQUEST)
    writer.frames(0, 6, [REQUEST, REQUEST])
    writer.event(0, 6, b"data: 1\n\n")
    writer.events(talk(), 0, 6, [b"data: 1\n\n"])
    writer.close(7)
    assert complaints == ["mcpspy: recording stopped (No space left on device); traffic goes on unrecorded"]
    assert (writer.failed, writer.number) == (True, 1)


def test_a_closed_descriptor_is_a_failure_like_any_other(capture: Capture) -> None:
    capture.writer(opens())
    os.close(capture.fd)
    capture.writer.frame(0, 5, REQUEST)
    capture.writer.close(6)
    assert len(capture.complaints) == 1


class Pipe:
    """A pipe with a limit that the test sets: like a disk that fills up, takes part of a write, and has room again."""

    def __init__(self, pages: int = 1) -> None:
        import fcntl

        self.reading, self.writing = os.pipe2(os.O_NONBLOCK)
        fcntl.fcntl(self.writing, fcntl.F_SETPIPE_SZ, pages * 4_096)
        self.data = b""

    def drain(self) -> None:
        try:
            while piece := os.read(self.reading, 1 << 16):
                self.data += piece
        except BlockingIOError:
            pass

    def records(self) -> list[Record]:
        self.drain()
        os.close(self.reading)
        reader = Reader()
        return [*reader.feed(self.data), *reader.close()]


def test_after_a_failure_a_gap_says_what_is_missing_and_why(capture: Capture) -> None:
    capture.writer(opens())
    full, disk = os.open("/dev/full", os.O_WRONLY), os.dup(capture.fd)
    os.dup2(full, capture.fd)
    capture.writer.frame(0, 20, REQUEST)
    capture.writer.frames(1, 21, [REQUEST, REQUEST])
    capture.writer(closes(22))
    os.dup2(disk, capture.fd)
    capture.writer((frame(30),))
    capture.writer.close(31)
    os.close(full)
    os.close(disk)
    *_, gap, after, end = capture.records()
    assert gap == Gap(at_ns=30, since_ns=20, frames=3, bytes=3 * len(REQUEST), why="No space left on device", number=5)
    assert after == Frame(0, 30, 30, REQUEST, number=6)
    assert isinstance(end, End)
    assert (end.frames, end.gaps) == (1, 1)


def test_a_failure_that_lasts_to_the_end_leaves_a_capture_without_an_end(capture: Capture) -> None:
    capture.writer(opens())
    full = os.open("/dev/full", os.O_WRONLY)
    os.dup2(full, capture.fd)
    capture.writer.frame(0, 20, REQUEST)
    capture.writer.close(31)
    os.close(full)
    assert verify(str(capture.path)).status is Status.INCOMPLETE


@given(st.lists(st.tuples(st.integers(0, 9_000), st.booleans(), st.sampled_from(["call", "frame", "frames"])), max_size=25))
def test_whatever_the_disk_takes_every_frame_is_recorded_or_counted_in_a_gap(steps: list[tuple[int, bool, str]]) -> None:
    complaints: list[str] = []
    pipe = Pipe()
    writer = Writer(pipe.writing, header_line(header()), complain=complaints.append)
    sizes: list[int] = []
    for at_ns, (size, drain, way) in enumerate(steps):
        data = [b"x" * size + b"\n", b"y\n"] if way == "frames" else [b"x" * size + b"\n"]
        sizes += map(len, data)
        if way == "call":
            writer((frame(at_ns, data[0]),))
        elif way == "frame":
            writer.frame(0, at_ns, data[0])
        else:
            writer.frames(0, at_ns, data)
        if drain:
            pipe.drain()
    for _ in range(6):  # what is owed may be longer than the pipe
        pipe.drain()
        writer(())
    pipe.drain()
    writer.close(len(steps))
    records = pipe.records()
    frames = [record for record in records if isinstance(record, Frame)]
    gaps = [record for record in records if isinstance(record, Gap)]
    assert not [record for record in records if isinstance(record, Damage)]
    assert [record.number for record in records] == list(range(len(records)))
    assert len(frames) + sum(gap.frames for gap in gaps) == len(sizes)
    assert sum(len(frame.data) for frame in frames) + sum(gap.bytes for gap in gaps) == sum(sizes)
    assert isinstance(records[-1], End)
    assert (records[-1].frames, records[-1].messages, records[-1].gaps) == (len(frames), len(frames), len(gaps))
    assert len(complaints) <= 1


LIMITED = """
import os, resource, sys
from mcpspy.capture.file.format import header_line
from mcpspy.capture.file.writer import Writer
from tests.capture.making import REQUEST, header, opens

unlimited = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
fd = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o600)
writer = Writer(fd, header_line(header()), complain=print)
writer(opens())
resource.setrlimit(resource.RLIMIT_FSIZE, (3_000, unlimited))
for at_ns in range(100):
    writer.frame(0, at_ns, REQUEST)
resource.setrlimit(resource.RLIMIT_FSIZE, (unlimited, unlimited))
writer.frame(0, 100, REQUEST)
writer.close(101)
"""


def test_a_file_size_limit_leaves_a_file_that_verifies_with_a_gap(tmp_path: Path) -> None:
    path = tmp_path / "x.mcpspy"
    argv = [sys.executable, "-c", LIMITED, str(path)]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=DEADLINE_S, check=True, cwd=Path(__file__).parents[3])
    assert done.stdout.count("recording stopped") == 1
    records = list(read(path))
    frames = sum(1 for record in records if isinstance(record, Frame))
    assert frames + sum(record.frames for record in records if isinstance(record, Gap)) == 101
    assert [(problem.reason, problem.status) for problem in verify(str(path)).problems] == [("gap", Status.INCOMPLETE)]


# --- --max-size ---


@pytest.fixture
def bounded(tmp_path: Path) -> Capture:
    """A writer that may write 2,000 bytes."""
    made = Capture(tmp_path / "x.mcpspy", max_bytes=2_000)
    made.writer(opens())
    return made


def test_past_the_size_bound_frames_keep_length_and_digest_and_one_note_says_so(bounded: Capture) -> None:
    big = b"x" * 3_000 + b"\n"
    bounded.writer.frame(0, 10, big)
    bounded.writer.frame(0, 11, REQUEST)
    bounded.writer((Frame(1, 12, 11, big, chunks=(3_001,)),))
    bounded.writer.close(13)
    *_, whole, note, first, second, end = bounded.records()
    assert isinstance(note, Note)
    assert (note.topic, note.at_ns) == ("max-size", 10)
    assert whole == Frame(0, 10, 10, big, number=5)
    assert first == Frame(0, 11, 11, b"", number=7, length=len(REQUEST), sha256=sha256(REQUEST).hexdigest())
    assert second == Frame(1, 12, 11, b"", number=8, chunks=(3_001,), length=len(big), sha256=sha256(big).hexdigest())
    assert isinstance(end, End)
    assert end.messages == 3


def test_past_the_size_bound_waiting_bytes_keep_their_length(bounded: Capture) -> None:
    bounded.writer.frame(0, 10, b"x" * 3_000 + b"\n")
    bounded.writer((Partial(at_ns=11, stream=0, first_ns=5, data=b"x" * 500),))
    assert bounded.records()[-1] == Partial(at_ns=11, stream=0, first_ns=5, data=b"", length=500, number=7)


def test_a_capture_past_its_size_bound_is_intact(bounded: Capture) -> None:
    bounded.writer.frame(0, 10, b"x" * 3_000 + b"\n")
    bounded.writer.frames(0, 11, [REQUEST] * 3)
    bounded.writer.close(12)
    assert verify(str(bounded.path)).status is Status.INTACT


# --- Readers beside it ---


def test_a_reader_beside_the_writer_never_sees_damage(capture: Capture) -> None:
    records: list[Record] = []
    done = threading.Event()

    def follow() -> None:
        reader = Reader()
        with capture.path.open("rb", buffering=0) as file:
            while True:
                last_look = done.is_set()
                while data := file.read(1_000):
                    records.extend(reader.feed(data))
                if last_look:
                    return

    follower = threading.Thread(target=follow)
    follower.start()
    for at_ns in range(2_000):
        capture.writer((frame(at_ns, b"x" * (at_ns % 700) + b"\n"),))
    done.set()
    follower.join(DEADLINE_S)
    assert [type(record) for record in records] == [Header] + [Frame] * 2_000


def test_two_writers_on_one_file_leave_lines_that_can_be_read(tmp_path: Path) -> None:
    """No second tap can write to it, for the file is new and locked; a person with `cat >>` can."""
    capture = Capture(tmp_path / "x.mcpspy")
    capture.writer(opens())
    with capture.path.open("ab", buffering=0) as other:
        other.write(lines([Open(at_ns=1, stream=0, sender=CLIENT, name="stdin")]))
        capture.writer(talk())
    records = capture.records()
    assert {record.reason for record in records if isinstance(record, Damage)} == {"shape", "number"}
    assert [record for record in records if isinstance(record, Frame)] == [
        Frame(f.stream, f.at_ns, f.first_ns, f.data, number=number)
        for number, f in enumerate(talk(), 5)
        if isinstance(f, Frame)
    ]


def test_every_line_is_json_that_jq_can_take(capture: Capture) -> None:
    capture.writer([*opens(), *talk(), *closes()])
    capture.writer.close(9)
    assert all(json.loads(line)["crc"] for line in capture.path.read_text().splitlines())

"""A store that is slow: each long write is reported, and where writes take most of the time, recording pauses. Time is played."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from mcpspy.capture.file import writer as writing
from mcpspy.capture.file.format import header_line
from mcpspy.capture.file.reader import read
from mcpspy.capture.file.verify import Status, verify
from mcpspy.capture.file.writer import Writer
from mcpspy.records import CLIENT, End, Frame, Gap, Note, Open, Record
from tests.capture.making import header, opens

SECOND = 1_000_000_000
BEGIN = 77 * SECOND
DATA = b'{"id":1}\n'


class Disk:
    """A writer on a disk that takes `takes_s` for a write, and a clock that goes on meanwhile, or when `wait` is called."""

    def __init__(self, path: Path, monkeypatch: pytest.MonkeyPatch, *, is_timed: bool = True) -> None:
        self.path = path
        self.takes_s = 0.0
        self.writes = 0
        self.complaints: list[str] = []
        self._now_ns = BEGIN
        monkeypatch.setattr(writing, "_write", self._write)
        monkeypatch.setattr(writing, "_clock_ns", lambda: self._now_ns)
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o600)
        self.writer = Writer(
            fd, header_line(header()), complain=self.complaints.append, begin_ns=BEGIN if is_timed else None, path=str(path)
        )
        self.writer(opens())

    def _write(self, fd: int, data: bytes) -> int:
        self.writes += 1
        self.wait(self.takes_s)
        return os.write(fd, data)

    def wait(self, seconds: float) -> None:
        self._now_ns += int(seconds * SECOND)

    @property
    def at_ns(self) -> int:
        return self._now_ns - BEGIN

    def frames(self, count: int, takes_s: float, pause_s: float = 0.0) -> None:
        """Record so many frames, each with a write that takes this time and a pause after it."""
        self.takes_s = takes_s
        for _ in range(count):
            self.writer.frame(0, self.at_ns, DATA)
            self.wait(pause_s)
        self.takes_s = 0.0

    def records(self) -> list[Record]:
        return list(read(self.path))

    def notes(self) -> list[str]:
        return [record.text for record in self.records() if isinstance(record, Note) and record.topic == "slow-store"]

    def gaps(self) -> list[Gap]:
        return [record for record in self.records() if isinstance(record, Gap)]


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Disk:
    """A store whose writes take no time yet."""
    return Disk(tmp_path / "x.mcpspy", monkeypatch)


def relayed(disk: Disk) -> None:
    event = b"data: 1\n\n"

    def relay(number: int, stream: int, at_ns: int, _: int, capture: int, target: int) -> tuple[bytes, bytes, int, int] | None:
        if capture < 0:
            return event, b"", 0, 0
        disk._write(capture, writing._message_lines(number, stream, at_ns, "", [event], "", True))
        return None

    if disk.writer.pass_event(relay, 0, disk.at_ns, 0, 0) is not None:
        disk.writer.event(0, disk.at_ns, event)


def message(disk: Disk) -> None:
    head = b"POST / HTTP/1.1\r\n\r\n"
    record = Open(at_ns=disk.at_ns, stream=9, sender=CLIENT, name="request", connection=1, transaction=1, head=head)
    template = disk.writer.template(record, "")
    assert template is not None
    if not disk.writer.message(1, 9, disk.at_ns, template.opening(1, 1, ""), DATA, "client", False):
        disk.writer((record, Frame(9, disk.at_ns, disk.at_ns, DATA)))


WAYS: dict[str, Callable[[Disk], object]] = {
    "records": lambda disk: disk.writer((Frame(0, disk.at_ns, disk.at_ns, DATA),)),
    "a frame": lambda disk: disk.writer.frame(0, disk.at_ns, DATA),
    "a frame that is no UTF-8": lambda disk: disk.writer.frame(0, disk.at_ns, b"\xff\n"),
    "frames": lambda disk: disk.writer.frames(0, disk.at_ns, [DATA, DATA]),
    "an event": lambda disk: disk.writer.event(0, disk.at_ns, b"data: 1\n\n"),
    "events": lambda disk: disk.writer.events((), 0, disk.at_ns, [b"data: 1\n\n"]),
    "an event that is passed on": relayed,
    "a message": message,
}


@pytest.mark.parametrize("way", WAYS)
def test_a_write_of_more_than_a_second_is_said_and_noted(way: str, disk: Disk) -> None:
    disk.takes_s = 1.5
    WAYS[way](disk)
    disk.takes_s = 0
    assert disk.complaints == ["mcpspy: a write to the store took 1.5 s, and messages waited for it"]
    WAYS[way](disk)
    assert disk.notes() == ["a write to the store took 1.5 s, and messages waited for it"]
    disk.writer.close(disk.at_ns)
    assert verify(str(disk.path)).status is Status.INTACT


@pytest.mark.parametrize("way", WAYS)
def test_time_in_which_nothing_is_written_and_shorter_writes_are_no_slow_write(way: str, disk: Disk) -> None:
    for takes_s in (0.4, 0.9, 0.0):
        disk.takes_s = takes_s
        WAYS[way](disk)
        disk.wait(60)
    disk.writer.close(disk.at_ns)
    assert (disk.complaints, disk.notes()) == ([], [])


def test_each_slow_write_is_noted_and_one_a_minute_is_said(disk: Disk) -> None:
    for _ in range(5):
        disk.frames(1, 1.2)
        disk.wait(28.8)
    disk.frames(1, 0)
    assert (len(disk.notes()), len(disk.complaints)) == (5, 3)


@pytest.mark.parametrize(
    ("count", "takes_s", "pause_s"),
    [
        (8, 2.0, 0.0),
        (1, 15.5, 0.0),
        (1, 300.0, 0.0),
        (30, 0.6, 0.2),
        (16, 1.0, 0.8),
        (40, 0.55, 0.4),
        (60, 0.9, 0.0),
        (10, 2.0, 1.9),
    ],
)
def test_recording_pauses_where_writes_took_more_than_half_of_the_last_30_s(
    count: int, takes_s: float, pause_s: float, disk: Disk
) -> None:
    while not any("recording pauses" in line for line in disk.complaints):
        disk.frames(1, takes_s, pause_s)
        count -= 1
    assert count >= 0
    writes, sent = disk.writes, disk.writer.frame_count
    disk.frames(100, 0, 0.05)
    assert disk.writes == writes  # nothing is written now
    disk.wait(10)
    disk.frames(3, 0)
    (gap,) = disk.gaps()
    assert gap.frames >= 100
    assert gap.frames + sum(isinstance(record, Frame) for record in disk.records()) == sent + 103
    assert (gap.bytes, "of the last 30 s" in gap.why) == (gap.frames * len(DATA), True)
    disk.writer.close(disk.at_ns)
    assert [problem.reason for problem in verify(str(disk.path)).problems] == ["gap"]


@pytest.mark.parametrize(
    ("count", "takes_s", "pause_s"),
    [(7, 2.0, 0.0), (1, 14.5, 0.0), (100, 0.6, 0.7), (100, 2.0, 2.5), (1_000, 0.4, 0.0), (50, 1.0, 1.2), (3, 14.0, 20.0)],
)
def test_recording_goes_on_where_writes_took_less(count: int, takes_s: float, pause_s: float, disk: Disk) -> None:
    disk.frames(count, takes_s, pause_s)
    disk.frames(100, 0, 0.05)
    assert [line for line in disk.complaints if "recording pauses" in line] == []
    assert sum(isinstance(record, Frame) for record in disk.records()) == count + 100
    assert disk.gaps() == []


def test_a_store_that_stays_slow_is_tried_every_10_s(disk: Disk) -> None:
    disk.frames(8, 2.0)
    writes = disk.writes
    disk.frames(600, 1.5, 0.1)
    assert 5 <= disk.writes - writes <= 7
    assert len([line for line in disk.complaints if "recording pauses" in line]) == 1
    disk.wait(10)
    disk.frames(3, 0)
    assert sum(gap.frames for gap in disk.gaps()) + sum(isinstance(record, Frame) for record in disk.records()) == 611
    assert [record.number for record in disk.records()] == list(range(len(disk.records())))


def test_after_a_pause_it_takes_as_much_for_another(disk: Disk) -> None:
    disk.frames(8, 2.0)
    disk.wait(10)
    disk.frames(1, 0)
    disk.frames(7, 2.0)
    assert len([line for line in disk.complaints if "recording pauses" in line]) == 1
    disk.frames(1, 2.0)
    assert len([line for line in disk.complaints if "recording pauses" in line]) == 2


def test_what_ends_in_a_pause_has_its_gap_and_its_end(disk: Disk) -> None:
    disk.frames(8, 2.0)
    disk.frames(5, 0)
    disk.writer.close(disk.at_ns, "client closed stdin")
    records = disk.records()
    assert isinstance(records[-1], End)
    assert (records[-1].gaps, disk.gaps()[0].frames) == (1, 5)
    assert verify(str(disk.path)).status is Status.INCOMPLETE


def test_a_capture_that_no_tap_records_is_not_timed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = Disk(tmp_path / "x.mcpspy", monkeypatch, is_timed=False)
    disk.takes_s = 40
    for way in WAYS.values():
        way(disk)
    disk.writer.close(disk.at_ns)
    assert (disk.complaints, disk.notes(), verify(str(disk.path)).problems) == ([], [], ())

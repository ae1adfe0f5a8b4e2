"""One direction of a tap: the same bytes and frames however they are cut and taken, and records of what waits."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from fcntl import F_SETPIPE_SZ, fcntl  # Linux: a small pipe is soon full
from itertools import pairwise
from select import POLLIN
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.capture.file.format import header_line
from mcpspy.capture.file.reader import Reader
from mcpspy.capture.file.writer import Writer
from mcpspy.live.stdio.pump import PARTIAL_NS, STALL_NS, Pump, Readiness
from mcpspy.records import CLIENT, SERVER, Close, Frame, Partial, Record, Stall
from tests.capture.making import header

if TYPE_CHECKING:
    from mcpspy.records import Sink

SMALL_PIPE_BYTES = 4096

by_the_page = pytest.mark.skipif(sys.platform != "linux", reason="a pipe of Linux takes a page at once")
STREAM = 1


class Bench:
    """A pump between two pipes, whose outer ends a test has; the second is small. Bytes move only in `turn` and `read`."""

    def __init__(self, sink: Sink | None = None) -> None:
        self.records: list[Record] = []
        self.ready = Readiness()
        self._bell, self._ringer = os.pipe()  # always ready, so that no turn takes longer than a round
        os.write(self._ringer, b"!")
        self.ready.watch(self._bell, POLLIN, self._ring)
        source, self.writer = os.pipe()
        self.reader, target = os.pipe()
        fcntl(target, F_SETPIPE_SZ, SMALL_PIPE_BYTES)
        for fd in (self.writer, self.reader):
            os.set_blocking(fd, False)
        self.pump = Pump(
            STREAM,
            source,
            target,
            writer=SERVER,
            reader=CLIENT,
            sink=sink or self.records.extend,
            ready=self.ready,
            begin_ns=0,
            on_change=lambda: None,
        )

    def _ring(self, events: int) -> None:
        self.ready.interrupted = True

    def turn(self) -> None:
        self.ready.turn()

    def write(self, data: bytes) -> bytes:
        """Write all of `data`; returns what had to be read to make room for it."""
        received = b""
        while data:
            try:
                data = data[os.write(self.writer, data) :]
            except BlockingIOError:
                received += self.read()
            self.turn()
        return received

    def read(self) -> bytes:
        """Read all that there is, now and once there is room."""
        received = b""
        while True:
            self.turn()
            try:
                data = os.read(self.reader, 1 << 16)
            except BlockingIOError:
                return received
            if not data:
                return received
            received += data

    def take_once_after(self, waited_ns: int) -> None:
        """Empty the pipe, and let the pump fill it again, as if nothing had been taken for this long before."""
        os.read(self.reader, SMALL_PIPE_BYTES)
        self.pump._taken_ns -= waited_ns  # in place of a sleep
        self.turn()

    def end(self) -> bytes:
        """End the input; returns all that was still to be read."""
        self.close_writer()
        received = self.read()
        while not self.pump.finished:
            received += self.read()
        return received + self.read()

    def close_writer(self) -> None:
        if self.writer >= 0:
            os.close(self.writer)
            self.writer = -1

    def close_reader(self) -> None:
        if self.reader >= 0:
            os.close(self.reader)
            self.reader = -1

    def close(self) -> None:
        """Close every descriptor once: the pump closes its own."""
        self.close_reader()
        self.pump.stop()
        while not self.pump.finished:
            self.turn()
        self.close_writer()
        os.close(self._bell)
        os.close(self._ringer)

    def records_of(self, kind: type[Record]) -> list[Record]:
        return [record for record in self.records if isinstance(record, kind)]


@contextmanager
def bench(sink: Sink | None = None) -> Iterator[Bench]:
    made = Bench(sink)
    try:
        yield made
    finally:
        made.close()


@contextmanager
def recording() -> Iterator[tuple[Writer, int]]:
    """A writer, and the descriptor of its capture."""
    fd = os.memfd_create("capture")
    try:
        yield Writer(os.dup(fd), header_line(header())), fd
    finally:
        os.close(fd)


def recorded(fd: int) -> Sequence[Record]:
    reader = Reader()
    return reader.feed(os.pread(fd, os.fstat(fd).st_size, 0)) + reader.close()


def lines_of(data: bytes) -> list[bytes]:
    """Cut into lines with their newlines; what follows the last newline is one too."""
    lines = [line + b"\n" for line in data.split(b"\n")]
    last = lines.pop()[:-1]
    return [*lines, last] if last else lines


# Bytes and frames

PIECES = st.lists(
    st.one_of(
        st.sampled_from([b"\n", b"{}\n", b"x" * 70_000, "é€😀\n".encode(), b"\xff\xfe\x00", b"\r\n", b"y" * 5_000 + b"\n"]),
        st.binary(max_size=40),
    ),
    max_size=12,
)
CUTS = st.lists(st.integers(0, 1 << 20), max_size=30)
READS = st.lists(st.booleans(), min_size=1, max_size=8)


def moved(made: Bench, whole: bytes, cuts: list[int], reads: list[bool]) -> bytes:
    """Return what comes out for `whole`, cut at `cuts`, if the reader reads after the cuts that `reads` names."""
    bounds = sorted({0, len(whole), *(cut % (len(whole) + 1) for cut in cuts)})
    received = b""
    for number, (begin, end) in enumerate(pairwise(bounds)):
        received += made.write(whole[begin:end])
        if reads[number % len(reads)]:
            received += made.read()
    return received + made.end()


@given(PIECES, CUTS, READS)
def test_bytes_and_frames_are_the_same_however_they_are_cut_and_taken(
    pieces: list[bytes], cuts: list[int], reads: list[bool]
) -> None:
    whole = b"".join(pieces)
    with bench() as made:
        assert moved(made, whole, cuts, reads) == whole
        assert [record.data for record in made.records if isinstance(record, Frame)] == lines_of(whole)


@given(PIECES, CUTS, READS)
def test_a_capture_holds_the_same_frames_whatever_short_ways_they_took(
    pieces: list[bytes], cuts: list[int], reads: list[bool]
) -> None:
    whole = b"".join(pieces)
    with recording() as (writer, fd), bench(writer) as made:
        assert moved(made, whole, cuts, reads) == whole
        writer.close(1)
        assert [record.data for record in recorded(fd) if isinstance(record, Frame)] == lines_of(whole)


def test_a_part_of_a_line_goes_on_before_the_rest_is_there() -> None:
    with bench() as made:
        made.write(b'{"half')
        assert made.read() == b'{"half'
        assert made.records == []


def test_a_frame_is_reported_before_its_end_is_sent() -> None:
    seen: list[bytes] = []

    def sink(records: Sequence[Record]) -> None:
        if not isinstance(records[0], Frame):
            return
        try:
            seen.append(os.read(made.reader, 100))
        except BlockingIOError:
            seen.append(b"nothing yet")

    with bench(sink) as made:
        made.write(b"{}\n")
        assert seen == [b"nothing yet"]


def test_nothing_is_read_while_the_reader_takes_nothing() -> None:
    with bench() as made:
        made.write(b"x" * (2 * SMALL_PIPE_BYTES))
        os.write(made.writer, b"more\n")
        made.turn()
        assert made.records_of(Frame) == []


# What is reported


@by_the_page
def test_a_write_that_waits_a_second_is_a_stall() -> None:
    with bench() as made:
        made.write(b"x" * (3 * SMALL_PIPE_BYTES - 1) + b"\n")
        made.pump.on_time(made.pump.due_ns)
        (stall,) = made.records_of(Stall)
        assert stall == Stall(at_ns=stall.at_ns, stream=STREAM, waiting_bytes=2 * SMALL_PIPE_BYTES)


def test_a_write_that_waits_less_is_none() -> None:
    with bench() as made:
        made.write(b"x" * (3 * SMALL_PIPE_BYTES))
        made.pump.on_time(made.pump.due_ns - 1)
        assert made.records_of(Stall) == []


def test_the_end_of_a_stall_tells_how_long_it_lasted() -> None:
    with bench() as made:
        made.write(b"x" * (3 * SMALL_PIPE_BYTES))
        made.pump.on_time(made.pump.due_ns)
        made.read()
        last = made.records_of(Stall)[-1]
        assert isinstance(last, Stall)
        assert last.lasted_ns is not None
        assert last.lasted_ns > 0


@by_the_page
def test_a_reader_that_takes_a_part_and_stops_again_stalls_twice() -> None:
    with bench() as made:
        made.write(b"x" * (SMALL_PIPE_BYTES - 1) + b"\n" + b"y" * SMALL_PIPE_BYTES + b"\n" + b"z" * 99)
        made.pump.on_time(made.pump.due_ns)
        made.take_once_after(STALL_NS)
        began, ended = made.records_of(Stall)
        assert isinstance(began, Stall)
        assert isinstance(ended, Stall)
        assert (began.waiting_bytes, began.incomplete_bytes, began.lasted_ns) == (SMALL_PIPE_BYTES + 100, 99, None)
        assert (ended.waiting_bytes, ended.incomplete_bytes) == (100, 99)
        made.pump.on_time(made.pump.due_ns)
        assert len(made.records_of(Stall)) == 3


def test_a_reader_that_takes_a_little_all_the_time_stalls_once() -> None:
    with bench() as made:
        made.write(b"x" * (4 * SMALL_PIPE_BYTES))
        made.pump.on_time(made.pump.due_ns)
        made.take_once_after(0)
        made.take_once_after(0)
        assert len(made.records_of(Stall)) == 1


def test_bytes_that_wait_five_seconds_for_their_newline_are_a_partial() -> None:
    with bench() as made:
        made.write(b'{"half')
        made.pump.on_time(made.pump.due_ns)
        (partial,) = made.records_of(Partial)
        assert partial == Partial(at_ns=partial.at_ns, stream=STREAM, first_ns=partial.at_ns - PARTIAL_NS, data=b'{"half')


def test_a_partial_is_reported_once() -> None:
    with bench() as made:
        made.write(b'{"half')
        made.pump.on_time(made.pump.due_ns)
        assert made.pump.due_ns == 0


def test_the_bytes_of_a_partial_come_again_in_their_frame() -> None:
    with bench() as made:
        made.write(b'{"half')
        made.pump.on_time(made.pump.due_ns)
        made.write(b'":1}\n')
        (frame,) = (record for record in made.records if isinstance(record, Frame))
        assert frame.data == b'{"half":1}\n'


def test_nothing_is_due_while_nothing_waits() -> None:
    with bench() as made:
        made.write(b"{}\n")
        made.read()
        assert made.pump.due_ns == 0


def test_the_two_waits_are_what_the_glossary_says() -> None:
    assert (STALL_NS, PARTIAL_NS) == (1_000_000_000, 5_000_000_000)


# Ends


def test_the_end_of_the_input_is_passed_on_after_the_last_byte() -> None:
    with bench() as made:
        made.write(b"x" * (3 * SMALL_PIPE_BYTES))
        made.close_writer()
        made.turn()
        assert not made.pump.finished
        assert len(made.read()) == 3 * SMALL_PIPE_BYTES
        assert made.pump.finished


def test_a_writer_that_goes_while_its_bytes_wait_is_noticed() -> None:
    with bench() as made:
        made.write(b"x" * (3 * SMALL_PIPE_BYTES))
        os.write(made.writer, b"unread\n")
        made.close_writer()
        made.turn()
        assert made.pump.left
        assert made.read().endswith(b"unread\n")


def test_a_reader_that_goes_is_who_closed_the_stream() -> None:
    with bench() as made:
        made.close_reader()
        made.write(b"{}\n")
        (close,) = made.records_of(Close)
        assert close == Close(at_ns=close.at_ns, stream=STREAM, by=CLIENT, how="broken", extra={"undelivered_bytes": 3})


@by_the_page
def test_a_reader_that_goes_while_bytes_wait_leaves_them_undelivered() -> None:
    with bench() as made:
        made.write(b"x" * (3 * SMALL_PIPE_BYTES))
        made.close_reader()
        made.turn()
        (close,) = (record for record in made.records if isinstance(record, Close))
        assert close.extra == {"undelivered_bytes": 2 * SMALL_PIPE_BYTES}


def test_what_comes_when_nobody_reads_any_more_is_reported() -> None:
    with bench() as made:
        made.close_reader()
        made.write(b"one\n")
        made.write(b"two\n")
        assert [record.data for record in made.records if isinstance(record, Frame)] == [b"one\n", b"two\n"]


def test_a_reader_that_goes_is_noticed_without_a_byte_if_asked_for() -> None:
    with bench() as made:
        made.pump.watch_reader()
        made.close_reader()
        made.turn()
        assert made.pump.broken


def test_a_reader_that_was_slow_and_goes_is_noticed_as_well() -> None:
    with bench() as made:
        made.pump.watch_reader()
        made.write(b"x" * (3 * SMALL_PIPE_BYTES))
        made.read()
        made.close_reader()
        made.turn()
        assert made.pump.broken


def test_a_target_is_closed_once() -> None:
    with bench() as made:
        made.close_reader()
        made.write(b"{}\n")
        others = os.open(os.devnull, os.O_RDONLY)  # it takes the number that has become free
        made.pump.stop()
        os.close(others)


def test_draining_takes_what_was_written_though_the_pipe_stays_open() -> None:
    with bench() as made:
        made.write(b"x" * (3 * SMALL_PIPE_BYTES))
        made.read()
        os.write(made.writer, b"last\n" * 5_000)
        made.pump.drain()
        assert made.pump.over
        assert made.read() == b"last\n" * 5_000


def test_draining_adds_to_what_waits() -> None:
    with bench() as made:
        made.write(b"x" * (3 * SMALL_PIPE_BYTES))
        os.write(made.writer, b"last\n")
        made.pump.drain()
        assert made.read() == b"x" * (3 * SMALL_PIPE_BYTES) + b"last\n"


def test_draining_finds_the_end_where_there_is_one() -> None:
    with bench() as made:
        os.write(made.writer, b"last\n")
        made.close_writer()
        made.pump.drain()
        (close,) = made.records_of(Close)
        assert close == Close(at_ns=close.at_ns, stream=STREAM, by=SERVER, how="eof")

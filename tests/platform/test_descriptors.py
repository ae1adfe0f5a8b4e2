"""Tests with every kind of standard stream: pipes, sockets, files, devices, a terminal or none. Shared ones stay unchanged."""

import os
import socket
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from fcntl import F_GETFL, F_GETPIPE_SZ, fcntl
from pathlib import Path

import pytest

from mcpspy.platform import descriptors
from mcpspy.records import Frame, Open, Stall
from tests.deadlines import DEADLINE_S
from tests.live.client import MCPSPY, OVER, Channels, Client, closing, puppet, stream

TEXT = b'{"id":1}\n{"id":2}\nno end'


def test_files_are_read_and_written(tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(TEXT * 1000)
    with (
        open(tmp_path / "in", "rb") as source,
        open(tmp_path / "out", "wb") as target,
        Client(puppet("echo", "exit=3"), stdin=source.fileno(), stdout=target.fileno()) as client,
    ):
        assert client.wait() == 3
        assert (tmp_path / "out").read_bytes() == TEXT * 1000
        assert stream(client.records(), 0) == TEXT * 1000


def test_a_file_that_is_appended_to_keeps_what_it_had(tmp_path: Path) -> None:
    (tmp_path / "out").write_bytes(b"before\n")
    with open(tmp_path / "out", "ab") as target, Client(puppet("say=after"), stdout=target.fileno()) as client:
        client.wait()
        assert (tmp_path / "out").read_bytes() == b"before\nafter\n"


def test_two_streams_into_one_file_do_not_overwrite_each_other(tmp_path: Path) -> None:
    steps = ("say=one", "complain=two", "say=three")
    with (
        open(tmp_path / "out", "wb") as target,
        Client(puppet(*steps), stdout=target.fileno(), stderr=target.fileno()) as client,
    ):
        client.wait()
        assert sorted((tmp_path / "out").read_bytes().splitlines()) == [b"one", b"three", b"two"]


def test_the_null_device_is_an_input_that_has_ended_and_an_output_without_end() -> None:
    null = os.open(os.devnull, os.O_RDWR)
    try:
        with Client(puppet("flood=1:1000", "echo", "exit=3"), stdin=null, stdout=null, stderr=null) as client:
            assert client.wait() == 3
            assert len(stream(client.records(), 1)) == 1000 * 4096
    finally:
        os.close(null)


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&-", "<&- 2>&-", ">&- 2>&-", "<&- >&- 2>&-"])
def test_a_standard_stream_that_is_closed_harms_no_other(closed: str) -> None:
    steps = ("swallow", "say=out", "complain=err", "exit=3")
    with Client(puppet(*steps), through=("sh", "-c", f'exec "$@" {closed}', "sh")) as client:
        client.close(client.stdin)
        assert client.wait() == 3
        assert client.rest() == (b"" if " >&-" in f" {closed}" else b"out\n")
        assert client.rest(client.stderr) == (b"" if "2>&-" in closed else b"err\n")
        records = client.records()
        assert [stream(records, number) for number in (1, 2)] == [b"out\n", b"err\n"]


def test_a_pipe_that_a_fifo_is_works_as_well(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    reading = os.open(tmp_path / "fifo", os.O_RDONLY | os.O_NONBLOCK)
    writing = os.open(tmp_path / "fifo", os.O_WRONLY)
    try:
        with Client(puppet("flood=1:500"), stdout=writing) as client:
            os.close(writing)
            os.set_blocking(reading, True)
            received = b""
            while data := os.read(reading, 1 << 20):
                received += data
            assert len(received) == 500 * 4096
            client.wait()
    finally:
        os.close(reading)


# What others share with us


def pipe_ends() -> tuple[int, int]:
    return os.pipe()


def socket_ends() -> tuple[int, int]:
    end, other = socket.socketpair()
    return end.detach(), other.detach()


@pytest.mark.parametrize("ends", [pipe_ends, socket_ends])
def test_descriptors_that_are_shared_stay_as_they_were(ends: Callable[[], tuple[int, int]]) -> None:
    stdin, stdout, stderr = ends(), ends(), ends()
    theirs = (stdin[0], stdout[1], stderr[1])
    every = (*stdin, *stdout, *stderr)
    before = [fcntl(fd, F_GETFL) for fd in every]
    try:
        with Client(puppet("complain=up", "flood=1:1000"), stdin=theirs[0], stdout=theirs[1], stderr=theirs[2]) as client:
            client.recorded(Frame, stream=1)
            assert [fcntl(fd, F_GETFL) for fd in every] == before
            assert not any(flags & os.O_NONBLOCK for flags in before)
    finally:
        for fd in every:
            os.close(fd)


def test_one_socket_for_both_directions_does_as_well() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs, Client(puppet("echo", "say=bye", "exit=3"), stdin=theirs.fileno(), stdout=theirs.fileno()) as client:
        theirs.close()
        ours.settimeout(DEADLINE_S)
        ours.sendall(b"hi\n")
        ours.shutdown(socket.SHUT_WR)
        assert ours.makefile("rb").read() == b"hi\nbye\n"
        assert client.wait() == 3


def test_an_output_that_its_other_holders_do_not_block_on_is_waited_for() -> None:
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    try:
        with Client(puppet("await=go", "flood=1:1000", "exit=3"), stdout=writing) as client:
            client.recorded(Open, stream=1)
            os.set_blocking(writing, True)  # what others do to it changes nothing for us
            client.send(b"go\n")
            client.recorded(Stall, stream=1)
            os.close(writing)
            received = 0
            while data := os.read(reading, 1 << 20):
                received += len(data)
            assert received == 1000 * 4096
            assert client.wait() == 3
    finally:
        os.close(reading)


@pytest.fixture
def shared_pipe(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[int, int]]:
    """Make a blocking pipe that cannot be opened anew, as without /proc. Returns its reading end and its writing end."""
    monkeypatch.setattr(descriptors, "_open_anew", lambda fd: False)
    reading, writing = os.pipe()
    yield reading, writing
    os.close(reading)
    os.close(writing)


def taken_bytes(send: Callable[[bytes], int], data: bytes) -> Iterator[int]:
    """Send until nothing is taken. Returns how much was taken each time."""
    while True:
        try:
            count = send(data)
        except BlockingIOError:
            return
        data = data[count:]
        yield count


def fill(writing: int, *, but_bytes: int = 0) -> int:
    """Write until only so many bytes fit in. Returns how many are in the pipe."""
    size = fcntl(writing, F_GETPIPE_SZ) - but_bytes
    assert os.write(writing, bytes(size)) == size
    return size


@pytest.mark.timeout(DEADLINE_S)
def test_a_full_pipe_that_blocks_its_holders_does_not_block_us(shared_pipe: tuple[int, int]) -> None:
    send = descriptors.sender(shared_pipe[1])
    fill(shared_pipe[1])
    with pytest.raises(BlockingIOError):
        send(b"x")


@pytest.mark.timeout(DEADLINE_S)
def test_a_nearly_full_pipe_that_blocks_its_holders_takes_what_fits_and_does_not_block_us(shared_pipe: tuple[int, int]) -> None:
    reading, writing = shared_pipe
    send = descriptors.sender(writing)
    filled = fill(writing, but_bytes=5000)
    data = bytes(range(256)) * 256
    taken = sum(taken_bytes(send, data))
    assert 0 < taken <= 5000
    assert os.read(reading, 1 << 20) == bytes(filled) + data[:taken]


def test_a_pipe_that_blocks_its_holders_says_that_nobody_reads_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(descriptors, "_open_anew", lambda fd: False)
    reading, writing = os.pipe()
    os.close(reading)
    with pytest.raises(BrokenPipeError):
        descriptors.sender(writing)(b"x")
    os.close(writing)


def test_an_input_that_its_other_holders_do_not_block_on_is_waited_for() -> None:
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    try:
        with Client(puppet("echo", "exit=3"), stdin=reading) as client:
            os.close(reading)
            os.write(writing, b"one\n")
            assert client.line() == b"one\n"
            os.write(writing, b"two\n")
            assert client.line() == b"two\n"
            os.close(writing)
            assert client.wait() == 3
    except BaseException:
        os.close(writing)
        raise


@pytest.mark.parametrize("over", OVER)
def test_the_server_gets_pipes_and_nothing_else_of_ours(over: Channels) -> None:
    listing = "import os; print(*(os.readlink(f'/proc/self/fd/{fd}')[:5] for fd in os.listdir('/proc/self/fd')[:-1]))"
    with Client([sys.executable, "-I", "-S", "-c", listing], over=over) as client:
        assert client.line() == b"pipe: pipe: pipe:\n"


def test_a_descriptor_that_the_client_means_for_the_server_reaches_it() -> None:
    reading, writing = os.pipe()
    try:
        done = subprocess.run(
            [*MCPSPY, "run", "--", "sh", "-c", f"echo hello > /proc/self/fd/{writing}"],
            pass_fds=[writing],
            stdin=subprocess.DEVNULL,
            timeout=DEADLINE_S,
            check=True,
        )
        assert done.returncode == 0
        assert os.read(reading, 100) == b"hello\n"
    finally:
        os.close(reading)
        os.close(writing)


def test_an_output_that_was_never_read_is_a_client_that_is_gone() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with Client(puppet("say=up", "swallow", "exit=3"), stdout=writing) as client:
        os.close(writing)
        assert client.wait() == 3
        assert closing(client.records(), 1) == ("client", "broken")


def test_streams_are_closed_as_soon_as_the_server_closes_them() -> None:
    with Client(puppet("close=2", "close=1", "await=bye")) as client:
        assert client.rest(client.stderr) == b""
        assert client.rest() == b""
        client.send(b"bye\n")
        assert client.wait() == 0


def test_a_capture_on_a_device_is_written_there() -> None:
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)
    with Client(puppet("say=up", "exit=3"), "--capture", os.devnull) as client:
        assert client.rest() == b"up\n"
        assert client.wait() == 3

"""Traffic comes first: whatever happens to the capture, every byte passes; what was not recorded is reported once, and counted."""

import os
import resource
import subprocess
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

import mcpspy
from mcpspy.records import Damage, End, Frame, Gap, Header, Note, Record
from tests.conftest import DebianProgram
from tests.deadlines import DEADLINE_S, POLL_S, readable
from tests.live.client import Client, puppet, stream

LINES = [b'{"id":%d}\n' % number for number in range(50)]
FULL_BYTES = 6_000
"""More than a capture begins with, less than it comes to."""


def assert_traffic_passes(client: Client) -> None:
    """Check that the server echoes, and ends with status 3."""
    for line in LINES:
        client.send(line)
        assert client.line() == line
    client.close(client.stdin)
    assert client.rest() == b""
    assert client.wait() == 3


def numbers(records: list[Record]) -> list[int]:
    return [record.number for record in records if record.number > 0]


@pytest.fixture
def nowhere(tmp_path: Path) -> dict[str, str]:
    """Captures that cannot be made or written, by what is wrong with them."""
    (tmp_path / "file").touch()
    return {
        "full": "/dev/full",
        "in no folder": str(tmp_path / "missing" / "x.mcpspy"),
        "a folder": str(tmp_path),
        "in a file": str(tmp_path / "file" / "x.mcpspy"),
    }


@pytest.mark.parametrize("fault", ["full", "in no folder", "a folder", "in a file"])
def test_traffic_passes_where_nothing_can_be_recorded(fault: str, nowhere: dict[str, str]) -> None:
    with Client(puppet("echo", "exit=3"), "--capture", nowhere[fault]) as client:
        assert_traffic_passes(client)


@pytest.mark.parametrize("fault", ["full", "in no folder", "a folder", "in a file"])
def test_that_nothing_is_recorded_is_said_in_one_line(fault: str, nowhere: dict[str, str]) -> None:
    with Client(puppet("echo", "exit=3"), "--quiet", "--capture", nowhere[fault]) as client:
        assert_traffic_passes(client)
        stderr = client.rest(client.stderr).decode()
        assert stderr.startswith("mcpspy: ")
        assert stderr.count("\n") == 1


@pytest.mark.parametrize("home", ["/proc/nowhere", "/dev/null", "/dev/null/x"])
def test_traffic_passes_where_there_can_be_no_store(home: str) -> None:
    with Client(puppet("echo", "exit=3"), environment={"MCPSPY_HOME": home}) as client:
        assert_traffic_passes(client)
        assert client.rest(client.stderr).count(b"\n") == 1


class Disk:
    """The disk of a running tap, which is full from a certain size of its file on. A server that runs already is not affected."""

    def __init__(self, client: Client) -> None:
        self._pid = client.pid

    def fill(self, size_bytes: int) -> None:
        resource.prlimit(self._pid, resource.RLIMIT_FSIZE, (size_bytes, resource.RLIM_INFINITY))

    def free(self) -> None:
        self.fill(resource.RLIM_INFINITY)


@pytest.mark.grid(5)
@pytest.mark.parametrize("size_bytes", range(FULL_BYTES, FULL_BYTES + 12))
def test_a_disk_that_fills_up_leaves_a_capture_that_reads_without_damage(size_bytes: int) -> None:
    with Client(puppet("say=up", "echo", "exit=3")) as client:
        client.line()
        Disk(client).fill(size_bytes)
        assert_traffic_passes(client)
        records = client.records()
        assert [record.reason for record in records if isinstance(record, Damage)] in ([], ["torn"])
        assert b"".join(LINES).startswith(stream(records, 0))
        assert not isinstance(records[-1], End)
        assert client.rest(client.stderr).count(b"\n") == 1


def test_what_passed_while_the_disk_was_full_is_counted() -> None:
    with Client(puppet("say=up", "echo", "exit=3")) as client:
        client.line()
        disk = Disk(client)
        disk.fill(FULL_BYTES)
        client.send(b"x" * FULL_BYTES + b"\n")
        client.line()
        client.send(b"lost\n")
        client.line()
        disk.free()
        client.send(b"kept\n")
        client.line()
        client.close(client.stdin)
        client.wait()
        (gap,) = (record for record in client.records() if isinstance(record, Gap))
        assert (gap.frames, gap.bytes) == (3, FULL_BYTES + 1 + 2 * len(b"lost\n"))


def test_a_capture_is_whole_again_once_the_disk_is() -> None:
    with Client(puppet("say=up", "echo", "exit=3")) as client:
        client.line()
        disk = Disk(client)
        disk.fill(FULL_BYTES)
        for _ in range(3):
            client.send(b"x" * FULL_BYTES + b"\n")
            client.line()
        disk.free()
        client.send(b"kept\n")
        client.line()
        client.close(client.stdin)
        client.wait()
        records = client.records()
        assert [record for record in records if isinstance(record, Damage)] == []
        assert numbers(records) == list(range(1, len(numbers(records)) + 1))
        assert stream(records, 1).endswith(b"kept\n")
        end = records[-1]
        assert isinstance(end, End)
        assert end.gaps == 1


def test_a_disk_that_is_full_again_and_again_is_said_once() -> None:
    with Client(puppet("say=up", "echo", "exit=3")) as client:
        client.line()
        disk = Disk(client)
        for _ in range(3):
            disk.fill(client.capture.stat().st_size + 100)
            client.send(b"x" * 1000 + b"\n")
            client.line()
            disk.free()
            client.send(b"kept\n")
            client.line()
        client.close(client.stdin)
        client.wait()
        assert client.rest(client.stderr).count(b"\n") == 1
        assert sum(isinstance(record, Gap) for record in client.records()) == 3


def test_a_fifo_that_nobody_empties_makes_a_gap_and_no_delay(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    try:
        with Client(puppet("echo", "exit=3"), "--capture", str(fifo)) as client:
            client.send(b"x" * 1_000_000 + b"\n")
            client.line()
            assert_traffic_passes(client)
    finally:
        os.close(reader)


def test_a_fifo_that_is_removed_is_written_on_without_a_word(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    try:
        with Client(puppet("echo", "exit=3"), "--quiet", "--capture", str(fifo)) as client:
            assert readable(reader, DEADLINE_S)
            fifo.unlink()
            assert_traffic_passes(client)
            assert client.rest(client.stderr) == b""
        assert os.read(reader, 1 << 20).count(b'"kind":"end"') == 1
    finally:
        os.close(reader)


# The file, while others harm it, and a disk that is slow


def exchanged_until_said(client: Client) -> None:
    """Exchange lines until the tap says something on stderr."""
    deadline = time.monotonic() + DEADLINE_S
    while not readable(client.stderr, POLL_S):
        assert time.monotonic() < deadline
        client.send(b"since\n")
        assert client.line() == b"since\n"


def test_a_capture_that_is_cut_to_nothing_begins_again_with_a_header_and_that_is_said() -> None:
    with Client(puppet("say=up", "echo", "exit=3")) as client:
        client.line()
        path = client.capture
        os.truncate(path, 0)
        exchanged_until_said(client)
        assert_traffic_passes(client)
        assert client.rest(client.stderr).decode() == (
            f"mcpspy: {path}, which is being recorded, was cut by another program; the records cut off are lost\n"
        )
        records = client.records()
        assert [type(record) for record in records[:2]] == [Header, Gap]
        assert [record for record in records if isinstance(record, Damage)] == []
        assert stream(records, 0).endswith(b"".join(LINES))
        assert stream(records, 0).startswith(b"since\n")
        assert isinstance(records[-1], End)


def test_a_capture_that_is_removed_goes_on_in_a_new_file_and_that_is_said() -> None:
    with Client(puppet("say=up", "echo", "exit=3")) as client:
        client.line()
        path = client.capture
        path.unlink()
        exchanged_until_said(client)
        assert_traffic_passes(client)
        assert client.rest(client.stderr).decode().endswith("was removed; a new one is made\n")
        records = client.records()
        assert [type(record) for record in records[:2]] == [Header, Gap]
        assert stream(records, 0).endswith(b"".join(LINES))
        assert isinstance(records[-1], End)


def test_a_write_that_hangs_is_said_and_its_message_passes(debian_program: DebianProgram) -> None:
    strace = debian_program("strace")
    with Client(puppet("say=up", "echo", "exit=3")) as client:
        client.line()
        inject = ["-e", "trace=write", "-e", "inject=write:delay_enter=1100000:when=1"]
        command = [strace, "-p", str(client.pid), "-P", str(client.capture), *inject]
        with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL) as tracer:
            assert tracer.stderr is not None
            if b"attached" not in tracer.stderr.readline():
                pytest.skip("this system lets nobody trace")
            client.send(b"slow\n")
            assert client.line() == b"slow\n"
            tracer.terminate()
            tracer.communicate(timeout=DEADLINE_S)
        assert_traffic_passes(client)
        (note,) = (record for record in client.records() if isinstance(record, Note) and record.topic == "slow-store")
        assert client.rest(client.stderr).decode() == f"mcpspy: {note.text}\n"
        assert note.text.startswith("a write to the store took 1.1 s")


# The file, while it is written


def test_a_capture_can_be_read_while_it_is_written() -> None:
    with Client(puppet("echo")) as client:
        for line in LINES:
            client.send(line)
            client.line()
            assert stream(client.records(), 0).endswith(line)


def test_a_capture_can_be_read_at_any_moment_of_a_flood() -> None:
    with Client(puppet("await=go", "flood=1:2000", "linger")) as client:
        client.send(b"go\n")
        for _ in range(40):
            client.take(50 * 4096)
            damages = [record for record in client.records() if isinstance(record, Damage)]
            assert [damage.reason for damage in damages] in ([], ["torn"])


def test_a_capture_that_is_deleted_under_us_holds_up_nothing() -> None:
    with Client(puppet("say=up", "echo", "exit=3")) as client:
        client.line()
        client.capture.unlink()
        assert_traffic_passes(client)


def test_a_capture_that_is_replaced_under_us_is_left_alone() -> None:
    with Client(puppet("say=up", "echo", "exit=3")) as client:
        client.line()
        path = client.capture
        path.rename(path.with_suffix(".old"))
        path.write_text("mine")
        assert_traffic_passes(client)
        assert path.read_text() == "mine"


def test_two_taps_for_one_file_get_one_each(tmp_path: Path) -> None:
    path = tmp_path / "both.mcpspy"
    with Client(puppet("echo"), "--capture", str(path)) as first, Client(puppet("echo"), "--capture", str(path)) as other:
        for client, line in ((first, b"one\n"), (other, b"other\n")):
            client.send(line)
            client.line()
            client.close(client.stdin)
            client.wait()
        streams = {stream(list(mcpspy.read(file)), 0) for file in (path, tmp_path / "both-2.mcpspy")}
        assert streams == {b"one\n", b"other\n"}


def test_a_file_that_exists_is_kept_and_that_is_said(tmp_path: Path) -> None:
    path = tmp_path / "x.mcpspy"
    path.write_text("mine")
    with Client(puppet("echo"), "--capture", str(path)) as client:
        client.close(client.stdin)
        client.wait()
        assert path.read_text() == "mine"
        assert client.rest(client.stderr) == f"mcpspy: {path} exists; recording to {tmp_path / 'x-2.mcpspy'}\n".encode()
        assert any(isinstance(record, Frame | End) for record in mcpspy.read(tmp_path / "x-2.mcpspy"))


def test_taps_that_start_together_do_not_meet() -> None:
    with ExitStack() as stack:
        clients = [stack.enter_context(Client(puppet("echo"))) for _ in range(5)]
        for number, client in enumerate(clients):
            client.send(b"%d\n" % number)
            client.line()
            client.close(client.stdin)
            client.wait()
            assert stream(client.records(), 0) == b"%d\n" % number

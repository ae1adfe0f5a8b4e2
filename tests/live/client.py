"""A client played by a test: it starts a server under `mcpspy run`, over pipes like Python's clients or sockets like Node's.

Its own ends never block, and whatever it waits for has the deadline of tests/deadlines.py. It ends what it started, and what that
started in turn, by their ids, and fails if anything was left.
"""

import os
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self
from uuid import uuid4

import mcpspy
from mcpspy.records import Close, End, Exit, Frame, Record
from tests.conftest import PEERS
from tests.deadlines import DEADLINE_S, POLL_S, eventually
from tests.systems.lacking import WINDOWS

MCPSPY = [sys.executable, "-m", "mcpspy"]
MARK = "MCPSPY_TEST_MARK"
"""A variable in the environment of all that a client starts, directly or not: how it finds them again."""

READ_BYTES = 1 << 18

QUIET_S = 0.3
"""Time without a taken byte after which a channel counts as full."""

Channels = Literal["pipes", "sockets"]
OVER: list[Channels] = ["pipes"] if WINDOWS else ["pipes", "sockets"]


def puppet(*steps: str) -> list[str]:
    """Return the argv of a server that takes these steps (tests/peers/puppet.py)."""
    return [sys.executable, "-I", "-S", str(PEERS / "puppet.py"), *steps]


class Client:
    """The three streams of a running tap, seen from the client. Leaving the `with` block ends everything.

    `stdin`, `stdout` and `stderr` are our ends; what is passed for one of them (a descriptor) is used as it is, and then there is
    no end of ours. `through` is a command that becomes mcpspy, once it has changed what mcpspy inherits.
    """

    def __init__(
        self,
        server: list[str],
        *options: str,
        over: Channels = "pipes",
        stdin: int | None = None,
        stdout: int | None = None,
        stderr: int | None = None,
        environment: dict[str, str] | None = None,
        new_session: bool = False,
        cwd: Path | None = None,
        through: tuple[str, ...] = (),
    ) -> None:
        self._mark = uuid4().hex
        self._given = (stdin, stdout, stderr)
        pairs = [_pair(over, number) if fd is None else (-1, fd) for number, fd in enumerate(self._given)]
        self.stdin, self.stdout, self.stderr = (pair[0] for pair in pairs)
        self.process = subprocess.Popen(
            [*through, *MCPSPY, "run", *options, "--", *server],
            stdin=pairs[0][1],
            stdout=pairs[1][1],
            stderr=pairs[2][1],
            env={**os.environ, **(environment or {}), MARK: self._mark},
            start_new_session=new_session,
            cwd=cwd,
        )
        self.started_s = time.monotonic()
        for fd, (_, theirs) in zip(self._given, pairs, strict=True):
            if fd is None:
                os.close(theirs)
        self._held = {self.stdout: bytearray(), self.stderr: bytearray()}
        self._ended: set[int] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.process.kill()
        self.process.wait(DEADLINE_S)
        for fd in (self.stdin, self.stdout, self.stderr):
            self.close(fd)
        try:
            if kind is None:
                self.gone()
        finally:
            for pid in self.running():
                _kill(pid)

    @property
    def pid(self) -> int:
        return self.process.pid

    def close(self, fd: int) -> None:
        """Close one of our ends, unless it is closed already."""
        for name in ("stdin", "stdout", "stderr"):
            if fd >= 0 and getattr(self, name) == fd:
                setattr(self, name, -1)
                os.close(fd)

    def die(self) -> None:
        """Close all our ends at once, as the system does for a process that ends."""
        for fd in (self.stdin, self.stdout, self.stderr):
            self.close(fd)

    # What the client says

    def send(self, data: bytes) -> None:
        """Write all of `data`, and keep what comes on stdout meanwhile."""
        rest = memoryview(data)
        deadline = time.monotonic() + DEADLINE_S
        while rest:
            assert time.monotonic() < deadline, f"{len(rest)} bytes were not taken"
            if self._turn(POLL_S, self.stdout, writing=True):
                rest = rest[os.write(self.stdin, rest) :]

    def fill(self, line: bytes) -> int:
        """Write `line` until nothing is taken any more. Returns how many bytes were taken."""
        taken = 0
        rest = memoryview(line)
        while self._turn(QUIET_S, -1, writing=True):
            count = os.write(self.stdin, rest)
            taken += count
            rest = rest[count:] or memoryview(line)
        return taken

    def chatter(self, line: bytes, seconds: float) -> None:
        """Write `line` over and over, for so long or until the tap is gone, and keep what comes on stdout meanwhile."""
        until = time.monotonic() + seconds
        rest = memoryview(line)
        while (left := until - time.monotonic()) > 0 and self.stdout not in self._ended:
            if self._turn(left, self.stdout, writing=bool(line)):
                rest = rest[os.write(self.stdin, rest) :] or memoryview(line)

    # What it hears

    def line(self, fd: int | None = None) -> bytes:
        """Read the next line of stdout (or of `fd`), including its newline; less at the end of the stream."""
        return self._take(self.stdout if fd is None else fd, lambda held: held.find(b"\n") + 1)

    def lines(self, count: int) -> list[bytes]:
        """Read the next lines of stdout."""
        return [self.line() for _ in range(count)]

    def take(self, count: int, fd: int | None = None) -> bytes:
        """Read the next `count` bytes; fewer at the end of the stream."""
        return self._take(self.stdout if fd is None else fd, lambda held: count if len(held) >= count else 0)

    def rest(self, fd: int | None = None) -> bytes:
        """Read to the end."""
        return self._take(self.stdout if fd is None else fd, lambda held: 0)

    @property
    def received(self) -> bytes:
        """Return what came on stdout and was not read yet."""
        return bytes(self._held[self.stdout])

    def _take(self, fd: int, length: Callable[[bytearray], int]) -> bytes:
        held = self._held[fd]
        deadline = time.monotonic() + DEADLINE_S
        while not (count := length(held)):
            left = deadline - time.monotonic()
            assert left > 0, f"nothing more came; the last was {bytes(held[-200:])!r}"
            if fd in self._ended:
                count = len(held)
                break
            self._turn(left, fd)
        data = bytes(held[:count])
        del held[:count]
        return data

    def _turn(self, timeout_s: float, fd: int, *, writing: bool = False) -> bool:
        """Wait, and keep what `fd` has. Returns True if something can be written."""
        wanted = {} if fd < 0 or fd in self._ended else {fd: selectors.EVENT_READ}
        if writing:
            wanted[self.stdin] = selectors.EVENT_WRITE
        ready = _wait(wanted, timeout_s)
        if fd in ready:
            try:
                data = os.read(fd, READ_BYTES)
            except ConnectionResetError:  # a socket whose other end left something unread
                data = b""
            self._held[fd] += data
            if not data:
                self._ended.add(fd)
        return self.stdin in ready

    # How it ends

    def wait(self) -> int:
        """Return the exit status of `mcpspy run`; negative for a signal that ended it."""
        return self.process.wait(DEADLINE_S)

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def running(self) -> list[int]:
        """Return the running processes that this client started, also those that lost their parents."""
        return [pid for pid in _pids() if pid != self.process.pid and _is_marked(pid, self._mark)]

    def gone(self) -> None:
        """Wait until none of them is left."""
        eventually(lambda: not self.running(), f"{self.running()} to end")

    def server_pid(self) -> int:
        """Return the server's process."""
        return eventually(lambda: next((pid for pid in self.running() if _parent(pid) == self.pid), 0), "the server to start")

    def peak_kib(self) -> int:
        """Return the peak of mcpspy's resident memory."""
        status = Path(f"/proc/{self.pid}/status").read_text(encoding="utf-8")
        return int(status.partition("VmHWM:")[2].split()[0])

    # What was recorded

    @property
    def capture(self) -> Path:
        """Return the capture in the store that this tap writes, or a tap that it started."""
        folder = Path(os.environ["MCPSPY_HOME"]) / "captures"

        def own_capture() -> Path | None:
            own = next(folder.glob(f"*-{self.pid}.mcpspy"), None)
            return own or next((path for pid in self.running() for path in folder.glob(f"*-{pid}.mcpspy")), None)

        return eventually(own_capture, "a capture")

    def records(self) -> list[Record]:
        return list(self.each_record())

    def each_record(self) -> Iterator[Record]:
        return mcpspy.read(self.capture)

    def recorded(self, kind: type[Record], **facts: Any) -> Any:
        """Wait for the first record of this kind with these facts."""

        def matching_record() -> Record | None:
            records = (record for record in self.records() if isinstance(record, kind))
            return next(
                (record for record in records if all(getattr(record, name) == value for name, value in facts.items())), None
            )

        return eventually(matching_record, f"{kind.__name__} with {facts}")


def stream(records: list[Record], number: int) -> bytes:
    """Join the frames of a stream."""
    return b"".join(record.data for record in records if isinstance(record, Frame) and record.stream == number)


def closing(records: list[Record], number: int) -> tuple[str, str]:
    """Return who closed a stream, and how."""
    (close,) = (record for record in records if isinstance(record, Close) and record.stream == number)
    return close.by, close.how


def ending(records: list[Record]) -> tuple[Exit, End]:
    """Return how the server ended, and the last record."""
    (exit,) = (record for record in records if isinstance(record, Exit))
    end = records[-1]
    assert isinstance(end, End)
    return exit, end


def _pair(over: Channels, number: int) -> tuple[int, int]:
    """Make a connection: our end and the other."""
    if over == "sockets":
        ours, theirs = (end.detach() for end in socket.socketpair())
    else:
        reading, writing = os.pipe()
        ours, theirs = (writing, reading) if number == 0 else (reading, writing)
    os.set_blocking(ours, False)
    return ours, theirs


def _wait(wanted: dict[int, int], timeout_s: float) -> list[int]:
    with selectors.PollSelector() as selector:
        for fd, events in wanted.items():
            selector.register(fd, events)
        return [key.fd for key, _ in selector.select(timeout_s)]


def _pids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def _is_marked(pid: int, mark: str) -> bool:
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return f"{MARK}={mark}".encode() in file.read().split(b"\0")
    except OSError:
        return False


def _parent(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[1])
    except OSError:
        return 0


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass  # it has ended meanwhile

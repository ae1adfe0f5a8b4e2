"""mcpspy as a user has it: on a pipe that is read line by line, or on a terminal of a given size."""

import os
import re
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.cli.forked import forked
from tests.deadlines import DEADLINE_S, readable
from tests.starting import MCPSPY_IN_A_COPY, Program, starts_alike

MCPSPY = [sys.executable, "-m", "mcpspy"]
COPY = [sys.executable, str(MCPSPY_IN_A_COPY)]
"""The same, but for what its start takes."""
PLAIN = {"PYTHONPATH": str(Path(__file__).parent / "plain")}
"""mcpspy as `pip install mcpspy` brings it, without the official types, an extra that the tests have: loading it takes 0.4 s."""
ESCAPE = re.compile(r"\x1b\[[\d;?]*[a-zA-Z]")


def run(*words: str, stdin: bytes | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run `mcpspy words` to its end, its output as text. With `PYTHONPATH=""` it has the extras that are installed."""
    if starts_alike(environment):
        copy = forked(words, stdin or b"", {**os.environ, "TZ": "UTC", **PLAIN, **environment})
        return subprocess.CompletedProcess(copy.args, copy.returncode, copy.stdout.decode(), copy.stderr.decode())
    done = subprocess.run(
        [*MCPSPY, *words],
        input=stdin,
        stdin=None if stdin is not None else subprocess.DEVNULL,
        capture_output=True,
        timeout=DEADLINE_S,
        check=False,
        env={**os.environ, "TZ": "UTC", **PLAIN, **environment},
    )
    return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())


class Running:
    """A mcpspy that runs on, its output read as it comes. `text` is all of it so far."""

    def __init__(self, process: subprocess.Popen[bytes], fd: int) -> None:
        self.process = process
        self._fd = fd
        self._data = b""

    @property
    def text(self) -> str:
        return self._data.decode(errors="replace").replace("\r\n", "\n")

    @property
    def words(self) -> str:
        """The text without escape sequences."""
        return ESCAPE.sub("", self.text)

    def wait_for(self, what: str | Callable[[str], object]) -> str:
        """Read until `what` was printed, or is true of all that was printed. Returns the words so far."""
        until = time.monotonic() + DEADLINE_S
        while not (what in self.words if isinstance(what, str) else what(self.words)):
            left = until - time.monotonic()
            assert left > 0, f"{what!r} was not printed, but:\n{self.words}"
            self._read(left)
        return self.words

    def type(self, data: bytes) -> None:
        """Type at the terminal."""
        os.write(self._fd, data)

    def end(self, number: int = signal.SIGINT) -> int:
        """Send a signal and read to the end. Returns the exit status."""
        self.process.send_signal(number)
        return self.rest()

    def rest(self) -> int:
        """Read to the end. Returns the exit status."""
        while self._read(DEADLINE_S):
            pass
        return self.process.wait(DEADLINE_S)

    def stop_reading(self) -> None:
        """Go away, as `head` does when it has seen enough."""
        os.dup2(os.open(os.devnull, os.O_RDONLY), self._fd)

    def _read(self, timeout_s: float) -> bool:
        if not readable(self._fd, timeout_s):
            return False
        try:
            data = os.read(self._fd, 1 << 16)
        except OSError:  # the other end of a terminal is gone
            data = b""
        self._data += data
        return bool(data)


@contextmanager
def on_pipe(*words: str, stdin: int = subprocess.DEVNULL, **environment: str) -> Iterator[Running]:
    """`mcpspy words` with its output on a pipe; stderr goes there too."""
    reading, writing = os.pipe()
    with _running(words, reading, writing, stdin, environment) as running:
        yield running


@contextmanager
def on_terminal(*words: str, columns: int = 80, term: str = "xterm-256color") -> Iterator[Running]:
    """`mcpspy words` on a terminal of its own."""
    import fcntl  # which Windows does not have
    import pty
    import termios

    reading, writing = pty.openpty()
    fcntl.ioctl(writing, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    with _running(words, reading, writing, writing, {"TERM": term}) as running:
        yield running


@contextmanager
def _running(words: tuple[str, ...], reading: int, writing: int, stdin: int, environment: dict[str, str]) -> Iterator[Running]:
    program = COPY if starts_alike(environment) else MCPSPY
    process = Program(
        [*program, *words], stdin=stdin, stdout=writing, stderr=writing, env={**os.environ, "TZ": "UTC", **environment}
    )
    os.close(writing)
    try:
        yield Running(process, reading)
    finally:
        if process.poll() is None:
            process.kill()
        process.wait(DEADLINE_S)
        os.close(reading)

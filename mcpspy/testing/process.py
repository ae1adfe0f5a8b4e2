"""An HTTP server for a test: a process of mcpspy that prints its address, and that ends when the test closes it or is gone."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from time import monotonic, sleep

from ..errors import ReplayError

LISTEN = "127.0.0.1:0"

POLL_S = 0.005

STARTS_S = 30
"""Time in which a process has to print its address, on a busy machine."""

ENDS_S = 10
"""Time that it has to end; then it is killed."""


class ListeningProcess:
    """A process that listens, and prints its `url` on a line of its own, to stdout or stderr. All that it prints goes to `output`.

    Raises: ReplayError: says that `what` could not be served, and why.
    """

    __slots__ = ("_output", "_process", "url")

    def __init__(self, arguments: Sequence[str], *, what: str, output: Path) -> None:
        __tracebackhide__ = True
        self._output = output
        with output.open("wb") as file:
            command = [sys.executable, "-P", "-m", "mcpspy.testing.until_eof", *arguments]
            self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=file, stderr=file)
        self.url = self._address()
        if not self.url:
            self.close()
            printed = [line for line in self._lines() if line]
            reason = (
                printed[-1].removeprefix("mcpspy: ").rstrip(".") if printed else f"it printed no address within {STARTS_S} s"
            )
            raise ReplayError(what, reason)

    def _address(self) -> str:
        until = monotonic() + STARTS_S
        while monotonic() < until:
            is_over = self._process.poll() is not None
            addresses = [line for line in self._lines() if line.startswith("http://")]
            if addresses or is_over:
                return addresses[0] if addresses else ""
            sleep(POLL_S)
        return ""

    def _lines(self) -> list[str]:
        """Return the whole lines that it has printed so far."""
        return self._output.read_text(encoding="utf-8", errors="backslashreplace").split("\n")[:-1]

    def close(self) -> None:
        """End it, and wait until it has recorded how it ended."""
        assert self._process.stdin is not None  # it is a pipe
        self._process.stdin.close()
        try:
            self._process.wait(ENDS_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

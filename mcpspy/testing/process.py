"""A server of HTTP for a test: a process of mcpspy that prints its address, and that ends when we let go of it or are gone."""

from __future__ import annotations

import subprocess
import sys
from select import select
from typing import TYPE_CHECKING

from ..errors import ReplayError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

LISTEN = "127.0.0.1:0"

STARTS_S = 30
"""So long a process may take to print its address, on a machine that has other things to do."""

ENDS_S = 10
"""And so long to end; then it is killed."""


class Process:
    """A process that listens. `url` is what it printed. Raises: ReplayError: `what` could not be served, and why."""

    __slots__ = ("_process", "url")

    def __init__(self, arguments: Sequence[str], *, what: str, errors: Path) -> None:
        with errors.open("ab") as stderr:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "mcpspy.testing.leash", *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
            )
        self.url = self._address()
        if not self.url:
            self.close()
            said = errors.read_text(encoding="utf-8", errors="backslashreplace").strip().removeprefix("mcpspy: ")
            raise ReplayError(
                what, said.splitlines()[-1].rstrip(".") if said else f"no address was printed within {STARTS_S} s"
            )

    def _address(self) -> str:
        out = self._process.stdout
        assert out is not None  # it was asked for
        return out.readline().decode().strip() if select([out], [], [], STARTS_S)[0] else ""

    def close(self) -> None:
        """End it, and wait until it has written down how it ended."""
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()
        try:
            self._process.wait(ENDS_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

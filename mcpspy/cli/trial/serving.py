"""The servers of a trial over HTTP: a mock of the capture, and `mcpspy proxy` in front of it or of a server, with the fault."""

from __future__ import annotations

import os
import subprocess
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from ...errors import TrialError
from ...platform.processes import end_with_us
from .running import ENDED_S, MCPSPY, POLL_S

if TYPE_CHECKING:
    from collections.abc import Sequence

READY_S: Final = 30.0
"""A mock listens by then, whatever its capture."""

ANY_PORT: Final = "127.0.0.1:0"


class HttpServers:
    """The mcpspy processes that one trial needs, which print their URLs into files in a folder. They end if we are killed."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._processes: list[subprocess.Popen[bytes]] = []
        self._wardens: list[int | None] = []

    def mock(self, words: Sequence[str]) -> str:
        """Serve a capture; return the URL. Raises: TrialError: if it cannot be served."""
        return self._start("mock", ["mock", "--listen", ANY_PORT, *words])

    def proxy(self, url: str, words: Sequence[str]) -> str:
        """Put a proxy in front of a URL; return its own. Raises: TrialError."""
        return self._start("proxy", ["proxy", url, "--listen", ANY_PORT, *words])

    def _start(self, name: str, words: Sequence[str]) -> str:
        path = os.path.join(self._folder, f"{name}-{len(self._processes)}.out")
        with open(path, "wb") as output:
            process = subprocess.Popen(
                [*MCPSPY, *words], stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
            )
        self._processes.append(process)
        self._wardens.append(end_with_us(process.pid))
        until_s = time.monotonic() + READY_S
        while process.poll() is None and time.monotonic() < until_s:
            url = next((line for line in _lines(path) if line.startswith("http")), None)
            if url is not None:
                return url
            time.sleep(POLL_S)
        raise TrialError(f"mcpspy {name}", " ".join(_lines(path)) or "it did not begin to listen")

    def stop(self) -> str:
        """End them, the last first; return what they printed besides their URLs."""
        for descriptor in self._wardens:
            if descriptor is not None:
                os.write(descriptor, b"!")
                os.close(descriptor)
        self._wardens = []
        for process in reversed(self._processes):
            process.terminate()
            with suppress(subprocess.TimeoutExpired):
                process.wait(ENDED_S)
            if process.poll() is None:
                process.kill()
                process.wait()
        names = sorted(name for name in os.listdir(self._folder) if name.endswith(".out"))
        lines = [line for name in names for line in _lines(os.path.join(self._folder, name)) if not line.startswith("http")]
        self._processes = []
        return "".join(f"{line}\n" for line in lines)


def _lines(path: str) -> list[str]:
    """Return the lines of a file that are whole."""
    with open(path, encoding="utf-8", errors="replace") as file:
        return [line.rstrip("\n") for line in file if line.endswith("\n")]

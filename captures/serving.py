"""Servers that run beside a client, and mcpspy before one: how HTTP is recorded here, and played in tests/interop.

Programs run in a folder with a small environment; what they print is kept in it. Whatever was started is ended.
"""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
PEERS = ROOT / "tests" / "peers"
PROGRAMS = (Path(sys.executable).parent, ROOT / "build" / "npm" / "node_modules" / ".bin")
WAIT_S = 60.0
POLL_S = 0.005

PORT = re.compile(r"^(?:listening 127\.0\.0\.1:)?(\d+)$", re.MULTILINE)
"""Line with a server's port: on standard output from tests/peers, on standard error from Node with the preload."""

LOOPBACK_ONLY = {"PORT": "0", "NODE_OPTIONS": f"--require={PEERS / 'bind-loopback.cjs'}"}
"""Environment that lets a Node server listen on the loopback alone."""


def environment(folder: Path) -> dict[str, str]:
    """Make the whole environment of a program; programs of pip and npm are found by their names."""
    path = os.pathsep.join([*map(str, PROGRAMS), os.environ["PATH"]])
    return {"PATH": path, "HOME": str(folder / "home"), "LANG": "C.UTF-8"}


@contextmanager
def started(
    words: Sequence[str],
    folder: Path,
    log: Path,
    variables: Mapping[str, str],
    start: type[subprocess.Popen[Any]] = subprocess.Popen,
) -> Iterator[Callable[[], str]]:
    """Run a program in `folder`; what it prints is in `log`, and is what the function given returns."""
    env = {**environment(folder), **variables}
    with (
        log.open("wb") as file,
        start(words, cwd=folder, env=env, stdin=subprocess.DEVNULL, stdout=file, stderr=file) as process,
    ):
        try:
            yield lambda: log.read_text(encoding="utf-8", errors="replace")
        finally:
            process.kill()


def port(said: Callable[[], str]) -> int:
    """Wait for the port that a program prints. Raises: TimeoutError: if it does not print it in time."""
    deadline = time.monotonic() + WAIT_S
    while (found := PORT.search(said())) is None:
        if time.monotonic() > deadline:
            raise TimeoutError(f"no port in: {said()}")
        time.sleep(POLL_S)
    return int(found[1])


def play(words: Sequence[str], folder: Path, variables: Mapping[str, str]) -> None:
    """Run a story's client to its end. What it makes of the story is no part of it; what it prints is in FOLDER/home/client.log."""
    with open(folder / "home" / "client.log", "wb") as log:
        env = {**environment(folder), **variables}
        subprocess.run(words, cwd=folder, env=env, stdout=log, stderr=log, timeout=WAIT_S, check=False)


@contextmanager
def tapped(
    url: str,
    folder: Path,
    *options: str,
    listen: int = 0,
    program: tuple[str, ...] = (sys.executable, "-m", "mcpspy"),
    start: type[subprocess.Popen[Any]] = subprocess.Popen,
) -> Iterator[str]:
    """Put mcpspy, which `program` runs, before `url`. Yields the URL for clients; ends it as Ctrl-C would.

    Raises:
        RuntimeError: if it does not start, or if its exit status is not 0.
    """
    words = [*program, "proxy", url, "--listen", f"127.0.0.1:{listen}", "--quiet", *options]
    with start(words, cwd=folder, env=environment(folder), stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            if not (line := process.stdout.readline()):
                raise RuntimeError(f"mcpspy did not start: {process.wait(WAIT_S)}")
            yield line.strip()
            process.send_signal(signal.SIGINT)
            if status := process.wait(WAIT_S):
                raise RuntimeError(f"mcpspy ended with {status}")
        finally:
            process.kill()

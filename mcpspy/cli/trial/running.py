"""Trials as processes: one peer at a time, with its capture and what it printed, ended when its patience is over."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from glob import escape, glob
from shlex import join
from typing import TYPE_CHECKING, Final

from ...capture.store.folder import is_live
from ...platform.files import BINARY
from ...replay.trial.outcome import PeerEnd

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

SERVER: Final = "{server}"
"""The mock's command, in the command of a client."""

QUOTED_SERVER: Final = (f"'{SERVER}'", f'"{SERVER}"')
"""The same as one argument."""

URL: Final = "{url}"
"""The mock's address, in the command of a client over HTTP."""

MCPSPY: Final = (sys.executable, "-P", "-m", "mcpspy")
ENDED_S: Final = 2.0
"""From SIGTERM to SIGKILL."""

RECORDED_S: Final = 15.0
"""A tap has ended its server by then, whatever that does."""

POLL_S: Final = 0.02


def with_server(client: Sequence[str], server: Sequence[str]) -> list[str]:
    """Put the server's command into that of a client: as words where `{server}` is a word, else quoted for a shell.

    Quotation marks around `{server}`, which a shell did not take away, make it one word.
    """
    words: list[str] = []
    for word in client:
        text = SERVER if word in QUOTED_SERVER else word
        words += server if word == SERVER else [text.replace(SERVER, join(server))]
    return words


def run_peer(
    words: Sequence[str],
    log: str,
    patience_s: float,
    capture: str,
    intercepts: str,
    then: Callable[[], None],
    *,
    faulty_starts: int = 1,
) -> tuple[PeerEnd, list[str]]:
    """Run a client to its end, or for so long. Its output goes into `log`. Raises: OSError: if it cannot be started.

    Returns how it ended, and the captures that its servers made, the first at `capture`; before that it calls `then`. The file of
    intercepts is emptied once so many servers have read it: if the client starts another one, that has no fault.
    """
    stem, extension = os.path.splitext(capture)
    last = capture if faulty_starts == 1 else f"{stem}-{faulty_starts}{extension}"
    begin_ns = time.monotonic_ns()
    with open(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | BINARY, 0o600), "wb") as output:
        process = subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
        )
        status: int | None = None
        try:
            status = _waited(process, patience_s, last, intercepts)
        except subprocess.TimeoutExpired:
            _signal(process.pid, signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                process.wait(ENDED_S)
        finally:
            took_ns = time.monotonic_ns() - begin_ns
            if process.poll() is None:
                process.kill()
                process.wait()
            then()
            paths = captures_of(capture)
            _signal(process.pid, signal.SIGKILL)  # what it left in its session
    return PeerEnd(status=status, took_ns=took_ns), paths


def _waited(process: subprocess.Popen[bytes], patience_s: float, capture: str, intercepts: str) -> int:
    """Wait for the end of a process, and empty the file of intercepts on the way. Raises: subprocess.TimeoutExpired."""
    until_s = time.monotonic() + patience_s
    while not os.path.exists(capture) and time.monotonic() < until_s:  # a tap has read its intercepts before it records
        with suppress(subprocess.TimeoutExpired):
            return process.wait(POLL_S)
    os.truncate(intercepts, 0)
    return process.wait(max(until_s - time.monotonic(), 0))


def captures_of(path: str) -> list[str]:
    """Return the captures that a client's servers made, the first at `path`, once they are complete."""
    stem, extension = os.path.splitext(path)
    until_s = time.monotonic() + RECORDED_S
    while True:
        paths = [path] if os.path.exists(path) else []
        paths += sorted(glob(f"{escape(stem)}-[0-9]*{extension}"), key=lambda name: (len(name), name))
        if not any(map(is_live, paths)) or time.monotonic() > until_s:
            return paths
        time.sleep(POLL_S)


def _signal(pid: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, number)

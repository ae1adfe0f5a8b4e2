"""A server's process on Windows: found as a shell finds it, waited for by a thread, and ended with all below it by `taskkill`.

Windows has no signals for other processes: what ends one does not ask it. It lists processes for programs alone, so what a server
started can be ended with it, and not after it.
"""

from __future__ import annotations

import os
import subprocess
import sys
from _thread import start_new_thread
from collections.abc import Sequence
from typing import Final

from .commands import by_cmd, command_line
from .windows_client import note_reader
from .windows_signals import SIGCHLD, report

_NO_WINDOW: Final = 0x08000000
"""CREATE_NO_WINDOW: no console appears for a moment."""

_WARDEN: Final = "import subprocess, sys; sys.stdin.buffer.read(1) or subprocess.run(sys.argv[1:], capture_output=True)"

_servers: dict[int, tuple[str, subprocess.Popen[bytes]]] = {}
_ended: list[tuple[int, int]] = []
_ending: list[subprocess.Popen[bytes]] = []
"""The programs that end servers, as long as they run: nobody waits for them."""


def spawn(argv: Sequence[str]) -> tuple[int, int, int, int, int, int, OSError | None]:
    """Start a server with our environment and working directory; return what `ServerProcess` is made of.

    Raises: OSError: if no descriptors are left.
    """
    child_in, our_in = os.pipe()
    our_out, child_out = os.pipe()
    our_err, child_err = os.pipe()
    note_reader()
    failure: OSError | None = None
    pid = 0
    warden_fd = -1
    try:
        command = command_line(argv)
        command = by_cmd(command) if isinstance(command, str) else command
        server = subprocess.Popen(command, stdin=child_in, stdout=child_out, stderr=child_err)
    except OSError as error:
        failure = error
    except ValueError:  # a NUL in it
        failure = OSError(22, os.strerror(22))
    else:
        pid = server.pid
        _servers[pid] = os.path.basename(argv[0]), server
        warden_fd = _guard(pid)
        start_new_thread(_wait, (server,))
    for fd in (child_in, child_out, child_err):
        os.close(fd)
    return pid, our_in, our_out, our_err, -1, warden_fd, failure


def ended() -> tuple[int, int] | None:
    """Return pid and exit code of a server that has ended; None if there is none."""
    return _ended.pop() if _ended else None


def running() -> list[tuple[int, str]]:
    """Return pid and name of the servers that run."""
    return [(pid, name) for pid, (name, _) in _servers.items()]


def end_tree(pid: int) -> None:
    """End a process and all below it."""
    _ending[:] = [ending for ending in _ending if ending.poll() is None]
    try:
        ending = subprocess.Popen(
            _taskkill(pid),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            creationflags=_NO_WINDOW,
        )
        _ending.append(ending)
    except OSError:
        if pid in _servers:
            _servers[pid][1].kill()  # it alone


def _taskkill(pid: int) -> list[str]:
    system = os.environ.get("SYSTEMROOT")
    program = os.path.join(system, "System32", "taskkill.exe") if system else "taskkill"
    return [program, "/T", "/F", "/PID", str(pid)]


def _guard(pid: int) -> int:
    """Start the warden of a server: a process that ends it if we are killed. Return a descriptor: a byte there ends the warden."""
    reading, writing = os.pipe()
    python = getattr(sys, "_base_executable", None) or sys.executable  # that of a virtual environment starts another
    try:
        subprocess.Popen(
            [python, "-I", "-S", "-c", _WARDEN, *_taskkill(pid)],
            stdin=reading,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            creationflags=_NO_WINDOW,
        )
    except OSError:
        os.close(writing)
        return -1
    finally:
        os.close(reading)
    return writing


def _wait(server: subprocess.Popen[bytes]) -> None:
    code = server.wait()
    del _servers[server.pid]
    _ended.append((server.pid, code))
    report(SIGCHLD)

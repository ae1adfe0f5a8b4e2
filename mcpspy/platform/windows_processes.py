"""Processes on Windows: a server, found as a shell finds it, waited for by a thread, and ended with all below it; and the client.

Windows has no signals for other processes: what ends one does not ask it (`taskkill`). It lists processes, with their
parents, for programs alone, so what a server started can be ended with it, and not after it.

No descriptor shows that the client's process, or our launcher, has ended. PowerShell prints the list of processes, in a
second or so. It is asked once, and only if the client has closed our input and the server goes on. From then on a thread
waits for the end of the client's process.
"""

from __future__ import annotations

import os
import subprocess
import sys
from _thread import start_new_thread
from collections.abc import Sequence
from stat import S_ISFIFO
from typing import Any, Final

from .commands import by_cmd, command_line
from .windows_signals import SIGALRM, SIGCHLD, report

_NO_WINDOW: Final = 0x08000000
"""CREATE_NO_WINDOW: no console appears for a moment."""

_WARDEN: Final = "import subprocess, sys; sys.stdin.buffer.read(1) or subprocess.run(sys.argv[1:], capture_output=True)"

_servers: dict[int, tuple[str, subprocess.Popen[bytes]]] = {}
_ended: list[tuple[int, int]] = []
_ending: list[subprocess.Popen[bytes]] = []
"""The programs that end servers, as long as they run: nobody waits for them."""

_LIST: Final = (
    "Get-CimInstance Win32_Process | ForEach-Object "
    "{ '{0} {1} {2} {3}' -f $_.ProcessId, $_.ParentProcessId, $_.CreationDate.Ticks, $_.Name }"
)
_SYNCHRONIZE: Final = 0x00100000
"""The right to wait for the end of a process."""

_FOR_EVER: Final = 0xFFFFFFFF

_OWN_LAUNCHER: Final = "mcpspy.exe"
"""The program that installers make of our entry point: it starts Python and waits for it."""

_asked: list[bool] = []
_has_reader: list[bool] = []
_client_ended: list[bool] = []


def spawn(argv: Sequence[str]) -> tuple[int, int, int, int, int, int, OSError | None]:
    """Start a server with our environment and working directory; return what `ServerProcess` is made of.

    Raises: OSError: if no descriptors are left.
    """
    child_in, our_in = os.pipe()
    our_out, child_out = os.pipe()
    our_err, child_err = os.pipe()
    _note_reader()
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


class ProcessRow:
    """A process of the list. `start` is when it was created, in the unit of the list; 0 if that is not known."""

    __slots__ = ("name", "parent", "pid", "start")

    def __init__(self, pid: int, parent: int, start: int, name: str) -> None:
        self.pid = pid
        self.parent = parent
        self.start = start
        self.name = name


def _note_reader() -> None:
    """Take note, before anything is closed, whether our output is a pipe: only then a client that has ended leaves no reader."""
    if not _has_reader:
        _has_reader.append(S_ISFIFO(os.fstat(1).st_mode))


def client_has_ended() -> bool:
    """Return whether the client has ended, as far as we know yet. The first call begins to find out; an alarm reports it."""
    if not _asked and any(_has_reader):
        _asked.append(True)
        start_new_thread(_find, ())
    return any(_client_ended)


def client_in(rows: list[ProcessRow], own_pid: int, *, through_python: bool) -> int:
    """Return the process that started us, past our own launchers; 0 if it has ended.

    `through_python` means that the Python of a virtual environment has started this one. A process that is younger than the one that
    it started has got its number from another.
    """
    by_pid = {row.pid: row for row in rows}
    row = by_pid[own_pid]
    while True:
        parent = by_pid.get(row.parent)
        if parent is None or (parent.start and row.start and parent.start > row.start):
            return 0
        if parent.name.lower() != _OWN_LAUNCHER and not through_python:
            return parent.pid
        through_python = through_python and parent.name.lower() == _OWN_LAUNCHER
        row = parent


def rows_of(printed: str) -> list[ProcessRow]:
    """Read the list as it is printed, and leave out what is no process of it."""
    rows = []
    for line in printed.splitlines():
        pid, parent, start, name = (*line.strip().split(" ", 3), "", "", "", "")[:4]
        if pid.isdecimal() and parent.isdecimal():
            rows.append(ProcessRow(int(pid), int(parent), int(start) if start.isdecimal() else 0, name))
    return rows


def _find() -> None:
    """Find the client, and wait for its end. If that cannot be done, the server runs on, as it would without us."""
    system = os.environ.get("SYSTEMROOT")
    folder = os.path.join(system, "System32", "WindowsPowerShell", "v1.0") if system else ""
    command = [os.path.join(folder, "powershell.exe"), "-NoProfile", "-NonInteractive", "-Command", _LIST]
    try:
        asking = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, creationflags=_NO_WINDOW
        )
        printed = asking.communicate()[0].decode(errors="replace")
        launched = getattr(sys, "_base_executable", sys.executable) != sys.executable
        pid = client_in(rows_of(printed), os.getpid(), through_python=launched)
        if pid:
            _wait_for(pid)
    except (OSError, KeyError):
        return
    _client_ended.append(True)
    report(SIGALRM)


def _wait_for(pid: int) -> None:
    import _winapi

    windows: Any = _winapi  # which `subprocess` uses too; the types have its functions on Windows alone
    windows.WaitForSingleObject(windows.OpenProcess(_SYNCHRONIZE, False, pid), _FOR_EVER)

"""The client's process on Windows, where no descriptor shows that it has ended: the process that started us, or our launcher.

Windows lists processes, with their parents, for programs alone, and PowerShell prints that list, in a second or so. It is asked once,
and only if the client has closed our input and the server goes on. From then on a thread waits for the end of the client's process.
"""

from __future__ import annotations

import os
import subprocess
import sys
from _thread import start_new_thread
from stat import S_ISFIFO
from typing import Any, Final

from .windows_signals import SIGALRM, report

_LIST: Final = (
    "Get-CimInstance Win32_Process | ForEach-Object "
    "{ '{0} {1} {2} {3}' -f $_.ProcessId, $_.ParentProcessId, $_.CreationDate.Ticks, $_.Name }"
)
_NO_WINDOW: Final = 0x08000000
_SYNCHRONIZE: Final = 0x00100000
"""The right to wait for the end of a process."""

_FOR_EVER: Final = 0xFFFFFFFF

_OWN_LAUNCHER: Final = "mcpspy.exe"
"""The program that installers make of our entry point: it starts Python and waits for it."""

_asked: list[bool] = []
_has_reader: list[bool] = []
_ended: list[bool] = []


class ProcessRow:
    """A process of the list. `start` is when it was created, in the unit of the list; 0 if that is not known."""

    __slots__ = ("name", "parent", "pid", "start")

    def __init__(self, pid: int, parent: int, start: int, name: str) -> None:
        self.pid = pid
        self.parent = parent
        self.start = start
        self.name = name


def note_reader() -> None:
    """Take note, before anything is closed, whether our output is a pipe: only then a client that has ended leaves no reader."""
    if not _has_reader:
        _has_reader.append(S_ISFIFO(os.fstat(1).st_mode))


def client_has_ended() -> bool:
    """Return whether the client has ended, as far as we know yet. The first call begins to find out; an alarm reports it."""
    if not _asked and any(_has_reader):
        _asked.append(True)
        start_new_thread(_find, ())
    return any(_ended)


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
    _ended.append(True)
    report(SIGALRM)


def _wait_for(pid: int) -> None:
    import _winapi

    windows: Any = _winapi  # which `subprocess` uses too; the types have its functions on Windows alone
    windows.WaitForSingleObject(windows.OpenProcess(_SYNCHRONIZE, False, pid), _FOR_EVER)

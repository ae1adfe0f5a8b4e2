"""The processes that own the clients' sockets, for connections from this machine, on Linux: what joins HTTP captures to an agent.

    client accepted ──► queue ──► thread: the socket's inode → /proc/*/fd → pid ──► reactor ──► one note for all that were found

A thread looks for the owners, so that no message waits for it. Of a connection that ends before the thread looked, of other users'
processes, and elsewhere than on Linux, the port alone is noted.
"""

from __future__ import annotations

import socket
from _thread import start_new_thread
from typing import Any, Final

from ...platform.processes import ListedProcess, process
from ...platform.socket_owners import CAN_FIND_OWNERS, Ends, owners_of
from ...records import CLIENT_PROCESSES, Note
from .context import TapContext

GATHER_S: Final = 0.2
"""Time for which a note waits for further connections: else a client with a connection for each request would get a note for each."""

MAX_PROCESSES: Final = 64
"""Most processes in a note, the latest: each note lists all, so that readers need the last note only."""

MAX_PORTS: Final = 1000
"""So many ports are noted, though none of their processes was found."""


class ClientProcesses:
    """The processes behind the connections of one tap. All methods belong to the reactor's thread."""

    __slots__ = ("_found", "_is_looking", "_is_timed", "_open", "_ports", "_processes", "_tap", "_unsought")

    def __init__(self, tap: TapContext) -> None:
        self._tap = tap
        self._unsought: list[tuple[int, Ends]] = []
        self._is_looking = False
        self._is_timed = False
        self._found: dict[int, int] = {}
        """The pids of connections that were not noted yet."""
        self._ports: dict[int, int] = {}
        """The ports of the clients' ends of connections that were not noted yet."""
        self._open: dict[int, int] = {}
        """The processes of open connections."""
        self._processes: dict[int, dict[str, Any]] = {}

    def accepted(self, connection: int, client: socket.socket) -> None:
        """Look for the process at the other end of a connection, if that is on this machine."""
        try:
            peer, own = client.getpeername()[:2], client.getsockname()[:2]
        except OSError:
            return  # it has left
        if peer[0] == own[0]:
            self._ports[connection] = peer[1]
            if CAN_FIND_OWNERS:
                self._unsought.append((connection, (peer, own)))
                self._look()

    def ended(self, connection: int) -> None:
        """Remember when a process was last connected."""
        pid = self._open.pop(connection, 0)
        if pid in self._processes:
            self._processes[pid]["last_ns"] = self._tap.now_ns()

    def close(self) -> None:
        """Note what is known at the end, so that readers find it near the end of the capture."""
        if self._processes or self._ports:
            self._note()

    def _look(self) -> None:
        if self._is_looking or not self._unsought:
            return
        self._is_looking = True
        unsought, self._unsought = self._unsought, []
        known = tuple(self._processes)
        try:
            start_new_thread(lambda: self._find(unsought, known), ())
        except RuntimeError:  # no thread can be started
            self._is_looking = False

    def _find(self, unsought: list[tuple[int, Ends]], known: tuple[int, ...]) -> None:
        """Find processes, in a thread of its own."""
        owners: dict[int, ListedProcess] = {}
        try:
            owners = owners_of(unsought, known)
        except OSError:
            pass  # no descriptors are left, or no /proc
        finally:
            self._tap.reactor.wake(lambda: self._take(owners))

    def _take(self, owners: dict[int, ListedProcess]) -> None:
        self._is_looking = False
        now_ns = self._tap.now_ns()
        for connection, owner in owners.items():
            entry = self._processes.get(owner.pid)
            if entry is None or entry["start"] != owner.start:
                entry = {
                    "pid": owner.pid,
                    "name": owner.name,
                    "start": owner.start,
                    "parents": _parents(owner),
                    "first_ns": now_ns,
                }
            entry["last_ns"] = now_ns
            self._processes.pop(owner.pid, None)
            self._processes[owner.pid] = entry  # the latest is last
            self._found[connection] = owner.pid
            self._open[connection] = owner.pid
        while len(self._processes) > MAX_PROCESSES:
            del self._processes[next(iter(self._processes))]
        if (self._found or len(self._ports) >= MAX_PORTS) and not self._is_timed:
            self._is_timed = True
            self._tap.reactor.later(GATHER_S, self._note)
        self._look()

    def _note(self) -> None:
        self._is_timed = False
        pids: dict[int, list[int]] = {}
        for connection, pid in self._found.items():
            pids.setdefault(pid, []).append(connection)
        ports = [[connection, port] for connection, port in self._ports.items()]
        self._found.clear()
        self._ports.clear()
        text = ", ".join(
            f"{self._processes[pid]['name']} (pid {pid}): connection {', '.join(map(str, connections))}"
            for pid, connections in pids.items()
            if pid in self._processes
        )
        connections = [[pid, *numbers] for pid, numbers in pids.items()]
        extra = {"connections": connections, "ports": ports, "processes": list(map(dict, self._processes.values()))}
        text = text or ("all processes that were connected" if self._processes else "no process that was connected was found")
        self._tap.sink((Note(at_ns=self._tap.now_ns(), topic=CLIENT_PROCESSES, text=text, extra=extra),))


def _parents(child: ListedProcess) -> list[list[int]]:
    """Return pid and start of the process that started another, and of that one's parent: a bridge may speak for a client."""
    parents: list[list[int]] = []
    while len(parents) < 2 and child.parent > 1 and (parent := process(child.parent)) is not None:
        parents.append([parent.pid, parent.start])
        child = parent
    return parents

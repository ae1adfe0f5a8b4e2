"""The clients of a capture: the processes that a tap over HTTP noted, and the name that a client gave to its server.

Reads as little as it can: the last note lists all processes, and stands near the end of a capture that was ended properly.
"""

import json
import mmap
import os
import re
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from itertools import islice
from typing import Any, Final

import msgspec

from ...errors import CaptureError
from ...lazy_pattern import lazy_pattern
from ...records import CLIENT, CLIENT_PROCESSES, Frame, Note, Open, Record, connection_processes, noted_processes
from ..file.reader import read, sound_record

NOTE: Final = b'"kind":"note","topic":"%s"' % CLIENT_PROCESSES.encode()

GREETING_RECORDS: Final = 1000
"""The number of records at the beginning of a capture among which the names of clients are looked for."""

_session = lazy_pattern(rb"^mcp-session-id:[ \t]*(\S+)", re.IGNORECASE | re.MULTILINE)
_MODERN: Final = "io.modelcontextprotocol/clientInfo"


class ClientProcess(msgspec.Struct, frozen=True, kw_only=True):
    """A process that was connected from `first_ns` to `last_ns` of its capture's clock. `start` is in the system's own unit.

    `parents` has pid and start of the process that started it, and of the one that started that.
    """

    pid: int
    start: int
    name: str = ""
    parents: tuple[tuple[int, int], ...] = ()
    first_ns: int = 0
    last_ns: int = 0

    @property
    def key(self) -> tuple[int, int]:
        """Pid and start, which no other process of this boot has."""
        return self.pid, self.start


@lru_cache(maxsize=1024)
def noted_clients(path: str, size_bytes: int) -> tuple[ClientProcess, ...]:
    """Return the processes that a tap noted in so much of a file, the latest last. Empty if there are none, or it cannot be read."""
    try:
        with open(path, "rb") as file:
            return _noted(file.fileno(), min(size_bytes, os.fstat(file.fileno()).st_size))
    except (OSError, ValueError):
        return ()


def given_name(path: str, process: tuple[int, int] | None = None) -> str:
    """Return the name and version that a client gave, as `claude-ai 0.1.0`; empty if it gave none in the beginning of the capture.

    It is the first client, or of a capture that several share the one with this pid and start.
    """
    try:
        names = _given_names(path, os.path.getsize(path))
    except OSError:
        return ""
    return names.get(process, "") if process is not None else next(iter(names.values()), "")


def _noted(fd: int, size_bytes: int) -> tuple[ClientProcess, ...]:
    if not size_bytes:
        return ()
    with mmap.mmap(fd, size_bytes, access=mmap.ACCESS_READ) as data:
        at = data.rfind(NOTE)
        if at < 0:
            return ()
        end = data.find(b"\n", at)
        line = data[data.rfind(b"\n", 0, at) + 1 : end if end >= 0 else size_bytes]
    record = sound_record(line)
    if not isinstance(record, Note):
        return ()
    return tuple(map(_process, noted_processes(record)))


def _process(process: dict[str, Any]) -> ClientProcess:
    parents = process.get("parents")
    return ClientProcess(
        pid=process["pid"],
        start=process["start"],
        name=str(process.get("name", "")),
        parents=tuple((parent[0], parent[1]) for parent in parents if len(parent) == 2) if isinstance(parents, list) else (),
        first_ns=process["first_ns"],
        last_ns=process["last_ns"],
    )


@lru_cache(maxsize=256)
def _given_names(path: str, _size_bytes: int) -> dict[tuple[int, int] | int, str]:
    """Return the names that clients gave, by process where a tap noted it, else by connection; 0 is the client of stdio.

    A connection that nobody noted is that of the process which uses its session on another.
    The size tells a capture that has grown from what is remembered of it.
    """
    names: dict[int, str] = {}
    processes: dict[int, tuple[int, int]] = {}
    connections: dict[int, int] = {}
    sessions: dict[int, bytes] = {}
    for record in islice(_beginning(path), GREETING_RECORDS):
        match record:
            case Open():
                if record.sender == CLIENT:
                    connections[record.stream] = record.connection
                if session := _session.search(record.head):
                    sessions[record.connection] = session[1]
            case Note(topic=topic) if topic == CLIENT_PROCESSES:
                processes.update(connection_processes(record))
            case Frame() if record.stream in connections and b"clientInfo" in record.data and (name := _name(record.data)):
                names.setdefault(connections[record.stream], name)
    owners = set(processes.values())
    sole = owners.pop() if len(owners) == 1 else None  # then a connection that was over before it was noted is its, too
    by_session = {sessions[connection]: process for connection, process in processes.items() if connection in sessions}
    by_client: dict[tuple[int, int] | int, str] = {}
    for connection in sorted(names, key=lambda connection: connection not in processes):
        process = processes.get(connection) or by_session.get(sessions.get(connection, b"")) or sole
        by_client.setdefault(process or connection, names[connection])
    return by_client


def _beginning(path: str) -> Iterator[Record]:
    """Read records until one cannot be read."""
    with suppress(OSError, CaptureError):
        yield from read(path)


def _name(data: bytes) -> str:
    """Read the name and version of a client from one of its requests: `initialize`, or any of the modern era."""
    try:
        params = json.loads(data)["params"]
        client = params.get("clientInfo") or params["_meta"][_MODERN]
        return f"{client['name']} {client.get('version', '')}".strip()
    except (ValueError, LookupError, TypeError, AttributeError):
        return ""

"""The reserved ports: a port of this machine for each wrapped HTTP server, kept in a file, so that it stays the same.

`mcpspy proxy --all` serves them. The file is the only place with the original URL of servers that a client is logged in to, for
those get no fragment.
"""

import json
import os
import socket
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from ..errors import SetupError
from ..platform.sockets import claim
from .wrapping import HOST, PORTS

FILE = "reserved_ports.json"
MEMBER = "reserved_ports"
VERSION = 1

OLD_FILE, OLD_MEMBER = "places.json", "places"
"""The names that the file and its list had at first; such a file is read, and replaced when the ports change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReservedPort:
    """One port, and its server: the original `url`, and the `letters` in which the client's file spelled its origin.

    `file` is the path of the client's file, with links resolved, and `entry` the path of the entry in it.
    """

    port: int
    label: str
    url: str
    letters: str
    client: str
    file: str
    entry: tuple[str, ...]


class ReservedPorts:
    """All reserved ports. They are changed in memory, and written as a whole."""

    __slots__ = ("by_port",)

    def __init__(self, ports: Iterable[ReservedPort] = ()) -> None:
        self.by_port = {reserved.port: reserved for reserved in ports}

    def port(self, file: str, entry: tuple[str, ...], earlier: int | None, *, is_free: Callable[[int], bool]) -> int:
        """Choose the port for an entry: its reserved one, else the `earlier` one in its file, else the lowest free one.

        Raises: SetupError: if all are taken.
        """
        for reserved in self.by_port.values():
            if (reserved.file, reserved.entry) == (file, entry):
                return reserved.port
        if earlier is not None and earlier in PORTS and earlier not in self.by_port:
            return earlier
        for port in PORTS:
            if port not in self.by_port and is_free(port):
                return port
        raise SetupError(file, f"was not changed: all ports from {PORTS[0]} to {PORTS[-1]} are taken; unwrap servers first")

    def of(self, file: str) -> dict[int, ReservedPort]:
        """Select the ports of one file: an entry of another one, as in a cloned project, gets nothing by naming such a port."""
        return {reserved.port: reserved for reserved in self.by_port.values() if reserved.file == file}

    def put(self, reserved: ReservedPort) -> None:
        """Add a port, in place of another entry for it."""
        self.by_port[reserved.port] = reserved

    def drop(self, file: str, used: Iterable[int]) -> None:
        """Remove the ports that `file` does not use any more, and those of files that are gone."""
        used = set(used)
        self.by_port = {
            reserved.port: reserved
            for reserved in self.by_port.values()
            if (reserved.port in used if reserved.file == file else os.path.exists(reserved.file))
        }

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ReservedPorts) and self.by_port == other.by_port

    __hash__ = None  # type: ignore[assignment]  # it changes

    def text(self) -> str:
        """Write them as they are kept."""
        ports = [asdict(reserved) for reserved in sorted(self.by_port.values(), key=lambda reserved: reserved.port)]
        return json.dumps({"version": VERSION, MEMBER: ports}, indent=1) + "\n"


def read_reserved_ports(folder: Path) -> ReservedPorts:
    """Read the ports that are kept in `folder`; none if there is no such file.

    Raises: SetupError: if the file cannot be read, as one of a newer mcpspy.
    """
    for file, member in ((folder / FILE, MEMBER), (folder / OLD_FILE, OLD_MEMBER)):
        try:
            text = file.read_text(encoding="utf-8")
        except FileNotFoundError:
            continue
        except (OSError, UnicodeDecodeError) as error:
            raise SetupError(str(file), f"cannot be read: {error}; move it away, and mcpspy wrap writes a new one") from error
        return _parsed(file, text, member)
    return ReservedPorts()


def is_free(port: int) -> bool:
    """Return whether no program listens at the port on this machine."""
    with socket.socket() as probe:
        claim(probe)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True


def _parsed(file: Path, text: str, member: str) -> ReservedPorts:
    try:
        document = json.loads(text)
        if document["version"] != VERSION:
            raise SetupError(str(file), f"is of another mcpspy (version {document['version']}): update this one")
        return ReservedPorts(map(_reserved_port, document[member]))
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise SetupError(str(file), "cannot be understood; move it away, and mcpspy wrap writes a new one") from error


def _reserved_port(document: dict[str, object]) -> ReservedPort:
    port, entry = document["port"], document["entry"]
    if not isinstance(port, int) or not isinstance(entry, list):
        raise TypeError
    texts = {name: document[name] for name in ("label", "url", "letters", "client", "file")}
    if not all(isinstance(text, str) for text in (*texts.values(), *entry)):
        raise TypeError
    return ReservedPort(port=port, entry=tuple(entry), **texts)  # type: ignore[arg-type]  # they are strings: checked above

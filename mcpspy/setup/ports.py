"""The places at which mcpspy stands for HTTP servers: a port of this machine each, kept in a file of ours, so that it stays the same.

`mcpspy proxy --all` serves them. Refuses to be the only memory of what a client's file said, but for servers that are logged in to.
"""

import json
import os
import socket
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from ..errors import SetupError
from .address import HOST, PORTS

FILE = "places.json"
VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """One port, and the server behind it: its `url`, and the `letters` in which the file spelled the URL's origin.

    `file` is where the client's file lies, links followed, and `entry` its path there.
    """

    port: int
    label: str
    url: str
    letters: str
    client: str
    file: str
    entry: tuple[str, ...]


class Places:
    """All places. Changed in memory, and written whole."""

    __slots__ = ("by_port",)

    def __init__(self, places: Iterable[Place] = ()) -> None:
        self.by_port = {one.port: one for one in places}

    def port(self, file: str, entry: tuple[str, ...], had: int | None, *, is_free: Callable[[int], bool]) -> int:
        """The port for an entry: the one that it has here or `had` in its file, else the lowest that nobody uses.

        Raises: SetupError: if all are taken.
        """
        for one in self.by_port.values():
            if (one.file, one.entry) == (file, entry):
                return one.port
        if had is not None and had in PORTS and had not in self.by_port:
            return had
        for port in PORTS:
            if port not in self.by_port and is_free(port):
                return port
        raise SetupError(file, f"was not changed: all ports from {PORTS[0]} to {PORTS[-1]} are taken")

    def of(self, file: str) -> dict[int, Place]:
        """Those of one file: an entry elsewhere, as in a cloned project, gets nothing by naming somebody's port."""
        return {one.port: one for one in self.by_port.values() if one.file == file}

    def put(self, place: Place) -> None:
        """Have this one, instead of what was at its port."""
        self.by_port[place.port] = place

    def drop(self, file: str, used: Iterable[int]) -> None:
        """Forget the places of `file` but those whose ports it still uses, and those of files that are gone."""
        used = set(used)
        self.by_port = {
            one.port: one
            for one in self.by_port.values()
            if (one.port in used if one.file == file else os.path.exists(one.file))
        }

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Places) and self.by_port == other.by_port

    __hash__ = None  # type: ignore[assignment]  # it changes

    def text(self) -> str:
        """As it is kept."""
        places = [asdict(one) for one in sorted(self.by_port.values(), key=lambda one: one.port)]
        return json.dumps({"version": VERSION, "places": places}, indent=1) + "\n"


def read_places(folder: Path) -> Places:
    """Those that are kept in `folder`; none where there is no such file.

    Raises: SetupError: if the file makes no sense, as of a newer mcpspy.
    """
    file = folder / FILE
    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        return Places()
    except (OSError, UnicodeDecodeError) as error:
        raise SetupError(str(file), f"cannot be read: {error}") from error
    try:
        document = json.loads(text)
        if document["version"] != VERSION:
            raise SetupError(str(file), f"is of another mcpspy (version {document['version']}): update this one")
        return Places(_place(one) for one in document["places"])
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise SetupError(str(file), "makes no sense; move it away, and mcpspy wrap makes it anew") from error


def is_free(port: int) -> bool:
    """Whether nobody listens at the port on this machine."""
    with socket.socket() as asked:
        asked.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            asked.bind((HOST, port))
        except OSError:
            return False
    return True


def _place(said: dict[str, object]) -> Place:
    port, entry = said["port"], said["entry"]
    if not isinstance(port, int) or not isinstance(entry, list):
        raise TypeError
    words = {name: said[name] for name in ("label", "url", "letters", "client", "file")}
    if not all(isinstance(one, str) for one in (*words.values(), *entry)):
        raise TypeError
    return Place(port=port, entry=tuple(entry), **words)  # type: ignore[arg-type]  # they are words: asked above

"""The spans that a collector has taken, kept by capture: what was sent once is not sent again, whoever was killed meanwhile.

A file has the ids of spans, one on each line; a line that was cut off names none.
"""

import os
from collections.abc import Iterable
from hashlib import sha256
from typing import Protocol

from ...capture.store.columns import column_key
from ...capture.store.folder import home_folder
from ...records import Header

_LINE_BYTES = 17


class SentItem(Protocol):
    """A span, or a session whose time is sent: its id, and the capture that it is in."""

    @property
    def key(self) -> str: ...
    @property
    def capture_id(self) -> str: ...


def keys_by_capture(items: Iterable[SentItem]) -> dict[str, list[str]]:
    """Return the ids of items by capture."""
    batch: dict[str, list[str]] = {}
    for item in items:
        batch.setdefault(item.capture_id, []).append(item.key)
    return batch


class SentSpans:
    """The ids of the spans that one collector has taken, by capture."""

    def __init__(self, endpoint: str) -> None:
        self._folder = os.path.join(home_folder(), "otlp", sha256(endpoint.encode()).hexdigest()[:16])
        self._known: dict[str, tuple[int, set[str]]] = {}
        """By capture the size of its file when it was read or written last, and the ids in it."""

    @property
    def folder(self) -> str:
        """The folder of its files, which may not be there yet."""
        return self._folder

    def make_folder(self) -> None:
        """Make the folder, so that nothing is sent that could not be noted. Raises: OSError."""
        os.makedirs(self._folder, 0o700, exist_ok=True)

    def of(self, capture_id: str) -> set[str]:
        """Return the ids of the spans of a capture that were sent, also by others."""
        path = self._path(capture_id)
        size, known = self._known.get(capture_id, (0, set()))
        try:
            is_same = os.stat(path).st_size == size
        except FileNotFoundError:
            is_same = False
        if not is_same:
            size, known = self._known[capture_id] = self._read(path)
        return known

    def add(self, batch: dict[str, list[str]]) -> None:
        """Note that spans were sent: their ids, by capture. Raises: OSError."""
        for capture_id, keys in batch.items():
            new = [key for key in keys if key not in self.of(capture_id)]
            if new:
                self._append(capture_id, new)

    def _append(self, capture_id: str, keys: list[str]) -> None:
        self.make_folder()
        path = self._path(capture_id)
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            size = os.fstat(fd).st_size
            is_torn = size > 0 and os.pread(fd, 1, size - 1) != b"\n"
            written = os.write(fd, b"\n" * is_torn + "".join(f"{key}\n" for key in keys).encode())
            os.fsync(fd)
        finally:
            os.close(fd)
        known_size, known = self._known.get(capture_id, (0, set()))
        if known_size == size:
            known.update(keys)
            self._known[capture_id] = size + written, known

    def _path(self, capture_id: str) -> str:
        header = Header(capture_id=capture_id, wall_ns=0, monotonic_ns=0, pid=0, tapped={})
        return os.path.join(self._folder, column_key(header, "").capture_id)

    def _read(self, path: str) -> tuple[int, set[str]]:
        try:
            with open(path, "rb") as file:
                data = file.read()
        except FileNotFoundError:
            return 0, set()
        return len(data), {line.decode("latin-1") for line in data.split(b"\n")[:-1] if len(line) == _LINE_BYTES - 1}

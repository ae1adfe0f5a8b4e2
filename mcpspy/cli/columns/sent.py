"""The spans that a collector has taken, kept by capture: what was sent once is not sent again, whoever was killed meanwhile.

A file has the ids of spans, one on each line; a line that was cut off names none.
"""

import os
from collections.abc import Iterable
from hashlib import sha256

from ...capture.store.columns import column_key
from ...capture.store.folder import home_folder
from ...records import Header

_LINE_BYTES = 17


class SentSpans:
    """The ids of the spans that one collector has taken, by capture."""

    def __init__(self, endpoint: str) -> None:
        self._folder = os.path.join(home_folder(), "otlp", sha256(endpoint.encode()).hexdigest()[:16])
        self._known: dict[str, set[str]] = {}

    def of(self, header: Header) -> set[str]:
        """Return the ids of the spans of a capture that were sent."""
        known = self._known.get(header.capture_id)
        if known is None:
            known = self._known[header.capture_id] = self._read(self._path(header.capture_id))
        return known

    def add(self, capture_id: str, keys: Iterable[str]) -> None:
        """Note that spans were sent. Raises: OSError."""
        new = list(keys)
        os.makedirs(self._folder, 0o700, exist_ok=True)
        path = self._path(capture_id)
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            size = os.fstat(fd).st_size
            is_torn = size > 0 and os.pread(fd, 1, size - 1) != b"\n"
            os.write(fd, b"\n" * is_torn + "".join(f"{key}\n" for key in new).encode())
            os.fsync(fd)
        finally:
            os.close(fd)
        self._known.setdefault(capture_id, set()).update(new)

    def _path(self, capture_id: str) -> str:
        header = Header(capture_id=capture_id, wall_ns=0, monotonic_ns=0, pid=0, tapped={})
        return os.path.join(self._folder, column_key(header, "").capture_id)

    def _read(self, path: str) -> set[str]:
        try:
            with open(path, "rb") as file:
                lines = file.read().split(b"\n")
        except FileNotFoundError:
            return set()
        return {line.decode() for line in lines[:-1] if len(line) == _LINE_BYTES - 1}

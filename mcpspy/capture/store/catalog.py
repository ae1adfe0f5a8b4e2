"""The captures of the store with the facts that are cheap to get, and the recordings that they make.

    client 1  weather  ├────────┤       ├──────┤       three recordings: client 1 with weather and files,
              files      ├────────┤                                      client 1 with weather,
    client 2  weather          ├────┤                                    client 2 with weather

The facts of a capture come from its first line and its last ones, however large it is. Only counting reads more, and is bounded.
"""

import os
import stat
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ...errors import CaptureError
from ...records import End, Frame, Header, Open
from ..file.reader import CHUNK_BYTES, Reader, RecordCounts, read, sound_record
from .folder import EXTENSION, captures_folder, is_live

TAIL_BYTES = (1 << 16, 1 << 24)
"""How much of a file's end is searched for its last sound record: little, and more if that has no whole line."""

COUNTED_BYTES = 1 << 26
"""How much of a capture without an `end` record is read to count its messages: for about a second."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogEntry:
    """One capture of the store. `header` is None if it has none that can be used; then `error` says why.

    `begin_ns` is Unix time; `last_ns` is the time of its last record since it began, as far as is known without reading all.
    """

    path: str
    size_bytes: int
    begin_ns: int
    last_ns: int
    live: bool
    header: Header | None = None
    end: End | None = None
    error: str = ""

    @property
    def label(self) -> str:
        """The server's label; of a capture without a header, the name of its file."""
        return self.header.label if self.header else os.path.basename(self.path).removesuffix(EXTENSION)

    @property
    def is_replay(self) -> bool:
        """True if its client was played by mcpspy."""
        return self.header is not None and "replay" in self.header.tapped

    @property
    def is_mock(self) -> bool:
        """True if its server was played by mcpspy."""
        return self.header is not None and "mock" in self.header.tapped

    @property
    def is_model(self) -> bool:
        """True for a capture of a model API: prompts, and answers of a model."""
        return self.header is not None and self.header.tapped.get("leg") == "model"

    @property
    def client(self) -> str:
        """The name of the process that started the tap."""
        return str(self.header.parent.get("name", "")) if self.header else ""

    @property
    def parent(self) -> tuple[object, ...]:
        """A key that captures of one client have in common; a capture with an unknown parent has its own."""
        pid = self.header.parent.get("pid") if self.header else None
        if self.header is None or not isinstance(pid, int) or not pid:
            return (self.path,)
        return (self.header.boot_id, pid, str(self.header.parent.get("start")))


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """Counts of a capture: complete frames of the protocol's streams, and how often recording failed.

    `whole` is False if the capture is larger than what is read for counting: it holds at least so much.
    """

    messages: int
    gaps: int
    whole: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """One client with all its servers: captures with one parent process that overlap in time, the oldest first.

    Captures of a model API that overlap with these belong to it too, whatever process started their taps.
    """

    entries: tuple[CatalogEntry, ...]

    @property
    def begin_ns(self) -> int:
        """The time when its first capture began, as Unix time. One of a model API may be days old: it counts if there is no other."""
        return self.own[0].begin_ns

    @property
    def client(self) -> str:
        """The name of the process that started the taps; that of a model API's tap only if there is no other."""
        return self.own[0].client

    @property
    def own(self) -> Sequence[CatalogEntry]:
        """Its captures without those of a model API, which other recordings may share; if there are no others, those."""
        return [entry for entry in self.entries if not entry.is_model] or self.entries


def entries(folder: str | None = None) -> list[CatalogEntry]:
    """List the captures in `folder` (the store's by default), the newest first. Links are left out. Empty if there is no such folder.

    Raises: OSError: if the folder cannot be read.
    """
    folder = captures_folder() if folder is None else folder
    try:
        with os.scandir(folder) as files:
            paths = [file.path for file in files if file.name.endswith(EXTENSION) and not file.is_symlink()]
    except FileNotFoundError:
        return []
    captures = map(entry, paths)
    readable = (capture for capture in captures if capture is not None)
    return sorted(readable, key=lambda capture: (capture.begin_ns, capture.path), reverse=True)


def entry(path: str) -> CatalogEntry | None:
    """Return the capture at `path`. None if there is no regular file (any more), or one that cannot be read."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            return None  # opening a FIFO would wait for its writer
        with open(path, "rb") as file:
            first = file.readline(CHUNK_BYTES)
            status = os.fstat(file.fileno())
            last, end = _last(file.fileno(), status.st_size)
    except OSError:
        return None
    header, error = _header(path, first)
    return CatalogEntry(
        path=path,
        size_bytes=status.st_size,
        begin_ns=header.wall_ns if header else status.st_mtime_ns,
        last_ns=last,
        live=end is None and is_live(path),
        header=header,
        end=end,
        error=error,
    )


def recordings(captures: Iterable[CatalogEntry], *, shares_models: bool = True) -> list[Recording]:
    """Group the captures that can be used into recordings: first the recording that has the newest capture.

    A capture of a model API is in every recording of the same boot that it overlaps. If there is none, or without `shares_models`,
    it is in a recording like any other.
    """
    usable = [capture for capture in captures if capture.header]
    models = [
        capture for capture in usable if capture.is_model and shares_models and not (capture.end and not capture.end.messages)
    ]
    shared = {capture.path for capture in models}
    of_servers = _by_parent(capture for capture in usable if capture.path not in shared)
    joined = [_with_models(recording, models) for recording in of_servers]
    taken = {capture.path for recording in joined for capture in recording.entries}
    joined += _by_parent(capture for capture in models if capture.path not in taken)
    return sorted(joined, key=_newest, reverse=True)


def count(capture: CatalogEntry) -> Count:
    """Count the messages and gaps of a capture: from its `end` record, or by reading it."""
    if capture.end:
        return Count(messages=capture.end.messages, gaps=capture.end.gaps)
    reader, counts = Reader(capture.path), RecordCounts()
    try:
        with open(capture.path, "rb") as file:
            while file.tell() < COUNTED_BYTES and (chunk := file.read(CHUNK_BYTES)):
                for record in reader.feed(chunk):
                    counts.feed(record)
    except (OSError, CaptureError):
        pass  # it went away, or is no capture
    return Count(messages=counts.messages, gaps=counts.gaps, whole=capture.size_bytes <= COUNTED_BYTES)


def has_message(capture: CatalogEntry) -> bool:
    """Return whether a capture has a message: a server that nobody spoke to does not make a recording the newest."""
    if capture.end:
        return capture.end.messages > 0
    silent = set()
    try:
        for record in read(capture.path):
            if isinstance(record, Open) and record.name == "stderr":
                silent.add(record.stream)
            if isinstance(record, Frame) and record.stream not in silent:
                return True
    except (OSError, CaptureError):
        pass
    return False


def _header(path: str, first: bytes) -> tuple[Header | None, str]:
    reader = Reader(os.path.basename(path))
    try:
        records = [*reader.feed(first), *reader.close()]
    except CaptureError as error:
        return None, error.reason
    header = next((record for record in records if isinstance(record, Header)), None)
    if header is None:
        return None, "it holds nothing yet" if not first else "its header is damaged"
    return header, ""


def _last(fd: int, size_bytes: int) -> tuple[int, End | None]:
    """Return the time of the last sound record, and that record if it ends the capture."""
    for window in TAIL_BYTES:
        begin = max(0, size_bytes - window)
        lines = os.pread(fd, size_bytes - begin, begin).split(b"\n")
        for line in reversed(lines[1:] if begin else lines):
            record = sound_record(line)
            if record is not None:
                return record.at_ns, record if isinstance(record, End) else None
        if not begin:
            break
    return 0, None


def _by_parent(captures: Iterable[CatalogEntry]) -> list[Recording]:
    groups: dict[tuple[object, ...], list[CatalogEntry]] = {}
    for capture in captures:
        groups.setdefault(capture.parent, []).append(capture)
    return [recording for group in groups.values() for recording in _overlapping(group)]


def _newest(recording: Recording) -> tuple[int, str]:
    return max((capture.begin_ns, capture.path) for capture in recording.own)


def _with_models(recording: Recording, models: Iterable[CatalogEntry]) -> Recording:
    """Add to a recording the captures of a model API that overlap with one of its own."""
    overlapping = [model for model in models if any(_overlap(model, capture) for capture in recording.entries)]
    return Recording(entries=tuple(sorted((*recording.entries, *overlapping), key=_begin))) if overlapping else recording


def _overlap(one: CatalogEntry, other: CatalogEntry) -> bool:
    """Return whether both were recorded at some instant of one boot."""
    if not (one.header and other.header and one.header.boot_id and one.header.boot_id == other.header.boot_id):
        return False
    return _begin(one) <= _until(other) and _begin(other) <= _until(one)


def _overlapping(group: list[CatalogEntry]) -> list[Recording]:
    """Divide one parent's captures where nothing was being recorded. Times of one boot compare on its monotonic clock."""
    clusters: list[list[CatalogEntry]] = []
    until = 0
    for capture in sorted(group, key=_begin):
        if not clusters or _begin(capture) > until:
            clusters.append([])
            until = 0
        clusters[-1].append(capture)
        until = max(until, _until(capture))
    return [Recording(entries=tuple(cluster)) for cluster in clusters]


def _until(capture: CatalogEntry) -> int:
    return 1 << 100 if capture.live else _begin(capture) + capture.last_ns


def _begin(capture: CatalogEntry) -> int:
    header = capture.header
    return header.monotonic_ns if header and header.boot_id else capture.begin_ns

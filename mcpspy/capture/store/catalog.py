"""What the store holds: its captures by their cheap facts, grouped into recordings. Refuses to understand what frames hold.

A capture's facts come from its first line and its last ones, however large it is; only counting reads more, and is bounded.
"""

import os
import stat
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ...errors import CaptureError
from ...records import End, Frame, Gap, Header, Open
from ..file.reader import CHUNK_BYTES, Reader, read, sound_record
from .folder import EXTENSION, captures_folder, is_live

TAIL_BYTES = (1 << 16, 1 << 24)
"""How much of a file's end is looked at for its last sound record: little, and if that is no whole line, more."""

COUNTED_BYTES = 1 << 26
"""Of a larger capture without an `end` record, so much is read to count what it holds: about a second."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogEntry:
    """One capture of the store. `header` is None where it has none that can be used; `error` then says why.

    `begin_ns` is Unix time; `last_ns` is when its last record was made, since it began, as far as is known without reading all.
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
        """The server's name; of a capture without a header, its file's."""
        return self.header.label if self.header else os.path.basename(self.path).removesuffix(EXTENSION)

    @property
    def is_replay(self) -> bool:
        """Whether its client was played by mcpspy."""
        return self.header is not None and "replay" in self.header.tapped

    @property
    def is_mock(self) -> bool:
        """Whether its server was played by mcpspy."""
        return self.header is not None and "mock" in self.header.tapped

    @property
    def is_model(self) -> bool:
        """Whether its leg is the model's: what it holds is what a model was asked and said."""
        return self.header is not None and self.header.tapped.get("leg") == "model"

    @property
    def client(self) -> str:
        """The name of the process that started the tap."""
        return str(self.header.parent.get("name", "")) if self.header else ""

    @property
    def parent(self) -> tuple[object, ...]:
        """What captures of one client have in common; a capture that does not know its parent is alone."""
        pid = self.header.parent.get("pid") if self.header else None
        if self.header is None or not isinstance(pid, int) or not pid:
            return (self.path,)
        return (self.header.boot_id, pid, str(self.header.parent.get("start")))


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """What a capture holds: complete frames of the protocol's streams, and how often recording failed.

    `whole` is False where the capture is larger than is read for counting: it holds at least so much.
    """

    messages: int
    gaps: int
    whole: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """What one client did with all its servers: captures with one parent process that overlap in time, the oldest first.

    With them those of a model's leg that overlap with these, whoever started their taps.
    """

    entries: tuple[CatalogEntry, ...]

    @property
    def begin_ns(self) -> int:
        """When its first capture began, as Unix time; a model's leg may have run for days, and counts if there is no other."""
        return self.own[0].begin_ns

    @property
    def client(self) -> str:
        """The name of the process that started the taps; of a model's leg, only if there is no other."""
        return self.own[0].client

    @property
    def own(self) -> Sequence[CatalogEntry]:
        """Its captures without those of a model's leg, which it may share with others; these, if there are no others."""
        return [one for one in self.entries if not one.is_model] or self.entries


def entries(folder: str | None = None) -> list[CatalogEntry]:
    """The captures in `folder` (the store's by default), the newest first. Empty where there is no such folder.

    Raises: OSError: if the folder cannot be read.
    """
    folder = captures_folder() if folder is None else folder
    try:
        names = os.listdir(folder)
    except FileNotFoundError:
        return []
    found = [entry(os.path.join(folder, name)) for name in names if name.endswith(EXTENSION)]
    return sorted((one for one in found if one is not None), key=lambda one: (one.begin_ns, one.path), reverse=True)


def entry(path: str) -> CatalogEntry | None:
    """The capture at `path`. None where there is no regular file (any more), or one that may not be read."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            return None  # a FIFO would have us wait for its writer
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
    """The captures that can be used, by recording: the recording whose newest capture is newest first.

    A capture of a model's leg is in every recording of the same boot that it overlaps; else, and without `shares_models`, it is in
    one like any other.
    """
    usable = [one for one in captures if one.header]
    legs = [one for one in usable if one.is_model and shares_models and not (one.end and not one.end.messages)]
    shared = {one.path: one for one in legs}
    found = _by_parent(one for one in usable if one.path not in shared)
    joined = [_with_models(recording, legs) for recording in found]
    taken = {one.path for recording in joined for one in recording.entries}
    joined += _by_parent(one for one in legs if one.path not in taken)
    return sorted(joined, key=lambda recording: max((one.begin_ns, one.path) for one in recording.own), reverse=True)


def count(capture: CatalogEntry) -> Count:
    """How many messages and gaps a capture holds: from its `end` record, or by reading it."""
    if capture.end:
        return Count(messages=capture.end.messages, gaps=capture.end.gaps)
    messages = gaps = 0
    reader, silent = Reader(capture.path), set()
    try:
        with open(capture.path, "rb") as file:
            while file.tell() < COUNTED_BYTES and (chunk := file.read(CHUNK_BYTES)):
                for record in reader.feed(chunk):
                    match record:
                        case Frame():
                            messages += not record.part and record.stream not in silent
                        case Open(name="stderr"):
                            silent.add(record.stream)
                        case Gap():
                            gaps += 1
    except (OSError, CaptureError):
        pass  # it went away, or was never one
    return Count(messages=messages, gaps=gaps, whole=capture.size_bytes <= COUNTED_BYTES)


def has_message(capture: CatalogEntry) -> bool:
    """True if anything of the protocol passed: a server that nobody spoke to does not make a recording the newest."""
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
    """The time of the last sound record, and that record if it ends the capture."""
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
    for one in captures:
        groups.setdefault(one.parent, []).append(one)
    return [recording for group in groups.values() for recording in _overlapping(group)]


def _with_models(recording: Recording, legs: Iterable[CatalogEntry]) -> Recording:
    """The recording, with the captures of a model's leg that overlap with one of its own."""
    met = [leg for leg in legs if any(_meet(leg, one) for one in recording.entries)]
    return Recording(entries=tuple(sorted((*recording.entries, *met), key=_begin))) if met else recording


def _meet(one: CatalogEntry, other: CatalogEntry) -> bool:
    """Whether both were recorded at some instant of one boot."""
    if not (one.header and other.header and one.header.boot_id and one.header.boot_id == other.header.boot_id):
        return False
    return _begin(one) <= _until(other) and _begin(other) <= _until(one)


def _overlapping(group: list[CatalogEntry]) -> list[Recording]:
    """Cut one parent's captures where nothing was being recorded. Times of one boot compare on its monotonic clock."""
    runs: list[list[CatalogEntry]] = []
    until = 0
    for one in sorted(group, key=_begin):
        if not runs or _begin(one) > until:
            runs.append([])
            until = 0
        runs[-1].append(one)
        until = max(until, _until(one))
    return [Recording(entries=tuple(run)) for run in runs]


def _until(capture: CatalogEntry) -> int:
    return 1 << 100 if capture.live else _begin(capture) + capture.last_ns


def _begin(capture: CatalogEntry) -> int:
    header = capture.header
    return header.monotonic_ns if header and header.boot_id else capture.begin_ns

"""The captures of the store with the facts that are cheap to get, and the recordings that they make.

    client 1  weather  ├────────┤       ├──────┤       three recordings: client 1 with weather and files,
              files      ├────────┤                                      client 1 with weather,
    client 2  weather          ├────┤                                    client 2 with weather

A capture over HTTP may be of many clients, and is in the recording of each: the tap noted which processes they were.

The facts of a capture come from its first line and its last ones, however large it is. Only counting reads more, and is bounded.
"""

import os
import stat
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from zlib import crc32

import msgspec
from msgspec.structs import replace

from ...errors import CaptureError
from ...platform.files import read_at, user_home
from ...records import End, Exit, Header, Open, Record
from ..file.reader import CHUNK_BYTES, Reader, RecordCounts, read, sound_record
from .clients import ClientProcess, given_name, noted_clients
from .folder import EXTENSION, captures_folder, is_live

TAIL_BYTES = (1 << 16, 1 << 24)
"""Bytes of a file's end in which its last sound record is searched: few, and more if these have no whole line."""

COUNTED_BYTES = 1 << 26
"""Bytes of a capture without an `end` record that are read to count its messages: those of about a second."""

PROBE_MESSAGES = 2
"""A capture of at most a request and its answer may be a probe, after which the client starts the server again."""

PROBE_NS = 2_000_000_000
"""Longest time from the end of a probe to the beginning of its session, or from a failed start to the client's next server."""

FAILED_BYTES = 1 << 20
"""A capture of a server that failed at once is not larger."""


class CatalogEntry(msgspec.Struct, frozen=True, kw_only=True):
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
    process: ClientProcess | None = None
    """The client whose part of a capture over HTTP this is; None: all of it."""

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
    def id(self) -> str:
        """Eight hex digits that name it: each capture of a recording names that too, as captures may join before the first."""
        capture_id = self.header.capture_id if self.header else self.path
        return f"{crc32(f'{capture_id} {self.process.key if self.process else None}'.encode()):08x}"

    @property
    def from_ns(self) -> int:
        """The time when it began, or when its client connected, as Unix time."""
        return self.begin_ns + (self.process.first_ns if self.process else 0)

    @property
    def lasted_ns(self) -> int:
        """The time for which it was recorded, or its client was connected, as far as is known."""
        return self.process.last_ns - self.process.first_ns if self.process else self.last_ns

    @property
    def is_proxied(self) -> bool:
        """True for what a proxy recorded: the process that started the proxy is no client."""
        return self.header is not None and self.header.tapped.get("transport") == "http" and not self.is_replay

    @property
    def client(self) -> str:
        """The name of the client's process; empty if it is not known."""
        if self.process is not None:
            return self.process.name
        return str(self.header.parent.get("name", "")) if self.header and not self.is_proxied else ""

    @property
    def client_pid(self) -> int | None:
        """The pid of the client's process, if it is known."""
        if self.process is not None:
            return self.process.pid
        pid = self.header.parent.get("pid") if self.header and not self.is_proxied else None
        return pid if isinstance(pid, int) and pid else None

    @property
    def parent(self) -> tuple[object, ...]:
        """A key that captures of one client have in common; a capture with an unknown client has its own."""
        if self.header is None or self.client_pid is None:
            return (self.path,)
        start = self.header.parent.get("start") if self.process is None else self.process.start
        return (self.header.boot_id, self.client_pid, str(start))


class Count(msgspec.Struct, frozen=True, kw_only=True):
    """Counts of a capture: complete frames of the protocol's streams, and how often recording failed.

    `whole` is False if the capture is larger than what is read for counting: it holds at least so much.
    """

    messages: int
    gaps: int
    whole: bool = True


class Recording(msgspec.Struct, frozen=True, kw_only=True):
    """One client with all its servers: captures with one parent process that overlap in time, the oldest first.

    Captures of a model API that overlap with these belong to it too, whatever process started their taps.
    """

    entries: tuple[CatalogEntry, ...]

    @property
    def begin_ns(self) -> int:
        """The time when its first capture began, as Unix time. One of a model API may be days old: it counts if there is no other."""
        return min(capture.from_ns for capture in self.own)

    @property
    def client(self) -> str:
        """The name of the client's process; that of a model API's client only if there is no other."""
        return self.own[0].client

    @property
    def client_pid(self) -> int | None:
        """The pid of the client's process, if it is known."""
        return self.own[0].client_pid

    @property
    def given_name(self) -> str:
        """The name and the version that the client gave to a server; empty if it is not known. Reads the beginnings of captures."""
        named = (given_name(capture.path, capture.process.key if capture.process else None) for capture in self.own)
        return next(filter(None, named), "")

    @property
    def id(self) -> str:
        """Eight hex digits that name it; those of its other captures do so too."""
        return self.own[0].id

    @property
    def is_played(self) -> bool:
        """True if mcpspy itself was the client or the server of all of it: a mock, or a replay."""
        return all(capture.is_replay or capture.is_mock for capture in self.own)

    @property
    def own(self) -> Sequence[CatalogEntry]:
        """Its captures without those of a model API, which other recordings may share; if there are no others, those."""
        return [entry for entry in self.entries if not entry.is_model] or self.entries


def entries(folder: str | None = None) -> list[CatalogEntry]:
    """List the captures in `folder` (the store's by default), the newest first. Links are left out. Empty if there is no such folder.

    Raises: OSError: if the folder cannot be read.
    """
    captures = map(entry, capture_paths(folder))
    readable = (capture for capture in captures if capture is not None)
    return sorted(readable, key=lambda capture: (capture.begin_ns, capture.path), reverse=True)


def capture_paths(folder: str | None = None) -> list[str]:
    """List the files in `folder` (the store's by default) that are captures by their names, none of them opened.

    Raises: what `entries` raises.
    """
    try:
        with os.scandir(captures_folder() if folder is None else folder) as files:
            return sorted(file.path for file in files if file.name.endswith(EXTENSION) and file.is_file(follow_symlinks=False))
    except FileNotFoundError:
        return []


def elsewhere() -> str:
    """Return where to look too if the store that `MCPSPY_HOME` names has nothing: in the default store, if that has something.

    Clients start servers with few variables: it may be set here and not there.
    """
    default = os.path.join(user_home(), ".mcpspy", "captures")
    has_some = os.environ.get("MCPSPY_HOME") and captures_folder() != default and capture_paths(default)
    return (
        f"{default} has captures: clients do not see the MCPSPY_HOME that is set here; unset it to show them"
        if has_some
        else ""
    )


def entry(path: str) -> CatalogEntry | None:
    """Return the capture at `path`. None if there is no regular file (any more), or one that cannot be read."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            return None  # opening a FIFO would wait for its writer
        with open(path, "rb") as file:
            status = os.fstat(file.fileno())  # before the first line: a header that is written meanwhile is not missed
            first = file.readline(CHUNK_BYTES)
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


def recordings(captures: Iterable[CatalogEntry], *, each_once: bool = False) -> list[Recording]:
    """Group the captures that can be used into recordings: first the recording that has the newest capture.

    A capture over HTTP is in the recording of each client that spoke, and a capture of a model API in every recording of the same
    boot that it overlaps. With `each_once`, each is in a recording of its own, so that no capture is in two.
    """
    usable = [capture for capture in captures if capture.header]
    if each_once:
        return sorted(_by_parent(usable), key=_newest, reverse=True)
    models = [capture for capture in usable if capture.is_model and not (capture.end and not capture.end.messages)]
    shared = {capture.path for capture in models}
    of_servers = _by_parent(_by_client([capture for capture in usable if capture.path not in shared]))
    joined = [_with_models(recording, models) for recording in of_servers]
    taken = {capture.path for recording in joined for capture in recording.entries}
    joined += _by_parent(capture for capture in models if capture.path not in taken)
    return sorted(joined, key=_newest, reverse=True)


def count(capture: CatalogEntry) -> Count:
    """Count the messages and gaps of a capture: from its `end` record, or by reading it."""
    if capture.end:
        return Count(messages=capture.end.messages, gaps=capture.end.gaps)
    from ..file.counts import counted  # only captures that grow, or have no end, need it

    try:
        counts = counted(capture.path, COUNTED_BYTES)
    except (OSError, CaptureError):
        counts = RecordCounts()  # it went away, or is no capture
    return Count(messages=counts.messages, gaps=counts.gaps, whole=capture.size_bytes <= COUNTED_BYTES)


def is_counted(capture: CatalogEntry) -> bool:
    """Return whether `@` counts the recording of a capture: it has a message or an HTTP request, or its server failed at once.

    A server that nobody spoke to does not make a recording the newest.
    """
    return (
        has_message(capture)
        or has_failed(capture)
        or (capture.is_proxied and _has(capture.path, capture.size_bytes, _is_request))
    )


def has_failed(capture: CatalogEntry) -> bool:
    """Return whether a server could not be started, or ended with a failure before it had a message. A signal is no failure."""
    end = capture.end
    if end is None or end.messages or end.why.startswith("SIG") or capture.size_bytes > FAILED_BYTES:
        return False
    return _has(capture.path, capture.size_bytes, _is_failure)


@lru_cache(maxsize=1024)
def _has(path: str, _size_bytes: int, is_meant: Callable[[Record], bool]) -> bool:
    """Return whether a capture of this size has such a record."""
    try:
        return any(map(is_meant, read(path)))
    except (OSError, CaptureError):
        return False


def _is_failure(record: Record) -> bool:
    return isinstance(record, Exit) and bool(record.error or record.code)


def _is_request(record: Record) -> bool:
    return isinstance(record, Open) and record.transaction > 0


def has_message(capture: CatalogEntry) -> bool:
    """Return whether a capture has a message."""
    if capture.end:
        return capture.end.messages > 0
    from ..file.counts import counted

    try:
        return any(counted(capture.path, most_bytes).messages for most_bytes in (CHUNK_BYTES, COUNTED_BYTES))
    except (OSError, CaptureError):
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
        lines = read_at(fd, size_bytes - begin, begin).split(b"\n")
        for line in reversed(lines[1:] if begin else lines):
            record = sound_record(line)
            if record is not None:
                return record.at_ns, record if isinstance(record, End) else None
        if not begin:
            break
    return 0, None


def _by_client(captures: list[CatalogEntry]) -> list[CatalogEntry]:
    """Replace captures over HTTP by the parts of their clients, where those are known."""
    local = [capture for capture in captures if not capture.is_proxied]
    parts: list[CatalogEntry] = []
    for capture in captures:
        if not capture.is_proxied:
            parts.append(capture)
            continue
        clients = noted_clients(capture.path, capture.size_bytes)
        parts += [replace(capture, process=_agent(client, capture, local)) for client in clients] or [_guessed(capture, local)]
    return parts


def _agent(client: ClientProcess, capture: CatalogEntry, local: list[CatalogEntry]) -> ClientProcess:
    """Return the process that is the client: the one that connected, or the one that started it and others of its servers too."""
    part = replace(capture, process=client)
    for pid, start in client.parents:
        if any(_overlap(part, other) and other.parent[1:] == (pid, str(start)) for other in local):
            header = next(other.header for other in local if other.parent[1:] == (pid, str(start)))
            return replace(client, pid=pid, start=start, name=str(header.parent.get("name", "")) if header else "")
    return client


def _guessed(capture: CatalogEntry, local: list[CatalogEntry]) -> CatalogEntry:
    """Give a capture whose clients' processes are not known to the one client of the same name and version at that time."""
    name = given_name(capture.path) if capture.header else ""
    same = [other for other in local if name and _overlap(capture, other) and given_name(other.path) == name]
    if len({other.parent for other in same}) != 1 or same[0].header is None or same[0].client_pid is None:
        return capture
    start = same[0].header.parent.get("start")
    process = ClientProcess(
        pid=same[0].client_pid, start=start if isinstance(start, int) else 0, name=same[0].client, last_ns=capture.last_ns
    )
    return replace(capture, process=process)


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
        if not clusters or (_begin(capture) > until and not _goes_on(clusters[-1], capture)):
            clusters.append([])
            until = 0
        clusters[-1].append(capture)
        until = max(until, _until(capture))
    return [Recording(entries=tuple(cluster)) for cluster in clusters]


def _goes_on(cluster: list[CatalogEntry], capture: CatalogEntry) -> bool:
    """Return whether a capture follows a probe or a failed start.

    Some clients start a server twice, first only to ask for its era; and a client whose server fails goes on with its next one.
    """
    return any(
        before.end is not None
        and _begin(capture) - _until(before) < PROBE_NS
        and ((before.label == capture.label and 0 < before.end.messages <= PROBE_MESSAGES) or has_failed(before))
        for before in cluster
    )


def _until(capture: CatalogEntry) -> int:
    if capture.live:
        return 1 << 100
    return _zero(capture) + (capture.last_ns if capture.process is None else capture.process.last_ns)


def _begin(capture: CatalogEntry) -> int:
    return _zero(capture) + (0 if capture.process is None else capture.process.first_ns)


def _zero(capture: CatalogEntry) -> int:
    header = capture.header
    return header.monotonic_ns if header and header.boot_id else capture.begin_ns

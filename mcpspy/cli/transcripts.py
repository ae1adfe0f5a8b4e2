"""Transcripts of the captures that a WHAT names: read whole, or growing while the captures are recorded.

The transcript of a capture that is still being recorded stays open: a request without an answer is pending in it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from ..capture.file.frames import frame_file
from ..capture.file.reader import CHUNK_BYTES, CaptureRecords, Reader, read
from ..capture.store.address import STDIN, resolve, rows_alone
from ..capture.store.folder import is_live
from ..errors import AddressError, CaptureError
from ..platform.descriptors import POLLIN, poll
from ..platform.descriptors import read as read_descriptor
from ..platform.files import BINARY
from ..records import Header, Record
from ..transcript.findings.run import findings
from ..transcript.hops import forwarded_calls
from ..transcript.model import CaptureInfo, Numbered, Row, Transcript
from ..transcript.transcribe import Transcriber, transcribe
from .credential_search import CredentialSearch
from .fifo import announced, opened_stdin
from .progress import ReadingProgress, reading

if TYPE_CHECKING:
    from ..transcript.clients import ClientKey

DEFAULT_WHAT = "@"

LARGE_BYTES = 20_000_000
"""A capture of this size is read in about half a second."""


class CaptureSelection(NamedTuple):
    """The captures that WHATs name, and the first and last row of the transcript that they make together; None: all rows."""

    paths: tuple[str, ...]
    rows: tuple[int, int] | None = None
    what: str = ""
    """The WHATs as they were written."""
    clients: Mapping[str, ClientKey] = MappingProxyType({})
    """The client of each capture of which only that client's rows are meant, by path."""

    @property
    def is_one_row(self) -> bool:
        """True if one row was named."""
        return self.rows is not None and self.rows[0] == self.rows[1]

    def rows_in(self, transcript: Transcript) -> list[Row]:
        """Select its rows of the transcript. Raises: AddressError: if the first of them does not exist."""
        from ..views.timeline.timeline import rows_between

        if self.rows is not None:
            row_of(transcript, self.what, self.rows[0])
        return rows_between(transcript.rows, self.rows)


def select_captures(whats: tuple[str, ...]) -> CaptureSelection:
    """Find what WHATs name together. Raises: AddressError.

    Rows after the last of several WHATs, as in `A B:7` or `A B :7`, are rows of the timeline that they make together.
    """
    named = list(whats or (DEFAULT_WHAT,))
    rows = rows_alone(named[-1]) if len(named) > 1 else None
    if rows is not None:
        named.pop()
    addresses = [resolve(what) for what in named]
    if any(address.rows for address in addresses[:-1]) or (rows and addresses[-1].rows):
        raise AddressError(" ".join(whats), "rows are those of the common timeline; name them once, after the last capture")
    paths = dict.fromkeys(path for address in addresses for path in address.captures)
    whole = {path for address in addresses for path in address.captures if path not in address.clients}
    clients = {path: key for address in addresses for path, key in address.clients.items() if path not in whole}
    return CaptureSelection(paths=announced(paths), rows=rows or addresses[-1].rows, what=" ".join(whats), clients=clients)


def is_large(selection: CaptureSelection) -> bool:
    """Return whether a selection is of one capture, which is large and not recorded any more."""
    if len(selection.paths) != 1 or selection.clients:
        return False
    (path,) = selection.paths
    return path != STDIN and os.path.isfile(path) and os.path.getsize(path) >= LARGE_BYTES and not is_live(path)


def without_rows(what: str) -> str:
    """Remove the rows from a WHAT, so that others can be named; empty for standard input, which cannot be read again."""
    if what.startswith(STDIN):
        return ""
    name, _, rows = what.rpartition(":")
    return name if name and rows.replace(".", "").isdecimal() else what


def transcript_of(
    captures: CaptureSelection,
    *,
    keeps_frames: bool = False,
    keeps_noise: bool = True,
) -> tuple[Transcript, bool]:
    """Read captures as they are now. Returns their transcript, and whether one of them is still being recorded.

    Captures that several clients share are read whole, so that rows keep their numbers, and then divided.
    `keeps_frames` is for views of HTTP as it was on the wire, `keeps_noise` for those that show every byte.
    """
    if not any(path != STDIN and is_live(path) for path in captures.paths):
        with reading(captures.paths) as progress:
            records = [records_of(path, progress) for path in captures.paths]
            transcript = transcribe(
                *records,
                keep_frames=keeps_frames,
                keep_noise=keeps_noise,
                credentials=CredentialSearch(),
            )
        return rows_of_clients(transcript, captures), False
    with closing(GrowingTranscript(keeps_frames=keeps_frames, keeps_noise=keeps_noise)) as growing:
        with reading(captures.paths) as progress:
            for path in captures.paths:
                growing.add(path, progress)
            for _ in growing.take():
                pass
        live = growing.live
    growing.transcript.hops = forwarded_calls(growing.transcript)
    growing.transcript.findings = findings(growing.transcript)
    return rows_of_clients(growing.transcript, captures), live


def transcript_of_file(path: str) -> Transcript:
    """Read one capture as it is now."""
    return transcript_of(CaptureSelection(paths=(path,)))[0]


def rows_of_clients(transcript: Transcript, captures: CaptureSelection) -> Transcript:
    """Leave out the rows of other clients than the selected ones."""
    keys = client_keys(transcript, captures.clients)
    if not keys:
        return transcript
    from ..transcript.client_rows import ClientRows

    client = ClientRows(transcript, keys)
    own = client.transcript
    own.findings = findings(transcript, client.is_about)
    return own


def client_keys(transcript: Transcript, clients: Mapping[str, ClientKey]) -> dict[int, ClientKey]:
    """Return the clients of captures that are divided, by the captures' indexes."""
    by_id = {header.capture_id: key for path, key in clients.items() if (header := header_of(path)) is not None}
    infos = ((info.index, info.header.capture_id) for info in transcript.captures if info.header is not None)
    return {index: by_id[capture_id] for index, capture_id in infos if capture_id in by_id}


def header_of(path: str) -> Header | None:
    """Read the header of a capture; None if it has none."""
    try:
        return next((record for record in read(path) if isinstance(record, Header)), None)
    except (OSError, CaptureError):
        return None


def now_ns(capture: CaptureInfo) -> int:
    """Read the present time on the transcript's clock. That is wall time: a call may be older than this process."""
    return time.time_ns() - capture.header.wall_ns + capture.shift_ns if capture.header else 0


def row_of(transcript: Transcript, what: str, number: int) -> Numbered:
    """Find the row with this number. Raises: AddressError: if there is none."""
    row = transcript.row(number)
    if row is None:
        last = max((other.row for other in transcript.rows if isinstance(other, Numbered)), default=0)
        failure = next(filter(None, (info.failed_start for info in transcript.captures)), "")
        none = f"its server could not be started ({failure})" if failure else "there are none yet"
        raise AddressError(what, f"there is no row {number}; " + (f"the last one is {last}" if last else none))
    return row


def records_of(path: str, progress: ReadingProgress | None = None) -> CaptureRecords:
    """Return the records of a capture, to be read. Raises, when they are: CaptureError; OSError."""
    add = None if progress is None else progress.add
    if path == STDIN:
        return CaptureRecords(opened_stdin, "standard input", add)
    return CaptureRecords(lambda: open(path, "rb"), path, add, frames=frame_file(path))


class Tail:
    """The file of one capture that may still grow. One that is `over` will not."""

    __slots__ = ("_fd", "_progress", "_reader", "over", "path")

    def __init__(self, path: str, progress: ReadingProgress | None = None) -> None:
        self.path = path
        self.over = False
        self._progress = progress
        self._fd = 0 if path == STDIN else os.open(path, os.O_RDONLY | BINARY)
        self._reader = Reader("standard input" if path == STDIN else path)

    def read(self) -> list[Record]:
        """Read the next records, up to a MB of them; none if there are no new ones."""
        is_pipe = self.path == STDIN
        if is_pipe and not self._has_news():
            return []
        while data := read_descriptor(self._fd, CHUNK_BYTES):
            records = self._reader.feed(data)
            if self._progress is not None:
                self._progress.add(len(data))
            if records or is_pipe:
                return records
        return self.close() if is_pipe else []

    def _has_news(self) -> bool:
        """Return whether the pipe can be read without waiting."""
        pipe = poll()
        pipe.register(self._fd, POLLIN)
        has_news = bool(pipe.poll(0))
        pipe.unregister(self._fd)
        return has_news

    def ended(self) -> bool:
        """Return whether it is no longer recorded."""
        return self.path != STDIN and not is_live(self.path)

    def close(self) -> list[Record]:
        """Close the file. Returns a last record if its end is torn."""
        self.over = True
        if self._fd:
            os.close(self._fd)
        return self._reader.close()


class GrowingTranscript:
    """A transcript of captures that may still be written. Its captures are numbered as they are added."""

    __slots__ = ("_transcriber", "tails")

    def __init__(self, *, keeps_frames: bool = False, keeps_noise: bool = True) -> None:
        self._transcriber = Transcriber(keep_frames=keeps_frames, keep_noise=keeps_noise, credentials=CredentialSearch())
        self.tails: list[Tail] = []

    @property
    def transcript(self) -> Transcript:
        """The transcript so far."""
        return self._transcriber.transcript

    @property
    def live(self) -> bool:
        """True if it may still grow."""
        return not all(tail.over for tail in self.tails)

    def add(self, path: str, progress: ReadingProgress | None = None) -> None:
        """Add a capture. Raises: OSError."""
        self.tails.append(Tail(path, progress))

    def take(self) -> Iterator[Row]:
        """Read what was recorded since the last call. Yields the rows that are new or changed, each as often as it changed.

        Raises: CaptureError: if a file is no capture.
        """
        while records := self._records():
            for record, capture in records:
                yield from self._transcriber.feed(record, capture)
            self._close_ended()
        yield from self._ended()
        for info, tail in zip(self.transcript.captures, self.tails, strict=False):
            is_live = not tail.over and tail.path != STDIN and info.header is not None
            info.now_ns = now_ns(info) if is_live else None

    def close(self) -> None:
        """Close the files."""
        for tail in self.tails:
            if not tail.over:
                tail.close()

    def _records(self) -> list[tuple[Record, int]]:
        """Read new records: of one capture a part at a time; of several all, in the order of their common clock."""
        read: list[tuple[Record, int]] = []
        for capture, tail in enumerate(self.tails):
            while not tail.over and (records := tail.read()):
                if isinstance(records[0], Header):
                    self._transcriber.feed(records[0], capture)  # so that the shift of its clock is known
                read.extend((record, capture) for record in records)
                if len(self.tails) == 1:
                    return read
        captures = self.transcript.captures
        shifts_ns = [capture.shift_ns for capture in captures] + [0] * (len(self.tails) - len(captures))
        read.sort(key=lambda item: item[0].at_ns + shifts_ns[item[1]])
        return read

    def _close_ended(self) -> None:
        """Close the files whose `end` record was read."""
        for tail, capture in zip(self.tails, self.transcript.captures, strict=False):
            if capture.closed and not tail.over:
                tail.close()

    def _ended(self) -> Iterator[Row]:
        """Read the rest of captures that are no longer recorded, and close their transcripts."""
        for capture, tail in enumerate(self.tails):
            if tail.over or not tail.ended():
                continue
            while records := tail.read():  # recorded since the last read
                yield from self._feed(records, capture)
            yield from self._feed(tail.close(), capture)
            yield from self._transcriber.close(capture)

    def _feed(self, records: list[Record], capture: int) -> Iterator[Row]:
        for record in records:
            yield from self._transcriber.feed(record, capture)

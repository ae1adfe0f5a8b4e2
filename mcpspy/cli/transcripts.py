"""From WHAT to a transcript: captures read whole, or a transcript that grows with them. For the verbs that look.

A capture that a tap still writes is never closed here: what it has not answered yet is pending.
"""

import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from select import select

import click

from ..capture.file.reader import CHUNK_BYTES, Reader, read
from ..capture.store.address import STDIN, resolve
from ..capture.store.folder import is_live
from ..errors import AddressError
from ..records import Header, Record
from ..transcript.findings.run import findings
from ..transcript.model import Numbered, Row, Transcript
from ..transcript.transcribe import Transcriber, transcribe

DEFAULT_WHAT = "@"


class WhatCommand(click.Command):
    """A verb that takes WHATs: `-:7` is row 7 of standard input, and no option."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put such WHATs behind the options, where click takes nothing for one."""
        end = args.index("--") if "--" in args else len(args)
        rows = [one for one in args[:end] if one.startswith(f"{STDIN}:")]
        others = [one for one in args[:end] if not one.startswith(f"{STDIN}:")]
        return super().parse_args(ctx, [*others, "--", *rows, *args[end + 1 :]])


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """What the command line asked for: captures, and rows of the transcript they make together."""

    paths: tuple[str, ...]
    rows: tuple[int, int] | None = None


def chosen(whats: tuple[str, ...], *, skips_replays: bool = False) -> Chosen:
    """What several WHATs name together; `@` may mean the newest recording but for replays. Raises: AddressError."""
    addresses = [resolve(one, skips_replays=skips_replays) for one in whats or (DEFAULT_WHAT,)]
    rows = [one.rows for one in addresses if one.rows is not None]
    if rows and len(addresses) > 1:
        raise AddressError(" ".join(whats), "rows can be asked of one capture or recording at a time; name that one alone")
    return Chosen(
        paths=tuple(dict.fromkeys(path for one in addresses for path in one.captures)), rows=rows[0] if rows else None
    )


def transcript_of(paths: tuple[str, ...], *, keeps_frames: bool = False) -> tuple[Transcript, bool]:
    """The transcript of captures as they are now, and whether one of them is still being recorded.

    `keeps_frames` is for who looks at HTTP as it was on the wire.
    """
    if not any(path != STDIN and is_live(path) for path in paths):
        captures = (_standard_input() if path == STDIN else read(path) for path in paths)
        return transcribe(*captures, keeps_frames=keeps_frames), False
    growing = Growing(keeps_frames=keeps_frames)
    for path in paths:
        growing.add(path)
    for _ in growing.take():
        pass
    growing.transcript.findings = findings(growing.transcript)
    return growing.transcript, growing.live


def row_of(transcript: Transcript, what: str, number: int) -> Numbered:
    """The row with this number. Raises: AddressError: if there is none."""
    row = transcript.row(number)
    if row is None:
        last = max((one.row for one in transcript.rows if isinstance(one, Numbered)), default=0)
        raise AddressError(what, f"there is no row {number}; " + (f"the last one is {last}" if last else "there are none yet"))
    return row


def _standard_input() -> Iterator[Record]:
    reader = Reader("standard input")
    while data := sys.stdin.buffer.read(CHUNK_BYTES):
        yield from reader.feed(data)
    yield from reader.close()


class Tail:
    """The end of one capture's file. `over` says that nothing more will come of it."""

    __slots__ = ("_fd", "_reader", "over", "path")

    def __init__(self, path: str) -> None:
        self.path = path
        self.over = False
        self._fd = 0 if path == STDIN else os.open(path, os.O_RDONLY)
        self._reader = Reader("standard input" if path == STDIN else path)

    def read(self) -> list[Record]:
        """The next records, of a MB at most; none where there are none now."""
        is_pipe = self.path == STDIN
        if is_pipe and not select([self._fd], [], [], 0)[0]:
            return []
        while data := os.read(self._fd, CHUNK_BYTES):
            records = self._reader.feed(data)
            if records or is_pipe:
                return records
        return self.close() if is_pipe else []

    def ended(self) -> bool:
        """Whether nobody records into it any more."""
        return self.path != STDIN and not is_live(self.path)

    def close(self) -> list[Record]:
        """Let go of the file. What is torn at its end is said."""
        self.over = True
        if self._fd:
            os.close(self._fd)
        return self._reader.close()


class Growing:
    """A transcript of captures that may still be written. Its captures are numbered as they are added."""

    __slots__ = ("_transcriber", "tails")

    def __init__(self, *, keeps_frames: bool = False) -> None:
        self._transcriber = Transcriber(keeps_frames=keeps_frames)
        self.tails: list[Tail] = []

    @property
    def transcript(self) -> Transcript:
        """What is known by now."""
        return self._transcriber.transcript

    @property
    def live(self) -> bool:
        """Whether more may come."""
        return not all(tail.over for tail in self.tails)

    def add(self, path: str) -> None:
        """Read this capture too. Raises: OSError."""
        self.tails.append(Tail(path))

    def take(self) -> Iterator[Row]:
        """The rows that are new or changed since the last time, each as often as it changed.

        Raises: CaptureError: if a file turns out to be no capture.
        """
        while records := self._records():
            for record, capture in records:
                yield from self._transcriber.feed(record, capture)
            self._close_ended()
        yield from self._ended()

    def _records(self) -> list[tuple[Record, int]]:
        """What all captures have for now. Of several everything, in the order of their common clock; of one as much as is well."""
        found: list[tuple[Record, int]] = []
        for capture, tail in enumerate(self.tails):
            while not tail.over and (records := tail.read()):
                if isinstance(records[0], Header):
                    self._transcriber.feed(records[0], capture)  # from here on the shift of its clock is known
                found.extend((record, capture) for record in records)
                if len(self.tails) == 1:
                    return found
        captures = self.transcript.captures
        found.sort(key=lambda one: one[0].at_ns + (captures[one[1]].shift_ns if one[1] < len(captures) else 0))
        return found

    def _close_ended(self) -> None:
        """Let go of the files whose `end` was read."""
        for tail, source in zip(self.tails, self.transcript.captures, strict=False):
            if source.closed and not tail.over:
                tail.close()

    def _ended(self) -> Iterator[Row]:
        """The last words of captures whose tap is gone."""
        for capture, tail in enumerate(self.tails):
            if tail.over or not tail.ended():
                continue
            while records := tail.read():  # what came between the last look and the end
                yield from self._feed(records, capture)
            yield from self._feed(tail.close(), capture)
            yield from self._transcriber.close(capture)

    def _feed(self, records: list[Record], capture: int) -> Iterator[Row]:
        for record in records:
            yield from self._transcriber.feed(record, capture)

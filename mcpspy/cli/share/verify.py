"""`mcpspy export share --verify`: what slipped through, where, and which option takes it out."""

import re
import sys
from collections.abc import Iterable, Iterator

import click

from ...capture.file.reader import CHUNK_BYTES, Reader, read
from ...capture.store.address import STDIN
from ...records import Record
from ...sharing.verify import Leak, LeakFinder
from ...transcript.http.transaction import Transaction
from ...transcript.model import Exchange, ModelCall, UnpairedMessage
from ...views.store.leaks import CaptureLeaks, LeakLine, leaks_json, report_lines
from ..screen import show_lines, width
from ..transcripts import transcript_of
from .environment import people, telling_variables


def report(paths: Iterable[str], keep: tuple[re.Pattern[str], ...], *, as_json: bool) -> int:
    """Look into captures, print what was found, and return the exit status: 1 if that is anything. Raises: CaptureError, OSError."""
    found = [_looked_into(path, keep) for path in paths]
    if as_json:
        click.echo(leaks_json(found), nl=False)
    else:
        show_lines(line for one in found for line in report_lines(one, width=width()))
    return int(any(one.leaks for one in found))


def _looked_into(path: str, keep: tuple[re.Pattern[str], ...]) -> CaptureLeaks:
    lookout = LeakFinder(environment=telling_variables(), people=people(), keep=keep)
    leaks: list[Leak] = []
    for record in _records(path):
        leaks += lookout.feed(record)
    leaks += lookout.close()
    rows = _rows(path) if leaks and path != STDIN else {}
    return CaptureLeaks(
        path=path,
        leaks=tuple(
            LeakLine(
                record=one.number,
                row=rows.get(one.number, 0),
                where=one.where,
                kind=one.kind,
                name=one.name,
                shown=one.shown,
                length=one.length,
                option=one.option,
            )
            for one in leaks
        ),
        more=lookout.more,
        unread=lookout.unread,
    )


def _records(path: str) -> Iterator[Record]:
    if path != STDIN:
        yield from read(path)
        return
    reader = Reader("standard input")
    while data := sys.stdin.buffer.read(CHUNK_BYTES):
        yield from reader.feed(data)
    yield from reader.close()


def _rows(path: str) -> dict[int, int]:
    """The row that each record belongs to, by its number."""
    transcript, _ = transcript_of((path,))
    found: dict[int, int] = {}
    for row in transcript.rows:
        match row:
            case Exchange():
                found.update((message.number, row.row) for message in row.messages)
            case UnpairedMessage():
                found[row.message.number] = row.row
            case Transaction() | ModelCall():
                transaction = row.transaction if isinstance(row, ModelCall) else row
                streams = (transaction.request, transaction.response)
                found.update((one.opened.number, row.row) for one in streams if one is not None)
    return found

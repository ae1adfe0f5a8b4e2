"""Secrets that are left in captures, where they are, and the option that removes each: for `export share`, and its `--verify`."""

import re
from collections.abc import Iterable

import click

from ...records import Record
from ...sharing.verify import Leak, LeakFinder
from ...transcript.http.transaction import Transaction
from ...transcript.model import Exchange, ModelCall, UnpairedMessage
from ...views.text.line import plain
from ...views.verification import CaptureLeaks, LeakLine, leaks_json, report_lines
from ..fifo import named_file
from ..screen import Screen, say
from ..transcripts import transcript_of_file
from .environment import people, suspicious_variables

MOST_LISTED = 10
"""Of the leaks that nobody asked for, so many values are listed."""


def report(captures: list[CaptureLeaks], *, as_json: bool) -> int:
    """Print the leaks of captures. Returns the exit status: 1 if there are any."""
    if as_json:
        click.echo(leaks_json(captures), nl=False)
    else:
        screen = Screen()
        screen.lines(line for capture in captures for line in report_lines(capture, width=screen.width))
    return int(any(capture.leaks for capture in captures))


def warn(captures: list[CaptureLeaks]) -> int:
    """Print the leaks of captures to stderr. Returns the exit status: 1 if any is of a known kind of secret."""
    screen = Screen()
    for capture in captures:
        for line in report_lines(capture, width=None, most=MOST_LISTED) if capture.leaks else ():
            say(screen.letters(plain(line)))
    return int(any(capture.known for capture in captures))


def leaks_of(path: str, records: Iterable[Record], keep: tuple[re.Pattern[str], ...], *, has_rows: bool) -> CaptureLeaks:
    """Search the records of a capture. With `has_rows`, its file is read again for the rows of leaks.

    Raises: CaptureError, OSError.
    """
    finder = LeakFinder(environment=suspicious_variables(), people=people(), keep=keep)
    leaks: list[Leak] = []
    for record in records:
        leaks += finder.feed(record)
    leaks += finder.close()
    rows = _rows(path) if leaks and has_rows else {}
    return CaptureLeaks(
        path=named_file(path),
        leaks=tuple(
            LeakLine(
                record=leak.number,
                row=rows.get(leak.number),
                where=leak.where,
                kind=leak.kind,
                name=leak.name or None,
                shown=leak.shown,
                length=leak.length,
                option=leak.option,
                known=leak.is_known,
            )
            for leak in leaks
        ),
        known=finder.known,
        more=finder.more,
        unread=finder.unread,
    )


def _rows(path: str) -> dict[int, int]:
    """Map the numbers of records to their rows."""
    transcript = transcript_of_file(path)
    by_record: dict[int, int] = {}
    for row in transcript.rows:
        match row:
            case Exchange():
                by_record.update((message.number, row.row) for message in row.messages)
            case UnpairedMessage():
                by_record[row.message.number] = row.row
            case Transaction() | ModelCall():
                transaction = row.transaction if isinstance(row, ModelCall) else row
                streams = (transaction.request, transaction.response)
                by_record.update((stream.opened.number, row.row) for stream in streams if stream is not None)
    return by_record

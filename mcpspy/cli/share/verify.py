"""`mcpspy export share --verify`: secrets that are left in captures, where they are, and the option that removes each."""

import re
from collections.abc import Iterable

import click

from ...capture.store.address import STDIN
from ...sharing.verify import Leak, LeakFinder
from ...transcript.http.transaction import Transaction
from ...transcript.model import Exchange, ModelCall, UnpairedMessage
from ...views.store.leaks import CaptureLeaks, LeakLine, leaks_json, report_lines
from ..screen import show_lines, width
from ..transcripts import records_of, transcript_of
from .environment import people, suspicious_variables


def report(paths: Iterable[str], keep: tuple[re.Pattern[str], ...], *, as_json: bool) -> int:
    """Search captures, and print the leaks. Returns the exit status: 1 if there are any. Raises: CaptureError, OSError."""
    captures = [_search(path, keep) for path in paths]
    if as_json:
        click.echo(leaks_json(captures), nl=False)
    else:
        show_lines(line for capture in captures for line in report_lines(capture, width=width()))
    return int(any(capture.leaks for capture in captures))


def _search(path: str, keep: tuple[re.Pattern[str], ...]) -> CaptureLeaks:
    finder = LeakFinder(environment=suspicious_variables(), people=people(), keep=keep)
    leaks: list[Leak] = []
    for record in records_of(path):
        leaks += finder.feed(record)
    leaks += finder.close()
    rows = _rows(path) if leaks and path != STDIN else {}
    return CaptureLeaks(
        path=path,
        leaks=tuple(
            LeakLine(
                record=leak.number,
                row=rows.get(leak.number, 0),
                where=leak.where,
                kind=leak.kind,
                name=leak.name,
                shown=leak.shown,
                length=leak.length,
                option=leak.option,
            )
            for leak in leaks
        ),
        more=finder.more,
        unread=finder.unread,
    )


def _rows(path: str) -> dict[int, int]:
    """Map the numbers of records to their rows."""
    transcript, _ = transcript_of((path,))
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

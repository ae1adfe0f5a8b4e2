"""The rows that a command line of `mcpspy export` selects, and where the text of a format goes."""

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from shlex import quote
from typing import Any, NamedTuple, TextIO

from ...capture.store.folder import EXTENSION, captures_folder
from ...transcript.http.transaction import Transaction
from ...transcript.model import Exchange, ModelCall, Row, Transcript, UnpairedMessage
from ..fifo import named_file
from ..filter_option import combined_filter, matching_rows
from ..transcripts import select_captures, transcript_of


class ExportRequest(NamedTuple):
    """A command line of `mcpspy export FORMAT`; `options` has the values of the format's own options."""

    what: tuple[str, ...]
    filters: tuple[str, ...]
    output: str | None
    options: dict[str, Any]


class RowSelection(NamedTuple):
    """Rows of a transcript, and the captures that it was made of."""

    transcript: Transcript
    rows: list[Row]
    paths: tuple[str, ...]


def select_rows(request: ExportRequest, *, keeps_frames: bool = False) -> RowSelection:
    """Read the captures that a request names, and select its rows. Raises: AddressError, CaptureError, FilterError; OSError."""
    condition = combined_filter(request.filters)
    captures = select_captures(request.what)
    transcript, _ = transcript_of(captures, keeps_frames=keeps_frames)
    rows = matching_rows(condition, transcript, captures.rows_in(transcript))
    return RowSelection(transcript, rows, captures.paths)


def shell_names(paths: Iterable[str]) -> list[str]:
    """Name captures for a command line, quoted for a shell: those of the store by their names there, others by their paths."""
    folder = captures_folder()
    return [
        quote(os.path.basename(path).removesuffix(EXTENSION) if os.path.dirname(path) == folder else path)
        for path in map(named_file, paths)
    ]


def transactions_of(selection: RowSelection) -> list[Transaction]:
    """Collect the HTTP transactions that carried the selected rows, in the order in which they began."""
    transactions: dict[tuple[int, int], Transaction] = {}
    for row in selection.rows:
        if isinstance(row, Exchange | UnpairedMessage | Transaction | ModelCall):
            for transaction in selection.transcript.captures[row.capture].transactions_of(row):
                transactions[transaction.capture, transaction.number] = transaction
    return sorted(transactions.values(), key=lambda transaction: (transaction.at_ns, transaction.capture, transaction.number))


def write(texts: Iterable[str], output: str | None) -> None:
    """Write texts, which have their line ends, to standard output or to the file at `output`. Raises: OSError."""
    with _opened(output) as file:
        file.writelines(texts)


@contextmanager
def _opened(path: str | None) -> Iterator[TextIO]:
    """Open standard output, or the file at `path` anew."""
    if path is None or path == "-":
        yield sys.stdout
        return
    with open(path, "w", encoding="utf-8", newline="\n") as file:
        yield file

"""Captures read without their secrets, as `export share` would copy them: for text that is pasted somewhere."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

from ...capture.store.address import STDIN
from ...capture.store.folder import key
from ...errors import ShareError
from ...sharing.finder import FinderOptions
from ...sharing.known import KnownValues
from ...transcript.transcribe import transcribe
from ...views.timeline.timeline import rows_between
from ..filter_option import combined_filter, matching_rows
from ..share.copy import Copier, Original, Pseudonyms
from ..share.environment import people, secret_variables
from ..transcripts import row_of, select_captures
from .selection import RowSelection

if TYPE_CHECKING:
    from ...transcript.model import Transcript
    from .selection import ExportRequest


def select_masked_rows(request: ExportRequest) -> tuple[RowSelection, bool]:
    """Select the rows of a request from masked captures. Returns them, and whether the request selects some rows only.

    Raises: AddressError, CaptureError, FilterError, ShareError; OSError.
    """
    condition = combined_filter(request.filters)
    captures = select_captures(request.what)
    transcript = _masked(captures.paths)
    if captures.rows is not None:
        row_of(transcript, " ".join(request.what), captures.rows[0])
    rows = matching_rows(condition, transcript, rows_between(transcript.rows, captures.rows))
    return RowSelection(transcript, rows, captures.paths), captures.rows is not None or condition is not None


def _masked(paths: tuple[str, ...]) -> Transcript:
    """Read captures with pseudonyms in place of secrets, and of words that identify the user."""
    if STDIN in paths:
        raise ShareError("standard input can be read only once, and masking reads it twice. Write it to a file first")
    pseudonyms = Pseudonyms(key(), same_key=False)
    known = KnownValues(pseudonyms)
    for _, value in secret_variables():
        known.add(value)
    for _, value in people():
        known.add(value, "personal", telling=True)
    copier = Copier(FinderOptions(pseudonym=pseudonyms, personal=True), known, pseudonyms)
    with ExitStack() as files:
        originals = [Original(files.enter_context(open(path, "rb")), path) for path in paths]
        for original in originals:
            copier.learn(original)
        copier.learned()
        copies = [copier.records(original) for original in originals]
        if len(copies) > 1:  # then they are read in turns, and a copier reads one original at a time
            return transcribe(*map(list, copies))
        return transcribe(*copies)

"""Captures read without their secrets, as `export share` would copy them: for text that is pasted somewhere."""

from contextlib import ExitStack

from ...capture.store.address import STDIN
from ...errors import ShareError
from ...transcript.model import Transcript
from ...transcript.transcribe import transcribe
from ..credential_search import CredentialSearch
from ..filter_option import combined_filter, matching_rows
from ..share_copy import Original, copier_of
from ..transcripts import rows_of_clients, select_captures
from .selection import ExportRequest, RowSelection


def select_masked_rows(request: ExportRequest) -> tuple[RowSelection, bool]:
    """Select the rows of a request from masked captures. Returns them, and whether the request selects some rows only.

    Raises: AddressError, CaptureError, FilterError, ShareError; OSError.
    """
    condition = combined_filter(request.filters)
    captures = select_captures(request.what)
    transcript = rows_of_clients(_masked(captures.paths), captures)
    rows = matching_rows(condition, transcript, captures.rows_in(transcript))
    return RowSelection(transcript, rows, captures.paths), captures.rows is not None or condition is not None


def _masked(paths: tuple[str, ...]) -> Transcript:
    """Read captures with pseudonyms in place of secrets, and of words that identify the user."""
    if STDIN in paths:
        raise ShareError("standard input can be read only once, and masking reads it twice. Write it to a file first")
    copier = copier_of(personal=True)
    with ExitStack() as files:
        originals = [Original(files.enter_context(open(path, "rb")), path) for path in paths]
        for original in originals:
            copier.learn(original)
        copier.learned()
        copies = [copier.records(original) for original in originals]
        if len(copies) > 1:  # then they are read in turns, and a copier reads one original at a time
            return transcribe(*map(list, copies), credentials=CredentialSearch())
        return transcribe(*copies, credentials=CredentialSearch())

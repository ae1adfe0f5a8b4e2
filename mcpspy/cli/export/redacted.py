"""Captures read without what is secret in them, as `export share` would write them: for what is pasted somewhere."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

from ...capture.store.address import STDIN
from ...capture.store.folder import key
from ...errors import ShareError
from ...sharing.finder import FinderOptions
from ...sharing.known import KnownValues
from ...transcript.transcribe import transcribe
from ..share.copy import Copier, Original, Pseudonyms
from ..share.environment import people, secret_variables

if TYPE_CHECKING:
    from ...transcript.model import Transcript


def masked(paths: tuple[str, ...], *, keeps_frames: bool = False) -> Transcript:
    """The transcript of captures in which secrets, and who the user is, became pseudonyms.

    Raises: ShareError, CaptureError; OSError.
    """
    if STDIN in paths:
        raise ShareError("standard input can be read only once, and masking takes two passes. Write it to a file first")
    pseudonyms = Pseudonyms(key(), same_key=False)
    known = KnownValues(pseudonyms)
    for _, value in secret_variables():
        known.add(value)
    for _, value in people():
        known.add(value, "personal", telling=True)
    copier = Copier(FinderOptions(stand_in=pseudonyms, personal=True), known, pseudonyms)
    with ExitStack() as files:
        originals = [Original(files.enter_context(open(path, "rb")), path) for path in paths]
        for original in originals:
            copier.learn(original)
        copier.learned()
        copies = [copier.records(original) for original in originals]
        if len(copies) > 1:  # which are read by turns then
            return transcribe(*map(list, copies), keeps_frames=keeps_frames)
        return transcribe(*copies, keeps_frames=keeps_frames)

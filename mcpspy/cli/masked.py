"""Captures read without what is secret in them, as `export share` would write them: for what is pasted somewhere."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from typing import TYPE_CHECKING

from ..capture.address import STDIN
from ..capture.reader import CHUNK_BYTES, Reader
from ..capture.store import key
from ..errors import ShareError
from ..sharing.finder import Wanted
from ..sharing.known import Known
from ..transcript.transcribe import transcribe
from .share_copy import Copier, Original, Pseudonyms
from .share_world import people, secret_variables

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO

    from ..records import Record
    from ..transcript.model import Transcript


def masked(paths: tuple[str, ...], *, keeps_frames: bool = False) -> Transcript:
    """The transcript of captures in which secrets, and who the user is, became pseudonyms.

    Raises: ShareError, CaptureError; OSError.
    """
    if STDIN in paths:
        raise ShareError("standard input can be read only once, and masking takes two passes. Write it to a file first")
    pseudonyms = Pseudonyms(key(), same_key=False)
    known = Known(pseudonyms)
    for _, value in secret_variables():
        known.add(value)
    for _, value in people():
        known.add(value, "personal", telling=True)
    copier = Copier(Wanted(stand_in=pseudonyms, personal=True), known, pseudonyms)
    with ExitStack() as files:
        originals = [Original(files.enter_context(open(path, "rb")), path) for path in paths]
        for original in originals:
            copier.learn(original)
        copier.learned()
        copies: list[Iterator[Record]] = []
        for original in originals:
            copy = files.enter_context(tempfile.TemporaryFile())
            copier.copy(original, copy, original.name)
            copies.append(_read(copy, original.name))
        return transcribe(*copies, keeps_frames=keeps_frames)


def _read(file: BinaryIO, name: str) -> Iterator[Record]:
    reader = Reader(name)
    file.seek(0)
    while chunk := file.read(CHUNK_BYTES):
        yield from reader.feed(chunk)
    yield from reader.close()

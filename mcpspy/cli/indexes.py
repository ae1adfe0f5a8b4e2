"""Indexes of large captures in the store: used where there is one, written when a command is over that has read a capture whole."""

from __future__ import annotations

import os

from .. import __version__
from ..capture.file.reader import read
from ..capture.store.folder import INDEX_EXTENSION, captures_folder
from ..capture.store.quota import quota_bytes, store_size
from ..index.code import code_word
from ..index.file import identity
from ..index.load import indexed_transcript
from ..transcript.findings.run import knows_hits, seek_credentials
from ..transcript.model import Transcript
from ..transcript.transcribe import transcribe
from .credential_search import CredentialSearch
from .invocation import call_at_end

_ANY_CELLS = 1 << 20


def can_have_index(path: str) -> bool:
    """Return whether a capture is in the store."""
    return os.path.dirname(os.path.abspath(path)) == captures_folder()


class CaptureIndex:
    """The index of a capture, which may not exist yet. Made before the capture is read, so that changes meanwhile are noticed."""

    __slots__ = ("_identity", "_path", "_version")

    def __init__(self, path: str) -> None:
        self._path = path
        self._version = f"{__version__} {code_word()}"
        self._identity = identity(path)

    def transcript(self, *, keeps_frames: bool, all_at_once: bool, recounts: bool) -> Transcript | None:
        """Return the transcript of the capture from its index; None if it has none that can be used.

        `all_at_once` is for those who look at each row more than once, or compare rows by identity, `recounts` for those who count
        the findings of some rows.
        """

        def whole() -> Transcript:
            return transcribe(read(self._path), keep_frames=keeps_frames, credentials=CredentialSearch())

        transcript = indexed_transcript(self._path, self._version, whole, keeps_frames=keeps_frames)
        if transcript is not None and recounts and not knows_hits(transcript):
            return None
        if transcript is not None:
            seek_credentials(transcript, CredentialSearch())
        if transcript is not None and all_at_once:
            transcript.rows = list(transcript.rows)
        return transcript

    def write_later(self, transcript: Transcript) -> None:
        """Write the index from the transcript of the whole capture, when the command is over."""
        call_at_end(lambda: self._write(transcript))

    def _write(self, transcript: Transcript) -> None:
        from ..index.build import write_index
        from ..views.timeline.timeline import row_widths

        if self._identity is None:
            return
        last_row, last_ns, longest_id, plain = row_widths(transcript.rows, _ANY_CELLS, with_params=False)
        *_, with_params = row_widths(transcript.rows, _ANY_CELLS, with_params=True)
        widths = last_row, last_ns, longest_id, plain, with_params
        is_written = write_index(self._path, transcript, self._identity, self._version, widths)
        max_bytes = quota_bytes()
        if is_written and max_bytes is not None and store_size()[1] > max_bytes:
            os.unlink(self._path + INDEX_EXTENSION)

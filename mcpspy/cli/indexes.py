"""Indexes of large captures in the store: used where there is one, written when a command is over that has read a capture whole.

`mcpspy check` leaves its findings beside them, for those who look for fewer.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence

from .. import __version__
from ..capture.file.reader import CHUNK_BYTES, Reader, read
from ..capture.store.folder import INDEX_EXTENSION, captures_folder, is_live
from ..capture.store.quota import quota_bytes, store_size
from ..index.checked import EXTENSION, Checked, read_checked, write_checked
from ..index.code import code_word
from ..index.file import identity, whole_lines
from ..index.load import indexed_transcript
from ..transcript.findings.finders import CHECKED, is_large
from ..transcript.findings.rule import Unchecked
from ..transcript.findings.run import findings, knows_hits, reached_limits, seek_credentials
from ..transcript.model import CaptureInfo, Row, Transcript
from ..transcript.transcribe import Transcriber, transcribe
from .credential_search import CredentialSearch
from .invocation import call_at_end
from .progress import reading

_ANY_CELLS = 1 << 20


def can_have_index(path: str) -> bool:
    """Return whether a capture is in the store."""
    return os.path.dirname(os.path.abspath(path)) == captures_folder()


def _version() -> str:
    return f"{__version__} {code_word()}"


class CheckedFindings:
    """The findings that a check left beside a capture, or will leave. Made before the capture is read, as its index is."""

    __slots__ = ("_checked", "_identity", "_path")

    def __init__(self, path: str) -> None:
        self._path, self._identity = path, identity(path)
        self._checked: Checked | None = None
        if self._identity is not None:
            self._checked = read_checked(path, self._identity, _version())

    @property
    def word(self) -> str:
        """A word for the findings that are there; empty if there are none of the capture as it is."""
        return "" if self._checked is None else self._checked.word

    def take(self, transcript: Transcript) -> None:
        """Give a transcript of the whole capture the findings of the check, if there was one."""
        if self._checked is None:
            return
        transcript.findings = list(self._checked.findings)
        reached_limits(transcript).update(dict.fromkeys(self._checked.unchecked))
        transcript.__dict__[CHECKED] = True

    def leave(self, transcript: Transcript, limits: Iterable[Unchecked]) -> None:
        """Leave the findings of a check with all rules, if the capture has so many messages that others use fewer rules."""
        if self._identity is None or not is_large(transcript):
            return
        if write_checked(self._path, self._identity, _version(), transcript.findings, list(limits)):
            _remove_if_above_quota(self._path + INDEX_EXTENSION + EXTENSION)


def _remove_if_above_quota(written: str) -> None:
    """Remove a file for which the store has no room, if a tap that makes room has not done so."""
    max_bytes = quota_bytes()
    if max_bytes is not None and store_size()[1] > max_bytes:
        try:
            os.unlink(written)
        except FileNotFoundError:
            pass


class CaptureIndex:
    """The index of a capture, which may not exist yet. Made before the capture is read, so that changes meanwhile are noticed.

    One that was made with other findings, before or after a check, is not used: its rows are classified by their findings.
    `now_ns` returns the present for a capture that is still being recorded.
    """

    __slots__ = ("_identity", "_now_ns", "_path", "_version", "checked", "is_live")

    def __init__(self, path: str, now_ns: Callable[[CaptureInfo], int]) -> None:
        self._path = path
        self._now_ns = now_ns
        self.checked = CheckedFindings(path)
        self._version = f"{_version()} {self.checked.word}".rstrip()
        recorded = whole_lines(path) if is_live(path) else None
        self.is_live = recorded is not None
        """True while a tap records into it. Then it is indexed as far as it goes now."""
        self._identity = recorded or identity(path)

    def grown(self, *, keeps_frames: bool) -> Transcript | None:
        """Return the transcript of a capture that has grown since its index was written, without findings; None if that cannot be."""
        if self.checked.word:
            return None  # there are findings of all of it
        from ..index.grown import Now, grown_transcript  # an index of the capture as it is needs nothing of it

        now = Now(self._now_ns if self.is_live else None, _widths)
        return grown_transcript(self._path, _version(), self._reads_whole(keeps_frames), now, keeps_frames=keeps_frames)

    def so_far(self, *, keeps_frames: bool) -> Transcript:
        """Read what was recorded of a capture when this was made. Raises: CaptureError; OSError."""
        left = 0 if self._identity is None else self._identity.size
        transcriber = Transcriber(keep_frames=keeps_frames, credentials=CredentialSearch())
        reader = Reader(self._path)
        with reading((self._path,)) as progress, open(self._path, "rb") as file:
            while data := file.read(min(left, CHUNK_BYTES)):
                left -= len(data)
                transcriber.feed_lines(reader.feed_lines(data))
                progress.add(len(data))
        transcript = transcriber.transcript
        for info in transcript.captures:
            info.now_ns = self._now_ns(info)
        transcript.findings = findings(transcript)
        return transcript

    def _reads_whole(self, keeps_frames: bool) -> Callable[[], Transcript]:
        return lambda: transcribe(read(self._path), keep_frames=keeps_frames, credentials=CredentialSearch())

    def transcript(self, *, keeps_frames: bool, all_at_once: bool, recounts: bool) -> Transcript | None:
        """Return the transcript of the capture from its index; None if it has none that can be used.

        `all_at_once` is for those who look at each row more than once, or compare rows by identity, `recounts` for those who count
        the findings of some rows.
        """
        whole = self._reads_whole(keeps_frames)
        transcript = None if self.is_live else indexed_transcript(self._path, self._version, whole, keeps_frames=keeps_frames)
        if transcript is not None and recounts and (self.checked.word or not knows_hits(transcript)):
            return None  # the hits are not those of all rules
        if transcript is not None:
            seek_credentials(transcript, CredentialSearch())
            self.checked.take(transcript)
        if transcript is not None and all_at_once:
            transcript.rows = list(transcript.rows)
        return transcript

    def write_later(self, transcript: Transcript) -> None:
        """Write the index from the transcript of the whole capture, when the command is over; while it grows, not each time."""
        from ..index.grown import has_recent_index

        if not (self.is_live and has_recent_index(self._path, _version())):
            call_at_end(lambda: self._write(transcript))

    def _write(self, transcript: Transcript) -> None:
        from ..index.build import write_index
        from ..replay.compare.digests import SECTION, digests_entry

        if self._identity is None:
            return
        more = {SECTION: digests_entry}
        if write_index(self._path, transcript, self._identity, self._version, _widths(transcript.rows), more):
            _remove_if_above_quota(self._path + INDEX_EXTENSION)


def _widths(rows: Sequence[Row]) -> tuple[int, int, int, int, int]:
    """Return the widths of `RowFigures` for some rows."""
    from ..views.timeline.timeline import row_widths

    last_row, last_ns, longest_id, plain = row_widths(rows, _ANY_CELLS, with_params=False)
    *_, with_params = row_widths(rows, _ANY_CELLS, with_params=True)
    return last_row, last_ns, longest_id, plain, with_params

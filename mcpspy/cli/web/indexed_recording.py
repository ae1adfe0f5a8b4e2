"""A recording of one large capture that is over and has an index, as rows of the page: the first come before the others are made."""

from __future__ import annotations

from itertools import islice
from typing import Any, Final

from ...capture.store.catalog import Recording
from ...errors import FilterError
from ...lazy_pattern import lazy_pattern
from ...transcript.filter.filter import filter_of, filter_rows
from ...transcript.llm.tool_trips import tool_trips
from ...transcript.model import CaptureInfo, ChannelEvent, Log, ModelCall, Numbered, Row, Transcript
from ...views.page.page import heading, part
from ...views.page.row_details import messages_of_call, row_details
from ...views.page.rows import page_row, progress
from ...views.text.escape import decoded
from ...views.timeline.exchange import messages_of
from ..export.selection import shell_names
from ..transcripts import CaptureSelection, index_of

FIRST_ROWS: Final = 2_000
MORE_ROWS: Final = 20_000
"""So many rows are sent first, and each time after that."""

_UNICODE_ESCAPE: Final = lazy_pattern(r"\\u([0-9a-fA-F]{4})")


class IndexedRecording:
    """The rows of a transcript from an index. The page knows each row by an index, as those of a `GrowingRecording`."""

    def __init__(self, path: str, transcript: Transcript) -> None:
        self._path = path
        self._transcript = transcript
        self._rest = iter(transcript.rows)
        self._most = FIRST_ROWS
        self._indexes: dict[tuple[str, int], int] = {}
        self._is_news = True

    @classmethod
    def of(cls, recording: Recording) -> IndexedRecording | None:
        """Return a recording if its rows can be taken from an index, which is not made here."""
        if len(recording.entries) != 1 or recording.entries[0].process is not None:
            return None
        path = recording.entries[0].path
        index = index_of(CaptureSelection(paths=(path,)))
        transcript = None if index is None else index.transcript(keeps_frames=True, all_at_once=False, recounts=False)
        return None if transcript is None else cls(path, transcript)

    def take(self) -> dict[str, Any] | None:
        """Return the next rows, each after its index, and the heading of the page; None if it has all."""
        rows = list(islice(self._rest, self._most))
        self._most = MORE_ROWS
        if not rows and not self._is_news:
            return None
        self._is_news = False
        (info,) = self._transcript.captures
        lines = []
        for row in rows:
            line = page_row(row, info, flagged=())
            if line is not None:
                lines.append([self._indexes.setdefault(_key(row), len(self._indexes)), *line])
        return {
            "rows": lines,
            "progress": progress(rows),
            "addresses": shell_names([self._path]),
            **heading(self._transcript, live=False),
        }

    def close(self) -> None:
        """Do nothing: the index is closed with the transcript."""

    def row(self, number: int) -> dict[str, Any] | None:
        """Write the row with this number in full; None if there is none."""
        transcript = self._transcript
        row = transcript.row(number)
        trips = tool_trips(transcript) if isinstance(row, ModelCall) else ()
        return None if row is None else row_details(row, transcript, trips)

    def search(self, text: str) -> list[int]:
        """Find the numbers of the rows with this text in a payload, in upper or lower case."""
        lower, (info,) = text.lower(), self._transcript.captures
        return [row.row for row in self._transcript.rows if isinstance(row, Numbered) and contains(row, info, lower)]

    def filter(self, expression: str) -> list[int]:
        """Find the indexes of the rows that a filter lets through; none if it cannot be read."""
        try:
            wanted = filter_of([expression])
        except FilterError:
            return []
        transcript, indexes = self._transcript, self._indexes
        rows = transcript.rows if wanted is None else filter_rows(wanted, transcript, transcript.rows).rows
        return [indexes[key] for key in map(_key, rows) if key in indexes]

    def part(self, name: str) -> Any:
        """Write the `diagram`, `findings` or `numbers` of the transcript."""
        transcript = self._transcript
        transcript.rows = list(transcript.rows)  # views of all rows compare them by identity
        return part(name, transcript, transcript.rows)


def _key(row: Row) -> tuple[str, int]:
    """Return what a row is known by, of which there may be several objects."""
    if isinstance(row, ChannelEvent):
        record = row.record
        return type(record).__name__, getattr(record, "offset", record.number)
    return ("log", row.number) if isinstance(row, Log) else ("row", row.row)


def contains(row: Numbered, capture: CaptureInfo, lower: str) -> bool:
    """Return whether a row has a text, which is in lower case, in a payload."""
    if isinstance(row, ModelCall):
        texts = [str(message.get("text", "")) for message in messages_of_call(row, capture)]
    else:
        texts = [decoded(message.raw) for message in messages_of(row)]
    return any(lower in _without_escapes(text).lower() for text in texts)


def _without_escapes(text: str) -> str:
    """Replace the Unicode escapes of JSON by their characters, as the page shows them."""
    return _UNICODE_ESCAPE.sub(lambda match: chr(int(match[1], 16)), text) if "\\u" in text else text

"""The recordings of the store as `mcpspy web` serves them: a list, a page, and rows that grow while a recording is recorded."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from itertools import islice
from operator import attrgetter
from typing import Any, Final

from ..capture.store.catalog import CatalogEntry, Recording, entry, has_message, recordings
from ..capture.store.folder import EXTENSION, captures_folder
from ..transcript.findings.run import findings
from ..transcript.hops import forwarded_calls
from ..transcript.llm.tool_trips import tool_trips
from ..transcript.model import CaptureInfo, ModelCall, Numbered, Row
from ..views.page.page import heading, live_page, part
from ..views.page.row_details import messages_of_call, row_details
from ..views.page.rows import page_row, progress
from ..views.text.escape import decoded, safe_text
from ..views.text.units import wall_time
from ..views.timeline.exchange import messages_of
from .export.formats import page_files
from .export.selection import shell_names
from .transcripts import GrowingTranscript

MAX_RECORDINGS: Final = 40
"""The number of recordings that the page lists, the newest."""

_UNICODE_ESCAPE: Final = re.compile(r"\\u([0-9a-fA-F]{4})")
_newest_first = attrgetter("begin_ns", "path")


class StoredRecordings:
    """The recordings in the store."""

    def __init__(self) -> None:
        self._files = page_files()
        self._store = CatalogCache()

    def listed(self) -> list[dict[str, Any]]:
        """List the newest recordings: `recording` (its name), `client`, `servers`, `when`, `live`."""
        return list(map(_list_item, self._with_messages()))

    def page(self, recording: str) -> str:
        """Write the page for a recording, or for the newest if the name is empty."""
        name = recording or next(map(_name, self._with_messages(1)), "")
        return "".join(live_page(self._files, recording=name, follows=not recording))

    def open(self, recording: str) -> GrowingRecording | None:
        """Open a recording by its name, to be read from its beginning; None if there is none."""
        return GrowingRecording(recording, self._store) if _paths(recording, self._store.entries()) else None

    def _with_messages(self, limit: int = MAX_RECORDINGS) -> list[Recording]:
        """Find the newest recordings that have a message."""
        newest = recordings(self._store.entries())
        return list(islice((recording for recording in newest if any(map(has_message, recording.entries))), limit))


class GrowingRecording:
    """A recording that may still be recorded, as rows of the page. The page knows each row by an index."""

    def __init__(self, name: str, store: CatalogCache) -> None:
        self._name = name
        self._store = store
        self._growing = GrowingTranscript(keeps_frames=True)
        self._seen: set[str] = set()
        """The files of the store when it was last searched for captures of this recording."""
        self._indexes: dict[int, int] = {}
        """The index of each row, by the row's identity: rows live as long as the transcript."""

    def take(self) -> dict[str, Any] | None:
        """Read rows that are new or changed, each after its index, and the heading of the page; None if nothing happened."""
        self._join()
        was_live = self._growing.live
        changed: dict[int, Row] = {id(row): row for row in self._growing.take()}
        if not changed and was_live == self._growing.live:
            return None
        transcript = self._growing.transcript
        lines = []
        for row in changed.values():
            line = page_row(row, transcript.captures[row.capture], flagged=())
            if line is not None:
                lines.append([self._indexes.setdefault(id(row), len(self._indexes)), *line])
        return {
            "rows": lines,
            "progress": progress(list(changed.values())),
            "addresses": shell_names(tail.path for tail in self._growing.tails),
            **heading(transcript, live=self._growing.live),
        }

    def _join(self) -> None:
        """Add captures of the recording that are new in the store."""
        names = _file_names()
        if names == self._seen:
            return
        captures = self._store.entries()
        if all(capture.header or not capture.live for capture in captures):  # else one has no header yet, and may be of this
            self._seen = names
        known = {tail.path for tail in self._growing.tails}
        for path in _paths(self._name, captures):
            if path not in known:
                with suppress(OSError):  # it was removed just now
                    self._growing.add(path)

    def close(self) -> None:
        """Close the files."""
        for tail in self._growing.tails:
            if not tail.over:
                tail.close()

    def row(self, number: int) -> dict[str, Any] | None:
        """Write the row with this number in full; None if there is none."""
        transcript = self._growing.transcript
        row = transcript.row(number)
        return None if row is None else row_details(row, transcript, tool_trips(transcript))

    def search(self, text: str) -> list[int]:
        """Find the numbers of the rows with this text in a payload, in upper or lower case."""
        lower = text.lower()
        transcript = self._growing.transcript
        return [
            row.row
            for row in transcript.rows
            if isinstance(row, Numbered) and _contains(row, transcript.captures[row.capture], lower)
        ]

    def part(self, name: str) -> Any:
        """Write the `diagram`, `findings` or `numbers` of the transcript so far."""
        transcript = self._growing.transcript
        if len(transcript.captures) > 1:
            transcript.hops = forwarded_calls(transcript)
        if name != "diagram":
            transcript.findings = findings(transcript)
        return part(name, transcript, transcript.rows)


class CatalogCache:
    """The captures of the store; one that has ended and did not change is not read again.

    A page asks once a second. With 1,000 captures that takes 5 ms of processor time instead of 38 ms.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[str, int, int], CatalogEntry] = {}

    def entries(self) -> list[CatalogEntry]:
        """List the captures, the newest first; none if there is no store. Raises: OSError: if the store cannot be read."""
        current = dict[tuple[str, int, int], CatalogEntry]()
        for file in _files():
            capture = self._known.get(file)
            if capture is None or capture.live:
                capture = entry(file[0])
            if capture is not None:
                current[file] = capture
        self._known = current
        return sorted(current.values(), key=_newest_first, reverse=True)


def _files() -> list[tuple[str, int, int]]:
    """List the files of the store: path, size in bytes and time of change in nanoseconds."""
    try:
        with os.scandir(captures_folder()) as folder:
            files = [file for file in folder if file.name.endswith(EXTENSION)]
    except FileNotFoundError:
        return []
    described = []
    for file in files:
        try:
            status = file.stat()
        except OSError:  # it is gone
            continue
        described.append((file.path, status.st_size, status.st_mtime_ns))
    return described


def _contains(row: Numbered, capture: CaptureInfo, lower: str) -> bool:
    if isinstance(row, ModelCall):
        texts = [str(message.get("text", "")) for message in messages_of_call(row, capture)]
    else:
        texts = [decoded(message.raw) for message in messages_of(row)]
    return any(lower in _without_escapes(text).lower() for text in texts)


def _without_escapes(text: str) -> str:
    """Replace the Unicode escapes of JSON by their characters, as the page shows them."""
    return _UNICODE_ESCAPE.sub(lambda match: chr(int(match[1], 16)), text) if "\\u" in text else text


def _paths(name: str, captures: list[CatalogEntry]) -> list[str]:
    """List the captures of the recording with this name."""
    recording = next((recording for recording in recordings(captures) if _name(recording) == name), None)
    return [] if recording is None else [capture.path for capture in recording.entries]


def _file_names() -> set[str]:
    with suppress(FileNotFoundError):
        return set(os.listdir(captures_folder()))
    return set()


def _name(recording: Recording) -> str:
    header = recording.own[0].header
    return header.capture_id if header else ""


def _list_item(recording: Recording) -> dict[str, Any]:
    when = wall_time(recording.begin_ns).strftime("%Y-%m-%d %H:%M:%S")
    return {
        "recording": _name(recording),
        "client": safe_text(recording.client),
        "servers": [safe_text(capture.label) for capture in recording.entries],
        "when": when,
        "live": any(capture.live for capture in recording.entries),
    }

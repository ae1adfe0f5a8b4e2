"""The recordings of the store as `mcpspy web` serves them: a list, a page, and rows that grow while a recording is recorded."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import islice
from math import inf
from time import monotonic
from typing import Any, Final

from ...capture.store.catalog import CatalogEntry, Recording, is_counted, recordings
from ...capture.store.folder import captures_folder
from ...errors import FilterError
from ...lazy_pattern import lazy_pattern
from ...transcript.client_rows import ClientRows
from ...transcript.clients import ClientKey
from ...transcript.filter.filter import FilterMatcher, filter_of
from ...transcript.findings.finders import left_rules
from ...transcript.findings.rule import Finding
from ...transcript.findings.run import findings
from ...transcript.hops import forwarded_calls
from ...transcript.llm.tool_trips import tool_trips
from ...transcript.model import CaptureInfo, Exchange, ModelCall, Numbered, Row, Transcript
from ...views.page.page import heading, live_page, part
from ...views.page.rows import messages_of_call, page_row, progress, row_details
from ...views.text.escape import decoded, safe_text
from ...views.text.units import wall_time
from ...views.timeline.exchange import messages_of
from ..export.formats import page_files
from ..export.selection import shell_names
from ..transcripts import GrowingTranscript, client_keys
from .catalog_cache import CatalogCache

MAX_RECORDINGS: Final = 40
"""The number of recordings that the page lists, the newest."""

FIRST_ROWS: Final = 2_000
"""So many rows are sent first."""

_UNICODE_ESCAPE: Final = lazy_pattern(r"\\u([0-9a-fA-F]{4})")

HEADING_S: Final = 1.0
"""Time between two headings while a call is pending."""


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
        is_known = _named(recording, self._store.entries()) is not None
        return GrowingRecording(recording, self._store) if is_known else None

    def _with_messages(self, limit: int = MAX_RECORDINGS) -> list[Recording]:
        """Find the newest recordings that have a message."""
        newest = recordings(self._store.entries())
        return list(islice((recording for recording in newest if any(map(is_counted, recording.entries))), limit))


class GrowingRecording:
    """A recording that may still be recorded, as rows of the page. The page knows each row by an index."""

    def __init__(self, name: str, store: CatalogCache) -> None:
        self._name = name
        self._store = store
        self._growing = GrowingTranscript(keeps_frames=True)
        self._seen: set[str] = set()
        """The files of the store when it was last searched for captures of this recording."""
        self._clients: dict[str, ClientKey] = {}
        """The client of each capture that others share, by path."""
        self._others: dict[int, Row] = {}
        """Rows that are another client's, or of a connection that is not known yet."""
        self._indexes: dict[int, int] = {}
        """The index of each row, by the row's identity: rows live as long as the transcript."""
        self._pending: set[int] = set()
        """The calls without an answer, by identity."""
        self._due_s = inf
        """Time of the next heading: it says how long they have waited."""
        self._rest: Iterator[Row] | None = None
        """Rows that are not taken yet: of a large recording the first are shown while the others are read."""
        self._most = FIRST_ROWS
        self._findings: list[Finding] = []
        """The findings when they were last asked for; the heading counts them."""
        self._checked = False
        """True if these are the findings about all rows that were taken."""

    def take(self) -> dict[str, Any] | None:
        """Read rows that are new or changed, each after its index, and the heading of the page; None if nothing happened."""
        self._join()
        was_live, was_reading = self._growing.live, self._rest is not None
        changed = self._changed()
        for at, row in changed.items():
            (self._pending.add if isinstance(row, Exchange) and not row.over else self._pending.discard)(at)
        is_due = monotonic() >= self._due_s
        if not changed and was_live == self._growing.live and not is_due and not was_reading:
            return None
        self._due_s = monotonic() + HEADING_S if self._pending else inf
        self._checked = self._checked and not changed and was_live == self._growing.live
        transcript = self._growing.transcript
        lines = []
        for row in self._of_client(changed):
            line = page_row(row, transcript.captures[row.capture], flagged=())
            if line is not None:
                lines.append([self._indexes.setdefault(id(row), len(self._indexes)), *line])
        return {
            "rows": lines,
            "progress": progress([row for at, row in changed.items() if at not in self._others]),
            "addresses": shell_names(tail.path for tail in self._growing.tails),
            **heading(self._transcript, live=self._growing.live and self._rest is None, checked=self._checked),
        }

    def _changed(self) -> dict[int, Row]:
        """Read rows, twice as many each time as before, until nothing is new."""
        self._rest = self._rest or self._growing.take()
        rows = list(islice(self._rest, self._most))
        if len(rows) < self._most:
            self._rest = None
        else:
            self._most *= 2  # for each time the heading counts all rows
        return {id(row): row for row in rows}

    @property
    def _client(self) -> ClientRows | None:
        """The rows of the recording's client; None if no capture is shared."""
        keys = client_keys(self._growing.transcript, self._clients)
        return ClientRows(self._growing.transcript, keys) if keys else None

    @property
    def _transcript(self) -> Transcript:
        """The transcript of the recording's client, with the findings of the last time."""
        transcript = self._growing.transcript if (client := self._client) is None else client.transcript
        transcript.findings = self._findings
        return transcript

    def _of_client(self, changed: dict[int, Row]) -> Iterable[Row]:
        """Select the rows of the recording's client; those of a connection that was not known come when it is."""
        client = self._client
        if client is None:
            return changed.values()
        candidates = {**self._others, **changed}
        self._others = {at: row for at, row in candidates.items() if not client.has(row)}
        return [row for at, row in candidates.items() if at not in self._others]

    def _join(self) -> None:
        """Add captures of the recording that are new in the store."""
        names = _file_names()
        if names == self._seen:
            return
        captures = self._store.entries()
        if not any(map(_may_join, captures)):
            self._seen = names
        known = {tail.path for tail in self._growing.tails}
        recording = _named(self._name, captures)
        for capture in () if recording is None else recording.entries:
            if capture.process is not None:
                self._clients[capture.path] = capture.process.key
            if capture.path not in known:
                with suppress(OSError):  # it was removed just now
                    self._growing.add(capture.path)

    def close(self) -> None:
        """Close the files."""
        self._growing.close()

    def row(self, number: int) -> dict[str, Any] | None:
        """Write the row with this number in full; None if there is none."""
        transcript = self._transcript
        row = transcript.row(number)
        return None if row is None else row_details(row, transcript, tool_trips(transcript))

    def search(self, text: str) -> list[int]:
        """Find the numbers of the rows with this text in a payload, in upper or lower case."""
        lower = text.lower()
        transcript = self._transcript
        return [
            row.row
            for row in transcript.rows
            if isinstance(row, Numbered) and _contains(row, transcript.captures[row.capture], lower)
        ]

    def filter(self, expression: str) -> list[int]:
        """Find the indexes of the rows that a filter lets through; none if it cannot be read."""
        try:
            wanted = filter_of([expression])
        except FilterError:
            return []
        transcript = self._transcript
        matches = (lambda _: True) if wanted is None else FilterMatcher(wanted, transcript).matches
        return [self._indexes[id(row)] for row in transcript.rows if id(row) in self._indexes and matches(row)]

    def part(self, name: str) -> Any:
        """Write the `diagram`, `findings` or `numbers` of the transcript so far."""
        whole = self._growing.transcript
        if len(whole.captures) > 1:
            whole.hops = forwarded_calls(whole)
        if name != "diagram" and (self._pending or not self._checked):
            before = self._checked, self._findings, left_rules(whole)
            self._findings = findings(whole, None if self._client is None else self._client.is_about)
            self._checked = self._rest is None
            self._due_s = self._due_s if before == (self._checked, self._findings, left_rules(whole)) else 0.0
        transcript = self._transcript
        return part(name, transcript, transcript.rows)


def _may_join(capture: CatalogEntry) -> bool:
    """Return whether a capture may become one of a recording: it has no header yet, or is a proxy's, which may get its client."""
    return capture.live and (capture.header is None or capture.is_proxied)


def _named(name: str, captures: list[CatalogEntry]) -> Recording | None:
    """Find the recording with this name."""
    return next((recording for recording in recordings(captures) if name in {capture.id for capture in recording.own}), None)


def _file_names() -> set[str]:
    with suppress(FileNotFoundError):
        return set(os.listdir(captures_folder()))
    return set()


def _name(recording: Recording) -> str:
    return recording.id


def _list_item(recording: Recording) -> dict[str, Any]:
    when = wall_time(recording.begin_ns).strftime("%Y-%m-%d %H:%M:%S")
    return {
        "recording": _name(recording),
        "client": safe_text(recording.given_name or recording.client),
        "servers": [safe_text(capture.label) for capture in recording.entries],
        "when": when,
        "live": any(capture.live for capture in recording.entries),
    }


def _contains(row: Numbered, capture: CaptureInfo, lower: str) -> bool:
    """Return whether a row has a text, which is in lower case, in a payload."""
    if isinstance(row, ModelCall):
        texts = [str(message.get("text", "")) for message in messages_of_call(row, capture)]
    else:
        texts = [decoded(message.raw) for message in messages_of(row)]
    return any(lower in _without_escapes(text).lower() for text in texts)


def _without_escapes(text: str) -> str:
    """Replace the Unicode escapes of JSON by their characters, as the page shows them."""
    return _UNICODE_ESCAPE.sub(lambda match: chr(int(match[1], 16)), text) if "\\u" in text else text

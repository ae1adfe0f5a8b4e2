"""What `mcpspy web` shows: the store's recordings, and one of them as rows of the page, as it grows."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from itertools import islice
from typing import Any, Final

from ..capture.store.catalog import CatalogEntry, Recording, has_message, recordings
from ..capture.store.folder import captures_folder
from ..transcript.findings.run import findings
from ..transcript.llm.tool_trips import tool_trips
from ..transcript.model import CaptureInfo, ModelCall, Numbered, Row
from ..views.page.carried import carried
from ..views.page.listed import listed_row, progress
from ..views.page.model_calls import messages_of_call
from ..views.page.page import heading, live_page, part
from ..views.text.escape import decoded, safe_text
from ..views.text.units import wall_time
from ..views.timeline.exchange import messages_of
from .export.html import page_files
from .export.rows import addresses_of
from .transcripts import Growing
from .web_store import Store

MAX_RECORDINGS: Final = 40
"""So many of the newest are listed."""

_SPELLED: Final = re.compile(r"\\u([0-9a-fA-F]{4})")


class StoredRecordings:
    """The recordings in the store, by names that only a capture's own id makes: nobody names a path here."""

    def __init__(self) -> None:
        self._files = page_files()
        self._store = Store()

    def listed(self) -> list[dict[str, Any]]:
        """The newest recordings: `recording` (its name), `client`, `servers`, `when`, `live`."""
        return list(map(_listed, self._spoken()))

    def page(self, recording: str) -> str:
        """The page for a recording, or for the newest where the name is empty."""
        newest = recording or next((_name(one) for one in self._spoken(1)), "")
        return "".join(live_page(self._files, recording=newest, follows=not recording))

    def open(self, recording: str) -> GrowingRecording | None:
        """A recording by its name, read from its beginning; None if there is none."""
        return GrowingRecording(recording, self._store) if _paths(recording, self._store.entries()) else None

    def _spoken(self, most: int = MAX_RECORDINGS) -> list[Recording]:
        """The newest recordings in which anybody said anything."""
        return list(islice((one for one in recordings(self._store.entries()) if any(map(has_message, one.entries))), most))


class GrowingRecording:
    """A recording that may still be recorded, as rows of the page with numbers by which the page knows them."""

    def __init__(self, name: str, store: Store) -> None:
        self._name = name
        self._store = store
        self._growing = Growing(keeps_frames=True)
        self._seen: set[str] = set()
        """What was in the store when it was last searched for captures of this recording."""
        self._places: dict[int, int] = {}
        """Where the page has each row, by the row's identity: rows stay for as long as the transcript does."""

    def take(self) -> dict[str, Any] | None:
        """Rows that are new or changed, each behind its place; and what stands above them. None if nothing happened."""
        self._join()
        was_live = self._growing.live
        changed: dict[int, Row] = {id(row): row for row in self._growing.take()}
        if not changed and was_live == self._growing.live:
            return None
        transcript = self._growing.transcript
        lines = []
        for row in changed.values():
            line = listed_row(row, transcript.captures[row.capture], flagged=())
            if line is not None:
                lines.append([self._places.setdefault(id(row), len(self._places)), *line])
        return {
            "rows": lines,
            "progress": progress(list(changed.values())),
            "addresses": addresses_of(tail.path for tail in self._growing.tails),
            **heading(transcript, live=self._growing.live),
        }

    def _join(self) -> None:
        """Read those captures of the recording too that came into the store since the last time."""
        names = _names()
        if names == self._seen:
            return
        found = self._store.entries()
        if all(one.header or not one.live for one in found):  # else one is there that has yet to say whose it is
            self._seen = names
        known = {tail.path for tail in self._growing.tails}
        for path in _paths(self._name, found):
            if path not in known:
                with suppress(OSError):  # it was removed just now
                    self._growing.add(path)

    def close(self) -> None:
        """Let go of the files."""
        for tail in self._growing.tails:
            if not tail.over:
                tail.close()

    def row(self, number: int) -> dict[str, Any] | None:
        """What the row with this number carries; None if there is none."""
        transcript = self._growing.transcript
        row = transcript.row(number)
        return None if row is None else carried(row, transcript, tool_trips(transcript))

    def search(self, text: str) -> list[int]:
        """The numbers of the rows that hold a text in a payload, whatever its case."""
        wanted = text.lower()
        transcript = self._growing.transcript
        return [
            row.row
            for row in transcript.rows
            if isinstance(row, Numbered) and _holds(row, transcript.captures[row.capture], wanted)
        ]

    def part(self, name: str) -> Any:
        """The `diagram`, `findings` or `numbers` of what there is by now."""
        transcript = self._growing.transcript
        if name != "diagram":
            transcript.findings = findings(transcript)
        return part(name, transcript, transcript.rows)


def _holds(row: Numbered, source: CaptureInfo, wanted: str) -> bool:
    if isinstance(row, ModelCall):
        texts = [str(one.get("text", "")) for one in messages_of_call(row, source)]
    else:
        texts = [decoded(message.raw) for message in messages_of(row)]
    return any(wanted in _letters(text).lower() for text in texts)


def _letters(text: str) -> str:
    """Text of JSON with letters as letters, however it spells them: so the page shows them, and so they are looked for."""
    return _SPELLED.sub(lambda found: chr(int(found[1], 16)), text) if "\\u" in text else text


def _paths(name: str, captures: list[CatalogEntry]) -> list[str]:
    """Those captures that are of the recording with this name."""
    found = next((one for one in recordings(captures) if _name(one) == name), None)
    return [] if found is None else [one.path for one in found.entries]


def _names() -> set[str]:
    with suppress(FileNotFoundError):
        return set(os.listdir(captures_folder()))
    return set()


def _name(recording: Recording) -> str:
    header = recording.own[0].header
    return header.capture_id if header else ""


def _listed(recording: Recording) -> dict[str, Any]:
    when = wall_time(recording.begin_ns).strftime("%Y-%m-%d %H:%M:%S")
    return {
        "recording": _name(recording),
        "client": safe_text(recording.client),
        "servers": [safe_text(one.label) for one in recording.entries],
        "when": when,
        "live": any(one.live for one in recording.entries),
    }

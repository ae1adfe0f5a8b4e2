"""The recordings of the store, as `mcpspy tui` lists and opens them."""

from __future__ import annotations

from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, Final

from ...capture.store.catalog import Recording, is_counted, recordings
from ...tui.source import ListedRecording
from ...views.text.escape import one_line
from ...views.text.units import wall_time
from ..transcripts import CaptureSelection
from ..web.catalog_cache import CatalogCache
from .sources import GrowingSource, source_of

if TYPE_CHECKING:
    from ...tui.source import RowSource

MAX_RECORDINGS: Final = 40


class StoreDesk:
    """The store."""

    def __init__(self) -> None:
        self._store = CatalogCache()
        self._spoken: set[str] = set()
        """Recordings that are known to have a message."""

    def recordings(self) -> list[ListedRecording]:
        """List the newest recordings that have a message; none if the store cannot be read."""
        try:
            newest = recordings(self._store.entries())
        except OSError:
            return []
        return list(islice((_listed(recording) for recording in newest if self._has_message(recording)), MAX_RECORDINGS))

    def open(self, name: str) -> RowSource | None:
        """Open a recording by its name; None if it is gone."""
        named = self._named(name)
        return None if named is None else source_of(selection_of(named), named.id)

    def join(self, source: RowSource) -> None:
        """Add the captures of its recording that are new in the store to a source that grows."""
        if not isinstance(source, GrowingSource) or not source.name:
            return
        named = self._named(source.name)
        for capture in () if named is None else named.entries:
            with suppress(OSError):  # it was removed just now
                source.join(capture.path)

    def _named(self, name: str) -> Recording | None:
        stored = recordings(self._store.entries())
        return next((item for item in stored if name in {capture.id for capture in item.own}), None)

    def _has_message(self, recording: Recording) -> bool:
        if recording.id not in self._spoken and any(map(is_counted, recording.entries)):
            self._spoken.add(recording.id)
        return recording.id in self._spoken


def selection_of(recording: Recording) -> CaptureSelection:
    """Return the captures of a recording, those that clients share with the client that is meant."""
    clients = {capture.path: capture.process.key for capture in recording.entries if capture.process is not None}
    return CaptureSelection(paths=tuple(capture.path for capture in recording.entries), clients=clients)


def _listed(recording: Recording) -> ListedRecording:
    return ListedRecording(
        name=recording.id,
        client=one_line(recording.given_name or recording.client),
        servers=tuple(one_line(capture.label) for capture in recording.entries),
        when=wall_time(recording.begin_ns).strftime("%m-%d %H:%M"),
        live=any(capture.live for capture in recording.entries),
    )

"""The interface's view of captures: rows that may still come, and the recordings of the store. `cli/` gives in what reads them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from ..transcript.model import Numbered, Row, Transcript


class ListedRecording(NamedTuple):
    """A recording of the store. All texts are safe for a terminal."""

    name: str
    client: str
    servers: tuple[str, ...]
    when: str
    live: bool


class RowSource(Protocol):
    """The captures that are shown."""

    @property
    def transcript(self) -> Transcript:
        """Their transcript so far."""

    @property
    def live(self) -> bool:
        """True if it may still grow."""

    @property
    def paths(self) -> Sequence[str]:
        """The files."""

    @property
    def name(self) -> str:
        """The name of the recording; empty for captures that are none of the store."""

    def take(self) -> list[Row]:
        """Read for a few milliseconds at most. Returns the rows that are new or changed; none once nothing is new."""

    def refresh_findings(self) -> None:
        """Give the transcript the findings about all rows so far."""

    def words(self, row: Numbered | None) -> list[str]:
        """Return the words that address a row, or all of it, on a command line, unquoted."""

    def address(self, row: Numbered) -> str:
        """Return the WHAT of a row in the capture that has it, for any working folder; empty for one that cannot be read again."""

    def close(self) -> None:
        """Close the files."""


class Desk(Protocol):
    """The store."""

    def recordings(self) -> list[ListedRecording]:
        """List the newest recordings, the newest first."""

    def open(self, name: str) -> RowSource | None:
        """Open a recording by its name; None if it is gone."""

    def join(self, source: RowSource) -> None:
        """Add what is new in the store to a source that grows, if it belongs to its recording."""

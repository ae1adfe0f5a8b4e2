"""The captures that tools may read, as the command line gives them in."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

if TYPE_CHECKING:
    from ..replay.compare.compare import Comparison
    from ..transcript.findings.rule import Unchecked
    from ..transcript.model import Row, Transcript
    from ..views.listing import RecordingLine

Mask: TypeAlias = Callable[[str], str]
"""A function that replaces the secrets in a text."""


class SelectedTranscript(NamedTuple):
    """A transcript with its findings; `rows` are those that the WHAT names, `what` is the WHAT without them.

    Its texts have their secrets: a view of rows passes the mask that `mask_of` makes for these rows.
    """

    transcript: Transcript
    rows: Sequence[Row]
    what: str
    live: bool
    mask_of: Callable[[Iterable[Row]], Mask]
    unchecked: Sequence[Unchecked] = ()
    first_row: int | None = None
    """The row that the WHAT names, if it names one alone."""


class SendingPlan(NamedTuple):
    """Something that was not sent yet: the `question` for the user, empty if it changes nothing.

    If it `must_ask`, nothing is sent where the user cannot be asked.
    """

    question: str
    must_ask: bool = False


class ReplayRun(NamedTuple):
    """The outcome of `mcpspy replay`: its exit status, and what it printed."""

    exit: int
    text: str


class LiveRows(Protocol):
    """Rows of captures that may still grow. Its methods may block for a moment."""

    def mask_of(self, rows: Iterable[Row]) -> Mask:
        """Make a mask for texts about rows."""

    def new_rows(self) -> list[tuple[Transcript, Row]]:
        """Return the rows that are new or have changed since the last call, each with its transcript."""

    def close(self) -> None:
        """Close the files."""


class CaptureSource(Protocol):
    """The captures of this user. Its methods may block: they are called in a thread, one at a time."""

    def recordings(self) -> list[RecordingLine]:
        """List the newest recordings."""

    def states(self) -> dict[str, object]:
        """Return a value for each recording, by its id, which differs when the recording has changed."""

    def select(self, what: str, *, all_rules: bool = False) -> SelectedTranscript:
        """Read what a WHAT names. `all_rules` looks for all findings. Raises: McpspyError; OSError."""

    def compare(self, before: str, after: str) -> tuple[Comparison, Mask]:
        """Compare two selections. Raises: McpspyError; OSError."""

    def watch(self, what: str) -> LiveRows:
        """Open captures to wait for what comes. Raises: McpspyError; OSError."""

    def plan(self, tool: str, arguments: dict[str, Any]) -> SendingPlan:
        """Say what to ask the user before a tool sends something. Raises: McpspyError."""

    def call(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Send a request once, and return what `mcpspy call --json` prints. Raises: McpspyError."""

    def replay(self, arguments: dict[str, Any]) -> ReplayRun:
        """Replay a recording to its server, once. Raises: McpspyError."""

    @property
    def mask(self) -> Mask:
        """A mask for texts of no capture, such as errors."""

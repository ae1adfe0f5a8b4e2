"""Other verbs of mcpspy as keys use them: `cli/` gives in what starts them."""

from __future__ import annotations

from collections.abc import Sequence
from shlex import join
from typing import Final, NamedTuple, Protocol

from ..transcript.model import CaptureInfo, Exchange, Message, Numbered, Transcript, UnpairedMessage
from ..views.curl import curl
from ..views.timeline.exchange import first_message
from .tabs import TABS


class VerbResult(NamedTuple):
    """The end of a verb: its exit status, its output, and what it said."""

    status: int
    output: str
    words: str


class Verbs(Protocol):
    """The means to start other verbs, the editor and the browser."""

    def run(self, words: Sequence[str], cwd: str = "") -> VerbResult:
        """Run `mcpspy WORDS` to its end, in a folder. May block."""

    def stop(self) -> None:
        """Ask the verbs that run to end: then `run` returns."""

    def page(self) -> str:
        """Start `mcpspy web`, unless it runs, and return its address; empty if it did not start. May block."""

    def browse(self, address: str) -> None:
        """Open an address in the user's browser, if there is one."""

    def edited(self, text: str) -> str | None:
        """Let the user edit a text; None if it was left as it is."""

    def close(self) -> None:
        """End what was started."""


EXPORTS: Final = (
    ("m", "markdown", "md", "a report on this row, with secrets masked", True),
    ("j", "jsonl", "jsonl", "the rows that are shown, as JSON Lines", False),
    ("h", "html", "html", "the rows that are shown, as a page", False),
    ("s", "svg", "svg", "the rows that are shown, as a sequence diagram", False),
    ("a", "har", "har", "the HTTP of the rows that are shown, as HAR", False),
)
"""Choices of `e`: its key, the format of `mcpspy export`, the file's extension, words, and whether it is about one row."""


def shown_message(row: Numbered, tab: int) -> Message | None:
    """Return the message that the tab shows: the answer under Response, else what the row began with."""
    if isinstance(row, Exchange) and TABS[tab].title == "Response":
        return row.response
    if isinstance(row, Exchange | UnpairedMessage):
        return first_message(row)
    return None


def curl_text(transcript: Transcript, row: Numbered) -> str:
    """Return the curl command that sends a row's request again; empty if it was not HTTP."""
    info: CaptureInfo = transcript.captures[row.capture]
    carried = [transaction for transaction in info.transactions_of(row) if transaction.request is not None]
    return "\n".join(curl(carried[0], info)) if carried else ""


def replay_text(words: Sequence[str]) -> str:
    """Return the command that sends a recording to a server again; the user adds the server."""
    return f"mcpspy replay {join(words)}"

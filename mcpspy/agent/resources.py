"""The resources of `mcpspy mcp`: numbers and diagrams of recordings, and a watch that says which have changed."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from ..errors import AgentToolError
from .budget import MAX_QUOTED, page_of
from .fence import Fence
from .source import CaptureSource, SelectedTranscript

if TYPE_CHECKING:
    from ..transcript.model import Row

KINDS: Final = {"numbers": "how often, how long, what failed, what it costs", "diagram": "the sequence diagram"}
"""The kinds of resources that each recording has, with words for their titles."""

SCHEME: Final = "mcpspy://recording"
WIDTH: Final = 120
MAX_TOKENS: Final = 20_000
MAX_DIAGRAM_ROWS: Final = 200
MAX_LISTED: Final = 10

_uri = re.compile(r"mcpspy://recording/([0-9a-f]{4,8})/(numbers|diagram)")


def listed(source: CaptureSource) -> Iterable[tuple[str, str]]:
    """List the resources of the newest recordings: their URIs and titles."""
    for recording in source.recordings()[:MAX_LISTED]:
        for kind, words in KINDS.items():
            yield f"{SCHEME}/{recording.id}/{kind}", f"Recording {recording.id}: {words}"


def resource_text(source: CaptureSource, uri: str, fence: Fence) -> str:
    """Write a resource. Raises: McpspyError: AgentToolError if there is no such resource; OSError."""
    recording, kind = parsed(uri)
    selected = source.select(f"@{recording}")
    rows = list(selected.rows[-MAX_DIAGRAM_ROWS:]) if kind == "diagram" else []
    lines = list(_diagram(selected, rows) if kind == "diagram" else _numbers(selected))
    shown, rest = page_of(selected.mask_of(rows)("\n".join(lines)).split("\n"), 0, MAX_TOKENS)
    words = f"Recording {recording}: {KINDS[kind]}" + (", still recorded" if selected.live else "")
    more = f"\n{len(lines) - len(shown):,} more lines are left out." if rest is not None else ""
    return f"{words}.\n{fence.around(shown)}{more}"


def parsed(uri: str) -> tuple[str, str]:
    """Read a URI: the id of a recording, and the kind. Raises: AgentToolError."""
    match = _uri.fullmatch(uri)
    if match is None:
        advice = f"Resources are {SCHEME}/ID/numbers and {SCHEME}/ID/diagram."
        raise AgentToolError("There is no such resource", advice, uri[:MAX_QUOTED])
    return match[1], match[2]


def _numbers(selected: SelectedTranscript) -> Iterable[str]:
    from ..views.statistics import statistics_lines
    from ..views.text.line import plain

    return map(plain, statistics_lines(selected.transcript, width=WIDTH, live=selected.live))


def _diagram(selected: SelectedTranscript, rows: list[Row]) -> Iterable[str]:
    from ..views.sequence.ladder import ladder
    from ..views.sequence.layout import diagram
    from ..views.text.line import plain

    if len(selected.rows) > len(rows):
        yield f"The last {len(rows)} of {len(selected.rows):,} rows."
    yield from map(plain, ladder(diagram(selected.transcript, rows), width=WIDTH))


class ChangeWatch:
    """The states of recordings that somebody subscribed to; says which have changed since it was asked last."""

    def __init__(self) -> None:
        self._states: dict[str, object] = {}
        self.uris: dict[str, int] = {}
        """The number of subscriptions to each resource."""

    def subscribe(self, uri: str) -> None:
        """Begin to watch a resource. Raises: AgentToolError: if there is none."""
        parsed(uri)
        self.uris[uri] = self.uris.get(uri, 0) + 1

    def unsubscribe(self, uri: str) -> None:
        """End one subscription."""
        if self.uris.get(uri, 0) > 1:
            self.uris[uri] -= 1
        else:
            self.uris.pop(uri, None)

    def changed(self, states: dict[str, object]) -> list[str]:
        """Return the resources whose recordings have changed. `states` has what changes with each recording, by its id."""
        before, self._states = self._states, states
        changes = []
        for uri in self.uris:
            digits, _ = parsed(uri)
            current = {id: state for id, state in states.items() if id.startswith(digits)}
            if any(id in before and before[id] != state for id, state in current.items()):
                changes.append(uri)
        return changes

"""The captures that `mcpspy mcp` may read: those of the store, and files that its user named. Their secrets are masked in answers."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from time import monotonic
from typing import Any, Final

from ...agent.source import LiveRows, Mask, ReplayRun, SelectedTranscript, SendingPlan
from ...agent.tools import REPLAY
from ...capture.store.address import STDIN
from ...capture.store.catalog import recordings
from ...capture.store.folder import is_live
from ...errors import AddressError, CaptureError
from ...replay.compare.compare import Comparison
from ...transcript.findings.rule import Unchecked
from ...transcript.findings.run import all_findings, unchecked, unrecorded
from ...transcript.model import Log, ModelCall, Numbered, Row, Transcript
from ...views.listing import RecordingLine
from ...views.timeline.exchange import messages_of
from ...views.timeline.model_call import bodies
from ..diff import compared
from ..list import find_recordings
from ..share.copy import Original, copier_of
from ..transcripts import CaptureSelection, GrowingTranscript, select_captures, transcript_of, without_rows
from .agent_sending import planned_call, planned_replay, sent_call, sent_replay
from .catalog_cache import CatalogCache

LEARNED_BYTES: Final = 2_000_000
"""Captures up to this size are searched whole for secrets: a value that is secret in one place is then masked in all."""

MAX_RECORDINGS: Final = 100
KEPT_TRANSCRIPTS: Final = 4
NEWER_S: Final = 1.0
"""Time between two looks for captures that are new, while one is waited for."""


class StoredCaptures:
    """The store, and the files named in `whats`, which are what `@` means if there are any."""

    def __init__(self, whats: tuple[str, ...]) -> None:
        self._whats = whats
        self._catalog = CatalogCache()
        self._known: dict[tuple[object, ...], SelectedTranscript] = {}
        self._masks: dict[tuple[object, ...], Mask] = {}

    @property
    def mask(self) -> Mask:
        """A mask with what this machine's environment and names of members tell."""
        return self.mask_of((), ())

    def recordings(self) -> list[RecordingLine]:
        """List the newest recordings."""
        lines, _, _ = find_recordings(MAX_RECORDINGS)
        return lines

    def states(self) -> dict[str, object]:
        """Return the sizes of each recording's captures."""
        every = recordings(self._catalog.entries())
        return {recording.id: tuple(capture.size_bytes for capture in recording.entries) for recording in every}

    def select(self, what: str, *, all_rules: bool = False) -> SelectedTranscript:
        """Read what a WHAT names, or take what was read before. Raises: McpspyError; OSError."""
        selection = self.selection(what)
        key = (*_state(selection.paths), all_rules)
        known = self._known.pop(key, None) or self._read(selection, all_rules=all_rules)
        if not known.live:
            self._known[key] = known
        while len(self._known) > KEPT_TRANSCRIPTS:
            self._known.pop(next(iter(self._known)))
        rows, number = selection.rows, None
        chosen: Sequence[Row] = known.rows
        if rows is not None:
            chosen = selection.rows_in(known.transcript)
            number = rows[0] if selection.is_one_row else None
        return known._replace(rows=chosen, what=without_rows(what) or what, first_row=number)

    def _read(self, selection: CaptureSelection, *, all_rules: bool) -> SelectedTranscript:
        limits: dict[Unchecked, None] = {}
        transcript, live = transcript_of(selection, keeps_frames=True)
        if all_rules and not live:
            transcript.findings = all_findings(transcript, limits=limits)
        missing = [*limits, *unchecked(transcript), *unrecorded(transcript)]
        return SelectedTranscript(
            transcript,
            transcript.rows,
            "",
            live=live,
            mask_of=partial(self.mask_of, selection.paths),
            unchecked=list(dict.fromkeys(missing)),
        )

    def compare(self, before: str, after: str) -> tuple[Comparison, Mask]:
        """Compare two selections. Raises: McpspyError; OSError."""
        first, second = self.selection(before), self.selection(after)
        comparison = compared(first, second)
        changes = [change for server in comparison.servers for change in server.calls]
        rows: list[Row] = [row for change in changes for row in (change.before, change.after) if row is not None]
        rows += [change.row for server in comparison.servers for change in server.messages]
        return comparison, self.mask_of((*first.paths, *second.paths), rows)

    def watch(self, what: str) -> LiveRows:
        """Open captures to wait for what comes. Raises: McpspyError; OSError."""
        return _Watch(self, what)

    def plan(self, tool: str, arguments: dict[str, Any]) -> SendingPlan:
        """Say what to ask the user before a tool sends something. Raises: McpspyError."""
        if tool == REPLAY:
            return planned_replay(self.selection(arguments["what"]))
        return planned_call(self._named(arguments))

    def call(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Send a request once, and return what `mcpspy call --json` prints. Raises: McpspyError."""
        return sent_call(self._named(arguments))

    def replay(self, arguments: dict[str, Any]) -> ReplayRun:
        """Replay a recording to its server, once. Raises: McpspyError."""
        return sent_replay(self.selection(arguments["what"]), arguments.get("timeout_s", 60))

    def _named(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Give a call the name of its capture for the command line. Raises: AddressError."""
        what = arguments["what"]
        self.selection(what)
        if len(self._whats) == 1 and without_rows(what) == "@":
            what = self._whats[0] + what[1:]
        return {**arguments, "what": what}

    def selection(self, what: str) -> CaptureSelection:
        """Find what a WHAT of an agent names: no file that the user did not name. Raises: AddressError."""
        name, rows = without_rows(what), what.rpartition(":")[2]
        if self._whats and (name == "@" or not what):
            return select_captures(self._whats if what in ("", "@") else (*self._whats, f":{rows}"))
        if _is_path(name or what) and name not in self._whats:
            raise AddressError(what, "only recorded captures can be named, as @, @1 or a label; the tool recordings lists them")
        return select_captures((what,))

    def mask_of(self, paths: Iterable[str], rows: Iterable[Row]) -> Mask:
        """Make a mask that knows the secrets of this machine, of these rows, and of the captures that are not large."""
        small = tuple(path for path in paths if _size(path) <= LEARNED_BYTES)
        key = _state(small)
        if small and key in self._masks:
            return self._masks[key]
        copier = copier_of(personal=True, spares_pseudonyms=True)
        for path in small:
            with suppress(OSError, CaptureError), open(path, "rb") as file:
                copier.learn(Original(file, path))
        copier.learn_payloads(payload for row in rows for payload in _payloads(row))
        copier.learned()
        if small:
            self._masks = {key: copier.masked_text}
        return copier.masked_text


class _Watch:
    """Captures that may grow, and newer ones of the same WHAT."""

    def __init__(self, store: StoredCaptures, what: str) -> None:
        self._store = store
        self._what = what
        self._growing: list[GrowingTranscript] = []
        self._paths: set[str] = set()
        self._looked_s = -NEWER_S

    def mask_of(self, rows: Iterable[Row]) -> Mask:
        """Make a mask for texts about rows."""
        return self._store.mask_of(self._paths, rows)

    def new_rows(self) -> list[tuple[Transcript, Row]]:
        """Return the rows that are new or have changed since the last call."""
        if monotonic() - self._looked_s >= NEWER_S:
            self._look()
        return [(growing.transcript, row) for growing in self._growing for row in growing.take()]

    def _look(self) -> None:
        """Open captures that the WHAT means now."""
        is_first, self._looked_s = self._looked_s < 0, monotonic()
        try:
            paths = [path for path in self._store.selection(self._what).paths if path not in self._paths]
        except AddressError:
            if self._growing:
                raise
            return  # nothing has been recorded yet
        self._paths.update(paths)
        if is_first:  # in one that is over no call will come
            paths = [path for path in paths if is_live(path)]
        if not paths:
            return
        growing = GrowingTranscript(keeps_frames=True)
        for path in paths:
            with suppress(OSError):  # it was removed just now
                growing.add(path)
        self._growing.append(growing)

    def close(self) -> None:
        """Close the files."""
        for growing in self._growing:
            growing.close()


def _is_path(name: str) -> bool:
    return name.startswith(STDIN) or os.sep in name or os.path.exists(name)


def _state(paths: tuple[str, ...]) -> tuple[object, ...]:
    """Return what changes when captures do."""
    return tuple((path, _size(path)) for path in paths)


def _size(path: str) -> int:
    with suppress(OSError):
        return os.path.getsize(path)
    return 0


def _payloads(row: Row) -> Iterator[bytes]:
    """Yield the captured texts of a row."""
    if isinstance(row, Log):
        yield row.raw
    elif isinstance(row, ModelCall):
        yield from (body for _, body in bodies(row))
    elif isinstance(row, Numbered):
        yield from (message.raw for message in messages_of(row))

"""The captures that `mcpspy mcp` may read: those of the store, and files that its user named. Their secrets are masked in answers.

Where its user allows it, requests are sent by `mcpspy call` and `mcpspy replay`. Each runs in a process of its own: it waits,
and has signals to end it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from shlex import join
from time import monotonic
from typing import Any, Final

from ...agent.source import LiveRows, Mask, ReplayRun, SelectedTranscript, SendingPlan
from ...agent.tools import REPLAY
from ...capture.store.address import STDIN
from ...capture.store.catalog import recordings
from ...capture.store.folder import captures_folder, is_live
from ...errors import AddressError, AgentToolError, CaptureError
from ...replay.compare.compare import Comparison
from ...transcript.findings.rule import Unchecked
from ...transcript.findings.run import all_findings, unchecked, unrecorded
from ...transcript.model import Log, ModelCall, Numbered, Row, Transcript
from ...views.listing import RecordingLine
from ...views.text.escape import one_line, without_logins
from ...views.timeline.exchange import messages_of
from ...views.timeline.model_call import bodies
from ..call.live import NOT_SENT
from ..diff import compared
from ..list import find_recordings
from ..share_copy import Original, copier_of
from ..transcripts import CaptureSelection, GrowingTranscript, header_of, select_captures, transcript_of, without_rows
from .catalog_cache import CatalogCache

LEARNED_BYTES: Final = 2_000_000
"""Captures up to this size are searched whole for secrets: a value that is secret in one place is then masked in all."""

MAX_RECORDINGS: Final = 100
KEPT_TRANSCRIPTS: Final = 4
NEWER_S: Final = 1.0
"""Time between two looks for captures that are new, while one is waited for."""

HARMLESS: Final = ("none", "reads")
"""Effects of requests that change nothing."""

WIDTH: Final = "160"
MAX_NAME_LETTERS: Final = 100


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
            return _planned_replay(self.selection(arguments["what"]))
        return _planned_call(self._named(arguments))

    def call(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Send a request once, and return what `mcpspy call --json` prints. Raises: McpspyError."""
        return _sent_call(self._named(arguments))

    def replay(self, arguments: dict[str, Any]) -> ReplayRun:
        """Replay a recording to its server, once. Raises: McpspyError."""
        return _sent_replay(self.selection(arguments["what"]), arguments.get("timeout_s", 60))

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


def _planned_call(arguments: dict[str, Any]) -> SendingPlan:
    """Say what to ask before a call. Raises: McpspyError."""
    planned = _call(arguments, "--dry-run")
    if planned["effect"] in HARMLESS:
        return SendingPlan("")
    name = one_line(f"{planned['method']} {planned['name'] or ''}".rstrip(), MAX_NAME_LETTERS)
    return SendingPlan(f"Let the agent send “{name}”? It may change something: it is not marked as read-only.")


def _sent_call(arguments: dict[str, Any]) -> dict[str, Any]:
    """Send a request once, and return what `mcpspy call --json` prints. Raises: McpspyError."""
    return _call(arguments, "--yes", "--timeout", str(arguments.get("timeout_s", 60)))


def _call(arguments: dict[str, Any], *options: str) -> dict[str, Any]:
    tool, values = arguments.get("tool"), arguments.get("arguments", {})
    if any(text.startswith("-") for text in (tool or "", *values)) or (values and not tool):
        raise AgentToolError("arguments are those of a tool, and no name begins with -", "Name the tool with tool.")
    words = [
        arguments["what"],
        *([tool] if tool else []),
        *(f"{name}:={json.dumps(value)}" for name, value in values.items()),
    ]
    changes = [f"--set={path}={json.dumps(value)}" for path, value in arguments.get("set", {}).items()]
    return _document("call", *words, *changes, *options)


def _planned_replay(selection: CaptureSelection) -> SendingPlan:
    """Say what to ask before a replay. Raises: McpspyError."""
    planned = _document("replay", _replayed(selection), "--dry-run")
    server = planned["target"].get("url") or join(planned["target"].get("argv", ()))
    effects = [message["effect"] for message in planned["sends"] if "effect" in message]
    changing = sum(effect not in HARMLESS for effect in effects)
    verb = "send to" if "url" in planned["target"] else "start"
    words = f"Let the agent {verb} {without_logins(server)}: {len(effects)} requests, {changing} of which may change something?"
    return SendingPlan(words, must_ask=True)


def _sent_replay(selection: CaptureSelection, timeout_s: float) -> ReplayRun:
    """Replay a capture to its recorded server, once. Raises: McpspyError."""
    done = _run("replay", _replayed(selection), "--yes", "--timeout", str(timeout_s))
    return ReplayRun(done.returncode, "\n".join(filter(None, (done.stdout.strip("\n"), done.stderr.strip("\n")))))


def _replayed(selection: CaptureSelection) -> str:
    """Return the WHAT of a replay: a capture that was recorded here. Raises: AgentToolError.

    Another one names a server that somebody else chose.
    """
    if len(selection.paths) != 1:
        raise AgentToolError(f"{len(selection.paths)} servers were recorded", "Name one by its label, as recordings lists it.")
    (path,) = selection.paths
    header = header_of(path)
    if os.path.dirname(os.path.abspath(path)) != captures_folder() or header is None or "imported" in header.tapped:
        raise AgentToolError("Only what mcpspy recorded here is replayed for an agent", "A user can: mcpspy replay.")
    return path if selection.rows is None else f"{path}:{selection.rows[0]}..{selection.rows[1]}"


def _document(*words: str) -> dict[str, Any]:
    """Run a verb, and read the JSON that it prints. Raises: AgentToolError: if it prints none."""
    done = _run(*words, "--json")
    if not done.stdout:
        last = done.stderr.strip().rpartition("mcpspy: ")[2] or f"mcpspy {words[0]} ended with status {done.returncode}"
        sent = "Nothing was sent." if done.returncode == NOT_SENT else "It is not known whether it was sent."
        raise AgentToolError(f"mcpspy {words[0]} did not do this", sent, last)
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def _run(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-P", "-m", "mcpspy", *words],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        env={**os.environ, "COLUMNS": WIDTH, "NO_COLOR": "1"},
        check=False,
    )

"""The recordings of the store, their captures, and programs for a key, as `mcpspy tui` shows, reads and starts them.

A capture is read whole, or as it grows. The programs are other verbs of mcpspy, the user's editor, a browser.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import islice
from time import monotonic
from typing import TYPE_CHECKING, Final

from ..capture.store.address import STDIN
from ..capture.store.catalog import Recording, is_counted, recordings
from ..capture.store.folder import EXTENSION, captures_folder, is_live
from ..transcript.findings.run import findings
from ..transcript.hops import forwarded_calls
from ..transcript.model import Numbered, Row, Transcript
from ..tui.source import ListedRecording
from ..tui.verbs import VerbResult
from ..views.text.escape import one_line
from ..views.text.units import wall_time
from .fifo import named_file
from .transcripts import CaptureSelection, GrowingTranscript, transcript_of
from .web.catalog_cache import CatalogCache

if TYPE_CHECKING:
    from ..tui.source import RowSource

SLICE_S: Final = 0.015
"""So long rows are read before the keys have their turn again."""

BATCH_ROWS: Final = 64

MAX_RECORDINGS: Final = 40

MCPSPY: Final = (sys.executable, "-P", "-m", "mcpspy")
LONGEST_S: Final = 600.0
END_S: Final = 5.0


class FinishedSource:
    """Captures that nobody records any more."""

    live = False

    def __init__(self, transcript: Transcript, paths: Sequence[str], name: str) -> None:
        self.transcript = transcript
        self.paths = paths
        self.name = name

    def take(self) -> list[Row]:
        """Return nothing: all is there."""
        return []

    def refresh_findings(self) -> None:
        """Do nothing: they were made when the captures were read."""

    def words(self, row: Numbered | None) -> list[str]:
        """Return the words that address a row, or all."""
        return words(self.paths, row)

    def address(self, row: Numbered) -> str:
        """Return the WHAT of a row in the capture that has it."""
        return address(self.paths, self.transcript, row)

    def close(self) -> None:
        """Do nothing: the files are closed."""


class _GrowingSource:
    """Captures of which one is still being recorded."""

    def __init__(self, paths: Sequence[str], name: str) -> None:
        self.name = name
        self._growing = GrowingTranscript(keeps_frames=True)
        for path in paths:
            self._growing.add(path)
        self._rest: Iterator[Row] = iter(())

    @property
    def transcript(self) -> Transcript:
        """The transcript so far."""
        return self._growing.transcript

    @property
    def live(self) -> bool:
        """True if it may still grow."""
        return self._growing.live

    @property
    def paths(self) -> list[str]:
        """The files."""
        return [tail.path for tail in self._growing.tails]

    def join(self, path: str) -> None:
        """Add a capture, unless it is one of them."""
        if path not in self.paths:
            self._growing.add(path)

    def take(self) -> list[Row]:
        """Read for a few milliseconds at most."""
        until = monotonic() + SLICE_S
        rows: list[Row] = []
        for row in self._rest:
            rows.append(row)
            if len(rows) % BATCH_ROWS == 0 and monotonic() > until:
                return rows
        self._rest = self._growing.take()
        for row in self._rest:
            rows.append(row)
            if len(rows) % BATCH_ROWS == 0 and monotonic() > until:
                break
        return rows

    def refresh_findings(self) -> None:
        """Look for findings in all rows so far."""
        transcript = self._growing.transcript
        if len(transcript.captures) > 1:
            transcript.hops = forwarded_calls(transcript)
        transcript.findings = findings(transcript)

    def words(self, row: Numbered | None) -> list[str]:
        """Return the words that address a row, or all."""
        return words(self.paths, row)

    def address(self, row: Numbered) -> str:
        """Return the WHAT of a row in the capture that has it."""
        return address(self.paths, self.transcript, row)

    def close(self) -> None:
        """Close the files."""
        self._growing.close()


def source_of(selection: CaptureSelection, name: str = "") -> RowSource:
    """Open captures: those that grow to be followed, others whole. Raises: CaptureError; OSError."""
    if any(path != STDIN and is_live(path) for path in selection.paths):
        return _GrowingSource(selection.paths, name)
    transcript, _ = transcript_of(selection, keeps_frames=True)
    return FinishedSource(transcript, selection.paths, name)


def words(paths: Sequence[str], row: Numbered | None) -> list[str]:
    """Name captures for a command line: those of the store by their names there, others by their paths; and a row of them."""
    folder = captures_folder()
    names = [
        os.path.basename(path).removesuffix(EXTENSION) if os.path.dirname(path) == folder else path
        for path in map(named_file, paths)
    ]
    if row is None:
        return names
    return [f"{names[0]}:{row.row}"] if len(names) == 1 else [*names, f":{row.row}"]


def address(paths: Sequence[str], transcript: Transcript, row: Numbered) -> str:
    """Return the WHAT of a row in the capture that has it, where its number is another one if several captures are shown."""
    path = paths[row.capture]
    if path == STDIN:
        return ""
    number = row.row
    if len(paths) > 1:
        before = (other for other in transcript.rows if isinstance(other, Numbered) and other.row <= row.row)
        number = sum(other.capture == row.capture for other in before)
    return f"{os.path.abspath(named_file(path))}:{number}"


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
        if not isinstance(source, _GrowingSource) or not source.name:
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


class Programs:
    """The programs. Other verbs run as processes of their own: what they do is theirs, and an error of theirs ends them alone."""

    def __init__(self) -> None:
        self._web: subprocess.Popen[bytes] | None = None
        self._address = ""
        self._running: list[subprocess.Popen[bytes]] = []

    def run(self, words: Sequence[str], cwd: str = "") -> VerbResult:
        """Run `mcpspy WORDS` to its end."""
        process = subprocess.Popen(
            [*MCPSPY, *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=cwd or None,
            env={**os.environ, "NO_COLOR": "1"},
        )
        self._running.append(process)
        try:
            output, said = process.communicate(timeout=LONGEST_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            return VerbResult(1, "", f"mcpspy {words[0]} took longer than {LONGEST_S:.0f} s, and was ended")
        finally:
            self._running.remove(process)
        return VerbResult(process.returncode, output.decode("utf-8", "replace"), said.decode("utf-8", "replace"))

    def stop(self) -> None:
        """End the verbs that run: a call is cancelled."""
        for process in list(self._running):
            process.terminate()

    def page(self) -> str:
        """Start `mcpspy web` on a free port, unless it runs, and return its address; empty if it did not start."""
        if self._web is None or self._web.poll() is not None:
            self._web = subprocess.Popen(
                [*MCPSPY, "web", "--port", "0"],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
            assert self._web.stdout is not None
            self._address = self._web.stdout.readline().decode().strip()
        return self._address

    def browse(self, address: str) -> None:
        """Open an address in a browser with a window; one for terminals gets none, and ends. May block for some seconds."""
        with suppress(subprocess.TimeoutExpired):  # then it is a browser that stays until it is closed
            subprocess.run(
                [sys.executable, "-P", "-m", "webbrowser", address],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                check=False,
                start_new_session=True,
                timeout=END_S,
            )

    def edited(self, text: str) -> str | None:
        """Let the user edit a text; None if it was left as it is."""
        import click

        try:
            return click.edit(text, extension=".json")
        except click.ClickException:
            return None

    def close(self) -> None:
        """End what runs."""
        self.stop()
        if self._web is None:
            return
        self._web.terminate()
        try:
            self._web.wait(END_S)
        except subprocess.TimeoutExpired:
            self._web.kill()
            self._web.wait()
        if self._web.stdout is not None:
            self._web.stdout.close()

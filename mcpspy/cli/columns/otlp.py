"""`mcpspy otlp`: recorded sessions as spans and metrics for an OpenTelemetry collector. A process of its own; a tap sends nothing."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import click

from ... import __version__
from ...capture.store.address import STDIN
from ...capture.store.catalog import CatalogEntry, Recording, entries, recordings
from ...capture.store.folder import captures_folder
from ...errors import AddressError, CaptureError, CollectorError
from ...views.text.escape import safe_text, without_logins
from ...views.text.units import counted
from ..by_click.types import WhatCommand
from ..screen import say
from ..since import Since, captures_since, select_captures_since, since_option
from ..transcripts import DEFAULT_WHAT, CaptureSelection, select_captures, transcript_of
from .extras import require
from .sent import SentSpans, keys_by_capture

if TYPE_CHECKING:
    from ...telemetry.endpoint import CollectorEndpoint
    from ...telemetry.sending import Collector
    from ...telemetry.span import TelemetrySpan
    from ...transcript.model import Transcript
    from .counted import CountedDurations, TimedItem
    from .masks import ShareMask
    from .sent import SentItem

PACKAGES: Final = {
    "opentelemetry.sdk": "opentelemetry-sdk>=1.45,<2",
    "opentelemetry.exporter.otlp.proto.http": "opentelemetry-exporter-otlp-proto-http>=1.45,<2",
}
BATCH_SPANS: Final = 512
BATCH_LETTERS: Final = 2_000_000
"""A batch ends after so many letters of attributes: collectors refuse requests that are too large."""

LOOK_S: Final = 2.0
"""The seconds between two looks at the store."""


@click.command("otlp", cls=WhatCommand)
@click.argument("what", nargs=-1)
@click.option("-f", "--follow", is_flag=True, help="Keep sending what is recorded in the store. Ctrl-C ends it.")
@click.option("--endpoint", metavar="URL", help="The collector; the default is OTEL_EXPORTER_OTLP_ENDPOINT, or localhost:4318.")
@click.option("--as-server", is_flag=True, help="Report the server's spans and metrics; the default is the client's.")
@click.option("--payloads", is_flag=True, help="Send arguments and results of tools too, which may be sensitive.")
@click.option("--no-metrics", is_flag=True, help="Send spans only.")
@click.option("--again", is_flag=True, help="Send spans that were sent before too. They have the same ids.")
@since_option
def command(
    what: tuple[str, ...],
    *,
    follow: bool,
    endpoint: str | None,
    as_server: bool,
    payloads: bool,
    no_metrics: bool,
    again: bool,
    since: Since | None,
) -> None:
    """Send recorded calls as spans, and their durations as metrics, to an OpenTelemetry collector (docs/otlp.md).

    WHAT is as in `mcpspy show`. A span that was sent is not sent again. --since leaves out captures into which nothing was recorded
    since then, and sends the others whole. It needs
    pip install 'opentelemetry-sdk>=1.45,<2' 'opentelemetry-exporter-otlp-proto-http>=1.45,<2'.

    \b
    Examples:
      mcpspy otlp @ --endpoint http://localhost:4318
      mcpspy otlp --since 1h -f
    """
    require("mcpspy otlp", *PACKAGES, packages=PACKAGES)
    from ...telemetry.sending import Collector
    from .counted import CountedDurations

    target = _endpoint(endpoint)
    name, sent = target.name, SentSpans(target.name)
    durations = None if no_metrics else CountedDurations(sent)
    sender = _Sender(Collector(target, __version__, os.environ), sent, durations, name, as_server=as_server, payloads=payloads)
    since_ns = time.time_ns()
    paths = _paths(what, since, follow=follow)
    groups = [paths] if what or since is None else _groups(paths)
    try:
        if paths:
            _send_first(sender, groups, again=again, follow=follow)
        if paths or not follow:
            say(f"mcpspy: {counted(sender.count, 'span')} sent to {without_logins(name)}")
        if follow:
            _follow(sender, since_ns)
    finally:
        sender.close()


def _endpoint(option: str | None) -> CollectorEndpoint:
    """Return the collector that was named. Raises: click.UsageError."""
    from ...telemetry.endpoint import DEFAULT, BadEndpointError, endpoint_of

    try:
        return endpoint_of(option, os.environ)
    except BadEndpointError as error:
        example = f"{error.name}={DEFAULT}" if error.name else f"--endpoint {DEFAULT}"
        raise click.UsageError(
            f"{error.name or '--endpoint'} takes a URL with http:// or https://, then its host, as in {example}."
        ) from error


def _paths(what: tuple[str, ...], since: Since | None, *, follow: bool) -> tuple[str, ...]:
    """Return the paths of the captures to send; empty if there are none; with `follow` some may come later.

    Raises: AddressError: also for rows, or `-`.
    """
    try:
        selection = select_captures(what) if since is None else select_captures_since(what, since)[0]
    except AddressError:
        if not follow or what not in ((), (DEFAULT_WHAT,)):
            raise
        say(f"mcpspy: nothing has been recorded yet; waiting for the first capture in {safe_text(captures_folder())}")
        return ()
    if selection.rows is not None:
        raise AddressError(selection.what, "spans are of whole captures; leave out the rows")
    if STDIN in selection.paths:
        raise AddressError(STDIN, "standard input is not sent; write it to a file first")
    return tuple(captures_since(selection.paths, since)) if what and since is not None else selection.paths


class _Sender:
    """A sender of those spans of captures that were not sent before."""

    def __init__(
        self,
        collector: Collector,
        sent: SentSpans,
        durations: CountedDurations | None,
        name: str,
        *,
        as_server: bool,
        payloads: bool,
    ) -> None:
        self._collector = collector
        self._sent = sent
        self._name = without_logins(name)
        self._as_server = as_server
        self._payloads = payloads
        self._durations = durations
        self.count = 0
        """The spans that were sent so far."""

    def close(self) -> None:
        """End the connections."""
        self._collector.close()

    def send(self, paths: tuple[str, ...], *, again: bool = False) -> None:
        """Send the new spans of captures that belong together. Raises: CollectorError, CaptureError; OSError."""
        from ...telemetry.span import masked_spans
        from .masks import ShareMask

        mask = ShareMask()
        if self._payloads:
            mask.learn_files(*paths)
        selection = CaptureSelection(paths=paths)
        transcript, _ = transcript_of(selection, keeps_noise=False, packs_rows=True, watchers=mask.watchers)
        mask.learned(transcript)
        known = set() if again else self._known(transcript)
        spans = (span for span in self._spans(transcript, mask) if span.key not in known)
        for batch in (masked_spans(some, mask.texts) for some in _batches(spans)):
            if not self._collector.send(batch):
                raise CollectorError(self._name, self._collector.refusal_status)
            self._note("operation", batch, [span for span in batch if span.is_operation])
            self.count += len(batch)
        if self._durations is not None:
            self._send_durations(transcript, known, self._durations, mask)

    def _known(self, transcript: Transcript) -> set[str]:
        """Return the keys of what was sent of these captures."""
        return set().union(*(self._sent.of(info.header.capture_id) for info in transcript.captures if info.header is not None))

    def _note(self, kind: str, items: Sequence[SentItem], timed: Sequence[TimedItem]) -> None:
        """Note that items were sent, and count those that took time, each once."""
        if self._durations is not None:
            self._durations.count(kind, items, timed)
        else:
            self._sent.add(keys_by_capture(items))

    def _spans(self, transcript: Transcript, mask: ShareMask) -> Iterable[TelemetrySpan]:
        from ...telemetry.model_spans import ModelSpans
        from ...telemetry.operations import OperationSpans

        models = ModelSpans(transcript)
        yield from models.spans()
        payload = mask.payload if self._payloads else None
        yield from OperationSpans(transcript, models.parents, as_server=self._as_server, payload=payload).spans()

    def _send_durations(self, transcript: Transcript, known: set[str], durations: CountedDurations, mask: ShareMask) -> None:
        """Count the sessions that are over, and send all sums that the collector may not have. Raises: CollectorError; OSError."""
        from ...telemetry.sessions import session_times
        from ...telemetry.span import masked_attributes

        times = session_times(transcript, as_server=self._as_server)
        sessions = [
            replace(session, attributes=masked_attributes(session.attributes, mask.texts))
            for session in times
            if session.key not in known
        ]
        if sessions:
            self._note("session", sessions, sessions)
        unsent = durations.unsent()
        if unsent is not None:
            if not self._collector.send_durations(unsent.sums, unsent.instance):
                raise CollectorError(self._name, self._collector.refusal_status, takes_spans=True)
            durations.were_sent(unsent)


def _batches(spans: Iterable[TelemetrySpan]) -> Iterator[list[TelemetrySpan]]:
    """Yield spans in batches, smaller ones if their texts are long."""
    batch: list[TelemetrySpan] = []
    letters = 0
    for span in spans:
        batch.append(span)
        letters += sum(len(value) for value in span.attributes.values() if isinstance(value, str))
        if len(batch) == BATCH_SPANS or letters >= BATCH_LETTERS:
            yield batch
            batch, letters = [], 0
    if batch:
        yield batch


def _send_first(sender: _Sender, groups: Iterable[tuple[str, ...]], *, again: bool, follow: bool) -> None:
    """Send what the user named; with `follow` wait for a collector that is away. Raises: CollectorError."""
    waiting, is_away = deque(groups), False
    while waiting:
        try:
            sender.send(waiting[0], again=again)
            waiting.popleft()
        except CollectorError as error:
            if not follow or error.takes_spans:
                raise
            if not is_away:
                _say_away(error)
            is_away = True
            time.sleep(LOOK_S)


def _say_away(error: CollectorError | OSError) -> None:
    words = f"{error}" if isinstance(error, CollectorError) else f"{safe_text(str(error))}."
    say(f"mcpspy: {words} mcpspy keeps trying.")


def _follow(sender: _Sender, since_ns: int) -> None:
    """Send what is recorded in the store since a moment, until the user ends it. A collector that is away is tried again."""
    states: dict[tuple[str, ...], tuple[tuple[int, bool], ...]] = {}
    is_away = False
    while True:
        for recording, together in _recordings_with_models(entries()):
            paths = tuple(entry.path for entry in recording.entries)
            state = tuple((entry.size_bytes, entry.live) for entry in recording.entries)
            is_recent = max(entry.begin_ns + entry.last_ns for entry in recording.entries) >= since_ns
            if states.get(paths) == state or not (is_recent or paths in states):
                continue
            try:
                sender.send(together)
            except (CollectorError, OSError) as error:  # a full disk raises OSError: what was sent cannot be noted
                if isinstance(error, FileNotFoundError):
                    continue  # the capture went away
                if not is_away:
                    _say_away(error)
                is_away = True
                if isinstance(error, CollectorError) and not error.takes_spans:
                    break
                continue
            except CaptureError:
                pass  # it is no capture; another look follows when it changes
            states[paths] = state
            is_away = False
        time.sleep(LOOK_S)


def _groups(paths: Iterable[str]) -> list[tuple[str, ...]]:
    """Divide captures of the store into those that are sent together, the oldest first: all of them may not fit in memory."""
    selected = set(paths)
    return [together for _, together in _recordings_with_models(entry for entry in entries() if entry.path in selected)][::-1]


def _recordings_with_models(captures: Iterable[CatalogEntry]) -> Iterator[tuple[Recording, tuple[str, ...]]]:
    """Yield each recording with the paths to send: its captures, and those of models that may have wanted their calls."""
    captures = list(captures)
    models: dict[str, list[str]] = {}
    for recording in recordings(captures) if any(entry.is_model for entry in captures) else ():
        for entry in recording.entries:
            if not entry.is_model:
                models.setdefault(entry.path, []).extend(other.path for other in recording.entries if other.is_model)
    for recording in recordings(captures, each_once=True):
        paths = [entry.path for entry in recording.entries]
        yield recording, tuple(dict.fromkeys((*paths, *(model for path in paths for model in models.get(path, ())))))

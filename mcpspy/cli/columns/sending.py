"""The spans of captures, and the durations of calls and sessions, sent to a collector: each once in a run.

A request is repeated where it makes sense: until a collector that is busy or away has taken it. The course is told in words
on stderr, and with `--json` as objects on stdout, one a line (docs/json.md).
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from ...errors import CollectorError
from ...views.text.escape import safe_text
from ...views.text.json_text import SCHEMA, as_json
from ...views.text.units import counted
from ..screen import say
from ..transcripts import CaptureSelection, transcript_of

if TYPE_CHECKING:
    from ...telemetry.durations import DurationSums
    from ...telemetry.sending import Collector, CollectorAnswer
    from ...telemetry.span import TelemetrySpan
    from ...transcript.model import Transcript
    from .masks import ShareMask

BATCH_SPANS: Final = 512
BATCH_LETTERS: Final = 2_000_000
"""A batch ends after so many letters of attributes: collectors refuse requests that are too large."""

LOOK_S: Final = 2.0
"""The seconds between two attempts, and between two looks at the store."""

_TOO_LARGE: Final = 413
"""The HTTP status of a request whose body is too large."""

LONGEST_WAIT_S: Final = 3_600.0
"""A collector that asks to wait longer is asked again after this time."""

PATIENCE_S: Final = 60.0
"""So long one request waits altogether for a busy collector, if mcpspy is not to go on for ever."""

MAX_MESSAGE: Final = 200
"""A collector's words are cut at so many characters."""


class SpanSender:
    """A sender of those spans of captures that it has not sent before. `durations` are the sums of what it sends."""

    def __init__(
        self,
        collector: Collector,
        durations: DurationSums | None,
        delivery: Delivery,
        notices: OtlpNotices,
        *,
        as_server: bool,
        payloads: bool,
    ) -> None:
        self._collector = collector
        self._sent: set[int] = set()  # the ids of spans, and of sessions that were counted
        self._delivery = delivery
        self._notices = notices
        self._as_server = as_server
        self._payloads = payloads
        self._durations = durations
        self._sums_until_ns = 0 if durations is None else durations.until_ns  # those that the collector has
        self.count = 0
        """The spans that were sent so far."""

        self.rejected = _Rejected()
        """The part of it that the collector rejected."""

    def close(self) -> None:
        """End the connections."""
        self._collector.close()

    def send(self, paths: tuple[str, ...]) -> None:
        """Send the new spans of captures that belong together. Raises: CollectorError, CaptureError; OSError."""
        rejected, before = _Rejected(), self.count
        try:
            self._send(paths, rejected)
        finally:
            spans = self.count - before
            if spans:
                self._notices.sent(spans)
            if rejected:
                self._notices.rejected(rejected, spans)
                self.rejected.join(rejected)

    def _send(self, paths: tuple[str, ...], rejected: _Rejected) -> None:
        from ...telemetry.span import masked_spans
        from .masks import ShareMask

        mask = ShareMask()
        if self._payloads:
            mask.learn_files(*paths)
        selection = CaptureSelection(paths=paths)
        transcript, _ = transcript_of(selection, keeps_noise=False)
        mask.learn(transcript)
        spans = (span for span in self._spans(transcript, mask) if span.context.span_id not in self._sent)
        for batch in (masked_spans(some, mask.texts) for some in _batches(spans)):
            self._send_batch(batch, rejected)
        if self._durations is not None:
            self._send_durations(transcript, self._durations, mask, rejected)

    def _send_batch(self, batch: list[TelemetrySpan], rejected: _Rejected) -> None:
        """Send a batch, in halves if it is too large for the collector, or for a proxy before it."""
        half = len(batch) // 2
        try:
            answer = self._delivery.deliver(partial(self._collector.send, batch), can_divide=half > 0)
        except CollectorError as error:
            if error.status != _TOO_LARGE or not half:
                raise
            self._send_batch(batch[:half], rejected)
            self._send_batch(batch[half:], rejected)
            return
        rejected.add(answer, are_spans=True)
        self._sent.update(span.context.span_id for span in batch)
        if self._durations is not None:
            self._durations.add("operation", (span for span in batch if span.is_operation), time.time_ns())
        self.count += len(batch)

    def _spans(self, transcript: Transcript, mask: ShareMask) -> Iterable[TelemetrySpan]:
        from ...telemetry.operations import ModelSpans, OperationSpans

        models = ModelSpans(transcript)
        yield from models.spans()
        payload = mask.payload if self._payloads else None
        yield from OperationSpans(transcript, models.parents, as_server=self._as_server, payload=payload).spans()

    def _send_durations(self, transcript: Transcript, durations: DurationSums, mask: ShareMask, rejected: _Rejected) -> None:
        """Count the sessions that are over, and send the sums if the collector does not have them. Raises: CollectorError."""
        from ...telemetry.operations import session_times
        from ...telemetry.span import masked_attributes

        times = session_times(transcript, as_server=self._as_server)
        sessions = [
            replace(session, attributes=masked_attributes(session.attributes, mask.texts))
            for session in times
            if session.span_id not in self._sent
        ]
        self._sent.update(session.span_id for session in sessions)
        durations.add("session", sessions, time.time_ns())
        if durations.until_ns > self._sums_until_ns:
            send = partial(self._collector.send_durations, durations)
            rejected.add(self._delivery.deliver(send, are_spans=False), are_spans=False)
            self._sums_until_ns = durations.until_ns


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


class Delivery:
    """Delivery to one collector. With `is_endless` it waits for one that does not answer, or refuses spans, too."""

    def __init__(self, notices: OtlpNotices, *, is_endless: bool) -> None:
        self._notices = notices
        self._is_endless = is_endless

    def deliver(
        self, send: Callable[[], CollectorAnswer], *, are_spans: bool = True, can_divide: bool = False
    ) -> CollectorAnswer:
        """Send until it was taken. Return the answer.

        Raises: CollectorError: if it is not endless, except where a busy collector says how long, and that is short; if it is, of
            metrics that are refused, and of what is too large and can be divided.
        """
        waited_s = 0.0
        while not (answer := send()).has_taken:
            error = CollectorError(
                self._notices.name,
                answer.status,
                takes_spans=not are_spans,
                retry_s=answer.retry_s,
                trouble=safe_text(answer.trouble),
            )
            pause_s = None if can_divide and answer.status == _TOO_LARGE else self._pause_s(error, waited_s)
            if pause_s is None:
                raise error
            self._notices.waits(error)
            time.sleep(pause_s)
            waited_s += pause_s
        return answer

    def _pause_s(self, error: CollectorError, waited_s: float) -> float | None:
        """Return how long to wait before the next attempt; None: make none."""
        asked_s = error.retry_s if error.state == "busy" else None
        if self._is_endless:
            is_hopeless = error.takes_spans and error.state == "refused"
            return None if is_hopeless else min(max(asked_s or 0.0, LOOK_S), LONGEST_WAIT_S)
        return max(asked_s, 1.0) if asked_s is not None and waited_s + asked_s <= PATIENCE_S else None


class _Rejected:
    """Spans and points of metrics that a collector rejected of what it took, and the last that it said about it."""

    __slots__ = ("message", "points", "spans")

    def __init__(self) -> None:
        self.spans = 0
        self.points = 0
        self.message = ""

    def __bool__(self) -> bool:
        return bool(self.spans or self.points or self.message)

    def add(self, answer: CollectorAnswer, *, are_spans: bool) -> None:
        """Add what one answer says."""
        if are_spans:
            self.spans += answer.rejected
        else:
            self.points += answer.rejected
        if answer.message:
            self.message = answer.message if len(answer.message) <= MAX_MESSAGE else f"{answer.message[: MAX_MESSAGE - 1]}…"

    def join(self, other: _Rejected) -> None:
        """Add what others say."""
        self.spans += other.spans
        self.points += other.points
        self.message = other.message or self.message


class OtlpNotices:
    """Notices about one collector. `name` is its URL without what is secret. A trouble is told once, until it has ended."""

    def __init__(self, name: str, *, as_json: bool) -> None:
        self.name = name
        self._as_json = as_json
        self._told: object = None

    def sent(self, spans: int) -> None:
        """Tell programs that the collector has taken so many spans."""
        self._told = None
        self._event("sent", spans=spans)

    def done(self, spans: int) -> None:
        """Tell programs that everything was sent, and how many spans that were altogether."""
        self._event("done", spans=spans)

    def waits(self, error: CollectorError) -> None:
        """Tell that mcpspy tries again. A collector that is busy need not be looked after."""
        if (error.state, error.status) == self._told:
            return
        self._told = error.state, error.status
        words = f"{error.problem}." if error.state == "busy" else f"{error}"
        say(f"mcpspy: {words} mcpspy keeps trying.")
        self._failure("waiting", error)

    def trouble(self, error: OSError) -> None:
        """Tell that something of this machine keeps spans from being sent, such as a full disk."""
        if str(error) != self._told:
            self._told = str(error)
            say(f"mcpspy: {safe_text(str(error))}. mcpspy keeps trying.")

    def failed(self, error: CollectorError) -> None:
        """Tell programs that mcpspy gives up. Its words follow on stderr."""
        self._failure("failed", error)

    def rejected(self, rejected: _Rejected, spans: int) -> None:
        """Tell that the collector rejected some of so many spans that it took, or that it warns."""
        self._event(
            "rejected", rejected_spans=rejected.spans, rejected_data_points=rejected.points, message=rejected.message or None
        )
        parts = [f"{rejected.spans:,} of {counted(spans, 'span')}"] if rejected.spans else []
        parts += [f"{counted(rejected.points, 'point')} of metrics"] if rejected.points else []
        words = f"rejected {' and '.join(parts)}" if parts else "warns"
        says = f": {safe_text(rejected.message)}" if rejected.message else ""
        say(f"mcpspy: the collector at {self.name} {words}{says}")

    def _failure(self, event: str, error: CollectorError) -> None:
        self._event(event, state=error.state, status=error.status, retry_after_s=error.retry_s, of_metrics=error.takes_spans)

    def _event(self, event: str, **facts: Any) -> None:
        if self._as_json:
            sys.stdout.write(as_json({"schema": SCHEMA, "event": event, "collector": self.name, **facts}) + "\n")
            sys.stdout.flush()

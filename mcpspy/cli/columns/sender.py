"""The spans of captures, and the durations of calls and sessions, sent to a collector: each once in a run."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

from ...errors import CollectorError
from ..transcripts import CaptureSelection, transcript_of
from .delivering import TOO_LARGE, Delivery
from .notices import OtlpNotices, Rejected

if TYPE_CHECKING:
    from ...telemetry.durations import DurationSums
    from ...telemetry.sending import Collector
    from ...telemetry.span import TelemetrySpan
    from ...transcript.model import Transcript
    from .masks import ShareMask

BATCH_SPANS: Final = 512
BATCH_LETTERS: Final = 2_000_000
"""A batch ends after so many letters of attributes: collectors refuse requests that are too large."""


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

        self.rejected = Rejected()
        """The part of it that the collector rejected."""

    def close(self) -> None:
        """End the connections."""
        self._collector.close()

    def send(self, paths: tuple[str, ...]) -> None:
        """Send the new spans of captures that belong together. Raises: CollectorError, CaptureError; OSError."""
        rejected, before = Rejected(), self.count
        try:
            self._send(paths, rejected)
        finally:
            spans = self.count - before
            if spans:
                self._notices.sent(spans)
            if rejected:
                self._notices.rejected(rejected, spans)
                self.rejected.join(rejected)

    def _send(self, paths: tuple[str, ...], rejected: Rejected) -> None:
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

    def _send_batch(self, batch: list[TelemetrySpan], rejected: Rejected) -> None:
        """Send a batch, in halves if it is too large for the collector, or for a proxy before it."""
        half = len(batch) // 2
        try:
            answer = self._delivery.deliver(partial(self._collector.send, batch), can_divide=half > 0)
        except CollectorError as error:
            if error.status != TOO_LARGE or not half:
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
        from ...telemetry.model_spans import ModelSpans
        from ...telemetry.operations import OperationSpans

        models = ModelSpans(transcript)
        yield from models.spans()
        payload = mask.payload if self._payloads else None
        yield from OperationSpans(transcript, models.parents, as_server=self._as_server, payload=payload).spans()

    def _send_durations(self, transcript: Transcript, durations: DurationSums, mask: ShareMask, rejected: Rejected) -> None:
        """Count the sessions that are over, and send the sums if the collector does not have them. Raises: CollectorError."""
        from ...telemetry.sessions import session_times
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

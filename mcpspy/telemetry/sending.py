"""Spans to a collector, and histograms of their durations, through OpenTelemetry's own SDK and exporter for OTLP over HTTP."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Final

from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.metrics import export
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.sdk.trace.export import SpanExportResult
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Link, SpanContext, SpanKind, Status, StatusCode, TraceFlags, TraceState

from .answers import CollectorAnswer, LastAnswer, of_metrics, of_spans
from .durations import BUCKETS_S, DurationSeries, DurationSums
from .endpoint import CollectorEndpoint
from .session import session_for
from .span import LARGEST, TelemetrySpan, TraceContext

_INSTANCE: Final = "service.instance.id"


class _Complaints(logging.Handler):
    """Complaints of the SDK about its settings, without the values, which may be secret. Later ones are not for the user."""

    def __init__(self) -> None:
        super().__init__()
        self._texts: dict[str, None] = {}
        self._is_over = False

    def emit(self, record: logging.LogRecord) -> None:
        if not self._is_over:
            self._texts[str(record.msg).replace("%r", "…").replace("%s", "…")] = None

    def taken(self) -> list[str]:
        """Return the complaints so far, each once, and hear no more."""
        self._is_over = True
        return list(self._texts)


def _named(resource: Resource) -> Resource:
    """Name the service, unless the user has: the SDK's own name is that of the Python that we run in."""
    if str(resource.attributes.get(SERVICE_NAME, "")).partition(":")[0] not in ("", "unknown_service"):
        return resource
    return resource.merge(Resource({SERVICE_NAME: "mcpspy"}))


class Collector:
    """A collector to which spans are sent. Variables of OpenTelemetry have the header fields, the timeout and the certificates.

    `instance` tells the sums that are sent from those of other senders.
    """

    def __init__(self, endpoint: CollectorEndpoint, version: str, instance: str, environment: Mapping[str, str]) -> None:
        log = logging.getLogger("opentelemetry")
        log.propagate = False  # its errors are reported by those who send
        log.addHandler(complaints := _Complaints())
        traces, metrics = session_for("TRACES", environment), session_for("METRICS", environment)
        self._traces = OTLPSpanExporter(endpoint=endpoint.traces, session=traces)
        self._metrics = OTLPMetricExporter(endpoint=endpoint.metrics, session=metrics)
        self._of_spans, self._of_metrics = LastAnswer(traces, of_spans), LastAnswer(metrics, of_metrics)
        self._resource = _named(Resource.create())
        self._instance = Resource({_INSTANCE: instance}).merge(self._resource)
        self._scope = InstrumentationScope("mcpspy", version)
        self.complaints = complaints.taken()
        """Settings that OpenTelemetry's SDK does not understand, in its words."""

    def send(self, spans: Sequence[TelemetrySpan]) -> CollectorAnswer:
        """Send spans, and return what the collector says."""
        self._of_spans.clear()
        result = self._traces.export([self._readable(span) for span in spans])
        return self._of_spans.after(succeeded=result is SpanExportResult.SUCCESS)

    def send_durations(self, sums: DurationSums) -> CollectorAnswer:
        """Send all sums, and return what the collector says."""
        self._of_metrics.clear()
        result = self._metrics.export(self._metrics_data(sums))
        return self._of_metrics.after(succeeded=result is export.MetricExportResult.SUCCESS)

    def close(self) -> None:
        """End the connections."""
        self._traces.shutdown()  # type: ignore[no-untyped-call]  # it has no annotations
        self._metrics.shutdown()

    def _readable(self, span: TelemetrySpan) -> ReadableSpan:
        return ReadableSpan(
            name=span.name,
            context=_context(span.context, is_remote=False),
            parent=None if span.parent is None else _context(span.parent, is_remote=True),
            resource=self._resource,
            attributes=span.attributes,
            events=[Event(event.name, event.attributes, _time_ns(event.at_ns)) for event in span.events],
            links=[Link(_context(link, is_remote=True)) for link in span.links],
            kind=SpanKind.SERVER if span.is_server else SpanKind.CLIENT,
            status=Status() if span.error is None else Status(StatusCode.ERROR, span.error or None),
            start_time=_time_ns(span.began_ns),
            end_time=_time_ns(span.ended_ns),
            instrumentation_scope=self._scope,
        )

    def _metrics_data(self, sums: DurationSums) -> export.MetricsData:
        points: dict[str, list[export.HistogramDataPoint]] = {}
        for series in sums:
            points.setdefault(series.metric, []).append(_point(series, sums))
        metrics = []
        for name, some in points.items():
            histogram = export.Histogram(some, export.AggregationTemporality.CUMULATIVE)
            metrics.append(export.Metric(name, f"The duration of an MCP {name.split('.')[2]}", "s", histogram))
        return export.MetricsData([export.ResourceMetrics(self._instance, [export.ScopeMetrics(self._scope, metrics, "")], "")])


def _point(series: DurationSeries, sums: DurationSums) -> export.HistogramDataPoint:
    return export.HistogramDataPoint(
        attributes=series.attributes,
        start_time_unix_nano=sums.since_ns,
        time_unix_nano=sums.until_ns,
        count=sum(series.counts),
        sum=series.sum_ns / 1e9,
        bucket_counts=series.counts,
        explicit_bounds=BUCKETS_S,
        min=series.least_ns / 1e9,
        max=series.most_ns / 1e9,
    )


def _time_ns(unix_ns: int) -> int:
    """Return the nearest time that a span can have."""
    return max(0, min(LARGEST, unix_ns))


def _context(context: TraceContext, *, is_remote: bool) -> SpanContext:
    flags = TraceFlags(TraceFlags.SAMPLED if context.is_sampled else TraceFlags.DEFAULT)
    state = TraceState.from_header([context.state]) if context.state else None
    return SpanContext(context.trace_id, context.span_id, is_remote, flags, state)

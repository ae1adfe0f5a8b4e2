"""Spans to a collector, and histograms of their durations, through OpenTelemetry's own SDK and exporter for OTLP over HTTP."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import Final, Protocol

from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.metrics import export
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.sdk.trace.export import SpanExportResult
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Link, SpanContext, SpanKind, Status, StatusCode, TraceFlags, TraceState

from .sessions import SessionTime
from .span import Attributes, AttributeValue, TelemetrySpan, TraceContext

BUCKETS_S: Final = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300)
_OF_ONE_CALL: Final = {"jsonrpc.request.id", "gen_ai.tool.call.arguments", "gen_ai.tool.call.result", "mcp.resource.uri"}
"""Attributes that metrics do not have: each call would be a series of its own."""


class _Timed(Protocol):
    """A thing that took time, in a span's words."""

    @property
    def is_server(self) -> bool: ...
    @property
    def attributes(self) -> Attributes: ...
    @property
    def began_ns(self) -> int: ...
    @property
    def ended_ns(self) -> int: ...


class Collector:
    """A collector to which spans are sent. `endpoint` is its URL; None: that of the variables of OpenTelemetry."""

    def __init__(self, endpoint: str | None, version: str) -> None:
        base = None if endpoint is None else endpoint.rstrip("/")
        self._traces = OTLPSpanExporter(endpoint=None if base is None else f"{base}/v1/traces")
        self._metrics = OTLPMetricExporter(endpoint=None if base is None else f"{base}/v1/metrics")
        self._resource = Resource.create()
        self._scope = InstrumentationScope("mcpspy", version)

    def send(self, spans: Sequence[TelemetrySpan]) -> bool:
        """Send spans, and return whether the collector has taken them."""
        return self._traces.export([self._readable(span) for span in spans]) is SpanExportResult.SUCCESS

    def send_durations(self, spans: Sequence[TelemetrySpan]) -> bool:
        """Send the durations of the operations among spans, and return whether the collector has taken them."""
        return self._send_durations("operation", [span for span in spans if span.is_operation])

    def send_sessions(self, sessions: Sequence[SessionTime]) -> bool:
        """Send the durations of sessions, and return whether the collector has taken them."""
        return self._send_durations("session", sessions)

    def _send_durations(self, kind: str, timed: Sequence[_Timed]) -> bool:
        data = self._durations(kind, timed)
        return data is None or self._metrics.export(data) is export.MetricExportResult.SUCCESS

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
            events=[Event(event.name, event.attributes, event.at_ns) for event in span.events],
            links=[Link(_context(link, is_remote=True)) for link in span.links],
            kind=SpanKind.SERVER if span.is_server else SpanKind.CLIENT,
            status=Status() if span.error is None else Status(StatusCode.ERROR, span.error or None),
            start_time=span.began_ns,
            end_time=span.ended_ns,
            instrumentation_scope=self._scope,
        )

    def _durations(self, kind: str, timed: Iterable[_Timed]) -> export.MetricsData | None:
        """Make histograms of the durations of these operations or sessions, since the last ones that were sent."""
        series: dict[tuple[bool, tuple[tuple[str, AttributeValue], ...]], list[_Timed]] = {}
        for item in timed:
            known = tuple(pair for pair in sorted(item.attributes.items()) if pair[0] not in _OF_ONE_CALL)
            series.setdefault((item.is_server, known), []).append(item)
        metrics = []
        for is_server, side in ((False, "client"), (True, "server")):
            points = [_point(dict(known), some) for (of_server, known), some in series.items() if of_server is is_server]
            if points:
                histogram = export.Histogram(points, export.AggregationTemporality.DELTA)
                metrics.append(export.Metric(f"mcp.{side}.{kind}.duration", f"The duration of an MCP {kind}", "s", histogram))
        if not metrics:
            return None
        scope = export.ScopeMetrics(self._scope, metrics, "")
        return export.MetricsData([export.ResourceMetrics(self._resource, [scope], "")])


def _point(attributes: Attributes, timed: list[_Timed]) -> export.HistogramDataPoint:
    durations = [(item.ended_ns - item.began_ns) / 1e9 for item in timed]
    counts = [0] * (len(BUCKETS_S) + 1)
    for duration in durations:
        counts[bisect_left(BUCKETS_S, duration)] += 1
    return export.HistogramDataPoint(
        attributes=attributes,
        start_time_unix_nano=min(item.began_ns for item in timed),
        time_unix_nano=max(item.ended_ns for item in timed),
        count=len(durations),
        sum=sum(durations),
        bucket_counts=counts,
        explicit_bounds=BUCKETS_S,
        min=min(durations),
        max=max(durations),
    )


def _context(context: TraceContext, *, is_remote: bool) -> SpanContext:
    flags = TraceFlags(TraceFlags.SAMPLED if context.is_sampled else TraceFlags.DEFAULT)
    state = TraceState.from_header([context.state]) if context.state else None
    return SpanContext(context.trace_id, context.span_id, is_remote, flags, state)

"""Spans to a collector, and histograms of their durations, through OpenTelemetry's own SDK and exporter for OTLP over HTTP.

The exporters tell only whether they succeeded, and take a redirection for success. So their HTTP sessions note what the
collector answered: whether it has taken what was sent, and what it says about it.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from email.utils import parsedate_to_datetime
from importlib.metadata import entry_points
from math import isfinite
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

import requests
from google.protobuf.message import DecodeError
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceResponse
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
from opentelemetry.sdk.metrics import export
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.sdk.trace.export import SpanExportResult
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Link, SpanContext, SpanKind, Status, StatusCode, TraceFlags, TraceState

from .durations import BUCKETS_S, DurationSeries, DurationSums
from .endpoint import CollectorEndpoint
from .span import LARGEST, TelemetrySpan, TraceContext

if TYPE_CHECKING:
    from requests import Response, Session

_INSTANCE: Final = "service.instance.id"

_PROVIDERS: Final = "opentelemetry_otlp_credential_provider"
_PROVIDER: Final = "OTEL_PYTHON_EXPORTER_OTLP_HTTP_{}CREDENTIAL_PROVIDER"

_OK: Final = 200
_FIRST_REDIRECTION: Final = 300


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
        traces, metrics = _session_for("TRACES", environment), _session_for("METRICS", environment)
        self._traces = OTLPSpanExporter(endpoint=endpoint.traces, session=traces)
        self._metrics = OTLPMetricExporter(endpoint=endpoint.metrics, session=metrics)
        self._of_spans, self._of_metrics = _LastAnswer(traces, of_spans), _LastAnswer(metrics, of_metrics)
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


class CollectorSession(requests.Session):
    """A session that trusts the certificates that were named for it: else REQUESTS_CA_BUNDLE would go before."""

    trouble = ""
    """The reason why no request since `begin` reached anybody, unless nobody was there."""
    _has_tried = False

    def begin(self) -> None:
        """Forget the requests so far."""
        self.trouble, self._has_tried = "", False

    def request(self, *words: Any, **facts: Any) -> requests.Response:
        """Send a request, and note why it could not be sent."""
        is_first, self._has_tried = not self._has_tried, True
        try:
            return super().request(*words, **facts)
        except requests.exceptions.SSLError as error:
            self.trouble = _tls_reason(error)
            raise
        except (requests.exceptions.ConnectionError, requests.exceptions.Timeout):
            raise
        except (OSError, ValueError) as error:  # no file of certificates, or a time to wait that is none
            if is_first:  # the time that is left for another attempt may be none
                self.trouble = str(error)
            raise

    def merge_environment_settings(self, url: Any, proxies: Any, stream: Any, verify: Any, cert: Any) -> dict[str, Any]:
        """Return what a request uses."""
        if verify is None and isinstance(self.verify, str):
            verify = self.verify
        return super().merge_environment_settings(url, proxies, stream, verify, cert)


def _tls_reason(error: BaseException) -> str:
    """Return what TLS says, without the objects around it."""
    match = re.search(r"\[SSL[^\]]*\] (.+?)(?: \(_ssl\.c:\d+\))?[)'\"]", str(error))
    return match[1] if match else "no TLS"


def _session_for(signal: str, environment: Mapping[str, str]) -> requests.Session:
    """Return a session for a signal such as `TRACES`: that of the provider of credentials which these variables name, if they do."""
    name = environment.get(_PROVIDER.format("")) or environment.get(_PROVIDER.format(f"{signal}_"))
    provider = next(iter(entry_points(group=_PROVIDERS, name=name)), None) if name else None
    if provider is None:
        return CollectorSession()
    session = provider.load()()
    return session if isinstance(session, requests.Session) else CollectorSession()


class CollectorAnswer(NamedTuple):
    """The last answer to a request. Without one, `status` is None.

    `retry_s` is how long the collector asks to wait. `rejected` counts the spans or points of a request that it did not take though
    it took others, and `message` is why, or a warning. They are not to be sent again (OTLP, "partial success").
    """

    status: int | None = None
    retry_s: float | None = None
    rejected: int = 0
    message: str = ""
    trouble: str = ""
    """The reason why there is none, unless nobody was there."""

    @property
    def has_taken(self) -> bool:
        """True if what was sent need not be sent again."""
        return self.status is not None and self.status < _FIRST_REDIRECTION


class PartialSuccess(NamedTuple):
    """The part of a request that was rejected, and why."""

    rejected: int
    message: str


class PartialSuccessReader(Protocol):
    """A function that reads the body of an answer."""

    def __call__(self, body: bytes) -> PartialSuccess: ...


def of_spans(body: bytes) -> PartialSuccess:
    """Read an answer to spans. Raises: DecodeError."""
    partial = ExportTraceServiceResponse.FromString(body).partial_success
    return PartialSuccess(partial.rejected_spans, partial.error_message)


def of_metrics(body: bytes) -> PartialSuccess:
    """Read an answer to metrics. Raises: DecodeError."""
    partial = ExportMetricsServiceResponse.FromString(body).partial_success
    return PartialSuccess(partial.rejected_data_points, partial.error_message)


class _LastAnswer:
    """The last answer in a session. `clear` forgets it, so that one to an earlier request is not taken for it."""

    def __init__(self, session: Session, reader: PartialSuccessReader) -> None:
        self._answer = CollectorAnswer()
        self._session = session
        self._reader = reader
        session.hooks["response"].append(self._note)

    def clear(self) -> None:
        """Forget it."""
        self._answer = CollectorAnswer()
        if isinstance(self._session, CollectorSession):
            self._session.begin()

    def after(self, *, succeeded: bool) -> CollectorAnswer:
        """Return it after an export. A session that is not ours may not have let us look."""
        if self._answer.status is not None:
            return self._answer
        return CollectorAnswer(_OK) if succeeded else CollectorAnswer(trouble=getattr(self._session, "trouble", ""))

    def _note(self, response: Response, **_: Any) -> None:
        answer = CollectorAnswer(response.status_code, _retry_s(response))
        try:
            partial = self._reader(response.content) if answer.has_taken else PartialSuccess(0, "")
        except DecodeError:
            partial = PartialSuccess(0, "")
        self._answer = answer._replace(rejected=partial.rejected, message=partial.message)


def _retry_s(response: Response) -> float | None:
    """Return the seconds of `Retry-After`. A date counts from that of the answer."""
    text = response.headers.get("Retry-After", "")
    try:
        seconds = float(text)
    except ValueError:
        try:
            since = parsedate_to_datetime(response.headers.get("Date", ""))
            seconds = (parsedate_to_datetime(text) - since).total_seconds()
        except (ValueError, TypeError):
            return None
    return max(0.0, seconds) if isfinite(seconds) else None

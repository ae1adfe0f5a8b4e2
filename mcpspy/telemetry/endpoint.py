"""The URLs to which spans and metrics are sent, as OpenTelemetry's specification of OTLP exporters has them.

To the path of `--endpoint` and OTEL_EXPORTER_OTLP_ENDPOINT, /v1/traces and /v1/metrics are added, before a query.
OTEL_EXPORTER_OTLP_TRACES_ENDPOINT is the URL for spans as it is, and OTEL_EXPORTER_OTLP_METRICS_ENDPOINT that for metrics.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple
from urllib.parse import SplitResult, urlsplit, urlunsplit

DEFAULT: Final = "http://localhost:4318"
COLLECTOR: Final = "OTEL_EXPORTER_OTLP_ENDPOINT"
TRACES: Final = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
METRICS: Final = "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT"

_TRACES_PATH: Final = "/v1/traces"
_METRICS_PATH: Final = "/v1/metrics"


class BadEndpointError(ValueError):
    """A text that is no URL of a collector. `name` is the variable that has it; empty for the option."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


class CollectorEndpoint(NamedTuple):
    """A collector: the name under which a follower keeps its position, and its URLs. All may have a login and a query."""

    name: str
    traces: str
    metrics: str


def endpoint_of(option: str | None, environment: Mapping[str, str]) -> CollectorEndpoint:
    """Return the collector that the option names, else these variables. One that is empty counts as unset.

    The option may also be the URL for spans or that for metrics. Raises: BadEndpointError.
    """
    if option is not None:
        base = _without(_split(option, ""), _TRACES_PATH, _METRICS_PATH)
        traces, metrics = _joined(base, _TRACES_PATH), _joined(base, _METRICS_PATH)
    else:
        collector = environment.get(COLLECTOR)
        base = _split(collector, COLLECTOR) if collector else _split(DEFAULT, "")
        traces = _own(environment.get(TRACES), TRACES) or _joined(base, _TRACES_PATH)
        metrics = _own(environment.get(METRICS), METRICS) or _joined(base, _METRICS_PATH)
    return CollectorEndpoint(urlunsplit(_without(urlsplit(traces), _TRACES_PATH)), traces, metrics)


def _split(text: str, name: str) -> SplitResult:
    """Divide a URL. Raises: BadEndpointError: if it cannot be one of a collector; it is of this variable."""
    try:
        url = urlsplit(text.strip())
        is_good = url.scheme in ("http", "https") and bool(url.hostname) and url.port != 0
    except ValueError as error:  # its port is no number, or a bracket is missing
        raise BadEndpointError(name) from error
    if not is_good:
        raise BadEndpointError(name)
    return url._replace(fragment="")


def _own(url: str | None, name: str) -> str:
    """Return the URL of one variable as it is; empty if it has none. Raises: BadEndpointError."""
    return urlunsplit(_split(url, name)) if url else ""


def _without(url: SplitResult, *ends: str) -> SplitResult:
    """Leave out slashes at the end of the path, and then one of these ends."""
    path = url.path.rstrip("/")
    for end in ends:
        if path.endswith(end):
            return url._replace(path=path.removesuffix(end).rstrip("/"))
    return url._replace(path=path)


def _joined(base: SplitResult, path: str) -> str:
    return urlunsplit(base._replace(path=base.path.rstrip("/") + path))

"""Durations of operations and sessions, summed up as histograms since a moment.

The sums only grow: a collector that gets them twice counts nothing twice, and one that missed some has them with the next.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Protocol

from .span import Attributes

BUCKETS_S: Final = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300)
MAX_SERIES: Final = 2_000
"""So many combinations of attributes have a histogram of their own, as in OpenTelemetry's SDK. All others of a metric share one."""

_OVERFLOW: Final[Attributes] = {"otel.metric.overflow": True}
_ONLY_OF_SPANS: Final = {
    "gen_ai.tool.call.arguments",
    "gen_ai.tool.call.result",
    "jsonrpc.request.id",
    "mcp.resource.uri",
    "mcp.session.id",
}
"""Attributes that the metrics of the conventions do not have by default: each call or session would be a series of its own."""


class Timed(Protocol):
    """A thing that took time, in a span's words."""

    @property
    def is_server(self) -> bool: ...
    @property
    def attributes(self) -> Attributes: ...
    @property
    def began_ns(self) -> int: ...
    @property
    def ended_ns(self) -> int: ...


@dataclass(slots=True, kw_only=True)
class DurationSeries:
    """The durations with equal attributes: how many are in each bucket, their sum, the least and the most."""

    metric: str
    attributes: Attributes
    counts: list[int]
    sum_ns: int
    least_ns: int
    most_ns: int


class DurationSums:
    """All series of durations since `since_ns`, which are as of `until_ns`. Both are Unix time."""

    def __init__(self, since_ns: int) -> None:
        self.since_ns = since_ns
        self.until_ns = since_ns
        self._series: dict[tuple[str, str], DurationSeries] = {}

    def __iter__(self) -> Iterator[DurationSeries]:
        return iter(self._series.values())

    def add(self, kind: str, timed: Iterable[Timed], now_ns: int) -> None:
        """Count durations of operations or sessions; `kind` is the word for them in the name of the metric."""
        for item in timed:
            duration_ns = item.ended_ns - item.began_ns
            series = self._of(f"mcp.{'server' if item.is_server else 'client'}.{kind}.duration", item.attributes, duration_ns)
            series.counts[bisect_left(BUCKETS_S, duration_ns / 1e9)] += 1
            series.sum_ns += duration_ns
            series.least_ns = min(series.least_ns, duration_ns)
            series.most_ns = max(series.most_ns, duration_ns)
            self.until_ns = max(self.until_ns + 1, now_ns)

    def _of(self, metric: str, attributes: Attributes, duration_ns: int) -> DurationSeries:
        """Return the series for these attributes, a new one if it is the first for them."""
        known = {name: attributes[name] for name in sorted(attributes) if name not in _ONLY_OF_SPANS}
        key = metric, repr(known)
        if key not in self._series and len(self._series) >= MAX_SERIES:
            known, key = _OVERFLOW, (metric, repr(_OVERFLOW))
        series = self._series.get(key)
        if series is None:
            series = self._series[key] = DurationSeries(
                metric=metric,
                attributes=known,
                counts=[0] * (len(BUCKETS_S) + 1),
                sum_ns=0,
                least_ns=duration_ns,
                most_ns=duration_ns,
            )
        return series

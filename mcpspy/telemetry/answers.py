"""The answers of a collector, as OTLP over HTTP specifies them: whether it has taken what was sent, and what it says about it.

OpenTelemetry's exporters tell only whether they succeeded, and take a redirection for success. So a hook of the session looks.
"""

from __future__ import annotations

from email.utils import parsedate_to_datetime
from math import isfinite
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceResponse
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

if TYPE_CHECKING:
    from requests import Response, Session

_OK: Final = 200
_FIRST_REDIRECTION: Final = 300


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


class LastAnswer:
    """The last answer in a session. `clear` forgets it, so that one to an earlier request is not taken for it."""

    def __init__(self, session: Session, reader: PartialSuccessReader) -> None:
        self._answer = CollectorAnswer()
        self._session = session
        self._reader = reader
        session.hooks["response"].append(self._note)

    def clear(self) -> None:
        """Forget it."""
        self._answer = CollectorAnswer()

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

"""A collector for tests: it takes OTLP over HTTP, and decodes it with the classes of the official protobuf definitions."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ssl import SSLContext
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue


class Answer(NamedTuple):
    """An answer of a collector. One of status 200 takes what was sent."""

    status: int
    headers: Sequence[tuple[str, str]] = ()
    body: bytes = b""


class Receiver:
    """The spans and metrics that were received so far, and how many requests had spans.

    `refuses` has it answer with `status`, `has_no_metrics` answer those with 405. `answers` come before: each is used once.
    It answers 413 to bodies of more than `largest_bytes`.
    """

    def __init__(self) -> None:
        self.spans: list[Any] = []
        self.metrics: list[Any] = []
        self.requests = 0
        self.refuses = False
        self.status = 400
        self.has_no_metrics = False
        self.url = ""
        self.answers: list[Answer] = []
        self.largest_bytes = 1 << 30
        self.paths: list[str] = []
        self.headers: list[Message] = []
        self.resources: list[dict[str, Any]] = []
        self.metric_resources: list[dict[str, Any]] = []

    def take(self, path: str, body: bytes) -> None:
        if urlsplit(path).path.endswith("traces"):
            self.requests += 1
            traces = ExportTraceServiceRequest.FromString(body)
            self.resources += [attributes(traced.resource) for traced in traces.resource_spans]
            self.spans += [span for resource in traces.resource_spans for scope in resource.scope_spans for span in scope.spans]
        else:
            metrics = ExportMetricsServiceRequest.FromString(body)
            self.metric_resources += [attributes(measured.resource) for measured in metrics.resource_metrics]
            self.metrics += [
                metric for resource in metrics.resource_metrics for scope in resource.scope_metrics for metric in scope.metrics
            ]


def attributes(item: Any) -> dict[str, Any]:
    """Return the attributes of a span, an event or a data point."""
    return {pair.key: _value(pair.value) for pair in item.attributes}


def _value(value: AnyValue) -> Any:
    kind = value.WhichOneof("value")
    return [_value(item) for item in value.array_value.values] if kind == "array_value" else getattr(value, str(kind))


@contextmanager
def receiving(port: int = 0, *, tls: SSLContext | None = None) -> Iterator[Receiver]:
    """Run a receiver on a port of its own, with TLS if there is a context for it."""
    receiver = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            receiver.paths.append(self.path)
            receiver.headers.append(self.headers)
            status = (
                receiver.status if receiver.refuses else 405 if receiver.has_no_metrics and self.path == "/v1/metrics" else 200
            )
            answer = receiver.answers.pop(0) if receiver.answers else Answer(status)
            if len(body) > receiver.largest_bytes:
                answer = Answer(413)
            if answer.status == 200:
                receiver.take(self.path, body)
            self.send_response(answer.status)
            for name, value in (*answer.headers, ("Content-Length", str(len(answer.body)))):
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(answer.body)

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", port), Handler) as server:
        receiver.url = f"http://127.0.0.1:{server.server_address[1]}"
        if tls is not None:
            server.socket = tls.wrap_socket(server.socket, server_side=True)
            receiver.url = f"https://localhost:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield receiver
        finally:
            server.shutdown()
            thread.join()

"""A collector's answers to `mcpspy otlp`: busy, redirected, partly taken; told in words and as JSON."""

import json
import subprocess
import time
from email.utils import formatdate
from typing import Any

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceResponse
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from tests.cli.terminal import on_pipe, run
from tests.conftest import ROOT
from tests.deadlines import eventually
from tests.telemetry.receiver import Answer, Receiver, receiving

TIME = str(ROOT / "captures/time.mcpspy")
SPANS = 5


def events(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


def sent(receiver: Receiver, *options: str) -> subprocess.CompletedProcess[str]:
    return run("otlp", TIME, "--endpoint", receiver.url, "--json", *options, stdin=None, OTEL_EXPORTER_OTLP_TIMEOUT="1")


@pytest.mark.parametrize("status", [429, 502, 503, 504])
def test_a_busy_collector_is_told_from_one_that_is_away_and_from_one_that_refuses(status: int) -> None:
    with receiving() as receiver:
        receiver.refuses, receiver.status = True, status
        busy = sent(receiver)
        receiver.status = 400
        refused = sent(receiver)
    away = sent(receiver)
    assert [done.returncode for done in (busy, refused, away)] == [4, 4, 4]
    assert f"is busy (HTTP status {status}); try again later." in busy.stderr
    assert "does not answer; start it, or name another with --endpoint." in away.stderr
    told = [
        (event["event"], event["state"], event["status"]) for done in (busy, refused, away) for event in events(done.stdout)
    ]
    assert told == [("failed", "busy", status), ("failed", "refused", 400), ("failed", "away", None)]


def test_a_collector_that_asks_to_wait_is_asked_again_then_and_gets_each_span_once() -> None:
    with receiving() as receiver:
        receiver.answers = [Answer(429, [("Retry-After", "2")])]
        began_s = time.monotonic()
        done = sent(receiver)
        took_s = time.monotonic() - began_s
    waiting, *others = events(done.stdout)
    assert (waiting["event"], waiting["state"], waiting["status"], waiting["retry_after_s"]) == ("waiting", "busy", 429, 2)
    assert [event["event"] for event in others] == ["sent", "done"]
    assert (done.returncode, len(receiver.spans), receiver.paths[:2], took_s > 2) == (0, SPANS, ["/v1/traces"] * 2, True)
    assert "is busy (HTTP status 429) and asks to wait 2 s. mcpspy keeps trying." in done.stderr


def test_a_time_to_wait_may_be_a_date() -> None:
    with receiving() as receiver:
        receiver.answers = [Answer(503, [("Retry-After", formatdate(time.time() + 7_200, usegmt=True))])]
        done = sent(receiver)
    (failed,) = events(done.stdout)
    assert (done.returncode, failed["state"], 7_100 < failed["retry_after_s"] <= 7_200) == (4, "busy", True)


def test_a_busy_collector_that_asks_for_longer_than_a_minute_is_left() -> None:
    with receiving() as receiver:
        receiver.answers = [Answer(429, [("Retry-After", "61")])]
        assert sent(receiver).returncode == 4
        assert (sent(receiver).returncode, len(receiver.spans)) == (0, SPANS)


def test_metrics_for_which_a_collector_is_busy_are_sent_later_without_the_spans() -> None:
    with receiving() as receiver:
        receiver.answers = [Answer(200), Answer(503, [("Retry-After", "2")])]
        assert sent(receiver).returncode == 0
    assert (receiver.paths, len(receiver.spans)) == (["/v1/traces", "/v1/metrics", "/v1/metrics"], SPANS)


def test_a_redirection_has_not_taken_anything() -> None:
    with receiving() as receiver:
        receiver.answers = [Answer(308, [("Location", "https://localhost/v1/traces")])]
        refused = sent(receiver)
        assert (refused.returncode, "redirects to another URL (HTTP status 308); name that one" in refused.stderr) == (4, True)
        assert (sent(receiver).returncode, len(receiver.spans)) == (0, SPANS)


def partial_spans(rejected: int, message: str) -> bytes:
    answer = ExportTraceServiceResponse()
    answer.partial_success.rejected_spans = rejected
    answer.partial_success.error_message = message
    return bytes(answer.SerializeToString())


def test_spans_that_a_collector_rejects_are_told() -> None:
    with receiving() as receiver:
        receiver.answers = [Answer(200, (), partial_spans(2, "too old\x1b[2J"))]
        done = sent(receiver)
    assert (done.returncode, len(receiver.spans)) == (4, SPANS)
    (rejected,) = [event for event in events(done.stdout) if event["event"] == "rejected"]
    assert (rejected["rejected_spans"], rejected["rejected_data_points"], rejected["message"]) == (2, 0, "too old\x1b[2J")
    assert f"rejected 2 of {SPANS} spans: too old" in done.stderr
    assert "\x1b" not in done.stderr + done.stdout


def test_points_of_metrics_that_a_collector_rejects_are_told() -> None:
    answer = ExportMetricsServiceResponse()
    answer.partial_success.rejected_data_points = 1
    with receiving() as receiver:
        receiver.answers = [Answer(200), Answer(200, (), answer.SerializeToString())]
        done = sent(receiver)
    assert (done.returncode, "rejected 1 point of metrics\n" in done.stderr) == (4, True)


def test_a_warning_of_a_collector_is_told_and_is_no_failure() -> None:
    with receiving() as receiver:
        receiver.answers = [Answer(200, (), partial_spans(0, "use gzip"))]
        done = sent(receiver)
    assert (done.returncode, "warns: use gzip\n" in done.stderr) == (0, True)


def test_a_body_that_is_none_of_otlp_does_not_matter() -> None:
    with receiving() as receiver:
        receiver.answers = [Answer(200, [("Content-Type", "text/plain")], b"<html>")]
        assert (sent(receiver).returncode, len(receiver.spans)) == (0, SPANS)


def test_a_follower_goes_on_when_a_busy_collector_has_time() -> None:
    with receiving() as receiver:
        receiver.refuses, receiver.status = True, 503
        with on_pipe("otlp", TIME, "-f", "--json", "--endpoint", receiver.url, OTEL_EXPORTER_OTLP_TIMEOUT="1") as following:
            following.wait_for("is busy (HTTP status 503). mcpspy keeps trying.")
            receiver.refuses = False
            following.wait_for('"event":"sent"')
            eventually(lambda: receiver.metrics, "the metrics")
            following.end()
    assert [(event["event"], event.get("state")) for event in events(following.words)] == [("waiting", "busy"), ("sent", None)]
    assert len({span.span_id for span in receiver.spans}) == len(receiver.spans) == SPANS


@pytest.mark.parametrize("options", [(), ("-f",)])
def test_a_batch_that_is_too_large_is_sent_in_parts(options: tuple[str, ...]) -> None:
    everything = str(ROOT / "captures/everything.mcpspy")
    with receiving() as receiver, receiving() as small:
        run("otlp", everything, "--endpoint", receiver.url)
        small.largest_bytes = 2_000
        with on_pipe("otlp", everything, *options, "--no-metrics", "--endpoint", small.url) as sending:
            sending.wait_for(f"{len(receiver.spans)} spans sent to")
            sending.end()
    assert [span.span_id for span in small.spans] == [span.span_id for span in receiver.spans]
    assert small.requests > 1


def test_a_span_that_alone_is_too_large_is_reported() -> None:
    with receiving() as receiver:
        receiver.largest_bytes = 10
        done = sent(receiver)
    assert (done.returncode, "does not take spans (HTTP status 413)" in done.stderr) == (4, True)

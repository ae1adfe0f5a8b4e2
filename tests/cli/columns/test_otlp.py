"""`mcpspy otlp`, as a user calls it, against a receiver that decodes what was sent."""

import json
import socket
import subprocess
import sys
import time
from pathlib import Path
from shutil import copy

import pytest

from mcpspy.telemetry.durations import BUCKETS_S
from tests.cli.columns.secrets import TOKEN, secretive
from tests.cli.terminal import MCPSPY, on_pipe, run
from tests.conftest import ROOT
from tests.deadlines import DEADLINE_S, eventually
from tests.telemetry.receiver import Receiver, attributes, receiving

CAPTURES = ROOT / "captures"
EVERYTHING = str(CAPTURES / "everything.mcpspy")


def sent(receiver: Receiver, *words: str) -> str:
    done = run("otlp", *words, "--endpoint", receiver.url)
    assert done.returncode == 0, done.stderr
    return done.stderr


def test_each_call_is_a_span() -> None:
    with receiving() as receiver:
        said = sent(receiver, EVERYTHING)
    names = {span.name for span in receiver.spans}
    assert {"initialize", "tools/list", "tools/call echo"} <= names
    assert f"{len(receiver.spans)} spans sent to {receiver.url}" in said
    assert {span.kind for span in receiver.spans} == {3}  # CLIENT


def test_a_call_that_is_sent_again_has_the_same_ids() -> None:
    with receiving() as receiver:
        sent(receiver, EVERYTHING)
        first = {(span.trace_id, span.span_id) for span in receiver.spans}
        sent(receiver, EVERYTHING)
    assert len(receiver.spans) == 2 * len(first)
    assert {(span.trace_id, span.span_id) for span in receiver.spans} == first


def test_durations_are_histograms_with_the_buckets_of_the_conventions() -> None:
    with receiving() as receiver:
        sent(receiver, EVERYTHING)
    metrics = {metric.name: metric for metric in receiver.metrics}
    assert {name: metric.unit for name, metric in metrics.items()} == {
        "mcp.client.operation.duration": "s",
        "mcp.client.session.duration": "s",
    }
    points = metrics["mcp.client.operation.duration"].histogram.data_points
    assert {tuple(point.explicit_bounds) for metric in metrics.values() for point in metric.histogram.data_points} == {
        BUCKETS_S
    }
    assert sum(point.count for point in points) == len(receiver.spans)
    assert all("jsonrpc.request.id" not in attributes(point) for point in points)


@pytest.mark.parametrize("side", ["client", "server"])
@pytest.mark.parametrize(("name", "transport"), [("everything", "pipe"), ("streamable", "tcp")])
def test_a_session_that_is_over_has_a_duration_once(name: str, transport: str, side: str) -> None:
    as_server = ["--as-server"] * (side == "server")
    with receiving() as receiver:
        sent(receiver, str(CAPTURES / f"{name}.mcpspy"), *as_server)
    (metric,) = [metric for metric in receiver.metrics if metric.name == f"mcp.{side}.session.duration"]
    (point,) = metric.histogram.data_points
    assert point.count == 1
    about = attributes(point)
    assert (about["network.transport"], "mcp.protocol.version" in about) == (transport, True)
    began_ns, ended_ns = (
        (span.start_time_unix_nano for span in receiver.spans),
        (span.end_time_unix_nano for span in receiver.spans),
    )
    lasted_s = (max(ended_ns) - min(began_ns)) / 1e9
    assert lasted_s <= point.sum < lasted_s + 60


def test_without_metrics_no_durations_are_sent() -> None:
    with receiving() as receiver:
        sent(receiver, EVERYTHING, "--no-metrics")
    assert (receiver.spans != [], receiver.metrics) == (True, [])


@pytest.mark.parametrize("options", [(), ("--payloads",)])
def test_all_is_replaced_in_spans_that_a_share_replaces(options: tuple[str, ...], tmp_path: Path) -> None:
    with receiving() as receiver:
        sent(receiver, str(secretive(tmp_path)), *options)
        text = everything_of(receiver)
    assert (TOKEN in text, "tr0ub4dor" in text, "no such token: redacted-" in text) == (False, False, True)


def everything_of(receiver: Receiver) -> str:
    """Return all texts of the spans that were received."""
    parts = [(span.name, span.status.message, attributes(span)) for span in receiver.spans]
    return repr([parts, [attributes(event) for span in receiver.spans for event in span.events]])


def test_over_http_a_span_names_the_upstream_and_the_session() -> None:
    with receiving() as receiver:
        sent(receiver, str(CAPTURES / "streamable.mcpspy"))
    known = [attributes(span) for span in receiver.spans]
    assert {about["network.transport"] for about in known} == {"tcp"}
    assert all("server.address" in about and isinstance(about["server.port"], int) for about in known)
    assert any(str(about.get("mcp.session.id")).startswith("redacted-") for about in known)


def test_a_models_calls_and_the_tools_that_it_wanted_are_children_of_its_run() -> None:
    with receiving() as receiver:
        sent(receiver, str(CAPTURES / "agent-model.mcpspy"), str(CAPTURES / "agent-weather.mcpspy"))
    (run_span,) = [span for span in receiver.spans if span.name == "invoke_agent"]
    children = [span.name for span in receiver.spans if span.parent_span_id == run_span.span_id]
    assert any(name.startswith("chat ") for name in children)
    assert any(name.startswith("tools/call ") for name in children)
    (chat, *_) = [attributes(span) for span in receiver.spans if span.name.startswith("chat ")]
    assert chat["gen_ai.operation.name"] == "chat"
    assert isinstance(chat["gen_ai.usage.input_tokens"], int)


def test_arguments_are_sent_only_on_request() -> None:
    with receiving() as receiver:
        sent(receiver, EVERYTHING)
        assert not any("gen_ai.tool.call.arguments" in attributes(span) for span in receiver.spans)
        sent(receiver, EVERYTHING, "--payloads")
    assert any("gen_ai.tool.call.arguments" in attributes(span) for span in receiver.spans)


def test_a_collector_that_refuses_gets_the_same_spans_later() -> None:
    with receiving() as receiver:
        receiver.refuses = True
        done = run("otlp", EVERYTHING, "--endpoint", receiver.url)
        assert (done.returncode, "does not take spans" in done.stderr) == (4, True)
        receiver.refuses = False
        assert "0 spans" not in sent(receiver, EVERYTHING)
    assert receiver.spans


@pytest.mark.parametrize(
    ("status", "path", "words"),
    [
        (400, "", "does not take spans (HTTP status 400); name another with --endpoint."),
        (401, "", "wants credentials (HTTP status 401); give them in OTEL_EXPORTER_OTLP_HEADERS."),
        (404, "", "does not take spans (HTTP status 404); name another with --endpoint."),
        (
            404,
            "/v1/traces",
            "does not take spans (HTTP status 404); leave out /v1/traces in OTEL_EXPORTER_OTLP_ENDPOINT: it is added.",
        ),
    ],
)
def test_a_collector_that_refuses_is_reported_with_its_answer(status: int, path: str, words: str) -> None:
    with receiving() as receiver:
        receiver.refuses, receiver.status = True, status
        done = run("otlp", str(CAPTURES / "time.mcpspy"), OTEL_EXPORTER_OTLP_ENDPOINT=f"{receiver.url}{path}")
    assert (done.returncode, done.stderr) == (4, f"mcpspy: the collector at {receiver.url}{path} {words}\n")


def test_a_collector_without_metrics_is_named_with_the_option_for_it() -> None:
    with receiving() as receiver:
        receiver.has_no_metrics = True
        done = run("otlp", EVERYTHING, "--endpoint", receiver.url)
        assert (done.returncode, "takes spans, but no metrics (HTTP status 405); add --no-metrics" in done.stderr) == (4, True)
        assert receiver.spans
        assert "0 spans" not in sent(receiver, EVERYTHING, "--no-metrics")


def test_each_run_has_sums_of_its_own_which_begin_with_it() -> None:
    with receiving() as receiver:
        sent(receiver, EVERYTHING)
        sent(receiver, EVERYTHING)
    metrics = [metric for metric in receiver.metrics if metric.name == "mcp.client.operation.duration"]
    assert [sum(point.count for point in metric.histogram.data_points) for metric in metrics] == [len(receiver.spans) // 2] * 2
    assert {metric.histogram.aggregation_temporality for metric in metrics} == {2}  # CUMULATIVE
    assert len({point.start_time_unix_nano for metric in metrics for point in metric.histogram.data_points}) == 2
    instances = {about["service.instance.id"] for about in receiver.metric_resources}
    assert len(instances) == 2


ANSWERING = """
import sys
for line in sys.stdin:
    print(line.partition(',"method"')[0] + ',"result":{}}', flush=True)
"""


def test_a_call_that_a_follower_reads_again_is_sent_and_counted_once() -> None:
    words = [*MCPSPY, "run", "--", sys.executable, "-c", ANSWERING]
    with (
        receiving() as receiver,
        on_pipe("otlp", "-f", "--endpoint", receiver.url) as following,
        subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as recording,
    ):
        assert recording.stdin is not None
        for number in (1, 2, 3):
            recording.stdin.write(b'{"jsonrpc":"2.0","id":%d,"method":"call/%d"}\n' % (number, number))
            recording.stdin.flush()
            eventually(lambda: len(receiver.spans) >= number, "the spans of a call")  # noqa: B023
        recording.stdin.close()
        eventually(lambda: any("session" in metric.name for metric in receiver.metrics), "the session")
        following.end()
    assert len({span.span_id for span in receiver.spans}) == len(receiver.spans) == 3
    (*_, last) = [metric for metric in receiver.metrics if metric.name == "mcp.client.operation.duration"]
    assert sum(point.count for point in last.histogram.data_points) == 3
    assert len({about["service.instance.id"] for about in receiver.metric_resources}) == 1


def test_what_is_recorded_later_is_followed(store: Path) -> None:
    (store / "captures").mkdir(parents=True)
    copy(CAPTURES / "time.mcpspy", store / "captures")
    with receiving() as receiver, on_pipe("otlp", "-f", "--endpoint", receiver.url) as following:
        following.wait_for("sent to")
        count = len(receiver.spans)
        request = b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n'
        subprocess.run(
            [*MCPSPY, "run", "--label", "new", "--", "cat"], input=request, timeout=DEADLINE_S, check=True, capture_output=True
        )
        eventually(lambda: len(receiver.spans) > count, "a span of what was recorded later")
        assert receiver.spans[-1].name == "ping"
        following.end()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def test_followed_is_also_a_store_in_which_nothing_is_recorded_yet(store: Path) -> None:
    with receiving() as receiver, on_pipe("otlp", "-f", "--endpoint", receiver.url) as following:
        following.wait_for("waiting for the first capture")
        (store / "captures").mkdir(parents=True, exist_ok=True)
        request = b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n'
        subprocess.run([*MCPSPY, "run", "--", "cat"], input=request, timeout=DEADLINE_S, check=True, capture_output=True)
        eventually(lambda: receiver.spans, "a span of what was recorded later")
        following.end()


def recorded_now(path: Path) -> bytes:
    """Return a capture as if it had just been recorded."""
    first, _, rest = path.read_bytes().partition(b"\n")
    header = json.loads(first) | {"wall_ns": time.time_ns()}
    header.pop("crc")
    return json.dumps(header, separators=(",", ":")).encode() + b"\n" + rest


def test_followed_calls_that_a_model_wanted_are_children_of_its_run(store: Path) -> None:
    (store / "captures").mkdir(parents=True)
    with receiving() as receiver, on_pipe("otlp", "-f", "--endpoint", receiver.url) as following:
        following.wait_for("waiting for the first capture")
        for name in ("agent-model", "agent-weather"):
            part = store / "captures" / f"{name}.part"
            part.write_bytes(recorded_now(CAPTURES / f"{name}.mcpspy"))
            part.rename(part.with_suffix(".mcpspy"))
        eventually(lambda: any(span.name.startswith("tools/call") for span in receiver.spans), "a call")
        eventually(lambda: any(span.name == "invoke_agent" for span in receiver.spans), "a run")
        following.end()
    ids = {span.span_id for span in receiver.spans}
    assert len(ids) == len(receiver.spans)
    calls = [span for span in receiver.spans if span.name.startswith("tools/call")]
    runs = {span.span_id: span.trace_id for span in receiver.spans if span.name == "invoke_agent"}
    assert all(runs[span.parent_span_id] == span.trace_id for span in calls)


def test_a_follower_waits_for_a_collector_that_is_not_there_yet(store: Path) -> None:
    (store / "captures").mkdir(parents=True)
    copy(CAPTURES / "time.mcpspy", store / "captures")
    port = free_port()
    words = ["otlp", "-f", "--endpoint", f"http://127.0.0.1:{port}"]
    with on_pipe(*words, OTEL_EXPORTER_OTLP_TIMEOUT="1") as following:
        following.wait_for("mcpspy keeps trying")
        with receiving(port) as receiver:
            following.wait_for(" spans sent to")
            assert receiver.spans
            following.end()
    assert following.words.count("keeps trying") == 1


def test_recordings_since_a_moment_are_sent_one_after_another_with_the_captures_of_models(store: Path) -> None:
    (store / "captures").mkdir(parents=True)
    for name in ("agent-model", "agent-weather", "time"):
        (store / "captures" / f"{name}.mcpspy").write_bytes(recorded_now(CAPTURES / f"{name}.mcpspy"))
    with receiving() as receiver:
        said = sent(receiver, "--since", "1h")
    assert f"{len({span.span_id for span in receiver.spans})} spans sent" in said
    assert receiver.requests > 1
    runs = {span.span_id for span in receiver.spans if span.name == "invoke_agent"}
    calls = {span.name: span.parent_span_id for span in receiver.spans if span.name.startswith("tools/call")}
    assert len(calls) > 2
    assert {calls["tools/call get_weather"]} == runs

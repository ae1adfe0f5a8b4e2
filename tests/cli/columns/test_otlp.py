"""`mcpspy otlp`, as a user calls it, against a receiver that decodes what was sent."""

import json
import os
import socket
import subprocess
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
from tests.tiers import Tier

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


def test_what_was_sent_is_not_sent_again_and_has_the_same_ids_if_it_is() -> None:
    with receiving() as receiver:
        sent(receiver, EVERYTHING)
        first = {(span.trace_id, span.span_id) for span in receiver.spans}
        assert "0 spans sent" in sent(receiver, EVERYTHING)
        sent(receiver, EVERYTHING, "--again")
    assert len(receiver.spans) == 2 * len(first)
    assert {(span.trace_id, span.span_id) for span in receiver.spans} == first


def test_an_export_that_is_killed_is_finished_by_the_next(tier: Tier) -> None:
    with receiving() as receiver:
        sent(receiver, EVERYTHING)
        wanted = {span.span_id for span in receiver.spans}
    for attempt in range(tier(sample=2, more=8, full=40)):
        with receiving() as receiver:
            words = [*MCPSPY, "otlp", EVERYTHING, "--endpoint", receiver.url]
            with subprocess.Popen(words, stderr=subprocess.DEVNULL) as process:
                try:
                    process.wait(0.3 + attempt * 0.1)
                except subprocess.TimeoutExpired:
                    process.kill()
                process.wait(DEADLINE_S)
            sent(receiver, EVERYTHING)
        assert {span.span_id for span in receiver.spans} == wanted


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
        sent(receiver, EVERYTHING, "--again", "--payloads")
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
        assert "0 spans sent" in sent(receiver, EVERYTHING, "--no-metrics")


def test_sums_that_a_collector_did_not_take_are_sent_later() -> None:
    with receiving() as receiver:
        receiver.has_no_metrics = True
        run("otlp", EVERYTHING, "--endpoint", receiver.url)
        receiver.has_no_metrics = False
        assert "0 spans sent" in sent(receiver, EVERYTHING)
        assert {metric.name for metric in receiver.metrics} == {"mcp.client.operation.duration", "mcp.client.session.duration"}
        receiver.metrics.clear()
        sent(receiver, EVERYTHING)
        assert receiver.metrics == []


def test_sums_grow_from_one_run_to_the_next_and_count_nothing_again() -> None:
    with receiving() as receiver:
        sent(receiver, EVERYTHING)
        sent(receiver, EVERYTHING, "--again")
        sent(receiver, str(CAPTURES / "time.mcpspy"))
    spans = len({span.span_id for span in receiver.spans})
    (*_, last) = [metric for metric in receiver.metrics if metric.name == "mcp.client.operation.duration"]
    assert last.histogram.aggregation_temporality == 2  # CUMULATIVE
    assert sum(point.count for point in last.histogram.data_points) == spans


def test_sums_that_cannot_be_read_are_begun_anew(store: Path) -> None:
    with receiving() as receiver:
        sent(receiver, EVERYTHING)
        (path,) = (store / "otlp").rglob("durations.json")
        path.write_bytes(b'{"since_ns": 1')
        sent(receiver, str(CAPTURES / "time.mcpspy"))
    starts = {point.start_time_unix_nano for metric in receiver.metrics for point in metric.histogram.data_points}
    assert len(starts) == 2


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


@pytest.mark.parametrize("options", [(), ("--again",)])
def test_a_follower_waits_for_a_collector_that_is_not_there_yet(options: tuple[str, ...], store: Path) -> None:
    (store / "captures").mkdir(parents=True)
    copy(CAPTURES / "time.mcpspy", store / "captures")
    port = free_port()
    words = ["otlp", "-f", *options, "--endpoint", f"http://127.0.0.1:{port}"]
    with on_pipe(*words, OTEL_EXPORTER_OTLP_TIMEOUT="1") as following:
        following.wait_for("mcpspy keeps trying")
        with receiving(port) as receiver:
            following.wait_for(" spans sent to")
            assert receiver.spans
            following.end()
    assert following.words.count("keeps trying") == 1


@pytest.mark.parametrize("cut", [0, 1, 16])
def test_a_torn_note_of_what_was_sent_loses_no_span(cut: int, store: Path) -> None:
    with receiving() as receiver:
        sent(receiver, EVERYTHING)
        (path,) = [file for file in (store / "otlp").rglob("*") if file.is_file() and "durations" not in file.name]
        os.truncate(path, path.stat().st_size - 17 - 17 - cut)  # its last line is that of the session
        before = len(receiver.spans)
        sent(receiver, EVERYTHING)
        assert len(receiver.spans) == before + (1 if cut == 0 else 2)
        assert "0 spans sent" in sent(receiver, EVERYTHING)


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

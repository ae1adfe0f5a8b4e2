"""`mcpspy otlp` and its collector, both killed at random: no span is lost, and no call or session is counted twice."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.cli.terminal import MCPSPY, run
from tests.deadlines import DEADLINE_S, eventually
from tests.sharing.hiding import lines as written
from tests.telemetry import collector
from tests.telemetry.receiver import Receiver, attributes
from tests.tiers import Tier
from tests.transcript.dialogue import result
from tests.views.scenes import call, failed, opened

CALLS = 2_000
"""Those of four batches."""


def large_capture(folder: Path) -> str:
    scene = opened("weather")
    for id in range(1, CALLS + 1):
        scene.client(call(id, f"tool{id % 3}")).wait(id % 40).server(failed(id, "no") if id % 7 == 0 else result(id))
    path = folder / "large.mcpspy"
    path.write_bytes(written(scene.closes().records))
    return str(path)


@contextmanager
def collecting(port: int, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run a collector, on a port of its choice if it is 0."""
    (folder / "port").unlink(missing_ok=True)
    with subprocess.Popen([sys.executable, collector.__file__, str(port), str(folder)]) as process:
        try:
            eventually((folder / "port").exists, "the collector")
            yield process
        finally:
            process.kill()


def sender(path: str, port: int) -> subprocess.Popen[bytes]:
    words = [*MCPSPY, "otlp", path, "--endpoint", f"http://127.0.0.1:{port}"]
    patient = os.environ | {"OTEL_EXPORTER_OTLP_TIMEOUT": "1"}
    return subprocess.Popen(words, env=patient, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def bodies(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.body"))


def received(folder: Path) -> Receiver:
    """Decode everything that was taken."""
    receiver = Receiver()
    for path in bodies(folder):
        receiver.take(f"/v1/{path.stem.partition('-')[2]}", path.read_bytes())
    return receiver


def counts(receiver: Receiver) -> dict[str, tuple[int, float, list[int]]]:
    """Return what a collector knows in the end of each series: the last point of it."""
    last: dict[str, Any] = {}
    for metric in receiver.metrics:
        for point in metric.histogram.data_points:
            last[f"{metric.name} {sorted(attributes(point).items())}"] = point
    return {key: (point.count, point.sum, list(point.bucket_counts)) for key, point in last.items()}


def recorded(number: int) -> None:
    """Record a session of one call, which the server sends back: these are two spans."""
    request = b'{"jsonrpc":"2.0","id":1,"method":"call/%d"}\n' % number
    subprocess.run([*MCPSPY, "run", "--", "cat"], input=request, timeout=DEADLINE_S, check=True, capture_output=True)


@pytest.mark.more
def test_with_a_follower_and_its_collector_killed_at_random_no_session_is_lost_or_counted_twice(
    tmp_path: Path, tier: Tier, store: Path
) -> None:
    chance, port, number = Random(22), 0, 0
    for _ in range(tier(sample=2, more=8, full=60)):
        with collecting(port, tmp_path) as taking:
            port = int((tmp_path / "port").read_text())
            words = [*MCPSPY, "otlp", "-f", "--endpoint", f"http://127.0.0.1:{port}"]
            environment = os.environ | {"OTEL_EXPORTER_OTLP_TIMEOUT": "1"}
            with subprocess.Popen(words, env=environment, stderr=subprocess.DEVNULL) as following:
                if not number:
                    eventually(lambda: list((store / "otlp").rglob("followed.json")), "the first position")
                before, is_taken = len(bodies(tmp_path)), chance.random() < 0.7
                for _ in range(chance.randint(0, 2)):
                    recorded(number := number + 1)
                if is_taken and number:
                    eventually(lambda: len(bodies(tmp_path)) > before, "a request")  # noqa: B023
                (taking if chance.random() < 0.3 else following).kill()
                recorded(number := number + 1)
                following.kill()
                following.wait(DEADLINE_S)
        recorded(number := number + 1)
    with collecting(port, tmp_path), subprocess.Popen(words, stderr=subprocess.DEVNULL) as following:
        eventually(lambda: len({span.span_id for span in received(tmp_path).spans}) == 2 * number, "all spans")
        eventually(lambda: sum_of(counts(received(tmp_path)), "mcp.client.operation.duration") == 2 * number, "all sums")
        following.kill()
        following.wait(DEADLINE_S)


def sum_of(counted: dict[str, tuple[int, float, list[int]]], metric: str) -> int:
    """Return how many were counted in all series of a metric."""
    return sum(count for key, (count, _, _) in counted.items() if key.startswith(metric))


@pytest.mark.more
def test_with_both_ends_killed_at_random_nothing_is_lost_or_counted_twice(tmp_path: Path, tier: Tier) -> None:
    path, chance = large_capture(tmp_path), Random(21)
    whole = tmp_path / "whole"
    whole.mkdir()
    with collecting(0, whole):
        port = int((whole / "port").read_text())
        assert run("otlp", path, "--endpoint", f"http://127.0.0.1:{port}").returncode == 0
    wanted = received(whole)
    requests = len(bodies(whole))
    for history in range(tier(sample=1, more=5, full=30)):
        folder = tmp_path / f"history-{history}"
        folder.mkdir()
        port = 0
        for _ in range(4):
            with collecting(port, folder) as taking:
                port = int((folder / "port").read_text())
                before, wait_for = len(bodies(folder)), chance.randint(1, requests)
                with sender(path, port) as sending:
                    eventually(
                        lambda: sending.poll() is not None or len(bodies(folder)) >= before + wait_for,  # noqa: B023
                        "a request",
                    )
                    if chance.random() < 0.5:
                        taking.kill()
                    else:
                        sending.kill()
                    sending.wait(DEADLINE_S)
        with collecting(port, folder):
            assert run("otlp", path, "--endpoint", f"http://127.0.0.1:{port}").returncode == 0
        got = received(folder)
        assert {span.span_id for span in got.spans} == {span.span_id for span in wanted.spans}
        assert counts(got) == counts(wanted)
        starts = {point.start_time_unix_nano for metric in got.metrics for point in metric.histogram.data_points}
        assert len(starts) == 1

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

"""The benchmarks still run, and they count what they claim to count. Their figures are no test's business."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import bench_http, bench_stdio, memory, programs, report
from benchmarks.processes import executable
from benchmarks.ratios import stdio
from mcpspy.capture.file.format import frame_line
from mcpspy.records import Frame
from tests.conftest import ROOT, DebianProgram
from tests.deadlines import eventually


@pytest.mark.parametrize("arguments", [[], ["--sock"]], ids=["pipes", "sockets"])
def test_every_frame_that_passed_mcpspy_is_recorded(
    arguments: list[str], tmp_path: Path, debian_program: DebianProgram, monkeypatch: pytest.MonkeyPatch
) -> None:
    debian_program("gcc")
    out = tmp_path / "stdio.json"
    monkeypatch.setattr(bench_stdio, "OUT", tmp_path)
    monkeypatch.setattr(programs, "OUT", tmp_path)
    status = bench_stdio.main(
        ["--peers", "tee,mcpspy", "--rounds", "1", "--secs", "0.1", "--cells", "p200,p4k", "--out", str(out), *arguments]
    )
    assert status == 0
    recorded = {
        (peer, cell): sample["rec"] for peer, cells in json.loads(out.read_text()).items() for cell, (sample,) in cells.items()
    }
    assert recorded == dict.fromkeys([("tee", "p200"), ("tee", "p4k"), ("mcpspy", "p200"), ("mcpspy", "p4k")], 1.0)


def frame(stream: int, *, part: bool = False, first_ns: int = 7) -> Frame:
    return Frame(stream, 7, first_ns, b'{"kind":"frame","stream":0}\n', part)


@pytest.mark.parametrize(
    ("counted", "record"),
    [
        (1, frame(0)),
        (1, frame(1, first_ns=3)),
        (0, frame(2)),
        (0, frame(1, part=True)),
        (0, frame(1, part=True, first_ns=3)),
    ],
    ids=["input", "output that took its time", "stderr", "a part", "a part that took its time"],
)
def test_a_recorded_frame_is_counted_once(counted: int, record: Frame, tmp_path: Path) -> None:
    capture = tmp_path / "x.mcpspy"
    capture.write_bytes(frame_line(1, record))
    assert bench_stdio.count_mcpspy(capture) == counted


def test_a_ratio_is_taken_within_the_run() -> None:
    results: report.Results = {
        "direct": {"lat1c": [{"p50_us": 10.0}]},
        "tee": {"lat1c": [{"p50_us": 20.0}]},
        "mcpspy": {"lat1c": [{"p50_us": 22.0}, {"p50_us": 26.0}, {"p50_us": 21.0}]},
    }
    row = stdio(results).splitlines()[-1].split(" | ")
    assert row[:3] == ["| mcpspy", "12.0", "1.20"]


def test_what_was_not_measured_is_a_dash() -> None:
    assert report.number(report.figure({}, "tee", "lat", "p50_us")) == "–"


@pytest.mark.parametrize("upward", [True, False], ids=["to the server", "from it"])
def test_the_memory_of_a_message_is_measured_while_mcpspy_runs(*, upward: bool, tmp_path: Path) -> None:
    assert 1 < memory.growth_mib(b"x" * (4 << 20) + b"\n", str(tmp_path), upward=upward) < 100


SERVER = [sys.executable, "-m", "http.server", "--bind", "127.0.0.1", "{port}"]


def test_a_peer_that_listens_is_measured_and_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench_http, "OUT", tmp_path)
    running = bench_http.Running("x", bench_http.Peer(argv=SERVER), 1)
    assert running.start_ms > 0
    running.end()
    assert running.process is not None
    assert running.process.poll() is not None


def test_a_peer_whose_port_is_taken_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        monkeypatch.setattr(bench_http, "OUT", tmp_path)
        monkeypatch.setattr(bench_http, "free_port", lambda: taken.getsockname()[1])
        with pytest.raises(RuntimeError, match="does not listen on port"):
            bench_http.Running("x", bench_http.Peer(argv=SERVER), 1)


STARTS_ONE = """
import subprocess, sys, time
from benchmarks.processes import mortal
print(subprocess.Popen(mortal([sys.executable, "-c", "import time; time.sleep(600)"])).pid, flush=True)
time.sleep(600)
"""


def test_what_the_referee_started_ends_when_it_is_killed(debian_program: DebianProgram) -> None:
    debian_program("setpriv")
    with subprocess.Popen([sys.executable, "-c", STARTS_ONE], stdout=subprocess.PIPE, cwd=ROOT) as referee:
        assert referee.stdout is not None
        started = int(referee.stdout.readline())
        eventually(lambda: executable(started) == os.path.realpath(sys.executable), "it to run")
        referee.kill()
    eventually(lambda: not executable(started), "its end")

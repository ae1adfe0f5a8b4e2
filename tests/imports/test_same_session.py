"""One session in every format: the same diagram and the same replay as from the tap's capture; and damaged files make no trouble."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcpspy import transcribe
from mcpspy.imports.formats import recognized
from mcpspy.imports.source import Source
from mcpspy.live.http.recorder import StreamRecorder
from mcpspy.records import Record
from tests.cli.terminal import run
from tests.conftest import ROOT
from tests.imports.logging_clients import desktop, editor_trace, log_of
from tests.imports.packet_files import pcap, pcapng
from tests.imports.test_follow_stream import ASCII, EXPLAINED, RAW, WINDOW, YAML
from tests.imports.test_har import ENTRY, har
from tests.imports.test_mcphawk import database_of
from tests.imports.test_mcpsnoop import log_of as snooped
from tests.imports.test_pcap import SEGMENTS
from tests.imports.test_strace import LINES

CAPTURES = ROOT / "captures"
STDIO: dict[str, Callable[[str], bytes]] = {
    "session.log": lambda name: log_of(CAPTURES / f"{name}.mcpspy", desktop).encode(),
    "trace.log": lambda name: log_of(CAPTURES / f"{name}.mcpspy", editor_trace).encode(),
    "session.jsonl": snooped,
    "session.db": database_of,
}
HTTP = {"session.har": lambda name: run("export", "har", str(CAPTURES / f"{name}.mcpspy")).stdout.encode()}
DURATION = re.compile(r" · [\d.]+ (?:µs|ms|s)\b")
CASES = [(name, file) for name in ("time", "question") for file in STDIO] + [
    (name, file) for name in ("streamable", "stateless") for file in HTTP
]


@pytest.fixture
def imported(tmp_path: Path, request: pytest.FixtureRequest) -> tuple[str, str]:
    """The paths of a tap's capture, and of a file in another format with the same session."""
    name, file = request.param
    path = tmp_path / file
    path.write_bytes((STDIO | HTTP)[file](name))
    return str(CAPTURES / f"{name}.mcpspy"), str(path)


@pytest.mark.parametrize("imported", CASES, indirect=True, ids=str)
def test_the_diagram_has_the_arrows_of_the_taps(imported: tuple[str, str]) -> None:
    tapped, other = (arrows(run("export", "mermaid", path).stdout) for path in imported)
    assert tapped
    assert other == tapped


def arrows(diagram: str) -> list[str]:
    """Return the messages of a diagram; not its phases, for which the process and the times of the wire are needed."""
    lines = (DURATION.sub("", line.strip()) for line in diagram.splitlines())
    return [line for line in lines if line.startswith(("client1-", "server1-")) and "closed" not in line]


@pytest.mark.parametrize("imported", [case for case in CASES if case[1] in STDIO], indirect=True, ids=str)
def test_the_mock_answers_as_that_of_the_tap(imported: tuple[str, str]) -> None:
    params = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}}
    asks = [
        {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 1, "method": "tools/list"},
    ]
    stdin = "".join(json.dumps(ask) + "\n" for ask in asks).encode()
    tapped, other = ([json.loads(line) for line in run("mock", path, stdin=stdin).stdout.splitlines()] for path in imported)
    assert [answer.get("id") for answer in tapped] == [0, 1]
    assert other == tapped


@pytest.mark.parametrize("imported", CASES, indirect=True, ids=str)
def test_a_replay_sends_what_that_of_the_tap_sends(imported: tuple[str, str]) -> None:
    server = ["--url", "http://127.0.0.1:9/mcp"] if "har" in imported[1] else ["--", "cat"]
    tapped, other = (run("replay", path, "--dry-run", *server).stdout.splitlines() for path in imported)
    assert [line for line in tapped if "tools/" in line]
    assert plan(other) == plan(tapped)


def plan(lines: list[str]) -> list[str]:
    """Return what a replay will send."""
    return [line for line in lines if "tools/" in line or "initialize" in line]


FILES = {
    "log": log_of(CAPTURES / "time.mcpspy", desktop).encode()[:6000],
    "mcpsnoop": snooped("time")[:6000],
    "strace": LINES * 3,
    "har": har(ENTRY, ENTRY),
    "pcap": pcap(SEGMENTS),
    "pcapng": pcapng(SEGMENTS),
    "ascii": ASCII * 2,
    "yaml": YAML * 2,
    "window": WINDOW,
    "explained": EXPLAINED,
    "raw": RAW,
}
DAMAGES = st.lists(st.tuples(st.integers(0, 1 << 20), st.binary(max_size=4), st.integers(0, 40)), max_size=8)


@pytest.mark.parametrize("kind", FILES)
@given(damages=DAMAGES, cut=st.integers(0, 1 << 20))
@settings(max_examples=40)
def test_damaged_copies_are_read(kind: str, damages: list[tuple[int, bytes, int]], cut: int) -> None:
    data = FILES[kind]
    form = recognized(data)
    assert form is not None
    for place, put, removed in damages:
        at = place % (len(data) + 1)
        data = data[:at] + put + data[at + removed :]
    data = data[: max(1, len(data) - cut % 500)]
    recognized(data)
    importer = form.importer(Source(name="x", format=form.name, sha256="ab"), StreamRecorder)
    sessions: dict[int, list[Record]] = {}
    for number, record in [*importer.feed(data), *importer.close()]:
        record.number = len(sessions.setdefault(number, []))
        sessions[number].append(record)
    for records in sessions.values():
        transcribe(records)

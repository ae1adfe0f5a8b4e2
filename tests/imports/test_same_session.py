"""One session in every format: the same diagram and the same replay as from the tap's capture; and damaged files make no trouble."""

import json
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcpspy import open as open_captures
from mcpspy import transcribe
from mcpspy.imports.formats import recognized
from mcpspy.imports.source import Source
from mcpspy.live.http.recorder import StreamRecorder
from mcpspy.records import Record
from mcpspy.transcript.absent_facts import UNANSWERED, unproven_rules
from mcpspy.transcript.model import Transcript
from mcpspy.transcript.outcome import Outcome
from tests.cli.terminal import run
from tests.conftest import ROOT
from tests.imports.logging_clients import LOGS, LogLine, desktop, log_of, rows_in_any_order
from tests.imports.packet_files import pcap, pcapng
from tests.imports.test_har import ENTRY, har
from tests.imports.test_mcphawk import database_of
from tests.imports.test_mcpsnoop import log_of as snooped
from tests.imports.test_pcap import SEGMENTS

CAPTURES = ROOT / "captures"


def logged(name: str, line: LogLine) -> bytes:
    """Return what a client or a server would have logged of a capture of stdio."""
    return log_of(CAPTURES / f"{name}.mcpspy", line).encode()


STDIO: dict[str, Callable[[str], bytes]] = {
    **{f"{kind}.log": partial(logged, line=line) for kind, line in LOGS.items()},
    "session.jsonl": snooped,
    "session.db": database_of,
}
HTTP = {"session.har": lambda name: run("export", "har", str(CAPTURES / f"{name}.mcpspy")).stdout.encode()}
NAMES = ("cancelled", "everything", "filesystem", "git", "goodbye", "logs", "memory", "question", "refused", "time")
"""Captures of stdio with one session each."""


@pytest.mark.grid
@pytest.mark.parametrize("form", STDIO)
@pytest.mark.parametrize("name", NAMES)
def test_each_format_has_the_rows_of_the_taps_and_all_findings_that_its_facts_allow(
    name: str, form: str, tmp_path: Path
) -> None:
    path = tmp_path / form
    path.write_bytes(STDIO[form](name))
    made = run("import", str(path), "-o", str(tmp_path / "made.mcpspy")).stdout.strip()
    tapped, other = open_captures(CAPTURES / f"{name}.mcpspy"), open_captures(made)
    rows = rows_in_any_order(other)
    if all(row.response is None for row in other.exchanges):  # then the log may have left out all that the server sent
        rows = [row.replace(repr(Outcome.UNKNOWN), repr(Outcome.UNANSWERED)) for row in rows]
    assert rows == rows_in_any_order(tapped)
    expected = rules(tapped) - set(unproven_rules(other.captures[0]))
    if rows != rows_in_any_order(other):
        expected |= {"recording-gap"}
    assert rules(other) | {UNANSWERED} == expected | {UNANSWERED}
    assert rules(other) <= expected  # a request that is the last thing in a file is not reported as unanswered


def rules(transcript: Transcript) -> set[str]:
    return {finding.rule for finding in transcript.findings}


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


@pytest.mark.grid(6)
@pytest.mark.parametrize("imported", CASES, indirect=True, ids=str)
def test_the_diagram_has_the_arrows_of_the_taps(imported: tuple[str, str]) -> None:
    tapped, other = (arrows(run("export", "mermaid", path).stdout) for path in imported)
    assert tapped
    assert other == tapped


def arrows(diagram: str) -> list[str]:
    """Return the messages of a diagram as far as no time shortens them; not its phases, which need the process and exact times."""
    lines = (DURATION.sub("", line.strip()) for line in diagram.splitlines())
    return [line[:90] for line in lines if line.startswith(("client1-", "server1-")) and "closed" not in line]


def test_a_mock_answers_with_an_error_what_the_log_may_not_have_to_its_end(tmp_path: Path) -> None:
    path = tmp_path / "client.log"
    lines = logged("time", LOGS["client"]).splitlines(keepends=True)
    answer = next(at for at, line in enumerate(lines) if b'"result"' in line and b'"tools":[' in line)
    path.write_bytes(b"".join(lines[:answer]))
    asks = json.loads(lines[answer - 1].partition(b">>> ")[2])
    (answered,) = run("mock", str(path), stdin=json.dumps(asks).encode() + b"\n").stdout.splitlines()
    assert "the file that was imported does not have it, or ends before" in json.loads(answered)["error"]["message"]


@pytest.mark.grid(6)
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


@pytest.mark.grid(6)
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
    "har": har(ENTRY, ENTRY),
    "pcap": pcap(SEGMENTS),
    "pcapng": pcapng(SEGMENTS),
}
DAMAGES = st.lists(st.tuples(st.integers(0, 1 << 20), st.binary(max_size=4), st.integers(0, 40)), max_size=8)


@pytest.mark.grid(4)
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

"""A server started as `java Demo.java`, as tutorials have it: slow to start, ids from 0, and every message in its log, in Chinese."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from mcpspy import read, transcribe
from mcpspy.transcript.log_matches import log_matches
from mcpspy.transcript.model import Log, Outcome, Transcript
from mcpspy.transcript.phases import lifecycles
from tests.conftest import PEERS, DebianProgram, Peer
from tests.deadlines import DEADLINE_S

JVM_NS = 50_000_000
"""No virtual machine starts, and compiles, in less. Which of two pipes is read first, nobody can say."""

STEPS: list[dict[str, Any]] = [{"list": "tools"}, {"call": "weather", "arguments": {"city": "北京"}}]


@pytest.fixture
def transcript(tmp_path: Path, mcpspy: list[str], peer: Peer, debian_program: DebianProgram) -> Transcript:
    """Record the official Python SDK's client with the Java server."""
    capture = tmp_path / "demo.mcpspy"
    tap = [*mcpspy, "run", "--quiet", "--capture", str(capture), "--", debian_program("java"), str(PEERS / "Demo.java")]
    client = [*peer("stepclient.py"), "legacy", json.dumps(STEPS), *tap]
    subprocess.run(client, capture_output=True, timeout=DEADLINE_S, check=True)
    return transcribe(read(capture))


def test_a_java_server_is_started_recorded_understood_and_without_fault(transcript: Transcript) -> None:
    assert [exchange.outcome for exchange in transcript.exchanges] == [Outcome.OK] * 3
    assert [exchange.method for exchange in transcript.exchanges] == ["initialize", "tools/list", "tools/call"]
    assert transcript.captures[0].complete
    (course,) = lifecycles(transcript)
    assert [phase.name for phase in course.phases] == ["start", "handshake", "discovery", "calls", "shutdown"]
    assert course.start_up is not None
    assert course.start_up.first_log_ns is not None
    assert course.start_up.first_answer_ns is not None
    begin_ns = course.start_up.spawned_ns + JVM_NS
    assert min(course.start_up.first_log_ns, course.start_up.first_answer_ns) > begin_ns
    quoted = {id(match.message) for match in log_matches(transcript.rows).values()}
    assert [message for message in transcript.messages if id(message) not in quoted] == []
    assert any("启动".encode() in row.raw for row in transcript.rows if isinstance(row, Log))
    assert [finding.rule for finding in transcript.findings] == []

"""Intercepts over HTTP with official clients and servers: Streamable HTTP that answers with JSON, with events, and HTTP+SSE."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from mcp import Client, MCPError
from mcp.client.sse import sse_client
from mcp.client.stdio import StdioServerParameters, stdio_client

from mcpspy import read
from mcpspy.records import Frame, Intercept
from mcpspy.transcript.findings.run import all_findings
from mcpspy.transcript.model import Exchange
from mcpspy.transcript.transcribe import transcribe
from tests.cli.terminal import MCPSPY, run
from tests.conftest import PEERS
from tests.deadlines import DEADLINE_S
from tests.live.http.ends import Proxy
from tests.live.mock.mocking_http import HttpMocking

if TYPE_CHECKING:
    from pathlib import Path

JSON, EVENTS, OLD = "json", "events", "http+sse"
KINDS = (JSON, EVENTS, OLD)
WORDS = {JSON: ("http", "0", "json_response"), EVENTS: ("http", "0"), OLD: ("sse", "0")}
ANSWER = {"content": [{"type": "text", "text": "from a file"}], "structuredContent": {"result": 7}}
TIME_OUT_S = 1.0
SUM = "3"


@contextmanager
def proxied(kind: str, capture: Path, *options: str) -> Iterator[Proxy]:
    """Run an official server and mcpspy in front of it."""
    words = [sys.executable, str(PEERS / "pyserver.py"), *WORDS[kind]]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as server:
        assert server.stdout is not None
        try:
            port = int(server.stdout.readline())
            proxy = Proxy(f"http://127.0.0.1:{port}/{'sse' if kind == OLD else 'mcp'}", capture, *options)
            try:
                yield proxy
                proxy.stop()
            finally:
                proxy.end()
        finally:
            server.kill()
            server.wait(DEADLINE_S)


async def _called(target: Any, time_out_s: float, mode: Any = "legacy") -> str:
    """Return what an official client gets for one call: the text, or its error."""
    outcome = ""
    try:
        async with asyncio.timeout(DEADLINE_S), Client(target, mode=mode) as client:
            try:
                result: Any = await client.call_tool("add", {"a": 1, "b": 2}, read_timeout_seconds=time_out_s)
                outcome = str(result.content[0].text)
            except MCPError as error:
                outcome = f"error: {error}"
    except Exception as error:  # noqa: BLE001 - whatever it raises is what it made of the answer
        return outcome or f"failed: {error!r}"
    return outcome


def called(kind: str, capture: Path, *options: str, time_out_s: float = DEADLINE_S) -> str:
    with proxied(kind, capture, "--redact", "none", *options) as proxy:
        return asyncio.run(_called(_target(kind, proxy.address), time_out_s))


def _target(kind: str, url: str) -> Any:
    return sse_client(url, timeout=DEADLINE_S) if kind == OLD else url


def mocked(kind: str, capture: Path, time_out_s: float = DEADLINE_S) -> str:
    """Return what a client gets from a mock over HTTP. It probes for the modern era first, so its ids are not the recorded ones."""
    with HttpMocking(capture, *(("--transport", "sse") if kind == OLD else ())) as mock:
        return asyncio.run(_called(_target(kind, mock.url), time_out_s, "auto"))


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    return tmp_path / "intercepted.mcpspy"


def rows_of(capture: Path) -> list[Exchange]:
    return [row for row in transcribe(list(read(capture))).rows if isinstance(row, Exchange)]


@pytest.mark.grid(4)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("action", "expected"),
    [
        ("method:no => drop", SUM),
        ("tool:add => delay 200ms", SUM),
        ("kind:result tool:add => delay 200ms", SUM),
        ('tool:add => error -32000 "try later"', "try later"),
        ('kind:result tool:add => error -32000 "try later"', "try later"),
        ("tool:add => set params.arguments.a=40", "42"),
        ('tool:add => set result.content[0].text="changed"', "changed"),
    ],
)
def test_an_official_client_sees_the_intercept(kind: str, action: str, expected: str, capture: Path) -> None:
    assert expected in called(kind, capture, "--intercept", action)
    assert run("verify", str(capture)).returncode == 0
    transcript = transcribe(list(read(capture)))
    assert {finding.culprit for finding in all_findings(transcript)} <= {"unclear"}


@pytest.mark.parametrize("kind", KINDS)
def test_an_official_client_gets_the_answer_of_a_file(kind: str, capture: Path, tmp_path: Path) -> None:
    (tmp_path / "answer.json").write_text(json.dumps(ANSWER), encoding="utf-8")
    assert called(kind, capture, "--intercept", f"tool:add => respond {tmp_path / 'answer.json'}") == "from a file"


@pytest.mark.parametrize("kind", KINDS)
def test_an_official_client_notices_that_it_is_disconnected(kind: str, capture: Path) -> None:
    outcome = called(kind, capture, "--intercept", "tool:add => disconnect", time_out_s=TIME_OUT_S)
    assert outcome.startswith(("error", "failed"))
    assert {finding.culprit for finding in all_findings(transcribe(list(read(capture))))} <= {"unclear"}


@pytest.mark.grid(4)
@pytest.mark.parametrize(
    ("action", "expected"),
    [
        ("tool:add => drop", "imed out"),
        ("tool:add => stall", "imed out"),
        ("tool:add => truncate 30", "error"),
        ("tool:add => status 503", "error"),
        ('tool:add => status 429 "Retry-After: 1"', "error"),
        ("tool:add => expire", "Session terminated"),
        ("tool:add => disconnect 30", "error"),
        ("tool:add => reorder 100ms", SUM),
        ("tool:add => duplicate", SUM),
        ('tool:add => garbage "hm"', "Failed to parse"),
        ("tool:add => hold 200ms", SUM),
        ("tool:add => remove result.structuredContent", "structured content"),
    ],
)
def test_an_official_client_sees_the_other_actions_on_a_stream_of_events(action: str, expected: str, capture: Path) -> None:
    assert expected in called(EVENTS, capture, "--intercept", action, time_out_s=TIME_OUT_S)
    assert {finding.culprit for finding in all_findings(transcribe(list(read(capture))))} <= {"unclear"}


def test_the_same_seed_does_the_same(tmp_path: Path) -> None:
    options = ("--seed", "7", "--intercept", "method:* => delay 1ms..90ms p=0.7")
    acts = []
    for name in ("first", "second"):
        called(JSON, tmp_path / name, *options)
        acts.append([record.action for record in read(tmp_path / name) if isinstance(record, Intercept)])
    assert acts[0] == acts[1]
    assert acts[0]


def test_a_capture_with_intercepts_is_shared_and_drawn_as_the_client_saw_it(capture: Path, tmp_path: Path) -> None:
    action = 'tool:add => set result.content[0].text="changed"'
    assert called(JSON, capture, "--intercept", action) == "changed"
    assert "intercepted: set result.content[0].text" in run("show", str(capture)).stdout
    assert "intercepted" in run("export", "mermaid", str(capture)).stdout
    shared = tmp_path / "shared.mcpspy"
    assert run("export", "share", str(capture), "-o", str(shared)).returncode == 0
    assert run("verify", str(shared)).returncode == 0
    (act,) = [record for record in read(shared) if isinstance(record, Intercept)]
    (frame,) = [record for record in read(shared) if isinstance(record, Frame) and record.number == act.frame]
    assert (b"changed" in frame.data, b"changed" in (frame.forwarded or b"")) == (False, True)


# What is recorded plays as it was received


@pytest.mark.parametrize("kind", KINDS)
def test_a_mock_gives_the_answer_that_the_client_got(kind: str, capture: Path) -> None:
    assert called(kind, capture, "--intercept", 'tool:add => set result.content[0].text="changed"') == "changed"
    assert mocked(kind, capture) == "changed"
    command = [*MCPSPY, "mock", str(capture)]
    target = stdio_client(StdioServerParameters(command=command[0], args=command[1:], env=dict(os.environ)))
    assert asyncio.run(_called(target, DEADLINE_S)) == "changed"


@pytest.mark.grid(2)
@pytest.mark.parametrize(
    ("kind", "action", "expected"),
    [
        (JSON, 'kind:result tool:add => error -32000 "try later"', "try later"),
        (EVENTS, 'tool:add => error -32000 "try later"', "try later"),
        (JSON, "tool:add => status 503", "error: Server returned an error response"),
        (JSON, "kind:result tool:add => drop", "imed out"),
        (JSON, "tool:add => drop", "imed out"),
        (JSON, "kind:result tool:add => hold 200ms", SUM),
    ],
)
def test_a_mock_does_over_http_what_the_intercept_did(kind: str, action: str, expected: str, capture: Path) -> None:
    time_out_s = TIME_OUT_S if expected == "imed out" else DEADLINE_S
    assert expected in called(kind, capture, "--intercept", action, time_out_s=time_out_s)
    assert expected in mocked(kind, capture, time_out_s=time_out_s)


@pytest.mark.parametrize("action", ["kind:result tool:add => drop", "tool:add => disconnect"])
def test_a_mock_says_why_it_gives_no_answer(action: str, capture: Path) -> None:
    called(JSON, capture, "--intercept", action, time_out_s=TIME_OUT_S)
    with HttpMocking(capture) as mock:
        asyncio.run(_called(mock.url, TIME_OUT_S, "auto"))
        _, _, said = mock.ends()
    assert "tools/call add gets no answer, as recorded: intercepted: " in said


@pytest.mark.parametrize("kind", KINDS)
def test_a_replay_sends_the_request_that_the_server_got_and_compares_the_answer_that_the_client_got(
    kind: str, capture: Path, tmp_path: Path
) -> None:
    actions = ("tool:add => set params.arguments.a=40", 'tool:add => set result.content[0].text="changed"')
    assert called(kind, capture, *(word for action in actions for word in ("--intercept", action))) == "changed"
    other = tmp_path / "replayed.mcpspy"
    with proxied(kind, tmp_path / "second.mcpspy") as proxy:
        done = run("replay", str(capture), "--url", proxy.address, "--capture", str(other))
    assert '"changed" ≠ "42"' in done.stdout
    assert run("diff", str(capture), str(other)).stdout.count(" ≠ ") == 1

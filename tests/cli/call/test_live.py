"""`mcpspy call` into a session that runs: through the control socket of its tap, unseen by the client."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from mcpspy.records import Frame, Intercept
from mcpspy.transcript.findings.run import all_findings
from mcpspy.transcript.transcribe import transcribe
from tests.cli.terminal import on_pipe, run
from tests.conftest import PEERS
from tests.deadlines import DEADLINE_S, eventually
from tests.intercept.making import line
from tests.live.client import Client

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SDK_SERVER = [sys.executable, str(PEERS / "sdkserver.py"), "mcp", "stdio"]
GREETING = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "clerk", "version": "1"}}
CALLS = (
    {"id": 2, "method": "tools/list"},
    {"id": 3, "method": "tools/call", "params": {"name": "add", "arguments": {"a": 1, "b": 2}}},
)


def begin(client: Client) -> None:
    """Let the client shake hands, list the tools (row 3), and call one (row 4)."""
    client.send(line({"id": 1, "method": "initialize", "params": GREETING}))
    client.line()
    client.send(line({"method": "notifications/initialized"}))
    for call in CALLS:
        client.send(line(call))
        client.line()


@pytest.fixture
def sums(tmp_path: Path) -> Iterator[Client]:
    """A client of a server on the official SDK, under the label `sums`."""
    with Client(SDK_SERVER, "--label", "sums") as client:
        begin(client)
        yield client


def end(client: Client) -> list[Any]:
    """Let the client leave, and return what was recorded."""
    client.close(client.stdin)
    assert client.rest() == b""
    client.wait()
    return client.records()


def test_a_recorded_call_is_sent_into_the_session_and_the_client_does_not_see_it(sums: Client) -> None:
    done = run("call", "sums:4", "--yes")
    assert (done.returncode, done.stderr) == (0, f"mcpspy: tools/call add to the session of sums (pid {sums.pid})\n")
    assert done.stdout.startswith("✓ tools/call add  ok  ")
    assert done.stdout.endswith("✓ as recorded in row 4\n")
    sums.send(line({"id": 4, "method": "tools/call", "params": {"name": "add", "arguments": {"a": 3, "b": 4}}}))
    assert json.loads(sums.line())["id"] == 4
    records = end(sums)
    sent = [record.data for record in records if isinstance(record, Frame) and record.injected]
    assert [json.loads(data)["params"]["arguments"] for data in sent] == [{"a": 1, "b": 2}]


def test_a_call_can_be_changed_and_differs_then(sums: Client) -> None:
    done = run("call", "sums:4", "--yes", "--set", "$.arguments.b=40")
    assert done.returncode == 1
    assert '$.result.content[0].text: "3" ≠ "41"' in done.stdout


def test_a_tool_is_called_with_its_progress_kept_from_the_client(sums: Client) -> None:
    done = run("call", "sums", "count", "to=3", "--set", '$._meta={"progressToken":1}', "--yes", "--json")
    output = json.loads(done.stdout)
    assert (output["exit"], output["outcome"], output["target"]["label"]) == (0, "ok", "sums")
    records = end(sums)
    kept = [record.data for record in records if isinstance(record, Frame) and record.rare.get("forwarded") == b""]
    assert ["method" in json.loads(data) for data in kept] == [True, True, True, False]


def test_rows_say_who_called_and_findings_blame_nobody_for_it(sums: Client) -> None:
    assert run("call", "sums:4", "--yes").returncode == 0
    assert run("call", "sums:4", "--yes", "--set", '$.name="gone"').returncode == 1
    transcript = transcribe(end(sums))
    ours = [exchange for exchange in transcript.exchanges if exchange.is_by_mcpspy]
    assert [exchange.target for exchange in ours] == ["add", "gone"]
    assert not {exchange.row for exchange in ours} & {finding.row for finding in all_findings(transcript)}
    assert all(finding.blame[:7] != "Unclear" for finding in all_findings(transcript))
    shown = run("show", str(sums.capture))
    assert shown.stdout.count(", by mcpspy call") == 2
    assert run("check", str(sums.capture), "--fail-on", "warning").returncode == 0
    assert run("verify", str(sums.capture)).returncode == 0


def test_the_capture_plays_and_compares_as_if_nothing_had_been_called(sums: Client) -> None:
    run("call", "sums", "count", "to=1", "--yes")
    end(sums)
    done = run("replay", str(sums.capture), "--", *SDK_SERVER, PYTHONPATH="")
    assert done.stdout.startswith("✓ no difference · 3 calls unchanged")
    assert "mcpspy call sent it, not the client" in done.stdout
    mocked = run("replay", str(sums.capture), "--", sys.executable, "-m", "mcpspy", "mock", str(sums.capture), PYTHONPATH="")
    assert mocked.stdout.startswith("✓ no difference · 3 calls unchanged")


def test_the_tap_goes_on_as_before(sums: Client) -> None:
    for _ in range(3):
        assert run("call", "sums:4", "--yes").returncode == 0
    for id in range(10, 20):
        sums.send(line({"id": id, "method": "tools/call", "params": {"name": "add", "arguments": {"a": id, "b": 1}}}))
        assert json.loads(sums.line())["id"] == id
    records = end(sums)
    last = max(record.frame for record in records if isinstance(record, Intercept))
    assert sum(1 for record in records if isinstance(record, Frame) and record.number > last and record.stream == 1) == 10


def test_a_session_without_a_control_socket_is_not_said_to_have_ended() -> None:
    with Client(SDK_SERVER, "--label", "shut", "--no-control") as client:
        begin(client)
        done = run("call", "shut:4", "--yes")
        assert (done.returncode, done.stdout) == (2, "")
        assert "shut runs, but does not answer at its control socket" in done.stderr
        assert end(client)


SILENT = """
import json, sys
for text in sys.stdin:
    message = json.loads(text)
    name = message.get("params", {}).get("name")
    if message.get("method") == "notifications/cancelled" or name == "late":
        print(json.dumps({"jsonrpc": "2.0", "id": message["params"].get("requestId", message.get("id")), "result": {}}), flush=True)
    elif name == "die":
        sys.exit(1)
    elif "id" in message and name != "wait":
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": {}}), flush=True)
"""


@pytest.fixture
def silent() -> Iterator[Client]:
    """A client of a server with a tool `wait` that answers only what is cancelled, and a tool `die`."""
    with Client([sys.executable, "-I", "-S", "-c", SILENT], "--label", "silent") as client:
        client.send(line({"id": 1, "method": "tools/call", "params": {"name": "greet"}}))
        client.line()
        yield client


def test_a_call_without_an_answer_is_cancelled_and_a_late_answer_is_kept_from_the_client(silent: Client) -> None:
    done = run("call", "silent", "wait", "--yes", "--timeout", "0.3")
    assert (done.returncode, done.stdout) == (4, "")
    assert "there was no answer in time, and it was cancelled" in done.stderr
    silent.send(line({"id": 2, "method": "tools/call", "params": {"name": "greet"}}))
    assert json.loads(silent.line())["id"] == 2
    records = end(silent)
    methods = [json.loads(record.data)["method"] for record in records if isinstance(record, Frame) and record.injected]
    assert methods == ["tools/call", "notifications/cancelled"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_call_that_is_stopped_or_killed_is_cancelled(silent: Client, number: signal.Signals) -> None:
    def injected() -> list[str]:
        frames = [record for record in silent.records() if isinstance(record, Frame) and record.injected]
        return [json.loads(frame.data)["method"] for frame in frames]

    with on_pipe("call", "silent", "wait", "--yes") as running:
        eventually(lambda: injected() == ["tools/call"], "the call")
        assert running.end(number) in (130, -signal.SIGKILL)
    eventually(lambda: injected() == ["tools/call", "notifications/cancelled"], "the cancellation")
    silent.send(line({"id": 2, "method": "tools/call", "params": {"name": "greet"}}))
    assert json.loads(silent.line())["id"] == 2
    assert end(silent)


def test_a_server_that_dies_of_a_call_is_said(silent: Client) -> None:
    done = run("call", "silent", "die", "--yes")
    assert (done.returncode, done.stdout) == (4, "")
    assert "tools/call die: the server has ended" in done.stderr


def test_a_redacted_value_is_not_sent_into_a_session(silent: Client) -> None:
    silent.send(line({"id": 2, "method": "tools/call", "params": {"name": "redacted-0123456789ab"}}))
    silent.line()
    done = run("call", "silent:2", "--yes")
    assert done.returncode == 2
    assert "it was not sent: it holds a value that was redacted" in done.stderr
    assert not [record for record in end(silent) if isinstance(record, Frame) and record.injected]


def test_a_large_answer_comes_whole_while_the_client_is_served(tmp_path: Path) -> None:
    large = 'import json,sys\nfor t in sys.stdin:\n m=json.loads(t)\n n=m["params"].get("arguments",{}).get("n",0)\n'
    large += ' print(json.dumps({"jsonrpc":"2.0","id":m["id"],"result":{"x":"é"*n}}),flush=True)\n'
    with Client([sys.executable, "-I", "-S", "-c", large], "--label", "large") as client:
        client.send(line({"id": 1, "method": "tools/call", "params": {"name": "x"}}))
        client.line()
        done = run("call", "large", "x", "n:=1000000", "--yes", "--json")
        assert json.loads(json.loads(done.stdout)["answer"]["text"])["result"]["x"] == "é" * 1_000_000
        assert end(client)


def test_calls_of_many_controllers_and_a_client_get_their_own_answers(sums: Client) -> None:
    words = [sys.executable, "-m", "mcpspy", "call", "sums", "add", "--yes", "--json"]
    callers = [
        subprocess.Popen([*words, f"a={at}", "b=100"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) for at in range(4)
    ]
    for id in range(10, 60):
        sums.send(line({"id": id, "method": "tools/call", "params": {"name": "add", "arguments": {"a": id, "b": 0}}}))
        answer = json.loads(sums.line())
        assert (answer["id"], answer["result"]["content"][0]["text"]) == (id, str(id))
    for at, caller in enumerate(callers):
        output = json.loads(caller.communicate(timeout=DEADLINE_S)[0])
        assert json.loads(output["answer"]["text"])["result"]["content"][0]["text"] == str(at + 100)
    assert end(sums)

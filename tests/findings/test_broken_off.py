"""Answers that were arriving when the client left, and clients that left at another time."""

import subprocess
import sys
from pathlib import Path

import pytest

from mcpspy.capture.file.reader import read
from mcpspy.transcript.transcribe import transcribe
from tests.deadlines import DEADLINE_S
from tests.findings.test_near_misses import HANDSHAKE, SESSION, SSE
from tests.findings.test_silences import findings_of

CALL = '→ POST /mcp\n  tools/call 3 {"name":"export"}\n'
LONG = '{"content":[{"type":"text","text":"⟪x×%d⟫"}]}'
EVENT = f"← data: result 3 {LONG}…\n"
LEAVES = "· the client closes the stream\n"
LINE = (
    f'{HANDSHAKE}→ tools/call 3 {{"name":"export"}}\n'
    '← {"jsonrpc":"2.0","id":3,"result":{"content":[{"type":"text","text":"⟪x×70000⟫…\n'
)

BROKEN = {
    "an event of more than 64 KiB": (f"{SESSION}{CALL}{SSE}{EVENT % 70_000}{LEAVES}", "warning"),
    "an event of more than 1 MiB": (f"{SESSION}{CALL}{SSE}{EVENT % 1_100_000}{LEAVES}", "warning"),
    "an event of no special size": (f"{SESSION}{CALL}{SSE}{EVENT % 1_000}{LEAVES}", "note"),
    "a session that the client then ends": (
        f"{SESSION}{CALL}{SSE}{EVENT % 70_000}→ DELETE /mcp\n← 200 OK\n· the client closes the stream of #3\n",
        "warning",
    ),
    "a line": (f"{LINE}· 0.1 s later\n· the client closes stdin\n", "warning"),
}
HALF = f'{HANDSHAKE}→ tools/call 3 {{"name":"export"}}\n← {{"jsonrpc":"2.0","id":3,"result":{{"content":[{{"type":"te…\n'
UNCLEAR = {
    "a short line that may have been stuck": f"{HALF}· 3.0 s later\n· the client closes stdin\n",
    "an event that came no further": f"{SESSION}{CALL}{SSE}{EVENT % 1_000}· 3.0 s later\n{LEAVES}",
}
SILENT = {
    "a server that hangs within a short line": f"{HALF}· 6.0 s later\n· the client closes stdin\n",
    "an answer that came whole": f"{SESSION}{CALL}{SSE}{EVENT.replace('…', '') % 70_000}{LEAVES}",
    "a server that broke off": f"{SESSION}{CALL}{SSE}{EVENT % 70_000}· the server breaks off the stream, broken\n",
    "a server that stopped in the middle": f"{SESSION}{CALL}{SSE}{EVENT % 70_000}· 9.0 s later\n{LEAVES}",
    "an answer that had not begun": f"{SESSION}{CALL}{SSE}· 0.2 s later\n{LEAVES}",
    "a piece of another message": (
        f'{SESSION}{CALL}{SSE}← data: {{"jsonrpc":"2.0","id":99,"result":{{"text":"⟪x×70000⟫"}}}}…\n{LEAVES}'
    ),
    "a call that was cancelled before": (
        f"{SESSION}{CALL}{SSE}{EVENT % 70_000}→ POST /mcp\n"
        '  notifications/cancelled {"requestId":3,"reason":"the user left"}\n← 202 Accepted\n· the client closes the stream of #3\n'
    ),
    "a server that left in the middle of a line": f"{LINE}· the server exits 1",
}


@pytest.mark.parametrize(("account", "severity"), BROKEN.values(), ids=list(BROKEN))
def test_a_client_that_leaves_within_an_answer_is_to_blame(account: str, severity: str) -> None:
    found = [
        (finding.rule, finding.culprit, finding.severity) for finding in findings_of(account) if finding.rule != "half-line"
    ]
    assert found == [("answer-broken-off", "client", severity)]


@pytest.mark.parametrize("account", UNCLEAR.values(), ids=list(UNCLEAR))
def test_nobody_is_to_blame_where_the_answer_may_have_been_stuck(account: str) -> None:
    found = [(finding.rule, finding.culprit, finding.severity) for finding in findings_of(account)]
    assert found == [("answer-broken-off", "unclear", "note")]


def test_a_server_that_hangs_within_a_line_is_to_blame_alone() -> None:
    found = [(finding.rule, finding.culprit) for finding in findings_of(SILENT["a server that hangs within a short line"])]
    assert found == [("half-line", "server")]


@pytest.mark.parametrize("account", SILENT.values(), ids=list(SILENT))
def test_a_client_that_leaves_at_another_time_broke_nothing_off(account: str) -> None:
    assert "answer-broken-off" not in {finding.rule for finding in findings_of(account)}


def test_it_says_how_much_had_come_and_which_limit_that_meets() -> None:
    (finding,) = findings_of(BROKEN["an event of more than 1 MiB"][0])
    assert "1,100,0" in finding.what
    assert "more than 1 MiB" in finding.what


SERVER = """
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    text = "x" * 2_000_000 if message["method"] == "tools/call" else ""
    result = {"content": [{"type": "text", "text": text}]}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"""

# The proxy notices that a reader has gone when it sends something. After the end of its input this server sends something more,
# so it does not matter which of two pipes that were closed at once is seen first.
SERVER_WITH_LAST_WORDS = f"""{SERVER}
print('{{"jsonrpc":"2.0","method":"notifications/message","params":{{"level":"info","data":"bye"}}}}', flush=True)
"""


@pytest.mark.parametrize(("read_bytes", "expected"), [(100_000, True), (3_000_000, False)])
def test_a_client_that_stops_reading_within_a_line_broke_it_off(read_bytes: int, *, expected: bool, tmp_path: Path) -> None:
    capture = tmp_path / "long.mcpspy"
    command = [sys.executable, "-m", "mcpspy", "run", "--quiet", "--capture", str(capture), "--", sys.executable, "-c", SERVER]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as client:
        assert client.stdin is not None
        assert client.stdout is not None
        client.stdin.write(b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"export"}}\n')
        client.stdin.flush()
        client.stdout.readline(read_bytes)
        client.stdout.close()
        client.stdin.close()
        client.wait(DEADLINE_S)
    found = transcribe(read(capture)).findings
    assert ("answer-broken-off" in {finding.rule for finding in found}) is expected


@pytest.mark.parametrize(("stops_reading", "expected"), [(True, ["line-over-limit"]), (False, [])])
def test_a_client_that_stops_reading_at_once_after_a_long_line_may_have_failed(
    stops_reading: bool,  # noqa: FBT001 - a parameter of the test
    expected: list[str],
    tmp_path: Path,
) -> None:
    capture = tmp_path / "long.mcpspy"
    command = [
        sys.executable,
        "-m",
        "mcpspy",
        "run",
        "--quiet",
        "--capture",
        str(capture),
        "--",
        sys.executable,
        "-c",
        SERVER_WITH_LAST_WORDS,
    ]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as client:
        assert client.stdin is not None
        assert client.stdout is not None
        client.stdin.write(b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"export"}}\n')
        client.stdin.flush()
        client.stdout.readline()
        if stops_reading:
            client.stdout.close()
        client.stdin.close()
        client.wait(DEADLINE_S)
    assert [finding.rule for finding in transcribe(read(capture)).findings if finding.rule == "line-over-limit"] == expected

"""Outcomes of `mcpspy trial`: the clients of tests/peers/clerk.py, and servers, with the faults that tell them apart."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from tests.cli.replays import call, recorded
from tests.cli.trial.test_trial import only, outcomes, tried
from tests.conftest import PEERS

if TYPE_CHECKING:
    from pathlib import Path

NAMES = ("Ada", "Ben", "Cy")

CLIENTS = [
    ("patient", "{server}", {"slow": "went on", "late": "went on", "error": "went on", "noise": "went on"}),
    ("same", "{server}", {"error": "went on", "slow": "went on", "crash": "never came back"}),
    ("strict", "{server}", {"late": "went on", "error": "crashed", "crash": "crashed"}),
    ("all-at-once", "{server}", {"slow": "went on", "late": "went on", "duplicate": "went on"}),
    ("hurried", "{server}", {"slow": "went on", "late": "gave up", "silent": "gave up"}),
    ("cancelling", "{server}", {"late": "gave up", "silent": "gave up", "noise": "went on"}),
    ("leaving", "{server}", {"slow": "went on", "late": "gave up", "silent": "gave up"}),
    ("dying", "{server}", {"late": "gave up", "silent": "gave up"}),
    ("repeating", "{server}", {"late": "asked again", "silent": "asked again", "error": "asked again", "slow": "went on"}),
    ("stopping", "{server}", {"error": "never came back", "crash": "never came back", "late": "went on"}),
    ("patient", "{server}", {"crash": "never came back", "disconnect": "never came back"}),
    ("restarting", "{server}", {"crash": "asked again", "disconnect": "asked again", "late": "went on"}),
    ("moving-on", "{server}", {"crash": "went on", "error": "went on"}),
    ("patient", "{url}", {"late": "went on", "status-500": "went on", "expired-session": "lost every call"}),
    ("strict", "{url}", {"status-500": "crashed", "slow": "went on"}),
    ("hurried", "{url}", {"late": "gave up", "status-429": "went on"}),
    ("restarting", "{url}", {"expired-session": "asked again", "status-500": "asked again"}),
    ("moving-on", "{url}", {"expired-session": "went on", "disconnect": "went on"}),
    ("repeating", "{url}", {"expired-session": "lost every call", "silent": "asked again"}),
]


@pytest.fixture(scope="module")
def visit(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A handshake, and three greetings."""
    return recorded(tmp_path_factory.mktemp("visit"), *(call("greet", name=name) for name in NAMES))


@pytest.mark.grid(6)
@pytest.mark.parametrize(("behaviour", "peer", "expected"), CLIENTS, ids=[f"{row[0]} {row[1]}" for row in CLIENTS])
def test_a_client_is_judged_by_what_the_server_saw_and_by_what_it_did_next(
    behaviour: str, peer: str, expected: dict[str, str], visit: str
) -> None:
    words = [sys.executable, str(PEERS / "clerk.py"), behaviour, peer]
    trials = tried(visit, words, "--late", "1200ms", "--patience", "20", *only(*expected))
    assert outcomes(trials) == {"none": "went on", **expected}
    for name, outcome in expected.items():
        after_ns = trials[name]["after_ns"]
        assert (after_ns is not None) == (outcome == "gave up")
        assert after_ns is None or 300_000_000 < after_ns < 1_200_000_000


SERVER = r"""
import json, os, signal, sys, time
mode = sys.argv[1]
if mode == "sigpipe":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
seen = set()
is_silent = False
def say(message):
    try:
        print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)
    except OSError:
        if mode == "aborts":
            os.abort()
        if mode not in ("naive", "sigpipe"):
            os._exit(0)
        raise
for line in sys.stdin:
    try:
        message = json.loads(line)
    except ValueError:
        if mode == "fragile":
            sys.exit(1)
        is_silent = mode == "sulking"
        continue
    if "id" not in message or "method" not in message or is_silent:
        continue
    id, params = message["id"], message.get("params") or {}
    if message["method"] == "initialize":
        info = {"name": "s", "version": "1"}
        say({"id": id, "result": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": info}})
    elif message["method"] != "tools/call":
        say({"id": id, "error": {"code": -32601, "message": "Method not found"}})
    elif params.get("name") != "greet" and mode != "lenient":
        say({"id": id, "error": {"code": -32602, "message": "Unknown tool"}})
    else:
        say({"id": id, "result": {"content": [], "isError": mode == "failing"}})
if mode == "slow-end":
    time.sleep(1)
sys.exit(3 if mode == "three" else 0)
"""

SERVERS = [
    ("sound", {"disconnect": "went on", "noise": "went on", "unknown-tool": "refused", "unknown-method": "refused"}),
    ("naive", {"disconnect": "went on", "duplicate": "went on"}),
    ("sigpipe", {"disconnect": "went on", "slow": "went on"}),
    ("slow-end", {"disconnect": "went on", "noise": "went on"}),
    ("three", {"disconnect": "went on", "noise": "went on"}),
    ("fragile", {"noise": "crashed", "disconnect": "went on"}),
    ("sulking", {"noise": "hung", "unknown-tool": "refused"}),
    ("failing", {"noise": "went on", "unknown-tool": "refused", "disconnect": "went on"}),
    ("lenient", {"unknown-tool": "went on", "more-arguments": "went on"}),
    ("aborts", {"noise": "went on", "half-line": "no answer"}),
]


@pytest.mark.grid(4)
@pytest.mark.parametrize(("mode", "expected"), SERVERS, ids=[row[0] for row in SERVERS])
def test_a_server_is_judged_by_what_the_client_saw_and_not_by_how_mcpspy_ended_it(
    mode: str, expected: dict[str, str], visit: str, tmp_path: Path
) -> None:
    path = tmp_path / "server.py"
    path.write_text(SERVER)
    trials = tried(visit, [sys.executable, str(path), mode], "--server", "--patience", "10", *only(*expected))
    assert outcomes(trials) == {"none": "went on", **expected}

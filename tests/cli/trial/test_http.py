"""`mcpspy trial` over HTTP: official clients and servers, and what they do when something goes wrong that only HTTP has."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from mcpspy import read
from mcpspy.records import Open
from tests.cli.replays import LIST, call, recorded
from tests.cli.terminal import MCPSPY, run
from tests.cli.test_intercepted_http_sessions import JSON, proxied
from tests.cli.trial.test_trial import only, outcomes, tried
from tests.conftest import PEERS
from tests.deadlines import eventually

GREETER = [sys.executable, str(PEERS / "greeter.py"), "{url}"]
"""A client on the official SDK that greets two people, one after the other; with `together`, both at once."""


@pytest.fixture(scope="module")
def visit(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A list, and two greetings, on stdio."""
    folder = tmp_path_factory.mktemp("visit")
    return recorded(folder, LIST, call("greet", name="Ada"), call("greet", name="Ben"))


def logs(trials: dict[str, Any]) -> dict[str, str]:
    """Return the last line that each client printed."""
    return {name: (Path(trial["log"]).read_text().splitlines() or [""])[-1] for name, trial in trials.items()}


def test_an_official_client_is_tried_with_the_faults_that_only_http_has(visit: str, tmp_path: Path) -> None:
    names = ("status-500", "status-429", "expired-session", "broken-answer", "disconnect")
    kept = tmp_path / "kept"
    trials = tried(visit, GREETER, "--patience", "40", "--captures", str(kept), *only(*names), status=1)
    assert outcomes(trials) == {
        "none": "went on", "disconnect": "crashed", "broken-answer": "went on", "status-500": "went on", "status-429": "went on",
        "expired-session": "lost every call",
    }  # fmt: skip
    printed = logs(trials)
    assert {name for name, line in printed.items() if line == "Ben Hello, Ben"} == set(names) - {
        "disconnect",
        "expired-session",
    } | {"none"}
    assert printed["expired-session"] == "Ben MCPError Session terminated"
    for name, trial in trials.items():
        assert trial["captures"] == [str(kept / f"{name}.mcpspy")]
        assert run("verify", *trial["captures"]).returncode == 0
    assert "intercepted: status 500" in run("show", *trials["status-500"]["captures"]).stdout
    heads = [record.head for record in read(trials["status-429"]["captures"][0]) if isinstance(record, Open)]
    assert any(head.startswith(b"HTTP/1.1 429 Too Many Requests\r\nRetry-After: 1\r\n") for head in heads)


def test_if_it_is_killed_the_mock_and_the_proxy_end(visit: str, tmp_path: Path) -> None:
    told = tmp_path / "told"
    script = f"echo $$ {{url}} > {told}; exec sleep 60"
    words = [*MCPSPY, "trial", visit, "--only", "error", "--captures", str(tmp_path / "kept"), "--", "sh", "-c", script]
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as trial:
        words_told = eventually(lambda: told.read_text().split() if told.exists() else None, "the client")
        trial.kill()
    pid, url = words_told
    os.kill(int(pid), signal.SIGKILL)
    port = int(url.split(":")[2].partition("/")[0])

    def is_closed() -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) != 0

    eventually(is_closed, "the end of the proxy")


@pytest.mark.more
def test_two_answers_are_reordered_for_a_client_that_has_two_calls_at_once(visit: str, tmp_path: Path) -> None:
    together = tried(visit, [*GREETER, "together"], "--patience", "40", *only("reordered"), status=0)
    assert outcomes(together)["reordered"] == "went on"
    assert logs(together)["reordered"] == "Ada Hello, Ada"
    in_turn = tried(visit, GREETER, "--patience", "40", *only("reordered"), status=0)
    assert outcomes(in_turn)["reordered"] == "not reached"


@pytest.mark.grid(1)
@pytest.mark.parametrize("fault", ["stray-answer", "unknown-notification"])
def test_a_fault_that_needs_several_messages_gets_an_answer_in_events(visit: str, tmp_path: Path, fault: str) -> None:
    trial = tried(visit, GREETER, "--patience", "40", *only(fault))[fault]
    opened = [record for record in read(trial["captures"][0]) if isinstance(record, Open)]
    assert any(b"text/event-stream" in record.head for record in opened if record.name == "response")
    assert trial["outcome"] != "not reached"


@pytest.mark.more
def test_the_old_transport_is_tried_too(visit: str, tmp_path: Path) -> None:
    trials = tried(visit, GREETER, "--transport", "sse", "--patience", "40", *only("error", "noise", "broken-answer"))
    assert {name: outcome for name, outcome in outcomes(trials).items() if name != "broken-answer"} == {
        "none": "went on", "error": "went on", "noise": "went on",
    }  # fmt: skip
    assert outcomes(trials)["broken-answer"] != "not reached"


def test_an_official_server_over_http_is_tried_with_the_faults_of_a_client(tmp_path: Path) -> None:
    server = [sys.executable, str(PEERS / "sdkserver.py"), "mcp", "stdio"]
    sums = recorded(tmp_path, LIST, call("add", a=1, b=2), LIST, server=server)
    with proxied(JSON, tmp_path / "other.mcpspy") as proxy:
        done = run(
            "trial", sums, "--server", "--url", proxy.address, "--json", "--patience", "30", "--slow", "100ms",
            *only("unknown-tool", "half-line", "slow"), PYTHONPATH="",
        )  # fmt: skip
    output = json.loads(done.stdout)
    assert (done.returncode, output["url"], output["transport"]) == (0, proxy.address, "http")
    assert {trial["fault"]: trial["outcome"] for trial in output["trials"]} == {
        "none": "went on", "slow": "went on", "half-line": "refused", "unknown-tool": "refused",
    }  # fmt: skip

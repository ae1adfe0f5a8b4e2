"""`mcpspy replay --until`: the fewest requests with which a real server still breaks, whose handles are others at each run."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from mcpspy.capture.file.reader import read
from mcpspy.transcript.transcribe import transcribe
from tests.cli.replays import call, recorded
from tests.cli.terminal import on_pipe, on_terminal, run
from tests.conftest import PEERS

SERVER = [sys.executable, str(PEERS / "fragile.py")]
NOISE = 60
CULPRITS = ["open", "write", "close", "close"]

MOST_RUNS = 30
"""67 messages, of which 4 matter, the last one among them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Least:
    """The output of a search, and the capture of it."""

    path: Path
    output: Any


def noise(count: int) -> list[Any]:
    return [call("echo", text=f"noise {number}") for number in range(count)]


def on(nth: int, tool: str, **arguments: Any) -> Any:
    """Make a call on the nth handle that was opened."""

    def asks(answers: list[Any]) -> Any:
        opened = [
            answer["result"]["structuredContent"]["handle"]
            for answer in answers
            if "structuredContent" in answer.get("result", {})
        ]
        return call(tool, handle=opened[nth], **arguments)

    return asks


def closed_twice(folder: Path, *words: str, calls: int) -> str:
    """Handle 2 of two is written to, and closed twice, among so many calls that do nothing."""
    asks: list[Any] = noise(calls)
    at = calls * 2 // 3
    asks[at:at] = [on(1, "close"), call("echo", text="more")]
    at = calls // 3
    asks[at:at] = [on(1, "write", text="hello"), on(0, "write", text="hello")]
    asks[1:1] = [call("open"), call("open")]
    return recorded(folder, *asks, on(1, "close", why="wait"), server=[*SERVER, "crash", *words])


@pytest.fixture(scope="module")
def crash(tmp_path_factory: pytest.TempPathFactory) -> str:
    """67 messages behind the handshake."""
    return closed_twice(tmp_path_factory.mktemp("crash"), calls=NOISE)


@pytest.fixture(scope="module")
def least(crash: str, tmp_path_factory: pytest.TempPathFactory) -> Least:
    """Search for the smallest capture that still crashes the server."""
    path = tmp_path_factory.mktemp("least") / "least.mcpspy"
    return Least(path=path, output=json.loads(until(crash, "crash", "--json", "--capture", str(path)).stdout))


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The same with 10 messages."""
    return closed_twice(tmp_path_factory.mktemp("few"), calls=3)


def until(capture: str, condition: str, *words: str, server: tuple[str, ...] = ("crash",)) -> subprocess.CompletedProcess[str]:
    return run("replay", capture, "--until", condition, *words, "--", *SERVER, *server)


def test_the_calls_that_a_crash_takes_are_found_in_few_runs(least: Least) -> None:
    output = least.output
    assert [row["target"] for row in output["rows"]] == CULPRITS
    assert (output["of"], output["minimal"], output["what"]) == (67, True, "the server was killed by SIGSEGV")
    assert output["runs"] <= MOST_RUNS
    assert (output["capture"], output["again"]) == (str(least.path), f"mcpspy replay {least.path} -- {' '.join(SERVER)} crash")


def test_the_capture_is_what_passed_when_it_happened(least: Least) -> None:
    live = transcribe(read(str(least.path)))
    opened = live.exchanges[1].response
    assert opened is not None
    handle = opened.result["structuredContent"]["handle"]
    assert [exchange.target for exchange in live.exchanges[1:]] == CULPRITS
    assert {exchange.request.params["arguments"]["handle"] for exchange in live.exchanges[2:]} == {handle}
    assert live.captures[0].exit is not None
    assert live.captures[0].exit.signal == "SIGSEGV"
    assert live.captures[0].complete


def test_the_result_is_shown_with_its_rows_and_its_capture(few: str, tmp_path: Path) -> None:
    path = tmp_path / "least.mcpspy"
    done = until(few, "crash", "--capture", str(path))
    lines = done.stdout.splitlines()
    assert lines[0] == "✗ crash · 4 of 10 messages · the server was killed by SIGSEGV"
    assert lines[1].endswith("every one of these is needed")
    assert [line.split("→")[1].split("{")[0].strip() for line in lines if "→" in line] == [
        f"tools/call {culprit}" for culprit in CULPRITS
    ]
    assert "mcpspy: 10 messages → " in done.stderr
    assert done.stderr.endswith(f"mcpspy: recorded to {path}\n")
    assert done.returncode == 0


def test_what_was_found_can_be_looked_for_again(least: Least) -> None:
    assert until(str(least.path), "crash").stdout.startswith("✗ crash · 4 of 4 messages")


def test_on_a_terminal_the_next_commands_are_shown(few: str, tmp_path: Path) -> None:
    path = tmp_path / "least.mcpspy"
    words = ("replay", few, "--until", "crash", "--capture", str(path), "--yes", "--", *SERVER, "crash")
    with on_terminal(*words, columns=200) as running:
        assert running.rest() == 0
        assert f"mcpspy show {path}" in running.words
        assert f"mcpspy replay {path} -- " in running.words
        assert "10 messages → " in running.words


def test_interrupted_it_shows_the_result_so_far(crash: str, tmp_path: Path) -> None:
    path = tmp_path / "least.mcpspy"
    with on_pipe("replay", crash, "--until", "crash", "--capture", str(path), "--", *SERVER, "crash") as running:
        running.wait_for("67 messages → ")
        assert running.end() == 130
        assert "there may be a smaller sequence" in running.words
        assert "Traceback" not in running.words
    assert transcribe(read(str(path))).captures[0].complete


def test_a_handle_that_looks_like_any_number_is_found_once_it_is_named(tmp_path: Path) -> None:
    short = closed_twice(tmp_path, "short", calls=3)
    unnamed = until(short, "crash", server=("crash", "short"))
    assert unnamed.returncode == 1
    assert "In the capture it does. Name values that the server makes up with --carry" in unnamed.stderr
    named = until(short, "crash", "--carry", "handle", server=("crash", "short"))
    assert named.stdout.startswith("✗ crash · 4 of 10 messages")


def test_an_error_is_found_by_its_code_and_by_its_text(tmp_path: Path) -> None:
    writes = [on(0, "write", text=str(number)) for number in range(3)]
    capture = recorded(tmp_path, *noise(2), call("open"), *noise(2), *writes, *noise(2), server=[*SERVER, "third"])
    for condition in ("error:-32603", '"one too many"', "tool:write status:error"):
        output = json.loads(until(capture, condition, "--json", server=("third",)).stdout)
        assert [row["target"] for row in output["rows"]] == ["open", "write", "write", "write"]


def test_a_call_that_hangs_is_found(tmp_path: Path) -> None:
    calls = [*noise(2), call("open"), *noise(2), on(0, "close"), *noise(2), on(0, "write", text="wait")]
    capture = recorded(tmp_path, *calls, server=[*SERVER, "hang"])
    done = until(capture, "timeout", "--timeout", "2", "--json", server=("hang",))
    assert [row["target"] for row in json.loads(done.stdout)["rows"]] == ["open", "close", "write"]


def test_a_finding_is_looked_for_by_its_rule(few: str) -> None:
    output = json.loads(until(few, "rule:server-died", "--json").stdout)
    assert [row["target"] for row in output["rows"]] == CULPRITS


def test_what_happens_without_any_call_takes_none(few: str) -> None:
    done = until(few, '"fragile"', server=())
    assert done.stdout.startswith('✗ "fragile" · 0 of 10 messages')
    assert "the handshake alone is enough" in done.stdout


def test_what_does_not_happen_any_more_is_exit_status_1(crash: str) -> None:
    done = until(crash, "crash", server=())
    assert done.returncode == 1
    assert "crash does not happen with all 67 messages, so there is nothing to reduce." in done.stderr


def test_no_more_servers_are_started_than_may_be(few: str) -> None:
    done = until(few, "crash", "--max-runs", "3")
    assert "  3 runs; there may be a smaller sequence\n" in done.stdout
    assert done.returncode == 0


@pytest.mark.parametrize("server", [["nosuch-server"], [*SERVER, "start"]], ids=["no command", "it ends at once"])
def test_no_server_is_exit_status_4(crash: str, server: list[str]) -> None:
    done = run("replay", crash, "--until", "crash", "--", *server)
    assert done.returncode == 4
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--until", "crahs"), "It takes error, error:CODE, crash, timeout, rule:NAME, status:5xx"),
        (("--until", "rule:server-dyed"), "Did you mean server-died"),
        (("--until", "dur>"), "dur has no value"),
        (("--max-runs", "3"), "--max-runs is for --until"),
        (("--until", "crash", "--max-runs", "0"), "0 is not in the range"),
    ],
)
def test_what_cannot_be_looked_for_is_exit_status_2(crash: str, words: tuple[str, ...], sentence: str) -> None:
    done = run("replay", crash, *words, "--", *SERVER)
    assert done.returncode == 2
    assert sentence in done.stderr

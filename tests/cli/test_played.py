"""The captures that `mock`, `replay`, `trial` and `export pytest` play for a label, for `@`, and of files with several sessions."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from mcpspy.capture.store.folder import captures_folder
from tests.cli.export.test_pytest import PYTEST
from tests.cli.terminal import COPY, run
from tests.deadlines import SCENE_S
from tests.live.mock.mocking import written
from tests.transcript.dialogue import Dialogue, error, make_header, notification, request, result
from tests.transcript.traffic import MODERN, initialize

SECOND_NS = 10**9
META = {
    **MODERN,
    "io.modelcontextprotocol/clientInfo": {"name": "c", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
INFO = {"serverInfo": {"name": "s", "version": "1"}, "capabilities": {"tools": {}}}
DISCOVER = request(0, "server/discover", {"_meta": META})
DISCOVERED = result(
    0, {"supportedVersions": ["2026-07-28"], "resultType": "complete", "ttlMs": 0, "cacheScope": "private", **INFO}
)


def tools(name: str) -> dict[str, Any]:
    """Answer with one tool, by whose name a test sees which capture was played."""
    return result(1, {"tools": [{"name": name, "inputSchema": {"type": "object"}}]})


def modern_tools(name: str) -> dict[str, Any]:
    return {**tools(name), "result": {**tools(name)["result"], "resultType": "complete", "ttlMs": 0, "cacheScope": "private"}}


def session(kind: str, name: str, dialogue: Dialogue) -> Dialogue:
    """Play a start of a server: a `probe`, a `refused` one, the `rest` after one, a `legacy` or `modern` session, or a `part`."""
    listing = request(1, "tools/list", {"_meta": META})
    match kind:
        case "probe":
            return dialogue.client(DISCOVER).server(DISCOVERED)
        case "refused":
            return dialogue.client(DISCOVER).server(error(0))
        case "rest":
            return dialogue.client(listing).server(modern_tools(name))
        case "modern":
            return dialogue.client(DISCOVER).server(DISCOVERED).client(listing).server(modern_tools(name))
        case "legacy":
            answer = result(0, {"protocolVersion": "2025-11-25", **INFO})
            dialogue.client(initialize(0)).server(answer).client(notification())
    return dialogue.client(request(1)).server(tools(name))


def stored(*starts: str) -> list[Path]:
    """Put captures into the store, a second apart: `kind client [label]`. The name of the tool is that of the kind and a number."""
    folder = Path(captures_folder())
    folder.mkdir(parents=True, mode=0o700, exist_ok=True)
    paths = []
    for number, start in enumerate(starts):
        kind, client, *label = start.split()
        header = make_header(
            label=label[0] if label else "shop",
            wall_ns=10**18 + number * SECOND_NS,
            monotonic_ns=number * SECOND_NS,
            parent={"pid": int(client), "name": "agent", "start": 3},
        )
        header.capture_id = f"{kind}{number}"
        dialogue = session(kind, f"{kind}-{number}", Dialogue(header=header)).client_leaves().server_closes_stdout()
        paths.append(written(folder / f"2025010{number}T000000Z-{kind}.mcpspy", dialogue.exits().records))
    return paths


def played(what: str, *requests: Any) -> tuple[list[Any], str]:
    """Send requests to a mock. Returns the results, or the codes of errors, and stderr."""
    lines = b"".join(json.dumps(message).encode() + b"\n" for message in requests)
    done = run("mock", what, stdin=lines)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    return [answer.get("result", answer.get("error", {}).get("code")) for answer in answers], done.stderr


MODERN_LIST = request(1, "tools/list", {"_meta": META})

STORES = [
    # captures, what is asked, the tool that answers, whether the choice is reported
    (["probe 7", "rest 7"], MODERN_LIST, "rest-1", False),
    (["legacy 5", "probe 7", "rest 7"], MODERN_LIST, "rest-2", False),
    (["refused 7", "legacy 7"], request(1), "legacy-1", False),
    (["legacy 5", "probe 7"], request(1), "legacy-0", True),
    (["legacy 5", "refused 7"], request(1), "legacy-0", True),
    (["legacy 5", "part 7"], request(1), "legacy-0", True),
    (["legacy 4", "legacy 5", "part 7", "probe 8"], request(1), "legacy-1", True),
    (["modern 5", "probe 7"], MODERN_LIST, "modern-0", True),
    # twins, in which the newest is played
    (["legacy 5", "rest 7"], MODERN_LIST, "rest-1", False),
    (["legacy 5", "modern 7"], MODERN_LIST, "modern-1", False),
    (["modern 5", "legacy 7"], request(1), "legacy-1", False),
    (["legacy 5", "legacy 7"], request(1), "legacy-1", False),
    (["part 7"], request(1), "part-0", False),
    (["part 5", "part 7"], request(1), "part-1", False),
]


@pytest.mark.parametrize("what", ["shop", "@"])
@pytest.mark.parametrize(("starts", "asked", "tool", "is_reported"), STORES, ids=[" + ".join(row[0]) for row in STORES])
def test_the_newest_session_that_can_be_played_is_played(
    starts: list[str], asked: Any, tool: str, *, is_reported: bool, what: str
) -> None:
    stored(*starts)
    answers, stderr = played(what, asked)
    assert answers[0]["tools"][0]["name"] == tool
    assert ("is played" in stderr) == is_reported


@pytest.mark.parametrize("what", ["shop", "@"])
def test_a_label_takes_the_probe_with_it(what: str) -> None:
    stored("legacy 5", "probe 7", "rest 7")
    answers, _ = played(what, DISCOVER, MODERN_LIST)
    assert answers[0]["supportedVersions"] == ["2026-07-28"]
    assert answers[1]["tools"][0]["name"] == "rest-2"


@pytest.mark.parametrize(
    "starts",
    [
        ["probe 5", "rest 7"],  # of another client
        ["probe 7 other", "rest 7"],  # of another server
        ["rest 7", "probe 7"],  # after it
    ],
)
def test_a_probe_of_another_session_is_not_taken(starts: list[str]) -> None:
    stored(*starts)
    answers, _ = played("shop", DISCOVER)
    assert answers == [-32601]


def test_a_replay_plays_the_session_and_says_so() -> None:
    stored("probe 7", "rest 7")
    for what, is_reported in (("shop", False), ("@", True)):
        done = run("replay", what, "--dry-run", "--", "cat")
        assert [line.split() for line in done.stdout.splitlines() if "→" in line] == [["1", "→", "tools/list"]]
        assert (
            "@ is 2 sessions; of each server the newest that has a handshake is played (shop: 2)" in done.stderr
        ) == is_reported


def test_a_trial_plays_the_probe_too_and_its_fault_hits_the_session(tmp_path: Path) -> None:
    stored("probe 7", "rest 7")
    client = tmp_path / "client.py"
    client.write_text(
        "import json, subprocess, sys\n"
        f"for message in {[DISCOVER, MODERN_LIST]!r}:\n"
        "    done = subprocess.run(sys.argv[1:], input=json.dumps(message).encode() + b'\\n', stdout=subprocess.PIPE)\n"
        "    json.loads(done.stdout.splitlines()[0])['result']\n"
    )
    words = [
        *COPY,
        "trial",
        "shop",
        "--calls",
        "method:tools/list",
        "--only",
        "noise",
        "--json",
        "--captures",
        str(tmp_path / "x"),
    ]
    done = subprocess.run(
        [*words, "--", sys.executable, str(client), "{server}"], capture_output=True, text=True, timeout=SCENE_S, check=False
    )
    trials = json.loads(done.stdout)["trials"]
    assert [(trial["outcome"], trial["more"]) for trial in trials] == [("went on", None), ("crashed", "exit status 1")]


def test_a_test_that_is_written_of_a_label_plays_the_probe_too(tmp_path: Path) -> None:
    stored("probe 7", "rest 7")
    for what in ("shop", "@"):
        folder = tmp_path / what
        folder.mkdir()
        assert run("export", "pytest", what, "-o", str(folder / "test_shop.py")).returncode == 0
        command = [*PYTEST, "--mcpspy-record=none", "--basetemp", str(folder / "temporary")]
        ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=SCENE_S, check=False)
        assert "1 passed" in ran.stdout, ran.stdout


@pytest.mark.parametrize("runs", [2, 3])
def test_of_a_log_of_several_runs_the_newest_is_played(runs: int, tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    lines = []
    for number in range(1, runs + 1):
        sent = [("client", initialize(0)), ("server", result(0, {"protocolVersion": "2025-11-25", **INFO}))]
        sent += [("client", notification()), ("client", request(1)), ("server", tools(f"run-{number}"))]
        lines += [f"2025-05-07T18:{number:02}:00.000Z [x] [info] Initializing server..."]
        lines += [
            f"2025-05-07T18:{number:02}:{at:02}.000Z [x] [info] Message from {side}: {json.dumps(message)}"
            for at, (side, message) in enumerate(sent, 1)
        ]
    log.write_text("\n".join(lines) + "\n")
    answers, stderr = played(str(log), initialize(0), request(1))
    assert answers[1]["tools"][0]["name"] == f"run-{runs}"
    assert f"{log} is {runs} sessions; of each server the newest that has a handshake is played (x: {runs})" in stderr


def test_a_capture_that_can_be_read_only_once_is_played(tmp_path: Path) -> None:
    (path,) = stored("legacy 7")
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    with subprocess.Popen(["cp", str(path), str(fifo)]):
        answers, _ = played(str(fifo), request(1))
    assert answers[0]["tools"][0]["name"] == "legacy-0"
    replayed = run("replay", "-", "--dry-run", "--", "cat", stdin=path.read_bytes())
    assert (replayed.returncode, replayed.stdout.count("→")) == (0, 3)


def test_an_older_capture_that_cannot_be_read_is_passed_over() -> None:
    legacy, broken, _ = stored("legacy 4", "part 5", "probe 7")
    broken.write_bytes(broken.read_bytes().partition(b"\n")[0] + b"\n" + bytes(100))
    answers, stderr = played("shop", request(1))
    assert answers[0]["tools"][0]["name"] == "legacy-0"
    assert f"{legacy} is played" in stderr

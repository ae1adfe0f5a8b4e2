"""`mcpspy trial`: clients and servers, with the official SDK and by hand, and what they do when something goes wrong."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from mcpspy.capture.store.folder import home_folder
from mcpspy.intercept.syntax import parse_intercept
from mcpspy.replay.trial import CLIENT_FAULTS, SERVER_FAULTS, FaultSettings, TrialFault
from tests.cli.replays import LIST, SERVER, call, recorded
from tests.cli.terminal import COPY, run
from tests.conftest import PEERS
from tests.deadlines import DEADLINE_S, SCENE_S
from tests.starting import finished

CLIENT = r"""
import json, os, signal, subprocess, sys
retries, wait, words = int(sys.argv[1]), float(sys.argv[2]), sys.argv[3:]
signal.signal(signal.SIGALRM, lambda *_: os._exit(0))
server = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
def say(message):
    server.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
    server.stdin.flush()
def ask(id, method, params):
    say({"id": id, "method": method, "params": params})
    while True:
        line = server.stdout.readline()
        if not line:
            sys.exit(3)
        try:
            message = json.loads(line)
        except ValueError:
            continue
        if message.get("id") == id:
            return message
info = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "clerk", "version": "1"}}
ask(0, "initialize", info)
say({"method": "notifications/initialized"})
signal.setitimer(signal.ITIMER_REAL, wait)
for attempt in range(1 + retries):
    answer = ask(attempt + 1, "tools/call", {"name": "greet", "arguments": {"name": "Ada"}})
    if "result" in answer and not answer["result"].get("isError"):
        break
server.stdin.close()
server.wait()
"""


@pytest.fixture(scope="module")
def visit(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A handshake, and a greeting."""
    return recorded(tmp_path_factory.mktemp("visit"), call("greet", name="Ada"))


def client(tmp_path: Path, *, retries: int = 0, wait_s: float = 0.0) -> list[str]:
    """A client without an SDK, which asks once more so often, and leaves without an answer after so long."""
    path = tmp_path / "client.py"
    path.write_text(CLIENT)
    return [sys.executable, str(path), str(retries), str(wait_s), "{server}"]


def tried(capture: str, words: list[str], *options: str, status: int | None = None) -> dict[str, Any]:
    """Try a peer; return its outcomes by fault, each with all that the JSON has."""
    command = [*COPY, "trial", capture, "--json", "--slow", "100ms", *options, "--", *words]
    done = finished(command, env={**os.environ, "SPY_COPIES": "1"}, timeout_s=SCENE_S)
    output = json.loads(done.stdout)
    assert output["exit"] == done.returncode
    if status is not None:
        assert done.returncode == status, done.stdout + done.stderr
    return {trial["fault"]: trial for trial in output["trials"]}


def only(*names: str) -> list[str]:
    return [word for name in names for word in ("--only", name)]


def outcomes(trials: dict[str, Any]) -> dict[str, str]:
    return {name: trial["outcome"] for name, trial in trials.items()}


# --- Clients ---


def test_an_official_client_is_tried_and_its_captures_are_kept(tmp_path: Path) -> None:
    sdk = [sys.executable, str(PEERS / "sdkclient.py"), "mcp"]
    sums = str(tmp_path / "sums.mcpspy")
    words = [sys.executable, "-m", "mcpspy", "run", "--capture", sums, "--"]
    server = [sys.executable, str(PEERS / "sdkserver.py"), "mcp", "stdio"]
    subprocess.run([*sdk, *words, *server], check=True, capture_output=True, timeout=DEADLINE_S)
    names = ("tool-error", "noise", "error")
    trials = tried(sums, [*sdk, "{server}"], "--patience", "20", "--captures", str(tmp_path / "kept"), *only(*names), status=1)
    assert outcomes(trials) == {
        "none": "went on", "error": "crashed", "tool-error": "went on", "noise": "went on",
    }  # fmt: skip
    assert trials["error"]["more"] == "exit status 1"
    for name, trial in trials.items():
        assert trial["captures"] == [str(tmp_path / "kept" / f"{name}.mcpspy")]
        assert run("verify", *trial["captures"]).returncode == 0
    assert "intercepted: error -32603" in run("show", *trials["error"]["captures"]).stdout


def test_only_the_user_can_read_what_a_trial_keeps(visit: str, tmp_path: Path) -> None:
    tried(visit, client(tmp_path, retries=0), *only("slow"), status=0)
    trials = Path(home_folder(), "trials")
    kept = [trials, *trials.rglob("*")]
    assert len(kept) > 4
    assert [path for path in kept if path.stat().st_mode & 0o077] == []


REFUSED = {
    "no such call": ("--calls", "tool:nonesuch"),
    "no such method": ("--calls", "method:resources/read"),
    "no filter": ("--calls", "colour:red"),
    "no such fault": ("--only", "flood"),
    "no time": ("--slow", "soon"),
    "a transport that does not fit": ("--transport", "http"),
    "no expectations": ("--expect", "/no/such/file"),
    "expectations without a file": ("--accept",),
    "a client with both places": (),
    "a capture that is none": (),
}


@pytest.mark.parametrize("option", ["--captures", ""])
@pytest.mark.parametrize("case", REFUSED)
def test_a_trial_that_is_refused_makes_no_folder(case: str, option: str, visit: str, tmp_path: Path) -> None:
    folder = tmp_path / "kept"
    options = [*REFUSED[case], *([option, str(folder)] if option else [])]
    words = ["true", "{server}", *(["{url}"] if case == "a client with both places" else [])]
    what = str(tmp_path / "none.mcpspy") if case == "a capture that is none" else visit
    done = run("trial", what, *options, "--", *words)
    assert done.returncode in (2, 4), done.stderr
    assert "recorded in" not in done.stderr
    assert not folder.exists()
    assert not Path(home_folder(), "trials").exists()


UNSTARTABLE = ("a missing path", "a missing name", "a folder", "a file that is not executable", "a file that is no program")


@pytest.mark.parametrize("place", ["named", "within a named one", "usual", "there already", "there already, with a file"])
@pytest.mark.parametrize("case", UNSTARTABLE)
@pytest.mark.parametrize("channel", ["{server}", "{url}"])
@pytest.mark.grid(8)
def test_a_client_that_cannot_be_started_leaves_nothing(
    case: str, place: str, channel: str, visit: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MCPSPY_HOME", str(tmp_path / "home"))
    program = tmp_path / "program"
    if case.startswith("a file"):
        program.write_text("\0")
        program.chmod(0o600 if case.endswith("executable") else 0o700)
    elif case == "a folder":
        program.mkdir()
    word = "no-such-program" if case == "a missing name" else str(program)
    folder = tmp_path / "a" / "b" if place == "within a named one" else tmp_path / "kept"
    if place.startswith("there"):
        folder.mkdir()
    if place.endswith("file"):
        (folder / "notes").write_text("mine")
    before = sorted(path for path in tmp_path.rglob("*") if "home" not in path.parts)
    done = run("trial", visit, *([] if place == "usual" else ["--captures", str(folder)]), *only("slow"), "--", word, channel)
    assert f"{word}: it cannot be started" in done.stderr
    assert sorted(path for path in tmp_path.rglob("*") if "home" not in path.parts) == before
    assert not (tmp_path / "home" / "trials").exists()


def test_a_client_that_fails_leaves_what_it_printed(visit: str, tmp_path: Path) -> None:
    folder = tmp_path / "kept"
    done = run("trial", visit, "--captures", str(folder), "--", sys.executable, "-c", "print('no'); exit(3)", "{server}")
    assert done.returncode == 4
    assert (folder / "none.log").read_text() == "no\n"


def test_a_client_that_can_be_started_once_leaves_that_trial(visit: str, tmp_path: Path) -> None:
    words = client(tmp_path)
    program = tmp_path / "client"
    program.write_text(f'#!/bin/sh\nrm "$0"\nexec {words[0]} {words[1]} 0 0 "$@"\n')
    program.chmod(0o700)
    folder = tmp_path / "kept"
    done = run("trial", visit, "--captures", str(folder), *only("slow"), "--", str(program), "{server}")
    assert f"{program}: it cannot be started" in done.stderr
    assert sorted(path.name for path in folder.iterdir()) == ["none.log", "none.mcpspy"]


def test_a_client_that_asks_again_is_told_from_one_that_goes_on(visit: str, tmp_path: Path) -> None:
    trials = tried(visit, client(tmp_path, retries=2), *only("error", "duplicate", "crash", "early-noise"), status=1)
    assert outcomes(trials) == {
        "none": "went on", "error": "asked again", "duplicate": "went on", "crash": "crashed", "early-noise": "went on",
    }  # fmt: skip
    assert trials["crash"]["more"] == "exit status 3"


def test_a_client_that_waits_for_ever_is_ended_and_one_that_gives_up_is_not(visit: str, tmp_path: Path) -> None:
    assert outcomes(tried(visit, client(tmp_path), *only("silent"), "--patience", "8", status=1))["silent"] == "hung"
    trials = tried(visit, client(tmp_path, wait_s=0.5), *only("silent"), "--patience", "20", status=0)
    assert trials["silent"]["outcome"] == "gave up"
    assert 0 < trials["silent"]["after_ns"] < 20_000_000_000


def test_a_client_that_starts_its_server_again_has_a_capture_for_each(visit: str, tmp_path: Path) -> None:
    patient = client(tmp_path)
    twice = ["sh", "-c", f"{sys.executable} {patient[1]} 0 0 {{server}} || {sys.executable} {patient[1]} 0 0 {{server}}"]
    trials = tried(visit, twice, *only("crash"), status=0)
    assert (trials["crash"]["outcome"], trials["crash"]["more"]) == ("asked again", "started the server again")
    assert len(trials["crash"]["captures"]) == 2


def test_a_fault_that_hits_nothing_is_not_reached(visit: str, tmp_path: Path) -> None:
    assert outcomes(tried(visit, client(tmp_path), *only("no-tools"), status=0))["no-tools"] == "not reached"


def test_the_table_has_a_line_for_each_fault(visit: str, tmp_path: Path) -> None:
    done = run("trial", visit, *only("error", "noise"), "--captures", str(tmp_path / "x"), "--", *client(tmp_path))
    first, _, *lines = done.stdout.splitlines()
    assert (done.returncode, first) == (0, "✓ 3 trials · 3 went on")
    assert [line.split("  ")[1:] for line in lines[:3]] == [
        ["none", " went on", "(no fault)"],
        ["error", "went on", "(the answer is an error)"],
        ["noise", "went on", "(a line that is no message comes before the answer)"],
    ]
    assert lines[-1] == f"captures: {tmp_path / 'x'}/FAULT.mcpspy"


# --- Servers ---


def test_an_official_server_is_tried_with_the_faults_of_a_client(tmp_path: Path) -> None:
    server = [sys.executable, str(PEERS / "sdkserver.py"), "mcp", "stdio"]
    sums = recorded(tmp_path, LIST, call("add", a=1, b=2), LIST, server=server)
    names = ("unknown-method", "unknown-tool", "unknown-notification")
    trials = tried(sums, server, "--server", "--patience", "20", *only(*names), status=0)
    assert outcomes(trials) == {
        "none": "went on", "unknown-method": "refused", "unknown-tool": "refused", "unknown-notification": "went on",
    }  # fmt: skip


def test_a_server_that_dies_of_a_fault_has_crashed(visit: str) -> None:
    trials = tried(visit, SERVER, "--server", "--patience", "20", *only("noise", "wrong-type"), status=1)
    assert outcomes(trials)["noise"] == "crashed"
    assert trials["noise"]["more"] == "exit status 1"


# --- For CI ---


def test_outcomes_are_accepted_and_compared_with_those_expected(visit: str, tmp_path: Path) -> None:
    file = tmp_path / "expected.trial"
    tried(visit, client(tmp_path), *only("crash", "noise"), "--expect", str(file), "--accept")
    assert file.read_text() == "none: went on\nnoise: went on\ncrash: crashed\n"
    assert tried(visit, client(tmp_path), *only("crash"), "--expect", str(file), status=0)["crash"]["expected"] == ["crashed"]
    file.write_text("# known\ncrash: gave up, asked again  # not yet\n")
    junit = tmp_path / "junit.xml"
    done = run("trial", visit, *only("crash"), "--expect", str(file), "--junit", str(junit), "--", *client(tmp_path))
    assert done.returncode == 1
    assert re.search(r"^✗ crash  crashed  exit status 3, expected: gave up or asked again", done.stdout, re.MULTILINE)
    suite = ET.parse(junit).getroot()[0]
    assert (suite.get("tests"), suite.get("failures")) == ("2", "1")
    assert [case.find("failure") is not None for case in suite] == [False, True]


# --- Command lines that make no sense ---


@pytest.mark.grid(8)
@pytest.mark.parametrize(
    ("words", "status", "sentence"),
    [
        (["{}"], 2, "name the client, with {server} or {url}, after --"),
        (["{}", "--server"], 2, "name the server after --"),
        (["{}", "--", "cat"], 2, "the client's command has neither {server}, which becomes the command of the mock, nor {url}"),
        (["{}", "--", "cat", "{server}", "{url}"], 2, "the client's command has both {server} and {url}"),
        (["{}", "--only", "crash", "--", "cat", "{url}"], 2, "there is crash only on stdio: write {server}"),
        (["{}", "--only", "status-500", "--", "cat", "{server}"], 2, "there is status-500 only over HTTP: write {url}"),
        (["{}", "--url", "http://127.0.0.1:1/mcp", "--", "cat"], 2, "--url is for a server: add --server"),
        (["{}", "--server", "--url", "http://127.0.0.1:1/mcp", "--", "cat"], 2, "leave out --url, or what follows --"),
        (["{}", "--transport", "sse", "--", "cat", "{server}"], 2, "--transport needs {url} in the client's command"),
        (["{}", "--", "false", "{url}"], 4, "no request came to the address that {url} stands for"),
        (["{}", "--accept", "--", "cat", "{server}"], 2, "--accept writes the file of --expect"),
        (["{}", "--slow", "x", "--", "cat", "{server}"], 2, "--slow takes a time, as in --slow 3s"),
        (["{}", "--only", "x", "--", "cat", "{server}"], 2, "there is no fault x. They are none, slow"),
        (["{}", "--calls", "tol:x", "--", "cat", "{server}"], 2, "Did you mean tool?"),
        (["{}", "--calls", "tool:x", "--", "cat", "{server}"], 2, "has no result of tool:x. Name other requests with --calls"),
        (["{}", "--expect", "gone", "--", "cat", "{server}"], 2, "Add --accept to write the outcomes there"),
        (["{}:1", "--", "cat", "{server}"], 2, "name one capture"),
        (["{}", "--", "no-such-command", "{server}"], 4, "it cannot be started: No such file or directory"),
        (["{}", "--", "false", "{server}"], 4, "it did not start the server that {server} stands for"),
    ],
)
def test_a_wrong_command_line_says_what_to_write(visit: str, words: list[str], status: int, sentence: str) -> None:
    done = run("trial", *[word.replace("{}", visit) for word in words])
    assert (done.returncode, done.stdout) == (status, "")
    assert sentence in done.stderr


def test_a_client_that_takes_a_command_as_one_argument_gets_it_quoted(visit: str, tmp_path: Path) -> None:
    patient = client(tmp_path)
    (tmp_path / "one.py").write_text(
        "import os, shlex, sys\nos.execv(sys.argv[1], [*sys.argv[1:-1], *shlex.split(sys.argv[-1])])"
    )
    one = [sys.executable, str(tmp_path / "one.py"), *patient[:-1]]
    for quoted in ("'{server}'", '"{server}"'):
        assert outcomes(tried(visit, [*one, quoted], *only("noise"), status=0))["noise"] == "went on"
    done = run("trial", visit, "--", "false", "{server}")
    assert "if the client takes a command as one argument, quote it: \"'{server}'\"" in done.stderr


def test_a_client_that_fails_without_a_fault_is_not_tried(visit: str, tmp_path: Path) -> None:
    failing = ["sh", "-c", f"{sys.executable} {client(tmp_path)[1]} 0 0 {{server}}; exit 9"]
    done = run("trial", visit, "--", *failing)
    assert (done.returncode, done.stdout) == (4, "")
    assert "it fails without a fault too: exit status 9; what it printed is in " in done.stderr


@pytest.mark.parametrize("line", ["gone: went on", "slow: nice", "slow"])
def test_a_wrong_line_of_expectations_is_named(visit: str, tmp_path: Path, line: str) -> None:
    (tmp_path / "x").write_text(f"\n{line}\n")
    done = run("trial", visit, "--expect", str(tmp_path / "x"), "--", "cat", "{server}")
    assert done.returncode == 2
    assert "line 2: " in done.stderr


@pytest.mark.parametrize("fault", [*SERVER_FAULTS.values(), *CLIENT_FAULTS.values()], ids=lambda fault: fault.name)
def test_each_fault_is_made_of_intercepts_that_hit_once(fault: TrialFault) -> None:
    settings = FaultSettings(calls='tool:a or "x"', slow="1s", late="2s", tool_error='a "b" c', huge="h h")
    texts = fault.intercepts(settings)
    for transport in fault.transports:
        rules = [parse_intercept(text, lambda _: b"{}", transport) for text in texts]
        assert [rule.limits.most for rule in rules] == [1] * (fault.name != "none")


def test_the_list_names_every_fault_and_the_transport_that_it_needs() -> None:
    lines = run("trial", "--list").stdout.splitlines()
    assert len(lines) == len(SERVER_FAULTS)
    assert [line.split()[0] for line in lines if line.endswith("(only over HTTP)")] == [
        "status-500",
        "status-429",
        "expired-session",
    ]
    assert [line.split()[0] for line in lines if line.endswith("(only on stdio)")] == ["crash"]
    assert len(run("trial", "--list", "--server").stdout.splitlines()) == len(CLIENT_FAULTS)

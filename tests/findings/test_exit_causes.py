"""Servers that end before they answer anything: the fault of how they were started, or their own."""

import pytest

from mcpspy.transcript.findings.rule import Finding
from mcpspy.transcript.findings.transport.exit_causes import lacks_stdin
from tests.findings.test_near_misses import HANDSHAKE, HELLO, INITIALIZE
from tests.findings.test_silences import findings_of

CONFIGURATION = {
    "Docker does not run": "docker: Cannot connect to the Docker daemon at unix:///run/docker.sock.",
    "an image that there is not": "docker: Error response from daemon: pull access denied for acme/server",
    "arguments that it does not take": "server.py: error: unrecognized arguments: --stdio",
    "an argument that it lacks": "server.py: error: the following arguments are required: --root",
    "an old Node.js": "ReferenceError: fetch is not defined",
    "a module of another environment": "ModuleNotFoundError: No module named 'mcp'",
    "a package that there is not": "npm error 404 Not Found - GET https://registry.example/acme-server",
    "a file that is not there": "FileNotFoundError: [Errno 2] No such file or directory: '/data/notes.json'",
    "a program that is not there": "Error: spawn git ENOENT",
    "a variable": "Error: API_TOKEN is not set",
    "another system": "bash: ./server: cannot execute binary file: Exec format error",
}
UNCLEAR = {
    "no network": "npm error network request to https://registry.example failed, reason: getaddrinfo ENOTFOUND registry.example",
    "a port that is taken": "Error: listen EADDRINUSE: address already in use :::3000",
}
SERVER = {
    "its own exception": "KeyError: 'name'",
    "a dependency that its package forgot": (
        "File \"/x/lib/site-packages/acme/server.py\", line 1, in <module>\n! ModuleNotFoundError: No module named 'yaml'"
    ),
}


def found(lines: str) -> Finding:
    (finding,) = [death for death in findings_of(f"{INITIALIZE}! {lines}\n· the server exits 1") if death.rule == "server-died"]
    return finding


def death(lines: str) -> str:
    return found(lines).culprit


@pytest.mark.parametrize("line", CONFIGURATION.values(), ids=CONFIGURATION)
def test_the_entry_is_to_blame_for_a_server_that_cannot_run_as_it_says(line: str) -> None:
    assert death(line) == "configuration"


def test_usage_that_a_server_prints_to_stdout_is_quoted_and_tells_why_it_ended() -> None:
    usage = "← usage: charts [-h] {server,cli} ...\n← {server,cli} Mode to run in"
    by_rule = {finding.rule: finding for finding in findings_of(f"{INITIALIZE}{usage}\n· the server exits 1")}
    assert by_rule["server-died"].culprit == "configuration"
    assert "“usage: charts [-h] {server,cli} ...” to stdout" in by_rule["server-died"].what
    assert "malformed-message" not in by_rule


@pytest.mark.parametrize("line", UNCLEAR.values(), ids=UNCLEAR)
def test_nobody_is_blamed_for_the_network_and_for_other_processes(line: str) -> None:
    assert death(line) == "unclear"


@pytest.mark.parametrize("lines", SERVER.values(), ids=SERVER)
def test_a_server_is_to_blame_for_its_own_code(lines: str) -> None:
    assert death(lines) == "server"


@pytest.mark.parametrize("line", CONFIGURATION.values(), ids=CONFIGURATION)
def test_a_server_that_has_answered_was_started_well(line: str) -> None:
    account = f'{HANDSHAKE}→ tools/call 1 {{"name":"a"}}\n! {line}\n· the server exits 1'
    assert [found.culprit for found in findings_of(account) if found.rule == "server-died"] == ["server"]


@pytest.mark.parametrize(
    ("line", "advice"),
    [
        (
            "Error: LINEAR_API_KEY environment variable is required",
            "Set LINEAR_API_KEY in the environment of the server's entry",
        ),
        ("KeyError: 'TOKEN'", "Set TOKEN in the environment"),
        ("ModuleNotFoundError: No module named 'yaml'", "Install the package of yaml where “server” finds it"),
        ("Error: Cannot find module 'left-pad'", "Install the package of left-pad where “server” finds it"),
    ],
)
def test_the_advice_names_what_is_missing(line: str, advice: str) -> None:
    assert found(line).advice.startswith(advice)


def test_a_server_that_dies_in_a_call_is_to_be_called_again_and_one_that_dies_before_is_to_be_run() -> None:
    call = f'{HANDSHAKE}→ tools/call 1 {{"name":"get"}}\n! TypeError: x is undefined\n· the server exits 1'
    (in_call,) = [death for death in findings_of(call) if death.rule == "server-died"]
    assert in_call.advice.startswith("Repeat tools/call get with the arguments of row 3")
    assert found("KeyError: 'name'").advice.startswith("Run its command in a terminal")


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("docker run --rm acme/server", True),
        ("/usr/bin/podman run acme/server", True),
        ("docker run -i --rm acme/server", False),
        ("docker run --rm -it acme/server", False),
        ("docker run --interactive acme/server", False),
        ("docker exec acme server", False),
        ("npx run", False),
    ],
)
def test_a_container_without_stdin_is_known_by_its_command(command: str, *, expected: bool) -> None:
    assert lacks_stdin(command.split()) is expected


def started(seconds: float) -> list[tuple[str, str]]:
    account = f"{INITIALIZE}! npm warn deprecated glob@7\n· {seconds} s later\n{HELLO}"
    return [(found.culprit, found.what) for found in findings_of(account) if found.rule == "slow-start"]


def test_a_server_that_takes_long_to_start_is_a_note_with_what_it_wrote_meanwhile() -> None:
    ((culprit, what),) = started(12.0)
    assert culprit == "server"
    assert "after 12.0 s. The last line that it had written: “npm warn deprecated glob@7”" in what
    assert started(8.0) == []

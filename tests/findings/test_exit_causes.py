"""Servers that end before they answer anything: the fault of how they were started, or their own."""

import pytest

from mcpspy.records import Header
from mcpspy.transcript.findings.rule import Finding
from mcpspy.transcript.findings.run import findings
from mcpspy.transcript.findings.transport.exit_causes import lacks_stdin
from mcpspy.transcript.transcribe import transcribe
from tests.findings.account import records
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
    "a value": "ValueError: Unsupported model: gpt-9",
    "a program that it missed at its start": (
        "/x/lib/site-packages/zinc/__init__.py:26: RuntimeWarning: MiniZinc was not found on the system. No default driver.\n"
        "! INFO starting\n! Traceback (most recent call last):\n! assert driver is not None\n! AssertionError"
    ),
    "a program outside of PATH": "WARNING: ffmpeg not found in PATH\n! Traceback (most recent call last):\n! AssertionError",
    "another system": "bash: ./server: cannot execute binary file: Exec format error",
}
UNCLEAR = {
    "no network": "npm error network request to https://registry.example failed, reason: getaddrinfo ENOTFOUND registry.example",
    "a port that is taken": "Error: listen EADDRINUSE: address already in use :::3000",
}
SERVER = {
    "its own exception": "KeyError: 'name'",
    "an exception after something else that was not found": (
        "WARNING: cache entry not found in store\n! user was not found on the list\n! Traceback (most recent call last):\n"
        "! KeyError: 'x'"
    ),
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
    assert set(by_rule) == {"server-died"}


def test_text_on_stdout_is_noise_if_stderr_says_why_the_server_ended() -> None:
    account = f"{INITIALIZE}← usage: charts [-h] {{server,cli}} ...\n! KeyError: 'name'\n· the server exits 1"
    assert {finding.rule for finding in findings_of(account)} == {"server-died", "stdout-noise"}


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


def started(seconds: float, before: str = "") -> list[tuple[str, str]]:
    account = f"{INITIALIZE}! npm warn deprecated glob@7\n· {seconds} s later\n{before}{HELLO}"
    return [(found.culprit, found.what) for found in findings_of(account) if found.rule == "slow-start"]


def test_a_server_that_takes_long_to_start_is_a_note_with_what_it_wrote_meanwhile() -> None:
    ((culprit, what),) = started(12.0)
    assert culprit == "server"
    assert "after 12.0 s. The last line that it had written: “npm warn deprecated glob@7”" in what
    assert started(8.0) == []


def test_the_time_in_which_a_server_waited_for_a_processor_does_not_make_its_start_slow() -> None:
    queued = "· the server has waited 5.0 s for a processor before its first output\n"
    assert started(12.0, queued) == []
    ((_, what),) = started(16.0, queued)
    assert "after 16.0 s, 5.0 s of which it waited for a processor" in what


SITE = "/x/lib/python3.12/site-packages"
FRAME = f'  File "{SITE}/%s/server.py", line 9, in %s'
OTHER_VERSIONS = {
    "a name that its library no longer has": (
        f"ImportError: cannot import name 'FastMCP' from 'mcp.server' ({SITE}/mcp/server/__init__.py)",
        "configuration",
        "of mcp ",
    ),
    "a name that the library of a library no longer has": (
        f"{FRAME % ('fastmcp', '<module>')}\n! ImportError: cannot import name 'x' from 'pydantic.types' ({SITE}/pydantic/types.py)",
        "server",
        "of pydantic ",
    ),
    "a module that its library no longer has": (
        "ModuleNotFoundError: No module named 'mcp.server.fastmcp'",
        "configuration",
        "of mcp ",
    ),
    "a method that its library no longer has": (
        f"{FRAME % ('notes', '<module>')}\n!     @server.list_tools()\n! AttributeError: 'Server' object has no attribute 'x'",
        "server",
        "of a library ",
    ),
    "an export that its library no longer has": (
        "SyntaxError: The requested module '@acme/sdk/types.js' does not provide an export named 'Tool'",
        "configuration",
        "of @acme/sdk ",
    ),
}
NO_VERSIONS = {
    "a method of its own, while it runs": (
        f"{FRAME % ('notes', 'main')}\n! AttributeError: 'Notes' object has no attribute 'path'"
    ),
    "a method of its own file": "  File \"/app/server.py\", line 9, in <module>\n! AttributeError: 'Note' object has no attribute",
    "something that is missing": f"{FRAME % ('notes', '<module>')}\n! AttributeError: 'NoneType' object has no attribute 'x'",
}


@pytest.mark.parametrize(("lines", "culprit", "library"), OTHER_VERSIONS.values(), ids=OTHER_VERSIONS)
def test_a_library_of_another_version_is_named(lines: str, culprit: str, library: str) -> None:
    finding = found(f"Traceback (most recent call last):\n! {lines}")
    assert finding.culprit == culprit
    assert f"another version {library}than" in finding.blame
    assert "perhaps an older one" in finding.advice


@pytest.mark.parametrize("lines", NO_VERSIONS.values(), ids=NO_VERSIONS)
def test_an_error_in_its_own_code_is_no_sign_of_another_version(lines: str) -> None:
    finding = found(f"Traceback (most recent call last):\n! {lines}")
    assert finding.culprit == "server"
    assert "version" not in finding.blame + finding.advice


def test_the_program_that_a_server_cannot_start_is_named() -> None:
    finding = found(
        "    raise child_exception_type(errno_num)\n! FileNotFoundError: [Errno 2] No such file or directory: 'deno'"
    )
    assert finding.culprit == "configuration"
    assert finding.advice.startswith("Install “deno”, or add its folder to PATH")


def test_an_error_is_quoted_in_full_before_the_lines_above_it() -> None:
    finding = found(f"  File \"/{'x' * 90}\"\n!     import a\n! ModuleNotFoundError: No module named '{'m' * 100}'")
    assert f"; its last error on stderr: “ModuleNotFoundError: No module named '{'m' * 100}'”, after “File" in finding.what


def test_a_box_around_an_error_is_not_quoted() -> None:
    finding = found("╭─ Error ─────────╮\n! │ Missing command. │\n! ╰─────────────────╯")
    assert finding.what.endswith("its last error on stderr: “Error: Missing command.”")


WAITS = f"{INITIALIZE}· 9.0 s later\n"
CANCELS = f'{WAITS}→ notifications/cancelled {{"requestId":0,"reason":"Request timed out"}}\n· the server exits 0'


@pytest.mark.parametrize(
    "account", [f"{WAITS}· the client closes stdin\n· the server exits 0", CANCELS], ids=["left", "cancelled"]
)
@pytest.mark.parametrize(("options", "culprit"), [(["--rm"], "configuration"), (["-i", "--rm"], "server")])
def test_a_container_without_stdin_that_answers_nothing_is_a_fault_of_the_entry(
    account: str, options: list[str], culprit: str
) -> None:
    made = records(account)
    header = next(record for record in made if isinstance(record, Header))
    header.tapped["argv"] = ["/usr/bin/docker", "run", *options, "acme/server"]
    (finding,) = findings(transcribe(made))
    assert finding.culprit == culprit
    assert ("Add -i" in finding.advice) is (culprit == "configuration")

"""`mcpspy replay` over HTTP: against mocks of the same captures, which know every answer, and behind a login."""

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from captures.serving import port, started
from mcpspy.capture.file.format import header_line
from mcpspy.capture.file.reader import read
from mcpspy.capture.file.writer import Writer
from mcpspy.records import Open
from tests.cli.terminal import on_pipe, run
from tests.conftest import PEERS
from tests.transcript.dialogue import request, result, tool_call
from tests.transcript.traffic import Traffic, initialize, opened_session

CAPTURES = Path(__file__).parents[3] / "captures"


@contextmanager
def served(capture: str, transport: str) -> Iterator[str]:
    """The URL of a mock of this capture."""
    with on_pipe("mock", capture, "--listen", "127.0.0.1:0", "--transport", transport) as mock:
        words = mock.wait_for(lambda text: "http://" in text and "\n" in text.partition("http://")[2])
        yield "http://" + words.partition("http://")[2].split()[0]


def written(traffic: Traffic, folder: Path) -> str:
    """Write the capture of this traffic."""
    path = str(folder / "traffic.mcpspy")
    fd = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
    writer = Writer(fd, header_line(traffic.records[0]))  # type: ignore[arg-type]  # the header
    writer(traffic.records[1:])
    writer.close(traffic.at_ns)
    return path


def capture(name: str) -> str:
    return str(CAPTURES / f"{name}.mcpspy")


@pytest.mark.parametrize(
    ("name", "transport"),
    [("streamable", "streamable"), ("stateless", "streamable"), ("sse", "sse"), ("logs", "streamable"), ("question", "sse")],
)
def test_a_server_that_says_the_same_over_http_is_exit_status_0(name: str, transport: str) -> None:
    with served(capture(name), transport) as url:
        done = run("replay", capture(name), "--url", url, "--transport", transport, "--ignore", "$.server.exit")
    assert (done.returncode, done.stdout.splitlines()[0][:15]) == (0, "✓ no difference")


@pytest.mark.parametrize(("recorded", "transport"), [("sse", "streamable"), ("streamable", "sse")])
def test_the_path_of_a_url_decides_its_transport_whatever_was_recorded(recorded: str, transport: str) -> None:
    with served(capture(recorded), transport) as url:
        done = run("replay", capture(recorded), "--url", url)
    assert (done.returncode, done.stdout.splitlines()[0][:15]) == (0, "✓ no difference")


def test_where_the_path_says_nothing_the_server_is_asked_and_its_refusal_is_no_difference(tmp_path: Path) -> None:
    kept, again = str(tmp_path / "x.mcpspy"), str(tmp_path / "y.mcpspy")
    words = [sys.executable, str(PEERS / "pyserver.py"), "sse", "0", "/events"]
    (tmp_path / "home").mkdir()
    with started(words, tmp_path, tmp_path / "log", {}) as said_by_server:
        url = f"http://127.0.0.1:{port(said_by_server)}/events"
        run("replay", capture("sse"), "--url", url, "--capture", kept)
        done = run("replay", kept, "--url", url, "--capture", again)
    assert (done.returncode, done.stdout.splitlines()[0][:15]) == (0, "✓ no difference")
    assert "it was a first try over another transport, refused with 405" in done.stdout
    assert "second-initialize" not in run("check", again).stdout


@pytest.mark.parametrize(("transport", "other"), [("streamable", "sse"), ("sse", "streamable")])
def test_a_server_that_does_not_speak_the_transport_is_reported_with_the_option_for_the_other(
    transport: str, other: str
) -> None:
    with served(capture("sse"), other) as url:
        done = run("replay", capture("sse"), "--url", url, "--transport", transport)
    assert done.returncode == 4
    assert f"--transport {other} tries the other transport of HTTP" in done.stderr


def test_the_smallest_sequence_is_found_over_http_with_what_gives_out_its_state() -> None:
    with served(capture("stateless"), "streamable") as url:
        done = run(
            "replay", capture("stateless"), "--url", url, "--until", "tool:greet status:ok not status:needs-input", "--json"
        )
    output = json.loads(done.stdout)
    assert [(row["row"], row["outcome"]) for row in output["rows"]] == [(4, "ok"), (5, "ok")]
    assert (output["minimal"], output["unresolved"]) == (True, 0)


def test_the_recorded_url_is_called_only_with_consent(tmp_path: Path) -> None:
    kept = str(tmp_path / "x.mcpspy")
    with served(capture("streamable"), "streamable") as url:
        run("replay", capture("streamable"), "--url", url, "--capture", kept)
        unasked = run("replay", kept)
        done = run("replay", kept, "--yes")
    assert (unasked.returncode, unasked.stdout) == (2, "")
    assert f"without your consent: {url}\nAdd --yes to call it, or name its URL with --url." in unasked.stderr
    assert f"to {url}" in done.stderr
    assert done.returncode == 0


def test_a_login_in_the_environment_goes_to_no_url_that_a_capture_names(guarded: str, tmp_path: Path) -> None:
    kept = str(tmp_path / "x.mcpspy")
    words = ("replay", capture("oauth"), "--url", guarded, "--capture", kept)
    assert run(*words, MCPSPY_AUTHORIZATION="Bearer good").returncode == 0
    done = run("replay", kept, "--yes", MCPSPY_AUTHORIZATION="Bearer good")
    assert "HTTP 401" in done.stdout
    assert "or set MCPSPY_AUTHORIZATION, with --url" in done.stderr


def test_what_is_sent_is_marked_as_ours_and_session_ids_reach_no_disk(tmp_path: Path) -> None:
    kept = str(tmp_path / "x.mcpspy")
    with served(capture("streamable"), "streamable") as url:
        run("replay", capture("streamable"), "--url", url, "--capture", kept)
    assert "request-refused" not in run("check", kept).stdout
    opened = [record for record in read(kept) if isinstance(record, Open)]
    assert {record.sender for record in opened if record.injected} == {"client"}
    sessions = {
        field for record in opened for field in record.head.lower().split(b"\r\n") if field.startswith(b"mcp-session-id")
    }
    assert sessions
    assert all(b"redacted-" in session for session in sessions)


def of_two_clients(folder: Path) -> str:
    """Write a capture of two sessions at once."""
    traffic = Traffic()
    for session in ("one", "two"):
        opened_session(traffic, session)
    for session in ("two", "one"):
        traffic.post(request(1, "tools/list"), session=session).answer(body=result(1, {"tools": [], "for": session}))
    return written(traffic, folder)


def test_each_client_of_a_capture_is_played_for_itself(tmp_path: Path) -> None:
    path = of_two_clients(tmp_path)
    with served(path, "streamable") as url:
        output = json.loads(run("replay", path, "--url", url, "--json").stdout)
    assert [(client["requests"], client["comparison"]["summary"]["different"]) for client in output["clients"]] == [
        (2, False),
        (2, False),
    ]


def test_the_smallest_sequence_is_that_of_one_client(tmp_path: Path) -> None:
    done = run("replay", of_two_clients(tmp_path), "--url", "http://127.0.0.1:9/mcp", "--until", "crash")
    assert (
        "--until plays one client, and 2 are selected; select rows of one of them, as in mcpspy replay @:7..20" in done.stderr
    )
    assert done.returncode == 2


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a server that wants the bearer token `good`."""
    folder = tmp_path_factory.mktemp("guarded")
    (folder / "home").mkdir()
    words = [sys.executable, str(PEERS / "authserver.py"), "0"]
    with started(words, folder, folder / "log", {}) as said_by_server:
        yield f"http://127.0.0.1:{port(said_by_server)}/mcp"


def test_a_login_that_is_given_is_shown_to_the_server_and_reaches_no_disk(guarded: str, tmp_path: Path) -> None:
    kept = tmp_path / "x.mcpspy"
    words = ("replay", capture("oauth"), "--url", guarded, "--header", "Authorization: Bearer good", "--capture", str(kept))
    done = run(*words)
    assert done.returncode == 0
    assert "it was refused with 401, and what followed on that is not played" in done.stdout
    assert b"Bearer good" not in kept.read_bytes()


def test_a_login_may_be_in_the_environment(guarded: str) -> None:
    assert run("replay", capture("oauth"), "--url", guarded, MCPSPY_AUTHORIZATION="Bearer good").returncode == 0


def test_without_it_nothing_is_sent_but_what_the_server_refuses(guarded: str) -> None:
    done = run("replay", capture("oauth"), "--url", guarded)
    assert done.returncode == 4
    assert "stopped after 1 of 4 messages: initialize was not answered: HTTP 401 Unauthorized" in done.stdout
    assert "add --header, or set MCPSPY_AUTHORIZATION" in done.stderr


def test_of_a_capture_in_which_all_was_refused_it_says_so(tmp_path: Path) -> None:
    traffic = Traffic()
    traffic.post(initialize(0)).answer(status=401)
    done = run("replay", written(traffic, tmp_path), "--url", "http://127.0.0.1:9")
    assert done.returncode == 2
    assert "row 1 cannot, because it was refused with 401" in done.stderr


def test_of_a_redacted_value_that_is_held_back_nothing_says_that_it_was_sent(tmp_path: Path) -> None:
    traffic = Traffic()
    opened_session(traffic, "s1")
    tools = {"tools": [{"name": "greet", "description": "as redacted-0123456789ab"}]}
    traffic.post(request(1, "tools/list"), session="s1").answer(200, result(1, tools))
    traffic.post(tool_call(2, key="redacted-0123456789ab"), session="s1").answer(200, result(2))
    done = run("replay", written(traffic.ends(), tmp_path), "--", sys.executable, str(PEERS / "tickets.py"))
    assert done.returncode == 2
    assert "it holds a value that was redacted" in done.stdout
    assert "sent as it was recorded" not in done.stderr

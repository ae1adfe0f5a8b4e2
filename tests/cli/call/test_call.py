"""`mcpspy call` to a server of its own: a recorded call again, or a tool by name, on stdio and over HTTP."""

import json
import re
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from captures.serving import port, started
from mcpspy.capture.file.reader import read
from mcpspy.records import Exit, Header
from tests.cli.replays import LIST, SERVER, call, heard, heard_names, recorded
from tests.cli.terminal import on_pipe, on_terminal, run
from tests.conftest import PEERS
from tests.deadlines import eventually

CAPTURES = Path(__file__).parents[3] / "captures"
HANDSHAKE = ["initialize", "notifications/initialized"]
SDK = [SERVER[0], str(PEERS / "sdkserver.py"), "mcp"]


def ticket(answers: list[Any]) -> dict[str, Any]:
    """Redeem the ticket that was drawn last."""
    return call("redeem", ticket=answers[-1]["result"]["content"][0]["text"].split()[-1].rstrip("."))


@pytest.fixture(scope="module")
def visit(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A handshake (rows 1 and 2), the tools (3), a greeting (4), a ticket (5) and what it brings (6), roots (7, asked in 8)."""
    return recorded(tmp_path_factory.mktemp("visit"), LIST, call("greet", name="Ada"), call("draw"), ticket, call("ask"))


def again(*words: str, faults: tuple[str, ...] = (), log: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run `mcpspy call words` with the server with these faults; what the server reads is in `log`."""
    return run("call", *words, "--", *SERVER, str(log or ""), *faults)


# --- One recorded call ---


def test_a_recorded_call_is_sent_again_after_its_handshake(visit: str, tmp_path: Path) -> None:
    done = again(f"{visit}:4", log=tmp_path / "log")
    assert done.returncode == 0
    assert heard_names(tmp_path / "log") == [*HANDSHAKE, "greet"]
    first, *others = done.stdout.splitlines()
    assert re.fullmatch(r"✓ tools/call greet  ok  [\d.]+ .?s, recorded [\d.]+ .?s", first)
    assert '      "text": "Hello, Ada"' in others
    assert others[-1] == "✓ as recorded in row 4"


def test_a_call_is_sent_changed_and_the_change_is_no_difference(visit: str, tmp_path: Path) -> None:
    done = again(f"{visit}:4", "--set", '$.arguments.name="Grace"', log=tmp_path / "log")
    assert heard(tmp_path / "log")[-1]["params"]["arguments"] == {"name": "Grace"}
    assert done.returncode == 1
    assert done.stdout.endswith('✗ differs from row 4\n    $.result.content[0].text: "Hello, Ada" ≠ "Hello, Grace"\n')


@pytest.mark.parametrize("path", ["$.arguments.name", "arguments.name", "$.params.arguments.name", 'params["arguments"].name'])
def test_a_path_of_a_change_is_spelled_as_for_an_intercept(visit: str, path: str) -> None:
    done = again(f"{visit}:4", "--set", f'{path}="Grace"', "--dry-run")
    assert json.loads(done.stdout)["params"] == {"name": "greet", "arguments": {"name": "Grace"}}
    assert "changes nothing" not in done.stderr


def test_a_change_that_changes_nothing_says_so(visit: str) -> None:
    done = again(f"{visit}:4", "--set", 'arguments.name="Ada"', "--dry-run")
    assert "mcpspy: --set arguments.name changes nothing: the request has this value already\n" in done.stderr


def test_a_call_is_sent_with_the_call_whose_answer_it_needs(visit: str, tmp_path: Path) -> None:
    done = again(f"{visit}:6", "--yes", log=tmp_path / "log")
    assert heard_names(tmp_path / "log") == [*HANDSHAKE, "draw", "redeem"]
    assert done.stdout.endswith("✓ as recorded in row 6\n")


def test_a_call_is_a_capture_of_its_own_which_is_no_newest_recording(visit: str, store: Path) -> None:
    assert again(f"{visit}:4").returncode == 0
    (path,) = (store / "captures").glob("*tickets-call*")
    (header,) = [record for record in read(str(path)) if isinstance(record, Header)]
    (recorded_header,) = [record for record in read(visit) if isinstance(record, Header)]
    assert (header.label, header.tapped["replay"]) == ("tickets-call", [recorded_header.capture_id])


def test_an_answer_that_is_an_error_now_differs(visit: str) -> None:
    done = again(f"{visit}:6", "--yes", "--set", '$.arguments.ticket="x"')
    assert done.returncode == 1
    assert "    ok → tool error\n" in done.stdout


def test_json_has_the_answer_and_the_comparison(visit: str) -> None:
    output = json.loads(again(f"{visit}:4", "--json", faults=("rude",)).stdout)
    assert (output["exit"], output["outcome"], output["recorded"]["row"]) == (1, "ok", 4)
    assert json.loads(output["answer"]["text"])["result"]["content"][0]["text"] == "What, Ada"
    assert output["comparison"]["summary"]["changed"] == 1
    assert output["target"]["argv"] == [*SERVER, "", "rude"]


def test_the_next_commands_show_the_new_row(visit: str) -> None:
    with on_terminal("call", f"{visit}:4", "--", *SERVER, columns=200) as running:
        assert running.rest() == 0
    (named,) = re.findall(r"mcpspy show (\S+:3)", running.words)
    assert '"Hello, Ada"' in run("show", named).stdout


# --- What is not sent ---


def test_a_tool_that_may_change_something_is_not_called_without_a_yes(visit: str, tmp_path: Path) -> None:
    done = again(f"{visit}:5", log=tmp_path / "log")
    assert (done.returncode, done.stdout, heard(tmp_path / "log")) == (2, "", [])
    assert "tools/call draw may change something: it is not marked as read-only.\nAdd --yes to call it." in done.stderr


@pytest.mark.parametrize(("answer", "status"), [(b"n\n", 130), (b"y\n", 0)])
def test_on_a_terminal_a_tool_that_may_change_something_is_asked_about(tmp_path: Path, answer: bytes, status: int) -> None:
    capture = recorded(tmp_path, LIST, call("drop", table="a"))
    with on_terminal("call", f"{capture}:4", "--", *SERVER, str(tmp_path / "log"), columns=200) as running:
        assert "tools/call drop is marked as destructive. Call it? [y/N]" in running.wait_for("[y/N]")
        running.type(answer)
        assert running.rest() == status
    assert heard_names(tmp_path / "log") == ([] if status else [*HANDSHAKE, "drop"])


def test_a_redacted_value_is_never_sent_but_can_be_given(tmp_path: Path) -> None:
    capture = recorded(tmp_path, LIST, call("greet", name="redacted-0123456789ab"))
    done = again(f"{capture}:4", log=tmp_path / "log")
    assert done.returncode == 2
    assert "row 4 was not sent: it holds a value that was redacted: redacted-0123456789ab" in done.stderr
    assert heard_names(tmp_path / "log") == HANDSHAKE
    again(f"{capture}:4", "--set", '$.arguments.name="Bob"', log=tmp_path / "log")
    assert heard(tmp_path / "log")[-1]["params"]["arguments"] == {"name": "Bob"}


def test_a_dry_run_prints_the_request_and_starts_nothing(visit: str) -> None:
    done = run("call", f"{visit}:5", "--dry-run")
    assert (done.returncode, json.loads(done.stdout)["params"]["name"]) == (0, "draw")
    assert json.loads(run("call", f"{visit}:5", "--dry-run", "--json").stdout)["effect"] == "changes"


# --- Answers that do not come ---


def test_a_call_that_is_not_answered_in_time_is_cancelled(visit: str, tmp_path: Path) -> None:
    done = again(f"{visit}:4", "--timeout", "0.3", faults=("idle",), log=tmp_path / "log")
    assert (done.returncode, done.stdout) == (4, "")
    assert "there was no answer in time, and it was cancelled" in done.stderr
    *_, asked, cancelled = heard(tmp_path / "log")
    assert (cancelled["method"], cancelled["params"]["requestId"]) == ("notifications/cancelled", asked["id"])


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_call_that_is_stopped_is_cancelled_and_its_server_ended(visit: str, tmp_path: Path, number: int) -> None:
    log, kept = tmp_path / "log", tmp_path / "kept.mcpspy"
    with on_pipe("call", f"{visit}:4", "--capture", str(kept), "--", *SERVER, str(log), "idle") as running:
        eventually(lambda: "greet" in heard_names(log), "a call that is not answered")
        assert running.end(number) == 130
    assert heard_names(log)[-1] == "notifications/cancelled"
    assert [record.code for record in read(str(kept)) if isinstance(record, Exit)] == [0]


def test_a_server_that_dies_is_exit_status_4_and_said(visit: str) -> None:
    done = again(f"{visit}:5", "--yes", faults=("dies",))
    assert (done.returncode, done.stdout) == (4, "")
    assert "the server exited with status 3" in done.stderr
    assert "out of tickets" in done.stderr


def test_nothing_that_was_captured_reaches_the_terminal_unescaped(tmp_path: Path) -> None:
    capture = recorded(tmp_path, call("evil\x1b]0;x\x07\u202e", name="\x1b[31m"))
    done = again(f"{capture}:3", "--yes")
    output = done.stdout + done.stderr + run("call", f"{capture}:3", "--dry-run").stdout
    assert "evil\\x1b]0;x\\x07\\u202e" in output
    assert not {"\x1b", "\x07", "\u202e"} & set(output)


# --- A tool by name ---


@pytest.fixture(scope="module")
def sums(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A session with a server on the official SDK, whose tool `add` takes two integers."""
    return recorded(tmp_path_factory.mktemp("sums"), LIST, call("add", a=1, b=2), server=[*SDK, "stdio"])


def test_a_tool_is_called_that_was_never_called_before(sums: str) -> None:
    done = run("call", sums, "count", "to=2", "--yes", "--", *SDK, "stdio", PYTHONPATH="")
    assert done.returncode == 0
    assert done.stdout.startswith("✓ tools/call count  ok  ")
    assert '"counted"' in done.stdout


def test_a_tool_is_called_over_http_with_the_capture_of_stdio(sums: str, tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    with started([*SDK, "http"], tmp_path, tmp_path / "log", {}) as said_by_server:
        url = f"http://127.0.0.1:{port(said_by_server)}/mcp"
        assert '"text": "5"' in run("call", sums, "add", "a=2", "b=3", "--yes", "--url", url).stdout
        assert run("call", f"{sums}:4", "--yes", "--url", url).stdout.endswith("✓ as recorded in row 4\n")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["add", "a=1"], "'b' is a required property. add takes a (integer), b (integer).\nTo send others nevertheless"),
        (["add", "a=1", "b=x"], "b must be of type integer, and 'x' is not. add takes a (integer), b (integer)."),
        (["add", "a=1", 'b:="x"'], "'x' is not of type 'integer'"),
        (["add", "a=1", "a=2"], "a has two values"),
        (["add", "a=1", "b:=x"], "The value of b is no JSON: x. Put text in quotes, as in b:='\"x\"'"),
        (["add", "1"], "1 is no argument: write name=value, or name:=JSON"),
        (["ad"], "The server has no tool ad. Did you mean add?"),
    ],
)
def test_arguments_that_do_not_fit_the_schema_are_not_sent(sums: str, words: list[str], sentence: str) -> None:
    done = run("call", sums, *words, "--yes", "--", "no-such-command")
    assert (done.returncode, done.stdout) == (2, "")
    assert sentence[:1].lower() + sentence[1:] in done.stderr


def test_what_does_not_fit_the_schema_can_be_sent_with_set(sums: str) -> None:
    done = run("call", sums, "add", "a=1", "b=2", "--set", '$.arguments.b="x"', "--yes", "--", *SDK, "stdio", PYTHONPATH="")
    assert (done.returncode, done.stdout.split("  ")[:2]) == (1, ["✗ tools/call add", "tool error"])


def test_a_tool_whose_definition_was_not_recorded_is_called_unchecked(tmp_path: Path) -> None:
    capture = recorded(tmp_path, call("greet", name="Ada"))
    done = again(capture, "greet", "name=Bob", "--yes")
    assert done.returncode == 0
    assert "the definition of greet was not recorded, so its arguments are not checked" in done.stderr
    assert '"Hello, Bob"' in done.stdout


def test_a_call_of_the_modern_era_says_what_each_request_must_say(tmp_path: Path) -> None:
    done = run("call", str(CAPTURES / "stateless.mcpspy"), *modern_tool(), "--dry-run")
    meta = json.loads(done.stdout)["params"]["_meta"]
    assert {name.rpartition("/")[2] for name in meta} == {"protocolVersion", "clientInfo", "clientCapabilities"}


def modern_tool() -> list[str]:
    """Name a tool of the stateless server, and arguments that it takes."""
    shown = json.loads(run("show", str(CAPTURES / "stateless.mcpspy"), "--json").stdout)
    row = next(row for row in shown["rows"] if row.get("method") == "tools/call" and row["from"] == "client")
    request = json.loads(run("call", f"{CAPTURES / 'stateless.mcpspy'}:{row['row']}", "--dry-run").stdout)
    arguments = request["params"].get("arguments", {})
    return [request["params"]["name"], *(f"{name}:={json.dumps(value)}" for name, value in arguments.items())]


# --- Command lines that make no sense ---


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["{}:4"], "this session of tickets has ended. Name a server, as in `mcpspy call {}:4 -- "),
        (["{}"], "a call is one row, or a tool"),
        (["{}:2..4", "--", "x"], "a call is one row, or a tool"),
        (["{}:2", "--", "x"], "row 2 is no request"),
        (["{}:8", "--", "x"], "row 8 is a request of the server"),
        (["{}:1", "--", "x"], "row 1 is the handshake"),
        (["{}:99", "--", "x"], "there is no row 99"),
        (["{}:4", "greet", "--", "x"], "leave out greet"),
        (["{}:4", "--label", "x"], "--label is for a server of its own; add -- COMMAND, or --url URL"),
        (["{}:4", "--"], "the server's command after -- is missing"),
        (["{}:4", "--url", "http://127.0.0.1:9", "--", "x"], "not by both"),
        (["{}:4", "--set", "$.arguments.name.x=1", "--", "x"], "it cannot be added"),
        (["{}:4", "--ignore", "x", "--", "x"], "a bare name is ambiguous"),
        (["{}:4", "--timeout", "nan", "--", "x"], "finite"),
        (["{}:4", "--capture", "", "--", "x"], "--capture needs the name of a file"),
    ],
)  # fmt: skip
def test_a_wrong_command_line_is_exit_status_2(visit: str, words: list[str], sentence: str) -> None:
    done = run("call", *[word.format(visit) for word in words])
    assert (done.returncode, done.stdout) == (2, "")
    assert sentence.format(visit) in done.stderr


def test_a_call_of_a_recording_over_http_needs_its_url() -> None:
    rows = json.loads(run("show", str(CAPTURES / "streamable.mcpspy"), "--json").stdout)["rows"]
    row = next(row["row"] for row in rows if row.get("method") == "tools/call")
    done = run("call", f"{CAPTURES / 'streamable.mcpspy'}:{row}")
    assert done.returncode == 2
    assert "has ended. Name its server, as in `mcpspy call " in done.stderr
    assert f":{row} --url http://127.0.0.1:" in done.stderr

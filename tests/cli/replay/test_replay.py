"""`mcpspy replay`, as a user, a build server and `git bisect` call it: on a server that changes from run to run."""

import json
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from mcpspy.capture.file.reader import read
from mcpspy.records import Exit, Frame, Header, Note
from tests.cli.replays import LIST, SERVER, call, heard, heard_names, recorded, replay
from tests.cli.terminal import MCPSPY, PLAIN, on_pipe, on_terminal, run
from tests.conftest import PEERS
from tests.deadlines import DEADLINE_S, eventually

CAPTURES = Path(__file__).parents[3] / "captures"
HANDSHAKE = ["initialize", "notifications/initialized"]


def ticket(answers: list[Any]) -> dict[str, Any]:
    """Redeem the ticket that was drawn last."""
    return call("redeem", ticket=answers[-1]["result"]["content"][0]["text"].split()[-1].rstrip("."))


@pytest.fixture(scope="module")
def visit(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A handshake (rows 1 and 2), the tools (3), a greeting (4), a ticket (5) and what it brings (6), roots (7, asked in 8)."""
    folder = tmp_path_factory.mktemp("visit")
    return recorded(folder, LIST, call("greet", name="Ada"), call("draw"), ticket, call("ask"))


# --- The same, and not the same ---


def test_the_same_server_is_exit_status_0(visit: str, tmp_path: Path) -> None:
    done = replay(visit, log=tmp_path / "log")
    assert done.stdout.startswith("✓ no difference · 7 calls unchanged\n")
    assert done.returncode == 0
    assert heard_names(tmp_path / "log") == [*HANDSHAKE, "tools/list", "greet", "draw", "redeem", "ask", "answer"]


def test_what_is_sent_is_what_was_recorded_byte_for_byte(visit: str, tmp_path: Path) -> None:
    replay(visit, "--only", "not tool:redeem", log=tmp_path / "log")
    sent = [record.data for record in read(visit) if isinstance(record, Frame) and record.stream == 0]
    assert (tmp_path / "log").read_bytes().splitlines() == [line.strip() for line in sent if b"redeem" not in line]


def test_another_answer_is_exit_status_1(visit: str) -> None:
    done = replay(visit, faults=("rude",))
    assert done.returncode == 1
    assert '$.result.content[0].text: "Hello, Ada" ≠ "What, Ada"' in done.stdout


def test_a_difference_that_is_ignored_is_none(visit: str) -> None:
    assert replay(visit, "--ignore", "$.result.content[*].text", faults=("rude",)).returncode == 0


def test_a_request_that_the_server_never_sent_before_is_reported_and_refused(visit: str, tmp_path: Path) -> None:
    kept = str(tmp_path / "x.mcpspy")
    done = replay(visit, "--capture", kept, faults=("curious",), log=tmp_path / "log")
    assert done.returncode == 1
    assert [record.topic for record in read(kept) if isinstance(record, Note)] == ["miss"]
    assert "requests by the server that were not recorded\n  sampling/createMessage" in done.stdout
    (answer,) = [message for message in heard(tmp_path / "log") if "error" in message]
    assert answer["error"]["message"].startswith("mcpspy replay: sampling/createMessage")


def test_a_replay_is_a_capture_of_its_own(visit: str, store: Path) -> None:
    replay(visit)
    done = run("show", "tickets-replay", "--json")
    (header,) = json.loads(done.stdout)["captures"]
    (recorded_header,) = [record for record in read(visit) if isinstance(record, Header)]
    assert header["label"] == "tickets-replay"
    assert header["tapped"]["replay"] == [recorded_header.capture_id]
    assert run("diff", visit, "tickets-replay").stdout.startswith(
        "✓ no difference"
    )  # but for the tickets, which the server made up
    assert list((store / "captures").glob("*tickets-replay*"))


def test_a_replay_can_be_replayed(visit: str, tmp_path: Path) -> None:
    replay(visit, "--capture", str(tmp_path / "again.mcpspy"))
    assert replay(str(tmp_path / "again.mcpspy"), "--capture", str(tmp_path / "third.mcpspy")).returncode == 0
    (header,) = [record for record in read(str(tmp_path / "third.mcpspy")) if isinstance(record, Header)]
    assert header.label == "tickets-replay"


# --- Parts of it ---


def test_a_call_is_sent_with_the_call_whose_answer_it_needs(visit: str, tmp_path: Path) -> None:
    done = replay(visit, "--only", "tool:redeem", log=tmp_path / "log")
    assert heard_names(tmp_path / "log") == [*HANDSHAKE, "draw", "redeem"]
    assert done.stdout.startswith("✓ no difference · 1 call unchanged\n")


def test_only_what_matches_is_sent_and_compared(visit: str, tmp_path: Path) -> None:
    done = replay(visit, "--only", "tool:draw", faults=("rude",), log=tmp_path / "log")
    assert heard_names(tmp_path / "log") == [*HANDSHAKE, "draw"]
    assert (done.returncode, done.stdout.splitlines()[0]) == (1, "✗ 1 call changed · 0 calls unchanged")


def test_a_dry_run_says_what_would_be_sent_and_starts_nothing(visit: str, tmp_path: Path) -> None:
    done = replay(visit, "--only", "tool:greet", "--dry-run", log=tmp_path / "log")
    assert done.returncode == 0
    assert '   4 → tools/call greet  read-only\n       {"jsonrpc": "2.0", "id": 2,' in done.stdout
    assert not (tmp_path / "log").exists()


def test_a_dry_run_says_what_is_carried(visit: str) -> None:
    assert " of row 5: replaced by the live value\n" in run("replay", visit, "--only", "tool:redeem", "--dry-run").stdout


def test_a_dry_run_is_json_for_programs(visit: str) -> None:
    output = json.loads(run("replay", visit, "--dry-run", "--json").stdout)
    assert [send["effect"] for send in output["sends"] if send["kind"] == "request"] == [
        "none", "none", "reads", "changes", "changes", "changes",
    ]  # fmt: skip
    assert json.loads(output["sends"][0]["text"])["method"] == "initialize"
    assert [[each["from_row"] for each in send.get("correlated", [])] for send in output["sends"]] == [
        [],
        [],
        [],
        [],
        [],
        [5],
        [],
    ]


# --- What is not sent ---


@pytest.fixture
def secret(tmp_path: Path) -> str:
    """A greeting of somebody whose name was redacted, then another."""
    return recorded(tmp_path, call("greet", name="redacted-0123456789ab"), call("greet", name="Ada"))


def test_a_redacted_value_is_never_sent(secret: str, tmp_path: Path) -> None:
    done = replay(secret, log=tmp_path / "log")
    assert done.returncode == 2
    assert heard_names(tmp_path / "log") == [*HANDSHAKE, "greet"]
    assert "tools/call greet  row 3: it holds a value that was redacted: redacted-0123456789ab" in done.stdout


REDACTED = "redacted-0123456789ab"
WITHHELD = [
    ([call("greet", name=REDACTED)], 1),
    ([call("greet", name="Ada"), call("greet", name=f"Bearer {REDACTED}")], 1),
    ([call("greet", name=REDACTED), call("greet", name="Ada"), call("greet", name=REDACTED)], 2),
    ([call("greet", name={"first": ["Ada", REDACTED]})], 1),
    ([call("greet", **{REDACTED: 1})], 1),
    ([LIST, call("greet", name="Ada", _meta={"token": REDACTED})], 1),
]


@pytest.mark.parametrize(("requests", "count"), WITHHELD)
def test_a_replay_that_withheld_messages_has_no_good_result(requests: list[Any], count: int, tmp_path: Path) -> None:
    path = recorded(tmp_path, *requests)
    done = replay(path)
    assert (done.returncode, "✓" in done.stdout) == (2, False)
    messages = "1 message" if count == 1 else f"{count} messages"
    assert done.stdout.startswith(f"✗ {messages} not sent · no difference in the others · ")
    client = json.loads(replay(path, "--json").stdout)["clients"][0]
    assert (len(client["withheld"]), len(client["unsent"])) == (count, count)
    until = replay(path, "--until", '"no such text"')
    assert (until.returncode, "that could be sent" in until.stderr) == (2, True)


WHOLE = [
    [call("greet", name="Ada")],
    [call("greet", name="redacted")],
    [call("greet", name="redacted-0123")],
    [LIST, call("greet", name="Ada"), LIST],
]


@pytest.mark.parametrize("requests", WHOLE)
def test_a_replay_that_sent_everything_has_a_good_result(requests: list[Any], tmp_path: Path) -> None:
    path = recorded(tmp_path, *requests)
    done = replay(path)
    assert (done.returncode, done.stdout[:15]) == (0, "✓ no difference")
    assert json.loads(replay(path, "--json").stdout)["clients"][0]["withheld"] == []


def test_rows_beside_one_that_would_be_withheld_have_a_good_result(secret: str) -> None:
    done = replay(secret, "--only", '"Ada"')
    assert (done.returncode, done.stdout[:15]) == (0, "✓ no difference")


def test_a_dry_run_says_what_would_not_be_sent(secret: str) -> None:
    done = replay(secret, "--dry-run")
    assert done.returncode == 2
    assert "   3 ✗ tools/call greet  may change something  it holds a value that was redacted" in done.stdout


# --- Servers that die, or were never there ---


def test_what_was_compared_before_the_server_died_is_kept_and_the_rest_is_reported(visit: str, tmp_path: Path) -> None:
    done = replay(visit, "--capture", str(tmp_path / "x.mcpspy"), faults=("dies",))
    assert done.returncode == 1
    first, *others = done.stdout.splitlines()
    assert first.startswith("✗ stopped after 5 of 7 messages: the server exited with status 3")
    assert first.endswith("its last words: out of tickets")
    assert "  ~ tools/call draw  ok → unanswered  A:5 B:5" in others
    assert others[-3:] == [
        "not sent",
        "  tools/call redeem  row 6: the server was gone",
        "  tools/call ask  row 7: the server was gone",
    ]
    assert len(list(read(str(tmp_path / "x.mcpspy")))) > 10


@pytest.mark.parametrize("server", [["no-such-command"], [*SERVER, "", "absent"], ["true"]])
def test_a_server_that_cannot_be_started_is_exit_status_4(visit: str, server: list[str]) -> None:
    done = run("replay", visit, "--", *server)
    assert done.returncode == 4
    assert done.stdout.startswith("✗ stopped after 1 of 7 messages: the server exited") or "command not found" in done.stderr


def test_a_url_that_cannot_be_reached_is_exit_status_4_and_what_to_do_next(visit: str) -> None:
    done = run("replay", visit, "--url", "http://127.0.0.1:9/mcp")
    assert (done.returncode, done.stdout) == (4, "")
    assert "cannot be reached: Connection refused. Is the server running, and is this its address?\n" in done.stderr


def test_a_silent_server_is_given_up(visit: str) -> None:
    done = replay(visit, "--timeout", "0.2", faults=("mute",))
    assert done.returncode == 4
    assert "initialize was not answered in time" in done.stdout


def test_a_call_without_a_recorded_answer_is_awaited_and_no_difference(tmp_path: Path) -> None:
    done = replay(recorded(tmp_path, call("wait"), call("greet", name="Ada")))
    assert done.returncode == 0
    assert "not answered" not in done.stdout


def test_a_call_that_is_not_answered_any_more_differs(visit: str) -> None:
    done = replay(visit, "--timeout", "2", faults=("idle",))
    assert done.returncode == 1
    assert "~ tools/call greet  ok → unanswered" in done.stdout
    assert "not answered\n  tools/call greet  row 4: no answer in time" in done.stdout


def test_a_file_that_is_no_capture_is_exit_status_3(tmp_path: Path) -> None:
    (tmp_path / "x.mcpspy").write_text("hello\n")
    assert run("replay", str(tmp_path / "x.mcpspy"), "--", "x").returncode == 3


# --- Asking before anything is done ---


def test_a_recorded_command_is_not_started_without_consent(visit: str) -> None:
    done = run("replay", visit)
    assert done.returncode == 2
    assert "Add --yes to start it" in done.stderr
    assert "tickets.py" in done.stderr


def test_a_recorded_command_is_started_with_yes(visit: str) -> None:
    assert run("replay", visit, "--yes").returncode == 0


@pytest.mark.parametrize(("answer", "status"), [(b"n\n", 130), (b"y\n", 0)])
def test_on_a_terminal_calls_that_may_change_something_need_consent(tmp_path: Path, answer: bytes, status: int) -> None:
    capture = recorded(tmp_path, LIST, call("drop", table="a"), call("greet", name="Ada"))
    with on_terminal("replay", capture, "--", *SERVER, str(tmp_path / "log"), columns=200) as running:
        plan = running.wait_for("Continue? [y/N]")
        assert "  tools/call drop (destructive)\n" in plan
        assert "greet" not in plan
        running.type(answer)
        assert running.rest() == status
    assert heard_names(tmp_path / "log") == ([] if status else [*HANDSHAKE, "tools/list", "drop", "greet"])


def test_below_git_nobody_is_asked(visit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_PREFIX", "")
    with on_terminal("replay", visit, "--", *SERVER) as running:
        assert running.rest() == 0


def test_on_a_terminal_calls_that_only_read_are_sent_without_asking(visit: str) -> None:
    with on_terminal("replay", visit, "--only", "tool:greet", "--", *SERVER) as running:
        assert running.rest() == 0


def test_missing_credentials_of_a_login_are_named() -> None:
    done = run("replay", str(CAPTURES / "oauth.mcpspy"), "--url", "http://127.0.0.1:9/mcp")
    message = "mcpspy: header fields of the recorded client are not sent: Authorization; add --header"
    assert f"{message}, or set MCPSPY_AUTHORIZATION\n" in done.stderr


def test_on_a_terminal_the_first_difference_can_be_looked_at(visit: str) -> None:
    with on_terminal("replay", visit, "--only", "tool:greet", "--", *SERVER, "", "rude", columns=200) as running:
        assert running.rest() == 1
    assert f"mcpspy show {visit}:4" in running.words
    (named,) = re.findall(r"mcpspy show (@[0-9a-f]{8}:3)", running.words)
    assert '"What, Ada"' in run("show", named).stdout


def test_nothing_that_was_captured_reaches_the_terminal_unescaped(tmp_path: Path) -> None:
    capture = recorded(tmp_path, call("evil\x1b]0;x\x07\u202e", name="\x1b[31m"))
    with on_terminal("replay", capture, "--", *SERVER, columns=200) as running:
        plan = running.wait_for("Continue? [y/N]")
        running.type(b"n\n")
        running.rest()
    output = plan + run("replay", capture, "--dry-run").stdout + replay(capture, faults=("dies",)).stdout
    assert "evil\\x1b]0;x\\x07\\u202e" in output
    assert not {"\x1b", "\x07", "\u202e"} & set(output)


# --- JSON ---


def test_json_has_what_was_sent_and_the_comparison(visit: str, tmp_path: Path) -> None:
    done = replay(visit, "--json", "--capture", str(tmp_path / "x.mcpspy"), faults=("dies",))
    output = json.loads(done.stdout)
    (client,) = output["clients"]
    assert (done.returncode, output["exit"]) == (1, 1)
    assert output["target"]["argv"] == [*SERVER, "", "dies"]
    assert (client["capture"], client["sent"], client["requests"]) == (str(tmp_path / "x.mcpspy"), 5, 4)
    assert [row["row"] for row in client["unsent"]] == [6, 7]
    assert client["lost"].startswith("the server exited with status 3")
    assert client["comparison"]["summary"]["changed"] == 1


# --- Command lines that make no sense ---


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["{}", "--"], "server's command after -- is missing"),
        (["{}", "server"], "Put -- before the server's command"),
        (["{}", "--url", "http://127.0.0.1:9", "--", "x"], "not by both"),
        (["{}", "--url", "nowhere"], "is not the URL of a server"),
        (["{}", "--header", "X: 1", "--", "x"], "--header is for a server with a URL"),
        (["{}", "--url", "http://127.0.0.1:9", "--header", "Authorization: redacted-0123456789ab"], "a pseudonym"),
        (["{}:4", "--", "x"], "one row is not a replay; mcpspy call {}:4 sends it"),
        (["{}:8..9", "--", "x"], "row 8 is a request of the server"),
        (["{}:98..99", "--", "x"], "there is no row 98"),
        (["{}", "--only", "tool:none", "--", "x"], "no message of a client matches --only"),
        (["{}", "--only", "tool:", "--", "x"], "in the filter"),
        (["{}", "--ignore", "x", "--", "x"], "a bare name is ambiguous"),
        (["{}", "--timeout", "0", "--", "x"], "--timeout"),
        (["{}", "--speed", "nan", "--", "x"], "finite"),
        (["{}", "--capture", "", "--", "x"], "--capture needs the name of a file"),
        (["{}", "--capture", "/nowhere/x", "--", "x"], "nothing was sent"),
    ],
)  # fmt: skip
def test_a_wrong_command_line_is_exit_status_2(visit: str, words: list[str], sentence: str) -> None:
    done = run("replay", *[word.format(visit) for word in words])
    assert (done.returncode, done.stdout) == (2, "")
    assert sentence.format(visit) in done.stderr


def test_a_capture_without_a_request_is_exit_status_2(tmp_path: Path) -> None:
    subprocess.run(
        [*MCPSPY, "run", "--capture", str(tmp_path / "x.mcpspy"), "--quiet", "--", "true"],
        stdin=subprocess.DEVNULL, timeout=DEADLINE_S, check=True,
    )  # fmt: skip
    done = run("replay", str(tmp_path / "x.mcpspy"), "--", "x")
    assert done.returncode == 2
    assert "there is nothing to send" in done.stderr


# --- git bisect ---


def test_git_bisect_finds_the_commit_that_broke_a_server(tmp_path: Path) -> None:
    home = tmp_path / "repository"
    home.mkdir()
    server = (PEERS / "tickets.py").read_text(encoding="utf-8")

    def git(*words: str) -> str:
        identity = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org", "-c", "init.defaultBranch=main"]
        done = subprocess.run(
            ["git", *identity, *words], cwd=home, capture_output=True, text=True, timeout=DEADLINE_S, check=True,
            env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "MCPSPY_HOME": str(tmp_path / "home"), **PLAIN},
        )  # fmt: skip
        return done.stdout

    git("init", "--quiet")
    texts = [
        server,
        "a syntax error\n" + server,  # it does not start: nothing can be said of it
        "# new\n" + server,
        server.replace("Hello", "Hallo"),
        "# new\n" + server.replace("Hello", "Hallo"),
    ]
    for number, text in enumerate(texts):
        (home / "server.py").write_text(text, encoding="utf-8")
        git("add", "server.py")
        git("commit", "--quiet", "--message", f"change {number}")
    capture = recorded(tmp_path, LIST, call("greet", name="Ada"))
    git("bisect", "start", "HEAD", "HEAD~4")
    words = " ".join([*MCPSPY, "replay", capture, "--", sys.executable, "server.py"])
    bisected = git("bisect", "run", "sh", "-c", f"{words} >&2; status=$?; [ $status -ne 4 ] || exit 125; exit $status")
    assert "change 3" in bisected.split("is the first bad commit")[1]


def test_the_newest_recording_is_never_a_replay(visit: str, store: Path) -> None:
    folder = store / "captures"
    folder.mkdir(parents=True)
    (folder / "tickets.mcpspy").write_bytes(Path(visit).read_bytes())
    for _ in range(2):
        done = replay("@", "--only", "tool:greet")
        assert f"mcpspy: playing {folder / 'tickets.mcpspy'}\n" in done.stderr
        assert done.stdout.startswith("✓ no difference · 1 call unchanged\n")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_replay_that_is_stopped_ends_its_server_and_keeps_what_it_heard(visit: str, tmp_path: Path, number: int) -> None:
    log, kept = tmp_path / "log", tmp_path / "kept.mcpspy"
    with on_pipe("replay", visit, "--capture", str(kept), "--", *SERVER, str(log), "idle") as running:
        eventually(lambda: "greet" in heard_names(log), "a call that is not answered")
        assert running.end(number) == 130
    exits = [record for record in read(str(kept)) if isinstance(record, Exit)]
    assert [exit.code for exit in exits] == [0]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_replay_that_is_stopped_shows_what_was_compared_until_then(visit: str, tmp_path: Path, number: int) -> None:
    log = tmp_path / "log"
    with on_pipe("replay", visit, "--json", "--", *SERVER, str(log), "idle") as running:
        eventually(lambda: "greet" in heard_names(log), "a call that is not answered")
        assert running.end(number) == 130
        output = json.loads(running.text[running.text.index("{") :])
    (client,) = output["clients"]
    assert (output["exit"], client["lost"]) == (130, "it was interrupted")
    assert [row["target"] for row in client["unsent"]] == ["draw", "redeem", "ask"]
    assert (client["comparison"]["summary"]["same"], client["comparison"]["summary"]["different"]) == (2, False)

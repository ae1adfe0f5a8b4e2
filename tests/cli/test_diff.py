"""`mcpspy diff`, as a user and a build server call it: on kept captures, and on real programs recorded twice."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from captures.make import TOOLS, call
from captures.serving import environment
from tests.cli.recording import Recording
from tests.cli.replays import call as ticket_call
from tests.cli.replays import recorded
from tests.cli.terminal import ESCAPE, MCPSPY, on_terminal, run
from tests.conftest import PEERS
from tests.deadlines import SCENE_S

CAPTURES = Path(__file__).parents[2] / "captures"
FILES = str(CAPTURES / "filesystem.mcpspy")
TIME = str(CAPTURES / "time.mcpspy")
HTTP = str(CAPTURES / "streamable.mcpspy")
STDIO = str(CAPTURES / "everything.mcpspy")
NOW = "$..datetime"


def summary(*words: str) -> dict[str, object]:
    """Run `mcpspy diff` and return its counts."""
    made: dict[str, object] = json.loads(run("diff", *words, "--json").stdout)["summary"]
    return made


def drawn(answers: list[Any]) -> dict[str, Any]:
    """Redeem the ticket that the server has made up."""
    return ticket_call("redeem", ticket=answers[-1]["result"]["content"][0]["text"].split()[-1].rstrip("."))


def test_two_live_sessions_of_one_server_do_not_differ_in_what_it_made_up(tmp_path: Path) -> None:
    captures = []
    for name in ("before", "after"):
        (tmp_path / name).mkdir()
        captures.append(recorded(tmp_path / name, ticket_call("draw"), drawn))
    done = run("diff", *captures)
    assert (done.stdout.splitlines()[0], done.returncode) == ("✓ no difference · 3 calls unchanged", 0)


# --- Exit status and WHATs ---


def test_a_capture_does_not_differ_from_itself() -> None:
    done = run("diff", FILES, FILES)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("✓ no difference · 8 calls unchanged\n")


def test_a_difference_is_exit_status_1() -> None:
    done = run("diff", STDIO, HTTP)
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.startswith("✗ 1 call changed, 5 removed")


@pytest.mark.parametrize(
    "words",
    [
        [FILES], [FILES, "no-such-label"], [FILES, FILES, FILES], [f"{FILES}:99", FILES], ["-", "-"],
        [FILES, FILES, "--ignore", "text"],
        [FILES, FILES, "--slower", "1"], [FILES, FILES, "-F", "method:"],
    ],
)  # fmt: skip
def test_a_wrong_command_line_is_exit_status_2(words: list[str]) -> None:
    done = run("diff", *words, stdin=b"")
    assert done.returncode == 2
    assert done.stderr
    assert done.stdout == ""


def test_a_file_that_is_no_capture_is_exit_status_3(tmp_path: Path) -> None:
    path = tmp_path / "x.mcpspy"
    path.write_text("hello\n")
    assert run("diff", FILES, str(path)).returncode == 3


def test_two_calls_of_one_capture_are_compared() -> None:
    done = run("diff", f"{FILES}:6", f"{FILES}:9")
    assert done.returncode == 1
    assert "  ~ tools/call read_text_file  ok → tool error  A:6 B:9\n" in done.stdout


def test_standard_input_is_a_capture_too() -> None:
    assert run("diff", "-", FILES, stdin=Path(FILES).read_bytes()).returncode == 0
    assert run("diff", FILES, "-:6", stdin=Path(FILES).read_bytes()).returncode == 1


def test_recordings_of_the_store_are_compared() -> None:
    for answer in ("one", "two"):
        recording = Recording(client=hash(answer) % 10_000)
        recording.ask(1, name="read").answer(1, result={"content": [{"type": "text", "text": answer}]})
        recording.end()
    done = run("diff", "@1", "@")
    assert (done.returncode, '$.result.content[0].text: "one" ≠ "two"' in done.stdout) == (1, True)
    assert run("diff", "@", "@").returncode == 0


# --- What is left out ---


def test_ignore_rules_leave_out_json_paths() -> None:
    words = [STDIO, HTTP, "-F", "tool:trigger*"]
    assert summary(*words)["changed"] == 1
    assert summary(*words, "--ignore", "$.arguments.steps")["changed"] == 1
    rules = ["--ignore", "$.arguments.steps", "--ignore", "$.result.content[*].text"]
    assert run("diff", *words, *rules).returncode == 0


def test_with_a_filter_only_the_calls_that_match_are_compared() -> None:
    assert summary(STDIO, HTTP, "-F", "tool:echo") | {"findings": 0} == {
        "different": True, "whole": False, "same": 0, "changed": 0, "added": 0, "removed": 2, "identity": 0, "definitions": 0,
        "messages": 0,
        "findings": 0, "took": 0, "slower": 0,
    }  # fmt: skip


def test_if_nothing_matches_on_either_side_that_is_reported() -> None:
    done = run("diff", FILES, FILES, "-F", "tool:nothing")
    assert (done.returncode, "no call to compare" in done.stderr) == (0, True)


def test_a_path_that_cannot_be_read_is_pointed_at() -> None:
    done = run("diff", FILES, FILES, "--ignore", "text")
    assert "column 1: a bare name is ambiguous. Write $.text or $..text." in done.stderr


# --- How it is printed ---


@pytest.mark.parametrize("width", [80, 200])
def test_no_line_is_wider_than_the_screen(width: int) -> None:
    done = run("diff", STDIO, HTTP, COLUMNS=str(width))
    assert max(map(len, done.stdout.splitlines())) <= width


def test_a_terminal_has_colours_and_hints_and_a_pipe_has_neither() -> None:
    with on_terminal("diff", f"{FILES}:6", f"{FILES}:9") as screen:
        screen.rest()
        assert ESCAPE.search(screen.text)
        assert f"mcpspy show {FILES}:6" in screen.words
        assert "--ignore '$.arguments.path'" in screen.words
    done = run("diff", f"{FILES}:6", f"{FILES}:9")
    assert not ESCAPE.search(done.stdout)
    assert (done.stderr, "--ignore" in done.stdout) == ("", False)


def test_the_help_has_examples() -> None:
    assert "mcpspy diff @1 @" in run("diff", "--help").stdout


# --- Real programs ---


def record(folder: Path, name: str, command: list[str], *steps: dict[str, object]) -> str:
    """Record a real client and server through `mcpspy run`."""
    folder.mkdir(exist_ok=True)
    capture = folder / f"{name}.mcpspy"
    client = [sys.executable, str(PEERS / "stepclient.py"), "legacy", json.dumps(steps)]
    subprocess.run(
        [*client, *MCPSPY, "run", "--quiet", "--capture", str(capture), "--", *command],
        cwd=folder,
        env=environment(folder),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=SCENE_S,
        check=True,
    )
    return str(capture)


SERVER = [sys.executable, str(PEERS / "module.py"), "mcp_server_time", "--local-timezone=UTC"]
STEPS = (TOOLS, call("get_current_time", timezone="UTC"), call("get_current_time", timezone="Mars/Olympus"))


@contextmanager
def changed_server(folder: Path) -> Iterator[list[str]]:
    """The command of mcp-server-time as its next version might be: one description is another, one tool has another name."""
    sed = shutil.which("sed")
    assert sed is not None
    script = folder / "server.sh"
    unbuffered = "-u" if os.uname().sysname == "Linux" else "-l"
    edits = 's/Get current time in/Tell the time in/; s/"convert_time"/"turn_time"/'
    script.write_text(f"{' '.join(SERVER)} | {sed} {unbuffered} '{edits}'\n")
    yield ["sh", str(script)]


def test_the_same_server_recorded_twice_differs_in_the_time_alone(tmp_path: Path) -> None:
    before, after = (record(tmp_path, name, SERVER, *STEPS) for name in ("before", "after"))
    done = run("diff", before, after, "--ignore", NOW)
    assert (done.stdout.splitlines()[0], done.returncode) == ("✓ no difference · 4 calls unchanged", 0)
    (server,) = json.loads(run("diff", before, after, "--json").stdout)["servers"]
    places = [difference["path"] for call in server["calls"] for difference in call["answer"]]
    assert set(places) <= {"$.result.content[0].text.datetime", "$.result.structuredContent.datetime"}  # or the same second


def test_a_changed_server_is_shown_field_by_field(tmp_path: Path) -> None:
    before = record(tmp_path, "before", SERVER, *STEPS)
    with changed_server(tmp_path) as command:
        after = record(tmp_path, "after", command, *STEPS)
    made = json.loads(run("diff", before, after, "--ignore", NOW, "--json").stdout)
    (server,) = made["servers"]
    assert server["identity"] == []
    assert [
        (definition["how"], definition["name"], [place["path"] for place in definition["fields"]])
        for definition in server["definitions"]
    ] == [
        ("changed", "get_current_time", ["$.description"]),
        ("added", "turn_time", []),
        ("removed", "convert_time", []),
    ]
    assert server["calls"] == []
    assert made["summary"]["different"]

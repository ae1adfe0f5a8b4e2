"""Logs as others wrote them, as a user sees them: what is in them, what is not, and that nobody is blamed for that."""

import json

import pytest

from tests.cli.terminal import run
from tests.conftest import ROOT

LOGS = ROOT / "tests" / "imports" / "others"
SAYS = {
    "requests-only": "the log does not have the messages of the server",
    "one-line": "the log does not have the messages of the server",
    "cut": "line 4 of the log has only the beginning of a message",
    "twice": "cannot be told apart",
    "banner": "",
    "cri": "",
    "logrus": "",
}
INITIALIZE = '{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{}}}\n'


@pytest.mark.parametrize("name", SAYS)
def test_a_check_finds_what_could_not_be_read_and_nothing_else(name: str) -> None:
    done = run("check", str(LOGS / f"{name}.log"))
    assert "unanswered" not in done.stdout
    assert SAYS[name] in done.stdout
    assert (done.returncode, "nothing found" in done.stdout) == ((1, False) if SAYS[name] else (0, True))


@pytest.mark.parametrize("name", SAYS)
def test_a_capture_of_which_something_was_not_read_is_not_complete(name: str) -> None:
    shown = json.loads(run("show", "--json", str(LOGS / f"{name}.log")).stdout)
    assert shown["summary"]["complete"] == (not SAYS[name])


def test_all_messages_of_a_line_are_shown() -> None:
    assert run("show", str(LOGS / "one-line.log")).stdout.count("→ ") >= 4


def test_stderr_beside_a_log_is_shown_and_moves_no_time() -> None:
    shown = run("show", str(LOGS / "banner.log")).stdout
    assert "stderr Python 3.12.3 (main, Apr  9 2024, 08:18:47)" in shown
    assert "1 call in 290 ms" in shown


def test_a_log_of_two_sessions_answers_initialize_as_a_mock() -> None:
    done = run("mock", str(LOGS / "twice.log"), stdin=INITIALIZE.encode())
    assert json.loads(done.stdout.splitlines()[0])["result"]["serverInfo"] == {"name": "x", "version": "1"}


def test_a_check_names_no_line_of_a_log_because_only_its_capture_has_that_line() -> None:
    place = next(line for line in run("check", str(LOGS / "cut.log")).stdout.splitlines() if "recording-gap" in line)
    assert "cut.log" in place
    assert ", line " not in place


def test_calls_stand_below_their_title_also_if_the_names_of_servers_are_short() -> None:
    shown = run("show", str(LOGS / "twice.log")).stdout.splitlines()
    title = next(line for line in shown if line.startswith("row "))
    assert {line.index("tools/list") for line in shown if "→ tools/list" in line} == {title.index("call")}

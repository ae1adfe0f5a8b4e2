"""Problems of stdio: lines that are not messages, encodings, long lines, processes that do not start, die or stay."""

import os
import signal
import sys
from pathlib import Path

import pytest

from mcpspy.records import Close, Note, Record, Stall
from tests.known_problems.stage import Case, Talker, assert_found, assert_silent, checked, holds, later, on_stdio, python
from tests.live.client import puppet

FAULTY = python("faulty.py")
MUCH = 100_000
MORE = 3_000_000
"""Letters of a line: more than asyncio reads, and more than pipes and mcpspy hold."""
NEWS = '{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}'
NOWHERE = "no-such-launcher"


def turn_page(client: Talker) -> None:
    """Ask for a page of a few letters."""
    client.greet()
    client.ask("tools/call", 1, name="page", arguments={"letters": 3})


def talk(client: Talker) -> None:
    """Do a normal session, with letters that are not ASCII."""
    client.greet()
    client.ask("tools/list", 1)
    client.ask("tools/call", 2, name="echo", arguments={"text": "grüße 你好"})


def say_much(client: Talker) -> None:
    """Call with a long line. The server may be gone before it has read all of it."""
    client.greet()
    client.say("tools/call", 1, name="echo", arguments={"text": "x" * MUCH})
    client.line()


def hear_much(client: Talker) -> None:
    """Call for a long line."""
    client.greet()
    client.say("tools/call", 1, name="page", arguments={"letters": MORE})
    client.line()


def break_off(client: Talker) -> None:
    """Call for a long line, and end within it, as a program does whose reader takes no more."""
    client.greet()
    client.say("tools/call", 1, name="page", arguments={"letters": MORE})
    client.take(MUCH)
    client.die()


def hear_nothing(client: Talker) -> None:
    """Call for a long line, and read none of it before the stall is recorded."""
    client.greet()
    client.say("tools/call", 1, name="page", arguments={"letters": MORE})
    client.recorded(Stall)
    client.line()


def ask_nobody(client: Talker) -> None:
    """Begin a session with a server that may not exist."""
    client.say("initialize", 0)
    client.line()


def leave(client: Talker) -> None:
    """Read the server's output to its end, and end the process whose pid it printed."""
    pids = [client.line() for _ in range(client.line() == b"leaving\n")]
    client.close(client.stdin)
    client.wait()
    for pid in map(int, pids):
        os.kill(pid, signal.SIGKILL)


def leave_and_signal(client: Talker) -> None:
    """Close the server's stdin, and send it a signal."""
    client.greet()
    client.close(client.stdin)
    client.recorded(Close)
    client.signal(signal.SIGTERM)


def signals(record: Record) -> bool:
    """Tell whether the client sends a signal here."""
    return isinstance(record, Note) and record.topic == "signal"


CASES = (
    Case(
        problem=2,
        rule="stdout-noise",
        culprit="server",
        faulty=on_stdio([*FAULTY, "banner"], talk),
        sound=on_stdio(FAULTY, talk),
    ),
    Case(
        problem=10,
        rule="server-died",
        culprit="server",
        faulty=on_stdio([*FAULTY, "limit=65536"], say_much),
        sound=on_stdio([*FAULTY, "limit=1000000"], say_much),
    ),
    Case(
        problem=10,
        rule="reader-stalled",
        culprit="client",
        faulty=on_stdio(FAULTY, hear_nothing),
        sound=on_stdio(FAULTY, hear_much),
    ),
    Case(
        problem=10,
        rule="answer-broken-off",
        culprit="client",
        faulty=on_stdio(FAULTY, break_off),
        sound=on_stdio(FAULTY, hear_much),
    ),
    Case(problem=11, rule="large-result", culprit="server", faulty=on_stdio(FAULTY, hear_much), sound=on_stdio(FAULTY, talk)),
    Case(
        problem=12,
        rule="server-not-started",
        culprit="configuration",
        faulty=on_stdio([Path(sys.executable).name, *FAULTY[1:]], ask_nobody, PATH="/nonexistent"),
        sound=on_stdio([Path(sys.executable).name, *FAULTY[1:]], talk, PATH=str(Path(sys.executable).parent)),
    ),
    Case(
        problem=12,
        rule="server-died",
        culprit="configuration",
        faulty=on_stdio([*FAULTY, "needs=TOKEN"], ask_nobody),
        sound=on_stdio([*FAULTY, "needs=TOKEN"], talk, TOKEN="t"),
    ),
    Case(
        problem=13,
        rule="server-died",
        culprit="configuration",
        faulty=on_stdio([sys.executable, "-I", "-m", "json.tool", "--stdio"], ask_nobody),
        sound=on_stdio(FAULTY, talk),
    ),
    Case(
        problem=13,
        rule="server-died",
        culprit="configuration",
        faulty=on_stdio([sys.executable, "-I", "-c", "import acme_server"], ask_nobody),
        sound=on_stdio(FAULTY, talk),
    ),
    Case(
        problem=13,
        rule="slow-start",
        culprit="server",
        faulty=later(on_stdio(FAULTY, talk), 12, holds(b'"serverInfo"', 1)),
        sound=on_stdio(FAULTY, talk),
    ),
    Case(
        problem=13,
        rule="server-not-started",
        culprit="configuration",
        faulty=on_stdio([NOWHERE, "-y", "some-server"], ask_nobody),
        sound=on_stdio(["/usr/bin/env", *FAULTY], talk),
    ),
    Case(
        problem=14,
        rule="invalid-utf-8",
        culprit="server",
        faulty=on_stdio([FAULTY[0], *FAULTY[2:]], talk, PYTHONIOENCODING="gbk:replace"),
        sound=on_stdio([FAULTY[0], *FAULTY[2:]], talk, PYTHONIOENCODING="utf-8"),
    ),
    Case(
        problem=14,
        rule="misread-text",
        culprit="server",
        faulty=on_stdio([*FAULTY, "misread"], turn_page),
        sound=on_stdio(FAULTY, turn_page),
    ),
    Case(
        problem=14,
        rule="escaped-twice",
        culprit="server",
        faulty=on_stdio([*FAULTY, "escaped"], turn_page),
        sound=on_stdio(FAULTY, turn_page),
    ),
    Case(
        problem=15,
        rule="descendants-left",
        culprit="server",
        faulty=on_stdio(puppet("say=leaving", "daemon", "swallow"), leave),
        sound=on_stdio(puppet(f"say={NEWS}", "swallow"), leave),
        with_it=frozenset({"stdout-noise"}),  # the pid
    ),
    Case(
        problem=15,
        rule="end-of-input-ignored",
        culprit="server",
        faulty=later(on_stdio([*FAULTY, "lazy"], leave_and_signal), 2, signals),
        sound=later(on_stdio([*FAULTY, "lazy"], leave_and_signal), 0.1, signals),
    ),
    Case(
        problem=16,
        rule="id-type-mismatch",
        culprit="server",
        faulty=on_stdio([*FAULTY, "strings"], talk),
        sound=on_stdio(FAULTY, talk),
    ),
)


@pytest.mark.grid(6)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_fault_and_its_culprit_are_found(case: Case, tmp_path: Path) -> None:
    assert_found(case, tmp_path)


@pytest.mark.grid(3)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_without_the_fault_nothing_is(case: Case, tmp_path: Path) -> None:
    assert_silent(case, tmp_path)


def test_the_last_words_of_a_reader_say_what_was_too_long(tmp_path: Path) -> None:
    findings = checked(on_stdio([*FAULTY, "limit=65536"], say_much)(tmp_path))
    assert "limit" in next(finding["what"] for finding in findings if finding["rule"] == "server-died")


def test_a_launcher_that_is_not_found_is_named(tmp_path: Path) -> None:
    findings = checked(on_stdio([NOWHERE, "-y", "some-server"], ask_nobody)(tmp_path))
    assert NOWHERE in next(finding["what"] for finding in findings if finding["rule"] == "server-not-started")


def test_the_variable_that_a_server_misses_is_in_its_last_words(tmp_path: Path) -> None:
    findings = checked(on_stdio([*FAULTY, "needs=TOKEN"], ask_nobody)(tmp_path))
    what = next(finding["what"] for finding in findings if finding["rule"] == "server-died")
    assert "KeyError: 'TOKEN'" in what
    assert "^^^" not in what


def test_a_program_in_the_configuration_that_does_not_exist_is_not_the_servers_fault(tmp_path: Path) -> None:
    findings = checked(on_stdio([sys.executable, "no_such_server.py"], ask_nobody)(tmp_path))
    assert [(finding["rule"], finding["culprit"]) for finding in findings] == [("server-not-started", "configuration")]
    assert "can't open file" in findings[0]["what"]


def test_the_error_of_a_server_is_quoted_though_it_logged_much_after_it(tmp_path: Path) -> None:
    program = "import atexit, sys; atexit.register(lambda: sys.stderr.write('bye\\n' * 50)); int('seven')"
    findings = checked(on_stdio([sys.executable, "-c", program], ask_nobody)(tmp_path))
    what = next(finding["what"] for finding in findings if finding["rule"] == "server-died")
    assert "ValueError: invalid literal for int() with base 10: 'seven'" in what

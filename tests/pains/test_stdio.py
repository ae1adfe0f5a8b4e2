"""Pains of stdio: lines that are no messages, encodings, lines too long, processes that do not start, die, or stay."""

import os
import signal
import sys
from pathlib import Path

import pytest

from mcpspy.records import Stall
from tests.live.client import puppet
from tests.pains.stage import Scene, Talker, assert_found, assert_silent, checked, on_stdio, python

FAULTY = python("faulty.py")
MUCH = 100_000
MORE = 3_000_000
"""Letters: more than asyncio takes for a line, and more than pipes and mcpspy hold."""
NEWS = '{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}'
NOWHERE = "no-such-launcher"


def talk(client: Talker) -> None:
    """A session as it should be, with letters that are not ASCII."""
    client.greet()
    client.ask("tools/list", 1)
    client.ask("tools/call", 2, name="echo", arguments={"text": "grüße 你好"})


def say_much(client: Talker) -> None:
    """Call with a long line. The server may be gone before it has all of it."""
    client.greet()
    client.say("tools/call", 1, name="echo", arguments={"text": "x" * MUCH})
    client.line()


def hear_much(client: Talker) -> None:
    """Call for a long line."""
    client.greet()
    client.say("tools/call", 1, name="page", arguments={"letters": MORE})
    client.line()


def hear_nothing(client: Talker) -> None:
    """Call for a long line, and read none of it before that was noticed."""
    client.greet()
    client.say("tools/call", 1, name="page", arguments={"letters": MORE})
    client.recorded(Stall)
    client.line()


def ask_nobody(client: Talker) -> None:
    """Begin, where the server may not be."""
    client.say("initialize", 0)
    client.line()


def leave(client: Talker) -> None:
    """Hear the server out, and end what it leaves behind; of that it says the pid first."""
    pids = [client.line() for _ in range(client.line() == b"leaving\n")]
    client.close(client.stdin)
    client.wait()
    for pid in map(int, pids):
        os.kill(pid, signal.SIGKILL)


SCENES = (
    Scene(pain=2, rule="stdout-noise", culprit="server", ill=on_stdio([*FAULTY, "banner"], talk), well=on_stdio(FAULTY, talk)),
    Scene(
        pain=10,
        rule="server-died",
        culprit="server",
        ill=on_stdio([*FAULTY, "limit=65536"], say_much),
        well=on_stdio([*FAULTY, "limit=1000000"], say_much),
    ),
    Scene(
        pain=10,
        rule="reader-stalled",
        culprit="client",
        ill=on_stdio(FAULTY, hear_nothing),
        well=on_stdio(FAULTY, hear_much),
    ),
    Scene(pain=11, rule="large-result", culprit="server", ill=on_stdio(FAULTY, hear_much), well=on_stdio(FAULTY, talk)),
    Scene(
        pain=12,
        rule="server-not-started",
        culprit="server",
        ill=on_stdio([Path(sys.executable).name, *FAULTY[1:]], ask_nobody, PATH="/nonexistent"),
        well=on_stdio([Path(sys.executable).name, *FAULTY[1:]], talk, PATH=str(Path(sys.executable).parent)),
    ),
    Scene(
        pain=12,
        rule="server-died",
        culprit="server",
        ill=on_stdio([*FAULTY, "needs=TOKEN"], ask_nobody),
        well=on_stdio([*FAULTY, "needs=TOKEN"], talk, TOKEN="t"),
    ),
    Scene(
        pain=13,
        rule="server-not-started",
        culprit="server",
        ill=on_stdio([NOWHERE, "-y", "some-server"], ask_nobody),
        well=on_stdio(["/usr/bin/env", *FAULTY], talk),
    ),
    Scene(
        pain=14,
        rule="invalid-utf-8",
        culprit="server",
        ill=on_stdio([FAULTY[0], *FAULTY[2:]], talk, PYTHONIOENCODING="gbk:replace"),
        well=on_stdio([FAULTY[0], *FAULTY[2:]], talk, PYTHONIOENCODING="utf-8"),
    ),
    Scene(
        pain=15,
        rule="descendants-left",
        culprit="server",
        ill=on_stdio(puppet("say=leaving", "daemon", "swallow"), leave),
        well=on_stdio(puppet(f"say={NEWS}", "swallow"), leave),
        with_it=frozenset({"stdout-noise"}),  # the pid
    ),
    Scene(
        pain=16,
        rule="id-type-mismatch",
        culprit="server",
        ill=on_stdio([*FAULTY, "strings"], talk),
        well=on_stdio(FAULTY, talk),
    ),
)


@pytest.mark.parametrize("scene", SCENES, ids=str)
def test_the_fault_and_its_culprit_are_found(scene: Scene, tmp_path: Path) -> None:
    assert_found(scene, tmp_path)


@pytest.mark.parametrize("scene", SCENES, ids=str)
def test_without_the_fault_nothing_is(scene: Scene, tmp_path: Path) -> None:
    assert_silent(scene, tmp_path)


def test_the_last_words_of_a_reader_say_what_was_too_long(tmp_path: Path) -> None:
    found = checked(on_stdio([*FAULTY, "limit=65536"], say_much)(tmp_path))
    assert "limit" in next(one["what"] for one in found if one["rule"] == "server-died")


def test_a_launcher_that_is_not_found_is_named(tmp_path: Path) -> None:
    found = checked(on_stdio([NOWHERE, "-y", "some-server"], ask_nobody)(tmp_path))
    assert NOWHERE in next(one["what"] for one in found if one["rule"] == "server-not-started")


def test_the_variable_that_a_server_misses_is_in_its_last_words(tmp_path: Path) -> None:
    found = checked(on_stdio([*FAULTY, "needs=TOKEN"], ask_nobody)(tmp_path))
    said = next(one["what"] for one in found if one["rule"] == "server-died")
    assert "KeyError: 'TOKEN'" in said
    assert "^^^" not in said

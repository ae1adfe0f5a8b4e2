"""On a terminal: as a user tries a server by hand, and under a client that has the terminal itself. The keys' signals come once."""

import os
import signal
import sys
import termios
import time
import tty
from collections.abc import Iterator
from types import TracebackType
from typing import Self

import pytest

from mcpspy.live.stdio.shutdown import TERM_NS
from mcpspy.records import Note
from tests.deadlines import DEADLINE_S, readable
from tests.live.client import Client, ending, puppet, stream

CTRL_C = b"\x03"
CTRL_D = b"\x04"

ON_THE_TERMINAL = """
import fcntl, os, sys, termios
os.setsid()
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.argv[1], sys.argv[1:])
"""
"""Becomes its arguments, with the terminal at 0 as the one whose keys send it signals."""

CLIENT = """
import signal, subprocess, sys, threading
tap = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
signal.signal(signal.SIGINT, lambda *_: print("the client got it", flush=True))
print("tap", tap.pid, flush=True)
threading.Thread(target=lambda: [print("heard", line, flush=True) for line in tap.stdout], daemon=True).start()
for line in sys.stdin:
    tap.stdin.write(line.encode())
    tap.stdin.flush()
"""
"""A client that has the terminal: it sends what is typed, prints what it hears, and takes Ctrl-C for a question."""

PLAIN_CLIENT = CLIENT.replace('lambda *_: print("the client got it", flush=True)', "signal.SIG_DFL")
"""One that Ctrl-C ends."""


class Terminal:
    """Both ends of a terminal; at the end of `with`, its owner gets the hang-up."""

    def __init__(self) -> None:
        self.master, self.slave = os.openpty()
        self.shown = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for fd in (self.master, self.slave):
            if fd >= 0:
                os.close(fd)

    def start(self, server: list[str], *options: str, client: str = "") -> Client:
        """Start `mcpspy run` on this terminal, or the client that starts it."""
        through = (sys.executable, "-c", ON_THE_TERMINAL, *((sys.executable, "-c", client) if client else ()))
        return Client(server, *options, through=through, stdin=self.slave, stdout=self.slave, stderr=self.slave)

    def type(self, keys: bytes) -> None:
        os.write(self.master, keys)

    def expect(self, words: bytes) -> None:
        """Wait until the terminal has shown these words."""
        until = time.monotonic() + DEADLINE_S
        while words not in self.shown:
            assert readable(self.master, max(0, until - time.monotonic())), f"{words!r} is not in {self.shown!r}"
            self.shown += os.read(self.master, 4096)

    def all(self) -> bytes:
        """Return what it has shown, after its last process has ended."""
        while readable(self.master, 0):
            self.shown += os.read(self.master, 4096)
        return self.shown

    def hang_up(self) -> None:
        os.close(self.slave)
        os.close(self.master)
        self.slave = self.master = -1


@pytest.fixture
def terminal() -> Iterator[Terminal]:
    with Terminal() as made:
        yield made


# By hand


def test_what_is_typed_reaches_the_server_and_the_end_of_it_too(terminal: Terminal) -> None:
    with terminal.start(puppet("say=ready", "echo", "say=bye", "exit=3")) as client:
        terminal.expect(b"ready\r\n")
        terminal.type(b"hello\n")
        terminal.expect(b"hello\r\nhello\r\n")
        terminal.type(CTRL_D)
        terminal.expect(b"bye\r\n")
        assert client.wait() == 3
        assert stream(client.records(), 0) == b"hello\n"


def test_where_it_records_is_said_on_a_terminal(terminal: Terminal) -> None:
    with terminal.start(puppet("say=ready", "linger")) as client:
        terminal.expect(b"ready\r\n")
        assert terminal.shown == b"mcpspy: recording to %s\r\nready\r\n" % os.fsencode(client.capture)


def test_quiet_says_nothing_on_a_terminal(terminal: Terminal) -> None:
    with terminal.start(puppet("say=ready", "linger"), "--quiet"):
        terminal.expect(b"ready\r\n")
        assert terminal.shown == b"ready\r\n"


def test_ctrl_c_ends_a_server(terminal: Terminal) -> None:
    with terminal.start(puppet("say=ready", "linger")) as client:
        terminal.expect(b"ready\r\n")
        terminal.type(CTRL_C)
        assert client.wait() == 128 + signal.SIGINT
        assert ending(client.records())[1].why == "SIGINT"


def test_ctrl_c_reaches_a_server_once(terminal: Terminal) -> None:
    with terminal.start(puppet("ignore=INT", "say=ready", "linger")) as client:
        terminal.expect(b"ready\r\n")
        terminal.type(CTRL_C)
        assert client.wait() == 128 + signal.SIGKILL
        assert terminal.all().count(b"SIGINT") == 1


def test_ctrl_c_twice_ends_a_stubborn_server_now(terminal: Terminal) -> None:
    with terminal.start(puppet("ignore=INT", "say=ready", "linger")) as client:
        terminal.expect(b"ready\r\n")
        since_ns = time.monotonic_ns()
        terminal.type(CTRL_C)
        terminal.expect(b"SIGINT")
        terminal.type(CTRL_C)
        assert client.wait() == 128 + signal.SIGKILL
        assert time.monotonic_ns() - since_ns < TERM_NS


def test_a_terminal_that_is_hung_up_takes_all_with_it(terminal: Terminal) -> None:
    with terminal.start(puppet("say=ready", "ignore=HUP", "linger")) as client:
        terminal.expect(b"ready\r\n")
        terminal.hang_up()
        client.wait()
        assert client.running() == []


# Under a client that has the terminal


def test_ctrl_c_is_left_to_a_client_that_got_it_as_well(terminal: Terminal) -> None:
    with terminal.start(puppet("ignore=INT", "say=ready", "echo"), client=CLIENT):
        terminal.expect(b"ready")
        terminal.type(CTRL_C)
        terminal.expect(b"SIGINT")
        terminal.expect(b"the client got it")
        terminal.type(b"still here\n")
        terminal.expect(b"heard b'still here\\n'")
        assert terminal.shown.count(b"SIGINT") == 1


def test_ctrl_c_that_the_client_got_as_well_is_noted(terminal: Terminal) -> None:
    with terminal.start(puppet("ignore=INT", "say=ready", "echo"), client=CLIENT) as client:
        terminal.expect(b"ready")
        terminal.type(CTRL_C)
        terminal.expect(b"SIGINT")
        note = client.recorded(Note, topic="signal")
        assert note.text == "SIGINT from the keyboard, which client and server got as well"


def test_ctrl_c_that_ends_the_client_leaves_nothing(terminal: Terminal) -> None:
    with terminal.start(puppet("ignore=INT", "say=ready", "echo", "linger"), client=PLAIN_CLIENT) as client:
        terminal.expect(b"ready")
        terminal.type(CTRL_C)
        assert client.wait() == -signal.SIGINT
        client.gone()
        assert b"Traceback" not in terminal.all()


def test_a_signal_that_no_key_can_have_sent_is_passed_on(terminal: Terminal) -> None:
    with terminal.start(puppet("ignore=INT", "say=ready", "linger"), client=CLIENT) as client:
        terminal.expect(b"ready")
        tty.setraw(terminal.slave)
        assert not termios.tcgetattr(terminal.slave)[3] & termios.ISIG
        os.kill(tap_pid(terminal), signal.SIGINT)
        terminal.expect(b"SIGINT")
        client.process.kill()


def tap_pid(terminal: Terminal) -> int:
    """Return what the client wrote."""
    terminal.expect(b"tap ")
    return int(terminal.shown.partition(b"tap ")[2].split()[0])

"""A terminal in tmux: programs run in it, keys go in, and the screen comes out as a person sees it."""

import os
import shlex
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.deadlines import POLL_S, SCENE_S


class TmuxScreen:
    """A screen of a server of its own, at `socket`."""

    def __init__(self, tmux: str, socket: Path) -> None:
        self._tmux = [tmux, "-S", str(socket), "-f", "/dev/null"]

    def do(self, *words: str) -> str:
        environment = dict(os.environ)  # not what readline has put beside it: LINES and COLUMNS of the test's own terminal
        command = [*self._tmux, *words]
        done = subprocess.run(command, capture_output=True, text=True, timeout=SCENE_S, check=False, env=environment)
        return done.stdout

    def press(self, *keys: str) -> None:
        self.do("send-keys", *keys)

    @property
    def text(self) -> str:
        """The lines on the screen, without blanks at their ends."""
        return "\n".join(line.rstrip() for line in self.do("capture-pane", "-p").split("\n")).rstrip("\n")

    @property
    def drawn(self) -> str:
        """The screen with the escapes that draw it."""
        return self.do("capture-pane", "-p", "-e")

    @property
    def shell_pid(self) -> int:
        return int(self.do("list-panes", "-F", "#{pane_pid}"))

    def until(self, what: str | Callable[[str], object]) -> str:
        """Wait until the screen has a text, or something is true of it."""
        until = time.monotonic() + SCENE_S
        while not (what in (text := self.text) if isinstance(what, str) else what(text := self.text)):
            assert time.monotonic() < until, f"{what!r} was not shown, but:\n{text}"
            time.sleep(POLL_S * 10)
        return text


@contextmanager
def screen(tmux: str, folder: Path, size: tuple[int, int], *command: str, **environment: str) -> Iterator[TmuxScreen]:
    """Run a command in a shell on a screen of this size; when it has ended, the shell says `status N, echo 1` if keys are shown."""
    shown = TmuxScreen(tmux, folder / "tmux.sock")
    words = " ".join(f"{name}={shlex.quote(value)}" for name, value in environment.items())
    ends = "echo status $?, echo $(stty -a | grep -c '[^-]echo '); cat"
    script = f"cd {shlex.quote(str(folder))}; {words} {shlex.join(command)}; {ends}"
    width, height = size
    shown.do("new-session", "-d", "-x", str(width), "-y", str(height), f"exec sh -c {shlex.quote(script)}")
    try:
        yield shown
    finally:
        shown.do("kill-server")

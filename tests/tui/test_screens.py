"""Screens in tmux, at three sizes, and the terminal after the end."""

import os
import signal
import sys
from pathlib import Path

import pytest

from tests.conftest import DebianProgram
from tests.tui.piloting import CAPTURES
from tests.tui.tmux import screen

TUI = (sys.executable, "-m", "mcpspy", "tui")


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 60)], ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize(
    ("capture", "keys", "waits"),
    [
        ("everything", ("Right", "Right", "Right"), "took 291 ms"),
        ("everything", ("/", "tool:e*"), "2 of 26 lines match"),
        ("everything", ("?",), "this help"),
    ],
)
def test_a_screen_has_what_a_key_opens_and_keeps_to_its_size(
    capture: str, keys: tuple[str, ...], waits: str, size: tuple[int, int], tmp_path: Path, debian_program: DebianProgram
) -> None:
    with screen(debian_program("tmux"), tmp_path, size, *TUI, str(CAPTURES / f"{capture}.mcpspy")) as shown:
        shown.until("/ filter")
        for key in keys:
            shown.press(key)
        shown.until(waits)
        lines = shown.text.splitlines()
    assert len(lines) <= size[1]
    assert max(map(len, lines)) <= size[0]


CRASH = """
import sys
from mcpspy.cli.transcripts import select_captures
from mcpspy.cli.tui_sources import Programs, StoreDesk, source_of
from mcpspy.tui.app import Terminal
from mcpspy.tui.drawing import all_letters

class Broken(Terminal):
    def action_pending(self):
        raise RuntimeError("broken on purpose")

terminal = Broken(source_of(select_captures((sys.argv[1],))), StoreDesk(), Programs(), all_letters)
terminal.run()
print("crashed:", terminal.crash)
"""


def test_a_crash_leaves_the_terminal_as_it_was(tmp_path: Path, debian_program: DebianProgram) -> None:
    capture = str(CAPTURES / "everything.mcpspy")
    with screen(debian_program("tmux"), tmp_path, (80, 24), sys.executable, "-c", CRASH, capture) as shown:
        shown.until("/ filter")
        shown.press("p")
        text = shown.until("status 0, echo 1")
    assert "crashed: broken on purpose" in text
    assert "row id" not in text


def test_a_signal_ends_it_and_leaves_the_terminal_as_it_was(tmp_path: Path, debian_program: DebianProgram) -> None:
    with screen(debian_program("tmux"), tmp_path, (80, 24), *TUI, str(CAPTURES / "everything.mcpspy")) as shown:
        shown.until("/ filter")
        pid = shown.shell_pid
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
        os.kill(int(children[0]), signal.SIGTERM)
        assert "row id" not in shown.until("echo 1")


def test_q_quits(tmp_path: Path, debian_program: DebianProgram) -> None:
    with screen(debian_program("tmux"), tmp_path, (80, 24), *TUI, str(CAPTURES / "everything.mcpspy")) as shown:
        shown.until("/ filter")
        shown.press("q")
        shown.until("status 0, echo 1")


def test_no_color_draws_without_colours(tmp_path: Path, debian_program: DebianProgram) -> None:
    capture = str(CAPTURES / "everything.mcpspy")
    with screen(debian_program("tmux"), tmp_path, (80, 24), *TUI, capture, NO_COLOR="1") as shown:
        shown.until(lambda _: "7m" in shown.drawn)
        escapes = shown.drawn
    assert not any(f"\x1b[{code}m" in escapes for code in (*range(30, 38), *range(90, 98)))

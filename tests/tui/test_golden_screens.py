"""Screens in tmux at three sizes, compared with golden files: of recordings of real servers, and of one that is still recorded.

`goldens.py` says how to write them anew.
"""

import shutil
from pathlib import Path

import pytest

from tests.cli.call.test_live import SDK_SERVER, begin
from tests.conftest import DebianProgram
from tests.intercept.making import line
from tests.live.client import Client
from tests.tui.goldens import is_golden
from tests.tui.piloting import CAPTURES
from tests.tui.test_screens import TUI
from tests.tui.tmux import screen

SIZES = [(80, 24), (120, 40), (200, 60)]

JOURNEY = (
    ("rows", (), ""),
    ("copy", ("y",), "copy of row"),
    ("export", ("e",), "j  the rows that are shown, as JSON Lines"),
    ("timing", ("Right", "Right", "Right"), ""),
    ("filter", ("Left", "/", "tool:e*"), ""),
    ("filtered", ("Enter", "n"), ""),
    ("comparison", ("d",), "Esc back"),
    ("diagram", ("g",), "Esc back"),
    ("help", ("?",), "Esc back"),
)
"""The names of screens, the keys that lead to each from the one before, and a text that Esc closes, if it is pressed then."""


def name_of_size(size: tuple[int, int]) -> str:
    return f"{size[0]}x{size[1]}"


sizes = pytest.mark.parametrize("size", SIZES, ids=name_of_size)


@sizes
def test_screens_of_a_recording_are_the_golden_ones(
    size: tuple[int, int], tmp_path: Path, debian_program: DebianProgram
) -> None:
    shutil.copy(CAPTURES / "everything.mcpspy", tmp_path)
    with screen(debian_program("tmux"), tmp_path, size, *TUI, "everything.mcpspy") as shown:
        shown.until("/ filter")
        for name, keys, opened in JOURNEY:
            for key in keys:
                shown.press(key)
            assert is_golden(shown, f"{name}-{name_of_size(size)}")
            if opened:
                assert opened in shown.text
                shown.press("Escape")
                shown.until(lambda text, opened=opened: opened not in text)  # type: ignore[misc]  # its type is clear


@sizes
def test_screens_of_http_are_the_golden_ones(size: tuple[int, int], tmp_path: Path, debian_program: DebianProgram) -> None:
    shutil.copy(CAPTURES / "streamable.mcpspy", tmp_path)
    with screen(debian_program("tmux"), tmp_path, size, *TUI, "streamable.mcpspy:4") as shown:
        shown.until("/ filter")
        shown.press("Right", "Right")
        shown.until("POST /mcp")
        assert is_golden(shown, f"http-{name_of_size(size)}")


def test_a_screen_in_ascii_is_the_golden_one(tmp_path: Path, debian_program: DebianProgram) -> None:
    shutil.copy(CAPTURES / "everything.mcpspy", tmp_path)
    with screen(debian_program("tmux"), tmp_path, (80, 24), *TUI, "--ascii", "everything.mcpspy") as shown:
        assert is_golden(shown, "ascii-80x24")
        assert shown.text.isascii()


@sizes
def test_screens_of_a_server_and_a_client_that_run_are_the_golden_ones(
    size: tuple[int, int], tmp_path: Path, debian_program: DebianProgram
) -> None:
    def golden(name: str) -> bool:
        return is_golden(shown, f"live-{name}-{name_of_size(size)}", live=True)

    with Client(SDK_SERVER, "--label", "sums") as client:
        begin(client)
        with screen(debian_program("tmux"), tmp_path, size, *TUI) as shown:
            shown.until("tools/call add")
            shown.press("/", "tool:add", "Enter")  # without rows about a server that is slow because this machine is
            assert golden("rows")
            shown.press("r")
            assert golden("question")
            shown.press("c")
            shown.until("as recorded in row 4")
            assert golden("answer")
            shown.press("Escape")
            shown.until("row id")
            shown.press("Home", "b")
            assert golden("breakpoint")
            shown.press("Enter")
            shown.until("In force")
            client.send(line({"id": 9, "method": "tools/call", "params": {"name": "add", "arguments": {"a": 3, "b": 4}}}))
            shown.until("goes on in")
            assert golden("held")
            shown.press("h")
            assert golden("choice")
            shown.press("r")
            client.line()
            shown.press("End")
            assert golden("released")

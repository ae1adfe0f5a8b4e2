"""The first frame is the screen that Textual draws later, cell by cell; and the terminal is put right, whatever the end."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest
from rich.segment import Segment
from rich.style import Style

from mcpspy.cli.transcripts import select_captures
from mcpspy.cli.tui_sources import source_of
from mcpspy.tui.drawing import Letters, all_letters, ascii_letters
from mcpspy.tui.first_frame import drawn, first_frame
from tests.conftest import DebianProgram
from tests.deadlines import DEADLINE_S, eventually
from tests.imported import assert_absent, imports
from tests.intercept.making import call
from tests.live.client import Client
from tests.live.stdio.test_intercepts import SERVER_COMMAND
from tests.tui.piloting import CAPTURES, Piloted, piloted, piloting
from tests.tui.test_screens import TUI
from tests.tui.tmux import TmuxScreen, screen
from tests.views.scenes import hostile_scene
from tests.views.test_hostile import HOSTILE, dangerous

SIZES = [(80, 24), (81, 25), (120, 40), (150, 40), (151, 41), (200, 60)]


def cells_of(lines: Iterable[Iterable[Segment]]) -> list[list[tuple[str, str, bool, bool, bool]]]:
    """Return each letter with its colour, and whether it is bold, dim, reversed."""
    return [
        [
            (letter, _colour(style), bool(style.bold), bool(style.dim), bool(style.reverse))
            for segment in line
            for style in [segment.style or Style.null()]
            for letter in segment.text
        ]
        for line in lines
    ]


def _colour(style: Style) -> str:
    return "" if style.color is None or style.color.is_default else style.color.name


def screen_of(shown: Piloted) -> Iterable[Iterable[Segment]]:
    return shown.terminal.screen._compositor.render_strips()


@pytest.mark.grid
@pytest.mark.parametrize("letters", [all_letters, ascii_letters], ids=["letters", "ascii"])
@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize(("capture", "row"), [("everything", 0), ("everything", 19), ("streamable", 0), ("logs", 5)])
@piloting
async def test_the_first_frame_is_what_textual_draws(capture: str, row: int, size: tuple[int, int], letters: Letters) -> None:
    path = CAPTURES / f"{capture}.mcpspy"
    frame = cells_of(first_frame(source_of(select_captures((str(path),))), letters, size, row))
    async with piloted(path, size=size, letters=letters, row=row) as shown:
        assert frame == cells_of(screen_of(shown))


def test_the_first_frame_waits_neither_for_textual_nor_for_click_nor_for_asyncio() -> None:
    program = "import mcpspy.cli.tui, mcpspy.cli.tui_sources, mcpspy.tui.first_frame"
    command = [sys.executable, "-X", "importtime", "-c", program]
    log = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S, check=True).stderr
    assert_absent({"textual", "click", "asyncio", "mcpspy.transcript.findings.registry"}, imports(log))


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_strings_are_harmless_in_the_first_frame(text: str) -> None:
    from mcpspy.cli.tui_sources import FinishedSource

    for size in SIZES:
        source = FinishedSource(hostile_scene(text).transcript, ["capture.mcpspy"], "")
        for line in first_frame(source, all_letters, size):
            assert not dangerous("".join(segment.text for segment in line))


def test_a_terminal_that_is_too_small_gets_no_first_frame() -> None:
    source = source_of(select_captures((str(CAPTURES / "everything.mcpspy"),)))
    assert first_frame(source, all_letters, (39, 24)) == []
    assert first_frame(source, all_letters, (80, 11)) == []


def test_without_colours_the_first_frame_is_bold_dim_and_reversed(monkeypatch: pytest.MonkeyPatch) -> None:
    source = source_of(select_captures((str(CAPTURES / "everything.mcpspy"),)))
    frame = first_frame(source, all_letters, (80, 24))
    assert "\x1b[32m" in drawn(frame)
    monkeypatch.setenv("NO_COLOR", "1")
    text = drawn(frame)
    assert "\x1b[7m" in text
    assert not any(f"\x1b[{code}m" in text for code in (*range(30, 38), *range(90, 98)))


def test_keys_that_come_before_textual_are_acted_on(tmp_path: Path, debian_program: DebianProgram) -> None:
    with screen(debian_program("tmux"), tmp_path, (80, 24), *TUI, str(CAPTURES / "everything.mcpspy")) as shown:
        shown.until("row id seconds")
        shown.press("/", "tool:e*", "Enter", "n")
        shown.until("2 of 26 lines match tool:e*")
        assert "row 19" in shown.text


def modes(shown: TmuxScreen) -> str:
    """Return whether the mouse is reported, the cursor shown, the alternate screen used."""
    return shown.do("display-message", "-p", "#{mouse_any_flag}#{cursor_flag}#{alternate_on}").strip()


def processes_below(pid: int) -> list[int]:
    """Return the children of a process, their children, and so on."""
    below = [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()]
    return [*below, *(other for child in below for other in processes_below(child))]


@pytest.mark.parametrize("which", [0, 1], ids=["guard", "interface"])
def test_a_killed_interface_leaves_the_terminal_as_it_was(which: int, tmp_path: Path, debian_program: DebianProgram) -> None:
    with screen(debian_program("tmux"), tmp_path, (80, 24), *TUI, str(CAPTURES / "everything.mcpspy")) as shown:
        shown.until("/ filter")
        os.kill(processes_below(shown.shell_pid)[which], signal.SIGKILL)
        eventually(lambda: modes(shown) == "010", "a terminal without a mouse, with a cursor, on its main screen")
        shown.press("typed")
        shown.until("typed")


def test_a_crash_between_the_first_frame_and_textual_leaves_the_terminal_as_it_was(
    tmp_path: Path, debian_program: DebianProgram
) -> None:
    capture = str(CAPTURES / "everything.mcpspy")
    with screen(debian_program("tmux"), tmp_path, (80, 24), *TUI, capture, TEXTUAL_DRIVER="no.such.module:Driver") as shown:
        text = shown.until("status 2, echo 1")
        assert "this installation lacks the package no" in text
        assert "row id" not in text
        assert modes(shown) == "010"


def test_a_killed_interface_releases_what_it_held_and_the_server_goes_on(tmp_path: Path, debian_program: DebianProgram) -> None:
    with Client(SERVER_COMMAND) as client:
        client.send(call(1))
        client.line()
        with screen(debian_program("tmux"), tmp_path, (80, 24), *TUI) as shown:
            shown.until("tools/call search")
            shown.press("b", "Enter")
            shown.until("In force")
            client.send(call(2))
            shown.until("goes on in")
            os.kill(processes_below(shown.shell_pid)[1], signal.SIGKILL)
            assert b'"id": 2' in client.line()
            client.send(call(3))
            assert b'"id": 3' in client.line()

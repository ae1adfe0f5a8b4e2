"""Keys that come faster than they are acted on: each goes where the one before it has led."""

from pathlib import Path

import pytest

from tests.conftest import DebianProgram
from tests.tui.piloting import CAPTURES, piloted, piloting
from tests.tui.test_screens import TUI
from tests.tui.tmux import screen

EVERYTHING = CAPTURES / "everything.mcpspy"


@piloting
async def test_letters_after_a_slash_go_into_the_field_and_those_after_enter_do_not() -> None:
    async with piloted(EVERYTHING) as shown:
        await shown.burst("/", "tool:e*", "enter", "n")
        await shown.until("2 of 26 lines match tool:e*")
        assert shown.row == 19
        assert not shown.terminal.prompt.display


@piloting
async def test_a_field_takes_letters_and_other_keys_in_their_order() -> None:
    async with piloted(EVERYTHING) as shown:
        await shown.burst("/", "xtool:ez", "backspace", "*", "home", ">", "left", "escape", "/", "to", "backspace", "ool:e*")
        await shown.until("2 of 26 lines match tool:e*")
        assert shown.terminal.prompt.field.value == "tool:e*"


@piloting
async def test_a_key_after_escape_is_one_of_the_rows() -> None:
    async with piloted(EVERYTHING) as shown:
        await shown.burst("/", "tool:e*", "escape", ":", "17", "enter", "right")
        await shown.until("26 lines")
        assert shown.row == 17
        assert shown.terminal.detail.tab == 1


@piloting
async def test_a_choice_takes_the_key_after_the_one_that_opened_it() -> None:
    async with piloted(EVERYTHING, row=17) as shown:
        await shown.burst("y", "j", "down", "y", "l", "up")
        await shown.until("Copied: ")
        assert shown.terminal.clipboard == f"{EVERYTHING}:18"
        assert shown.row == 17


@piloting
async def test_tab_and_enter_act_on_the_part_that_tab_has_led_to() -> None:
    async with piloted(EVERYTHING) as shown:
        await shown.burst("tab", "enter")
        await shown.until("▸ {")


@piloting
async def test_a_text_closes_before_the_next_key_and_gives_the_focus_back() -> None:
    async with piloted(EVERYTHING) as shown:
        await shown.burst("tab", "?", "q", "enter")
        await shown.until("▸ {")
        assert shown.terminal.focused is shown.terminal.detail.lines


def test_a_terminal_that_sends_all_keys_at_once_shows_what_they_lead_to(tmp_path: Path, debian_program: DebianProgram) -> None:
    with screen(debian_program("tmux"), tmp_path, (80, 24), *TUI, str(EVERYTHING)) as shown:
        shown.until("/ filter")
        shown.press("/", "tool:e*", "Enter", "n", "Right", "Tab", "Enter", "?", "q", "Tab", "d")
        text = shown.until("row 17 (A) and row 19 (B)")
    assert '"first" ≠ "third"' in text


@pytest.mark.parametrize("times", [3])
@piloting
async def test_keys_before_the_first_screen_are_acted_on(times: int) -> None:
    async with piloted(EVERYTHING, waits=False) as shown:
        await shown.burst("/", "tool:e*", "enter", *["n"] * times)
        await shown.until("2 of 26 lines match tool:e*")
        assert shown.row == 19

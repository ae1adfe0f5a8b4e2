"""Rows and the detail of one: what is on the screen at which size, and which key moves where."""

import pytest
from textual import events

from mcpspy.tui.drawing import all_letters, ascii_letters
from mcpspy.tui.line_list import strip_of
from mcpspy.tui.row_lines import RowLines, ShownRows
from mcpspy.tui.tabs import TABS
from tests.tiers import Tier
from tests.transcript.dialogue import Dialogue, result
from tests.tui.piloting import CAPTURES, piloted, piloting
from tests.views.scenes import call, hostile_scene
from tests.views.test_hostile import HOSTILE, dangerous

EVERYTHING = CAPTURES / "everything.mcpspy"


@piloting
async def test_rows_and_the_detail_of_the_first_are_shown() -> None:
    async with piloted(EVERYTHING) as shown:
        assert "everything ← stepclient" in shown.screen[0]
        assert "row id seconds" in shown.screen[1]
        await shown.until("row 1 · initialize 2025-11-25 · ok")
        assert '"method": "initialize"' in shown.text


@piloting
async def test_rows_that_the_timeline_leaves_out_are_named_in_words() -> None:
    async with piloted(EVERYTHING) as shown:
        await shown.press("end")
        await shown.until("· the recording ended")
        assert "· server closed a stream" in shown.text


@piloting
async def test_the_detail_is_below_the_rows_on_a_narrow_screen_and_beside_them_on_a_wide_one() -> None:
    async with piloted(EVERYTHING, size=(120, 40)) as shown:
        assert shown.terminal.detail.region.y > shown.terminal.row_list.region.y
        await shown.pilot.resize_terminal(200, 60)
        await shown.pilot.pause()
        await shown.until(lambda _: shown.terminal.detail.region.x > shown.terminal.row_list.region.x)


@pytest.mark.parametrize(
    ("keys", "row"),
    [(["down", "down", "down"], 3), (["end", "home", "down"], 1), (["j", "k"], 1)],
)
@piloting
async def test_keys_move_through_the_rows(keys: list[str], row: int) -> None:
    async with piloted(EVERYTHING) as shown:
        await shown.press(*keys)
        assert shown.row == row


@piloting
async def test_end_moves_to_the_last_line() -> None:
    async with piloted(EVERYTHING) as shown:
        await shown.press("end")
        assert shown.terminal.row_list.cursor == len(shown.terminal.shown) - 1


@piloting
async def test_twenty_fast_page_downs_move_twenty_pages() -> None:
    scene = Dialogue()
    for number in range(1, 501):
        scene.client(call(number, "echo")).server(result(number))
    async with piloted(scene.transcript) as shown:
        height = shown.terminal.row_list.size.height - 1
        await shown.press(*["pagedown"] * 20)
        assert shown.row == 1 + 20 * height


@piloting
async def test_the_arrows_go_through_the_tabs() -> None:
    async with piloted(CAPTURES / "streamable.mcpspy") as shown:
        for text in (
            '"protocolVersion"',
            "POST /mcp HTTP/1.1",
            "took",
            "No findings.",
            '{"jsonrpc":"2.0","id":1,"method":"initialize"',
        ):
            await shown.press("right")
            await shown.until(text)
        await shown.press("right")
        await shown.until('"method": "initialize"')


@piloting
async def test_enter_folds_and_unfolds_what_is_at_the_cursor() -> None:
    async with piloted(EVERYTHING) as shown:
        await shown.press("enter", "enter")
        assert "▸ {" in shown.text
        assert '"method": ' not in shown.text
        await shown.press("space")
        assert '"method": "initialize"' in shown.text


@piloting
async def test_a_click_moves_to_a_row_and_opens_a_tab() -> None:
    async with piloted(EVERYTHING) as shown:
        await shown.pilot.click("#rows", offset=(10, 4))
        await shown.pilot.pause()
        assert shown.row == 3
        await shown.pilot.click("#tabs", offset=(12, 0))
        await shown.until('"tools": [ 17 items')


@piloting
async def test_the_help_lists_at_most_18_keys_and_fits_on_80_by_24() -> None:
    from mcpspy.tui.keys import KEYS, help_lines

    assert len(KEYS) <= 18
    async with piloted(EVERYTHING) as shown:
        await shown.press("question_mark")
        assert len(help_lines()) <= 23
        assert "…" not in shown.text
        assert all(key.shown in shown.text for key in KEYS)
        await shown.press("escape")
        await shown.until("row id seconds")


@pytest.mark.grid(6)
@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_strings_are_harmless_in_every_line_of_every_tab(text: str) -> None:
    transcript = hostile_scene(text).transcript
    rows = RowLines(ShownRows(transcript), live=False)
    for width in (30, 78, 150):
        models = [rows, *(tab.content(transcript, row, width) for row in transcript.rows for tab in TABS)]
        for model in models:
            for at in range(len(model)):
                strip = strip_of(model.line(at, width), width, all_letters)
                assert not dangerous(strip.text)
                assert strip.cell_length == width


@piloting
async def test_hostile_strings_are_harmless_on_the_screen() -> None:
    transcript = hostile_scene("\x1b[2J[bold]x[/] \u202e").transcript
    async with piloted(transcript, size=(160, 40)) as shown:
        for _ in range(len(transcript.rows)):
            await shown.press("down", "right")
            assert not dangerous(shown.text.replace("\n", ""))
        assert "\\x1b[2J[bold]x[/] \\u202e" in shown.text


@piloting
async def test_hostile_strings_are_harmless_in_all_that_a_key_opens(tier: Tier) -> None:
    transcript = hostile_scene("\x1b[2J[bold]x[/] \u202e").transcript
    async with piloted(transcript, size=(120, 40)) as shown:
        for row in transcript.rows[: tier(sample=1, more=3, full=3)]:
            for key in ("y", "e", "d", "g", "r", "x", "f", "s", "p", "l", "question_mark"):
                await shown.press(key)
                assert not dangerous(shown.text.replace("\n", "")), (row, key)
                await shown.press("escape")
            shown.terminal.recordings.display = False
            await shown.press("down")


@piloting
async def test_a_screen_of_ascii_gets_ascii() -> None:
    transcript = hostile_scene("天気").transcript
    async with piloted(transcript, letters=ascii_letters) as shown:
        for _ in range(len(transcript.rows)):
            await shown.press("down")
            lists = [*shown.screen[:2], shown.foot]
            assert "".join(lists).isascii()
            assert "\\u5929" in shown.text


@piloting
async def test_an_answer_of_16_megabytes_is_open_before_a_tenth_of_it_is_drawn() -> None:
    scene = Dialogue()
    items = [{"number": number, "text": "x" * 100} for number in range(125_000)]
    scene.client(call(1, "big")).server(result(1, {"items": items}))
    async with piloted(scene.transcript) as shown:
        await shown.press("right")
        await shown.until('"items": [')
        assert len(shown.terminal.detail.lines.model) < 1_000


@piloting
async def test_json_in_a_string_opens_as_json() -> None:
    scene = Dialogue()
    scene.client(call(1, "inner")).server(result(1, {"content": [{"type": "text", "text": '{"deep": {"er": 1}}'}]}))
    async with piloted(scene.transcript) as shown:
        await shown.press("right")
        await shown.until('"er": 1')


@piloting
async def test_an_empty_recording_is_shown() -> None:
    async with piloted(Dialogue().transcript) as shown:
        await shown.press("f", "p", "s", "n", "down", "enter")
        assert "filter" in shown.text or "Filter" in shown.text


@piloting
async def test_a_name_that_occurs_twice_is_shown_twice() -> None:
    scene = Dialogue()
    scene.client(b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{"x":1,"x":2}}}\n')
    async with piloted(scene.transcript) as shown:
        assert '"x": 1' in shown.text
        assert '"x": 2' in shown.text


@piloting
async def test_left_goes_back_through_the_tabs_and_shift_tab_through_the_parts() -> None:
    async with piloted(EVERYTHING) as shown:
        await shown.press("right", "left", "left")
        await shown.until('{"jsonrpc":"2.0","id":1,"method":"initialize"')
        await shown.press("shift+tab")
        assert getattr(shown.terminal.focused, "id", "") == "lines"
        await shown.press("shift+tab")
        assert getattr(shown.terminal.focused, "id", "") == "rows"


@piloting
async def test_q_ends_it() -> None:
    async with piloted(EVERYTHING) as shown:
        await shown.press("q")
        assert not shown.terminal.is_running or shown.terminal._exit


def long_scene() -> Dialogue:
    scene = Dialogue()
    for number in range(1, 101):
        scene.client(call(number, "echo")).server(result(number))
    return scene


@piloting
async def test_the_wheel_scrolls_and_leaves_the_cursor() -> None:
    async with piloted(long_scene().transcript) as shown:
        rows = shown.terminal.row_list
        await shown.pilot._post_mouse_events([events.MouseScrollDown], rows, offset=(5, 2), button=0)
        assert (rows.top, rows.cursor) == (3, 1)
        await shown.pilot._post_mouse_events([events.MouseScrollUp], rows, offset=(5, 2), button=0)
        assert rows.top == 0


@piloting
async def test_the_scrollbar_shows_the_place_and_is_dragged() -> None:
    async with piloted(long_scene().transcript) as shown:
        rows = shown.terminal.row_list
        assert [line[-1] for line in shown.screen[2:4]] == ["┃", "│"]
        edge, height = rows.size.width - 1, rows.size.height
        await shown.pilot.mouse_down(rows, offset=(edge, 0))
        await shown.pilot.hover(rows, offset=(edge, height - 1))
        await shown.pilot.mouse_up(rows, offset=(edge, height - 1))
        assert rows.top == len(rows.model) - height
        assert rows.cursor == 1
        assert shown.screen[1 + height][-1] == "┃"

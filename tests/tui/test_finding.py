"""The keys that search: the filter as one types, the next match, findings, what waits, the slowest, a row by its number."""

from mcpspy.transcript.model import Exchange
from tests.transcript.dialogue import Dialogue, error, result
from tests.tui.piloting import CAPTURES, piloted, piloting
from tests.views.scenes import call

EVERYTHING = CAPTURES / "everything.mcpspy"


@piloting
async def test_a_filter_shows_what_matches_while_it_is_typed() -> None:
    async with piloted(EVERYTHING) as shown:
        await shown.press("slash")
        await shown.type("tool:e*")
        await shown.until("2 of 26 lines match tool:e*")
        assert [shown.terminal.shown.row(at).row for at in range(2)] == [17, 19]  # type: ignore[union-attr]


@piloting
async def test_what_is_wrong_with_a_filter_is_shown_under_it() -> None:
    async with piloted(EVERYTHING) as shown:
        await shown.press("slash")
        await shown.type("tool:x dur>y")
        text = await shown.until("“y” is not a number")
        line = next(line for line in text.split("\n") if "is not a number" in line)
        assert line.index("^") == "tool:x dur>y".index("y")
        await shown.press("enter")
        assert shown.terminal.prompt.display


@piloting
async def test_tab_completes_a_key_of_the_filter() -> None:
    async with piloted(EVERYTHING) as shown:
        await shown.press("slash")
        await shown.type("meth")
        await shown.until("method:")
        await shown.press("tab")
        assert shown.terminal.prompt.field.value == "method:"


@piloting
async def test_escape_shows_all_rows_again_and_n_then_goes_from_match_to_match() -> None:
    async with piloted(EVERYTHING) as shown:
        await shown.press("slash")
        await shown.type("tool:e*")
        await shown.press("escape")
        await shown.until("26 lines")
        await shown.press("home", "n")
        assert shown.row == 17
        await shown.press("n")
        assert shown.row == 19
        await shown.press("N")
        assert shown.row == 17


@piloting
async def test_n_goes_through_the_rows_that_are_shown() -> None:
    async with piloted(EVERYTHING) as shown:
        await shown.press("slash")
        await shown.type("tool:e*")
        await shown.press("enter", "n")
        assert shown.row == 19
        await shown.press("n")
        assert shown.row == 17


def faulty() -> Dialogue:
    scene = Dialogue()
    scene.client(call(1, "good")).server(result(1))
    scene.client(call(2, "slow")).wait(5_000).server(result(2))
    scene.client(call(3, "bad")).server(error(3))
    scene.client(call(4, "bad")).server(error(4))
    return scene.client(call(5, "lost"))


@piloting
async def test_f_goes_to_the_next_row_with_a_finding_and_says_what_it_is() -> None:
    async with piloted(faulty().transcript) as shown:
        rows = sorted({row for finding in shown.terminal.source.transcript.findings for row in finding.rows})
        assert rows
        visited = []
        await shown.press("home")
        for _ in rows:
            await shown.press("f")
            visited.append(shown.row)
        assert visited == rows
        assert shown.foot.strip()
        await shown.press("F")
        assert shown.row == (rows[-2] if len(rows) > 1 else rows[0])


@piloting
async def test_p_goes_to_what_waits() -> None:
    async with piloted(faulty().transcript) as shown:
        await shown.press("p")
        assert shown.row == 5


@piloting
async def test_s_goes_to_the_slowest_call_and_then_to_the_next_slowest() -> None:
    async with piloted(EVERYTHING) as shown:
        await shown.press("s")
        assert shown.row == 9
        row = shown.terminal.row_list.row
        await shown.press("s")
        second = shown.terminal.row_list.row
        assert isinstance(row, Exchange)
        assert isinstance(second, Exchange)
        assert (row.duration_ns or 0) > (second.duration_ns or 0)


@piloting
async def test_a_colon_goes_to_a_row_by_its_number() -> None:
    async with piloted(EVERYTHING) as shown:
        await shown.press("colon", "1", "7", "enter")
        assert shown.row == 17
        await shown.press("colon", "9", "9", "enter")
        assert "There is no row 99." in shown.foot
        assert shown.row == 17


@piloting
async def test_a_row_that_the_filter_hides_is_shown_with_all_others() -> None:
    async with piloted(EVERYTHING) as shown:
        await shown.press("slash")
        await shown.type("tool:e*")
        await shown.press("enter", "s")
        assert shown.row == 9
        assert "26 lines" in shown.screen[0]


@piloting
async def test_a_search_in_the_detail_opens_what_it_finds() -> None:
    scene = Dialogue()
    deep = {"a": [{"b": {"c": ["x" * 3_000, {"d": {"e": {"f": "needle " + "y" * 3_000}}}]}}] * 400}
    scene.client(call(1, "deep")).server(result(1, deep))
    async with piloted(scene.transcript) as shown:
        await shown.press("right", "tab", "slash")
        await shown.type("Needle")
        await shown.press("enter")
        await shown.until("1 of 400")
        assert '"needle yy' in shown.text
        await shown.press("n")
        await shown.until("2 of 400")
        await shown.press("N", "N")
        await shown.until("400 of 400")
        assert '"needle yy' in shown.text

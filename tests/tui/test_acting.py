"""The keys that show more, copy and export."""

import json
from pathlib import Path

import pytest

from tests.deadlines import DEADLINE_S
from tests.transcript.dialogue import Dialogue, result
from tests.tui.piloting import CAPTURES, piloted, piloting
from tests.views.scenes import call

EVERYTHING = CAPTURES / "everything.mcpspy"
STREAMABLE = CAPTURES / "streamable.mcpspy"


@piloting
async def test_d_compares_with_the_call_before_of_the_same_tool() -> None:
    async with piloted(EVERYTHING, row=19) as shown:
        await shown.press("d")
        await shown.until("row 17 (A) and row 19 (B)")
        assert '"first" ≠ "third"' in shown.text
        await shown.press("escape")
        await shown.until("row id seconds")


@piloting
async def test_d_says_if_there_is_no_such_call() -> None:
    async with piloted(EVERYTHING, row=17) as shown:
        await shown.press("d")
        assert "There is no earlier call like this one." in shown.foot


@piloting
async def test_g_draws_the_rows_that_match() -> None:
    async with piloted(EVERYTHING) as shown:
        await shown.press("slash")
        await shown.type("tool:e*")
        await shown.press("enter", "g")
        await shown.until("├── 17 tools/call echo")
        assert "initialize" not in shown.text


@pytest.mark.parametrize(
    ("capture", "row", "key", "text"),
    [
        (EVERYTHING, 17, "j", '"method":"tools/call"'),
        (EVERYTHING, 17, "r", f"mcpspy replay {EVERYTHING}"),
        (EVERYTHING, 17, "l", f"{EVERYTHING}:17"),
        (STREAMABLE, 4, "c", "curl -sS -N -g -X POST"),
    ],
)
@piloting
async def test_y_copies(capture: Path, row: int, key: str, text: str) -> None:
    async with piloted(capture, row=row) as shown:
        await shown.press("y")
        await shown.until("copy of row")
        await shown.press(key)
        await shown.until("Copied: ")
        assert text in shown.terminal.clipboard


@piloting
async def test_y_copies_the_answer_under_response() -> None:
    async with piloted(EVERYTHING, row=17) as shown:
        await shown.press("right", "y", "j")
        assert "result" in json.loads(shown.terminal.clipboard)


@piloting
async def test_escape_copies_nothing() -> None:
    async with piloted(EVERYTHING, row=17) as shown:
        await shown.press("y", "escape")
        await shown.until("row id seconds")
        assert not shown.terminal.clipboard


@piloting
async def test_more_than_a_terminal_takes_is_not_copied() -> None:
    scene = Dialogue()
    scene.client(call(1, "big")).server(result(1, {"text": "x" * 100_000}))
    async with piloted(scene.transcript) as shown:
        await shown.press("right", "y", "j")
        await shown.until("too much for the clipboard")


@pytest.mark.parametrize(("key", "name", "text"), [("w", "everything-17.json", "echo"), ("m", "everything-17.md", "echo")])
@piloting
async def test_e_exports_the_row(key: str, name: str, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    async with piloted(EVERYTHING, row=17) as shown:
        await shown.press("e", key)
        await shown.until(name)
        await shown.press("enter")
        await shown.until(f"Written: {name}")
        assert text in (tmp_path / name).read_text(encoding="utf-8")
        await shown.press("e", key, "enter")
        await shown.until("exists; choose another name")


@piloting
async def test_e_exports_the_rows_that_match(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    async with piloted(EVERYTHING) as shown:
        await shown.press("slash")
        await shown.type("tool:e*")
        await shown.press("enter", "e", "j", "enter")
        await shown.until("Written: everything.jsonl")
        lines = (tmp_path / "everything.jsonl").read_text(encoding="utf-8").splitlines()
        assert {json.loads(line).get("row") for line in lines} >= {17, 19}
        assert not any("get-sum" in line for line in lines)


@piloting
async def test_what_an_export_complains_about_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    async with piloted(EVERYTHING) as shown:
        await shown.press("e", "a", "enter")
        await shown.until("it has no HTTP")


@piloting
async def test_o_starts_the_page_and_says_where_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BROWSER", "true")
    async with piloted(EVERYTHING, row=17) as shown:
        await shown.press("o")
        await shown.until("http://127.0.0.1:")
        assert "#row=17" in shown.foot
        web = shown.terminal.verbs._web  # type: ignore[attr-defined]  # the process of `mcpspy web`
        assert web.poll() is None
    assert web.wait(DEADLINE_S) is not None

"""The filter language of the page, in a real browser: the vectors that hold the language of the command line hold this one too."""

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from mcpspy.cli.export.formats import page_files
from mcpspy.errors import FilterError
from mcpspy.transcript.filter.filter import filter_of
from mcpspy.transcript.filter.keys import KEYS
from mcpspy.transcript.model import ChannelEvent, Log
from mcpspy.views.page.page import page
from mcpspy.views.page.rows import page_rows
from tests.browser.conftest import Look
from tests.browser.test_web import live
from tests.cli.recording import Recording
from tests.cli.terminal import run
from tests.conftest import ROOT
from tests.transcript.filter.test_filter import VECTORS, matching, transcript

OPENED = """({ expressions, wants }) => expressions.map((expression) => {
  try {
    const test = filterOf(expression);
    return wants === "rows" ? rows.filter(test).map((row) => row.row || row.kind) : null;
  } catch (error) {
    if (!(error instanceof FilterError)) return String(error.stack);
    return [[...expression.slice(0, error.at)].length + 1, error.message, error.advice];
  }
})"""


@pytest.fixture
def everything(tmp_path: Path) -> Path:
    path = tmp_path / "page.html"
    assert run("export", "html", str(ROOT / "captures" / "everything.mcpspy"), "-o", str(path)).returncode == 0
    return path


@pytest.fixture
def said(look: Look, tmp_path: Path) -> Iterator[Any]:
    """`said(transcript, expressions)` is what the page's script makes of expressions: rows, or what is wrong."""
    looking = look(timezone_id="UTC")

    def ask(name: str, expressions: list[str], wants: str = "rows") -> Any:
        # The script keeps its functions to itself: here it hands out one more, which asks it.
        files = dict(page_files())
        files["99-test.js"] = f"window.asked = {OPENED};\n"
        on = transcript(name)
        path = tmp_path / f"{name}.html"
        path.write_text("".join(page(on, on.rows, files, title="t", addresses=["@"])), encoding="utf-8")
        looking.open(path)
        return looking.page.evaluate("(what) => window.asked(what)", {"expressions": expressions, "wants": wants})

    yield ask
    assert looking.complaints == []


@pytest.mark.parametrize("group", VECTORS["rows"], ids=[group["transcript"] for group in VECTORS["rows"]])
def test_the_page_lets_the_rows_through_that_the_command_line_does(said: Any, group: dict[str, Any]) -> None:
    expressions = [expression for expression, _ in group["cases"]]
    found = said(group["transcript"], expressions)
    numbers = [[row for row in rows if isinstance(row, int)] for rows in found]
    assert dict(zip(expressions, numbers, strict=True)) == dict(group["cases"])


@pytest.mark.parametrize("group", VECTORS["others"], ids=[group["transcript"] for group in VECTORS["others"]])
def test_lines_of_stderr_and_events_too(said: Any, group: dict[str, Any]) -> None:
    on = transcript(group["transcript"])
    expressions = [expression for expression, *_ in group["cases"]]
    for expression, found in zip(expressions, said(group["transcript"], expressions), strict=True):
        listed = [row for row, _ in page_rows(on, matching(expression, on))]
        counts = [sum(isinstance(row, kind) for row in listed) for kind in (Log, ChannelEvent)]
        assert [found.count("log"), found.count("event")] == counts, expression


def test_what_is_wrong_is_said_in_the_same_words_at_the_same_place(said: Any) -> None:
    operators = (":", ">", ">=", "<", "<=", "=", "!=")
    wrong = [expression for expression, *_ in VECTORS["errors"]["cases"]]
    wrong += [
        f"{key}{operator}{value}" for key in KEYS for operator in operators for value in ("1", "x", "1..2", "2s..1s", "😀,b")
    ]
    wrong += ['😀 "a', "not not", "(" * 51 + "kind:x" + ")" * 51, "x" * 60, "x" * 60 + ":1", 'tool:"a"b', "after:2026-02-30"]
    errors = _errors(wrong)
    assert len(errors) > 200
    found = said("stdio", list(errors), "errors")
    assert dict(zip(errors, map(tuple, found), strict=True)) == errors


def _errors(expressions: list[str]) -> dict[str, tuple[int, str, str]]:
    """Collect what the command line says of those that are wrong."""
    errors = {}
    for expression in expressions:
        try:
            filter_of([expression])
        except FilterError as error:
            errors[expression] = (error.column, error.reason, error.advice)
    return errors


MARKED = "document.querySelector('#wrong u')?.textContent"


def test_the_box_marks_what_is_wrong_and_says_what_to_write(look: Look, everything: Path) -> None:
    looking = look().open(everything)
    looking.page.fill("#search", "tool:get-*")
    expect(looking.page.locator("#count")).to_have_text("2 of 24 rows")
    looking.page.fill("#search", "tool:get-* status:eror")
    expect(looking.page.locator("#note")).to_have_text("“eror” is not a word that it takes. Did you mean error?")
    expect(looking.page.locator("#search")).to_have_attribute("aria-invalid", "true")
    assert looking.page.evaluate(MARKED) == "eror"
    expect(looking.page.locator("#count")).to_have_text("2 of 24 rows")  # the rows stay while somebody types
    looking.page.fill("#search", "tool:get-* status:ok")
    expect(looking.page.locator("#search")).to_have_attribute("aria-invalid", "false")
    expect(looking.page.locator("#note")).to_be_hidden()
    assert looking.page.evaluate(MARKED) is None


@pytest.mark.parametrize("text", ["get-sum", "what is a tap?", '"name":"get-sum"', "file:///tmp/demo", "a<b", "1:2"])
def test_a_text_that_is_no_filter_is_looked_for_as_it_is(look: Look, everything: Path, text: str) -> None:
    looking = look().open(everything)
    looking.page.fill("#search", text)
    expect(looking.page.locator("#note")).to_contain_text("Looked for this text in names and payloads")
    expect(looking.page.locator("#search")).to_have_attribute("aria-invalid", "false")


@pytest.mark.parametrize("text", ["tol:x", "stat:ok", "-tool:x", "duration>2s", "!status:ok", "tool=x", "dur>2"])
def test_a_text_that_was_meant_as_a_filter_is_not(look: Look, everything: Path, text: str) -> None:
    looking = look().open(everything)
    looking.page.fill("#search", text)
    expect(looking.page.locator("#search")).to_have_attribute("aria-invalid", "true")
    expect(looking.page.locator("#note")).not_to_contain_text("Looked for")


def test_a_filter_that_matches_nothing_says_how_to_look_for_the_text(look: Look, everything: Path) -> None:
    looking = look().open(everything, "#q=tool%3Anothing")
    expect(looking.page.locator("#note")).to_contain_text("put it in quotation marks")
    assert looking.page.locator(".line").count() == 0


def test_a_filter_is_exported_as_it_was_written(look: Look, everything: Path) -> None:
    looking = look(permissions=["clipboard-read", "clipboard-write"]).open(everything)
    looking.page.fill("#search", 'tool:get-sum or "it\'s"')
    expect(looking.page.locator("#count")).to_contain_text("1 of ")
    looking.page.select_option("#export", "jsonl")
    expect(looking.page.locator("#export option").first).to_have_text("copied")
    command = shlex.split(looking.page.evaluate("navigator.clipboard.readText()"))
    assert command[-2:] == ["-F", 'tool:get-sum or "it\'s"']
    assert run(*command[1:]).stdout.count('"row":18') == 2


def test_a_live_page_filters_what_comes(look: Look) -> None:
    recording = Recording().ask(1, name="one").answer(1).ask(2, name="two")
    with live(look) as looking:
        looking.page.fill("#search", 'status:ok tool:* "one"')
        expect(looking.page.locator("#count")).to_contain_text("1 of 3 rows")
        looking.page.fill("#search", "status:ok tool:*")
        expect(looking.page.locator("#count")).to_contain_text("1 of 3 rows")
        recording.answer(2)
        expect(looking.page.locator("#count")).to_contain_text("2 of 3 rows")
        looking.page.fill("#search", "tool:two")
        expect(looking.page.locator("#count")).to_contain_text("1 of 3 rows")
        assert looking.complaints == []

"""The page in a real browser: what a person sees, clicks and types, and what no payload can make of it."""

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from mcpspy.cli.export.formats import page_files
from mcpspy.transcript.model import Transcript
from mcpspy.views.page.page import page
from mcpspy.views.page.rows import page_rows
from tests.browser.conftest import Look, Looking
from tests.cli.terminal import run
from tests.transcript.dialogue import notification, request, result
from tests.views.scenes import busy_scene, call, hostile_scene, opened, progress, three_servers

CAPTURES = Path(__file__).parents[2] / "captures"
EVERYTHING = CAPTURES / "everything.mcpspy"

EVIL = '</script><script>window.pwned=1</script><img src=x onerror="window.pwned=1">\u202e\x1b]52;c;x\x07{{summary}}'


CUT = """() => [...document.querySelectorAll("nav button, .tools > *, .buttons > *, .heads > *, .worst a")]
  .filter((one) => one.offsetParent && (one.getBoundingClientRect().right > innerWidth || one.scrollWidth > one.clientWidth + 1))
  .filter((one) => !one.matches("select, a, [aria-label=direction]")).map((one) => one.outerHTML)"""
"""Script that lists the controls above the columns whose text is cut off."""


def written(tmp_path: Path, transcript: Transcript) -> Path:
    tmp_path.mkdir(exist_ok=True)
    path = tmp_path / "page.html"
    texts = page(transcript, transcript.rows, page_files(), title="a session", addresses=["@"])
    path.write_text("".join(texts), encoding="utf-8")
    return path


@pytest.fixture
def everything(tmp_path: Path) -> Path:
    path = tmp_path / "page.html"
    assert run("export", "html", str(EVERYTHING), "-o", str(path)).returncode == 0
    return path


def lines(looking: Looking) -> list[str]:
    return looking.page.locator(".line").all_inner_texts()


def chosen(looking: Looking) -> str:
    return looking.page.locator("#detail h2").inner_text()


def test_the_page_opens_asks_for_nothing_and_complains_of_nothing(look: Look, everything: Path) -> None:
    looking = look().open(everything)
    assert looking.requests == [f"file://{everything}"]
    assert looking.complaints == []
    assert len(lines(looking)) > 20


def test_what_is_searched_for_is_found_in_names_and_in_payloads(look: Look, everything: Path) -> None:
    looking = look().open(everything)
    looking.page.fill("#search", "get-sum")
    expect(looking.page.locator("#count")).to_contain_text("2 of ")
    looking.page.fill("#search", "what is a tap?")
    expect(looking.page.locator("#count")).to_contain_text("2 of ")


def test_a_facet_leaves_what_it_names(look: Look, everything: Path) -> None:
    looking = look().open(everything)
    looking.page.select_option("#facet-from", "server")
    assert all("←" in line for line in lines(looking))
    looking.page.select_option("#facet-from", "")
    looking.page.fill("#slow", "500")
    assert [line.split("\n")[0] for line in lines(looking)] == ["9"]


def test_a_facet_of_the_address_that_no_row_has_can_be_seen_and_taken_away(look: Look, everything: Path) -> None:
    looking = look().open(everything, "#outcome=lost")
    expect(looking.page.locator("#facet-outcome")).to_have_value("lost")
    assert lines(looking) == []
    looking.page.select_option("#facet-outcome", "")
    assert len(lines(looking)) > 20


def test_a_head_sorts_by_click_and_by_key_and_says_how(look: Look, everything: Path) -> None:
    looking = look().open(everything)
    took = looking.page.locator('[data-sort="took"]')
    took.click()
    expect(took).to_have_attribute("aria-sort", "descending")
    assert lines(looking)[0].split("\n")[0] == "9"
    took.focus()
    looking.page.keyboard.press("Enter")
    expect(took).to_have_attribute("aria-sort", "ascending")
    assert lines(looking)[0].split("\n")[0] == "13"
    looking.page.keyboard.press(" ")
    assert took.get_attribute("aria-sort") is None


def test_a_lane_is_whoever_takes_part(look: Look, tmp_path: Path) -> None:
    transcript = three_servers()
    looking = look().open(written(tmp_path, transcript))
    options = looking.page.locator("#facet-lane option").evaluate_all("all => all.map((one) => one.value)")
    assert options == ["", "claude-code", "weather", "filesystem-of-a-long-name", "天気"]
    looking.page.select_option("#facet-lane", "天気")
    assert len(lines(looking)) == len([row for row, _ in page_rows(transcript, transcript.rows) if row.capture == 2])


def test_a_column_names_the_server_of_each_row_where_there_are_several(look: Look, tmp_path: Path) -> None:
    looking = look().open(written(tmp_path, three_servers()))
    heads = looking.page.locator(".heads .lane")
    expect(heads).to_have_text("server")
    names = looking.page.locator(".line .lane").all_inner_texts()
    assert set(names) == {"weather", "filesystem-of-a-long-name", "天気"}
    expect(look().open(written(tmp_path, opened("one").transcript)).page.locator(".heads .lane")).to_be_hidden()


def test_the_axis_is_as_long_as_the_heading_says(look: Look, everything: Path, tmp_path: Path) -> None:
    for path in (everything, written(tmp_path / "three", three_servers())):
        looking = look().open(path)
        lasted = re.search(r"calls in (\S+ \S+?)[, ]", looking.page.inner_text("#summary"))[1]  # type: ignore[index]
        expect(looking.page.locator("#overview text").first).to_have_text(lasted)
        assert str(looking.page.locator("#overview").get_attribute("aria-label")).endswith(f"one axis of {lasted}")


def test_long_stderr_is_folded_until_somebody_opens_it(look: Look, tmp_path: Path) -> None:
    scene = opened("chatty")
    for number in range(40):
        scene.stderr(b"line %d\n" % number)
    scene.client(call(1, "slow")).server(result(1))
    for number in range(6):
        scene.stderr(b"again %d\n" % number)
    looking = look(height=1600).open(written(tmp_path, scene.transcript))
    logs = looking.page.locator(".line.log")
    expect(logs).to_have_count(3 + 1 + 2 + 6)
    folded = looking.page.locator(".line.fold")
    expect(folded).to_contain_text("… 35 more lines of stderr")
    looking.page.fill("#search", "line 20")
    expect(logs).to_have_count(1)
    looking.page.fill("#search", "")
    folded.click()
    expect(logs).to_have_count(46)
    expect(looking.page.locator("#detail h2")).to_have_text("stderr line 3")
    assert looking.page.locator(".line.fold").count() == 0


def test_an_address_opens_the_fold_that_hides_its_row(look: Look, tmp_path: Path) -> None:
    scene = opened("chatty")
    for number in range(40):
        scene.stderr(b"line %d\n" % number)
    looking = look().open(written(tmp_path, scene.transcript), "#line=21")
    expect(looking.page.locator(".line[aria-selected=true]")).to_contain_text("line 19")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_rows_begin_in_the_upper_third_of_a_phone(look: Look, tmp_path: Path, scheme: str) -> None:
    looking = look(width=400, color_scheme=scheme).open(written(tmp_path, three_servers()))
    box = looking.page.locator(".line").first.bounding_box()
    assert box is not None
    assert box["y"] < 800 / 3
    more = looking.page.get_by_role("button", name="filters")
    more.click()
    looking.page.select_option("#facet-lane", "天気")
    expect(more).to_have_text("filters (1)")
    more.click()
    expect(looking.page.locator("#facet-lane")).to_be_hidden()


def test_the_worst_findings_and_what_failed_stand_above_all(look: Look, tmp_path: Path) -> None:
    scene = busy_scene().wait(60_000).client(call(7, "late"))
    looking = look().open(written(tmp_path, scene.transcript), "#tab=numbers")
    looking.page.get_by_role("list", name="The worst findings").get_by_role(
        "link", name="Text on stdout that is not a message"
    ).click()
    assert chosen(looking).startswith("row 3 ")
    overview = looking.page.locator("#overview")
    assert overview.locator(".fault:not(.warn)").count() == 3  # a tool error, an error, a call without an answer
    assert overview.locator(".progress").count() == 17
    expect(overview.locator(".gap title")).to_have_text("idle for 60.0 s")


def test_a_click_shows_a_call_whole(look: Look, everything: Path) -> None:
    looking = look().open(everything)
    looking.page.locator(".line", has_text="tools/call get-sum").first.click()
    expect(looking.page.locator("#detail h2")).to_contain_text("tools/call get-sum")
    looking.page.get_by_role("button", name="as on the wire").click()
    expect(looking.page.locator("#detail pre").first).to_contain_text('"method":"tools/call"')


def test_keys_go_where_hands_are(look: Look, everything: Path) -> None:
    looking = look().open(everything)
    keys = looking.page.keyboard
    keys.press("g")
    first = looking.page.url
    keys.press("j")
    keys.press("j")
    keys.press("k")
    assert looking.page.url != first
    keys.press("G")
    expect(looking.page.locator(".line[aria-selected=true]")).to_be_in_viewport()
    keys.press("Escape")
    expect(looking.page.locator("#detail")).to_be_hidden()
    keys.press("/")
    expect(looking.page.locator("#search")).to_be_focused()


def test_an_address_brings_back_what_was_looked_at(look: Look, everything: Path) -> None:
    looking = look().open(everything, "#row=12&method=tools%2Fcall")
    assert chosen(looking).startswith("row 12 ")
    assert all("tools/call" in line for line in lines(looking))


def test_the_diagram_has_steps_bars_and_phases_and_opens_a_row(look: Look, everything: Path) -> None:
    looking = look(height=2000).open(everything, "#tab=diagram")
    expect(looking.page.locator("#drawing rect.bar")).to_have_count(12)
    expect(looking.page.locator("#drawing rect.phase")).to_have_count(5)
    step = looking.page.locator("g.step", has_text="tools/call get-sum")
    step.click()
    expect(looking.page.locator("#detail h2")).to_contain_text("tools/call get-sum")


def test_without_scripts_the_findings_and_the_timeline_are_there(look: Look, tmp_path: Path) -> None:
    path = written(tmp_path, busy_scene().transcript)
    looking = look(java_script_enabled=False)
    looking.page.goto(f"file://{path}")
    text = looking.page.inner_text("body")
    assert "tools/call get_weather" in text
    assert "unanswered" in text
    assert not looking.page.get_by_role("tab").first.is_visible()


@pytest.mark.parametrize("width", [1280, 400])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_is_wider_than_the_screen(look: Look, everything: Path, width: int, scheme: str) -> None:
    looking = look(width=width, color_scheme=scheme).open(everything, "#row=12")
    for tab in ("timeline", "diagram", "findings", "numbers"):
        looking.page.locator(f"nav button[data-tab={tab}]").click()
        assert looking.page.evaluate("document.documentElement.scrollWidth") <= width
        assert looking.page.evaluate(CUT) == []


def test_nothing_that_was_captured_runs_or_asks_for_anything(look: Look, tmp_path: Path) -> None:
    scene = hostile_scene(EVIL)
    path = written(tmp_path, scene.transcript)
    looking = look().open(path)
    for tab in ("findings", "numbers", "diagram", "timeline"):
        looking.page.locator(f"nav button[data-tab={tab}]").click()
    for _ in range(len(lines(looking))):
        looking.page.keyboard.press("j")
    assert looking.page.evaluate("window.pwned") is None
    assert looking.requests == [f"file://{path}"]
    assert looking.complaints == []
    assert "\u202e" not in looking.page.inner_text("body")


PLANTED = """() => new Promise((resolve) => {
  const violations = [];
  document.addEventListener("securitypolicyviolation", (event) => violations.push(event.effectiveDirective));
  const script = document.createElement("script");
  script.textContent = "window.pwned = 1";
  const image = document.createElement("div");
  image.innerHTML = '<img src="http://127.0.0.1:9/x.png" onerror="window.pwned = 2"><p style="color: red"></p>';
  document.body.append(script, image);
  setTimeout(() => {  // later, because a debugger's own scripts may evaluate text
    setTimeout("window.pwned = 3");
    new Function("window.pwned = 4")();
  });
  setTimeout(() => resolve([window.pwned ?? null, [...new Set(violations)].sort()]), 200);
})"""


def test_the_policy_of_the_page_stops_a_script_that_got_in(look: Look, everything: Path) -> None:
    looking = look().open(everything)
    assert looking.complaints == []
    pwned, violations = looking.page.evaluate(PLANTED)
    assert pwned is None
    assert violations == ["img-src", "script-src", "script-src-attr", "script-src-elem", "style-src-attr"]


def test_a_script_in_the_file_itself_does_not_run(look: Look, everything: Path) -> None:
    text = everything.read_text(encoding="utf-8")
    everything.write_text(text.replace("</body>", "<script>window.pwned = 1</script></body>"), encoding="utf-8")
    looking = look().open(everything)
    assert looking.page.evaluate("window.pwned") is None
    assert any("Content Security Policy" in complaint for complaint in looking.complaints)
    assert len(lines(looking)) > 20


def test_ten_thousand_calls_are_listed_and_only_those_that_are_seen_are_drawn(look: Look, tmp_path: Path) -> None:
    scene = opened("big").client(request(0, "initialize")).server(result(0)).client(notification())
    for id in range(1, 10_000):
        scene.client(call(id, f"tool_{id % 17}", number=id)).server(result(id, {"content": []}))
    looking = look().open(written(tmp_path, scene.transcript))
    expect(looking.page.locator("#count")).to_have_text("10,002 rows")
    assert len(lines(looking)) < 100
    looking.page.keyboard.press("G")
    assert chosen(looking).startswith("row 10001 ")
    assert len(lines(looking)) < 100


def test_the_first_rows_of_a_long_session_are_shown_while_the_rest_is_read(look: Look, tmp_path: Path) -> None:
    scene = opened("big").client(request(0, "initialize")).server(result(0)).client(notification())
    for id in range(1, 3_000):
        scene.client(call(id, f"tool_{id % 17}", number=id)).server(result(id, {"content": []}))
    path = written(tmp_path, scene.transcript)
    text, half = path.read_text(encoding="utf-8"), tmp_path / "half.html"
    half.write_text(text[: text.index('id="rest"')], encoding="utf-8")
    looking = look(height=2000)
    looking.page.goto(f"file://{half}#row=2500")
    expect(looking.page.locator(".line").nth(50)).to_be_visible()
    expect(looking.page.locator("#count")).to_have_text("3,002 rows")
    looking.open(path, "#row=2500&method=tools%2Fcall")
    assert chosen(looking).startswith("row 2500 ")
    expect(looking.page.locator("#count")).to_have_text("2,999 of 3,002 rows")
    assert looking.complaints == []


def test_numbers_keep_their_digits_and_letters_are_letters(look: Look, tmp_path: Path) -> None:
    raw = b'{"jsonrpc":"2.0","id":123456789012345678901234567890,"method":"tools/call","params":{"name":"\\u5317\\u4eac","x":1.50}}\n'
    looking = look().open(written(tmp_path, opened("a").client(raw).transcript), "#row=1")
    text = looking.page.inner_text("#detail .json")
    assert "123456789012345678901234567890" in text
    assert '"北京"' in text
    assert re.search(r"1\.50\b", text)


def test_an_image_in_a_result_is_shown_from_what_the_page_has(look: Look, tmp_path: Path) -> None:
    dot = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
    content = [{"type": "image", "mimeType": "image/png", "data": dot}]
    scene = opened("a").client(call(1, "draw")).server(result(1, {"content": content}))
    looking = look().open(written(tmp_path, scene.transcript), "#row=1")
    assert looking.page.evaluate("document.querySelector('#detail img').naturalWidth") == 1
    assert looking.complaints == []


def _gist(message: dict[str, Any]) -> list[Any]:
    return [message.get(name) for name in ("id", "method", "params", "result")]


def test_what_is_filtered_is_exported_as_a_command_and_as_a_file(look: Look, everything: Path) -> None:
    looking = look(permissions=["clipboard-read", "clipboard-write"]).open(everything)
    looking.page.fill("#search", "get-sum")
    expect(looking.page.locator("#count")).to_contain_text("2 of ")
    looking.page.select_option("#export", "jsonl")
    expect(looking.page.locator("#export option").first).to_have_text("copied")
    command = looking.page.evaluate("navigator.clipboard.readText()")
    assert command.startswith(f"mcpspy export jsonl {EVERYTHING} -F 'row:")
    exported = run(*shlex.split(command)[1:]).stdout.splitlines()
    with looking.page.expect_download() as download:
        looking.page.select_option("#export", "save")
    saved = Path(download.value.path()).read_text(encoding="utf-8").splitlines()
    assert [_gist(json.loads(line)) for line in saved] == [_gist(json.loads(line)) for line in exported]


@pytest.mark.parametrize("verb", ["mock", "call"])
def test_a_call_has_commands_that_mcpspy_takes(look: Look, everything: Path, verb: str) -> None:
    looking = look(permissions=["clipboard-read", "clipboard-write"]).open(everything, "#row=18")
    looking.page.get_by_role("button", name=f"copy mcpspy {verb}").click()
    expect(looking.page.get_by_role("button", name="copied")).to_be_visible()
    command = looking.page.evaluate("navigator.clipboard.readText()")
    assert command == f"mcpspy {verb} {EVERYTHING}" + (":18" if verb == "call" else "")


def test_who_does_not_see_finds_a_grid_with_heads_and_rows(look: Look, everything: Path) -> None:
    looking = look().open(everything)
    grid = looking.page.get_by_role("grid", name="Rows")
    assert [head for head in grid.get_by_role("columnheader").all_inner_texts() if head] == [
        "row", "seconds", "took", "call", "outcome",
    ]  # fmt: skip
    looking.page.keyboard.press("g")
    chosen_id = grid.get_attribute("aria-activedescendant")
    expect(looking.page.locator(f"#{chosen_id}")).to_have_attribute("aria-selected", "true")
    assert int(grid.get_attribute("aria-rowcount") or 0) == len(grid.get_by_role("row").all())
    assert looking.page.locator(".texts:not([tabindex='0']), .scroll:not([tabindex]), .drawing:not([tabindex])").count() == 0


def test_a_message_of_very_many_levels_is_opened_as_far_as_a_browser_can(look: Look, tmp_path: Path) -> None:
    deep = b'{"jsonrpc":"2.0","id":1,"method":"a","params":' + b"[" * 1900 + b"]" * 1900 + b"}\n"
    looking = look().open(written(tmp_path, opened("a").client(deep).transcript), "#row=1")
    expect(looking.page.locator("#detail details").last).to_contain_text("1 item")
    assert looking.page.locator("#detail details").count() < 100


def test_a_call_with_very_many_messages_shows_some_and_its_answer(look: Look, tmp_path: Path) -> None:
    scene = opened("a").client(call(1, "slow", token=7))
    for step in range(200):
        scene.server(progress(7, step, f"step {step}"))
    looking = look().open(written(tmp_path, scene.server(result(1)).transcript), "#row=1")
    headings = looking.page.locator("#detail h3")
    expect(headings).to_have_count(51)
    expect(headings.last).to_contain_text("result")
    assert looking.page.locator(".line b").count() <= 60
    for left in ("151 more messages", "101 more messages", "51 more messages", "1 more message"):
        looking.page.get_by_role("button", name=left, exact=True).click()
    expect(headings).to_have_count(202)
    expect(headings.last).to_contain_text("result")


def test_a_hundred_thousand_tools_of_different_names_are_listed(look: Look, tmp_path: Path) -> None:
    path = written(tmp_path, opened("a").client(call(1, "one")).transcript)
    before, key, rest = path.read_text(encoding="utf-8").partition('"rows":')
    (line, *_), end = json.JSONDecoder().raw_decode(rest)
    many = [[*line[:8], f"tool-{number}", *line[9:]] for number in range(150_000)]
    path.write_text(before + key + json.dumps(many) + rest[end:], encoding="utf-8")
    looking = look().open(path)
    expect(looking.page.locator("#count")).to_have_text("150,000 rows")
    assert looking.complaints == []


@pytest.mark.parametrize(("width", "height"), [(1280, 400), (400, 800)])
def test_what_was_chosen_is_in_sight_wherever_one_turns(look: Look, everything: Path, width: int, height: int) -> None:
    looking = look(width=width, height=height).open(everything, "#row=17")
    line, step = looking.page.locator(".line[aria-selected=true]"), looking.page.locator("g.step.chosen").first
    expect(line).to_be_in_viewport(ratio=0.9)
    looking.page.keyboard.press("2")
    expect(step).to_be_in_viewport(ratio=0.9)
    looking.page.keyboard.press("G")
    looking.page.keyboard.press("1")
    expect(line).to_be_in_viewport(ratio=0.9)


def test_findings_are_printed_whole(look: Look, tmp_path: Path) -> None:
    looking = look(height=300).open(written(tmp_path, hostile_scene(EVIL).transcript), "#tab=findings")
    looking.page.emulate_media(media="print")
    for name in ("#summary", "#captures", "#findings"):
        assert looking.page.evaluate(f"(({{ scrollHeight, clientHeight }}) => scrollHeight - clientHeight)({name[1:]})") <= 1
    assert looking.page.evaluate("document.documentElement.scrollHeight") > 900

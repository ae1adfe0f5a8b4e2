"""The page's own scripts: what ESLint says of them, and the parts that compute, run by node without a page."""

import json
import subprocess
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mcpspy import read, transcribe
from mcpspy.cli.export.formats import page_files
from mcpspy.views.page.page import diagram_data, script
from mcpspy.views.sequence.layout import Drawing, diagram
from mcpspy.views.sequence.svg import svg
from mcpspy.views.text.units import at_least, duration, seconds, size
from tests.conftest import NPM_MODULES, NPM_SCRIPTS, ROOT, DebianProgram, NpmProgram
from tests.deadlines import DEADLINE_S
from tests.views.scenes import busy_scene, hostile_scene, three_servers

READ = """
const plain = (value) => value.type === "object" ? { object: value.items.map(([key, one]) => [JSON.parse(key), plain(one)]) }
  : value.type === "array" ? value.items.map(([, one]) => plain(one)) : value.text;
console.log(JSON.stringify(JSON.parse(require("fs").readFileSync(0, "utf8")).map((text) => {
  try { return [plain(readJson(text))]; } catch { return null; }
})));
"""

MEASURE = """
const { rows: given, times } = JSON.parse(require("fs").readFileSync(0, "utf8"));
globalThis.rows = given;
const { place, gaps } = measured();
console.log(JSON.stringify({ places: times.map(place), gaps }));
"""


PLACE = """
const { diagrams, room, texts } = JSON.parse(require("fs").readFileSync(0, "utf8"));
const sheets = diagrams.map((one) => laidOut(one, room));
console.log(JSON.stringify({ sheets, cells: texts.map(cells), cut: texts.map((text) => cut(text, 4)) }));
"""


def computed(node: str, names: str, rest: str, value: Any) -> Any:
    """Run scripts of the page on a value, followed by `rest`, and return the result."""
    begin = "Object.assign(globalThis, { rows: [], data: { end: 0 }, isLive: false });"
    text = "\n".join([begin, *(page_files()[name] for name in names.split()), rest])
    done = subprocess.run(
        [node, "-e", text], input=json.dumps(value), capture_output=True, text=True, timeout=DEADLINE_S, check=True
    )
    return json.loads(done.stdout)


def test_eslint_has_nothing_to_say(npm_program: NpmProgram) -> None:
    node = npm_program("eslint")[0]
    done = subprocess.run(
        [node, str(NPM_SCRIPTS / "lint_script.mjs")],
        cwd=NPM_MODULES.parent, input=script(page_files()), capture_output=True, text=True, timeout=DEADLINE_S, check=True,
    )  # fmt: skip
    assert json.loads(done.stdout) == []


@pytest.mark.parametrize(
    "flaw", ["unknown();", "let unused = 1;", "document.body.innerHTML = location.hash;", "if (rows == 1) rows.push(1);"]
)
def test_eslint_sees_what_it_should(flaw: str, npm_program: NpmProgram) -> None:
    node = npm_program("eslint")[0]
    done = subprocess.run(
        [node, str(NPM_SCRIPTS / "lint_script.mjs")],
        cwd=NPM_MODULES.parent, input=f'"use strict";\nconst rows = [];\n{flaw}', capture_output=True, text=True,
        timeout=DEADLINE_S, check=True,
    )  # fmt: skip
    assert len(json.loads(done.stdout)) >= 1


def test_the_reader_keeps_digits_spellings_and_members_that_stand_twice(debian_program: DebianProgram) -> None:
    texts = [
        '{"a":1.50,"a":123456789012345678901234567890}',
        '["\\u5317\\n",-0.0,1e400]',
        " \n[ ] ",
        "{}",
        '"\\""',
        "-1",
        "null",
    ]
    results = computed(debian_program("node"), "07-tree.js", READ, texts)
    assert results == [
        [{"object": [["a", "1.50"], ["a", "123456789012345678901234567890"]]}],
        [['"\\u5317\\n"', "-0.0", "1e400"]], [[]], [{"object": []}], ['"\\""'], ["-1"], ["null"],
    ]  # fmt: skip


def test_the_reader_refuses_what_is_no_json(debian_program: DebianProgram) -> None:
    texts = [
        "",
        " ",
        "{",
        "[1,]",
        "[1 2]",
        '{"a"}',
        '{"a":}',
        "{a:1}",
        "nul",
        "[1]]",
        "1 2",
        '"a',
        "{]",
        "[}",
        ",",
        '{"a":1,}',
        '["a":1]',
    ]
    assert computed(debian_program("node"), "07-tree.js", READ, texts) == [None] * len(texts)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(st.lists(VALUES, min_size=50, max_size=50))
@settings(
    max_examples=2,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.large_base_example, HealthCheck.data_too_large],
)
def test_the_reader_reads_any_json(debian_program: DebianProgram, values: list[Any]) -> None:
    def spelled(value: Any) -> Any:
        match value:
            case dict():
                return {"object": [[key, spelled(item)] for key, item in value.items()]}
            case list():
                return [spelled(item) for item in value]
        return json.dumps(value)

    results = computed(debian_program("node"), "07-tree.js", READ, [json.dumps(value, indent=1) for value in values])
    assert results == [[spelled(value)] for value in values]


def test_a_string_of_many_megabytes_is_read(debian_program: DebianProgram) -> None:
    text = json.dumps({"a": "x\\" * 8_000_000})
    rest = READ.replace("[plain(readJson(text))]", "readJson(text).items[0][1].text.length")
    assert computed(debian_program("node"), "07-tree.js", rest, [text]) == [24_000_002]


def test_idle_time_is_folded_and_the_order_of_times_is_kept(debian_program: DebianProgram) -> None:
    rows = [{"kind": "exchange", "at": at, "took": 10_000_000} for at in (0, 20_000_000, 60_000_000_000)]
    times = [0, 5_000_000, 30_000_000, 30_000_000_000, 60_000_000_000, 60_010_000_000]
    results = computed(debian_program("node"), "02-words.js 04-clock.js", MEASURE, {"rows": rows, "times": times})
    assert results["gaps"] == [[30_000_000, 60_000_000_000]]
    assert results["places"] == sorted(results["places"])
    assert results["places"][4] - results["places"][2] < 0.05
    assert (results["places"][0], round(results["places"][-1], 3)) == (0, 1)


def test_a_page_without_rows_has_a_clock(debian_program: DebianProgram) -> None:
    results = computed(debian_program("node"), "02-words.js 04-clock.js", MEASURE, {"rows": [], "times": [0, 1]})
    assert results["gaps"] == []
    assert all(0 <= place <= 1 for place in results["places"])


def test_the_diagram_has_the_bars_and_the_frames_of_the_svg(debian_program: DebianProgram) -> None:
    captures = sorted((ROOT / "captures").glob("*.mcpspy"))
    transcripts = [transcribe(read(path)) for path in captures] + [busy_scene().transcript, three_servers()]
    page_data = {
        "diagrams": [diagram_data(transcript, transcript.rows, 10_000) for transcript in transcripts],
        "room": 1000,
        "texts": [],
    }
    results = computed(debian_program("node"), "02-words.js 09-layout.js", PLACE, page_data)["sheets"]
    for sheet, transcript in zip(results, transcripts, strict=True):
        text = "\n".join(svg(diagram(transcript, transcript.rows, Drawing(folds=False))))
        frames = [frame["kind"] for frame in sheet["frames"]]
        meant = [text.count(f'<rect class="{name}"') for name in ("bar", "band", "loop")]
        assert [len(sheet["bars"]), frames.count("phase") + frames.count("run"), frames.count("loop")] == meant
    assert sum(len(sheet["bars"]) for sheet in results) > 100
    assert max(bar["level"] for sheet in results for bar in sheet["bars"]) > 0


@pytest.mark.parametrize("room", [0, 400, 3000])
def test_lanes_stand_clear_of_each_other_and_on_the_sheet(debian_program: DebianProgram, room: int) -> None:
    transcripts = [three_servers(), hostile_scene("天気予報" * 50).transcript]
    page_data = {
        "diagrams": [diagram_data(transcript, transcript.rows, 100) for transcript in transcripts]
        + [{"lanes": [], "steps": []}],
        "room": room,
        "texts": [],
    }
    for sheet in computed(debian_program("node"), "02-words.js 09-layout.js", PLACE, page_data)["sheets"]:
        edges = [edge for x, half in zip(sheet["places"], sheet["halves"], strict=True) for edge in (x - half, x + half)]
        assert edges == sorted(edges)
        assert all(sheet["times"] <= edge <= sheet["width"] for edge in edges)


def test_two_lanes_have_room_on_a_phone_whatever_their_names(debian_program: DebianProgram) -> None:
    transcript = hostile_scene("天気予報" * 50).transcript
    page_data = {"diagrams": [diagram_data(transcript, transcript.rows, 100)], "room": 400, "texts": []}
    (sheet,) = computed(debian_program("node"), "02-words.js 09-layout.js", PLACE, page_data)["sheets"]
    assert (len(sheet["places"]), sheet["width"] <= 400) == (2, True)


def test_captures_are_mocked_and_replayed_if_a_client_asked_in_them(debian_program: DebianProgram) -> None:
    rest = """
    Object.assign(globalThis, JSON.parse(require("fs").readFileSync(0, "utf8")));
    console.log(JSON.stringify(commands.played()));
    """
    rows = [{"kind": "exchange", "from": sender, "capture": at} for at, sender in enumerate(["client", "server"])]
    page_data = {"data": {"addresses": ["asks", "'is asked'", "model"]}, "rows": [*rows, {"kind": "model call", "capture": 2}]}
    results = computed(debian_program("node"), "04-commands.js", rest, page_data)
    assert results == ["mcpspy mock asks", "mcpspy replay asks", "mcpspy mock 'is asked'", "mcpspy mock model"]


def test_a_call_is_named_by_its_row_in_its_own_capture(debian_program: DebianProgram) -> None:
    rest = """
    Object.assign(globalThis, JSON.parse(require("fs").readFileSync(0, "utf8")));
    console.log(JSON.stringify(rows.filter((row) => row.row).map(commands.call)));
    """
    rows = [{"row": 1, "capture": 0}, {"capture": 1}, {"row": 2, "capture": 1}, {"row": 3, "capture": 0}]

    def offered(addresses: list[str], **more: bool) -> list[str | None]:
        page_data = {"data": {"addresses": addresses, **more}, "rows": rows}
        return list(computed(debian_program("node"), "04-commands.js", rest, page_data))

    assert offered(["one"]) == ["mcpspy call one:1", "mcpspy call @:2", "mcpspy call one:3"]
    assert offered(["one", "two"]) == ["mcpspy call one:1", "mcpspy call two:1", "mcpspy call one:2"]
    assert offered(["one", "two"], isPart=True) == [None, None, None]


def test_a_message_of_several_lines_is_saved_as_one(debian_program: DebianProgram) -> None:
    rest = 'console.log(JSON.stringify(JSON.parse(require("fs").readFileSync(0, "utf8")).map(oneLine)));'
    texts = [json.dumps({"a": "b\nc"}, indent=1), '{"a":\r\n\r\n1.50}\n']
    results = computed(debian_program("node"), "02-words.js", rest, texts)
    assert results == ['{  "a": "b\\nc" }', '{"a": 1.50}']


def test_words_stand_clear_of_the_lanes_they_pass(debian_program: DebianProgram) -> None:
    rest = """
    const asked = JSON.parse(require("fs").readFileSync(0, "utf8"));
    console.log(JSON.stringify(asked.map(([places, start, end, pixels]) => between(places, start, end, pixels))));
    """
    page_data = [[[0, 100, 400], 0, 400, 200], [[0, 100, 400], 400, 0, 350], [[0, 100, 400], 100, 400, 500], [[0], 0, 0, 10]]
    results = computed(debian_program("node"), "02-words.js 09-layout.js", rest, page_data)
    assert [(place["middle"], place["isClear"]) for place in results] == [(250, True), (200, False), (250, True), (0, True)]


@given(
    st.lists(
        st.integers(0, 10**15) | st.integers(0, 2000).map(lambda part: part * 125_000_000 // 100), min_size=400, max_size=400
    )
)
@settings(max_examples=3, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.large_base_example])
def test_times_and_sizes_are_spelled_as_in_the_heading(debian_program: DebianProgram, values: list[int]) -> None:
    rest = """
    const values = JSON.parse(require("fs").readFileSync(0, "utf8"));
    console.log(JSON.stringify(values.map((value) => [duration(value), atLeast(value), seconds(value), bytes(value)])));
    """
    results = computed(debian_program("node"), "02-words.js", rest, values)
    assert results == [[spell(value) for spell in (duration, at_least, seconds, size)] for value in values]


def test_wide_letters_take_two_cells_and_marks_none(debian_program: DebianProgram) -> None:
    page_data = {"diagrams": [], "room": 0, "texts": ["abc", "天気予報", "e\u0301", "🌧!", "abcd", "abcde", "a天気"]}
    results = computed(debian_program("node"), "02-words.js 09-layout.js", PLACE, page_data)
    assert results["cells"] == [3, 8, 1, 3, 4, 5, 5]
    assert results["cut"] == ["abc", "天…", "e\u0301", "🌧!", "abcd", "abc…", "a天…"]

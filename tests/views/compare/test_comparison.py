"""A comparison as lines and as JSON: complete at every width, and harmless whatever was captured."""

import json
from datetime import UTC
from typing import Any

import pytest

from mcpspy.replay.compare.compare import ComparedSide, Comparison, Limit, compare
from mcpspy.replay.compare.difference import Difference, Differences
from mcpspy.transcript.model import Transcript
from mcpspy.views.compare.comparison import comparison_lines, difference_lines, next_lines
from mcpspy.views.json.comparisons import comparison_json
from mcpspy.views.text.line import line_cells, plain
from tests.transcript.dialogue import Dialogue, request, result
from tests.views.golden import same_as_golden
from tests.views.scenes import busy_scene, call, failed, hostile_scene, opened
from tests.views.test_hostile import HOSTILE, dangerous

TOOL = {"name": "get_weather", "description": "The weather of a city, now.", "inputSchema": {"type": "object"}}
LONG = "a sentence that goes on and on, as they do, " * 8


def scene(version: str, *tools: dict[str, Any], words: str = "21 °C", ms: int = 20, city: str = "Lissabon") -> Dialogue:
    hello = {"protocolVersion": "2025-11-25", "clientInfo": {"name": "claude-code", "version": "2"}, "capabilities": {}}
    dialogue = opened("weather").client(request(0, "initialize", hello))
    dialogue.server(result(0, {**hello, "serverInfo": {"name": "weather", "version": version}}))
    dialogue.client(request(1)).server(result(1, {"tools": list(tools)}))
    dialogue.client(call(2, "get_weather", city=city)).wait(ms).server(
        result(2, {"content": [{"type": "text", "text": words}]})
    )
    return dialogue.client(call(3, "get_weather", city="Oslo")).server(
        result(3, {"content": [{"type": "text", "text": "3 °C"}]})
    )


def changed() -> Comparison:
    before = scene("1.4", TOOL, {**TOOL, "name": "old"}, words=f"{LONG}21 °C").client(call(4, "old")).server(result(4)).closes()
    after = scene("1.5", {**TOOL, "description": LONG}, {**TOOL, "name": "new"}, words=f"{LONG}22 °C", ms=900, city="Lisboa")
    after.client(call(4, "new")).server(failed(4, "no")).server(b"noise\n").closes()
    return both(before.transcript, after.transcript)


def both(before: Transcript, after: Transcript, limit: Limit | None = None) -> Comparison:
    return compare(ComparedSide(transcript=before), ComparedSide(transcript=after), limit=limit)


def shown(comparison: Comparison, width: int | None = None) -> list[str]:
    return [plain(line) for line in comparison_lines(comparison, width=width, zone=UTC)]


@pytest.mark.parametrize("width", [80, 200])
def test_a_comparison_looks_as_it_did(width: int) -> None:
    assert same_as_golden(f"comparison-{width}", comparison_lines(changed(), width=width, zone=UTC))


@pytest.mark.parametrize("width", [20, 40, 80, 100, 200])
def test_no_line_is_wider_than_the_screen(width: int) -> None:
    assert max(line_cells(line) for line in comparison_lines(changed(), width=width, zone=UTC)) <= width


def test_no_difference_takes_one_line() -> None:
    made = scene("1.4", TOOL).closes().transcript
    assert shown(both(made, made))[0] == "✓ no difference · 4 calls unchanged"
    assert len(shown(both(made, made))) == 3


def test_the_summary_counts_what_changed() -> None:
    assert shown(changed())[0] == (
        "✗ 1 difference in identity · 1 definition changed, 1 added, 1 removed · 1 call changed, 1 added, 1 removed"
        " · 1 message added · 1 finding added · 3 calls unchanged"
    )


def test_long_texts_are_cut_around_the_difference() -> None:
    text = "\n".join(shown(changed(), 100))
    assert "21 °C" in text
    assert "22 °C" in text


@pytest.mark.parametrize(
    ("difference", "words"),
    [
        (Difference(steps=("a",), how="changed", before="x", after="y"), '$.a: "x" ≠ "y"'),
        (Difference(steps=("a", 0), how="added", after={"b": None}), '$.a[0] added: {"b": null}'),
        (Difference(steps=("a",), how="removed", before=1), "$.a removed: 1"),
        (Difference(steps=("a",), how="type", before=1, after="1"), '$.a: 1 ≠ "1"'),
        (Difference(steps=("a",), how="changed", before="one\ntwo", after="\x1b[2J"), r'$.a: "one\ntwo" ≠ "\u001b[2J"'),
    ],
)
def test_a_difference_is_one_line(difference: Difference, words: str) -> None:
    differences = Differences(listed=(difference,), count=1)
    assert [plain(line) for line in difference_lines(differences, indent=0, width=None)] == [words]


def test_the_next_commands_name_both_sides_and_the_rule_to_paste() -> None:
    lines = [plain(line) for line in next_lines(changed(), "@1", "@", None)]
    assert lines == [
        "",
        "mcpspy show @1:3              the first call that differs, before",
        "mcpspy show @:3               the first call that differs, after",
        "--ignore '$.arguments.city'   ignores its first difference",
    ]


def test_slower_calls_are_a_difference_with_the_option() -> None:
    before, after = (scene("1", ms=ms).closes().transcript for ms in (20, 900))
    assert shown(both(before, after))[0] == "✓ no difference · 4 calls unchanged"
    slower = shown(both(before, after, Limit(factor=2, counts=True)))
    assert slower[0] == "✗ 1 call slower · 4 calls unchanged"
    assert "    tools/call get_weather  21.0 ms → 901 ms  A:3 B:3" in slower


def test_json_has_the_same_facts() -> None:
    made = json.loads(comparison_json(changed()))
    assert (made["schema"], made["summary"]["different"], made["summary"]["same"]) == (1, True, 3)
    (server,) = made["servers"]
    assert server["identity"] == [{"path": "$.server.version", "how": "changed", "before": "1.4", "after": "1.5"}]
    assert [(definition["how"], definition["name"]) for definition in server["definitions"]] == [
        ("changed", "get_weather"), ("added", "new"), ("removed", "old"),
    ]  # fmt: skip
    assert [call["how"] for call in server["calls"]] == ["changed", "removed", "added"]
    assert server["calls"][0]["params"] == [
        {"path": "$.arguments.city", "how": "changed", "before": "Lissabon", "after": "Lisboa"}
    ]
    assert [(pair["before_row"], pair["after_row"]) for pair in server["took"]] == [(3, 3)]


def test_json_replaces_large_values_by_their_size_and_digest() -> None:
    before, after = (scene("1", words=words * 5_000).transcript for words in "ab")
    (change,) = json.loads(comparison_json(both(before, after)))["servers"][0]["calls"]
    (difference,) = change["answer"]
    assert (difference["before_bytes"], difference["after_bytes"]) == (5_002, 5_002)
    assert "before" not in difference


@pytest.mark.grid
@pytest.mark.parametrize("width", [20, 80, None])
@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_text_does_nothing(text: str, width: int | None) -> None:
    others = [busy_scene().transcript, hostile_scene(f"{text} otherwise").transcript]
    for other in others:
        for comparison in (both(hostile_scene(text).transcript, other), both(other, hostile_scene(text).transcript)):
            assert comparison.different
            for line in (*shown(comparison, width), *(plain(line) for line in next_lines(comparison, "@1", "@", width))):
                assert not dangerous(line)
            assert not dangerous(comparison_json(comparison).replace("\n", ""))
            json.loads(comparison_json(comparison))

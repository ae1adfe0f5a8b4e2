"""The meaning of filters, by the vectors of filter_vectors.toml, and their cost."""

import contextlib
import json
import time
import tomllib
from datetime import UTC
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from mcpspy.capture.file.reader import read
from mcpspy.errors import FilterError
from mcpspy.transcript.filter.filter import FilterMatcher, filter_of, filter_rows
from mcpspy.transcript.filter.keys import HINTS, KEYS
from mcpspy.transcript.filter.values import words
from mcpspy.transcript.model import ChannelEvent, Exchange, Log, Numbered, Transcript
from mcpspy.transcript.transcribe import Transcriber, transcribe
from tests.conftest import ROOT
from tests.transcript.dialogue import Dialogue, make_header, notification, progress, request, result, tool_call

VECTORS = tomllib.loads((Path(__file__).parents[1] / "filter_vectors.toml").read_text(encoding="utf-8"))

ROWS = [(group["transcript"], *case) for group in VECTORS["rows"] for case in group["cases"]]
OTHERS = [(group["transcript"], *case) for group in VECTORS["others"] for case in group["cases"]]


def transcript_of(lines: list[str]) -> Transcript:
    dialogue = Dialogue(header=make_header(wall_ns=10**18))
    for line in lines:
        who, _, what = line.partition(" ")
        if who == "wait":
            dialogue.wait(int(what))
        elif who == "end":
            dialogue.closes()
        else:
            dialogue.line(("client", "server", "stderr").index(who), what.encode() + b"\n")
    return dialogue.transcript


@cache
def transcript(name: str) -> Transcript:
    made = VECTORS["transcripts"][name]
    return (
        transcript_of(made["lines"]) if "lines" in made else transcribe(*(read(str(ROOT / path)) for path in made["captures"]))
    )


def matching(expression: str, on: Transcript) -> list[Any]:
    wanted = filter_of([expression])
    assert wanted is not None
    return filter_rows(wanted, on, on.rows, UTC).rows


def numbers(expression: str, on: Transcript) -> list[int]:
    return [row.row for row in matching(expression, on) if isinstance(row, Numbered)]


@pytest.mark.parametrize(("name", "expression", "rows"), ROWS, ids=[f"{name} {expression}" for name, expression, _ in ROWS])
def test_a_filter_lets_these_rows_through(name: str, expression: str, rows: list[int]) -> None:
    assert numbers(expression, transcript(name)) == rows


@pytest.mark.parametrize(("name", "expression", "logs", "events"), OTHERS, ids=[case[1] for case in OTHERS])
def test_rows_without_numbers_are_filtered_too(name: str, expression: str, logs: int, events: int) -> None:
    rows = matching(expression, transcript(name))
    counts = [sum(isinstance(row, kind) for row in rows) for kind in (Log, ChannelEvent)]
    assert counts == [logs, events]


@pytest.mark.parametrize(("expression", "column", "advice"), VECTORS["errors"]["cases"])
def test_an_error_points_at_its_column_and_says_what_to_write(expression: str, column: int, advice: str) -> None:
    with pytest.raises(FilterError) as caught:
        filter_of([expression])
    assert (caught.value.expression, caught.value.column) == (expression, column)
    assert advice in caught.value.advice


@pytest.mark.parametrize("key", KEYS.values(), ids=list(KEYS))
def test_the_example_of_a_key_is_a_filter_that_asks_for_it(key: Any) -> None:
    wanted = filter_of([key.example])
    assert wanted is not None
    assert wanted.keys == {key.name}


@pytest.mark.parametrize("key", KEYS.values(), ids=list(KEYS))
@pytest.mark.parametrize("operator", [":", ">", ">=", "<", "<="])
def test_a_key_takes_its_operators_and_refuses_the_others(key: Any, operator: str) -> None:
    value = {"http": "401", "dur": "2s", "total": "2s"}.get(key.name, "1")
    value = (
        "1s..2s"
        if key.name in ("dur", "total") and operator == ":"
        else "1..2"
        if operator == ":" and key.name in ("size", "bytes")
        else value
    )
    value = key.example.partition(":")[2] if key.operators == (":",) else value
    if operator in key.operators:
        assert filter_of([f"{key.name}{operator}{value}"]) is not None
    else:
        with pytest.raises(FilterError, match="does not take"):
            filter_of([f"{key.name}{operator}{value}"])


def test_every_key_is_met_by_a_vector() -> None:
    wanted = filter_of([expression for _, expression, *_ in [*ROWS, *OTHERS]])
    met = wanted.keys if wanted is not None else set()
    assert set(KEYS) - met == {"flaw"}


def test_a_word_that_others_use_leads_to_a_key() -> None:
    assert set(HINTS.values()) <= set(KEYS)
    assert not set(HINTS) & set(KEYS)


def test_of_several_expressions_all_have_to_match() -> None:
    wanted = filter_of(["tool:search or tool:search_all", "status:error or status:ok", "dur<2s"])
    assert str(wanted) == "(tool:search or tool:search_all) (status:error or status:ok) dur<2s"


def test_the_error_of_several_expressions_names_the_one_that_is_wrong() -> None:
    with pytest.raises(FilterError) as caught:
        filter_of(["status:ok", "dur>x"])
    assert (caught.value.expression, caught.value.column) == ("dur>x", 5)


def test_no_expressions_are_no_filter() -> None:
    assert filter_of([]) is None


def test_a_time_of_day_is_of_the_day_on_which_the_first_capture_began_in_the_zone_given() -> None:
    dialogue = Dialogue(header=make_header(wall_ns=1_700_000_000 * 10**9)).client(request(1))  # 2023-11-14 22:13:20 UTC
    assert numbers("after:22:13 before:22:14", dialogue.transcript) == [1]


def test_without_a_header_no_time_of_day_is_known() -> None:
    records = Dialogue().client(request(1)).records[1:]
    assert numbers("after:00:00 or before:23:59", transcribe(records)) == []


def test_what_others_of_the_exchange_say_is_no_text_of_a_message() -> None:
    dialogue = Dialogue().client(tool_call(1, "a")).server(result(1, {"b": 1}))
    assert numbers('"tools/call" "result"', dialogue.transcript) == []


def test_a_repeated_answer_is_a_message_like_others() -> None:
    dialogue = Dialogue().client(request(1)).server(result(1)).server(result(1, {"again": 1}))
    assert numbers('kind:result "again"', dialogue.transcript) == [1]


def test_flaws_can_be_asked_for() -> None:
    dialogue = Dialogue().client(b'{"jsonrpc":"2.0","id":1,"method":"ping"}\r\n').client(request(2))
    assert numbers("flaw:crlf", dialogue.transcript) == [1]


def test_a_matcher_sees_rows_as_they_are_at_the_moment() -> None:
    transcriber = Transcriber()
    dialogue = Dialogue().client(request(1)).server(result(1))
    wanted = filter_of(["status:ok"])
    assert wanted is not None
    matcher = FilterMatcher(wanted, transcriber.transcript)
    decisions = [
        matcher.matches(row) for record in dialogue.records for row in transcriber.feed(record) if isinstance(row, Exchange)
    ]
    assert decisions == [False, True]


def test_a_matching_message_is_found_among_many_notifications() -> None:
    dialogue = Dialogue().client(tool_call(1, token="p"))
    for at in range(50):
        dialogue.server(progress("p", at))
    dialogue.server(notification("notifications/other"))
    assert numbers('kind:progress "49"', dialogue.transcript) == [1]
    assert numbers('kind:progress "50"', dialogue.transcript) == []


# --- Words, and what they cost ---


@pytest.mark.parametrize(
    ("glob", "text", "is_match"),
    [
        ("a*a", "a", False), ("a*a", "aa", True), ("*", "", True), ("?", "", False), ("**", "x", True), ("a**b", "ab", True),
        ("*a*b*", "xaxbx", True), ("*b*a*", "xaxbx", False), ("a*b*c", "abcbc", True), ("*ab", "aab", True), ("ab*ab", "ab", False),
        ("?*?", "x", False), ("?*?", "xy", True), ("a?c", "a\nc", True), ("*\n*", "a\nb", True), ("[a]", "a", False),
        ("[a]", "[a]", True),
        ("a.c", "abc", False), ("*.md", "x.md", True), ("*a?c*", "zabcz", True), ("*aab", "aaab", True), ("a*?b", "ab", False),
    ],
)  # fmt: skip
def test_a_glob_matches_as_a_shell_would(glob: str, text: str, is_match: bool) -> None:  # noqa: FBT001
    assert bool(words(glob)(text)) is is_match


HOSTILE = ["*a" * 60 + "*b", "*" * 500 + "b", "*?a" * 60 + "b", "a" + "*a" * 200 + "x", "*ab" * 100]


def seconds(glob: str, letters: int) -> float:
    matches, text = words(glob), "a" * letters
    best = 9.0
    for _ in range(3):
        began = time.process_time()
        matches(text)
        best = min(best, time.process_time() - began)
    return best


@pytest.mark.parametrize("glob", HOSTILE, ids=list(map(str, range(len(HOSTILE)))))
def test_a_hostile_glob_costs_time_in_proportion_to_the_text(glob: str) -> None:
    """Ten times the text takes about ten times as long; quadratic work would take a hundred times as long."""
    short_s, long_s = seconds(glob, 50_000), seconds(glob, 500_000)
    assert long_s < 40 * max(short_s, 0.0005)


@pytest.mark.parametrize(
    "expression",
    ['"' + "a" * 200_000, "(" * 200_000, "not " * 200_000, "tool:a " * 50_000, "tool:a or " * 50_000 + "tool:a", "x" * 200_000,
     "x" * 200_000 + ":1", 'tool:"' + '\\"' * 100_000, "dur>" + "9" * 200_000 + "s", "status:" + "e" * 200_000,
     "rule:" + "e" * 200_000],
    ids=list(map(str, range(11))),
)  # fmt: skip
def test_a_hostile_expression_is_read_or_refused_at_once(expression: str) -> None:
    began = time.process_time()
    with contextlib.suppress(FilterError):
        filter_of([expression])
    assert time.process_time() - began < 5


def test_an_error_quotes_no_more_of_a_long_value_than_a_sentence_holds() -> None:
    for expression in (
        "x" * 10_000,
        "x" * 10_000 + ":1",
        "dur>" + "x" * 10_000,
        "status:" + "x" * 10_000,
        "after:" + "x" * 10_000,
    ):
        with pytest.raises(FilterError) as caught:
            filter_of([expression])
        assert len(str(caught.value)) < 500


def test_a_filter_of_many_terms_is_evaluated_without_nesting() -> None:
    assert numbers(" ".join(["tool:search"] * 10_000), transcript("stdio")) == [3]
    assert numbers(" or ".join(["tool:search"] * 10_000), transcript("stdio")) == [3]


def test_fifty_parentheses_are_read_and_fifty_one_are_not() -> None:
    assert numbers("(" * 50 + "tool:search" + ")" * 50, transcript("stdio")) == [3]
    with pytest.raises(FilterError) as caught:
        filter_of(["(" * 51 + "tool:search" + ")" * 51])
    assert caught.value.column == 51


@pytest.mark.parametrize("code", ["-32601.5", '"x"', "null", "[]", "1e999", "9" * 400])
def test_a_code_that_is_no_code_does_no_harm(code: str) -> None:
    line = f'{{"jsonrpc":"2.0","id":1,"error":{{"code":{code},"message":"no"}}}}\n'
    dialogue = Dialogue().client(request(1)).server(line.encode())
    assert numbers("status:error", dialogue.transcript) == [1]
    assert numbers("status:-32601", dialogue.transcript) == []


def test_text_is_found_however_json_spells_it() -> None:
    for spelled in (json.dumps({"t": "é/“"}), '{"t":"\\u00E9\\/\\u201C"}', json.dumps({"t": "é/“"}, ensure_ascii=False)):
        params = f'{{"jsonrpc":"2.0","id":1,"method":"m","params":{spelled}}}\n'
        assert numbers('"é"', Dialogue().client(params.encode()).transcript) == [1]

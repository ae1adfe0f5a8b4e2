"""The place of a value in a live message: right, or not found."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.replay.client.correlate.run import live_steps, live_text
from mcpspy.replay.client.correlate.values import is_opaque, opaque_words
from mcpspy.replay.json_values import leaves, value_at

PIECES = [
    "Commit: ",
    "id ",
    "\n",
    "made ",
    "8f3a9c01",
    "run-",
    "/",
    ".",
    ":",
    "x1 ",
    "7",
    "a",
    ", ",
    "(",
    ")",
    "\r\n",
    "é",
    "-",
    "_",
    "  ",
]
TEXTS = st.lists(st.sampled_from(PIECES), max_size=12).map("".join)
RECORDED = st.sampled_from(["b1c2d3e4", "b1c2-d3e4", "h1", "p b", "x/y"])
LIVE = st.sampled_from(["77de0123", "zz-11", "q"])


@given(TEXTS, TEXTS, RECORDED, LIVE)
def test_a_value_in_a_text_is_the_live_one_or_none(before: str, after: str, recorded: str, live: str) -> None:
    if recorded in before + after or live in before + after or before[-1:].isalnum() or after[:1].isalnum():
        return
    value = live_text(before + recorded + after, before + live + after, len(before), len(before) + len(recorded))
    assert value in (live, None)


@pytest.mark.parametrize(
    ("recorded", "live", "expected"),
    [
        ("Opened {8f3a9c01}.", "Opened 77de0123.", "77de0123"),
        ("Opened {8f3a9c01} at 12:01", "Opened 77de0123 at 13:37", "77de0123"),
        ("Commit: a1\nCommit: {b2}\n", "Commit: c3\nCommit: d4\n", "d4"),
        ("Commit: a1\nCommit: {b2}\n", "Commit: c3\nCommit: d4\nCommit: e5\n", None),
        ("Note {8f3a9c01} is yours", "Note 77de0123 belongs to you", "77de0123"),
        ("{8f3a9c01} is yours", "77de0123 belongs to you", None),
        ("Opened {8f3a9c01}.", "It failed.", None),
        ("first\r\nid: {b2}\r\n", "first\r\nid: d4\r\n", "d4"),
    ],
)
def test_a_value_is_found_by_the_words_of_its_line(recorded: str, live: str, expected: str | None) -> None:
    start, end = recorded.index("{"), recorded.index("}") - 1
    assert live_text(recorded.replace("{", "").replace("}", ""), live, start, end) == expected


@pytest.mark.parametrize("word", ["8f3a9c01", "550e8400-e29b-41d4-a716-446655440000", "redacted-0123456789ab", "run-8f3a9c01",
                                  "sess_01HXYZ3K9", "123456789012", "deadbee0"])  # fmt: skip
def test_it_is_opaque(word: str) -> None:
    assert is_opaque(word)


@pytest.mark.parametrize("word", ["1", "h1", "report2026", "get_user_v2", "2026-11-21", "deadbeef", "1234567890", "ISO8601",
                                  "utf8mb4_general", "tool-calls-2-of-10"])  # fmt: skip
def test_it_could_be_anything(word: str) -> None:
    assert not is_opaque(word)


@given(st.text(max_size=80))
def test_opaque_words_are_parts_of_their_text_and_opaque(text: str) -> None:
    for span in opaque_words(text):
        assert text[span.start : span.end] == span.text
        assert is_opaque(span.text)


VALUES = st.recursive(
    st.integers() | st.text(max_size=5) | st.sampled_from(['{"a":[1,2]}', "[1]"]),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.sampled_from(["a", "b", "text", "id"]), inner, max_size=4),
    max_leaves=15,
)


@given(VALUES, VALUES)
def test_every_place_of_a_message_is_found_in_the_same_message(recorded: Any, live: Any) -> None:
    for steps, leaf in leaves(recorded, into_texts=True):
        assert value_at(recorded, steps) == leaf
        assert live_steps(recorded, recorded, steps) == steps
        live_steps(recorded, live, steps)

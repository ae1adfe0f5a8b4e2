"""Properties of all filters and transcripts, tested with generated ones."""

import contextlib
import fnmatch
import re
from datetime import UTC

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from mcpspy.errors import FilterError
from mcpspy.records import Record
from mcpspy.transcript.filter.filter import FilterMatcher, filter_of, filter_rows
from mcpspy.transcript.filter.grammar import AllOf, AnyOf, Filter, Node, Not, Term, Text
from mcpspy.transcript.filter.keys import KEYS
from mcpspy.transcript.filter.values import words
from mcpspy.transcript.model import Exchange
from mcpspy.transcript.transcribe import transcribe
from tests.transcript.test_properties import ANY_RECORDS, CAPTURES

OPERATORS = st.sampled_from([":", ">", ">=", "<", "<=", "=", "!="])
VALUES = st.sampled_from(
    [
        "1", "1..2", "2s", "1s..2h", "1kb", "*", "a*", "?", "ok", "error", "-32601", "-*", "failed", "client", "→", "request",
        "noise", "event", "legacy", "stdio", "sse", "4xx", "401", "POST", "/mcp*", "+1us",
        "12:30", "2001-09-09", "2001-09-09T01:46:40Z",
        "stdout-noise", "*-*", '"a b"', '"\\""',
    ]
)  # fmt: skip
LEAVES = st.one_of(
    st.builds(lambda key, operator, value: f"{key}{operator}{value}", st.sampled_from(list(KEYS)), OPERATORS, VALUES),
    st.sampled_from([key.example for key in KEYS.values()]),
    st.text(max_size=5).map(lambda text: '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'),
)
EXPRESSIONS = st.recursive(
    LEAVES,
    lambda parts: st.one_of(
        parts.map(lambda part: f"not {part}"),
        parts.map(lambda part: f"({part})"),
        st.builds(lambda part, other: f"{part} {other}", parts, parts),
        st.builds(lambda part, other: f"{part} and {other}", parts, parts),
        st.builds(lambda part, other: f"{part} or {other}", parts, parts),
    ),
    max_leaves=6,
)
ANY_TEXT = st.text(st.sampled_from('ab:"()<>=!*?\\ \n.0123m→') | st.characters(), max_size=40)
TEXT_LEAVES = st.builds(lambda text: Text(text=text), st.text(min_size=1, max_size=5))
TERM_LEAVES = st.sampled_from(
    [Term(key="tool", operator=":", value="a*"), Term(key="row", operator=">=", value="2")]
) | st.builds(lambda text: Term(key="tool", operator=":", value=text, is_quoted=True), st.text(min_size=1, max_size=5))


def joined(kind: type[AllOf | AnyOf], parts: list[Node]) -> Node:
    """Return the parts as a parsed tree has them: none of the same kind directly within it."""
    return kind(parts=tuple(inner for part in parts for inner in (part.parts if isinstance(part, kind) else (part,))))


TREES: st.SearchStrategy[Node] = st.recursive(
    TEXT_LEAVES | TERM_LEAVES,
    lambda parts: st.one_of(
        parts.map(lambda part: Not(part=part)),
        st.lists(parts, min_size=2, max_size=4).map(lambda several: joined(AllOf, several)),
        st.lists(parts, min_size=2, max_size=4).map(lambda several: joined(AnyOf, several)),
    ),
    max_leaves=8,
)


def read(expression: str) -> Filter | None:
    with contextlib.suppress(FilterError):
        return filter_of([expression])
    return None


@given(ANY_TEXT | EXPRESSIONS)
def test_any_text_is_a_filter_or_a_filter_error_that_points_into_it(text: str) -> None:
    if read(text) is None:
        with pytest.raises(FilterError) as caught:
            filter_of([text])
        error = caught.value
        assert 1 <= error.column <= len(text) + 1
        assert error.reason
        assert error.advice


@given(ANY_TEXT | EXPRESSIONS)
def test_a_filter_that_is_printed_and_read_again_is_the_same(text: str) -> None:
    wanted = read(text)
    assume(wanted is not None)
    assert filter_of([str(wanted)]) == wanted


@given(TREES)
def test_every_tree_can_be_printed_and_read_again(tree: Node) -> None:
    assert filter_of([str(tree)]) == Filter(tree)


@given(EXPRESSIONS, CAPTURES | ANY_RECORDS)
def test_no_filter_raises_on_any_transcript_or_changes_the_order_of_rows(expression: str, records: list[Record]) -> None:
    wanted = read(expression)
    assume(wanted is not None)
    assert wanted is not None
    transcript = transcribe(records)
    rows = filter_rows(wanted, transcript, transcript.rows, UTC)
    shown = {id(row) for row in rows.rows}
    assert rows.rows == [row for row in transcript.rows if id(row) in shown]
    assert rows.matching <= rows.total


@given(LEAVES, CAPTURES)
def test_a_row_without_exchange_matches_a_term_or_its_negation_and_never_both(expression: str, records: list[Record]) -> None:
    plain, negated = read(expression), read(f"not {expression}")
    assume(plain is not None and negated is not None)
    assert plain is not None
    assert negated is not None
    transcript = transcribe(records)
    matchers = [FilterMatcher(chosen, transcript, UTC) for chosen in (plain, negated)]
    for row in transcript.rows:
        decisions = [matcher.matches(row) for matcher in matchers]
        assert any(decisions)
        assert isinstance(row, Exchange) or not all(decisions)


@given(st.text("ab*?\n", max_size=12), st.text("ab\n", max_size=12))
def test_words_match_as_fnmatch_says(glob: str, text: str) -> None:
    assert bool(words(glob)(text)) is bool(re.fullmatch(fnmatch.translate(glob), text))

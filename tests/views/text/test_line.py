"""Lines are the same text on a pipe and on a terminal, and fit where they must."""

import re

from hypothesis import given
from hypothesis import strategies as st

from mcpspy.views.text.escape import safe_text
from mcpspy.views.text.line import PALETTE, Line, broken, coloured, fitted, joined, lane_style, line_cells, plain

lines = st.lists(st.tuples(st.text(max_size=12).map(safe_text), st.sampled_from(sorted(PALETTE))), max_size=6)


@given(lines)
def test_colours_do_not_change_the_text(line: Line) -> None:
    assert re.sub(r"\x1b\[[\d;]*m", "", coloured(line)).rstrip() == plain(line).rstrip()


def test_a_plain_line_has_no_escape_sequence() -> None:
    assert plain([("error", "bad"), (" ", "")]) == "error"


def test_an_empty_style_has_no_escape_sequence() -> None:
    assert coloured([("ok", "")]) == "ok"


@given(lines, st.integers(0, 40))
def test_a_fitted_line_never_exceeds_its_limit(line: Line, limit: int) -> None:
    assert line_cells(fitted(line, limit)) <= limit


@given(lines)
def test_a_line_without_a_limit_is_not_cut(line: Line) -> None:
    assert fitted(line, None) == line


def test_a_cut_line_ends_in_an_ellipsis() -> None:
    assert plain(fitted([("12345", ""), ("678", "dim")], 5)) == "1234…"


@given(lines, st.integers(4, 40))
def test_a_broken_line_loses_blanks_alone_and_no_part_that_has_one_exceeds_the_limit(line: Line, limit: int) -> None:
    parts = broken(line, limit)
    texts = ["".join(text for text, _ in line).replace(" ", "") for line in (*parts, line)]
    assert "".join(texts[:-1]) == texts[-1]
    assert all(line_cells(part) <= limit or len(part) <= 2 for part in parts)


def test_a_broken_line_is_indented() -> None:
    parts = broken([("  name", "key"), ("  is wrapped, at a port", "dim")], 14)
    assert [plain(part) for part in parts] == ["  name  is", "    wrapped,", "    at a port"]


def test_lines_are_joined_with_a_separator() -> None:
    assert plain(joined([[("a", "")], [("b", "")]], (" · ", "dim"))) == "a · b"


def test_every_lane_has_a_style() -> None:
    assert all(lane_style(index) in PALETTE for index in range(40))

"""Text is measured, cut, padded and broken in cells, not in letters."""

from hypothesis import given
from hypothesis import strategies as st

from mcpspy.views.text.cells import cells, chopped, cut, padded, padded_left, wrapped
from mcpspy.views.text.escape import safe_text

safe = st.text(alphabet="ab 天気é\u0301🎉❤\ufe0f…", max_size=40) | st.text().map(safe_text)
width = st.integers(2, 30)


def test_a_wide_letter_takes_two_cells_and_a_combining_mark_none() -> None:
    assert (cells("天気"), cells("e\u0301"), cells("abc")) == (4, 1, 3)


def test_text_that_fits_is_not_cut() -> None:
    assert cut("天気", 4) == "天気"


def test_text_that_does_not_fit_ends_in_an_ellipsis() -> None:
    assert (cut("天気予報", 4), cut("weather", 4), cut("weather", 1), cut("weather", 0)) == ("天…", "wea…", "…", "")


def test_text_is_padded_to_its_cells() -> None:
    assert (padded("天気", 6), padded_left("天気", 6), padded("weather", 3)) == ("天気  ", "  天気", "weather")


def test_text_is_broken_at_spaces_and_the_last_line_is_cut() -> None:
    text = "the station did not answer within ten seconds"
    assert wrapped(text, 16, 2) == ["the station did", "not answer with…"]


@given(safe, width)
def test_cut_text_never_exceeds_its_limit(text: str, limit: int) -> None:
    assert cells(cut(text, limit)) <= limit


@given(safe, width)
def test_chopped_text_is_the_text_in_pieces_that_fit(text: str, limit: int) -> None:
    pieces = chopped(text, limit)
    assert "".join(pieces) == text
    assert all(cells(piece) <= limit for piece in pieces)


@given(safe, width, st.integers(1, 4))
def test_wrapped_text_keeps_to_its_lines_and_its_width(text: str, limit: int, lines: int) -> None:
    made = wrapped(text, limit, lines)
    assert 1 <= len(made) <= lines
    assert all(cells(line) <= limit for line in made)

"""The benchmark of filters measures filters: on the transcript that it says, and by what they let through."""

import pytest

from benchmarks.filters import FILTERS, cost, transcript
from mcpspy.transcript.model import Exchange, Transcript


@pytest.fixture(scope="module")
def small() -> Transcript:
    return transcript(100)


def test_half_of_the_messages_are_calls_that_are_answered(small: Transcript) -> None:
    rows = [row for row in small.rows if isinstance(row, Exchange) and row.response is not None]
    assert (len(rows), small.captures[0].messages) == (50, 100)


@pytest.mark.parametrize("expression", FILTERS)
def test_every_filter_takes_time_and_lets_all_rows_through_or_none(expression: str, small: Transcript) -> None:
    us, rows = cost(expression, small, 1)
    assert us > 0
    assert rows in (0, 50)

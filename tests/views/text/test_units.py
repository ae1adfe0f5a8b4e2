"""Times, sizes and counts are spelled with units, and never exceed their column."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.views.text.columns import SIZE_CELLS, TOOK_CELLS
from mcpspy.views.text.units import counted, duration, seconds, size

S = 1_000_000_000


@pytest.mark.parametrize(
    ("at_ns", "shown"), [(0, "0.000"), (999_999, "0.000"), (12_345_678_901, "12.345"), (3_600 * S, "3600.000"), (-1, "-0.001")]
)
def test_a_point_in_time_is_in_seconds_to_the_millisecond(at_ns: int, shown: str) -> None:
    assert seconds(at_ns) == shown


@pytest.mark.parametrize(
    ("lasted_ns", "shown"),
    [
        (0, "0 µs"),
        (340_200, "340 µs"),
        (999_499, "999 µs"),
        (999_500, "1.00 ms"),
        (9_994_999, "9.99 ms"),
        (12_000_000, "12.0 ms"),
        (999_499_999, "999 ms"),
        (999_500_000, "1.00 s"),
        (99_940_000_000, "99.9 s"),
        (4_210 * S, "4210 s"),
        (11_160 * S, "3.1 h"),
        (-5_000, "-5 µs"),
    ],
)
def test_a_duration_has_three_digits_and_a_unit(lasted_ns: int, shown: str) -> None:
    assert duration(lasted_ns) == shown


@pytest.mark.parametrize(
    ("count", "shown"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1_000, "1.0 kB"),
        (9_949, "9.9 kB"),
        (9_950, "10 kB"),
        (999_499, "999 kB"),
        (999_500, "1.0 MB"),
    ],
)
def test_a_size_is_in_powers_of_a_thousand(count: int, shown: str) -> None:
    assert size(count) == shown


@given(st.integers(0, 900 * 3_600 * S))
def test_a_duration_fits_into_its_column(lasted_ns: int) -> None:
    assert len(duration(lasted_ns)) <= TOOK_CELLS


@given(st.integers(0, 10**12))
def test_a_size_fits_into_its_column(count: int) -> None:
    assert len(size(count)) <= SIZE_CELLS


def test_one_is_singular() -> None:
    assert (counted(1, "call"), counted(2, "call"), counted(1234, "reply", "replies")) == ("1 call", "2 calls", "1,234 replies")

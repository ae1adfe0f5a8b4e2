"""The search for the smallest sequence: its result, and the number of runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.replay.shrink import Shrinker

if TYPE_CHECKING:
    from mcpspy.replay.shrink import Rows

Needs = dict[int, frozenset[int]]
Happens = Callable[[frozenset[int]], "bool | None"]


def shrunk(rows: range, happens: Happens, needs: Needs | None = None, max_runs: int = 10_000) -> tuple[Shrinker, list[Rows]]:
    """Run the search to its end; return it, and all runs."""
    shrinker = Shrinker(rows, lambda row: (needs or {}).get(row, ()), max_runs=max_runs)
    ran: list[Rows] = []
    while (some := shrinker.next()) is not None:
        ran.append(some)
        shrinker.take(happened=happens(frozenset(some)))
    return shrinker, ran


def test_all_of_the_requests_are_run_first() -> None:
    assert Shrinker(range(1, 5), lambda _: (), max_runs=1).next() == (1, 2, 3, 4)


def test_what_does_not_happen_with_all_is_not_looked_for() -> None:
    shrinker, ran = shrunk(range(60), lambda _: False)
    assert (shrinker.best, shrinker.is_minimal, len(ran)) == (None, False, 1)


def test_what_happens_without_any_request_takes_none() -> None:
    shrinker, ran = shrunk(range(60), lambda _: True)
    assert (shrinker.best, shrinker.is_minimal, len(ran)) == ((), True, 2)


@pytest.mark.parametrize(("of", "limit"), [({7, 33, 58}, 26), ({0}, 10), ({59}, 10), ({57, 58, 59}, 20), ({0, 1, 2}, 16)])
def test_three_of_sixty_requests_are_found_in_few_runs(of: set[int], limit: int) -> None:
    shrinker, ran = shrunk(range(60), lambda rows: of <= rows)
    assert shrinker.best == tuple(sorted(of))
    assert len(ran) <= limit


def test_where_it_happened_saves_the_search_for_the_end() -> None:
    shrinker = Shrinker(range(60), lambda _: (), max_runs=100)
    shrinker.take(happened=True, at=33)
    shrinker.take(happened=False)
    assert shrinker.next() == tuple(range(34))


def test_a_request_keeps_those_that_it_needs() -> None:
    shrinker, ran = shrunk(range(20), lambda rows: 15 in rows, {15: frozenset({3}), 3: frozenset({1})})
    assert shrinker.best == (1, 3, 15)
    assert all({1, 3} <= {*some} for some in ran if 15 in some)


def test_a_run_that_says_nothing_is_no_proof() -> None:
    shrinker, _ = shrunk(range(8), lambda rows: None if len(rows) == 1 else {2, 5} <= rows)
    assert shrinker.best == (2, 5)
    assert shrinker.unresolved > 0


CONDITIONS = st.integers(0, 2**32).map(lambda seed: lambda rows: hash((seed, *sorted(rows))) % 3 != 0)
"""Conditions that are almost random: fewer requests may meet them where more do not."""

WANTED = st.sets(st.integers(0, 24), max_size=6)


@st.composite
def _needs(draw: st.DrawFn) -> Needs:
    """Draw the rows that each row needs: earlier ones, with all that these need."""
    needs: Needs = {}
    for row in range(1, 25):
        direct = draw(st.sets(st.integers(0, row - 1), max_size=2)) if draw(st.integers(0, 3)) == 0 else set()
        needs[row] = frozenset(direct).union(*(needs.get(item, frozenset()) for item in direct))
    return needs


def _is_closed(rows: frozenset[int], needs: Needs) -> bool:
    return all(needs.get(row, frozenset()) <= rows for row in rows)


def _without(rows: frozenset[int], row: int, needs: Needs) -> frozenset[int]:
    return frozenset(item for item in rows if item != row and row not in needs.get(item, ()))


@given(st.integers(1, 25), st.one_of(CONDITIONS, WANTED.map(lambda wanted: lambda rows: wanted <= rows)), _needs())
def test_what_is_left_happens_and_without_any_one_of_it_does_not(count: int, happens: Happens, needs: Needs) -> None:
    shrinker, ran = shrunk(range(count), happens, needs)
    assert len(ran) == len(set(ran)) == shrinker.runs
    assert all(_is_closed(frozenset(some), needs) for some in ran)
    if not happens(frozenset(range(count))):
        assert shrinker.best is None
        return
    assert shrinker.is_minimal
    left = frozenset(shrinker.best or ())
    assert happens(left)
    assert not any(happens(_without(left, row, needs)) for row in left)


@given(st.integers(1, 25), WANTED, _needs())
def test_what_is_left_is_all_that_matters_and_what_that_needs(count: int, wanted: set[int], needs: Needs) -> None:
    here = {row for row in wanted if row < count}
    shrinker, _ = shrunk(range(count), lambda rows: here <= rows, needs)
    assert {*(shrinker.best or ())} == here.union(*(needs.get(row, frozenset()) for row in here))


@given(st.integers(1, 25), CONDITIONS, _needs(), st.integers(1, 30))
def test_it_never_takes_more_runs_than_it_may(count: int, happens: Happens, needs: Needs, max_runs: int) -> None:
    shrinker, ran = shrunk(range(count), happens, needs, max_runs)
    assert len(ran) <= max_runs
    assert shrinker.best is None or frozenset(shrinker.best) in {frozenset(some) for some in ran if happens(frozenset(some))}

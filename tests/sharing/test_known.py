"""Values that are known to be secret: the longest one is replaced where it begins, in time that does not depend on their number."""

import time

from hypothesis import given
from hypothesis import strategies as st

from mcpspy.sharing.known import KnownValues
from tests.sharing.hiding import pseudonym

FEW, MANY = 500, 4_000
MOST_TIMES_AS_LONG = 20
"""Eight times as many values take eight times as long; were each compared with each, it would be sixty-four times."""


def known(values: list[str]) -> KnownValues:
    made = KnownValues(pseudonym)
    for value in values:
        made.add(value.encode(), telling=True)
    made.close()
    return made


values_that_begin_alike = st.text("ab", max_size=5).map(lambda end: "ghp_012345678" + end)


@given(st.lists(values_that_begin_alike, max_size=8), st.lists(values_that_begin_alike | st.sampled_from("ab g"), max_size=8))
def test_the_longest_value_is_replaced_where_it_begins(values: list[str], texts: list[str]) -> None:
    text = "".join(texts)
    expected = []
    at = 0
    while at < len(text):
        length = max((len(value) for value in values if text.startswith(value, at)), default=0)
        if length:
            expected.append((at, at + length, pseudonym(text[at : at + length].encode())))
        at += length or 1
    assert [(edit.start, edit.end, edit.new) for edit in known(values).edits(text.encode())] == expected


def test_values_that_begin_alike_are_found_in_time_that_grows_in_proportion() -> None:
    few_s = min(processor_s(FEW) for _ in range(3))
    many_s = [processor_s(MANY)]
    while many_s[-1] > MOST_TIMES_AS_LONG * few_s and len(many_s) < 4:  # a processor that others use too is slow at times
        many_s.append(processor_s(MANY))
    assert min(many_s) < MOST_TIMES_AS_LONG * few_s


def processor_s(count: int) -> float:
    values = [f"eyJhbGciOiJIUzI1NiJ9.{number:020}" for number in range(count)]
    search = known(values)
    start = time.process_time()
    assert sum(len(list(search.edits(f"the token is {value}, again".encode()))) for value in values) == count
    return time.process_time() - start

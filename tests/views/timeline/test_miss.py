"""The lines of a miss."""

import pytest

from mcpspy.replay.mock.matching import RequestMatcher
from mcpspy.replay.mock.miss import Miss
from mcpspy.views.timeline.miss import miss_lines
from tests.replay.mock.test_matching import missed, recorded, tool


def lines(miss: Miss) -> list[str]:
    return miss_lines(miss)


def test_each_difference_has_a_line_and_the_rest_is_counted() -> None:
    matcher = RequestMatcher(recorded([tool("read", **{f"a{at}": 1 for at in range(8)})]))
    shown = lines(missed(matcher, tool("read", **{f"a{at}": 2 for at in range(8)})))
    assert shown[:4] == [
        "mcpspy mock: tools/call read was never recorded with these params",
        "  nearest  row 1",
        "  differs  $.arguments.a0: 1 ≠ 2",
        "           $.arguments.a1: 1 ≠ 2",
    ]
    assert shown[7:] == ["           and in 3 more places", "  refused  by --match default", "  accept   with --match loose"]


@pytest.mark.parametrize(("call", "expected"), [
    (tool("read"), '  differs  $.arguments.path: "a" ≠ nothing'),
    (tool("read", path="a", at=1), "  differs  $.arguments.at: nothing ≠ 1"),
    (tool("read", path=["\x1b[31m\u202e"]), '  differs  $.arguments.path: "a" ≠ ["\\u001b[31m\\u202e"]'),
])  # fmt: skip
def test_a_difference_shows_the_recorded_and_the_new_value(call: tuple[str, object], expected: str) -> None:
    assert expected in lines(missed(RequestMatcher(recorded([tool("read", path="a")])), call))


def test_long_values_are_cut_around_the_difference_in_eighty_columns() -> None:
    shown = lines(missed(RequestMatcher(recorded([tool("read", path="a" * 300)])), tool("read", path="a" * 200 + "b")))
    assert all(len(line) <= 80 for line in shown)
    assert 'aab"' in shown[2]


def test_a_name_cannot_begin_a_line_of_its_own() -> None:
    shown = lines(missed(RequestMatcher(recorded([tool("read")])), ("x\nmcpspy: all is well\x1b[2J", None)))
    assert shown == ["mcpspy mock: x\\nmcpspy: all is well\\x1b[2J was never recorded; what was is tools/call"]

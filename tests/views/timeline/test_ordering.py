"""Rows by what they cost, and calls without an answer, which cost their whole wait."""

import pytest

from mcpspy.transcript.filter.filter import FilterMatcher, filter_of
from mcpspy.transcript.model import Exchange, Transcript
from mcpspy.transcript.waiting import waited_ns
from mcpspy.views.text.line import plain
from mcpspy.views.timeline.ordering import Order
from mcpspy.views.timeline.timeline import timeline
from tests.transcript.dialogue import Dialogue, result
from tests.views.scenes import call, opened

SECOND_NS = 1_000_000_000


def scene() -> Dialogue:
    """Three calls: a fast one with a large result, a slow one, and one that nobody answers for three seconds."""
    made = opened("x").client(call(1, "large")).server(result(1, {"content": [{"type": "text", "text": "many words " * 90}]}))
    made.client(call(2, "slow")).wait(1_500).server(result(2, {"content": []}))
    return made.client(call(3, "silent")).wait(3_000).closes()


def tools(transcript: Transcript, order: Order) -> list[str]:
    lines = [plain(line) for line in timeline(transcript, order=order)]
    return [line.split("tools/call ")[1].split()[0] for line in lines if "tools/call" in line and line[:3].strip().isdecimal()]


@pytest.mark.parametrize(
    ("order", "first"),
    [(Order.TOOK, ["silent", "slow", "large"]), (Order.SIZE, ["large"]), (Order.TOKENS, ["large", "slow"])],
)
def test_the_rows_with_the_highest_figure_come_first(order: Order, first: list[str]) -> None:
    assert tools(scene().transcript, order)[: len(first)] == first


def test_tokens_have_a_column_when_rows_are_sorted_by_them() -> None:
    header = next(plain(line) for line in timeline(scene().transcript, order=Order.TOKENS) if plain(line).startswith("row"))
    assert header.split()[4] == "tokens"


def test_a_call_without_an_answer_waited_until_the_end_and_does_not_read_as_answered() -> None:
    line = next(plain(line) for line in timeline(scene().transcript) if "silent" in plain(line))
    assert "≥ 3.0 s" in line


def test_dur_finds_calls_that_waited_longer_whether_or_not_they_were_answered() -> None:
    transcript = scene().transcript
    chosen = filter_of(["dur>2s"])
    assert chosen is not None
    matcher = FilterMatcher(chosen, transcript)
    assert [row.target for row in transcript.exchanges if matcher.matches(row)] == ["silent"]


def test_a_pending_call_has_waited_until_now_while_its_capture_is_recorded() -> None:
    transcript = opened("x").client(call(1, "silent")).transcript
    row, info = next(row for row in transcript.rows if isinstance(row, Exchange)), transcript.captures[0]
    info.closed, info.now_ns = False, row.at_ns + 7 * SECOND_NS
    assert waited_ns(row, info) == 7 * SECOND_NS


def test_nobody_waits_for_an_answer_when_the_client_has_left() -> None:
    transcript = opened("x").client(call(1, "silent")).wait(1_999).client_leaves().wait(5_000).exits().ends().transcript
    row = next(row for row in transcript.rows if isinstance(row, Exchange) and row.target == "silent")
    assert waited_ns(row, transcript.captures[0]) == 2 * SECOND_NS


def test_what_was_not_answered_has_the_same_wait_before_its_capture_has_ended_and_after() -> None:
    transcript = opened("x").client(call(1, "silent")).wait(1_999).client_leaves().wait(10).exits().ends().transcript
    row, info = next(row for row in transcript.rows if isinstance(row, Exchange)), transcript.captures[0]
    info.closed, info.now_ns = False, row.at_ns + SECOND_NS  # the clock was last looked at before the client left
    assert waited_ns(row, info) == 2 * SECOND_NS

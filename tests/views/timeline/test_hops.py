"""A session through a gateway, tapped on both sides, on the screen and as a diagram."""

import json
from datetime import UTC

import pytest

from mcpspy.replay.compare.gateway import GatewayComparison, compared_gateway
from mcpspy.transcript.model import Transcript
from mcpspy.views.compare.side_by_side import gateway_json, gateway_lines
from mcpspy.views.sequence.ladder import ladder
from mcpspy.views.sequence.layout import diagram
from mcpspy.views.text.line import plain
from mcpspy.views.timeline.timeline import timeline
from tests.transcript.test_hops import CLIENT, GATEWAY, Step, capture, joined
from tests.views.golden import same_as_golden


def session() -> Transcript:
    """Make one with a renamed tool, an argument and an answer that changed, progress that was dropped, and a second try."""
    outer = capture(
        "gateway", CLIENT, Step(10, 30, 1, "demo_echo"), Step(40, 60, 2, "demo_echo", answer="HELLO", notifies=True),
        Step(70, 99, 3, "demo_echo", text="again"), greets=True,
    )  # fmt: skip
    inner = capture(
        "server", GATEWAY, Step(15, 25, 1), Step(45, 55, 2, notifies=True), Step(72, 75, 3, text="again"),
        Step(80, 90, 4, text="again"), greets=True,
    )  # fmt: skip
    return joined(outer, inner)


@pytest.mark.parametrize("width", [80, 200])
def test_a_gateway_looks_as_it_did(width: int) -> None:
    same_as_golden(f"hops-{width}", timeline(session(), width=width, zone=UTC))


@pytest.mark.parametrize("width", [80, 200])
def test_a_gateway_is_a_lane_of_the_ladder(width: int) -> None:
    transcript = session()
    same_as_golden(f"hops-ladder-{width}", ladder(diagram(transcript, transcript.rows), width=width))


def compared(*, keeps_token: bool) -> GatewayComparison:
    outer = capture("gateway", CLIENT, Step(10, 30, 1, answer="HELLO", notifies=True), Step(40, 60, 2, text="again"))
    inner = capture("server", GATEWAY, Step(15, 25, 1, notifies=keeps_token), Step(45, 55, 2, text="again"))
    comparison = compared_gateway(joined(outer, inner))
    assert comparison is not None
    return comparison


def test_diff_of_the_hops_shows_both_values_of_what_the_gateway_changed() -> None:
    comparison = compared(keeps_token=True)
    assert any('"hello" ≠ "HELLO"' in plain(line) for line in gateway_lines(comparison))
    (row,) = json.loads(gateway_json(comparison))["rows"]
    (change,) = row["changed_answer"]
    assert (change["before"], change["after"], row["changed_params"]) == ("hello", "HELLO", [])


def test_diff_of_the_hops_names_a_progress_token_that_was_left_out() -> None:
    (row,) = [row for row in compared(keeps_token=False).rows if row.params]
    assert [(change.path, change.how) for change in row.params.listed] == [("$._meta.progressToken", "removed")]

"""Streams of a server without sessions that clients resume across a gap: what is missing is nobody's fault."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.transcript.dialogue import result
from tests.transcript.traffic import Call, Traffic, initialize, opened_session

if TYPE_CHECKING:
    from collections.abc import Callable

LIST = {"jsonrpc": "2.0", "id": 7, "method": "tools/list", "params": {"_meta": {"progressToken": "p"}}}
NEXT = {"jsonrpc": "2.0", "id": 8, "method": "tools/list"}
PROGRESS = {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": "p", "progress": 1}}
LATER = {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": "p", "progress": 2}}
ASKED = {
    "jsonrpc": "2.0",
    "id": "s1",
    "method": "elicitation/create",
    "params": {"message": "?", "requestedSchema": {"type": "object"}},
}
TOOLS = result(7, {"tools": []})


def begun() -> Traffic:
    traffic = Traffic()
    handshake = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}
    traffic.post(initialize(0, "claude-code", "elicitation")).answer(200, result(0, handshake))
    traffic.post({"jsonrpc": "2.0", "method": "notifications/initialized"}, Mcp_Protocol_Version="2025-11-25").answer(202)
    return traffic


def post(traffic: Traffic, message: object = LIST) -> Call:
    return traffic.post(message, Mcp_Protocol_Version="2025-11-25")


def resumed(traffic: Traffic, last: str) -> Call:
    return traffic.get(Last_Event_Id=last, Mcp_Protocol_Version="2025-11-25")


def broken_off() -> Traffic:
    """Break off a call's stream after its first event."""
    traffic = begun()
    post(traffic).stream().event(PROGRESS, id="e1").close()
    return traffic


def the_events_before_the_end() -> Traffic:
    traffic = begun()
    call = post(traffic).stream().event(PROGRESS, id="e1")
    traffic.gap()
    call.close()
    resumed(traffic, "e2").stream().event(TOOLS, id="e3").close()
    return traffic


def the_end_of_the_first_stream() -> Traffic:
    traffic = begun()
    post(traffic).stream().event(PROGRESS, id="e1")
    traffic.gap()
    resumed(traffic, "e2").stream().event(TOOLS, id="e3").close()
    return traffic


def the_end_after_the_event_that_is_resumed() -> Traffic:
    traffic = begun()
    post(traffic).stream().event(PROGRESS, id="e1")
    traffic.gap()
    resumed(traffic, "e1").stream().event(TOOLS, id="e3").close()
    return traffic


def the_whole_call() -> Traffic:
    traffic = begun().gap()
    resumed(traffic, "e2").stream().event(LATER, id="e3").event(TOOLS, id="e4").close()
    return traffic


def the_whole_call_and_a_question() -> Traffic:
    traffic = begun().gap()
    stream = resumed(traffic, "e2").stream().event(ASKED, id="e3")
    post(traffic, {"jsonrpc": "2.0", "id": "s1", "result": {"action": "decline"}}).answer(202)
    stream.event(TOOLS, id="e4").close()
    return traffic


def the_head_of_the_stream() -> Traffic:
    traffic = begun()
    post(traffic)
    traffic.gap()
    resumed(traffic, "e1").stream().event(TOOLS, id="e2").close()
    return traffic


def between_the_streams() -> Traffic:
    traffic = broken_off().gap()
    resumed(traffic, "e1").stream().event(TOOLS, id="e2").close()
    return traffic


def an_earlier_resumption() -> Traffic:
    traffic = broken_off().gap()
    resumed(traffic, "e2").stream().event(TOOLS, id="e3").close()
    return traffic


def the_rest_of_the_second_stream() -> Traffic:
    traffic = broken_off()
    stream = resumed(traffic, "e1").stream().event(LATER, id="e2")
    traffic.gap()
    stream.close()
    return traffic


def the_answer_on_the_second_stream() -> Traffic:
    traffic = broken_off()
    stream = resumed(traffic, "e1").stream()
    traffic.gap()
    stream.close()
    return traffic


def the_answer_and_then_another_call() -> Traffic:
    traffic = the_answer_on_the_second_stream()
    post(traffic, NEXT).answer(200, result(8, {"tools": []}))
    return traffic


def all_that_followed_the_first_stream() -> Traffic:
    return broken_off().gap()


def all_that_followed_and_another_call() -> Traffic:
    traffic = broken_off().gap()
    post(traffic, NEXT).answer(200, result(8, {"tools": []}))
    return traffic


def a_third_stream() -> Traffic:
    traffic = broken_off()
    resumed(traffic, "e1").stream().event(LATER, id="e2").close()
    traffic.gap()
    resumed(traffic, "e3").stream().event(TOOLS, id="e4").close()
    return traffic


def a_resumption_that_the_server_refuses() -> Traffic:
    traffic = begun()
    call = post(traffic).stream().event(PROGRESS, id="e1")
    traffic.gap()
    call.close()
    resumed(traffic, "e2").answer(404)
    return traffic


def a_resumption_that_the_client_leaves() -> Traffic:
    traffic = broken_off()
    stream = resumed(traffic, "e1").stream()
    traffic.gap()
    stream.close("client", "broken")
    return traffic


def two_streams_with_the_same_ids() -> Traffic:
    traffic = begun()
    calls = post(traffic).stream().event(PROGRESS, id="e1"), post(traffic, NEXT).stream().event(id="e1", data="")
    traffic.gap()
    for call in calls:
        call.close()
    resumed(traffic, "e1").stream().event(TOOLS, id="e2").close()
    return traffic


def a_second_stream_that_breaks_off() -> Traffic:
    traffic = broken_off()
    resumed(traffic, "e1").stream().event(LATER, id="e2").close()
    return traffic.gap()


def an_event_that_comes_again() -> Traffic:
    traffic = broken_off().gap()
    resumed(traffic, "e0").stream().event(PROGRESS, id="e1").event(TOOLS, id="e2").close()
    return traffic


def a_damaged_line() -> Traffic:
    traffic = begun()
    post(traffic).stream().event(PROGRESS, id="e1")
    traffic.damage()
    resumed(traffic, "e2").stream().event(TOOLS, id="e3").close()
    return traffic


ACROSS = (
    the_events_before_the_end, the_end_of_the_first_stream, the_end_after_the_event_that_is_resumed, the_whole_call,
    the_whole_call_and_a_question, the_head_of_the_stream, between_the_streams, an_earlier_resumption, the_rest_of_the_second_stream,
    the_answer_on_the_second_stream, the_answer_and_then_another_call, all_that_followed_the_first_stream,
    all_that_followed_and_another_call, a_third_stream, a_resumption_that_the_server_refuses, a_resumption_that_the_client_leaves,
    two_streams_with_the_same_ids, a_second_stream_that_breaks_off, an_event_that_comes_again, a_damaged_line,
)  # fmt: skip


@pytest.mark.parametrize("play", ACROSS, ids=lambda play: play.__name__)
def test_nobody_is_accused_of_what_a_gap_may_have(play: Callable[[], Traffic]) -> None:
    traffic = play().ends()
    assert [finding for finding in traffic.findings if finding.culprit in ("client", "server")] == []
    calls = [exchange for exchange in traffic.exchanges if exchange.request.id in ("7", "8")]
    assert {exchange.outcome.value for exchange in calls} <= {"ok", "unknown"}


# The same with a session.


def in_a_session(*streams: str) -> Traffic:
    """Break off a call's stream after its first event, and each stream that resumes it, after the event with this id."""
    traffic = Traffic()
    opened_session(traffic, "s")
    traffic.post(LIST, session="s").stream().event(PROGRESS, id="e1").close()
    for last, id in zip(("e1", *streams), streams, strict=False):
        traffic.get(session="s", Last_Event_Id=last).stream().event(LATER, id=id).close()
    return traffic


@pytest.mark.parametrize("streams", [(), ("e2",), ("e2", "e3")], ids=len)
def test_an_answer_in_a_session_that_may_be_in_a_gap_is_unknown(streams: tuple[str, ...]) -> None:
    traffic = in_a_session(*streams).gap().ends()
    (call,) = (exchange for exchange in traffic.exchanges if exchange.request.id == "7")
    assert (call.outcome.value, traffic.rules) == ("unknown", ["recording-gap"])


@pytest.mark.parametrize("streams", [(), ("e2",), ("e2", "e3")], ids=len)
def test_an_answer_in_a_session_that_is_not_in_the_gap_is_missing(streams: tuple[str, ...]) -> None:
    unseen = in_a_session(*streams)
    resumed_after = in_a_session(*streams).gap()
    resumed_after.get(session="s", Last_Event_Id=("e1", *streams)[-1]).stream().close()
    for traffic in (unseen, resumed_after):
        (call,) = (exchange for exchange in traffic.ends().exchanges if exchange.request.id == "7")
        assert call.outcome.value == "unanswered"


# Twins: nothing is missing, or the gap cannot have it.


def no_gap() -> Traffic:
    return broken_off()


def a_gap_before() -> Traffic:
    traffic = begun().gap()
    post(traffic).stream().event(PROGRESS, id="e1").close()
    return traffic


def a_gap_before_the_event_that_is_resumed() -> Traffic:
    traffic = broken_off().gap()
    resumed(traffic, "e1").stream().close()
    return traffic


def a_second_stream_without_a_gap() -> Traffic:
    traffic = broken_off()
    resumed(traffic, "e1").stream().event(LATER, id="e2").close()
    return traffic


def a_gap_after_a_stream_that_nobody_can_resume() -> Traffic:
    traffic = begun()
    post(traffic).stream().event(PROGRESS).close()
    return traffic.gap()


KEPT = (
    no_gap, a_gap_before, a_gap_before_the_event_that_is_resumed, a_second_stream_without_a_gap,
    a_gap_after_a_stream_that_nobody_can_resume,
)  # fmt: skip


@pytest.mark.parametrize("play", KEPT, ids=lambda play: play.__name__)
def test_an_answer_that_no_gap_can_have_is_missing(play: Callable[[], Traffic]) -> None:
    (call,) = (exchange for exchange in play().ends().exchanges if exchange.request.id == "7")
    assert call.outcome.value == "unanswered"

"""Requests over HTTP whose answers may lie where records are missing: nobody is accused of leaving them unanswered."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.transcript.dialogue import Dialogue, result
from tests.transcript.traffic import Traffic, initialize, modern, opened_session

if TYPE_CHECKING:
    from collections.abc import Callable

LIST = {"jsonrpc": "2.0", "id": 7, "method": "tools/list"}
NEXT = {"jsonrpc": "2.0", "id": 8, "method": "tools/list"}


def begun() -> Traffic:
    traffic = Traffic()
    opened_session(traffic, "s")
    return traffic


def nothing_after() -> Traffic:
    traffic = begun()
    traffic.post(LIST, session="s")
    return traffic.gap()


def the_next_call_after() -> Traffic:
    traffic = nothing_after()
    traffic.post(NEXT, session="s").answer(200, result(8))
    return traffic


def the_body() -> Traffic:
    traffic = begun()
    call = traffic.post(LIST, session="s").stream()
    traffic.gap()
    call.close()
    return traffic


def the_end_of_a_stream() -> Traffic:
    traffic = begun()
    call = traffic.post(LIST, session="s").stream()
    call.event({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "x"}})
    return traffic.gap()


def a_connection_that_the_client_closes() -> Traffic:
    traffic = begun()
    call = traffic.post(LIST, session="s")
    traffic.gap()
    call.leave()
    return traffic


def a_damaged_line() -> Traffic:
    traffic = begun()
    traffic.post(LIST, session="s")
    return traffic.damage()


def two_gaps() -> Traffic:
    return nothing_after().gap()


def the_modern_revision() -> Traffic:
    traffic = Traffic()
    traffic.post(modern(7))
    return traffic.gap()


def a_modern_stream_that_the_client_closes() -> Traffic:
    traffic = Traffic()
    call = traffic.post(modern(7)).stream()
    traffic.gap()
    call.close("client", "broken")
    return traffic


def without_a_session() -> Traffic:
    traffic = Traffic()
    traffic.post(initialize(0)).answer(200, result(0))
    traffic.post(LIST)
    return traffic.gap()


def the_handshake() -> Traffic:
    traffic = Traffic()
    traffic.post(initialize(7))
    return traffic.gap()


def a_stream_of_the_first_revision() -> Traffic:
    traffic = Traffic()
    stream = traffic.get("/sse").stream()
    stream.event("/messages", kind="endpoint")
    traffic.post(LIST, "/messages").answer(202)
    traffic.gap()
    stream.close()
    return traffic


LOST = (
    nothing_after, the_next_call_after, the_body, the_end_of_a_stream, a_connection_that_the_client_closes, a_damaged_line, two_gaps,
    the_modern_revision, a_modern_stream_that_the_client_closes, without_a_session, the_handshake, a_stream_of_the_first_revision,
)  # fmt: skip


@pytest.mark.parametrize("play", LOST, ids=lambda play: play.__name__)
def test_an_answer_that_may_be_in_a_gap_is_unknown(play: Callable[[], Traffic]) -> None:
    traffic = play().ends()
    (exchange,) = (exchange for exchange in traffic.exchanges if exchange.request.id == "7")
    assert exchange.outcome.value == "unknown"
    assert not {"unanswered-request", "client-disconnect", "client-gave-up"} & set(traffic.rules)


# Twins: the gap cannot have the answer, or the answer came.


def no_gap() -> Traffic:
    traffic = begun()
    traffic.post(LIST, session="s").stream().close()
    return traffic


def a_gap_before() -> Traffic:
    traffic = begun().gap()
    traffic.post(LIST, session="s").stream().close()
    return traffic


def a_gap_after_the_response() -> Traffic:
    traffic = begun()
    traffic.post(LIST, session="s").stream().close()
    return traffic.gap()


def a_gap_before_a_whole_response() -> Traffic:
    traffic = begun()
    call = traffic.post(LIST, session="s")
    traffic.gap()
    call.stream().close()
    return traffic


def a_gap_before_the_stream_of_the_first_revision() -> Traffic:
    traffic = Traffic().gap()
    stream = traffic.get("/sse").stream()
    stream.event("/messages", kind="endpoint")
    traffic.post(LIST, "/messages").answer(202)
    stream.close()
    return traffic


KEPT = (
    no_gap, a_gap_before, a_gap_after_the_response, a_gap_before_a_whole_response, a_gap_before_the_stream_of_the_first_revision,
)  # fmt: skip


@pytest.mark.parametrize("play", KEPT, ids=lambda play: play.__name__)
def test_an_answer_that_no_gap_can_have_is_missing(play: Callable[[], Traffic]) -> None:
    (exchange,) = (exchange for exchange in play().ends().exchanges if exchange.request.id == "7")
    assert exchange.outcome.value == "unanswered"


def test_an_answer_after_a_gap_counts() -> None:
    traffic = begun()
    call = traffic.post(LIST, session="s")
    traffic.gap()
    call.answer(200, result(7))
    (exchange,) = (exchange for exchange in traffic.ends().exchanges if exchange.request.id == "7")
    assert (exchange.outcome.value, exchange.request.flaws) == ("ok", ())


def test_a_modern_stream_that_the_client_closes_without_a_gap_is_cancelled() -> None:
    traffic = Traffic()
    traffic.post(modern(7)).stream().close("client", "broken")
    (exchange,) = traffic.ends().exchanges
    assert exchange.outcome.value == "cancelled"


def test_on_stdio_a_subscription_ends_with_its_client_also_after_a_gap() -> None:
    listen = {"jsonrpc": "2.0", "id": 7, "method": "subscriptions/listen", "params": {"notifications": {}}}
    (exchange,) = Dialogue().client(listen).gap().client_leaves().ends().exchanges
    assert exchange.outcome.value == "cancelled"


def test_a_client_that_left_without_a_gap_gave_up() -> None:
    traffic = Traffic()
    traffic.post(modern(7)).leave()
    (exchange,) = (exchange for exchange in traffic.ends().exchanges if exchange.request.id == "7")
    assert exchange.outcome.value == "cancelled"

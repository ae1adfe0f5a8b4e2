"""Time that findings take, which grows in proportion to the traffic, also where that is odd in the same way thousands of times.

A fault that every message has is looked into for every message, so each look must not go through all the others.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest

from mcpspy.records import Record
from mcpspy.transcript.transcribe import transcribe
from tests.transcript.dialogue import Dialogue, cancelled, error, notification, request, result, tool_call
from tests.transcript.traffic import Traffic, initialize, opened_session

if TYPE_CHECKING:
    from collections.abc import Callable

FEW, MANY = 400, 1_600
MOST_TIMES_AS_LONG = 9
"""Four times as many messages take four times as long; were each compared with each, it would be sixteen times."""

LINK = {"uri": "file:///a"}
SERVED: dict[str, Any] = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}}


def bare_results_with_many_requests_waiting(count: int) -> list[Record]:
    recorded = Dialogue()
    for id in range(count):
        recorded.client(tool_call(id))
    for _ in range(count):
        recorded.server({"result": {"content": []}})
    return recorded.closes().records


def pongs_with_many_requests_waiting(count: int) -> list[Record]:
    recorded = Dialogue()
    for id in range(count):
        recorded.client(tool_call(id)).client(cancelled(id)).client(request(-1 - id, "ping")).server(notification("pong"))
    return recorded.closes().records


def handshakes_without_an_answer(count: int) -> list[Record]:
    recorded = Dialogue()
    for id in range(count):
        recorded.client(initialize(id))
    return recorded.wait(60_000).closes().records


def errors_without_an_id_long_after_the_requests(count: int) -> list[Record]:
    recorded = Dialogue()
    for id in range(count):
        recorded.client(tool_call(id)).server(result(id))
    recorded.client(notification("notifications/odd"))
    for _ in range(count):
        recorded.server(error(None))
    return recorded.closes().records


def updates_of_as_many_subscriptions(count: int) -> list[Record]:
    recorded = Dialogue().client(initialize(0)).server(result(0, SERVED)).client(notification())
    for id in range(1, count):
        recorded.client(request(id, "resources/subscribe", {"uri": f"file:///{id}"})).server(result(id))
        recorded.server(notification("notifications/resources/updated", {"uri": f"file:///{id // 2}"}))
    return recorded.closes().records


def updates_between_equal_subscriptions(count: int) -> list[Record]:
    recorded = Dialogue().client(initialize(0)).server(result(0, SERVED)).client(notification())
    for id in range(1, count):
        recorded.client(request(id, "resources/subscribe", LINK)).server(result(id))
        recorded.server(notification("notifications/resources/updated", LINK))
        recorded.client(request(-id, "resources/unsubscribe", LINK)).server(result(-id))
    return recorded.closes().records


def refused_streams(count: int) -> list[Record]:
    traffic = Traffic()
    opened_session(traffic, "s1")
    for _ in range(2 * count):
        traffic.get(session="s1").answer(405)
    return traffic.ends().records


def redirects(count: int) -> list[Record]:
    traffic = Traffic()
    for id in range(count):
        traffic.post(tool_call(id)).answer(301, Location="/mcp/")
        traffic.get("/other").answer(405)
    return traffic.ends().records


def requests_that_the_client_left(count: int) -> list[Record]:
    traffic = Traffic()
    opened_session(traffic, "s1")
    for id in range(2 * count):
        traffic.post(tool_call(id, page=id), session="s1").stream().close("client")
    return traffic.ends().records


def streams_cut_after_equal_silences(count: int) -> list[Record]:
    traffic = Traffic()
    opened_session(traffic, "s1")
    for id in range(count):
        stream = traffic.post(tool_call(id, page=id), session="s1").stream()
        traffic.wait(60_000)
        stream.close("server", "error")
    return traffic.ends().records


def streams_whose_head_never_comes(count: int) -> list[Record]:
    traffic = Traffic()
    opened_session(traffic, "s1")
    gets = [traffic.get(session="s1") for _ in range(count)]
    for id in range(count):
        traffic.post(tool_call(id, page=id), session="s1").answer(200, result(id))
    traffic.wait(60_000)
    for get in gets:
        get.leave()
    return traffic.ends().records


def refused_tokens_at_many_paths(count: int) -> list[Record]:
    traffic = Traffic()
    for id in range(2 * count):
        traffic.post(tool_call(id), f"/{id}").answer(401)
    return traffic.ends().records


def requests_without_the_session_that_was_not_given(count: int) -> list[Record]:
    refusal = {"jsonrpc": "2.0", "id": None, "error": {"code": -32000, "message": "Bad Request: Mcp-Session-Id is required"}}
    traffic = Traffic()
    for id in range(count):
        traffic.post(initialize(0)).answer(200, result(0, SERVED))
        traffic.post(tool_call(id)).answer(400, refusal)
    return traffic.ends().records


@pytest.mark.grid(5)
@pytest.mark.parametrize(
    "odd",
    [
        bare_results_with_many_requests_waiting,
        pongs_with_many_requests_waiting,
        handshakes_without_an_answer,
        errors_without_an_id_long_after_the_requests,
        updates_of_as_many_subscriptions,
        updates_between_equal_subscriptions,
        refused_streams,
        redirects,
        requests_that_the_client_left,
        streams_cut_after_equal_silences,
        streams_whose_head_never_comes,
        refused_tokens_at_many_paths,
        requests_without_the_session_that_was_not_given,
    ],
)
def test_time_grows_in_proportion_to_the_traffic(odd: Callable[[int], list[Record]]) -> None:
    few_s = min(processor_s(odd(FEW)) for _ in range(3))
    many_s = [processor_s(odd(MANY))]
    while many_s[-1] > MOST_TIMES_AS_LONG * few_s and len(many_s) < 4:  # a processor that others use too is slow at times
        many_s.append(processor_s(odd(MANY)))
    assert min(many_s) < MOST_TIMES_AS_LONG * few_s


def processor_s(records: list[Record]) -> float:
    start = time.process_time()
    transcribe(records)
    return time.process_time() - start

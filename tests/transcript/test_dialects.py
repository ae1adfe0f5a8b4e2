"""Dialects of third-party servers that no specification has: their messages are shown, and paired where that is certain."""

from typing import Any

import pytest

from mcpspy.transcript.model import Kind, Outcome
from tests.tiers import Tier
from tests.transcript.dialogue import notification, request, result
from tests.transcript.traffic import Call, Traffic

ENDPOINT = "/messages?sessionId=szN2CtIyxmYqjDAAAAAF"


def part(id: int | None, text: str, *, complete: bool) -> dict[str, Any]:
    """Return a part of a result, as some servers cut it; without an id it has no version either."""
    answer = {"content": [{"type": "text", "text": text}], "isComplete": complete}
    return {"result": answer} if id is None else result(id, answer)


@pytest.fixture
def traffic() -> Traffic:
    """Return a session over HTTP+SSE in a dialect: an endpoint in JSON, a dotted revision, a session in query and header."""
    traffic = Traffic()
    stream = traffic.get("/sse").stream().event({"uri": ENDPOINT, "protocol": "ssE"}, kind="endpoint")

    def post(message: Any) -> Call:
        return traffic.post(message, ENDPOINT, session="szN2CtIyxmYqjDAAAAAF").answer(202, b"Accepted")

    post(request(1, "initialize", {"protocolVersion": "2024.11.05", "capabilities": {"tools": {}}}))
    stream.event(result(1, {"protocolVersion": "2024.11.05", "capabilities": {}}), kind="message")
    post(request(2, "tools/list"))
    stream.event(result(2, {"tools": [{"name": "get_weather"}]}), kind="message")
    post(request(3, "tools/call", {"name": "get_weather"}))
    stream.event(part(3, "a", complete=False), kind="message").event(part(3, "b", complete=True), kind="message")
    stream.event("[DONE]")
    post(notification("ping"))
    stream.event(notification("pong"), kind="message")
    for text, complete in (("function", False), ("}", True)):
        stream.event(part(None, text, complete=complete))
    stream.event({"result": {"progress": 30, "status": "processing"}})
    stream.close("client")
    return traffic


def test_every_request_of_a_dialect_has_its_answer(traffic: Traffic) -> None:
    assert [(exchange.method, exchange.outcome) for exchange in traffic.exchanges] == [
        ("initialize", Outcome.OK),
        ("tools/list", Outcome.OK),
        ("tools/call", Outcome.OK),
    ]


def test_the_parts_of_an_answer_are_one_exchange_in_their_order(traffic: Traffic) -> None:
    exchange = traffic.exchanges[2]
    assert exchange.response is not None
    texts = [message.result["content"][0]["text"] for message in (*exchange.partials, exchange.response)]
    assert (texts, exchange.more_responses) == (["a", "b"], ())


def test_ping_and_pong_as_notifications_are_both_shown(traffic: Traffic) -> None:
    assert [(message.sender, message.method) for message in traffic.unpaired_messages if message.kind is Kind.NOTIFICATION] == [
        ("client", "ping"),
        ("server", "pong"),
    ]


def test_results_that_answer_no_request_are_unpaired(traffic: Traffic) -> None:
    bare = [message for message in traffic.unpaired_messages if message.kind is Kind.RESULT]
    assert [(message.id, message.flaws) for message in bare] == [(None, ("no-jsonrpc", "no-id"))] * 3


def test_the_end_mark_of_another_protocol_is_an_anomaly_of_the_stream(traffic: Traffic) -> None:
    (get,) = traffic.transactions
    assert [anomaly.name for anomaly in get.anomalies] == ["endpoint-dialect", "done-event"]


def test_the_query_decides_whose_request_it_is_though_a_field_names_a_session_too(traffic: Traffic) -> None:
    scopes = {exchange.transaction.scope.kind.value for exchange in traffic.exchanges if exchange.transaction}
    assert scopes == {"stream"}


def test_without_an_endpoint_two_paths_make_one_session() -> None:
    traffic = Traffic()
    stream = traffic.get("/mcp/events").stream()
    traffic.post(request(1, "prompts/list"), "/mcp/request").answer(202)
    stream.event(result(1, {"prompts": []}))
    traffic.post(request(2, "prompts/get", {"name": "x"}), "/mcp/request").answer(202)
    stream.event(result(2, {"messages": []}))
    assert [exchange.outcome for exchange in traffic.exchanges] == [Outcome.OK, Outcome.OK]


def test_progress_without_an_endpoint_finds_the_one_request_that_gave_its_token() -> None:
    traffic = Traffic()
    stream = traffic.get("/mcp/events").stream()
    traffic.post(request(1, "tools/call", {"name": "x", "_meta": {"progressToken": "t"}}), "/mcp/request").answer(202)
    stream.event(notification("notifications/progress", {"progressToken": "t", "progress": 1})).event(result(1))
    assert (traffic.exchange.progress, traffic.exchange.outcome) == (1, Outcome.OK)


def test_an_answer_to_one_of_two_requests_with_the_same_id_is_ambiguous() -> None:
    traffic = Traffic()
    stream = traffic.get("/mcp/events").stream()
    for _ in range(2):
        traffic.post(request(1), "/mcp/request").answer(202)
    stream.event(result(1))
    (answer,) = traffic.unpaired_messages
    assert ([exchange.response for exchange in traffic.exchanges], answer.flaws) == ([None, None], ("ambiguous-stream",))


def test_plain_text_that_is_json_by_the_line_is_read_by_the_line() -> None:
    traffic = Traffic()
    lines = (
        b'{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info"}}\n{"jsonrpc":"2.0","id":1,"result":{}}\n'
    )
    traffic.post(request(1), fields={"Accept": "text/plain"}).answer(200, lines, Content_Type="text/plain")
    assert (traffic.exchange.outcome, [message.method for message in traffic.unpaired_messages]) == (
        Outcome.OK,
        ["notifications/message"],
    )


def test_thousands_of_streams_that_break_off_take_time_in_proportion(tier: Tier) -> None:
    traffic, count = Traffic(), tier(sample=2_000, more=5_000, full=5_000)
    for _ in range(count):
        traffic.post(request(1)).stream().event("", id="e").close("server")
    for _ in range(count):
        traffic.get(Last_Event_ID="e").stream().event(result(1), id="x").close()
    assert {exchange.outcome for exchange in traffic.exchanges} == {Outcome.UNANSWERED}

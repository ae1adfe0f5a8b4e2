"""Answers and their requests over HTTP: sessions, endpoints, streams, and a hundred clients with the same ids."""

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.transcript.http.scopes import endpoint, origin, path_and_query
from mcpspy.transcript.http.transaction import ScopeKind
from mcpspy.transcript.model import Exchange, Outcome, Transcript
from mcpspy.transcript.transcribe import Transcriber
from tests.transcript.dialogue import error, notification, progress, request, result, tool_call
from tests.transcript.traffic import Call, Traffic, initialize, modern, opened_session

ENDPOINT = "/messages?sessionId=redacted-8eecc9a3d0d7"


def answers(traffic: Traffic) -> list[Any]:
    """Return the results of the exchanges, by row."""
    return [exchange.response and exchange.response.result for exchange in traffic.exchanges]


def sse(traffic: Traffic, uri: Any = ENDPOINT, **fields: Any) -> Call:
    """Open a stream of HTTP+SSE that has announced its endpoint."""
    return traffic.get("/sse").stream().event(uri, kind="endpoint", **fields)


# --- The example of `correlate` ---


def test_answers_are_paired_across_transactions_as_the_example_draws() -> None:
    traffic = Traffic()
    for session in ("A", "B"):
        traffic.post(initialize(0)).answer(200, result(0, session), Mcp_Session_Id=session)
    broken_off = traffic.post(tool_call(1), session="A").stream()
    broken_off.event(progress("none"), id="e1").close()
    traffic.post(tool_call(1), session="B").answer(200, result(1, "of B"))
    server_stream = traffic.get(session="A").stream().event(request(1, "roots/list"))
    traffic.post(result(1, "roots"), session="A").answer(202)
    traffic.get(session="A", Last_Event_ID="e1").stream().event(result(1, "of A")).close()
    server_stream.close()
    stream = traffic.get("/sse").stream().event("/m", kind="endpoint")
    traffic.post(tool_call(1), "/m").answer(202)
    stream.event(result(1, "of the stream"))
    carriers = [exchange.transaction and exchange.transaction.number for exchange in traffic.exchanges]
    assert answers(traffic) == ["A", "B", "of A", "of B", "roots", "of the stream"]
    assert carriers == [1, 2, 3, 4, 5, 9]


# --- HTTP+SSE ---


def test_what_is_posted_to_the_endpoint_is_answered_on_its_stream() -> None:
    traffic = Traffic()
    stream = sse(traffic)
    traffic.post(request(1), ENDPOINT).answer(202, b"Accepted")
    stream.event(result(1, "there"), kind="message")
    assert answers(traffic) == ["there"]


def test_two_streams_with_the_same_ids_do_not_meet() -> None:
    traffic = Traffic()
    first, second = sse(traffic, "/messages?s=1"), sse(traffic, "/messages?s=2")
    traffic.post(request(1), "/messages?s=2").answer(202)
    traffic.post(request(1), "/messages?s=1").answer(202)
    first.event(result(1, "first"))
    second.event(result(1, "second"))
    assert answers(traffic) == ["second", "first"]


def test_posts_with_a_pseudonym_belong_to_the_streams_that_announced_their_endpoints_in_clear() -> None:
    # as where a proxy redacted the heads, and the stream is compressed
    traffic = Traffic()
    first, second = sse(traffic, "/messages?s=one"), sse(traffic, "/messages?s=two")
    sse(traffic, "/other?s=three")
    for name, stream, digits in (("first", first, "0123456789ab"), ("second", second, "ba9876543210")):
        for id in (1, 2):
            traffic.post(request(id), f"/messages?s=redacted-{digits}").answer(202)
            stream.event(result(id, f"{name} {id}"))
    assert answers(traffic) == ["first 1", "first 2", "second 1", "second 2"]


@pytest.mark.parametrize(
    "uri", ["/messages?s=1", "messages?s=1", "http://127.0.0.1:3001/messages?s=1", "?s=1", "//127.0.0.1:3001/m"]
)
def test_an_endpoint_is_resolved_against_the_url_of_its_stream(uri: str) -> None:
    traffic = Traffic()
    stream = sse(traffic, uri)
    target = {"?s=1": "/sse?s=1", "//127.0.0.1:3001/m": "/m"}.get(uri, "/messages?s=1")
    traffic.post(request(1), target).answer(202)
    stream.event(result(1, "there"))
    assert answers(traffic) == ["there"]


def test_a_rewritten_endpoint_counts_as_well_as_the_one_that_was_sent() -> None:
    traffic = Traffic()
    forwarded = b"event: endpoint\r\ndata: http://127.0.0.1:7777/through/messages?s=1\r\n\r\n"
    stream = sse(traffic, "http://127.0.0.1:3001/messages?s=1", forwarded=forwarded)
    traffic.post(request(1), "/through/messages?s=1").answer(202)
    stream.event(result(1, "there"))
    assert answers(traffic) == ["there"]


def test_an_endpoint_in_the_json_dialect_joins_too() -> None:
    traffic = Traffic()
    stream = sse(traffic, {"uri": "/messages?sessionId=7", "protocol": "ssE"})
    traffic.post(request(1), "/messages?sessionId=7").answer(202)
    stream.event(result(1, "there"))
    assert answers(traffic) == ["there"]


def test_the_query_decides_where_a_session_header_comes_with_it() -> None:
    traffic = Traffic()
    stream = sse(traffic)
    traffic.post(request(1), ENDPOINT, session="other").answer(202)
    stream.event(result(1, "there"))
    assert answers(traffic) == ["there"]


def test_a_stream_whose_head_names_a_session_is_found_by_its_endpoint_and_by_the_session() -> None:
    traffic = Traffic()
    stream = traffic.get("/sse").stream(Mcp_Session_Id="s").event(ENDPOINT, kind="endpoint")
    traffic.post(request(1), ENDPOINT, session="s").answer(202)
    traffic.post(request(2), ENDPOINT).answer(202)
    stream.event(result(2, "two")).event(result(1, "one"))
    assert answers(traffic) == ["one", "two"]


def test_both_spellings_of_the_query_are_two_endpoints() -> None:
    traffic = Traffic()
    stream = sse(traffic, "/messages/?session_id=1")
    traffic.post(request(1), "/messages/?sessionId=1").answer(404)
    stream.event(result(1))
    assert [exchange.outcome for exchange in traffic.exchanges] == [Outcome.HTTP_ERROR]


def test_a_server_asks_on_the_stream_and_is_answered_by_a_post() -> None:
    traffic = Traffic()
    stream = sse(traffic)
    traffic.post(tool_call(1), ENDPOINT).answer(202)
    stream.event(request(1, "elicitation/create"))
    traffic.post(result(1, "from the client"), ENDPOINT).answer(202)
    stream.event(result(1, "from the server"))
    assert answers(traffic) == ["from the server", "from the client"]


def test_progress_on_the_stream_finds_its_request() -> None:
    traffic = Traffic()
    stream = sse(traffic)
    traffic.post(tool_call(1, token="t"), ENDPOINT).answer(202)
    stream.event(progress("t")).event(result(1))
    assert traffic.exchange.progress == 1


def test_the_end_of_the_stream_leaves_what_waits_unanswered() -> None:
    traffic = Traffic()
    stream = sse(traffic)
    traffic.post(request(1), ENDPOINT).answer(202)
    assert growing(traffic).exchanges[0].outcome is Outcome.PENDING
    stream.close("server", "reset")
    assert growing(traffic).exchanges[0].outcome is Outcome.UNANSWERED


def test_the_modern_era_travels_on_http_sse_too() -> None:
    traffic = Traffic()
    stream = sse(traffic)
    traffic.post(modern(1), ENDPOINT).answer(202)
    stream.event(result(1, "there"))
    assert answers(traffic) == ["there"]


def test_a_later_stream_takes_over_an_endpoint() -> None:
    traffic = Traffic()
    sse(traffic, "/messages").close("client", "reset")
    second = sse(traffic, "/messages")
    traffic.post(request(1), "/messages").answer(202)
    second.event(result(1, "second"))
    assert answers(traffic) == ["second"]
    assert traffic.rules == []


# --- No endpoint announced ---


def test_without_an_endpoint_the_one_open_stream_answers() -> None:
    traffic = Traffic()
    stream = traffic.get("/mcp/events").stream()
    traffic.post(request(1), "/mcp/request").answer(202)
    stream.event(result(1, "there"))
    assert answers(traffic) == ["there"]
    assert traffic.rules == ["missing-endpoint"]


def test_without_an_endpoint_an_answer_may_come_before_the_post_is_accepted() -> None:
    traffic = Traffic()
    stream = traffic.get("/mcp/events").stream()
    call = traffic.post(request(1), "/mcp/request")
    stream.event(result(1, "there"))
    call.answer(202)
    assert answers(traffic) == ["there"]


def test_without_an_endpoint_the_scope_is_that_of_the_stream() -> None:
    traffic = Traffic()
    stream = traffic.get("/mcp/events").stream()
    traffic.post(initialize(0, "curl"), "/mcp/request").answer(202)
    stream.event(result(0)).event(notification("notifications/message", {"level": "info"}))
    transcript = traffic.transcript
    kinds = {transaction.scope.kind for transaction in transcript.captures[0].transactions.values()}
    assert kinds == {ScopeKind.STREAM}
    assert {transcript.captures[0].client_of(row) for row in transcript.rows} == {"curl"}


def test_without_an_endpoint_a_stream_is_its_clients_once_it_has_answered_it() -> None:
    traffic = Traffic()
    traffic.post(initialize(0, "inspector")).answer(200, result(0))
    stream = traffic.get("/mcp/events").stream()
    traffic.post(initialize(0, "curl"), "/mcp/request").answer(202)
    stream.event(result(0)).event(notification("notifications/message", {"level": "info"}))
    transcript = traffic.transcript
    (get,) = [transaction for transaction in transcript.captures[0].transactions.values() if transaction.method == "GET"]
    assert transcript.captures[0].client_of(get) == "curl"


def test_without_an_endpoint_and_with_several_streams_only_one_request_with_the_id_is_answered() -> None:
    traffic = Traffic()
    stream, _other = traffic.get("/mcp/events").stream(), traffic.get("/mcp/events").stream()
    traffic.post(request(1), "/mcp/request").answer(202)
    traffic.post(request(2), "/mcp/request").answer(202)
    stream.event(result(2, "two"))
    assert answers(traffic) == [None, "two"]
    assert "ambiguous-stream" in traffic.rules


def test_without_an_endpoint_and_with_several_streams_answers_are_ambiguous() -> None:
    traffic = Traffic()
    stream, _other = traffic.get("/mcp/events").stream(), traffic.get("/mcp/events").stream()
    traffic.post(request(1), "/mcp/request").answer(202)
    traffic.post(request(1), "/mcp/request").answer(202)
    stream.event(result(1, "whose?"))
    assert answers(traffic) == [None, None]
    assert "unpaired-response" not in traffic.rules


def test_without_an_endpoint_requests_wait_until_the_last_stream_ends() -> None:
    traffic = Traffic()
    stream = traffic.get("/mcp/events").stream()
    traffic.post(request(1), "/mcp/request").answer(202)
    assert growing(traffic).exchanges[0].outcome is Outcome.PENDING
    stream.close()
    assert growing(traffic).exchanges[0].outcome is Outcome.UNANSWERED


def test_a_stateless_server_with_an_open_stream_answers_in_its_own_response() -> None:
    traffic = Traffic()
    traffic.get().stream()
    first, second = traffic.post(request(1)), traffic.post(request(1))
    second.answer(200, result(1, "second"))
    first.stream().event(result(1, "first")).close()
    assert answers(traffic) == ["first", "second"]


# --- Sessions of Streamable HTTP ---


def test_a_session_spans_transactions() -> None:
    traffic = Traffic()
    opened_session(traffic, "s")
    call = traffic.post(tool_call(5), session="s").stream().event(request(1, "elicitation/create"))
    traffic.post(result(1, "from the client"), session="s").answer(202)
    call.event(result(5, "from the server")).close()
    assert answers(traffic)[1:] == ["from the server", "from the client"]


def test_a_session_is_bound_by_a_response_that_is_a_stream() -> None:
    traffic = Traffic()
    call = traffic.post(initialize()).stream(Mcp_Session_Id="s")
    call.event(result(0)).close()
    traffic.post(request(1), session="s").answer(200, result(1))
    scopes = {id(transaction.scope) for transaction in traffic.transcript.captures[0].transactions.values()}
    assert len(scopes) == 1


def test_two_sessions_with_the_same_ids_do_not_meet() -> None:
    traffic = Traffic()
    for session in ("a", "b"):
        opened_session(traffic, session)
    first = traffic.post(request(1), session="a").stream()
    second = traffic.post(request(1), session="b").stream()
    second.event(result(1, "second"))
    first.event(result(1, "first"))
    assert answers(traffic)[2:] == ["first", "second"]


def test_a_capture_that_begins_within_a_session_pairs_by_it() -> None:
    traffic = Traffic()
    stream = traffic.get(session="s").stream().event(request(9, "roots/list"))
    traffic.post(result(9, "roots"), session="s").answer(202)
    stream.close("client", "reset")
    assert answers(traffic) == ["roots"]


def test_deleting_a_session_ends_what_waits_in_it() -> None:
    traffic = Traffic()
    opened_session(traffic, "s")
    traffic.post(tool_call(1), session="s").stream().event("", id="e1").close("server")
    traffic.call("DELETE", fields={"Mcp_Session_Id": "s"}).answer(200)
    assert growing(traffic).exchanges[1].outcome is Outcome.UNANSWERED


def test_the_modern_era_knows_no_session() -> None:
    traffic = Traffic()
    opened_session(traffic, "s")
    first = traffic.post(modern(1), session="s").stream()
    second = traffic.post(modern(1), session="s").stream()
    second.event(result(1, "second"))
    first.event(result(1, "first"))
    assert answers(traffic)[1:] == ["first", "second"]


def test_a_request_that_was_redirected_may_be_sent_again_with_its_id() -> None:
    traffic = Traffic()
    opened_session(traffic, "s")
    traffic.post(request(1), session="s").answer(307, Location="/mcp/")
    traffic.post(request(1), "/mcp/", session="s").answer(200, result(1, "there"))
    assert [exchange.outcome for exchange in traffic.exchanges[1:]] == [Outcome.REDIRECTED, Outcome.OK]
    assert traffic.exchanges[2].request.flaws == ()


def test_without_a_session_a_client_answers_what_one_stream_asked() -> None:
    traffic = Traffic()
    call = traffic.post(tool_call(5)).stream().event(request("e-1", "elicitation/create"))
    traffic.post(result("e-1", "from the client")).answer(202)
    call.event(result(5)).close()
    assert answers(traffic) == [{}, "from the client"]


def test_without_a_session_the_answer_to_one_of_two_streams_is_ambiguous() -> None:
    traffic = Traffic()
    for id in (5, 6):
        traffic.post(tool_call(id)).stream().event(request(1, "elicitation/create"))
    traffic.post(result(1, "whose?")).answer(202)
    assert answers(traffic) == [None, None, None, None]


def test_a_cancellation_without_a_session_finds_the_one_request_with_its_id() -> None:
    traffic = Traffic()
    traffic.post(tool_call(5)).stream()
    traffic.post(notification("notifications/cancelled", {"requestId": 5})).answer(202)
    assert traffic.exchange.outcome is Outcome.CANCELLED


def test_a_stream_of_a_session_that_announces_an_endpoint_is_a_scope_of_its_own() -> None:
    traffic = Traffic()
    opened_session(traffic, "s")
    stream = traffic.get("/sse", session="s").stream().event(ENDPOINT, kind="endpoint")
    first, second = traffic.post(request(1), session="s"), traffic.post(request(1), ENDPOINT).answer(202)
    stream.event(result(1, "second"))
    first.answer(200, result(1, "first"))
    assert second.method == "POST"
    assert answers(traffic)[1:] == ["first", "second"]


def test_a_known_session_decides_where_an_endpoint_is_the_same_for_all() -> None:
    traffic = Traffic()
    opened_session(traffic, "s")
    stream = sse(traffic, "/mcp")
    first, _ = traffic.post(request(1), session="s"), traffic.post(request(1)).answer(202)
    stream.event(result(1, "second"))
    first.answer(200, result(1, "first"))
    assert answers(traffic)[1:] == ["first", "second"]


def test_a_session_that_is_named_again_stays_the_first() -> None:
    traffic = Traffic()
    opened_session(traffic, "s")
    traffic.post(tool_call(5), session="s").stream().event(request("q", "elicitation/create"))
    traffic.post(request(1)).answer(200, result(1), Mcp_Session_Id="s")
    traffic.post(result("q", "from the client"), session="s").answer(202)
    assert answers(traffic)[2] == "from the client"


# --- Redelivery ---


def redelivered(traffic: Traffic) -> list[int]:
    """Return the number of redelivered events of each transaction."""
    return [len(transaction.redelivered) for transaction in traffic.transcript.captures[0].transactions.values()]


def test_a_response_on_a_resumed_stream_completes_the_exchange_of_its_post() -> None:
    traffic = Traffic()
    opened_session(traffic, "s")
    traffic.post(tool_call(1), session="s").stream().event("", id="e1").close("server")
    traffic.get(session="s", Last_Event_ID="e1").stream().event(result(1, "late"), id="e2").close()
    assert answers(traffic)[1:] == ["late"]
    assert traffic.exchanges[1].transaction is not None
    assert traffic.exchanges[1].transaction.method == "POST"
    assert traffic.rules == []


def test_what_comes_again_is_not_counted_again() -> None:
    traffic = Traffic()
    opened_session(traffic, "s")
    log, answer = notification("notifications/message", {"level": "info"}), result(1, "there")
    posted = traffic.post(tool_call(1), session="s").stream().event("", id="e0")
    posted.event(log, id="e1").event(answer, id="e2").close("client", "reset")
    traffic.get(session="s", Last_Event_ID="e0").stream().event(log, id="e1").event(answer, id="e2").close()
    exchange = traffic.exchanges[1]
    assert (answers(traffic)[1:], len(exchange.more_responses)) == (["there"], 0)
    assert len(traffic.transcript.messages) == 6
    assert redelivered(traffic) == [0, 0, 0, 2]
    assert traffic.rules == []


def test_event_ids_that_restart_on_each_stream_repeat_nothing() -> None:
    traffic = Traffic()
    opened_session(traffic, "s")
    for id in (1, 2):
        traffic.post(tool_call(id), session="s").stream().event(result(id, id), id="1").close()
    assert answers(traffic)[1:] == [1, 2]


def test_a_resumed_stream_whose_event_ids_restart_repeats_nothing() -> None:
    traffic = Traffic()
    opened_session(traffic, "s")
    traffic.post(tool_call(1), session="s").stream().event(notification(), id="1").close("server")
    traffic.get(session="s", Last_Event_ID="1").stream().event(result(1, "late"), id="1").close()
    assert answers(traffic)[1:] == ["late"]


def test_equal_events_without_resumption_are_two() -> None:
    traffic = Traffic()
    opened_session(traffic, "s")
    stream = traffic.get(session="s").stream()
    for _ in range(2):
        stream.event(notification("notifications/tools/list_changed"), id="1")
    assert len(traffic.unpaired_messages) == 3


def test_an_exchange_of_a_polling_server_is_pending_between_its_streams() -> None:
    traffic = Traffic()
    opened_session(traffic, "s")
    traffic.post(tool_call(1), session="s").stream().event("", id="e1").close("server")
    exchange = growing(traffic).exchanges[1]
    assert exchange.outcome is Outcome.PENDING


def test_a_stream_without_event_ids_that_ends_early_leaves_its_request_unanswered() -> None:
    traffic = Traffic()
    opened_session(traffic, "s")
    traffic.post(tool_call(1), session="s").stream().event(notification()).close("server")
    assert growing(traffic).exchanges[1].outcome is Outcome.UNANSWERED


def growing(traffic: Traffic) -> Transcript:
    """Return the transcript of a capture that goes on."""
    transcriber = Transcriber()
    for record in traffic.records:
        transcriber.feed(record)
    return transcriber.transcript


# --- A hundred clients ---


def whose(exchange: Exchange) -> tuple[Any, Any]:
    """Return the clients of the request and of its answer."""
    client = exchange.request.params["arguments"]["client"]
    return client, exchange.response and exchange.response.result


def ask(client: int, id: int, era: str) -> dict[str, Any]:
    if era == "modern":
        return modern(id, "tools/call", name="x", arguments={"client": client})
    return request(id, "tools/call", {"name": "x", "arguments": {"client": client}})


@pytest.mark.parametrize("way", ["modern", "stateless", "session", "sse"])
def test_a_hundred_clients_with_the_same_ids_get_their_own_answers(way: str) -> None:
    traffic = Traffic()
    clients = range(100)
    streams = {}
    if way == "session":
        for client in clients:
            opened_session(traffic, f"s{client}")
    if way == "sse":
        streams = {client: sse(traffic, f"/messages?s={client}") for client in clients}
    order = [(client, id) for client in clients for id in (1, 2)]
    shuffle = random.Random(7).shuffle
    shuffle(order)
    calls = {}
    for client, id in order:
        target = f"/messages?s={client}" if way == "sse" else "/mcp"
        session = f"s{client}" if way == "session" else ""
        calls[client, id] = traffic.post(ask(client, id, way), target, session=session)
    shuffle(order)
    for client, id in order:
        if way == "sse":
            calls[client, id].answer(202)
        elif id == 1:
            calls[client, id].stream()
    shuffle(order)
    for client, id in order:
        if way == "sse":
            streams[client].event(result(id, client))
        elif id == 1:
            calls[client, id].event(result(id, client)).close()
        else:
            calls[client, id].answer(200, result(id, client))
    pairs = [whose(exchange) for exchange in traffic.exchanges if exchange.method == "tools/call"]
    assert len(pairs) == 200
    assert [(asker, got) for asker, got in pairs if asker != got] == []


@given(st.data())
def test_no_answer_is_paired_with_the_request_of_another_client(data: st.DataObject) -> None:
    traffic = Traffic()
    ways: list[str] = data.draw(st.lists(st.sampled_from(["modern", "stateless", "session", "sse"]), min_size=2, max_size=5))
    streams: dict[int, Call] = {}
    for client, way in enumerate(ways):
        if way == "session":
            opened_session(traffic, f"s{client}")
        elif way == "sse":
            streams[client] = sse(traffic, f"/messages?s={client}")
    waiting: list[tuple[int, int, Call]] = []
    for _ in range(data.draw(st.integers(1, 12))):
        answers_one = data.draw(st.booleans())
        if waiting and answers_one:
            client, id, call = waiting.pop(data.draw(st.integers(0, len(waiting) - 1)))
            if client in streams:
                call.answer(202)
                streams[client].event(result(id, client))
            elif data.draw(st.booleans()):
                call.stream().event(result(id, client)).close()
            else:
                call.answer(200, result(id, client))
        else:
            client, id = data.draw(st.integers(0, len(ways) - 1)), data.draw(st.integers(0, 2))
            if any((client, id) == request[:2] for request in waiting):
                continue
            target = f"/messages?s={client}" if client in streams else "/mcp"
            session = f"s{client}" if ways[client] == "session" else ""
            waiting.append((client, id, traffic.post(ask(client, id, ways[client]), target, session=session)))
    pairs = [
        whose(exchange) for exchange in traffic.exchanges if exchange.method == "tools/call" and exchange.response is not None
    ]
    assert all(asker == got for asker, got in pairs)


# --- URLs ---


@pytest.mark.parametrize(
    ("url", "target"),
    [
        ("http://x/messages?s=1#part", "/messages?s=1"),
        ("http://x", "/"),
        ("http://x?s=1", "/?s=1"),
        ("/a%2Fb/?x=%20", "/a%2Fb/?x=%20"),
        ("", ""),
        ("http://[::1", ""),
    ],
)
def test_the_target_of_a_url_is_its_path_and_query(url: str, target: str) -> None:
    assert path_and_query(url) == target


def test_a_port_that_goes_without_saying_makes_no_other_origin() -> None:
    assert origin("http://x:80/a") == origin("http://x/b")
    assert origin("http://x:81/a") != origin("http://x/b")
    assert origin("http://x:port/") is None


@pytest.mark.parametrize("data", [b"{}", b'{"uri": 5}', b"{", b'{"uri"'])
def test_a_dialect_without_a_uri_announces_nothing(data: bytes) -> None:
    assert endpoint(data).uri == ""


@given(st.text() | st.binary().map(lambda raw: raw.decode("latin-1")))
def test_whatever_is_announced_nothing_raises(uri: str) -> None:
    traffic = Traffic(url=uri)
    stream = traffic.get(uri.replace("\r", "").replace("\n", "")).stream()
    stream.raw(b"event: endpoint\ndata: " + uri.encode("utf-8", "replace") + b"\n\n").close()
    traffic.post(request(1), "/x").answer(200, result(1))
    assert traffic.rules is not None


# --- Resumption without sessions ---


def broken_off(traffic: Traffic, client: str, last: str = "e1") -> Call:
    """Make a call whose stream ends before the answer."""
    return traffic.post(tool_call(1, client)).stream().event("", id=last).close("server")


def resumed(traffic: Traffic, last: str = "e1") -> Call:
    """Open a stream that resumes another after an event."""
    return traffic.get(Last_Event_ID=last).stream()


def test_without_a_session_a_resumed_stream_answers_the_post_whose_last_event_it_names() -> None:
    traffic = Traffic()
    broken_off(traffic, "a", "a1")
    broken_off(traffic, "b", "b1")
    resumed(traffic, "b1").event(result(1, "b"), id="b2").close()
    resumed(traffic, "a1").event(result(1, "a"), id="a2").close()
    assert answers(traffic) == ["a", "b"]


def test_a_stream_without_a_session_may_break_off_again() -> None:
    traffic = Traffic()
    broken_off(traffic, "a")
    resumed(traffic).event(progress("t"), id="e2").close("server")
    resumed(traffic, "e2").event(result(1, "there"), id="e3").close()
    assert answers(traffic) == ["there"]


def test_progress_on_a_resumed_stream_without_a_session_finds_its_request() -> None:
    traffic = Traffic()
    traffic.post(tool_call(1, token="t")).stream().event("", id="e1").close("server")
    resumed(traffic).event(progress("t"), id="e2").event(result(1), id="e3").close()
    assert (traffic.exchange.progress, traffic.exchange.outcome) == (1, Outcome.OK)


def test_what_comes_again_without_a_session_is_not_counted_again() -> None:
    traffic = Traffic()
    log = notification("notifications/message", {"level": "info"})
    traffic.post(tool_call(1)).stream().event(log, id="e1").event(log, id="e2").close("server")
    resumed(traffic, "e2").event(log, id="e2").event(result(1), id="e3").close()
    assert (redelivered(traffic), len(traffic.unpaired_messages)) == ([0, 1], 2)


def test_without_a_session_a_call_that_may_be_resumed_is_pending_until_the_capture_ends() -> None:
    traffic = Traffic()
    broken_off(traffic, "a")
    assert growing(traffic).exchanges[0].outcome is Outcome.PENDING
    assert traffic.exchange.outcome is Outcome.UNANSWERED


def test_without_a_session_the_resumption_of_one_of_two_streams_is_ambiguous() -> None:
    traffic = Traffic()
    broken_off(traffic, "a", "1")
    broken_off(traffic, "b", "1")
    resumed(traffic, "1").event(result(1, "whose?"), id="2").close()
    (get,) = traffic.transactions
    assert (answers(traffic), [anomaly.name for anomaly in get.anomalies]) == ([None, None], ["ambiguous-resume"])
    assert "ambiguous-stream" in traffic.rules


def test_the_modern_era_resumes_nothing() -> None:
    traffic = Traffic()
    traffic.post(modern(1)).stream().event("", id="e1").close("server")
    resumed(traffic).event(result(1, "late"), id="e2").close()
    assert answers(traffic) == [None]


# --- Sessions that are lost ---


def forgotten(traffic: Traffic, session: str, connection: int = 0) -> Call:
    """Make a request whose session is unknown to the server."""
    return traffic.post(request(7), session=session, connection=connection).answer(404, error(None, -32001))


def scopes(traffic: Traffic) -> dict[str, str]:
    """Return for each session the one that it replaces."""
    scopes = {
        transaction.scope.session: transaction.scope for transaction in traffic.transcript.captures[0].transactions.values()
    }
    return {session: scope.replaces.session for session, scope in scopes.items() if scope.replaces is not None}


def test_a_session_that_is_opened_after_a_404_replaces_the_unknown_one() -> None:
    traffic = Traffic()
    opened_session(traffic, "s1")
    forgotten(traffic, "s1")
    opened_session(traffic, "s2")
    opened_session(traffic, "s3")
    assert scopes(traffic) == {"s2": "s1"}


def test_a_session_has_the_first_transaction_that_was_answered_with_404() -> None:
    traffic = Traffic()
    opened_session(traffic, "s")
    first = forgotten(traffic, "s")
    forgotten(traffic, "s")
    assert {transaction.scope.unknown_since for transaction in traffic.transcript.captures[0].transactions.values()} == {
        first.number
    }


def test_unknown_sessions_are_told_apart_by_their_clients() -> None:
    traffic = Traffic()
    for name in ("ada", "bob"):
        opened_session(traffic, f"{name}1", name)
    forgotten(traffic, "ada1")
    forgotten(traffic, "bob1")
    for name in ("bob", "ada"):
        opened_session(traffic, f"{name}2", name)
    assert scopes(traffic) == {"bob2": "bob1", "ada2": "ada1"}


def test_unknown_sessions_of_equal_clients_are_told_apart_by_their_connections_only() -> None:
    traffic = Traffic()
    for session in ("a1", "b1", "c1"):
        opened_session(traffic, session)
    for session, connection in (("a1", 71), ("b1", 72), ("c1", 73)):
        forgotten(traffic, session, connection)
    traffic.post(initialize(), connection=72).answer(200, result(0), Mcp_Session_Id="b2")
    opened_session(traffic, "who2")
    assert scopes(traffic) == {"b2": "b1"}


def test_a_404_about_an_unknown_method_loses_no_session() -> None:
    traffic = Traffic()
    opened_session(traffic, "s1")
    traffic.post(request(7, "x/y"), session="s1").answer(404, error(7, -32601))
    opened_session(traffic, "s2")
    assert scopes(traffic) == {}

"""Whose answer it is over HTTP: sessions, endpoints, streams, and a hundred clients with the same ids."""

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


def answers(told: Traffic) -> list[Any]:
    """What the exchanges were answered with, by row."""
    return [one.response and one.response.result for one in told.exchanges]


def sse(told: Traffic, uri: Any = ENDPOINT, **fields: Any) -> Call:
    """A stream of HTTP+SSE that has announced where to POST."""
    return told.get("/sse").stream().event(uri, kind="endpoint", **fields)


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
    told = Traffic()
    stream = sse(told)
    told.post(request(1), ENDPOINT).answer(202, b"Accepted")
    stream.event(result(1, "there"), kind="message")
    assert answers(told) == ["there"]


def test_two_streams_with_the_same_ids_do_not_meet() -> None:
    told = Traffic()
    first, second = sse(told, "/messages?s=1"), sse(told, "/messages?s=2")
    told.post(request(1), "/messages?s=2").answer(202)
    told.post(request(1), "/messages?s=1").answer(202)
    first.event(result(1, "first"))
    second.event(result(1, "second"))
    assert answers(told) == ["second", "first"]


@pytest.mark.parametrize(
    "uri", ["/messages?s=1", "messages?s=1", "http://127.0.0.1:3001/messages?s=1", "?s=1", "//127.0.0.1:3001/m"]
)
def test_an_endpoint_is_resolved_against_the_url_of_its_stream(uri: str) -> None:
    told = Traffic()
    stream = sse(told, uri)
    target = {"?s=1": "/sse?s=1", "//127.0.0.1:3001/m": "/m"}.get(uri, "/messages?s=1")
    told.post(request(1), target).answer(202)
    stream.event(result(1, "there"))
    assert answers(told) == ["there"]


def test_a_rewritten_endpoint_counts_as_well_as_the_one_that_was_sent() -> None:
    told = Traffic()
    forwarded = b"event: endpoint\r\ndata: http://127.0.0.1:7777/through/messages?s=1\r\n\r\n"
    stream = sse(told, "http://127.0.0.1:3001/messages?s=1", forwarded=forwarded)
    told.post(request(1), "/through/messages?s=1").answer(202)
    stream.event(result(1, "there"))
    assert answers(told) == ["there"]


def test_an_endpoint_in_the_json_dialect_joins_too() -> None:
    told = Traffic()
    stream = sse(told, {"uri": "/messages?sessionId=7", "protocol": "ssE"})
    told.post(request(1), "/messages?sessionId=7").answer(202)
    stream.event(result(1, "there"))
    assert answers(told) == ["there"]


def test_the_query_decides_where_a_session_header_comes_with_it() -> None:
    told = Traffic()
    stream = sse(told)
    told.post(request(1), ENDPOINT, session="other").answer(202)
    stream.event(result(1, "there"))
    assert answers(told) == ["there"]


def test_a_stream_whose_head_names_a_session_is_found_by_its_endpoint_and_by_the_session() -> None:
    told = Traffic()
    stream = told.get("/sse").stream(Mcp_Session_Id="s").event(ENDPOINT, kind="endpoint")
    told.post(request(1), ENDPOINT, session="s").answer(202)
    told.post(request(2), ENDPOINT).answer(202)
    stream.event(result(2, "two")).event(result(1, "one"))
    assert answers(told) == ["one", "two"]


def test_both_spellings_of_the_query_are_two_endpoints() -> None:
    told = Traffic()
    stream = sse(told, "/messages/?session_id=1")
    told.post(request(1), "/messages/?sessionId=1").answer(404)
    stream.event(result(1))
    assert [one.outcome for one in told.exchanges] == [Outcome.HTTP_ERROR]


def test_a_server_asks_on_the_stream_and_is_answered_by_a_post() -> None:
    told = Traffic()
    stream = sse(told)
    told.post(tool_call(1), ENDPOINT).answer(202)
    stream.event(request(1, "elicitation/create"))
    told.post(result(1, "from the client"), ENDPOINT).answer(202)
    stream.event(result(1, "from the server"))
    assert answers(told) == ["from the server", "from the client"]


def test_progress_on_the_stream_finds_its_request() -> None:
    told = Traffic()
    stream = sse(told)
    told.post(tool_call(1, token="t"), ENDPOINT).answer(202)
    stream.event(progress("t")).event(result(1))
    assert told.exchange.progress == 1


def test_the_end_of_the_stream_leaves_what_waits_unanswered() -> None:
    told = Traffic()
    stream = sse(told)
    told.post(request(1), ENDPOINT).answer(202)
    assert growing(told).exchanges[0].outcome is Outcome.PENDING
    stream.close("server", "reset")
    assert growing(told).exchanges[0].outcome is Outcome.UNANSWERED


def test_the_modern_era_travels_on_http_sse_too() -> None:
    told = Traffic()
    stream = sse(told)
    told.post(modern(1), ENDPOINT).answer(202)
    stream.event(result(1, "there"))
    assert answers(told) == ["there"]


def test_a_later_stream_takes_over_an_endpoint() -> None:
    told = Traffic()
    sse(told, "/messages").close("client", "reset")
    second = sse(told, "/messages")
    told.post(request(1), "/messages").answer(202)
    second.event(result(1, "second"))
    assert answers(told) == ["second"]
    assert told.rules == []


# --- No endpoint announced ---


def test_without_an_endpoint_the_one_open_stream_answers() -> None:
    told = Traffic()
    stream = told.get("/mcp/events").stream()
    told.post(request(1), "/mcp/request").answer(202)
    stream.event(result(1, "there"))
    assert answers(told) == ["there"]
    assert told.rules == []


def test_without_an_endpoint_an_answer_may_come_before_the_post_is_accepted() -> None:
    told = Traffic()
    stream = told.get("/mcp/events").stream()
    call = told.post(request(1), "/mcp/request")
    stream.event(result(1, "there"))
    call.answer(202)
    assert answers(told) == ["there"]


def test_without_an_endpoint_the_scope_is_that_of_the_stream() -> None:
    told = Traffic()
    stream = told.get("/mcp/events").stream()
    told.post(initialize(0, "curl"), "/mcp/request").answer(202)
    stream.event(result(0)).event(notification("notifications/message", {"level": "info"}))
    transcript = told.transcript
    kinds = {one.scope.kind for one in transcript.captures[0].transactions.values()}
    assert kinds == {ScopeKind.STREAM}
    assert {transcript.captures[0].client_of(row) for row in transcript.rows} == {"curl"}


def test_without_an_endpoint_a_stream_is_its_clients_once_it_has_answered_it() -> None:
    told = Traffic()
    told.post(initialize(0, "inspector")).answer(200, result(0))
    stream = told.get("/mcp/events").stream()
    told.post(initialize(0, "curl"), "/mcp/request").answer(202)
    stream.event(result(0)).event(notification("notifications/message", {"level": "info"}))
    transcript = told.transcript
    (get,) = [one for one in transcript.captures[0].transactions.values() if one.method == "GET"]
    assert transcript.captures[0].client_of(get) == "curl"


def test_without_an_endpoint_and_with_several_streams_only_one_request_with_the_id_is_answered() -> None:
    told = Traffic()
    stream, _other = told.get("/mcp/events").stream(), told.get("/mcp/events").stream()
    told.post(request(1), "/mcp/request").answer(202)
    told.post(request(2), "/mcp/request").answer(202)
    stream.event(result(2, "two"))
    assert answers(told) == [None, "two"]
    assert "ambiguous-stream" in told.rules


def test_without_an_endpoint_and_with_several_streams_nobody_guesses() -> None:
    told = Traffic()
    stream, _other = told.get("/mcp/events").stream(), told.get("/mcp/events").stream()
    told.post(request(1), "/mcp/request").answer(202)
    told.post(request(1), "/mcp/request").answer(202)
    stream.event(result(1, "whose?"))
    assert answers(told) == [None, None]
    assert "unpaired-response" not in told.rules


def test_without_an_endpoint_requests_wait_until_the_last_stream_ends() -> None:
    told = Traffic()
    stream = told.get("/mcp/events").stream()
    told.post(request(1), "/mcp/request").answer(202)
    assert growing(told).exchanges[0].outcome is Outcome.PENDING
    stream.close()
    assert growing(told).exchanges[0].outcome is Outcome.UNANSWERED


def test_a_stateless_server_with_an_open_stream_answers_in_its_own_response() -> None:
    told = Traffic()
    told.get().stream()
    first, second = told.post(request(1)), told.post(request(1))
    second.answer(200, result(1, "second"))
    first.stream().event(result(1, "first")).close()
    assert answers(told) == ["first", "second"]


# --- Sessions of Streamable HTTP ---


def test_a_session_spans_transactions() -> None:
    told = Traffic()
    opened_session(told, "s")
    call = told.post(tool_call(5), session="s").stream().event(request(1, "elicitation/create"))
    told.post(result(1, "from the client"), session="s").answer(202)
    call.event(result(5, "from the server")).close()
    assert answers(told)[1:] == ["from the server", "from the client"]


def test_a_session_is_bound_by_a_response_that_is_a_stream() -> None:
    told = Traffic()
    call = told.post(initialize()).stream(Mcp_Session_Id="s")
    call.event(result(0)).close()
    told.post(request(1), session="s").answer(200, result(1))
    scopes = {id(one.scope) for one in told.transcript.captures[0].transactions.values()}
    assert len(scopes) == 1


def test_two_sessions_with_the_same_ids_do_not_meet() -> None:
    told = Traffic()
    for session in ("a", "b"):
        opened_session(told, session)
    first = told.post(request(1), session="a").stream()
    second = told.post(request(1), session="b").stream()
    second.event(result(1, "second"))
    first.event(result(1, "first"))
    assert answers(told)[2:] == ["first", "second"]


def test_a_capture_that_begins_within_a_session_pairs_by_it() -> None:
    told = Traffic()
    stream = told.get(session="s").stream().event(request(9, "roots/list"))
    told.post(result(9, "roots"), session="s").answer(202)
    stream.close("client", "reset")
    assert answers(told) == ["roots"]


def test_deleting_a_session_ends_what_waits_in_it() -> None:
    told = Traffic()
    opened_session(told, "s")
    told.post(tool_call(1), session="s").stream().event("", id="e1").close("server")
    told.call("DELETE", fields={"Mcp_Session_Id": "s"}).answer(200)
    assert growing(told).exchanges[1].outcome is Outcome.UNANSWERED


def test_the_modern_era_knows_no_session() -> None:
    told = Traffic()
    opened_session(told, "s")
    first = told.post(modern(1), session="s").stream()
    second = told.post(modern(1), session="s").stream()
    second.event(result(1, "second"))
    first.event(result(1, "first"))
    assert answers(told)[1:] == ["first", "second"]


def test_a_request_that_was_redirected_may_be_sent_again_with_its_id() -> None:
    told = Traffic()
    opened_session(told, "s")
    told.post(request(1), session="s").answer(307, Location="/mcp/")
    told.post(request(1), "/mcp/", session="s").answer(200, result(1, "there"))
    assert [one.outcome for one in told.exchanges[1:]] == [Outcome.REDIRECTED, Outcome.OK]
    assert told.exchanges[2].request.flaws == ()


def test_without_a_session_a_client_answers_what_one_stream_asked() -> None:
    told = Traffic()
    call = told.post(tool_call(5)).stream().event(request("e-1", "elicitation/create"))
    told.post(result("e-1", "from the client")).answer(202)
    call.event(result(5)).close()
    assert answers(told) == [{}, "from the client"]


def test_without_a_session_nobody_guesses_which_stream_is_answered() -> None:
    told = Traffic()
    for id in (5, 6):
        told.post(tool_call(id)).stream().event(request(1, "elicitation/create"))
    told.post(result(1, "whose?")).answer(202)
    assert answers(told) == [None, None, None, None]


def test_a_cancellation_without_a_session_finds_the_one_request_with_its_id() -> None:
    told = Traffic()
    told.post(tool_call(5)).stream()
    told.post(notification("notifications/cancelled", {"requestId": 5})).answer(202)
    assert told.exchange.outcome is Outcome.CANCELLED


def test_a_stream_of_a_session_that_announces_an_endpoint_is_a_scope_of_its_own() -> None:
    told = Traffic()
    opened_session(told, "s")
    stream = told.get("/sse", session="s").stream().event(ENDPOINT, kind="endpoint")
    first, second = told.post(request(1), session="s"), told.post(request(1), ENDPOINT).answer(202)
    stream.event(result(1, "second"))
    first.answer(200, result(1, "first"))
    assert second.method == "POST"
    assert answers(told)[1:] == ["first", "second"]


def test_a_known_session_decides_where_an_endpoint_is_the_same_for_all() -> None:
    told = Traffic()
    opened_session(told, "s")
    stream = sse(told, "/mcp")
    first, _ = told.post(request(1), session="s"), told.post(request(1)).answer(202)
    stream.event(result(1, "second"))
    first.answer(200, result(1, "first"))
    assert answers(told)[1:] == ["first", "second"]


def test_a_session_that_is_named_again_stays_the_first() -> None:
    told = Traffic()
    opened_session(told, "s")
    told.post(tool_call(5), session="s").stream().event(request("q", "elicitation/create"))
    told.post(request(1)).answer(200, result(1), Mcp_Session_Id="s")
    told.post(result("q", "from the client"), session="s").answer(202)
    assert answers(told)[2] == "from the client"


# --- Redelivery ---


def redelivered(told: Traffic) -> list[int]:
    """How many events each transaction brought again."""
    return [len(one.redelivered) for one in told.transcript.captures[0].transactions.values()]


def test_a_response_on_a_resumed_stream_completes_the_exchange_of_its_post() -> None:
    told = Traffic()
    opened_session(told, "s")
    told.post(tool_call(1), session="s").stream().event("", id="e1").close("server")
    told.get(session="s", Last_Event_ID="e1").stream().event(result(1, "late"), id="e2").close()
    assert answers(told)[1:] == ["late"]
    assert told.exchanges[1].transaction is not None
    assert told.exchanges[1].transaction.method == "POST"
    assert told.rules == []


def test_what_comes_again_is_not_counted_again() -> None:
    told = Traffic()
    opened_session(told, "s")
    log, answer = notification("notifications/message", {"level": "info"}), result(1, "there")
    posted = told.post(tool_call(1), session="s").stream().event("", id="e0")
    posted.event(log, id="e1").event(answer, id="e2").close("client", "reset")
    told.get(session="s", Last_Event_ID="e0").stream().event(log, id="e1").event(answer, id="e2").close()
    exchange = told.exchanges[1]
    assert (answers(told)[1:], len(exchange.more_responses)) == (["there"], 0)
    assert len(told.transcript.messages) == 6
    assert redelivered(told) == [0, 0, 0, 2]
    assert told.rules == []


def test_event_ids_that_start_anew_on_each_stream_repeat_nothing() -> None:
    told = Traffic()
    opened_session(told, "s")
    for id in (1, 2):
        told.post(tool_call(id), session="s").stream().event(result(id, id), id="1").close()
    assert answers(told)[1:] == [1, 2]


def test_a_resumed_stream_whose_event_ids_start_anew_repeats_nothing() -> None:
    told = Traffic()
    opened_session(told, "s")
    told.post(tool_call(1), session="s").stream().event(notification(), id="1").close("server")
    told.get(session="s", Last_Event_ID="1").stream().event(result(1, "late"), id="1").close()
    assert answers(told)[1:] == ["late"]


def test_equal_events_without_resumption_are_two() -> None:
    told = Traffic()
    opened_session(told, "s")
    stream = told.get(session="s").stream()
    for _ in range(2):
        stream.event(notification("notifications/tools/list_changed"), id="1")
    assert len(told.unpaired_messages) == 3


def test_an_exchange_of_a_polling_server_is_pending_between_its_streams() -> None:
    told = Traffic()
    opened_session(told, "s")
    told.post(tool_call(1), session="s").stream().event("", id="e1").close("server")
    exchange = growing(told).exchanges[1]
    assert exchange.outcome is Outcome.PENDING


def test_a_stream_without_event_ids_that_ends_early_leaves_its_request_unanswered() -> None:
    told = Traffic()
    opened_session(told, "s")
    told.post(tool_call(1), session="s").stream().event(notification()).close("server")
    assert growing(told).exchanges[1].outcome is Outcome.UNANSWERED


def growing(told: Traffic) -> Transcript:
    """The transcript of a capture that goes on."""
    transcriber = Transcriber()
    for record in told.records:
        transcriber.feed(record)
    return transcriber.transcript


# --- A hundred clients ---


def whose(exchange: Exchange) -> tuple[Any, Any]:
    """Who asked, and who was answered."""
    asked = exchange.request.params["arguments"]["client"]
    return asked, exchange.response and exchange.response.result


def ask(client: int, id: int, era: str) -> dict[str, Any]:
    if era == "modern":
        return modern(id, "tools/call", name="x", arguments={"client": client})
    return request(id, "tools/call", {"name": "x", "arguments": {"client": client}})


@pytest.mark.parametrize("way", ["modern", "stateless", "session", "sse"])
def test_a_hundred_clients_with_the_same_ids_get_their_own_answers(way: str) -> None:
    told = Traffic()
    clients = range(100)
    streams = {}
    if way == "session":
        for client in clients:
            opened_session(told, f"s{client}")
    if way == "sse":
        streams = {client: sse(told, f"/messages?s={client}") for client in clients}
    order = [(client, id) for client in clients for id in (1, 2)]
    shuffle = random.Random(7).shuffle
    shuffle(order)
    calls = {}
    for client, id in order:
        target = f"/messages?s={client}" if way == "sse" else "/mcp"
        session = f"s{client}" if way == "session" else ""
        calls[client, id] = told.post(ask(client, id, way), target, session=session)
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
    found = [whose(one) for one in told.exchanges if one.method == "tools/call"]
    assert len(found) == 200
    assert [(asked, got) for asked, got in found if asked != got] == []


@given(st.data())
def test_no_answer_is_paired_with_the_request_of_another_client(data: st.DataObject) -> None:
    told = Traffic()
    ways: list[str] = data.draw(st.lists(st.sampled_from(["modern", "stateless", "session", "sse"]), min_size=2, max_size=5))
    streams: dict[int, Call] = {}
    for client, way in enumerate(ways):
        if way == "session":
            opened_session(told, f"s{client}")
        elif way == "sse":
            streams[client] = sse(told, f"/messages?s={client}")
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
            if any((client, id) == one[:2] for one in waiting):
                continue
            target = f"/messages?s={client}" if client in streams else "/mcp"
            session = f"s{client}" if ways[client] == "session" else ""
            waiting.append((client, id, told.post(ask(client, id, ways[client]), target, session=session)))
    found = [whose(one) for one in told.exchanges if one.method == "tools/call" and one.response is not None]
    assert all(asked == got for asked, got in found)


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
def test_what_of_a_url_stands_in_a_request_line(url: str, target: str) -> None:
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
    told = Traffic(url=uri)
    stream = told.get(uri.replace("\r", "").replace("\n", "")).stream()
    stream.raw(b"event: endpoint\ndata: " + uri.encode("utf-8", "replace") + b"\n\n").close()
    told.post(request(1), "/x").answer(200, result(1))
    assert told.rules is not None


# --- Resumption without sessions ---


def broken_off(told: Traffic, client: str, last: str = "e1") -> Call:
    """A call whose stream ends before the answer."""
    return told.post(tool_call(1, client)).stream().event("", id=last).close("server")


def resumed(told: Traffic, last: str = "e1") -> Call:
    """A stream that goes on after an event."""
    return told.get(Last_Event_ID=last).stream()


def test_without_a_session_a_resumed_stream_answers_the_post_whose_last_event_it_names() -> None:
    told = Traffic()
    broken_off(told, "a", "a1")
    broken_off(told, "b", "b1")
    resumed(told, "b1").event(result(1, "b"), id="b2").close()
    resumed(told, "a1").event(result(1, "a"), id="a2").close()
    assert answers(told) == ["a", "b"]


def test_a_stream_without_a_session_may_break_off_again() -> None:
    told = Traffic()
    broken_off(told, "a")
    resumed(told).event(progress("t"), id="e2").close("server")
    resumed(told, "e2").event(result(1, "there"), id="e3").close()
    assert answers(told) == ["there"]


def test_progress_on_a_resumed_stream_without_a_session_finds_its_request() -> None:
    told = Traffic()
    told.post(tool_call(1, token="t")).stream().event("", id="e1").close("server")
    resumed(told).event(progress("t"), id="e2").event(result(1), id="e3").close()
    assert (told.exchange.progress, told.exchange.outcome) == (1, Outcome.OK)


def test_what_comes_again_without_a_session_is_not_counted_again() -> None:
    told = Traffic()
    log = notification("notifications/message", {"level": "info"})
    told.post(tool_call(1)).stream().event(log, id="e1").event(log, id="e2").close("server")
    resumed(told, "e2").event(log, id="e2").event(result(1), id="e3").close()
    assert (redelivered(told), len(told.unpaired_messages)) == ([0, 1], 2)


def test_without_a_session_a_call_that_may_be_resumed_is_pending_until_the_capture_ends() -> None:
    told = Traffic()
    broken_off(told, "a")
    assert growing(told).exchanges[0].outcome is Outcome.PENDING
    assert told.exchange.outcome is Outcome.UNANSWERED


def test_without_a_session_nobody_guesses_whose_stream_is_resumed() -> None:
    told = Traffic()
    broken_off(told, "a", "1")
    broken_off(told, "b", "1")
    resumed(told, "1").event(result(1, "whose?"), id="2").close()
    (get,) = told.transactions
    assert (answers(told), [one.name for one in get.anomalies]) == ([None, None], ["ambiguous-resume"])
    assert "ambiguous-stream" in told.rules


def test_the_modern_era_resumes_nothing() -> None:
    told = Traffic()
    told.post(modern(1)).stream().event("", id="e1").close("server")
    resumed(told).event(result(1, "late"), id="e2").close()
    assert answers(told) == [None]


# --- Sessions that are lost ---


def forgotten(told: Traffic, session: str, connection: int = 0) -> Call:
    """A request whose session the server knows no more."""
    return told.post(request(7), session=session, connection=connection).answer(404, error(None, -32001))


def scopes(told: Traffic) -> dict[str, str]:
    """Of each session that took the place of another, which."""
    found = {one.scope.session: one.scope for one in told.transcript.captures[0].transactions.values()}
    return {session: scope.replaces.session for session, scope in found.items() if scope.replaces is not None}


def test_a_session_that_is_opened_after_a_404_takes_the_place_of_the_one_that_was_lost() -> None:
    told = Traffic()
    opened_session(told, "s1")
    forgotten(told, "s1")
    opened_session(told, "s2")
    opened_session(told, "s3")
    assert scopes(told) == {"s2": "s1"}


def test_a_session_says_which_transaction_was_told_that_it_is_lost() -> None:
    told = Traffic()
    opened_session(told, "s")
    first = forgotten(told, "s")
    forgotten(told, "s")
    assert {one.scope.unknown_since for one in told.transcript.captures[0].transactions.values()} == {first.number}


def test_lost_sessions_are_told_apart_by_their_clients() -> None:
    told = Traffic()
    for name in ("ada", "bob"):
        opened_session(told, f"{name}1", name)
    forgotten(told, "ada1")
    forgotten(told, "bob1")
    for name in ("bob", "ada"):
        opened_session(told, f"{name}2", name)
    assert scopes(told) == {"bob2": "bob1", "ada2": "ada1"}


def test_lost_sessions_of_equal_clients_are_told_apart_by_their_connections_and_else_not_at_all() -> None:
    told = Traffic()
    for session in ("a1", "b1", "c1"):
        opened_session(told, session)
    for session, connection in (("a1", 71), ("b1", 72), ("c1", 73)):
        forgotten(told, session, connection)
    told.post(initialize(), connection=72).answer(200, result(0), Mcp_Session_Id="b2")
    opened_session(told, "who2")
    assert scopes(told) == {"b2": "b1"}


def test_a_404_about_an_unknown_method_loses_no_session() -> None:
    told = Traffic()
    opened_session(told, "s1")
    told.post(request(7, "x/y"), session="s1").answer(404, error(7, -32601))
    opened_session(told, "s2")
    assert scopes(told) == {}

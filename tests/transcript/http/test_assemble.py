"""HTTP told transaction by transaction: which of them are rows, what they carried, and how they ended."""

import gzip
import json

import pytest

from mcpspy.transcript.http.transaction import ScopeKind
from mcpspy.transcript.model import ChannelEvent, Kind, Numbered, Outcome, UnpairedMessage
from tests.transcript.dialogue import MS, error, notification, request, result, tool_call
from tests.transcript.traffic import Traffic, initialize, modern

SESSION = "redacted-8eecc9a3d0d7"


# --- Which are rows ---


def test_a_get_without_a_message_is_a_row() -> None:
    told = Traffic()
    told.get("/sse").answer(404)
    (row,) = told.transactions
    assert (row.row, row.method, row.target, row.status) == (1, "GET", "/sse", 404)


def test_a_post_with_a_request_is_no_row_but_its_exchange() -> None:
    told = Traffic()
    told.post(request(1)).answer(200, result(1))
    assert told.transactions == []
    assert told.exchange.transaction is not None
    assert told.exchange.transaction.status == 200


def test_a_post_with_a_notification_is_no_row_but_its_message() -> None:
    told = Traffic()
    told.post(notification()).answer(202)
    assert told.transactions == []
    (source,) = told.transcript.captures
    (message,) = told.unpaired_messages
    found = source.transaction_of(message.stream)
    assert found is not None
    assert found.status == 202


def test_rows_are_numbered_in_the_order_in_which_they_began() -> None:
    told = Traffic()
    stream = told.get("/sse").stream()
    told.post(request(1)).answer(200, result(1))
    told.call("DELETE").answer(200)
    stream.close("client", "reset")
    assert [(type(one).__name__, one.row) for one in told.transcript.rows if isinstance(one, Numbered)] == [
        ("Transaction", 1),
        ("Exchange", 2),
        ("Transaction", 3),
    ]


def test_a_stream_that_carries_answers_is_a_row_all_the_same() -> None:
    told = Traffic()
    told.get("/sse").stream().event("/messages?s=1", kind="endpoint").event(notification()).close("client", "reset")
    (row,) = told.transactions
    assert row.response is not None
    assert (row.request_messages, row.response_messages, row.response.events) == (0, 1, 2)


def test_a_request_that_was_never_finished_is_a_row_when_all_is_over() -> None:
    told = Traffic()
    told.call("POST", whole=False)
    assert [row.method for row in told.transactions] == ["POST"]


def test_a_response_whose_request_is_lost_is_a_transaction() -> None:
    told = Traffic()
    call = told.get("/x").answer(404)
    told.records = [told.records[0], *told.records[3:]]
    (row,) = told.transactions
    assert (row.number, row.status, row.method) == (call.number, 404, "")


# --- What bodies are ---


def test_a_page_is_no_message() -> None:
    told = Traffic()
    told.post(request(1)).answer(502, b"<html>Bad Gateway</html>", Content_Type="text/html")
    assert [one.kind for one in told.transcript.messages] == [Kind.REQUEST]


@pytest.mark.parametrize(
    "body",
    [
        {"resource": "http://127.0.0.1:3001/mcp", "authorization_servers": ["http://127.0.0.1:9"]},
        {"error": "invalid_token", "error_description": "expired"},
        {"access_token": "redacted-00dbbd8be47d", "token_type": "Bearer"},
        {"id": 7, "result": {}},
        [],
        5,
    ],
)
def test_metadata_and_what_oauth_needs_are_no_messages(body: object) -> None:
    told = Traffic()
    told.get("/.well-known/oauth-protected-resource").answer(200, body)
    assert told.transcript.messages == []


def test_an_oauth_error_in_answer_to_a_request_is_no_message() -> None:
    told = Traffic()
    told.post(request(1)).answer(401, {"error": "invalid_token", "error_description": "expired"})
    assert told.exchange.outcome is Outcome.HTTP_ERROR


def test_a_registration_is_no_message() -> None:
    told = Traffic()
    told.post({"redirect_uris": ["http://127.0.0.1:9/cb"]}, "/register").answer(201, {"client_id": "x"})
    assert told.transcript.messages == []
    assert [row.target for row in told.transactions] == ["/register"]


def test_a_body_is_read_whatever_its_content_type_says() -> None:
    told = Traffic()
    told.post(request(1), Content_Type="text/plain").answer(200, json.dumps(result(1)).encode(), Content_Type="text/plain")
    assert told.exchange.outcome is Outcome.OK


def test_broken_json_in_a_post_is_a_malformed_message() -> None:
    told = Traffic()
    told.post(b'{"jsonrpc":"2.0","id":1,').answer(400)
    (message,) = told.unpaired_messages
    assert (message.kind, message.reason) == (Kind.MALFORMED, "not JSON")
    assert told.rules == ["malformed-message"]


def test_broken_json_of_a_response_that_broke_off_is_cut_short() -> None:
    told = Traffic()
    told.post(request(1)).answer(200, b'{"jsonrpc":"2.0","id":1,', Content_Type="application/json", how="reset")
    (message,) = told.unpaired_messages
    assert message.reason == "cut short"


def test_a_compressed_body_is_read_decoded_and_counted_as_it_came() -> None:
    body = gzip.compress(json.dumps(result(1)).encode())
    told = Traffic()
    told.post(request(1)).answer(200, body, Content_Type="application/json", Content_Encoding="gzip")
    exchange = told.exchange
    assert exchange.response is not None
    assert exchange.response.raw == json.dumps(result(1)).encode()
    assert exchange.transaction is not None
    assert exchange.transaction.response is not None
    assert exchange.transaction.response.body_bytes == len(body)


def test_a_body_that_only_says_it_is_compressed_is_read_as_it_is() -> None:
    told = Traffic()
    told.post(request(1)).answer(200, result(1), Content_Encoding="gzip")
    assert told.exchange.outcome is Outcome.OK


def test_a_compressed_stream_of_events_is_read_at_its_end() -> None:
    told = Traffic()
    call = told.post(request(1))
    events = gzip.compress(b"data: " + json.dumps(result(1)).encode() + b"\n\n")
    call.answer(200, events, Content_Type="text/event-stream", Content_Encoding="gzip")
    assert told.exchange.outcome is Outcome.OK


def test_a_batch_in_a_body_is_so_many_requests_of_one_transaction() -> None:
    told = Traffic()
    told.post([request(1), request(2)]).answer(200, [result(2), result(1)])
    assert [one.outcome for one in told.exchanges] == [Outcome.OK, Outcome.OK]
    assert len({id(one.transaction) for one in told.exchanges}) == 1


def test_newline_delimited_json_is_read_line_by_line() -> None:
    lines = b"".join(json.dumps(one).encode() + b"\n" for one in (notification("notifications/message"), result(1)))
    told = Traffic()
    told.post(request(1)).answer(200, lines, Content_Type="text/plain")
    assert told.exchange.outcome is Outcome.OK
    assert len(told.unpaired_messages) == 1


def test_a_body_recorded_in_parts_is_one_message() -> None:
    told = Traffic()
    call = told.post(request(1))
    body = json.dumps(result(1)).encode()
    call.response = told.open(call, "response", b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n")
    told.frame(call.response, body[:9], part=True)
    told.frame(call.response, body[9:])
    call.close()
    response = told.exchange.response
    assert response is not None
    assert (response.raw, response.at_ns - response.first_ns) == (body, MS)


def test_a_body_that_was_not_recorded_says_so() -> None:
    told = Traffic()
    call = told.post(request(1))
    call.response = told.open(call, "response", b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n")
    told.frame(call.response, b"", length=5045, sha256="ab")
    call.close()
    (message,) = told.unpaired_messages
    assert message.reason == "not recorded"


# --- Events ---


def test_an_event_carries_a_message() -> None:
    told = Traffic()
    told.post(request(1)).stream().event(result(1), kind="message", id="7_1").close()
    exchange = told.exchange
    assert exchange.response is not None
    assert exchange.response.raw == json.dumps(result(1)).encode()


def test_data_of_several_lines_is_one_message() -> None:
    told = Traffic()
    told.post(request(1)).stream().event(json.dumps(result(1), indent=1)).close()
    assert told.exchange.outcome is Outcome.OK


def test_an_event_may_hold_a_batch() -> None:
    told = Traffic()
    told.post([request(1), request(2)]).stream().event([result(1), result(2)]).close()
    assert [one.outcome for one in told.exchanges] == [Outcome.OK, Outcome.OK]


@pytest.mark.parametrize(
    "raw", [b": ping\r\n\r\n", b"id: 7_0\r\ndata: \r\n\r\n", b"id: 8\n\n", b"retry: 500\n\n", b"data: [DONE]\n\n"]
)
def test_comments_priming_events_and_end_marks_are_facts_of_the_stream(raw: bytes) -> None:
    told = Traffic()
    told.post(request(1)).stream().raw(raw).event(result(1)).close()
    assert len(told.transcript.messages) == 2
    assert told.exchange.outcome is Outcome.OK


def test_events_of_other_types_are_no_messages() -> None:
    told = Traffic()
    told.post(request(1)).stream().event(result(1), kind="note").close()
    assert told.exchange.response is None


def test_data_that_is_no_json_is_malformed() -> None:
    told = Traffic()
    told.post(request(1)).stream().event("hello").event(result(1)).close()
    assert [one.reason for one in told.unpaired_messages] == ["not JSON"]


def test_an_event_without_its_end_was_cut_short() -> None:
    told = Traffic()
    told.post(request(1)).stream().raw(b"data: " + json.dumps(result(1)).encode() + b"\n").close("server", "reset")
    assert told.exchange.response is None
    assert [one.reason for one in told.unpaired_messages] == ["cut short"]


def test_a_stream_counts_its_events_comments_bytes_and_chunks() -> None:
    told = Traffic()
    call = told.get().stream().raw(b": ping\n\n", chunks=(8,)).event(notification(), id="3", chunks=(40, 23)).close()
    (row,) = told.transactions
    response = row.response
    assert response is not None
    assert (response.events, response.comments, response.chunks, response.last_event_id) == (1, 1, 3, "3")
    assert response.body_bytes == sum(
        len(one.data) for one in told.records if getattr(one, "stream", -1) == call.response and hasattr(one, "data")
    )


def test_a_byte_order_mark_before_the_first_event_counts_for_nothing() -> None:
    told = Traffic()
    told.post(request(1)).stream().raw(b"\xef\xbb\xbfdata: " + json.dumps(result(1)).encode() + b"\n\n").close()
    assert told.exchange.outcome is Outcome.OK


# --- How exchanges end ---


@pytest.mark.parametrize(
    ("status", "outcome"),
    [(401, "http error"), (500, "http error"), (307, "redirected"), (202, "unanswered"), (200, "unanswered")],
)  # fmt: skip
def test_a_status_without_a_message_is_what_became_of_a_request(status: int, outcome: str) -> None:
    told = Traffic()
    told.post(request(1)).answer(status)
    assert told.exchange.outcome.value == outcome


def test_a_status_that_comes_before_the_body_is_what_became_of_the_request_in_it() -> None:
    told = Traffic()
    call = told.call("POST", whole=False)
    call.answer(401, b"who are you?")
    told.frame(call.request, json.dumps(request(1)).encode())
    told.close(call.request, "client")
    assert told.exchange.outcome is Outcome.HTTP_ERROR
    assert told.transactions == []


def test_a_status_ends_a_request_of_a_session_too() -> None:
    told = Traffic()
    told.post(initialize()).answer(200, result(0), Mcp_Session_Id=SESSION)
    told.post(request(1), session=SESSION).answer(500, b"oops")
    assert [one.outcome for one in told.exchanges] == [Outcome.OK, Outcome.HTTP_ERROR]


@pytest.mark.parametrize("id", [None, "server-error"])
def test_an_error_without_an_id_of_use_answers_the_request_of_its_transaction(id: object) -> None:
    told = Traffic()
    told.post(request(1)).answer(400, {**error(1, -32000), "id": id})
    exchange = told.exchange
    assert (exchange.outcome, exchange.response and exchange.response.kind) == (Outcome.ERROR, Kind.ERROR)
    assert told.rules == []


def test_an_error_without_an_id_answers_all_requests_of_a_batch() -> None:
    told = Traffic()
    told.post([request(1), request(2)]).answer(400, {**error(1), "id": None})
    assert [one.outcome for one in told.exchanges] == [Outcome.ERROR, Outcome.ERROR]
    assert len(told.transcript.messages) == 3


def test_an_error_with_the_id_of_a_request_answers_that_one_alone() -> None:
    told = Traffic()
    told.post([request(1), request(2)]).answer(400, [error(2), result(1)])
    assert [one.outcome for one in told.exchanges] == [Outcome.OK, Outcome.ERROR]


def test_closing_the_response_stream_cancels_a_request_of_the_modern_era() -> None:
    told = Traffic()
    told.post(modern(1)).stream().close("client", "reset")
    exchange = told.exchange
    assert exchange.outcome is Outcome.CANCELLED
    assert exchange.duration_ns == 4 * MS - MS


def test_leaving_before_the_response_cancels_a_request_of_the_modern_era() -> None:
    told = Traffic()
    told.post(modern(1)).leave()
    assert told.exchange.outcome is Outcome.CANCELLED


def test_closing_the_response_stream_cancels_no_request_of_the_legacy_era() -> None:
    told = Traffic()
    told.post(request(1)).stream().close("client", "reset")
    assert told.exchange.outcome is Outcome.UNANSWERED


def test_a_server_that_closes_the_stream_cancels_nothing() -> None:
    told = Traffic()
    told.post(modern(1)).stream().close("server", "reset")
    assert told.exchange.outcome is Outcome.UNANSWERED


def test_a_client_that_closes_right_after_the_answer_cancels_nothing() -> None:
    told = Traffic()
    told.post(modern(1)).stream().event(result(1)).close("client", "reset")
    assert told.exchange.outcome is Outcome.OK
    assert told.rules == []


def test_the_era_is_told_by_the_body_and_not_by_header_fields() -> None:
    told = Traffic()
    told.post(request(1), Mcp_Protocol_Version="2026-07-28").stream().close("client", "reset")
    assert told.exchange.outcome is Outcome.UNANSWERED


def test_a_legacy_cancellation_finds_its_request_in_the_session() -> None:
    told = Traffic()
    told.post(initialize()).answer(200, result(0), Mcp_Session_Id=SESSION)
    call = told.post(tool_call(1), session=SESSION).stream()
    told.post({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}, session=SESSION).answer(202)
    call.close()
    assert [one.outcome for one in told.exchanges] == [Outcome.OK, Outcome.CANCELLED]


# --- Notes, interim responses, what is injected ---


def test_a_note_about_a_transaction_is_kept_with_it() -> None:
    told = Traffic()
    told.get().note("upstream", "127.0.0.1:3001: Connection refused").answer(502, b"mcpspy: no", injected=True, by="mcpspy")
    (row,) = told.transactions
    assert [note.topic for note in row.notes] == ["upstream"]
    assert not any(isinstance(one, ChannelEvent) for one in told.transcript.rows)


def test_an_interim_response_stands_beside_the_final_one() -> None:
    told = Traffic()
    call = told.get()
    told.close(told.open(call, "response", b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n"), "server")
    call.answer(200)
    (row,) = told.transactions
    assert (len(row.interim), row.status) == (1, 200)


def test_a_websocket_is_a_response_of_its_own() -> None:
    told = Traffic()
    told.get(Upgrade="websocket").answer(101)
    (row,) = told.transactions
    assert (row.status, row.interim) == (101, ())


def test_streams_of_http_close_without_an_event() -> None:
    told = Traffic()
    told.post(request(1)).answer(200, result(1))
    told.close(1, "client", "reset")
    assert [row for row in told.transcript.rows if isinstance(row, ChannelEvent)] == []


# --- Lanes ---


def test_every_client_has_the_lane_of_its_name() -> None:
    told = Traffic()
    for name, session in (("claude-code", "s1"), ("inspector", "s2")):
        told.post(initialize(0, name)).answer(200, result(0), Mcp_Session_Id=session)
        told.post(tool_call(1), session=session).answer(200, result(1))
    transcript = told.transcript
    (source,) = transcript.captures
    assert [lane.name for lane in transcript.lanes] == ["claude-code", "inspector", "weather"]
    assert [source.client_of(one) for one in transcript.exchanges] == ["claude-code", "claude-code", "inspector", "inspector"]


def test_one_client_that_said_its_name_has_the_lane_for_all() -> None:
    told = Traffic()
    told.get("/favicon.ico").answer(404)
    told.post(initialize(0, "inspector")).answer(200, result(0))
    told.post(request(1)).answer(200, result(1))
    transcript = told.transcript
    assert {transcript.captures[0].client_of(row) for row in transcript.rows} == {"inspector"}


def test_a_modern_client_says_its_name_in_every_request() -> None:
    told = Traffic()
    for name in ("a", "b"):
        told.post(modern(1, client=name)).answer(200, result(1))
    transcript = told.transcript
    assert [transcript.captures[0].client_of(one) for one in transcript.exchanges] == ["a", "b"]


def test_the_process_that_started_the_tap_is_no_client() -> None:
    told = Traffic()
    told.post(request(1)).answer(200, result(1))
    assert told.transcript.captures[0].client == "client"


# --- What is lost ---


def test_messages_broken_by_lost_records_are_nobodys_fault() -> None:
    told = Traffic()
    call = told.post(request(1)).stream()
    told.damage()
    call.raw(b'2.0","id":1,"result":{}}\n\n').event(result(1)).close()
    told.ends()
    assert told.rules == ["capture-damaged"]


def test_a_response_that_is_lost_leaves_the_exchange_unanswered_and_blames_nobody() -> None:
    told = Traffic()
    told.post(request(1))
    told.gap().ends()
    assert told.exchange.outcome is Outcome.UNANSWERED
    assert told.rules == ["recording-gap"]


def test_scopes_say_what_they_are() -> None:
    told = Traffic()
    told.post(initialize()).answer(200, result(0), Mcp_Session_Id=SESSION)
    told.post(modern(1)).answer(200, result(1))
    told.get("/sse").stream().event("/messages?s=1", kind="endpoint")
    told.post(request(1), "/messages?s=1").answer(202)
    kinds = [one.scope.kind for one in told.transcript.captures[0].transactions.values()]
    assert kinds == [ScopeKind.SESSION, ScopeKind.TRANSACTION, ScopeKind.STREAM, ScopeKind.STREAM]


def test_unpaired_messages_keep_their_transaction() -> None:
    told = Traffic()
    told.post(request(1)).stream().event(notification("notifications/message", {"level": "info"})).event(result(1)).close()
    (source,) = told.transcript.captures
    (unpaired,) = [row for row in told.transcript.rows if isinstance(row, UnpairedMessage)]
    found = source.transaction_of(unpaired.message.stream)
    assert found is not None
    assert found.number == 1

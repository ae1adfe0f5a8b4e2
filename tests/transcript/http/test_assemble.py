"""HTTP transaction by transaction: the rows, the messages in them, and their ends."""

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
    traffic = Traffic()
    traffic.get("/sse").answer(404)
    (row,) = traffic.transactions
    assert (row.row, row.method, row.target, row.status) == (1, "GET", "/sse", 404)


def test_a_post_with_a_request_is_no_row_but_its_exchange() -> None:
    traffic = Traffic()
    traffic.post(request(1)).answer(200, result(1))
    assert traffic.transactions == []
    assert traffic.exchange.transaction is not None
    assert traffic.exchange.transaction.status == 200


def test_a_post_with_a_notification_is_no_row_but_its_message() -> None:
    traffic = Traffic()
    traffic.post(notification()).answer(202)
    assert traffic.transactions == []
    (source,) = traffic.transcript.captures
    (message,) = traffic.unpaired_messages
    transaction = source.transaction_of(message.stream)
    assert transaction is not None
    assert transaction.status == 202


def test_rows_are_numbered_in_the_order_in_which_they_began() -> None:
    traffic = Traffic()
    stream = traffic.get("/sse").stream()
    traffic.post(request(1)).answer(200, result(1))
    traffic.call("DELETE").answer(200)
    stream.close("client", "reset")
    assert [(type(row).__name__, row.row) for row in traffic.transcript.rows if isinstance(row, Numbered)] == [
        ("Transaction", 1),
        ("Exchange", 2),
        ("Transaction", 3),
    ]


def test_a_stream_that_carries_answers_is_a_row_all_the_same() -> None:
    traffic = Traffic()
    traffic.get("/sse").stream().event("/messages?s=1", kind="endpoint").event(notification()).close("client", "reset")
    (row,) = traffic.transactions
    assert row.response is not None
    assert (row.request_messages, row.response_messages, row.response.events) == (0, 1, 2)


def test_a_request_that_was_never_finished_is_a_row_when_all_is_over() -> None:
    traffic = Traffic()
    traffic.call("POST", whole=False)
    assert [row.method for row in traffic.transactions] == ["POST"]


def test_a_response_without_its_request_is_a_transaction() -> None:
    traffic = Traffic()
    call = traffic.get("/x").answer(404)
    traffic.records = [traffic.records[0], *traffic.records[3:]]
    (row,) = traffic.transactions
    assert (row.number, row.status, row.method) == (call.number, 404, "")


# --- What bodies are ---


def test_a_page_is_no_message() -> None:
    traffic = Traffic()
    traffic.post(request(1)).answer(502, b"<html>Bad Gateway</html>", Content_Type="text/html")
    assert [message.kind for message in traffic.transcript.messages] == [Kind.REQUEST]


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
    traffic = Traffic()
    traffic.get("/.well-known/oauth-protected-resource").answer(200, body)
    assert traffic.transcript.messages == []


def test_an_oauth_error_in_answer_to_a_request_is_no_message() -> None:
    traffic = Traffic()
    traffic.post(request(1)).answer(401, {"error": "invalid_token", "error_description": "expired"})
    assert traffic.exchange.outcome is Outcome.HTTP_ERROR


def test_a_registration_is_no_message() -> None:
    traffic = Traffic()
    traffic.post({"redirect_uris": ["http://127.0.0.1:9/cb"]}, "/register").answer(201, {"client_id": "x"})
    assert traffic.transcript.messages == []
    assert [row.target for row in traffic.transactions] == ["/register"]


def test_a_body_is_read_whatever_its_content_type_says() -> None:
    traffic = Traffic()
    traffic.post(request(1), Content_Type="text/plain").answer(200, json.dumps(result(1)).encode(), Content_Type="text/plain")
    assert traffic.exchange.outcome is Outcome.OK


def test_broken_json_in_a_post_is_a_malformed_message() -> None:
    traffic = Traffic()
    traffic.post(b'{"jsonrpc":"2.0","id":1,').answer(400)
    (message,) = traffic.unpaired_messages
    assert (message.kind, message.reason) == (Kind.MALFORMED, "not JSON")
    assert traffic.rules == ["malformed-message"]


def test_broken_json_of_a_response_that_broke_off_is_cut_short() -> None:
    traffic = Traffic()
    traffic.post(request(1)).answer(200, b'{"jsonrpc":"2.0","id":1,', Content_Type="application/json", how="reset")
    (message,) = traffic.unpaired_messages
    assert message.reason == "cut short"


def test_a_compressed_body_is_read_decoded_and_counted_as_it_came() -> None:
    body = gzip.compress(json.dumps(result(1)).encode())
    traffic = Traffic()
    traffic.post(request(1)).answer(200, body, Content_Type="application/json", Content_Encoding="gzip")
    exchange = traffic.exchange
    assert exchange.response is not None
    assert exchange.response.raw == json.dumps(result(1)).encode()
    assert exchange.transaction is not None
    assert exchange.transaction.response is not None
    assert exchange.transaction.response.body_bytes == len(body)


def test_a_body_that_only_says_it_is_compressed_is_read_as_it_is() -> None:
    traffic = Traffic()
    traffic.post(request(1)).answer(200, result(1), Content_Encoding="gzip")
    assert traffic.exchange.outcome is Outcome.OK


def test_a_compressed_stream_of_events_is_read_at_its_end() -> None:
    traffic = Traffic()
    call = traffic.post(request(1))
    events = gzip.compress(b"data: " + json.dumps(result(1)).encode() + b"\n\n")
    call.answer(200, events, Content_Type="text/event-stream", Content_Encoding="gzip")
    assert traffic.exchange.outcome is Outcome.OK


def test_a_batch_in_a_body_is_so_many_requests_of_one_transaction() -> None:
    traffic = Traffic()
    traffic.post([request(1), request(2)]).answer(200, [result(2), result(1)])
    assert [exchange.outcome for exchange in traffic.exchanges] == [Outcome.OK, Outcome.OK]
    assert len({id(exchange.transaction) for exchange in traffic.exchanges}) == 1


def test_newline_delimited_json_is_read_line_by_line() -> None:
    lines = b"".join(json.dumps(message).encode() + b"\n" for message in (notification("notifications/message"), result(1)))
    traffic = Traffic()
    traffic.post(request(1)).answer(200, lines, Content_Type="text/plain")
    assert traffic.exchange.outcome is Outcome.OK
    assert len(traffic.unpaired_messages) == 1


def test_a_body_recorded_in_parts_is_one_message() -> None:
    traffic = Traffic()
    call = traffic.post(request(1))
    body = json.dumps(result(1)).encode()
    call.response = traffic.open(call, "response", b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n")
    traffic.frame(call.response, body[:9], part=True)
    traffic.frame(call.response, body[9:])
    call.close()
    response = traffic.exchange.response
    assert response is not None
    assert (response.raw, response.at_ns - response.first_ns) == (body, MS)


def test_a_body_that_was_not_recorded_says_so() -> None:
    traffic = Traffic()
    call = traffic.post(request(1))
    call.response = traffic.open(call, "response", b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n")
    traffic.frame(call.response, b"", length=5045, sha256="ab")
    call.close()
    (message,) = traffic.unpaired_messages
    assert message.reason == "not recorded"


# --- Events ---


def test_an_event_carries_a_message() -> None:
    traffic = Traffic()
    traffic.post(request(1)).stream().event(result(1), kind="message", id="7_1").close()
    exchange = traffic.exchange
    assert exchange.response is not None
    assert exchange.response.raw == json.dumps(result(1)).encode()


def test_data_of_several_lines_is_one_message() -> None:
    traffic = Traffic()
    traffic.post(request(1)).stream().event(json.dumps(result(1), indent=1)).close()
    assert traffic.exchange.outcome is Outcome.OK


def test_an_event_may_hold_a_batch() -> None:
    traffic = Traffic()
    traffic.post([request(1), request(2)]).stream().event([result(1), result(2)]).close()
    assert [exchange.outcome for exchange in traffic.exchanges] == [Outcome.OK, Outcome.OK]


@pytest.mark.parametrize(
    "raw", [b": ping\r\n\r\n", b"id: 7_0\r\ndata: \r\n\r\n", b"id: 8\n\n", b"retry: 500\n\n", b"data: [DONE]\n\n"]
)
def test_comments_priming_events_and_end_marks_are_facts_of_the_stream(raw: bytes) -> None:
    traffic = Traffic()
    traffic.post(request(1)).stream().raw(raw).event(result(1)).close()
    assert len(traffic.transcript.messages) == 2
    assert traffic.exchange.outcome is Outcome.OK


def test_events_of_other_types_are_no_messages() -> None:
    traffic = Traffic()
    traffic.post(request(1)).stream().event(result(1), kind="note").close()
    assert traffic.exchange.response is None


def test_data_that_is_no_json_is_malformed() -> None:
    traffic = Traffic()
    traffic.post(request(1)).stream().event("hello").event(result(1)).close()
    assert [message.reason for message in traffic.unpaired_messages] == ["not JSON"]


def test_an_event_without_its_end_was_cut_short() -> None:
    traffic = Traffic()
    traffic.post(request(1)).stream().raw(b"data: " + json.dumps(result(1)).encode() + b"\n").close("server", "reset")
    assert traffic.exchange.response is None
    assert [message.reason for message in traffic.unpaired_messages] == ["cut short"]


def test_a_stream_counts_its_events_comments_bytes_and_chunks() -> None:
    traffic = Traffic()
    call = traffic.get().stream().raw(b": ping\n\n", chunks=(8,)).event(notification(), id="3", chunks=(40, 23)).close()
    (row,) = traffic.transactions
    response = row.response
    assert response is not None
    assert (response.events, response.comments, response.chunks, response.last_event_id) == (1, 1, 3, "3")
    assert response.body_bytes == sum(
        len(record.data)
        for record in traffic.records
        if getattr(record, "stream", -1) == call.response and hasattr(record, "data")
    )


def test_a_byte_order_mark_before_the_first_event_counts_for_nothing() -> None:
    traffic = Traffic()
    traffic.post(request(1)).stream().raw(b"\xef\xbb\xbfdata: " + json.dumps(result(1)).encode() + b"\n\n").close()
    assert traffic.exchange.outcome is Outcome.OK


# --- How exchanges end ---


@pytest.mark.parametrize(
    ("status", "outcome"),
    [(401, "http error"), (500, "http error"), (307, "redirected"), (202, "unanswered"), (200, "unanswered")],
)  # fmt: skip
def test_a_status_without_a_message_is_what_became_of_a_request(status: int, outcome: str) -> None:
    traffic = Traffic()
    traffic.post(request(1)).answer(status)
    assert traffic.exchange.outcome.value == outcome


def test_a_status_that_comes_before_the_body_is_what_became_of_the_request_in_it() -> None:
    traffic = Traffic()
    call = traffic.call("POST", whole=False)
    call.answer(401, b"who are you?")
    traffic.frame(call.request, json.dumps(request(1)).encode())
    traffic.close(call.request, "client")
    assert traffic.exchange.outcome is Outcome.HTTP_ERROR
    assert traffic.transactions == []


def test_a_status_ends_a_request_of_a_session_too() -> None:
    traffic = Traffic()
    traffic.post(initialize()).answer(200, result(0), Mcp_Session_Id=SESSION)
    traffic.post(request(1), session=SESSION).answer(500, b"oops")
    assert [exchange.outcome for exchange in traffic.exchanges] == [Outcome.OK, Outcome.HTTP_ERROR]


@pytest.mark.parametrize("id", [None, "server-error"])
def test_an_error_without_an_id_of_use_answers_the_request_of_its_transaction(id: object) -> None:
    traffic = Traffic()
    traffic.post(request(1)).answer(400, {**error(1, -32000), "id": id})
    exchange = traffic.exchange
    assert (exchange.outcome, exchange.response and exchange.response.kind) == (Outcome.ERROR, Kind.ERROR)
    assert traffic.rules == []


def test_an_error_without_an_id_answers_all_requests_of_a_batch() -> None:
    traffic = Traffic()
    traffic.post([request(1), request(2)]).answer(400, {**error(1), "id": None})
    assert [exchange.outcome for exchange in traffic.exchanges] == [Outcome.ERROR, Outcome.ERROR]
    assert len(traffic.transcript.messages) == 3


def test_an_error_with_the_id_of_a_request_answers_that_one_alone() -> None:
    traffic = Traffic()
    traffic.post([request(1), request(2)]).answer(400, [error(2), result(1)])
    assert [exchange.outcome for exchange in traffic.exchanges] == [Outcome.OK, Outcome.ERROR]


def test_closing_the_response_stream_cancels_a_request_of_the_modern_era() -> None:
    traffic = Traffic()
    traffic.post(modern(1)).stream().close("client", "reset")
    exchange = traffic.exchange
    assert exchange.outcome is Outcome.CANCELLED
    assert exchange.duration_ns == 4 * MS - MS


def test_leaving_before_the_response_cancels_a_request_of_the_modern_era() -> None:
    traffic = Traffic()
    traffic.post(modern(1)).leave()
    assert traffic.exchange.outcome is Outcome.CANCELLED


def test_closing_the_response_stream_cancels_no_request_of_the_legacy_era() -> None:
    traffic = Traffic()
    traffic.post(request(1)).stream().close("client", "reset")
    assert traffic.exchange.outcome is Outcome.UNANSWERED


def test_a_server_that_closes_the_stream_cancels_nothing() -> None:
    traffic = Traffic()
    traffic.post(modern(1)).stream().close("server", "reset")
    assert traffic.exchange.outcome is Outcome.UNANSWERED


def test_a_client_that_closes_right_after_the_answer_cancels_nothing() -> None:
    traffic = Traffic()
    traffic.post(modern(1)).stream().event(result(1)).close("client", "reset")
    assert traffic.exchange.outcome is Outcome.OK
    assert traffic.rules == []


def test_the_era_is_told_by_the_body_and_not_by_header_fields() -> None:
    traffic = Traffic()
    traffic.post(request(1), Mcp_Protocol_Version="2026-07-28").stream().close("client", "reset")
    assert traffic.exchange.outcome is Outcome.UNANSWERED


def test_a_legacy_cancellation_finds_its_request_in_the_session() -> None:
    traffic = Traffic()
    traffic.post(initialize()).answer(200, result(0), Mcp_Session_Id=SESSION)
    call = traffic.post(tool_call(1), session=SESSION).stream()
    traffic.post({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}, session=SESSION).answer(
        202
    )
    call.close()
    assert [exchange.outcome for exchange in traffic.exchanges] == [Outcome.OK, Outcome.CANCELLED]


# --- Notes, interim responses, what is injected ---


def test_a_note_about_a_transaction_is_kept_with_it() -> None:
    traffic = Traffic()
    traffic.get().note("upstream", "127.0.0.1:3001: Connection refused").answer(502, b"mcpspy: no", injected=True, by="mcpspy")
    (row,) = traffic.transactions
    assert [note.topic for note in row.notes] == ["upstream"]
    assert not any(isinstance(row, ChannelEvent) for row in traffic.transcript.rows)


def test_an_interim_response_is_kept_beside_the_final_one() -> None:
    traffic = Traffic()
    call = traffic.get()
    traffic.close(traffic.open(call, "response", b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n"), "server")
    call.answer(200)
    (row,) = traffic.transactions
    assert (len(row.interim), row.status) == (1, 200)


def test_a_websocket_is_a_response_of_its_own() -> None:
    traffic = Traffic()
    traffic.get(Upgrade="websocket").answer(101)
    (row,) = traffic.transactions
    assert (row.status, row.interim) == (101, ())


def test_streams_of_http_close_without_an_event() -> None:
    traffic = Traffic()
    traffic.post(request(1)).answer(200, result(1))
    traffic.close(1, "client", "reset")
    assert [row for row in traffic.transcript.rows if isinstance(row, ChannelEvent)] == []


# --- Lanes ---


def test_every_client_has_the_lane_of_its_name() -> None:
    traffic = Traffic()
    for name, session in (("claude-code", "s1"), ("inspector", "s2")):
        traffic.post(initialize(0, name)).answer(200, result(0), Mcp_Session_Id=session)
        traffic.post(tool_call(1), session=session).answer(200, result(1))
    transcript = traffic.transcript
    (source,) = transcript.captures
    assert [lane.name for lane in transcript.lanes] == ["claude-code", "inspector", "weather"]
    assert [source.client_of(exchange) for exchange in transcript.exchanges] == [
        "claude-code",
        "claude-code",
        "inspector",
        "inspector",
    ]


def test_one_client_with_a_name_has_the_lane_of_the_capture() -> None:
    traffic = Traffic()
    traffic.get("/favicon.ico").answer(404)
    traffic.post(initialize(0, "inspector")).answer(200, result(0))
    traffic.post(request(1)).answer(200, result(1))
    transcript = traffic.transcript
    assert {transcript.captures[0].client_of(row) for row in transcript.rows} == {"inspector"}


def test_a_modern_client_says_its_name_in_every_request() -> None:
    traffic = Traffic()
    for name in ("a", "b"):
        traffic.post(modern(1, client=name)).answer(200, result(1))
    transcript = traffic.transcript
    assert [transcript.captures[0].client_of(exchange) for exchange in transcript.exchanges] == ["a", "b"]


def test_the_process_that_started_the_tap_is_no_client() -> None:
    traffic = Traffic()
    traffic.post(request(1)).answer(200, result(1))
    assert traffic.transcript.captures[0].client == "client"


# --- What is lost ---


def test_messages_with_missing_records_are_damaged() -> None:
    traffic = Traffic()
    call = traffic.post(request(1)).stream()
    traffic.damage()
    call.raw(b'2.0","id":1,"result":{}}\n\n').event(result(1)).close()
    traffic.ends()
    assert traffic.rules == ["capture-damaged"]


def test_an_exchange_whose_response_is_missing_is_unknown_without_a_finding() -> None:
    traffic = Traffic()
    traffic.post(request(1))
    traffic.gap().ends()
    assert traffic.exchange.outcome is Outcome.UNKNOWN
    assert traffic.rules == ["recording-gap"]


def test_scopes_say_what_they_are() -> None:
    traffic = Traffic()
    traffic.post(initialize()).answer(200, result(0), Mcp_Session_Id=SESSION)
    traffic.post(modern(1)).answer(200, result(1))
    traffic.get("/sse").stream().event("/messages?s=1", kind="endpoint")
    traffic.post(request(1), "/messages?s=1").answer(202)
    kinds = [transaction.scope.kind for transaction in traffic.transcript.captures[0].transactions.values()]
    assert kinds == [ScopeKind.SESSION, ScopeKind.TRANSACTION, ScopeKind.STREAM, ScopeKind.STREAM]


def test_unpaired_messages_keep_their_transaction() -> None:
    traffic = Traffic()
    traffic.post(request(1)).stream().event(notification("notifications/message", {"level": "info"})).event(result(1)).close()
    (source,) = traffic.transcript.captures
    (unpaired,) = [row for row in traffic.transcript.rows if isinstance(row, UnpairedMessage)]
    transaction = source.transaction_of(unpaired.message.stream)
    assert transaction is not None
    assert transaction.number == 1

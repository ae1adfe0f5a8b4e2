"""Findings about HTTP, and traffic in which nobody is certainly to blame."""

import json
import time
from base64 import b64encode
from typing import Any

import pytest

from mcpspy.records import Partial, Stall
from mcpspy.transcript.findings.rule import Severity
from mcpspy.transcript.http.head import decoded_value, next_urls, read_head
from tests.transcript.dialogue import notification, request, result, tool_call
from tests.transcript.traffic import Traffic, initialize, modern, opened_session

# --- Nothing to find ---


def everyday(traffic: Traffic) -> None:
    """Play a session as official SDKs do: a probe, a handshake, calls, a question, a goodbye."""
    traffic.post(modern(1, "server/discover")).answer(
        400, {"jsonrpc": "2.0", "id": None, "error": {"code": -32000, "message": "no"}}
    )
    opened_session(traffic, "s", "claude-code", "elicitation")
    stream = traffic.get(session="s").stream()
    call = traffic.post(tool_call(1), session="s").stream().event(request(1, "elicitation/create"))
    traffic.post(result(1), session="s").answer(202)
    call.event(result(1)).close("client", "broken")
    traffic.call("DELETE", fields={"Mcp_Session_Id": "s"}).answer(200)
    stream.close("client", "broken")
    traffic.get("/.well-known/oauth-protected-resource").answer(404)


def test_an_everyday_session_has_no_findings() -> None:
    traffic = Traffic()
    everyday(traffic)
    assert traffic.rules == []


@pytest.mark.parametrize("status", [400, 404, 405, 500])
def test_an_error_status_without_a_message_is_found(status: int) -> None:
    traffic = Traffic()
    traffic.post(request(1)).answer(status, b"Sorry", Content_Type="text/plain")
    finding = traffic.finding
    assert (finding.rule, finding.row, finding.culprit) == ("http-error", 1, "server" if status == 500 else "unclear")
    assert f"answered with {status}" in finding.what
    assert "“Sorry”" in finding.what


# --- Endpoints ---


@pytest.mark.parametrize(
    ("uri", "forwarded"),
    [
        ("http://0.0.0.0:3001/messages?s=1", b"event: endpoint\ndata: http://127.0.0.1:7777/messages?s=1\n\n"),
        ("http://localhost:3001/messages?s=1", b"event: endpoint\ndata: http://127.0.0.1:7777/messages?s=1\n\n"),
        ("https://127.0.0.1:3001/m", b""),
    ],
)
def test_an_endpoint_of_another_origin_is_found(uri: str, forwarded: bytes) -> None:
    traffic = Traffic()
    traffic.get("/sse").stream().event(uri, kind="endpoint", forwarded=forwarded).close("client", "broken")
    finding = traffic.finding
    assert (finding.rule, finding.culprit, finding.row) == ("foreign-endpoint", "server", 1)
    assert uri in finding.what


@pytest.mark.parametrize("uri", ["/messages?s=1", "messages", "http://127.0.0.1:3001/messages", "?s=1"])
def test_an_endpoint_of_the_same_origin_is_well(uri: str) -> None:
    traffic = Traffic()
    sent = f"event: endpoint\ndata: {uri.replace('3001', '7777')}\n\n".encode()
    traffic.get("/sse").stream().event(uri, kind="endpoint", forwarded=sent).close("client", "broken")
    assert traffic.rules == []


@pytest.mark.parametrize("user", ["ada:tea@", "ada@", "//ada:tea@", "@"])
def test_an_endpoint_with_a_user_is_found_without_its_password(user: str) -> None:
    traffic = Traffic()
    uri = f"{user}127.0.0.1:3001/messages" if user.startswith("//") else f"http://{user}127.0.0.1:3001/messages"
    traffic.get("/sse").stream().event(uri, kind="endpoint").close("client", "broken")
    finding = traffic.finding
    assert (finding.rule, finding.culprit, finding.row) == ("endpoint-user", "server", 1)
    assert "127.0.0.1:3001" in finding.what
    assert "tea" not in finding.what


def test_an_endpoint_as_json_is_found() -> None:
    traffic = Traffic()
    traffic.get("/sse").stream().event({"uri": "/messages?s=1"}, kind="endpoint").close("client", "broken")
    assert (traffic.finding.rule, traffic.finding.culprit) == ("endpoint-dialect", "server")


def test_two_open_streams_with_one_endpoint_are_found() -> None:
    traffic = Traffic()
    for _ in range(2):
        traffic.get("/sse").stream().event("/messages", kind="endpoint")
    assert (traffic.finding.rule, traffic.finding.row) == ("ambiguous-stream", 2)


def test_an_answer_on_one_of_several_streams_without_an_endpoint_is_found() -> None:
    traffic = Traffic()
    stream, _ = traffic.get("/events").stream(), traffic.get("/events").stream()
    traffic.post(request(1), "/request").answer(202)
    stream.event(result(1))
    assert (traffic.finding.rule, traffic.finding.culprit, traffic.finding.row) == ("ambiguous-stream", "server", 3)


def test_an_end_mark_of_another_protocol_is_found_once_and_counted() -> None:
    traffic = Traffic()
    for id in (1, 2):
        traffic.post(request(id)).stream().event(result(id)).event("[DONE]").close()
    assert (traffic.finding.rule, traffic.finding.count, traffic.finding.row) == ("done-event", 2, 1)


# --- What mcpspy answered ---


def test_a_failed_upstream_is_found_with_its_reason() -> None:
    traffic = Traffic()
    body = b"mcpspy: http://127.0.0.1:3001 cannot be reached: Connection refused\n"
    for id in (1, 2):
        traffic.post(request(id)).answer(502, body, injected=True, by="mcpspy", Content_Type="text/plain")
    finding = traffic.finding
    assert (finding.rule, finding.culprit, finding.count, finding.row) == ("upstream-failed", "configuration", 2, 1)
    assert "Connection refused" in finding.what


@pytest.mark.parametrize(
    ("status", "server", "body"),
    [
        (502, "", b"Bad Gateway"),
        (503, "envoy", b"no healthy upstream"),
        (503, "", b"<!DOCTYPE html><title>Sorry</title>"),
        (500, "", b"<html><body><center>nginx</center></body></html>"),
        (413, "", b"<html><center><h1>413</h1></center><hr><center>nginx</center></html>"),
    ],
)
def test_an_error_of_a_gateway_is_not_the_servers(status: int, server: str, body: bytes) -> None:
    traffic = Traffic()
    traffic.post(request(1)).answer(status, body, Content_Type="text/html", Server=server)
    assert (traffic.finding.rule, traffic.finding.culprit) == ("http-error", "gateway")


def test_an_error_of_a_server_that_a_gateway_passed_on_is_the_servers() -> None:
    traffic = Traffic()
    traffic.post(request(1)).answer(500, b"KeyError", Content_Type="text/plain", Server="nginx")
    assert (traffic.finding.rule, traffic.finding.culprit) == ("http-error", "server")


@pytest.mark.parametrize("status", [400, 403, 408, 421])
def test_a_refused_request_is_found(status: int) -> None:
    traffic = Traffic()
    traffic.get("/", Host="evil.example").answer(status, b"mcpspy: no\n", injected=True, by="mcpspy", Content_Type="text/plain")
    culprit = "configuration" if status == 421 else "client"
    assert (traffic.finding.rule, traffic.finding.culprit) == ("request-refused", culprit)


def test_a_dpop_proof_is_found() -> None:
    traffic = Traffic()
    traffic.post(request(1), DPoP="eyJ").answer(200, result(1))
    assert (traffic.finding.rule, traffic.finding.culprit) == ("dpop-proof", "mcpspy")


# --- Statuses and fields that contradict ---


def test_a_result_with_an_error_status_is_found() -> None:
    traffic = Traffic()
    traffic.post(request(1)).answer(500, result(1))
    assert (traffic.finding.rule, traffic.finding.culprit, traffic.finding.row) == ("status-contradicts", "server", 1)


def test_an_answer_that_the_server_refuses_is_no_contradiction_of_the_clients() -> None:
    traffic = Traffic()
    call = traffic.post(tool_call(1)).stream().event(request("q", "elicitation/create"))
    traffic.post(result("q")).answer(404)
    call.event(result(1)).close()
    assert "status-contradicts" not in traffic.rules


def mismatch(**fields: str) -> Traffic:
    traffic = Traffic()
    header_fields = {"Mcp_Method": "tools/call", "Mcp_Name": "add", "Mcp_Protocol_Version": "2026-07-28", **fields}
    traffic.post(modern(1, "tools/call", name="add"), fields=header_fields).answer(200, result(1))
    return traffic


@pytest.mark.parametrize("fields", [{"Mcp_Method": "tools/list"}, {"Mcp_Name": "Add"}, {"Mcp_Protocol_Version": "2025-11-25"}])
def test_a_field_that_contradicts_the_body_is_found(fields: dict[str, str]) -> None:
    (finding,) = mismatch(**fields).findings
    assert (finding.rule, finding.culprit) == ("header-contradicts", "client")


def test_a_revision_in_a_field_is_held_to_the_one_that_the_handshake_agreed_on() -> None:
    traffic = Traffic()
    opened_session(traffic, "s")
    traffic.post(request(1), session="s", Mcp_Protocol_Version="2025-03-26").answer(200, result(1))
    assert any("“2025-03-26”, but the handshake agreed on “2025-" in finding.what for finding in traffic.findings)


def test_a_name_with_half_a_surrogate_pair_can_contradict_too() -> None:
    traffic = Traffic()
    fields = {"Mcp_Method": "tools/call", "Mcp_Name": "add", "Mcp_Protocol_Version": "2026-07-28"}
    traffic.post(json.dumps(modern(1, "tools/call", name="\ud800")).encode(), fields=fields).answer(200, result(1))
    assert "header-contradicts" in traffic.rules


def test_a_document_of_a_login_is_looked_at_also_where_it_answers_a_message() -> None:
    traffic = Traffic()
    document = {"resource": "http://127.0.0.1:3001/mcp", "authorization_servers": ["http://127.0.0.1:3001"]}
    traffic.post(request(1), "/.well-known/oauth-protected-resource/mcp").answer(200, document)
    assert "unrewritten-address" in traffic.rules


def test_fields_that_mirror_the_body_are_well() -> None:
    assert mismatch().rules == []


def test_a_field_in_base64_is_compared_by_what_it_means() -> None:
    encoded = b64encode("lab://café/x".encode()).decode()
    traffic = Traffic()
    fields = {"Mcp_Method": "resources/read", "Mcp_Name": f"=?base64?{encoded}?="}
    traffic.post(modern(1, "resources/read", uri="lab://café/x"), fields=fields).answer(200, result(1))
    assert traffic.rules == []


@pytest.mark.parametrize("value", ["=?base64?%%?=", "=?base64?/w==?=", "=?base64?"])
def test_a_field_that_cannot_be_decoded_means_itself(value: str) -> None:
    assert decoded_value(value) == value


# --- No answer ---


def blame(traffic: Traffic) -> tuple[str, str, Severity]:
    finding = traffic.finding
    return finding.rule, finding.culprit, finding.severity


def test_202_for_a_request_is_found() -> None:
    traffic = Traffic()
    traffic.post(request(1)).answer(202)
    assert blame(traffic) == ("accepted-request", "server", Severity.ERROR)


def test_202_is_what_http_sse_answers() -> None:
    traffic = Traffic()
    stream = traffic.get("/sse").stream().event("/m?s=1", kind="endpoint")
    traffic.post(request(1), "/m?s=1").answer(202)
    stream.event(result(1)).close("client", "broken")
    assert traffic.rules == []


def test_a_server_that_closes_the_stream_without_an_answer_is_found() -> None:
    traffic = Traffic()
    traffic.post(request(1)).stream().event(notification("notifications/message", {"level": "info"})).close()
    assert blame(traffic) == ("unanswered-request", "server", Severity.ERROR)
    assert ": it closed the stream 4 ms after the request." in traffic.finding.what


def test_a_server_that_breaks_off_is_found() -> None:
    traffic = Traffic()
    traffic.post(request(1)).stream().close("server", "reset")
    assert ": it broke off its response 3 ms after the request." in traffic.finding.what


def test_a_server_that_answers_with_a_page_is_found() -> None:
    traffic = Traffic()
    traffic.post(request(1)).answer(200, b"<html>", Content_Type="text/html; charset=utf-8")
    assert "its response (HTTP 200, text/html) holds no message" in traffic.finding.what


def test_a_server_whose_sse_stream_ends_is_found() -> None:
    traffic = Traffic()
    stream = traffic.get("/sse").stream().event("/m?s=1", kind="endpoint")
    traffic.post(request(1), "/m?s=1").answer(202)
    stream.close("server", "reset")
    assert blame(traffic) == ("unanswered-request", "server", Severity.ERROR)


def test_a_client_that_leaves_soon_is_nobodys_fault() -> None:
    traffic = Traffic()
    traffic.post(request(1)).stream().close("client", "broken")
    assert blame(traffic) == ("unanswered-request", "client", Severity.NOTE)


def test_a_client_that_leaves_before_the_response_is_nobodys_fault() -> None:
    traffic = Traffic()
    traffic.post(request(1)).leave()
    assert blame(traffic) == ("unanswered-request", "client", Severity.NOTE)


def test_a_client_that_waited_long_was_kept_waiting() -> None:
    traffic = Traffic()
    call = traffic.post(request(1)).stream()
    traffic.wait(60_000)
    call.close("client", "broken")
    assert blame(traffic) == ("unanswered-request", "server", Severity.ERROR)


def test_a_stream_that_was_open_when_recording_ended_blames_nobody() -> None:
    traffic = Traffic()
    traffic.post(request(1)).stream()
    assert traffic.rules == []


def test_a_stream_that_mcpspy_ended_blames_nobody() -> None:
    traffic = Traffic()
    traffic.post(request(1)).stream().close("mcpspy", "abort")
    assert traffic.rules == []


def test_a_client_that_closes_the_stream_instead_of_answering_is_found() -> None:
    traffic = Traffic()
    traffic.post(initialize()).answer(200, result(0), Mcp_Session_Id="s")
    asked = traffic.get(session="s").stream().event(request(1, "roots/list"))
    traffic.wait(1000)
    asked.close("client", "broken")
    assert blame(traffic) == ("unanswered-request", "client", Severity.ERROR)


def test_a_client_that_leaves_when_it_is_asked_may_not_have_read_it() -> None:
    traffic = Traffic()
    traffic.post(initialize()).answer(200, result(0), Mcp_Session_Id="s")
    traffic.get(session="s").stream().event(request(1, "roots/list")).close("client", "broken")
    assert traffic.rules == []


def test_a_subscription_that_ends_needs_no_answer() -> None:
    traffic = Traffic()
    traffic.post(modern(1, "subscriptions/listen")).stream().event(
        notification("notifications/subscriptions/acknowledged")
    ).close()
    assert traffic.rules == []


def test_an_answer_on_a_later_stream_is_no_lost_one() -> None:
    traffic = Traffic()
    opened_session(traffic, "s")
    traffic.post(tool_call(1), session="s").stream().event("", id="e1").close("server")
    traffic.get(session="s", Last_Event_ID="e1").stream().event(result(1), id="e2").close()
    assert traffic.rules == []


# --- Slow ones ---


def waiting(call: Any, stream: int) -> Traffic:
    traffic: Traffic = call.traffic
    return traffic.add(Partial(at_ns=traffic.tick(), stream=stream, first_ns=traffic.at_ns, data=b"data: {}"))


def test_an_event_without_its_empty_line_is_found() -> None:
    call = Traffic().post(request(1)).stream()
    traffic = waiting(call, call.response)
    call.event(result(1)).close()
    assert (traffic.finding.rule, traffic.finding.culprit) == ("half-line", "server")
    assert "The end of an event on response did not come" in traffic.finding.what


def test_a_body_may_take_its_time() -> None:
    call = Traffic().post(request(1))
    traffic = waiting(call, call.request)
    call.answer(200, result(1))
    assert traffic.rules == []


def test_the_reader_of_a_response_is_the_client() -> None:
    call = Traffic().post(request(1)).stream()
    traffic = call.traffic.add(Stall(at_ns=call.traffic.tick(), stream=call.response, waiting_bytes=65536))
    call.event(result(1)).close()
    assert (traffic.finding.rule, traffic.finding.culprit) == ("reader-stalled", "client")


# --- Bodies ---


@pytest.mark.parametrize("body", [b'{"jsonrpc":"2.0",', b"{}{}"])
def test_a_broken_body_is_malformed_and_its_advice_fits(body: bytes) -> None:
    traffic = Traffic()
    traffic.post(body).answer(400)
    finding = traffic.finding
    assert (finding.rule, finding.culprit) == ("malformed-message", "client")
    assert "line" not in finding.advice


def test_bare_results_in_events_are_flawed_parts() -> None:
    traffic = Traffic()
    stream: Any = traffic.post(request(1)).stream()
    stream.event({"result": {"progress": 30}}).event(result(1)).close()
    assert set(traffic.rules) == {"no-jsonrpc", "unpaired-response", "partial-result"}


def test_an_id_that_comes_back_as_a_string_is_found_over_http_too() -> None:
    traffic = Traffic()
    traffic.post(request(7)).answer(200, result("7"))
    assert traffic.rules == ["id-type-mismatch"]


def coded_metadata(host: str) -> Traffic:
    """Metadata in a coding that nobody knows, asked for at a host."""
    traffic = Traffic()
    asked = traffic.get("/.well-known/oauth-protected-resource", Host=host, Accept="application/json")
    asked.answer(200, b"\x01\x02", Content_Type="application/json", Content_Encoding="sealed")
    return traffic


def test_metadata_that_cannot_be_read_is_a_fault_of_mcpspy_only_where_it_is_in_between() -> None:
    assert "unrewritten-address" in coded_metadata("127.0.0.1:7777").rules
    assert "unrewritten-address" not in coded_metadata("127.0.0.1:3001").rules


def test_an_address_that_was_not_rewritten_is_told_without_the_query_that_led_to_it() -> None:
    traffic = Traffic()
    call = traffic.call("GET", "/callback?code=abc123secretvalue99&state=xyz")
    call.answer(302, Location="http://127.0.0.1:3001/next")
    (finding,) = [finding for finding in traffic.findings if finding.rule == "unrewritten-address"]
    assert "/callback sends the client to the server itself" in finding.what
    assert "secretvalue" not in finding.what


def test_hostile_challenges_and_documents_take_no_time_and_little_room() -> None:
    began_s = time.process_time()
    assert list(next_urls(read_head(b'HTTP/1.1 401 No\r\nWWW-Authenticate: "' + b'\\"' * 30_000 + b"\r\n\r\n"))) == []
    assert time.process_time() - began_s < 1
    traffic = Traffic()
    asked = traffic.get("/.well-known/oauth-protected-resource")
    servers = [f"http://127.0.0.1:3001/{number}" for number in range(2_000)]
    document = json.dumps({"authorization_servers": servers}).encode()
    asked.answer(200, document, Content_Type="application/json", Content_Encoding="identity")
    (transaction,) = traffic.transactions
    assert 1 <= len(transaction.anomalies) <= 100

"""The HTTP side of a capture, and the defaults where nothing was recorded."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mcpspy.capture.file.reader import read
from mcpspy.records import Record
from mcpspy.replay.mock.http.answer import AnswerShape, EventStyle, HttpRequest, MockAddress, Transport
from mcpspy.replay.mock.http.recorded_http import ACCEPTED, UNKNOWN_SESSION, HttpFacts, status_of_error
from mcpspy.replay.mock.http.session import HttpCursor, session_endpoint
from mcpspy.transcript.mcp.revisions import Era
from mcpspy.transcript.transcribe import transcribe
from tests.conftest import ROOT
from tests.replay.mock.http.http_requests import LIVE, call, facts, get, post
from tests.transcript.dialogue import Dialogue, error, request, result
from tests.transcript.test_properties import ANY_RECORDS
from tests.transcript.traffic import TAP_URL, Traffic, initialize, modern, opened_session

SSE = MockAddress("http://127.0.0.1:4321", "/sse")
OK = {"jsonrpc": "2.0", "id": 7, "result": {}}


def captured(name: str, transport: Transport = "streamable") -> HttpFacts:
    return HttpFacts(
        transcribe(read(str(ROOT / "captures" / f"{name}.mcpspy")), keep_frames=True, with_findings=False), transport
    )


def announcing(uri: str) -> Traffic:
    """Return HTTP+SSE traffic whose stream announces this endpoint, with one call."""
    traffic = Traffic(url="http://127.0.0.1:3001/sse")
    stream = traffic.get("/sse").stream().event(uri, kind="endpoint")
    traffic.post(call("x"), "/messages?sessionId=recorded").answer(202, b"Accepted")
    stream.event(OK)
    return traffic


# What was recorded


def test_an_answer_goes_out_as_it_did() -> None:
    traffic = Traffic()
    traffic.post(call("x")).answer(200, OK, Server="uvicorn", Date="today", Mcp_Session_Id="s", Set_Cookie="a=b", X_Version="3")
    traffic.post(call("y")).stream(X_Accel_Buffering="no", Connection="X-Hop", X_Hop="1").event(OK).close()
    http_facts = facts(traffic)
    fields = (("Server", "uvicorn"), ("X-Version", "3"), ("Content-Type", "application/json"))
    assert http_facts.shape(1) == AnswerShape(200, is_stream=False, fields=fields)
    stream_fields = (("Content-Type", "text/event-stream"), ("X-Accel-Buffering", "no"))
    assert http_facts.shape(2) == AnswerShape(200, is_stream=True, fields=stream_fields)


def test_a_field_that_could_not_be_sent_is_left_out() -> None:
    traffic = Traffic()
    traffic.post(call("x")).answer(200, OK, X="a\x00b", W="d", **{"Y Z": "c"})  # type: ignore[arg-type]  # no other is named so
    assert facts(traffic).shape(1).fields == (("W", "d"), ("Content-Type", "application/json"))


@pytest.mark.parametrize(("session", "has"), [({"Mcp_Session_Id": "s"}, True), ({}, False)])
def test_sessions_are_given_where_they_were(session: dict[str, str], has: bool) -> None:  # noqa: FBT001 - drawn from the table
    traffic = Traffic()
    traffic.post(initialize()).answer(200, {"jsonrpc": "2.0", "id": 0, "result": {}}, **session)  # type: ignore[arg-type]  # a field
    assert facts(traffic).has_sessions is has


def test_a_capture_without_initialize_is_served_without_sessions() -> None:
    assert not HttpFacts(Dialogue().client(request(1)).server(result(1)).transcript).has_sessions


def test_an_answer_that_came_on_another_stream_may_come_on_its_own() -> None:
    traffic = Traffic()
    opened_session(traffic, "s")
    stream = traffic.get(session="s").stream()
    traffic.post(call("x"), session="s").answer(202, X="1")
    stream.event(OK)
    assert facts(traffic).shape(4) == AnswerShape()


def test_who_lacks_a_session_is_told_what_the_recorded_client_was() -> None:
    traffic = Traffic()
    traffic.post(call("x")).answer(400, b"whose is that?")
    opened_session(traffic, "s")
    assert facts(traffic).missing_session.body == b"whose is that?"


def test_events_are_written_as_they_were() -> None:
    traffic = Traffic()
    traffic.post(call("x")).stream().raw(b"id: 1\nretry: 500\ndata: \n\n").raw(
        b'id: 2\ndata: {"jsonrpc":"2.0","id":7,"result":{}}\n\n'
    ).close()
    assert facts(traffic).event_style == EventStyle(ids=True, primes=True, retry_ms=500, is_crlf=False, names_type=False)


def test_the_answer_to_what_asks_nothing_is_as_it_was() -> None:
    traffic = Traffic()
    traffic.post({"jsonrpc": "2.0", "method": "notifications/initialized"}).answer(204, X_Powered_By="Express")
    answer = facts(traffic).accepted
    assert (answer.status, answer.body, dict(answer.fields)["X-Powered-By"]) == (204, b"", "Express")


@pytest.mark.parametrize(
    ("recorded", "target", "expected"),
    [
        ("/messages?sessionId=recorded", "/messages?sessionId=S", "/messages?sessionId=S"),
        ("/messages?sessionId=recorded&x=1", "/messages?sessionId=S&x=1", "/messages?sessionId=S&x=1"),
        (f"{TAP_URL}/messages?sessionId=recorded", "/messages?sessionId=S", "http://127.0.0.1:4321/messages?sessionId=S"),
        (
            "http://0.0.0.0:3001/messages?sessionId=recorded",
            "/messages?sessionId=S",
            "http://127.0.0.1:4321/messages?sessionId=S",
        ),
        ("/messages/redacted-0123456789ab", "/messages/S", "/messages/S"),
        ("/messages/c0ffee00-1234-4321-8888-0123456789ab/x", "/messages/S/x", "/messages/S/x"),
        ("messages", "/messages?session_id=S", "messages?session_id=S"),
        ("http://elsewhere.example.org/m", "/messages/?session_id=S", "/messages/?session_id=S"),
        (
            '{"uri": "/m?sessionId=recorded", "protocol": "ssE"}',
            "/m?sessionId=S",
            '{"uri": "/m?sessionId=S", "protocol": "ssE"}',
        ),
    ],
)
def test_an_endpoint_is_announced_in_its_form_for_the_live_session(recorded: str, target: str, expected: str) -> None:
    assert session_endpoint(facts(announcing(recorded), "sse"), "S", SSE) == (target, expected.encode())


def test_http_sse_accepts_as_it_did() -> None:
    http_facts = facts(announcing("/messages?sessionId=recorded"), "sse")
    assert (http_facts.accepted.status, http_facts.accepted.body, http_facts.paths) == (202, b"Accepted", ("/sse",))


def test_what_was_recorded_over_the_other_transport_is_not_played() -> None:
    http_facts = facts(announcing("/messages?sessionId=recorded"), "streamable")
    assert (http_facts.paths, http_facts.shape(1), http_facts.accepted, http_facts.has_sessions) == (
        (),
        AnswerShape(),
        ACCEPTED["streamable"],
        False,
    )


# What was not


def test_captures_of_stdio_are_served_as_the_sdks_would() -> None:
    dialogue = Dialogue()
    dialogue.client(initialize()).server(result(0, {"protocolVersion": "2025-11-25"})).client(request(1)).server(error(1))
    http_facts = HttpFacts(dialogue.transcript)
    assert (http_facts.has_sessions, http_facts.paths, http_facts.accepted, http_facts.unknown_session) == (
        True,
        (),
        ACCEPTED["streamable"],
        UNKNOWN_SESSION,
    )
    assert (http_facts.shape(1), http_facts.shape(2)) == (AnswerShape(), AnswerShape())
    assert HttpCursor(http_facts).answer(get()) is None
    answer = HttpCursor(http_facts).answer(HttpRequest("DELETE", "/mcp", LIVE))
    assert answer is not None
    assert (answer.status, answer.ends_session) == (200, True)


def test_the_modern_era_has_no_sessions_and_no_streams_of_its_own() -> None:
    dialogue = Dialogue()
    dialogue.client(modern(1)).server(result(1)).client(modern(2, "x/y")).server(error(2))
    http_facts = HttpFacts(dialogue.transcript)
    assert not http_facts.has_sessions
    answers = [HttpCursor(http_facts).answer(HttpRequest(method, "/mcp", LIVE)) for method in ("GET", "DELETE")]
    assert [answer and answer.status for answer in answers] == [405, 405]
    assert http_facts.shape(2).status == 404


def test_errors_have_a_status_in_the_modern_era_alone() -> None:
    assert [status_of_error(code, Era.MODERN) for code in (-32601, -32602, -32022, 5)] == [404, 400, 400, 200]
    assert status_of_error(-32601, Era.LEGACY) == status_of_error(-32601, None) == 200


# The captures


def test_oauth_challenges_and_says_who_it_is() -> None:
    http_facts = captured("oauth")
    cursor = HttpCursor(http_facts)
    challenge, static_response = (
        cursor.answer(post(initialize())),
        cursor.answer(get("/.well-known/oauth-protected-resource/mcp")),
    )
    assert challenge is not None
    assert static_response is not None
    assert "http://127.0.0.1:4321/.well-known/oauth-protected-resource/mcp" in dict(challenge.fields)["www-authenticate"]
    assert static_response.body.startswith(
        b'{"resource":"http://127.0.0.1:4321/mcp","authorization_servers":["http://127.0.0.1:9000/"]'
    )
    assert cursor.answer(post(initialize(), is_authorized=True)) is None


def test_a_capture_that_asks_who_asks_does_so_over_the_other_transport_too() -> None:
    cursor = HttpCursor(captured("oauth", "sse"))
    answer = cursor.answer(get("/sse", live=SSE))
    assert answer is not None
    assert answer.status == 401
    assert "http://127.0.0.1:4321/.well-known/oauth-protected-resource/sse" in dict(answer.fields)["www-authenticate"]
    static_response = cursor.answer(get("/.well-known/oauth-protected-resource/sse", live=SSE))
    assert static_response is not None
    assert static_response.body.startswith(b'{"resource":"http://127.0.0.1:4321/sse"')


def test_resumed_has_ids_and_says_what_becomes_of_a_deleted_session() -> None:
    http_facts = captured("resumed")
    assert http_facts.event_style == EventStyle(ids=True, primes=True)
    assert (http_facts.unknown_session.status, http_facts.delete_answer.status) == (400, 200)


def test_stateless_answers_in_json_but_for_progress() -> None:
    http_facts = captured("stateless")
    assert not http_facts.has_sessions
    assert [http_facts.shape(row).is_stream for row in (1, 2, 3, 4, 6)] == [False, False, True, False, False]
    assert http_facts.get_refusal is not None


def test_streamable_has_a_stream_of_its_own() -> None:
    http_facts = captured("streamable")
    assert (http_facts.has_sessions, http_facts.get_refusal, http_facts.accepted.status) == (True, None, 202)


def test_sse_announces_its_endpoint() -> None:
    assert session_endpoint(captured("sse", "sse"), "S", SSE) == ("/messages/?session_id=S", b"/messages/?session_id=S")


# Whatever was recorded

PATHS = st.sampled_from(["/mcp", "/messages?s=1", "/sse", "/", "/.well-known/x/mcp", "/token?a=%zz", "", "//", "/mcp?x"])
METHODS = st.sampled_from(["GET", "POST", "DELETE", "OPTIONS", "\x00"])


@given(ANY_RECORDS, st.sampled_from(["streamable", "sse"]), st.lists(st.tuples(METHODS, PATHS, st.booleans()), max_size=5))
def test_of_any_records_there_are_facts_that_can_be_sent(
    records: list[Record], transport: Transport, requests: list[tuple[str, str, bool]]
) -> None:
    http_facts = HttpFacts(transcribe(records, keep_frames=True), transport)
    cursor = HttpCursor(http_facts)
    answers = [cursor.answer(HttpRequest(method, path, LIVE, message)) for method, path, message in requests]
    answers += [
        http_facts.accepted,
        http_facts.unknown_session,
        http_facts.missing_session,
        http_facts.delete_answer,
        http_facts.get_refusal,
    ]
    fields = [item for answer in answers if answer for item in answer.fields] + [
        item for row in range(9) for item in http_facts.shape(row).fields
    ]
    assert all("\r" not in text and "\n" not in text and "\0" not in text for item in fields for text in item)
    assert all(answer.status for answer in answers if answer)
    target, data = session_endpoint(http_facts, "S", SSE)
    assert target.startswith("/")
    assert b"S" in data


@example('{"uri": "/a", "n": 1e9999}')
@example('{"uri": "http://["}')
@example('{"uri": 5}')
@given(st.text(max_size=60) | st.binary(max_size=60).map(lambda data: data.decode("latin-1")))
def test_whatever_was_announced_another_session_can_be(uri: str) -> None:
    traffic = announcing(uri)
    target, data = session_endpoint(facts(traffic, "sse"), "S", SSE)
    assert target.startswith("/")
    assert "S" in target
    assert not {*b"\r\n"} & {*data}

"""How a recorded server answered over HTTP, and what is taken for granted where nobody recorded that."""

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
from tests.replay.mock.asking import LIVE, call, facts, get, post
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
    """HTTP+SSE whose stream announces this endpoint, and one call."""
    told = Traffic(url="http://127.0.0.1:3001/sse")
    stream = told.get("/sse").stream().event(uri, kind="endpoint")
    told.post(call("x"), "/messages?sessionId=recorded").answer(202, b"Accepted")
    stream.event(OK)
    return told


# What was recorded


def test_an_answer_goes_out_as_it_did() -> None:
    told = Traffic()
    told.post(call("x")).answer(200, OK, Server="uvicorn", Date="today", Mcp_Session_Id="s", Set_Cookie="a=b", X_Version="3")
    told.post(call("y")).stream(X_Accel_Buffering="no", Connection="X-Hop", X_Hop="1").event(OK).close()
    found = facts(told)
    assert found.shape(1) == AnswerShape(200, is_stream=False, fields=(("Server", "uvicorn"), ("X-Version", "3")))
    assert found.shape(2) == AnswerShape(200, is_stream=True, fields=(("X-Accel-Buffering", "no"),))


def test_a_field_that_could_not_be_sent_is_left_out() -> None:
    told = Traffic()
    told.post(call("x")).answer(200, OK, X="a\x00b", W="d", **{"Y Z": "c"})  # type: ignore[arg-type]  # no other is named so
    assert facts(told).shape(1).fields == (("W", "d"),)


@pytest.mark.parametrize(("session", "has"), [({"Mcp_Session_Id": "s"}, True), ({}, False)])
def test_sessions_are_given_where_they_were(session: dict[str, str], has: bool) -> None:  # noqa: FBT001 - drawn from the table
    told = Traffic()
    told.post(initialize()).answer(200, {"jsonrpc": "2.0", "id": 0, "result": {}}, **session)  # type: ignore[arg-type]  # a field
    assert facts(told).has_sessions is has


def test_a_recording_in_which_nobody_initialized_is_served_without_sessions() -> None:
    assert not HttpFacts(Dialogue().client(request(1)).server(result(1)).transcript).has_sessions


def test_an_answer_that_came_on_another_stream_may_come_on_its_own() -> None:
    told = Traffic()
    opened_session(told, "s")
    stream = told.get(session="s").stream()
    told.post(call("x"), session="s").answer(202, X="1")
    stream.event(OK)
    assert facts(told).shape(4) == AnswerShape()


def test_who_lacks_a_session_is_told_what_the_recorded_client_was() -> None:
    told = Traffic()
    told.post(call("x")).answer(400, b"whose is that?")
    opened_session(told, "s")
    assert facts(told).missing_session.body == b"whose is that?"


def test_events_are_written_as_they_were() -> None:
    told = Traffic()
    told.post(call("x")).stream().raw(b"id: 1\nretry: 500\ndata: \n\n").raw(
        b'id: 2\ndata: {"jsonrpc":"2.0","id":7,"result":{}}\n\n'
    ).close()
    assert facts(told).event_style == EventStyle(ids=True, primes=True, retry_ms=500, is_crlf=False, names_type=False)


def test_the_answer_to_what_asks_nothing_is_as_it_was() -> None:
    told = Traffic()
    told.post({"jsonrpc": "2.0", "method": "notifications/initialized"}).answer(204, X_Powered_By="Express")
    answer = facts(told).accepted
    assert (answer.status, answer.body, dict(answer.fields)["X-Powered-By"]) == (204, b"", "Express")


@pytest.mark.parametrize(
    ("recorded", "target", "said"),
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
def test_an_endpoint_is_announced_in_its_form_for_the_live_session(recorded: str, target: str, said: str) -> None:
    assert session_endpoint(facts(announcing(recorded), "sse"), "S", SSE) == (target, said.encode())


def test_http_sse_accepts_as_it_did() -> None:
    found = facts(announcing("/messages?sessionId=recorded"), "sse")
    assert (found.accepted.status, found.accepted.body, found.paths) == (202, b"Accepted", ("/sse",))


def test_what_was_recorded_over_the_other_transport_is_not_played() -> None:
    found = facts(announcing("/messages?sessionId=recorded"), "streamable")
    assert (found.paths, found.shape(1), found.accepted, found.has_sessions) == (
        (),
        AnswerShape(),
        ACCEPTED["streamable"],
        False,
    )


# What was not


def test_captures_of_stdio_are_served_as_the_sdks_would() -> None:
    told = Dialogue()
    told.client(initialize()).server(result(0, {"protocolVersion": "2025-11-25"})).client(request(1)).server(error(1))
    found = HttpFacts(told.transcript)
    assert (found.has_sessions, found.paths, found.accepted, found.unknown_session) == (
        True,
        (),
        ACCEPTED["streamable"],
        UNKNOWN_SESSION,
    )
    assert (found.shape(1), found.shape(2)) == (AnswerShape(), AnswerShape())
    assert HttpCursor(found).answer(get()) is None
    answer = HttpCursor(found).answer(HttpRequest("DELETE", "/mcp", LIVE))
    assert answer is not None
    assert (answer.status, answer.ends_session) == (200, True)


def test_the_modern_era_has_no_sessions_and_no_streams_of_its_own() -> None:
    told = Dialogue()
    told.client(modern(1)).server(result(1)).client(modern(2, "x/y")).server(error(2))
    found = HttpFacts(told.transcript)
    assert not found.has_sessions
    assert [HttpCursor(found).answer(HttpRequest(method, "/mcp", LIVE)).status for method in ("GET", "DELETE")] == [405, 405]  # type: ignore[union-attr]
    assert found.shape(2).status == 404


def test_errors_have_a_status_in_the_modern_era_alone() -> None:
    assert [status_of_error(code, Era.MODERN) for code in (-32601, -32602, -32022, 5)] == [404, 400, 400, 200]
    assert status_of_error(-32601, Era.LEGACY) == status_of_error(-32601, None) == 200


# The captures


def test_oauth_challenges_and_says_who_it_is() -> None:
    found = captured("oauth")
    walk = HttpCursor(found)
    challenge, document = walk.answer(post(initialize())), walk.answer(get("/.well-known/oauth-protected-resource/mcp"))
    assert challenge is not None
    assert document is not None
    assert "http://127.0.0.1:4321/.well-known/oauth-protected-resource/mcp" in dict(challenge.fields)["www-authenticate"]
    assert document.body.startswith(
        b'{"resource":"http://127.0.0.1:4321/mcp","authorization_servers":["http://127.0.0.1:9000/"]'
    )
    assert walk.answer(post(initialize(), is_authorized=True)) is None


def test_a_capture_that_asks_who_asks_does_so_over_the_other_transport_too() -> None:
    walk = HttpCursor(captured("oauth", "sse"))
    answer = walk.answer(get("/sse", live=SSE))
    assert answer is not None
    assert answer.status == 401
    assert "http://127.0.0.1:4321/.well-known/oauth-protected-resource/sse" in dict(answer.fields)["www-authenticate"]
    document = walk.answer(get("/.well-known/oauth-protected-resource/sse", live=SSE))
    assert document is not None
    assert document.body.startswith(b'{"resource":"http://127.0.0.1:4321/sse"')


def test_resumed_has_ids_and_says_what_becomes_of_a_deleted_session() -> None:
    found = captured("resumed")
    assert found.event_style == EventStyle(ids=True, primes=True)
    assert (found.unknown_session.status, found.delete_answer.status) == (400, 200)


def test_stateless_answers_in_json_but_for_progress() -> None:
    found = captured("stateless")
    assert not found.has_sessions
    assert [found.shape(row).is_stream for row in (1, 2, 3, 4, 6)] == [False, False, True, False, False]
    assert found.get_refusal is not None


def test_streamable_has_a_stream_of_its_own() -> None:
    found = captured("streamable")
    assert (found.has_sessions, found.get_refusal, found.accepted.status) == (True, None, 202)


def test_sse_announces_its_endpoint() -> None:
    assert session_endpoint(captured("sse", "sse"), "S", SSE) == ("/messages/?session_id=S", b"/messages/?session_id=S")


# Whatever was recorded

PATHS = st.sampled_from(["/mcp", "/messages?s=1", "/sse", "/", "/.well-known/x/mcp", "/token?a=%zz", "", "//", "/mcp?x"])
METHODS = st.sampled_from(["GET", "POST", "DELETE", "OPTIONS", "\x00"])


@given(ANY_RECORDS, st.sampled_from(["streamable", "sse"]), st.lists(st.tuples(METHODS, PATHS, st.booleans()), max_size=5))
def test_of_any_records_there_are_facts_that_can_be_sent(
    records: list[Record], transport: Transport, asked: list[tuple[str, str, bool]]
) -> None:
    found = HttpFacts(transcribe(records, keep_frames=True), transport)
    walk = HttpCursor(found)
    said = [walk.answer(HttpRequest(method, path, LIVE, told)) for method, path, told in asked]
    said += [found.accepted, found.unknown_session, found.missing_session, found.delete_answer, found.get_refusal]
    fields = [one for answer in said if answer for one in answer.fields] + [
        one for row in range(9) for one in found.shape(row).fields
    ]
    assert all("\r" not in text and "\n" not in text and "\0" not in text for one in fields for text in one)
    assert all(answer.status for answer in said if answer)
    target, data = session_endpoint(found, "S", SSE)
    assert target.startswith("/")
    assert b"S" in data


@example('{"uri": "/a", "n": 1e9999}')
@example('{"uri": "http://["}')
@example('{"uri": 5}')
@given(st.text(max_size=60) | st.binary(max_size=60).map(lambda data: data.decode("latin-1")))
def test_whatever_was_announced_another_session_can_be(uri: str) -> None:
    told = announcing(uri)
    target, data = session_endpoint(facts(told, "sse"), "S", SSE)
    assert target.startswith("/")
    assert "S" in target
    assert not {*b"\r\n"} & {*data}

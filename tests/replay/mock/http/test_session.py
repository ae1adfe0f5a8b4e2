"""Answers of HTTP itself: logins, refusals in their order, static responses, and no more than that."""

import gzip
import json

import pytest

from mcpspy.replay.mock.http.answer import HttpRequest, MockAddress
from mcpspy.replay.mock.http.recorded_http import HttpFacts
from mcpspy.replay.mock.http.session import HttpCursor
from tests.replay.mock.http.http_requests import LIVE, call, facts, get, post
from tests.transcript.traffic import SERVER_URL, TAP_URL, Traffic, initialize, opened_session

OK = {"jsonrpc": "2.0", "id": 7, "result": {}}
METADATA = "/.well-known/oauth-protected-resource"


def guarded() -> Traffic:
    """Return traffic with a server that demands a login, and says where."""
    traffic = Traffic()
    traffic.post(initialize()).answer(
        401, b"who?", WWW_Authenticate=f'Bearer resource_metadata="{TAP_URL}{METADATA}/mcp", scope="all"', Date="today"
    )
    traffic.get(f"{METADATA}/mcp", Accept="*/*").answer(
        200, {"resource": f"{TAP_URL}/mcp", "authorization_servers": ["https://login.example.org/"]}
    )
    traffic.post(initialize(), Authorization="Bearer redacted-0").answer(
        200, {"jsonrpc": "2.0", "id": 0, "result": {}}, Mcp_Session_Id="s"
    )
    return traffic


def statuses(cursor: HttpCursor, *requests: HttpRequest) -> list[int | None]:
    return [None if (answer := cursor.answer(request)) is None else answer.status for request in requests]


def test_who_does_not_say_who_asks_is_challenged_every_time() -> None:
    cursor = HttpCursor(facts(guarded()))
    assert statuses(cursor, post(initialize()), post(initialize()), post(call("x")), get()) == [401, 401, 401, 401]


def test_whatever_token_is_let_through() -> None:
    cursor = HttpCursor(facts(guarded()))
    assert statuses(cursor, post(initialize(), is_authorized=True), post(call("x"), is_authorized=True)) == [None, None]


def test_a_challenge_names_the_mock_and_leaves_its_other_words() -> None:
    answer = HttpCursor(facts(guarded())).answer(post(initialize()))
    assert answer is not None
    assert (
        dict(answer.fields)["WWW-Authenticate"]
        == f'Bearer resource_metadata="http://127.0.0.1:4321{METADATA}/mcp", scope="all"'
    )
    assert answer.body == b"who?"
    assert "Date" not in dict(answer.fields)


def test_metadata_name_the_mock_and_leave_the_authorization_server() -> None:
    answer = HttpCursor(facts(guarded())).answer(get(f"{METADATA}/mcp"))
    assert answer is not None
    assert json.loads(answer.body) == {
        "resource": "http://127.0.0.1:4321/mcp",
        "authorization_servers": ["https://login.example.org/"],
    }


def test_a_challenge_to_one_call_is_none_to_others_that_were_let_through() -> None:
    traffic = Traffic()
    traffic.post(call("safe")).answer(401, WWW_Authenticate="Bearer")
    traffic.post(call("open")).answer(200, OK)
    cursor = HttpCursor(facts(traffic))
    assert statuses(cursor, post(call("safe")), post(call("open")), post(call("unheard-of"))) == [401, None, None]


def test_refusals_of_one_call_come_in_their_order_and_then_it_passes() -> None:
    traffic = Traffic()
    traffic.post(call("busy")).answer(429, b"slow down", Retry_After="1")
    traffic.post(call("busy")).answer(503, b"")
    traffic.post(call("busy")).answer(200, OK)
    cursor = HttpCursor(facts(traffic))
    first = cursor.answer(post(call("busy", id=40)))
    assert first is not None
    assert (first.status, first.body, dict(first.fields)["Retry-After"]) == (429, b"slow down", "1")
    assert statuses(cursor, *[post(call("busy"))] * 3) == [503, None, None]


def test_a_call_that_was_refused_to_the_end_always_is() -> None:
    traffic = Traffic()
    traffic.post(call("never")).answer(403, b"")
    assert statuses(HttpCursor(facts(traffic)), *[post(call("never"))] * 3) == [403, 403, 403]


def test_a_refusal_is_of_the_call_with_the_same_params() -> None:
    traffic = Traffic()
    traffic.post(call("x", a=1)).answer(500, b"")
    assert statuses(HttpCursor(facts(traffic)), post(call("x", a=2)), post(call("x", a=1.0))) == [None, 500]


def test_each_client_gets_the_refusals_for_itself() -> None:
    traffic = Traffic()
    traffic.post(call("busy")).answer(429)
    traffic.post(call("busy")).answer(200, OK)
    http_facts = facts(traffic)
    assert statuses(HttpCursor(http_facts), post(call("busy"))) == statuses(HttpCursor(http_facts), post(call("busy"))) == [429]


def test_a_notification_that_was_refused_is_again() -> None:
    traffic = Traffic()
    traffic.post({"jsonrpc": "2.0", "method": "notifications/initialized"}).answer(500, b"")
    traffic.post(call("x")).answer(200, OK)
    cursor = HttpCursor(facts(traffic))
    assert statuses(cursor, post({"jsonrpc": "2.0", "method": "notifications/initialized"}), post(call("x"))) == [500, None]


def test_an_error_that_names_no_request_is_said_as_it_was() -> None:
    traffic = Traffic()
    body = {"jsonrpc": "2.0", "id": None, "error": {"code": -32000, "message": "no session"}}
    traffic.post({"jsonrpc": "2.0", "id": 1, "method": "server/discover"}).answer(400, body)
    traffic.post(initialize()).answer(200, {"jsonrpc": "2.0", "id": 0, "result": {}})
    answer = HttpCursor(facts(traffic)).answer(post({"jsonrpc": "2.0", "id": 9, "method": "server/discover"}))
    assert answer is not None
    assert (answer.status, json.loads(answer.body)) == (400, body)


def test_an_error_that_answers_its_request_is_left_to_the_matcher() -> None:
    traffic = Traffic()
    traffic.post(call("x")).answer(404, {"jsonrpc": "2.0", "id": 7, "error": {"code": -32601, "message": "no"}})
    http_facts = facts(traffic)
    assert HttpCursor(http_facts).answer(post(call("x"))) is None
    assert http_facts.shape(1).status == 404


def test_a_session_that_was_lost_is_lost_again() -> None:
    traffic = Traffic()
    opened_session(traffic, "s")
    traffic.post(call("x"), session="s").answer(404, b"gone")
    traffic.post(call("y"), session="s").answer(404, b"gone")
    opened_session(traffic, "t")
    traffic.post(call("x"), session="t").answer(200, OK)
    http_facts = facts(traffic)
    cursor = HttpCursor(http_facts)
    answer = cursor.answer(post(call("x")))
    assert answer is not None
    assert answer.ends_session
    assert statuses(cursor, post(call("x")), post(call("y"))) == [None, None]
    assert (http_facts.unknown_session.status, http_facts.unknown_session.body) == (404, b"gone")


def test_what_was_refused_after_its_session_was_deleted_is_what_sessions_that_are_gone_are_told() -> None:
    traffic = Traffic()
    opened_session(traffic, "s")
    traffic.call("DELETE", fields={"Mcp_Session_Id": "s"}).answer(204)
    traffic.post(call("x"), session="s").answer(400, b"who are you?")
    http_facts = facts(traffic)
    assert (http_facts.unknown_session.status, http_facts.unknown_session.body) == (400, b"who are you?")
    assert HttpCursor(http_facts).answer(post(call("x"))) is None


@pytest.mark.parametrize(("status", "ends"), [(204, True), (405, False)])
def test_a_session_is_deleted_as_it_was(status: int, ends: bool) -> None:  # noqa: FBT001 - drawn from the table
    traffic = Traffic()
    opened_session(traffic, "s")
    traffic.call("DELETE", fields={"Mcp_Session_Id": "s"}).answer(status)
    answer = HttpCursor(facts(traffic)).answer(HttpRequest("DELETE", "/mcp", LIVE))
    assert answer is not None
    assert (answer.status, answer.ends_session) == (status, ends)


def test_a_stream_that_was_never_given_is_refused_again() -> None:
    traffic = Traffic()
    opened_session(traffic, "s")
    traffic.get(session="s").answer(405, Allow="POST")
    assert statuses(HttpCursor(facts(traffic)), get(), get()) == [405, 405]


def test_a_stream_that_was_given_once_is_given_always() -> None:
    traffic = Traffic()
    opened_session(traffic, "s")
    traffic.get(session="s").stream().close()
    traffic.get(session="s").answer(409)
    assert statuses(HttpCursor(facts(traffic)), get(), get()) == [None, None]


def test_static_responses_come_in_order_and_the_last_again() -> None:
    traffic = Traffic()
    traffic.post(initialize()).answer(200, {"jsonrpc": "2.0", "id": 0, "result": {}})
    for token in ("a", "b"):
        traffic.call("POST", "/token", b"grant_type=refresh_token").answer(200, {"access_token": token})
    cursor = HttpCursor(facts(traffic))
    bodies = [cursor.answer(HttpRequest("POST", "/token", LIVE)) for _ in range(3)]
    assert [json.loads(body.body)["access_token"] for body in bodies if body] == ["a", "b", "b"]


def test_a_path_that_nobody_asked_for_has_no_answer() -> None:
    assert statuses(HttpCursor(facts(guarded())), get("/favicon.ico"), get("/.well-known/openid-configuration")) == [None, None]


def test_a_server_at_another_path_is_found_at_the_mocks_and_at_its_own() -> None:
    traffic = Traffic(url="http://127.0.0.1:3001/api/v1")
    challenge = f'Bearer resource_metadata="{TAP_URL}{METADATA}/api/v1"'
    traffic.post(initialize(), "/api/v1").answer(401, WWW_Authenticate=challenge)
    traffic.get(f"{METADATA}/api/v1", Accept="*/*").answer(200, {"resource": f"{TAP_URL}/api/v1"})
    traffic.post(initialize(), "/api/v1", Authorization="x").answer(200, {"jsonrpc": "2.0", "id": 0, "result": {}})
    http_facts = facts(traffic)
    assert http_facts.paths == ("/api/v1",)
    responses = {}
    for path in ("/mcp", "/api/v1"):
        cursor, live = HttpCursor(http_facts), MockAddress("http://localhost:9", "/mcp")
        challenged, told_of = (
            cursor.answer(post(initialize(), path, live=live)),
            cursor.answer(get(f"{METADATA}{path}", live=live)),
        )
        assert challenged is not None
        assert told_of is not None
        responses[path] = dict(challenged.fields)["WWW-Authenticate"], json.loads(told_of.body)["resource"]
    assert responses == {
        path: (f'Bearer resource_metadata="http://localhost:9{METADATA}{path}"', f"http://localhost:9{path}")
        for path in ("/mcp", "/api/v1")
    }


def test_a_redirection_leads_to_the_mock() -> None:
    traffic = Traffic()
    traffic.post(initialize(), "/mcp").answer(307, Location="http://127.0.0.1:3001/mcp/")
    traffic.post(initialize(), "/mcp/").answer(200, {"jsonrpc": "2.0", "id": 0, "result": {}})
    http_facts = facts(traffic)
    cursor = HttpCursor(http_facts)
    answer = cursor.answer(post(initialize(), "/mcp"))
    assert answer is not None
    assert (answer.status, dict(answer.fields)["Location"]) == (307, "http://127.0.0.1:4321/mcp/")
    assert cursor.answer(post(initialize(), "/mcp/")) is None
    assert http_facts.paths == ("/mcp/",)


def test_a_login_sends_its_user_back_to_the_live_client_with_its_own_state() -> None:
    traffic = Traffic()
    traffic.post(initialize()).answer(200, {"jsonrpc": "2.0", "id": 0, "result": {}})
    traffic.get("/authorize?state=old&redirect_uri=http%3A%2F%2Flocalhost%3A1%2Fcb", Accept="*/*").answer(
        302, Location="http://localhost:1/cb?code=redacted-1&state=old"
    )
    answer = HttpCursor(facts(traffic)).answer(get("/authorize?state=new&redirect_uri=http%3A%2F%2Flocalhost%3A2%2Fback"))
    assert answer is not None
    assert dict(answer.fields)["Location"] == "http://localhost:2/back?code=redacted-1&state=new"


def test_a_static_response_whose_bytes_were_not_kept_is_not_served() -> None:
    traffic = guarded()
    assert HttpCursor(HttpFacts(traffic.transcript)).answer(get(f"{METADATA}/mcp")) is None


def test_a_static_response_is_that_of_the_query_if_there_is_one() -> None:
    traffic = Traffic()
    traffic.post(initialize()).answer(200, {"jsonrpc": "2.0", "id": 0, "result": {}})
    for page in ("1", "2"):
        traffic.get(f"/news?page={page}", Accept="*/*").answer(200, {"page": page})
    cursor = HttpCursor(facts(traffic))
    requests = ["/news?page=2", "/news?page=1", "/news?page=3", "/news"]
    assert [json.loads(response.body)["page"] for path in requests if (response := cursor.answer(get(path)))] == [
        "2",
        "1",
        "1",
        "2",
    ]


def test_a_redirect_to_a_login_page_is_left_alone() -> None:
    traffic = Traffic()
    traffic.post(initialize()).answer(200, {"jsonrpc": "2.0", "id": 0, "result": {}})
    traffic.get("/authorize?state=old", Accept="*/*").answer(302, Location="/page?state=old")
    answer = HttpCursor(facts(traffic)).answer(get("/authorize?state=new&redirect_uri=http%3A%2F%2Flocalhost%3A2%2Fback"))
    assert answer is not None
    assert dict(answer.fields)["Location"] == "/page?state=old"


@pytest.mark.parametrize(
    ("recorded", "expected"),
    [
        (f"{TAP_URL}/mcp", "http://127.0.0.1:4321/mcp"),
        ("HTTP://LOCALHOST:3001/x.", "http://127.0.0.1:4321/x."),
        (r"http:\/\/127.0.0.1:7777\/mcp", r"http:\/\/127.0.0.1:4321\/mcp"),
        (f"{TAP_URL}1/mcp", f"{TAP_URL}1/mcp"),
        (f"{TAP_URL}.example.org/mcp", f"{TAP_URL}.example.org/mcp"),
        ("http://127.0.0.1:9/mcp", "http://127.0.0.1:9/mcp"),
    ],
)
def test_the_recorded_server_is_named_as_the_mock_and_nobody_else_is(recorded: str, expected: str) -> None:
    assert facts(guarded()).names.text(f'see "{recorded}"', LIVE) == f'see "{expected}"'


def test_what_is_said_is_what_the_client_got() -> None:
    traffic = Traffic()
    traffic.post(initialize()).answer(200, {"jsonrpc": "2.0", "id": 0, "result": {}})
    heads = [b"HTTP/1.1 200 OK\r\nX: %b\r\n\r\n" % by for by in (b"server", b"tap")]
    static_response = traffic.get("/x", Accept="*/*")
    static_response.response = traffic.open(static_response, "response", heads[0], forwarded=heads[1])
    static_response.raw(b"server", forwarded=b"tap").close()
    answer = HttpCursor(facts(traffic)).answer(get("/x"))
    assert answer is not None
    assert (answer.fields, answer.body) == ((("X", "tap"),), b"tap")


def test_a_compressed_static_response_is_served_decompressed() -> None:
    traffic = Traffic()
    traffic.post(initialize()).answer(200, {"jsonrpc": "2.0", "id": 0, "result": {}})
    traffic.get("/x", Accept="*/*").answer(200, gzip.compress(SERVER_URL.encode()), Content_Encoding="gzip")
    answer = HttpCursor(facts(traffic)).answer(get("/x"))
    assert answer is not None
    assert (answer.fields, answer.body) == ((), b"http://127.0.0.1:4321/mcp")


@pytest.mark.parametrize("status", [421, 502])
def test_responses_that_a_tap_made_itself_are_not_served(status: int) -> None:
    traffic = Traffic()
    opened_session(traffic, "s")
    traffic.post(call("x"), session="s").answer(status, b"mcpspy: no\n", injected=True, by="mcpspy", Content_Type="text/plain")
    traffic.post(call("x"), session="s").answer(200, OK)
    cursor = HttpCursor(facts(traffic))
    assert statuses(cursor, post(initialize()), post(call("x"))) == [None, None]

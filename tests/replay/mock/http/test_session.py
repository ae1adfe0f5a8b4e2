"""What HTTP alone said in a recording is said again: logins, refusals in their order, documents, and no more than that."""

import gzip
import json

import pytest

from mcpspy.replay.mock.http.answer import HttpRequest, MockAddress
from mcpspy.replay.mock.http.recorded_http import HttpFacts
from mcpspy.replay.mock.http.session import HttpCursor
from tests.replay.mock.asking import LIVE, call, facts, get, post
from tests.transcript.traffic import SERVER_URL, TAP_URL, Traffic, initialize, opened_session

OK = {"jsonrpc": "2.0", "id": 7, "result": {}}
METADATA = "/.well-known/oauth-protected-resource"


def guarded() -> Traffic:
    """A server that wants to know who asks, and says where to find out how."""
    told = Traffic()
    told.post(initialize()).answer(
        401, b"who?", WWW_Authenticate=f'Bearer resource_metadata="{TAP_URL}{METADATA}/mcp", scope="all"', Date="today"
    )
    told.get(f"{METADATA}/mcp", Accept="*/*").answer(
        200, {"resource": f"{TAP_URL}/mcp", "authorization_servers": ["https://login.example.org/"]}
    )
    told.post(initialize(), Authorization="Bearer redacted-0").answer(
        200, {"jsonrpc": "2.0", "id": 0, "result": {}}, Mcp_Session_Id="s"
    )
    return told


def statuses(walk: HttpCursor, *asked: HttpRequest) -> list[int | None]:
    return [None if (answer := walk.answer(one)) is None else answer.status for one in asked]


def test_who_does_not_say_who_asks_is_challenged_every_time() -> None:
    walk = HttpCursor(facts(guarded()))
    assert statuses(walk, post(initialize()), post(initialize()), post(call("x")), get()) == [401, 401, 401, 401]


def test_whatever_token_is_let_through() -> None:
    walk = HttpCursor(facts(guarded()))
    assert statuses(walk, post(initialize(), is_authorized=True), post(call("x"), is_authorized=True)) == [None, None]


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
    told = Traffic()
    told.post(call("safe")).answer(401, WWW_Authenticate="Bearer")
    told.post(call("open")).answer(200, OK)
    walk = HttpCursor(facts(told))
    assert statuses(walk, post(call("safe")), post(call("open")), post(call("unheard-of"))) == [401, None, None]


def test_refusals_of_one_call_come_in_their_order_and_then_it_passes() -> None:
    told = Traffic()
    told.post(call("busy")).answer(429, b"slow down", Retry_After="1")
    told.post(call("busy")).answer(503, b"")
    told.post(call("busy")).answer(200, OK)
    walk = HttpCursor(facts(told))
    first = walk.answer(post(call("busy", id=40)))
    assert first is not None
    assert (first.status, first.body, dict(first.fields)["Retry-After"]) == (429, b"slow down", "1")
    assert statuses(walk, *[post(call("busy"))] * 3) == [503, None, None]


def test_a_call_that_was_refused_to_the_end_always_is() -> None:
    told = Traffic()
    told.post(call("never")).answer(403, b"")
    assert statuses(HttpCursor(facts(told)), *[post(call("never"))] * 3) == [403, 403, 403]


def test_a_refusal_is_of_the_call_with_the_same_params() -> None:
    told = Traffic()
    told.post(call("x", a=1)).answer(500, b"")
    assert statuses(HttpCursor(facts(told)), post(call("x", a=2)), post(call("x", a=1.0))) == [None, 500]


def test_each_client_has_its_own_way_through_the_refusals() -> None:
    told = Traffic()
    told.post(call("busy")).answer(429)
    told.post(call("busy")).answer(200, OK)
    found = facts(told)
    assert statuses(HttpCursor(found), post(call("busy"))) == statuses(HttpCursor(found), post(call("busy"))) == [429]


def test_a_notification_that_was_refused_is_again() -> None:
    told = Traffic()
    told.post({"jsonrpc": "2.0", "method": "notifications/initialized"}).answer(500, b"")
    told.post(call("x")).answer(200, OK)
    walk = HttpCursor(facts(told))
    assert statuses(walk, post({"jsonrpc": "2.0", "method": "notifications/initialized"}), post(call("x"))) == [500, None]


def test_an_error_that_names_no_request_is_said_as_it_was() -> None:
    told = Traffic()
    body = {"jsonrpc": "2.0", "id": None, "error": {"code": -32000, "message": "no session"}}
    told.post({"jsonrpc": "2.0", "id": 1, "method": "server/discover"}).answer(400, body)
    told.post(initialize()).answer(200, {"jsonrpc": "2.0", "id": 0, "result": {}})
    answer = HttpCursor(facts(told)).answer(post({"jsonrpc": "2.0", "id": 9, "method": "server/discover"}))
    assert answer is not None
    assert (answer.status, json.loads(answer.body)) == (400, body)


def test_an_error_that_answers_its_request_is_left_to_the_matcher() -> None:
    told = Traffic()
    told.post(call("x")).answer(404, {"jsonrpc": "2.0", "id": 7, "error": {"code": -32601, "message": "no"}})
    found = facts(told)
    assert HttpCursor(found).answer(post(call("x"))) is None
    assert found.shape(1).status == 404


def test_a_session_that_was_lost_is_lost_again() -> None:
    told = Traffic()
    opened_session(told, "s")
    told.post(call("x"), session="s").answer(404, b"gone")
    told.post(call("y"), session="s").answer(404, b"gone")
    opened_session(told, "t")
    told.post(call("x"), session="t").answer(200, OK)
    found = facts(told)
    walk = HttpCursor(found)
    answer = walk.answer(post(call("x")))
    assert answer is not None
    assert answer.ends_session
    assert statuses(walk, post(call("x")), post(call("y"))) == [None, None]
    assert (found.unknown_session.status, found.unknown_session.body) == (404, b"gone")


def test_what_was_refused_after_its_session_was_deleted_is_what_sessions_that_are_gone_are_told() -> None:
    told = Traffic()
    opened_session(told, "s")
    told.call("DELETE", fields={"Mcp_Session_Id": "s"}).answer(204)
    told.post(call("x"), session="s").answer(400, b"who are you?")
    found = facts(told)
    assert (found.unknown_session.status, found.unknown_session.body) == (400, b"who are you?")
    assert HttpCursor(found).answer(post(call("x"))) is None


@pytest.mark.parametrize(("status", "ends"), [(204, True), (405, False)])
def test_a_session_is_deleted_as_it_was(status: int, ends: bool) -> None:  # noqa: FBT001 - drawn from the table
    told = Traffic()
    opened_session(told, "s")
    told.call("DELETE", fields={"Mcp_Session_Id": "s"}).answer(status)
    answer = HttpCursor(facts(told)).answer(HttpRequest("DELETE", "/mcp", LIVE))
    assert answer is not None
    assert (answer.status, answer.ends_session) == (status, ends)


def test_a_stream_that_was_never_given_is_refused_again() -> None:
    told = Traffic()
    opened_session(told, "s")
    told.get(session="s").answer(405, Allow="POST")
    assert statuses(HttpCursor(facts(told)), get(), get()) == [405, 405]


def test_a_stream_that_was_given_once_is_given_always() -> None:
    told = Traffic()
    opened_session(told, "s")
    told.get(session="s").stream().close()
    told.get(session="s").answer(409)
    assert statuses(HttpCursor(facts(told)), get(), get()) == [None, None]


def test_documents_come_in_their_order_and_the_last_again() -> None:
    told = Traffic()
    told.post(initialize()).answer(200, {"jsonrpc": "2.0", "id": 0, "result": {}})
    for token in ("a", "b"):
        told.call("POST", "/token", b"grant_type=refresh_token").answer(200, {"access_token": token})
    walk = HttpCursor(facts(told))
    bodies = [walk.answer(HttpRequest("POST", "/token", LIVE)) for _ in range(3)]
    assert [json.loads(one.body)["access_token"] for one in bodies if one] == ["a", "b", "b"]


def test_a_path_that_nobody_asked_for_has_no_answer() -> None:
    assert statuses(HttpCursor(facts(guarded())), get("/favicon.ico"), get("/.well-known/openid-configuration")) == [None, None]


def test_a_server_at_another_path_is_found_at_the_mocks_and_at_its_own() -> None:
    told = Traffic(url="http://127.0.0.1:3001/api/v1")
    challenge = f'Bearer resource_metadata="{TAP_URL}{METADATA}/api/v1"'
    told.post(initialize(), "/api/v1").answer(401, WWW_Authenticate=challenge)
    told.get(f"{METADATA}/api/v1", Accept="*/*").answer(200, {"resource": f"{TAP_URL}/api/v1"})
    told.post(initialize(), "/api/v1", Authorization="x").answer(200, {"jsonrpc": "2.0", "id": 0, "result": {}})
    found = facts(told)
    assert found.paths == ("/api/v1",)
    said = {}
    for path in ("/mcp", "/api/v1"):
        walk, live = HttpCursor(found), MockAddress("http://localhost:9", "/mcp")
        challenged, told_of = walk.answer(post(initialize(), path, live=live)), walk.answer(get(f"{METADATA}{path}", live=live))
        assert challenged is not None
        assert told_of is not None
        said[path] = dict(challenged.fields)["WWW-Authenticate"], json.loads(told_of.body)["resource"]
    assert said == {
        path: (f'Bearer resource_metadata="http://localhost:9{METADATA}{path}"', f"http://localhost:9{path}")
        for path in ("/mcp", "/api/v1")
    }


def test_a_redirection_leads_to_the_mock() -> None:
    told = Traffic()
    told.post(initialize(), "/mcp").answer(307, Location="http://127.0.0.1:3001/mcp/")
    told.post(initialize(), "/mcp/").answer(200, {"jsonrpc": "2.0", "id": 0, "result": {}})
    found = facts(told)
    walk = HttpCursor(found)
    answer = walk.answer(post(initialize(), "/mcp"))
    assert answer is not None
    assert (answer.status, dict(answer.fields)["Location"]) == (307, "http://127.0.0.1:4321/mcp/")
    assert walk.answer(post(initialize(), "/mcp/")) is None
    assert found.paths == ("/mcp/",)


def test_a_login_sends_its_user_back_to_the_live_client_with_its_own_state() -> None:
    told = Traffic()
    told.post(initialize()).answer(200, {"jsonrpc": "2.0", "id": 0, "result": {}})
    told.get("/authorize?state=old&redirect_uri=http%3A%2F%2Flocalhost%3A1%2Fcb", Accept="*/*").answer(
        302, Location="http://localhost:1/cb?code=redacted-1&state=old"
    )
    answer = HttpCursor(facts(told)).answer(get("/authorize?state=new&redirect_uri=http%3A%2F%2Flocalhost%3A2%2Fback"))
    assert answer is not None
    assert dict(answer.fields)["Location"] == "http://localhost:2/back?code=redacted-1&state=new"


def test_a_document_whose_bytes_were_not_kept_is_none() -> None:
    told = guarded()
    assert HttpCursor(HttpFacts(told.transcript)).answer(get(f"{METADATA}/mcp")) is None


def test_a_document_is_that_of_its_query_if_there_is_one() -> None:
    told = Traffic()
    told.post(initialize()).answer(200, {"jsonrpc": "2.0", "id": 0, "result": {}})
    for page in ("1", "2"):
        told.get(f"/news?page={page}", Accept="*/*").answer(200, {"page": page})
    walk = HttpCursor(facts(told))
    asked = ["/news?page=2", "/news?page=1", "/news?page=3", "/news"]
    assert [json.loads(one.body)["page"] for path in asked if (one := walk.answer(get(path)))] == ["2", "1", "1", "2"]


def test_a_user_who_is_on_the_way_to_a_login_is_not_sent_back_yet() -> None:
    told = Traffic()
    told.post(initialize()).answer(200, {"jsonrpc": "2.0", "id": 0, "result": {}})
    told.get("/authorize?state=old", Accept="*/*").answer(302, Location="/page?state=old")
    answer = HttpCursor(facts(told)).answer(get("/authorize?state=new&redirect_uri=http%3A%2F%2Flocalhost%3A2%2Fback"))
    assert answer is not None
    assert dict(answer.fields)["Location"] == "/page?state=old"


@pytest.mark.parametrize(
    ("recorded", "said"),
    [
        (f"{TAP_URL}/mcp", "http://127.0.0.1:4321/mcp"),
        ("HTTP://LOCALHOST:3001/x.", "http://127.0.0.1:4321/x."),
        (r"http:\/\/127.0.0.1:7777\/mcp", r"http:\/\/127.0.0.1:4321\/mcp"),
        (f"{TAP_URL}1/mcp", f"{TAP_URL}1/mcp"),
        (f"{TAP_URL}.example.org/mcp", f"{TAP_URL}.example.org/mcp"),
        ("http://127.0.0.1:9/mcp", "http://127.0.0.1:9/mcp"),
    ],
)
def test_the_recorded_server_is_named_as_the_mock_and_nobody_else_is(recorded: str, said: str) -> None:
    assert facts(guarded()).names.text(f'see "{recorded}"', LIVE) == f'see "{said}"'


def test_what_is_said_is_what_the_client_got() -> None:
    told = Traffic()
    told.post(initialize()).answer(200, {"jsonrpc": "2.0", "id": 0, "result": {}})
    heads = [b"HTTP/1.1 200 OK\r\nX: %b\r\n\r\n" % by for by in (b"server", b"tap")]
    document = told.get("/x", Accept="*/*")
    document.response = told.open(document, "response", heads[0], forwarded=heads[1])
    document.raw(b"server", forwarded=b"tap").close()
    answer = HttpCursor(facts(told)).answer(get("/x"))
    assert answer is not None
    assert (answer.fields, answer.body) == ((("X", "tap"),), b"tap")


def test_a_document_that_was_compressed_is_said_as_it_reads() -> None:
    told = Traffic()
    told.post(initialize()).answer(200, {"jsonrpc": "2.0", "id": 0, "result": {}})
    told.get("/x", Accept="*/*").answer(200, gzip.compress(SERVER_URL.encode()), Content_Encoding="gzip")
    answer = HttpCursor(facts(told)).answer(get("/x"))
    assert answer is not None
    assert (answer.fields, answer.body) == ((), b"http://127.0.0.1:4321/mcp")


@pytest.mark.parametrize("status", [421, 502])
def test_what_a_tap_said_in_its_own_name_is_not_said_for_the_server(status: int) -> None:
    told = Traffic()
    opened_session(told, "s")
    told.post(call("x"), session="s").answer(status, b"mcpspy: no\n", injected=True, by="mcpspy", Content_Type="text/plain")
    told.post(call("x"), session="s").answer(200, OK)
    walk = HttpCursor(facts(told))
    assert statuses(walk, post(initialize()), post(call("x"))) == [None, None]

"""Answers that HTTP alone decided, played again by `mcpspy mock --listen`: logins, refusals, lost sessions, paths."""

import json
from pathlib import Path

import pytest

from tests.live.mock.mocking import written
from tests.live.mock.mocking_http import Asking, HttpMocking
from tests.transcript.dialogue import notification, request, result, tool_call
from tests.transcript.traffic import SERVER_URL, TAP_URL, Traffic, initialize, opened_session

METADATA = "/.well-known/oauth-protected-resource"


def serving(traffic: Traffic, folder: Path, *options: str) -> HttpMocking:
    return HttpMocking(written(folder / "http.mcpspy", traffic.records), *options)


def opened(mock: HttpMocking, *, times: int = 1) -> Asking:
    """Make a client that has opened its session, after so many tries."""
    asking = mock.connect()
    statuses = [asking.ask(initialize(0)) for _ in range(times)]
    assert statuses[-1].status == 200
    statuses[-1].response.read()
    return asking


def test_who_does_not_say_who_asks_is_told_where_to_find_out_how(tmp_path: Path) -> None:
    traffic = Traffic()
    challenge = f'Bearer resource_metadata="{TAP_URL}{METADATA}/mcp"'
    traffic.post(initialize(0)).answer(
        401, b'{"error": "invalid_token"}', WWW_Authenticate=challenge, Content_Type="application/json"
    )
    traffic.get(f"{METADATA}/mcp", Accept="*/*").answer(200, {"resource": SERVER_URL})
    traffic.post(initialize(0), Authorization="Bearer redacted-1").answer(200, result(0), Mcp_Session_Id="s")
    with serving(traffic, tmp_path) as mock:
        asking = mock.connect()
        refused = asking.ask(initialize(7))
        assert (refused.status, refused.answer) == (401, {"error": "invalid_token"})
        named = refused.response.headers["WWW-Authenticate"]
        assert named == f'Bearer resource_metadata="http://{mock.host}{METADATA}/mcp"'
        path = named.partition(mock.host)[2].rstrip('"')
        assert asking.ask(method="GET", path=path).answer == {"resource": mock.url}
        assert asking.ask(initialize(8), Authorization="Bearer mine").answer == result(8)


def test_a_client_that_asked_too_often_may_ask_again_later(tmp_path: Path) -> None:
    traffic = Traffic()
    opened_session(traffic, "s")
    traffic.post(tool_call(1), session="s").answer(429, b"slow down", Retry_After="1")
    traffic.post(tool_call(2), session="s").answer(200, result(2))
    with serving(traffic, tmp_path) as mock:
        for client in (opened(mock), opened(mock)):
            refused = client.ask(tool_call(5))
            assert (refused.status, refused.response.headers["Retry-After"], refused.response.read()) == (
                429,
                "1",
                b"slow down",
            )
            assert client.ask(tool_call(6)).answer == result(6)


def test_a_server_that_failed_at_first_does_so_to_the_first_who_opens(tmp_path: Path) -> None:
    traffic = Traffic()
    traffic.post(initialize(0)).answer(500, b"not yet")
    opened_session(traffic, "s")
    with serving(traffic, tmp_path) as mock:
        refused = mock.connect().ask(initialize(0))
        assert (refused.status, refused.response.read()) == (500, b"not yet")
        opened(mock)


def test_a_session_that_is_lost_is_followed_by_one_that_goes_on_in_its_place(tmp_path: Path) -> None:
    traffic = Traffic()
    opened_session(traffic, "s")
    traffic.post(tool_call(1), session="s").answer(200, result(1, {"from": "the first"}))
    traffic.post(tool_call(2), session="s").answer(
        404, {"jsonrpc": "2.0", "id": None, "error": {"code": -32001, "message": "gone"}}
    )
    opened_session(traffic, "t")
    traffic.post(tool_call(3), session="t").answer(200, result(3, {"from": "the second"}))
    with serving(traffic, tmp_path) as mock:
        first = opened(mock)
        assert first.ask(tool_call(7)).answer["result"] == {"from": "the first"}
        lost = first.ask(tool_call(8))
        assert (lost.status, lost.answer["error"]["message"]) == (404, "gone")
        assert first.again().ask(request(9)).status == 404
        second = opened(mock)
        assert second.session != first.session
        assert second.ask(tool_call(9)).answer["result"] == {"from": "the second"}
        assert opened(mock).ask(tool_call(7)).answer["result"] == {"from": "the first"}


@pytest.mark.parametrize("status", [204, 405])
def test_a_session_is_deleted_or_not_as_it_was(status: int, tmp_path: Path) -> None:
    traffic = Traffic()
    opened_session(traffic, "s")
    traffic.post(request(1), session="s").answer(200, result(1))
    traffic.call("DELETE", fields={"Mcp_Session_Id": "s"}).answer(status)
    with serving(traffic, tmp_path) as mock:
        client = opened(mock)
        assert client.again().ask(method="DELETE").status == status
        assert client.ask(request(5)).status == (404 if status == 204 else 200)


def test_a_stream_that_was_refused_is_refused_again(tmp_path: Path) -> None:
    traffic = Traffic()
    opened_session(traffic, "s")
    traffic.get(session="s").answer(405, b"no stream here", Allow="POST")
    with serving(traffic, tmp_path) as mock:
        refused = opened(mock).ask(method="GET")
        assert (refused.status, refused.response.read()) == (405, b"no stream here")


def test_a_notification_that_was_refused_is_refused_again(tmp_path: Path) -> None:
    traffic = Traffic()
    traffic.post(initialize(0)).answer(200, result(0), Mcp_Session_Id="s")
    traffic.post(notification(), session="s").answer(500, b"what?")
    with serving(traffic, tmp_path) as mock:
        assert opened(mock).ask(notification()).status == 500


def test_what_was_asked_at_another_path_can_be_asked_there_and_at_the_usual_one(tmp_path: Path) -> None:
    traffic = Traffic(url="http://127.0.0.1:3001/api/v1/")
    traffic.post(initialize(0), "/api/v1").answer(307, Location="http://127.0.0.1:3001/api/v1/")
    traffic.post(initialize(0), "/api/v1/").answer(200, result(0))
    with serving(traffic, tmp_path) as mock:
        asking = mock.connect()
        redirected = asking.ask(initialize(5), path="/api/v1")
        assert (redirected.status, redirected.response.headers["Location"]) == (307, f"http://{mock.host}/api/v1/")
        redirected.response.read()
        for path in ("/api/v1/", "/mcp"):
            assert asking.ask(initialize(6), path=path).answer == result(6)


def test_what_a_user_was_asked_elsewhere_is_served_on_the_way_back_to_the_live_client(tmp_path: Path) -> None:
    traffic = Traffic()
    opened_session(traffic, "s")
    traffic.get("/authorize?state=old", Accept="*/*").answer(
        302, Location="http://127.0.0.1:9/callback?code=redacted-1&state=old"
    )
    traffic.call("POST", "/token", b"grant_type=authorization_code").answer(200, {"access_token": "redacted-2"})
    with serving(traffic, tmp_path) as mock:
        asking = mock.connect()
        sent = asking.ask(method="GET", path="/authorize?state=new&redirect_uri=http%3A%2F%2F127.0.0.1%3A7%2Fcb")
        assert sent.response.headers["Location"] == "http://127.0.0.1:7/cb?code=redacted-1&state=new"
        sent.response.read()
        assert asking.ask(b"grant_type=authorization_code", path="/token").answer == {"access_token": "redacted-2"}


def test_over_http_sse_too_who_does_not_say_who_asks_is_challenged(tmp_path: Path) -> None:
    traffic = Traffic()
    traffic.post(initialize(0)).answer(401, WWW_Authenticate=f'Bearer resource_metadata="{TAP_URL}{METADATA}/mcp"')
    traffic.post(initialize(0), Authorization="Bearer redacted-1").answer(200, result(0), Mcp_Session_Id="s")
    with serving(traffic, tmp_path, "--transport", "sse") as mock:
        refused = mock.connect().ask(method="GET")
        assert (refused.status, f"{METADATA}/sse" in refused.response.headers["WWW-Authenticate"]) == (401, True)
        stream = mock.connect().ask(method="GET", Authorization="Bearer mine")
        asking = mock.connect()
        assert asking.ask(initialize(4), path=stream.event()["data"], Authorization="Bearer mine").status == 202
        assert json.loads(stream.event()["data"]) == result(4)

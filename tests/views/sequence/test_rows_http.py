"""How requests end in a diagram that no message answered: by a status, by a stream that was closed, or by nothing at all."""

import pytest

from mcpspy.views.sequence.diagram import Arrow, ArrowKind, Aside, flat
from mcpspy.views.sequence.layout import Drawing, diagram
from tests.transcript.dialogue import MS, notification, request, result
from tests.transcript.traffic import Traffic, initialize, modern
from tests.views.http_scenes import http_scene

SESSION = "5f2c"


def arrows(told: Traffic) -> list[tuple[str, str, ArrowKind, str]]:
    transcript = told.transcript
    steps = list(flat(diagram(transcript, transcript.rows).steps))
    return [(step.start, step.end, step.kind, step.text) for step in steps if isinstance(step, Arrow)]


def asides(told: Traffic) -> list[str]:
    transcript = told.transcript
    return [step.text for step in flat(diagram(transcript, transcript.rows).steps) if isinstance(step, Aside)]


@pytest.mark.parametrize(
    ("status", "location", "words"),
    [
        (401, "", "1 401 Unauthorized"),
        (404, "", "1 404 Not Found"),
        (405, "", "1 405 Method Not Allowed"),
        (502, "", "1 502 Bad Gateway"),
        (307, "/mcp/", "1 307 Temporary Redirect to /mcp/"),
    ],
)
def test_a_request_that_a_status_answered_ends_with_it(status: int, location: str, words: str) -> None:
    told = Traffic()
    told.post(request(1)).answer(status, Location=location)
    assert arrows(told.ends())[1:] == [("server1", "client1", ArrowKind.RESPONSE, words)]


def test_the_status_stands_when_it_came() -> None:
    told = Traffic()
    told.post(request(1)).answer(401)
    transcript = told.wait(5_000).ends().transcript
    _, end = flat(diagram(transcript, transcript.rows).steps)
    assert 0 < end.at_ns < 10 * MS


@pytest.mark.parametrize("status", [200, 202])
def test_a_request_that_was_merely_accepted_has_no_answer_and_that_is_said(status: int) -> None:
    told = Traffic()
    told.post(modern(1)).answer(status)
    words = {200: "1 unanswered: 200 OK", 202: "1 unanswered: 202 Accepted"}[status]
    assert arrows(told.ends())[1:] == [("server1", "client1", ArrowKind.LOST, words)]


def test_a_stream_that_the_server_closed_without_an_answer_ends_the_request() -> None:
    told = Traffic()
    told.post(modern(1)).stream().close("server")
    assert arrows(told.ends())[1:] == [("server1", "client1", ArrowKind.LOST, "1 unanswered: closed by server")]


def test_a_stream_of_a_session_may_be_resumed_so_that_a_request_waits_for_the_end() -> None:
    told = Traffic()
    told.post(initialize()).answer(200, result(0), Mcp_Session_Id=SESSION)
    told.post(request(1), session=SESSION).stream().close("server")
    transcript = told.wait(1_000).ends().transcript
    *_, end = flat(diagram(transcript, transcript.rows).steps)
    assert isinstance(end, Arrow)
    assert (end.text, end.at_ns > 1_000 * MS) == ("2 unanswered", True)


def test_a_client_that_closes_the_stream_cancels_the_request() -> None:
    told = Traffic()
    told.post(modern(1)).stream().close("client", "broken")
    words = "1 cancelled: the client closed the stream"
    assert arrows(told.ends())[1:] == [("client1", "server1", ArrowKind.CANCELLATION, words)]


def test_a_client_that_leaves_before_the_response_cancels_its_request() -> None:
    told = Traffic()
    told.post(modern(1)).leave()
    ((start, end, kind, words),) = arrows(told.ends())[1:]
    assert (start, end, kind) == ("client1", "server1", ArrowKind.CANCELLATION)
    assert words.startswith("1 cancelled")


def test_a_get_that_nobody_waited_for_ends_with_who_left() -> None:
    told = Traffic()
    told.get("/late").leave()
    words = "1 no response: client closed the connection"
    assert arrows(told.ends())[1:] == [("client1", "server1", ArrowKind.CANCELLATION, words)]


def test_a_get_that_still_waits_is_pending() -> None:
    told = Traffic()
    told.get("/late")
    told.records.pop()
    assert asides(told) == ["1 pending"]


def test_a_notification_that_was_refused_ends_with_its_status() -> None:
    told = Traffic()
    told.post(notification()).answer(401)
    assert arrows(told.ends())[1:] == [("server1", "client1", ArrowKind.RESPONSE, "1 401 Unauthorized")]


def test_a_notification_that_was_accepted_is_one_arrow() -> None:
    told = Traffic()
    told.post(notification()).answer(202)
    assert len(arrows(told.ends())) == 1


def test_a_status_beside_an_answer_is_told_with_it() -> None:
    told = Traffic()
    told.post(request(1)).answer(404, {"jsonrpc": "2.0", "id": 1, "error": {"code": -32601, "message": "no"}})
    assert arrows(told.ends())[1][3] == "1 error · 3.00 ms · HTTP 404: -32601 no"


def test_what_mcpspy_answered_says_so() -> None:
    told = Traffic()
    told.post(request(1)).answer(502, b"mcpspy: nobody there", injected=True, by="mcpspy")
    assert arrows(told.ends())[1][3] == "1 502 Bad Gateway by mcpspy"


@pytest.mark.parametrize(
    ("by", "how", "end"),
    [
        ("server", "eof", ("server1", "client1", ArrowKind.RESPONSE, "1 closed by server after 1 event")),
        ("server", "reset", ("server1", "client1", ArrowKind.LOST, "1 reset by server after 1 event")),
        ("client", "broken", ("client1", "server1", ArrowKind.CANCELLATION, "1 disconnected by client after 1 event")),
    ],
)
def test_a_long_stream_ends_when_it_ended_and_by_whom(by: str, how: str, end: tuple[str, str, ArrowKind, str]) -> None:
    told = Traffic()
    stream = told.get("/sse").stream()
    stream.event("/messages", kind="endpoint")
    told.post(notification(), "/messages").answer(202)
    stream.close(by, how)
    found = arrows(told.ends())
    assert found[1] == ("server1", "client1", ArrowKind.RESPONSE, "1 200: connected")
    assert found[3] == end


def test_a_stream_that_is_a_lane_of_its_own_is_busy_from_its_request_to_its_end() -> None:
    told = Traffic()
    told.get("/sse").stream().close("client", "broken")
    transcript = told.ends().transcript
    found = [one for one in diagram(transcript, transcript.rows, Drawing(with_http=True)).steps if isinstance(one, Arrow)]
    assert [(one.opens, one.closes) for one in found] == [("stream1", ""), ("", ""), ("", "stream1")]


def test_every_request_of_a_scene_with_everything_ends() -> None:
    transcript = http_scene().transcript
    steps = list(flat(diagram(transcript, transcript.rows).steps))
    begun = {step.text.split(" ")[0] for step in steps if isinstance(step, Arrow) and step.kind is ArrowKind.REQUEST}
    ended = {step.text.split(" ")[0] for step in steps if isinstance(step, Arrow) and step.kind is not ArrowKind.REQUEST}
    assert begun <= ended

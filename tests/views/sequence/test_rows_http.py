"""Tests of how a diagram ends requests without an answer: by a status, by a closed stream, or by nothing at all."""

import pytest

from mcpspy.transcript.model import ChannelEvent
from mcpspy.views.sequence.diagram import Arrow, ArrowKind, Aside, Fragment, flat
from mcpspy.views.sequence.layout import Drawing, diagram
from tests.transcript.dialogue import MS, notification, request, result
from tests.transcript.traffic import Traffic, initialize, modern
from tests.views.http_scenes import http_scene

SESSION = "5f2c"


def arrows(traffic: Traffic) -> list[tuple[str, str, ArrowKind, str]]:
    transcript = traffic.transcript
    steps = list(flat(diagram(transcript, transcript.rows).steps))
    return [(step.start, step.end, step.kind, step.text) for step in steps if isinstance(step, Arrow)]


def asides(traffic: Traffic) -> list[str]:
    transcript = traffic.transcript
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
    traffic = Traffic()
    traffic.post(request(1)).answer(status, Location=location)
    assert arrows(traffic.ends())[1:] == [("server1", "client1", ArrowKind.RESPONSE, words)]


def test_the_status_stands_when_it_came() -> None:
    traffic = Traffic()
    traffic.post(request(1)).answer(401)
    transcript = traffic.wait(5_000).ends().transcript
    _, end = flat(diagram(transcript, transcript.rows).steps)
    assert 0 < end.at_ns < 10 * MS


@pytest.mark.parametrize("status", [200, 202])
def test_a_request_that_was_merely_accepted_has_no_answer_and_that_is_said(status: int) -> None:
    traffic = Traffic()
    traffic.post(modern(1)).answer(status)
    words = {200: "1 unanswered: 200 OK", 202: "1 unanswered: 202 Accepted"}[status]
    assert arrows(traffic.ends())[1:] == [("server1", "client1", ArrowKind.LOST, words)]


def test_a_stream_that_the_server_closed_without_an_answer_ends_the_request() -> None:
    traffic = Traffic()
    traffic.post(modern(1)).stream().close("server")
    assert arrows(traffic.ends())[1:] == [("server1", "client1", ArrowKind.LOST, "1 unanswered: closed by server")]


def test_a_stream_of_a_session_may_be_resumed_so_that_a_request_waits_for_the_end() -> None:
    traffic = Traffic()
    traffic.post(initialize()).answer(200, result(0), Mcp_Session_Id=SESSION)
    traffic.post(request(1), session=SESSION).stream().close("server")
    transcript = traffic.wait(1_000).ends().transcript
    *_, end = flat(diagram(transcript, transcript.rows).steps)
    assert isinstance(end, Arrow)
    assert (end.text, end.at_ns > 1_000 * MS) == ("2 unanswered", True)


def test_a_client_that_closes_the_stream_cancels_the_request() -> None:
    traffic = Traffic()
    traffic.post(modern(1)).stream().close("client", "broken")
    words = "1 cancelled after 3.00 ms: the client closed the stream"
    assert arrows(traffic.ends())[1:] == [("client1", "server1", ArrowKind.CANCELLATION, words)]


def test_a_client_that_leaves_before_the_response_cancels_its_request() -> None:
    traffic = Traffic()
    traffic.post(modern(1)).leave()
    ((start, end, kind, words),) = arrows(traffic.ends())[1:]
    assert (start, end, kind) == ("client1", "server1", ArrowKind.CANCELLATION)
    assert words.startswith("1 cancelled")


def test_a_get_that_nobody_waited_for_ends_with_who_left() -> None:
    traffic = Traffic()
    traffic.get("/late").leave()
    words = "1 no response: client closed the connection"
    assert arrows(traffic.ends())[1:] == [("client1", "server1", ArrowKind.CANCELLATION, words)]


def test_a_get_that_waits_until_the_capture_ends_has_no_response() -> None:
    traffic = Traffic()
    traffic.get("/late")
    traffic.records.pop()
    assert asides(traffic) == ["1 no response"]


def test_a_notification_that_was_refused_ends_with_its_status() -> None:
    traffic = Traffic()
    traffic.post(notification()).answer(401)
    assert arrows(traffic.ends())[1:] == [("server1", "client1", ArrowKind.RESPONSE, "1 401 Unauthorized")]


def test_a_notification_that_was_accepted_is_one_arrow() -> None:
    traffic = Traffic()
    traffic.post(notification()).answer(202)
    assert len(arrows(traffic.ends())) == 1


def test_a_status_beside_an_answer_is_told_with_it() -> None:
    traffic = Traffic()
    traffic.post(request(1)).answer(404, {"jsonrpc": "2.0", "id": 1, "error": {"code": -32601, "message": "no"}})
    assert arrows(traffic.ends())[1][3] == "1 error · 3.00 ms · HTTP 404: -32601 no"


def test_what_mcpspy_answered_says_so() -> None:
    traffic = Traffic()
    traffic.post(request(1)).answer(502, b"mcpspy: nobody there", injected=True, by="mcpspy")
    assert arrows(traffic.ends())[1][3] == "1 502 Bad Gateway by mcpspy"


@pytest.mark.parametrize(
    ("by", "how", "end"),
    [
        ("server", "eof", ("server1", "client1", ArrowKind.RESPONSE, "1 closed by server after 1 event")),
        ("server", "reset", ("server1", "client1", ArrowKind.LOST, "1 reset by server after 1 event")),
        ("client", "broken", ("client1", "server1", ArrowKind.CANCELLATION, "1 disconnected by client after 1 event")),
    ],
)
def test_a_long_stream_ends_when_it_ended_and_by_whom(by: str, how: str, end: tuple[str, str, ArrowKind, str]) -> None:
    traffic = Traffic()
    stream = traffic.get("/sse").stream()
    stream.event("/messages", kind="endpoint")
    traffic.post(notification(), "/messages").answer(202)
    stream.close(by, how)
    drawn_arrows = arrows(traffic.ends())
    assert drawn_arrows[1] == ("server1", "client1", ArrowKind.RESPONSE, "1 200: connected")
    assert drawn_arrows[2] == ("server1", "client1", ArrowKind.NOTIFICATION, "1 endpoint /messages")
    assert drawn_arrows[4] == end


def channels(*, beats: int = 5) -> Traffic:
    """Make HTTP+SSE as walkthroughs have it: an end mark, keep-alives, and heartbeats that are notifications."""
    traffic = Traffic()
    stream = traffic.get("/sse").stream().event("/messages", kind="endpoint")
    traffic.post(initialize(), "/messages").answer(202)
    stream.event(result(0), kind="message").event("[DONE]", kind="message")
    stream.raw(b": hello\n\n").raw(b": hello\n\n").event("{}", kind="ping").event("news", kind="other")
    for _ in range(beats):
        traffic.post({"jsonrpc": "2.0", "method": "ping"}, "/messages").answer(202)
        stream.event({"jsonrpc": "2.0", "method": "pong"}, kind="message")
    stream.raw(b": hello\n\n").close("client", "broken")
    return traffic.ends()


def http_texts(traffic: Traffic, *, with_particulars: bool = True) -> list[str]:
    transcript = traffic.transcript
    steps = flat(diagram(transcript, transcript.rows, Drawing(with_http=True, with_particulars=with_particulars)).steps)
    return [step.text for step in steps if isinstance(step, Arrow | Aside)]


def test_what_a_stream_carries_beside_messages_is_drawn_with_http() -> None:
    texts = http_texts(channels(beats=1))
    beside = [text for text in texts if text.startswith(("1 keep", "1 event"))]
    assert beside == ["1 event [DONE]", "1 keep-alive ×3, every 1.00 ms", "1 event other: news", "1 keep-alive"]
    assert not any("keep-alive" in text or "[DONE]" in text for *_, text in arrows(channels()))


def test_keep_alives_are_left_out_where_two_recordings_have_to_be_equal() -> None:
    assert not any("keep-alive" in text for text in http_texts(channels(), with_particulars=False))


def test_keep_alives_of_a_long_call_are_drawn_on_its_own_stream() -> None:
    traffic = Traffic()
    call = traffic.post(modern(1)).stream().raw(b": a\n\n").raw(b": b\n\n").raw(b": c\n\n")
    call.event(result(1)).close("server")
    assert "1 keep-alive ×3, every 1.00 ms" in http_texts(traffic.ends())


def test_a_stream_that_announced_no_endpoint_says_so() -> None:
    traffic = Traffic()
    stream = traffic.get("/events").stream()
    traffic.post(initialize(), "/request").answer(202)
    stream.event(result(0), kind="message").close("client", "broken")
    assert asides(traffic.ends()) == ["1 no endpoint announced, POSTs go to /request"]


def test_heartbeats_of_both_sides_fold_in_a_short_session_too() -> None:
    transcript = channels().transcript
    layout = diagram(transcript, transcript.rows, Drawing(with_http=True))
    loops = [
        step for phase in layout.steps if isinstance(phase, Fragment) for step in phase.steps if isinstance(step, Fragment)
    ]
    assert [loop.title for loop in loops] == ["×5 ping, pong · every 6.00 ms · rows 3–12"]
    assert [step.text for step in flat(loops) if isinstance(step, Arrow)] == [
        "3 ping: with row 4",
        "3 202 Accepted",
        "4 pong: with row 3",
    ]
    unfolded = [
        step.text for step in flat(diagram(transcript, transcript.rows, Drawing(folds=False)).steps) if hasattr(step, "text")
    ]
    assert sum("pong" in text for text in unfolded) == 5


def test_the_end_of_a_stream_after_heartbeats_is_shutdown() -> None:
    transcript = channels().transcript
    *_, last = diagram(transcript, transcript.rows, Drawing(with_http=True)).steps
    assert isinstance(last, Fragment)
    assert (last.title.split(" · ")[0], [step.text for step in flat(last.steps) if isinstance(step, Arrow)]) == (
        "shutdown",
        ["1 disconnected by client after 10 events"],
    )


def test_parts_of_a_result_are_drawn_as_one() -> None:
    traffic = Traffic()
    call = traffic.post(modern(1)).stream()
    for text in "abc":
        call.event({"jsonrpc": "2.0", "id": 1, "result": {"content": [{"type": "text", "text": text}], "isComplete": False}})
    call.event({"jsonrpc": "2.0", "id": 1, "result": {"content": [], "isComplete": True}}).close("server")
    assert [text for *_, text in arrows(traffic.ends())][1] == "1 partial result ×3"


def test_a_stream_that_is_a_lane_of_its_own_is_busy_from_its_request_to_its_end() -> None:
    traffic = Traffic()
    traffic.get("/sse").stream().close("client", "broken")
    transcript = traffic.ends().transcript
    drawn_arrows = [
        step for step in diagram(transcript, transcript.rows, Drawing(with_http=True)).steps if isinstance(step, Arrow)
    ]
    assert [(arrow.opens, arrow.closes) for arrow in drawn_arrows] == [("stream1", ""), ("", ""), ("", "stream1")]


def test_every_request_of_a_scene_with_everything_ends() -> None:
    transcript = http_scene().transcript
    steps = list(flat(diagram(transcript, transcript.rows).steps))
    begun = {step.text.split(" ")[0] for step in steps if isinstance(step, Arrow) and step.kind is ArrowKind.REQUEST}
    ended = {step.text.split(" ")[0] for step in steps if isinstance(step, Arrow) and step.kind is not ArrowKind.REQUEST}
    assert begun <= ended


def test_an_event_of_a_channel_alone_is_drawn_also_where_each_client_has_a_name() -> None:
    traffic = Traffic()
    for name in ("a", "b"):
        traffic.post(modern(1, client=name)).answer(200, result(1))
    transcript = traffic.ends().transcript
    events = [row for row in transcript.rows if isinstance(row, ChannelEvent)]
    assert events
    assert [participant.name for participant in diagram(transcript, events).participants] == ["a", "weather"]

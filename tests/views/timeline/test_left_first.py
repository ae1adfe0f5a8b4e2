"""Streams that a client left and mcpspy ended later: what happened first stays, by whom and when."""

import json
from collections.abc import Callable
from datetime import UTC

import pytest

from mcpspy.views.json.rows import transcript_json
from mcpspy.views.text.line import plain
from mcpspy.views.timeline.timeline import timeline
from tests.transcript.dialogue import tool_call
from tests.transcript.traffic import Call, Traffic

EVENT = {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "x"}}
HALF = "half-closed"


def shown(traffic: Traffic) -> str:
    """Return the first row with a time, as `show` prints it."""
    lines = [plain(line) for line in timeline(traffic.ends().transcript, zone=UTC, width=None)]
    return next(line for line in lines if line.startswith("  1"))


def left(call: Call, *, after_ms: int = 500) -> Call:
    call.traffic.wait(after_ms)
    call.note(HALF, "the client closed its half of the connection")
    call.traffic.wait(3_000)
    return call


def ended(call: Call, by: str = "mcpspy", how: str = "abort") -> Call:
    return call.close(by, how)


def unanswered(call: Call, by: str = "mcpspy") -> Call:
    """End a transaction without a response."""
    return call.note("left", by) if by == "client" else _left_by(call, by)


def _left_by(call: Call, by: str) -> Call:
    call.note("left", f"{by} closed the connection")
    call.traffic.records[-1].extra["by"] = by  # type: ignore[union-attr]
    return call


GET, POST = Traffic.get, lambda traffic: traffic.post(tool_call(7, "slow"))

CLIENT_FIRST: dict[str, tuple[Callable[[Traffic], Call], str]] = {
    "idle stream": (lambda traffic: ended(left(GET(traffic).stream())), "0 events, disconnected by client"),
    "events before": (lambda traffic: ended(left(GET(traffic).stream().event(EVENT))), "1 event, disconnected by client"),
    "keep-alives before": (lambda traffic: ended(left(GET(traffic).stream().raw(b": \n\n"))), "0 events, disconnected by client"),
    "http+sse": (lambda traffic: ended(left(GET(traffic, "/sse").stream())), "0 events, disconnected by client"),
    "left at once": (lambda traffic: ended(left(GET(traffic).stream(), after_ms=0)), "0 events, disconnected by client"),
    "no response": (lambda traffic: unanswered(left(GET(traffic))), "no response: client closed the connection"),
    "ended well by mcpspy": (lambda traffic: ended(left(GET(traffic).stream()), how="eof"), "disconnected by client"),
    "half a body": (
        lambda traffic: ended(left(traffic.call("GET", "/page").stream(Content_Type="text/html"))),
        "disconnected by client",
    ),
    "the server's end after its client's": (
        lambda traffic: ended(left(GET(traffic).stream()), "client", "broken"), "0 events, disconnected by client",
    ),
}  # fmt: skip
"""Traffic of one connection, and the end of its row. The client leaves about 0.5 s after its request."""


def half_an_event(traffic: Traffic) -> Call:
    """Have a client leave within an event, whose first half is recorded when the stream ends."""
    call = left(GET(traffic).stream()).raw(b"data: {")
    call.traffic.at_ns -= 1_000_000  # the frame and the end are of one instant
    return ended(call)


CLIENT_FIRST["half an event"] = (half_an_event, "1 event, disconnected by client")

OTHERS: dict[str, tuple[Callable[[Traffic], Call], str]] = {
    "the client is there": (lambda traffic: ended(GET(traffic).stream()), "0 events, aborted by mcpspy"),
    "the client is there, with events": (lambda traffic: ended(GET(traffic).stream().event(EVENT)), "1 event, aborted by mcpspy"),
    "the client takes what comes": (lambda traffic: ended(left(GET(traffic).stream()).event(EVENT)), "1 event, aborted by mcpspy"),
    "it takes a keep-alive": (lambda traffic: ended(left(GET(traffic).stream()).raw(b": \n\n")), "0 events, aborted by mcpspy"),
    "the server ends the stream": (lambda traffic: left(GET(traffic).stream()).close(), "0 events, closed by server"),
    "the server breaks it off": (
        lambda traffic: ended(left(GET(traffic).stream()), "server", "abort"), "0 events, aborted by server",
    ),
    "the server breaks off a stream of a client that is there": (
        lambda traffic: ended(GET(traffic).stream(), "server", "abort"), "0 events, aborted by server",
    ),
    "no response, the client is there": (
        lambda traffic: unanswered(GET(traffic)), "no response: mcpspy closed the connection",
    ),
    "no response, the server left": (
        lambda traffic: unanswered(left(GET(traffic)), "server"), "no response: server closed the connection",
    ),
    "the client said nothing before": (
        lambda traffic: ended(GET(traffic).stream(), "client", "abort"), "0 events, aborted by client",
    ),
    "a whole answer": (lambda traffic: left(GET(traffic)).answer(405), "Method Not Allowed"),
}  # fmt: skip


@pytest.mark.parametrize("name", CLIENT_FIRST)
def test_a_client_that_left_first_ended_the_stream_when_it_left(name: str) -> None:
    play, words = CLIENT_FIRST[name]
    row = shown(play(Traffic()).traffic)
    assert words in row
    took = row.split()[2:4]
    assert took[1] == "ms"  # and not the 3 s in which nobody was there


@pytest.mark.parametrize("name", OTHERS)
def test_whoever_else_ended_a_stream_is_still_named(name: str) -> None:
    play, words = OTHERS[name]
    assert words in shown(play(Traffic()).traffic)


def test_json_names_the_client_too() -> None:
    traffic = Traffic()
    ended(left(GET(traffic).stream()))
    transcript = traffic.ends().transcript
    (row, *_) = json.loads("".join(transcript_json(transcript, transcript.rows, live=False)))["rows"]
    assert row["http_response"]["close"] == {"at_ns": row["at_ns"] + row["duration_ns"], "by": "client", "how": "broken"}
    assert row["duration_ns"] < 1_000_000_000


def test_a_call_whose_client_left_was_not_ended_by_mcpspy() -> None:
    traffic = Traffic()
    call = traffic.post(tool_call(7, "slow")).stream()
    ended(left(call))
    (finding,) = traffic.findings
    assert (finding.rule, finding.culprit) == ("unanswered-request", "client")
    assert finding.what.startswith("The client closed the stream 0.5 s after it sent tools/call slow")


def test_a_call_whose_client_waits_is_not_held_against_the_client() -> None:
    traffic = Traffic()
    ended(traffic.wait(500).post(tool_call(7, "slow")).stream())
    assert traffic.findings == []


def test_the_time_of_a_stream_is_not_the_time_for_which_mcpspy_ran() -> None:
    traffic = Traffic()
    ended(left(GET(traffic, "/mcp").stream()))
    assert traffic.findings == []  # 0.5 s is no wait for an endpoint

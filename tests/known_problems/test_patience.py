"""Problems of waiting: calls that time out or hang, and messages that a proxy on the way swallows."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import mcpspy
from mcpspy.records import Close, Note, Record
from tests.conftest import PEERS
from tests.deadlines import eventually
from tests.known_problems.stage import (
    Caller,
    Case,
    Play,
    Talker,
    asking,
    assert_found,
    assert_silent,
    captures,
    checked,
    hello,
    holds,
    later,
    leaves,
    on_stdio,
    over_http,
    python,
)

FAULTY = python("faulty.py")
QUESTION = "sampling/createMessage"
ASKING = [*FAULTY, f"asks={QUESTION}"]
SWALLOW = (sys.executable, "-I", "-S", str(PEERS / "swallow.py"))
LETTERS = 15_000
"""So many letters of arguments made some servers hang."""


def give_up(reason: str) -> Callable[[Talker], None]:
    """Call, give up, and be answered nevertheless."""

    def play(client: Talker) -> None:
        client.greet()
        client.together(
            asking("tools/call", 1, {"name": "echo", "arguments": {"text": "report"}}),
            asking("notifications/cancelled", None, {"requestId": 1, "reason": reason}),
        )
        client.line()

    return play


def call_at_length(client: Talker) -> None:
    """Call with long arguments, and without."""
    client.greet()
    client.say("tools/call", 1, name="echo", arguments={"text": "x" * LETTERS})
    client.say("tools/call", 2, name="echo", arguments={"text": "x"})
    while client.heard()["id"] != 2:
        pass


asks = holds(b'"s1"', 1)


def is_asked() -> bool:
    """Return whether the server has asked its question."""
    return any(asks(record) for capture in captures() for record in mcpspy.read(capture))


def hear_no_question(client: Talker) -> None:
    """Call a tool that asks something; the question is lost, or nobody answers it."""
    client.greet(sampling={}, elicitation={})
    client.say("tools/call", 1, name="echo", arguments={"text": "report"})
    eventually(is_asked, "the server's question")


def answer_question(client: Talker) -> None:
    """Call it, and answer the question."""
    client.greet(sampling={})
    question = client.ask("tools/call", 1, name="echo", arguments={"text": "report"})
    client.answer(question["id"], role="assistant", content={"type": "text", "text": "A tap."}, model="none")
    client.line()


def talk(client: Talker) -> None:
    """Do a handshake and a call."""
    client.greet()
    client.say("tools/call", 1, name="echo", arguments={"text": "x"})
    client.line()


def ping(client: Talker) -> None:
    """Call and ping, and wait for both answers."""
    ping_and_leave(client)
    client.line()
    client.line()


def ping_and_leave(client: Talker) -> None:
    """Call, and ping while the call runs."""
    client.greet()
    client.say("tools/call", 1, name="echo", arguments={"text": "x"})
    client.say("ping", 2)


def call(client: Caller) -> None:
    """Do the same over HTTP."""
    client.greet()
    client.post("tools/call", 1, name="count", arguments={"n": 0}, _meta={"progressToken": "t"})


def wait_for_endpoint(client: Caller) -> None:
    """Open a stream of HTTP+SSE, as clients do first, and leave."""
    client.request("GET")


def hear_endpoint(client: Caller) -> None:
    """Open one, and leave after its endpoint event."""
    stream = client.request("GET")
    while not stream.readline().startswith(b"data:"):
        pass


def hangs_up(record: Record) -> bool:
    """Return whether a client leaves a stream here."""
    return (isinstance(record, Note) and record.topic == "half-closed") or (isinstance(record, Close) and record.how != "eof")


def at_cancellation(seconds: float, reason: str = "") -> Play:
    """Let a client give up after so long, and a server answer 48 s later."""
    given_up = later(on_stdio([*FAULTY, "slow"], give_up(reason)), seconds, holds(b"notifications/cancelled"))
    return later(given_up, 48, holds(b'"content"', 1))


def hear_at_the_end(client: Talker) -> None:
    """Send initialize, and close the server's stdin without an answer."""
    client.say("initialize", 0, **hello())


def hear_at_once(client: Talker) -> None:
    """Send it, and wait for the answer."""
    client.ask("initialize", 0, **hello())


def follow(client: Talker) -> None:
    """Make a call that reports progress."""
    client.greet()
    client.say("tools/call", 1, name="echo", arguments={"text": "x"}, _meta={"progressToken": "t"})
    while "result" not in client.heard():
        pass


FIRST_STEP = holds(b'"progress": 1', 1)

CASES = (
    Case(
        problem=4,
        rule="ping-unanswered",
        culprit="server",
        faulty=later(on_stdio([*FAULTY, "busy"], ping_and_leave), 3, leaves),
        sound=on_stdio(FAULTY, ping),
        with_it=frozenset({"unanswered-request"}),  # the call
    ),
    Case(problem=3, rule="timed-out", culprit="server", faulty=at_cancellation(60), sound=at_cancellation(33.3)),
    Case(
        problem=3,
        rule="timed-out",
        culprit="server",
        faulty=at_cancellation(33.3, "McpError: MCP error -32001: Request timed out"),
        sound=at_cancellation(33.3, "The user changed their mind"),
    ),
    Case(
        problem=3,
        rule="given-up",
        culprit="unclear",
        faulty=at_cancellation(3, "The user changed their mind"),
        sound=on_stdio(FAULTY, talk),
    ),
    Case(
        problem=4,
        rule="unanswered-request",
        culprit="server",
        faulty=later(on_stdio([*FAULTY, f"deaf={LETTERS}"], call_at_length), 30, leaves),
        sound=later(on_stdio(FAULTY, call_at_length), 30, leaves),
    ),
    Case(
        problem=4,
        rule="late-answers",
        culprit="server",
        faulty=later(on_stdio([*FAULTY, "buffered"], hear_at_the_end), 10, leaves),
        sound=later(on_stdio(FAULTY, hear_at_once), 10, leaves),
    ),
    Case(
        problem=5,
        rule="progress-in-burst",
        culprit="server",
        faulty=later(on_stdio([*FAULTY, "steps"], follow), 10, FIRST_STEP),
        sound=later(on_stdio(FAULTY, follow), 10, holds(b'"content"', 1)),
    ),
    Case(problem=4, rule="accepted-request", culprit="server", faulty=over_http(call, "accepted"), sound=over_http(call)),
    Case(
        problem=4,
        rule="server-died",
        culprit="server",
        faulty=on_stdio([*FAULTY, "fragile"], talk),
        sound=on_stdio(FAULTY, talk),
    ),
    Case(
        problem=4,
        rule="missing-endpoint",
        culprit="server",
        faulty=later(over_http(wait_for_endpoint, "mute", path="/sse"), 30, hangs_up),
        sound=later(over_http(hear_endpoint, path="/sse"), 30, hangs_up),
    ),
    Case(
        problem=9,
        rule="unanswered-request",
        culprit="client",
        faulty=later(on_stdio(ASKING, hear_no_question, through=(*SWALLOW, QUESTION)), 30, leaves),
        sound=later(on_stdio(ASKING, answer_question, through=(*SWALLOW, "nothing")), 30, leaves),
    ),
    Case(
        problem=9,
        rule="missing-initialized",
        culprit="client",
        faulty=on_stdio(FAULTY, talk, through=(*SWALLOW, "notifications/initialized")),
        sound=on_stdio(FAULTY, talk, through=(*SWALLOW, "nothing")),
    ),
)


@pytest.mark.grid(6)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_fault_and_its_culprit_are_found(case: Case, tmp_path: Path) -> None:
    assert_found(case, tmp_path)


@pytest.mark.grid(3)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_without_the_fault_nothing_is(case: Case, tmp_path: Path) -> None:
    assert_silent(case, tmp_path)


def test_a_timeout_says_when_the_answer_came_after_all(tmp_path: Path) -> None:
    (finding,) = checked(at_cancellation(60)(tmp_path), "--select", "timed-out")
    assert "after 60.0 s" in finding["what"]
    assert "answered after 108.0 s" in finding["what"]


def test_a_call_that_was_given_up_is_a_note_that_blames_nobody(tmp_path: Path) -> None:
    (finding,) = checked(at_cancellation(3, "The user changed their mind")(tmp_path), "--select", "given-up,timed-out")
    assert (finding["rule"], finding["severity"], finding["culprit"]) == ("given-up", "note", "unclear")
    assert "gave up on tools/call echo after 3.0 s; the server answered after 51.0 s." in finding["what"]


def test_a_person_who_is_asked_may_take_their_time(tmp_path: Path) -> None:
    capture = later(on_stdio([*FAULTY, "asks=elicitation/create"], hear_no_question), 30, leaves)(tmp_path)
    assert {finding["severity"] for finding in checked(capture)} == {"note"}


def test_a_call_that_waits_for_an_answer_of_the_client_is_not_held_against_the_server(tmp_path: Path) -> None:
    findings = checked(later(on_stdio(ASKING, hear_no_question), 30, leaves)(tmp_path))
    assert {finding["culprit"] for finding in findings if finding["rule"] == "unanswered-request"} == {"client"}

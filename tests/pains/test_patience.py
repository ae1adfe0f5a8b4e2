"""Pains of waiting: calls that time out, that hang, and what a proxy on the way swallowed."""

import sys
from pathlib import Path

import pytest

import mcpspy
from mcpspy.records import Close, Record
from tests.conftest import PEERS
from tests.deadlines import eventually
from tests.pains.stage import (
    Caller,
    Play,
    Scene,
    Talker,
    asking,
    assert_found,
    assert_silent,
    captures,
    checked,
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
"""Of arguments: some servers were seen to hang on so many."""


def give_up(client: Talker) -> None:
    """Call, give up, and be answered all the same."""
    client.greet()
    client.together(
        asking("tools/call", 1, {"name": "echo", "arguments": {"text": "report"}}),
        asking("notifications/cancelled", None, {"requestId": 1, "reason": "Request timed out"}),
    )
    client.line()


def call_at_length(client: Talker) -> None:
    """A call with long arguments, and one without."""
    client.greet()
    client.say("tools/call", 1, name="echo", arguments={"text": "x" * LETTERS})
    client.say("tools/call", 2, name="echo", arguments={"text": "x"})
    while client.heard()["id"] != 2:
        pass


asks = holds(b'"s1"', 1)


def is_asked() -> bool:
    """Whether the server has asked its question."""
    return any(asks(record) for capture in captures() for record in mcpspy.read(capture))


def hear_no_question(client: Talker) -> None:
    """A call in which the server asks something that does not come, or nobody answers."""
    client.greet(sampling={}, elicitation={})
    client.say("tools/call", 1, name="echo", arguments={"text": "report"})
    eventually(is_asked, "the server's question")


def answer_question(client: Talker) -> None:
    """The same, where it comes."""
    client.greet(sampling={})
    asked = client.ask("tools/call", 1, name="echo", arguments={"text": "report"})
    client.answer(asked["id"], role="assistant", content={"type": "text", "text": "A tap."}, model="none")
    client.line()


def talk(client: Talker) -> None:
    """A handshake, and a call."""
    client.greet()
    client.say("tools/call", 1, name="echo", arguments={"text": "x"})
    client.line()


def call(client: Caller) -> None:
    """The same over HTTP."""
    client.greet()
    client.post("tools/call", 1, name="count", arguments={"n": 0}, _meta={"progressToken": "t"})


def wait_for_endpoint(client: Caller) -> None:
    """Open a stream of HTTP+SSE, as clients do before all else, and leave."""
    client.request("GET")


def hear_endpoint(client: Caller) -> None:
    """Open one, and leave when it has announced its endpoint."""
    stream = client.request("GET")
    while not stream.readline().startswith(b"data:"):
        pass


def hangs_up(record: Record) -> bool:
    """Whether a stream ends here before its time."""
    return isinstance(record, Close) and record.how != "eof"


def at_cancellation(seconds: float) -> Play:
    """A client that gives up after so long, and a server that answers after 48 s more."""
    given_up = later(on_stdio([*FAULTY, "slow"], give_up), seconds, holds(b"notifications/cancelled"))
    return later(given_up, 48, holds(b'"content"', 1))


SCENES = (
    Scene(pain=3, rule="timed-out", culprit="server", ill=at_cancellation(60), well=at_cancellation(33.3)),
    Scene(
        pain=4,
        rule="unanswered-request",
        culprit="server",
        ill=later(on_stdio([*FAULTY, f"deaf={LETTERS}"], call_at_length), 30, leaves),
        well=later(on_stdio(FAULTY, call_at_length), 30, leaves),
    ),
    Scene(pain=4, rule="accepted-request", culprit="server", ill=over_http(call, "accepted"), well=over_http(call)),
    Scene(
        pain=4,
        rule="server-died",
        culprit="server",
        ill=on_stdio([*FAULTY, "fragile"], talk),
        well=on_stdio(FAULTY, talk),
    ),
    Scene(
        pain=4,
        rule="missing-endpoint",
        culprit="server",
        ill=later(over_http(wait_for_endpoint, "mute", path="/sse"), 30, hangs_up),
        well=later(over_http(hear_endpoint, path="/sse"), 30, hangs_up),
    ),
    Scene(
        pain=9,
        rule="unanswered-request",
        culprit="client",
        ill=later(on_stdio(ASKING, hear_no_question, through=(*SWALLOW, QUESTION)), 30, leaves),
        well=later(on_stdio(ASKING, answer_question, through=(*SWALLOW, "nothing")), 30, leaves),
    ),
    Scene(
        pain=9,
        rule="missing-initialized",
        culprit="client",
        ill=on_stdio(FAULTY, talk, through=(*SWALLOW, "notifications/initialized")),
        well=on_stdio(FAULTY, talk, through=(*SWALLOW, "nothing")),
    ),
)


@pytest.mark.parametrize("scene", SCENES, ids=str)
def test_the_fault_and_its_culprit_are_found(scene: Scene, tmp_path: Path) -> None:
    assert_found(scene, tmp_path)


@pytest.mark.parametrize("scene", SCENES, ids=str)
def test_without_the_fault_nothing_is(scene: Scene, tmp_path: Path) -> None:
    assert_silent(scene, tmp_path)


def test_a_timeout_says_when_the_answer_came_after_all(tmp_path: Path) -> None:
    (found,) = checked(at_cancellation(60)(tmp_path), "--select", "timed-out")
    assert "after 60.0 s" in found["what"]
    assert "answered after 108.0 s" in found["what"]


def test_a_person_who_is_asked_may_take_their_time(tmp_path: Path) -> None:
    capture = later(on_stdio([*FAULTY, "asks=elicitation/create"], hear_no_question), 30, leaves)(tmp_path)
    assert {one["severity"] for one in checked(capture)} == {"info"}


def test_a_call_that_waits_for_an_answer_of_the_client_is_not_held_against_the_server(tmp_path: Path) -> None:
    found = checked(later(on_stdio(ASKING, hear_no_question), 30, leaves)(tmp_path))
    assert {one["culprit"] for one in found if one["rule"] == "unanswered-request"} == {"client"}

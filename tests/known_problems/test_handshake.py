"""Problems of the handshake: servers that hang on a revision, and messages that come early, undeclared or without a header field."""

from pathlib import Path
from typing import Any

import pytest

from tests.known_problems.stage import (
    Caller,
    Case,
    Talker,
    asking,
    assert_found,
    assert_silent,
    hello,
    later,
    leaves,
    on_stdio,
    over_http,
    python,
)

FAULTY = python("faulty.py")


def open_and_ping(client: Talker) -> None:
    """Send initialize, which may stay unanswered, and a ping, which is answered."""
    client.say("initialize", 0, **hello())
    client.say("ping", "still there?")
    while client.heard()["id"] == 0:
        pass


def talk(client: Talker) -> None:
    """Do a handshake and a call."""
    client.greet()
    client.ask("tools/call", 1, name="echo", arguments={"text": "x"})


def talk_with_dots(client: Talker) -> None:
    """Do the same with the revision spelled as in some walkthroughs."""
    client.greet("2025.11.25")
    client.ask("tools/call", 1, name="echo", arguments={"text": "x"})


def answer_person(client: Talker, **capabilities: Any) -> None:
    """Call a tool that asks a person."""
    client.greet(**capabilities)
    question = client.ask("tools/call", 1, name="echo", arguments={"text": "x"})
    client.answer(question["id"], action="decline")
    client.line()


def want_prompts(client: Talker) -> None:
    """Ask for a list that the server does not offer."""
    client.greet()
    client.ask("prompts/list", 1)


def skip_initialized(client: Talker) -> None:
    """Call right after initialize was answered."""
    client.greet(initialized=False)
    client.ask("tools/call", 1, name="echo", arguments={"text": "x"})


def hurry(client: Talker) -> None:
    """Send a request right after initialize."""
    client.together(asking("initialize", 0, hello()), asking("tools/list", 1, {}))
    client.lines(2)
    client.say("notifications/initialized")


def greet_twice(client: Talker) -> None:
    """Do two handshakes."""
    client.greet()
    client.greet()


def list_tools(client: Caller, **fields: str) -> None:
    """Make a session over HTTP whose header fields differ from what was agreed on."""
    client.greet()
    client.fields.update(fields)
    client.post("tools/list", 1)


def lose_revision(client: Caller) -> None:
    """Drop the header field with the revision on the way."""
    client.greet()
    del client.fields["MCP-Protocol-Version"]
    client.post("tools/list", 1)


CASES = (
    Case(
        problem=18,
        rule="unanswered-request",
        culprit="server",
        faulty=later(on_stdio([*FAULTY, "shy=2025-11-25"], open_and_ping), 30, leaves),
        sound=later(on_stdio([*FAULTY, "shy=2024-11-05"], open_and_ping), 30, leaves),
    ),
    Case(
        problem=18,
        rule="unknown-revision",
        culprit="client",
        faulty=on_stdio(FAULTY, talk_with_dots),
        sound=on_stdio(FAULTY, talk),
    ),
    Case(
        problem=18,
        rule="undeclared-capability",
        culprit="server",
        faulty=on_stdio([*FAULTY, "asks=elicitation/create"], answer_person),
        sound=on_stdio([*FAULTY, "asks=elicitation/create"], lambda client: answer_person(client, elicitation={})),
    ),
    Case(
        problem=18,
        rule="undeclared-capability",
        culprit="client",
        faulty=on_stdio(FAULTY, want_prompts),
        sound=on_stdio(FAULTY, talk),
    ),
    Case(
        problem=18,
        rule="missing-initialized",
        culprit="client",
        faulty=on_stdio(FAULTY, skip_initialized),
        sound=on_stdio(FAULTY, talk),
    ),
    Case(problem=18, rule="early-request", culprit="client", faulty=on_stdio(FAULTY, hurry), sound=on_stdio(FAULTY, talk)),
    Case(
        problem=18,
        rule="second-initialize",
        culprit="client",
        faulty=on_stdio(FAULTY, greet_twice),
        sound=on_stdio(FAULTY, talk),
    ),
    Case(
        problem=18,
        rule="header-contradicts",
        culprit="client",
        faulty=over_http(lambda client: list_tools(client, **{"MCP-Protocol-Version": "2025-03-26"})),
        sound=over_http(list_tools),
    ),
    Case(problem=18, rule="missing-header", culprit="client", faulty=over_http(lose_revision), sound=over_http(list_tools)),
)


@pytest.mark.grid(6)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_fault_and_its_culprit_are_found(case: Case, tmp_path: Path) -> None:
    assert_found(case, tmp_path)


@pytest.mark.grid(3)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_without_the_fault_nothing_is(case: Case, tmp_path: Path) -> None:
    assert_silent(case, tmp_path)

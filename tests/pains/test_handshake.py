"""Pains of the handshake: servers that hang on a revision, and what comes too early, undeclared, or without its header field."""

from pathlib import Path
from typing import Any

import pytest

from tests.pains.stage import (
    Caller,
    Scene,
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
    """An opening that may not be answered; a ping that is."""
    client.say("initialize", 0, **hello())
    client.say("ping", "still there?")
    while client.heard()["id"] == 0:
        pass


def talk(client: Talker) -> None:
    """A handshake, and a call."""
    client.greet()
    client.ask("tools/call", 1, name="echo", arguments={"text": "x"})


def talk_with_dots(client: Talker) -> None:
    """The same, the revision being spelled as in some walkthroughs."""
    client.greet("2025.11.25")
    client.ask("tools/call", 1, name="echo", arguments={"text": "x"})


def answer_person(client: Talker, **capabilities: Any) -> None:
    """A call in which the server wants something of a person."""
    client.greet(**capabilities)
    asked = client.ask("tools/call", 1, name="echo", arguments={"text": "x"})
    client.answer(asked["id"], action="decline")
    client.line()


def want_prompts(client: Talker) -> None:
    """A request for what the server does not offer."""
    client.greet()
    client.ask("prompts/list", 1)


def skip_initialized(client: Talker) -> None:
    """A call right after initialize was answered."""
    client.greet(initialized=False)
    client.ask("tools/call", 1, name="echo", arguments={"text": "x"})


def hurry(client: Talker) -> None:
    """A request right after initialize was sent."""
    client.together(asking("initialize", 0, hello()), asking("tools/list", 1, {}))
    client.lines(2)
    client.say("notifications/initialized")


def greet_twice(client: Talker) -> None:
    """Two handshakes."""
    client.greet()
    client.greet()


def list_tools(client: Caller, **fields: str) -> None:
    """A session over HTTP, in which these fields take the place of what was agreed on."""
    client.greet()
    client.fields.update(fields)
    client.post("tools/list", 1)


def lose_revision(client: Caller) -> None:
    """A session in which something on the way drops the field with the revision."""
    client.greet()
    del client.fields["MCP-Protocol-Version"]
    client.post("tools/list", 1)


SCENES = (
    Scene(
        pain=18,
        rule="unanswered-request",
        culprit="server",
        ill=later(on_stdio([*FAULTY, "shy=2025-11-25"], open_and_ping), 30, leaves),
        well=later(on_stdio([*FAULTY, "shy=2024-11-05"], open_and_ping), 30, leaves),
    ),
    Scene(
        pain=18,
        rule="unknown-revision",
        culprit="client",
        ill=on_stdio(FAULTY, talk_with_dots),
        well=on_stdio(FAULTY, talk),
    ),
    Scene(
        pain=18,
        rule="undeclared-capability",
        culprit="server",
        ill=on_stdio([*FAULTY, "asks=elicitation/create"], answer_person),
        well=on_stdio([*FAULTY, "asks=elicitation/create"], lambda client: answer_person(client, elicitation={})),
    ),
    Scene(
        pain=18,
        rule="undeclared-capability",
        culprit="client",
        ill=on_stdio(FAULTY, want_prompts),
        well=on_stdio(FAULTY, talk),
    ),
    Scene(
        pain=18,
        rule="missing-initialized",
        culprit="client",
        ill=on_stdio(FAULTY, skip_initialized),
        well=on_stdio(FAULTY, talk),
    ),
    Scene(pain=18, rule="early-request", culprit="client", ill=on_stdio(FAULTY, hurry), well=on_stdio(FAULTY, talk)),
    Scene(pain=18, rule="second-initialize", culprit="client", ill=on_stdio(FAULTY, greet_twice), well=on_stdio(FAULTY, talk)),
    Scene(
        pain=18,
        rule="header-contradicts",
        culprit="client",
        ill=over_http(lambda client: list_tools(client, **{"MCP-Protocol-Version": "2025-03-26"})),
        well=over_http(list_tools),
    ),
    Scene(pain=18, rule="missing-header", culprit="client", ill=over_http(lose_revision), well=over_http(list_tools)),
)


@pytest.mark.parametrize("scene", SCENES, ids=str)
def test_the_fault_and_its_culprit_are_found(scene: Scene, tmp_path: Path) -> None:
    assert_found(scene, tmp_path)


@pytest.mark.parametrize("scene", SCENES, ids=str)
def test_without_the_fault_nothing_is(scene: Scene, tmp_path: Path) -> None:
    assert_silent(scene, tmp_path)

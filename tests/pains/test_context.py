"""Pains of context and trust: what tools and results cost, and definitions that grow; and of sharing: ids that collide."""

from pathlib import Path

import pytest

from tests.pains.stage import Scene, Talker, asking, assert_found, assert_silent, checked, on_stdio, python

FAULTY = python("faulty.py")


def use_one(client: Talker) -> None:
    """A session that uses one of two tools."""
    client.greet()
    client.ask("tools/list", 1)
    client.ask("tools/call", 2, name="echo", arguments={"text": "x"})


def use_both(client: Talker) -> None:
    """A session that uses both."""
    use_one(client)
    client.ask("tools/call", 3, name="page", arguments={"letters": 9})


def baseline(folder: Path) -> tuple[str, ...]:
    """The options that hold a server against what it offered when somebody looked at it."""
    options = ("--baseline", str(folder / "accepted"))
    checked(on_stdio(FAULTY, use_both)(folder), *options, "--accept")
    return options


def share(client: Talker) -> None:
    """A server that two clients share through what passes their requests on as they are: both count from 1."""
    client.greet()
    client.together(*(asking("tools/call", 1, {"name": "echo", "arguments": {"text": text}}) for text in ("one", "other")))
    client.lines(2)


def number(client: Talker) -> None:
    """The same through what gives each request a number of its own."""
    client.greet()
    for id in (1, 2):
        client.say("tools/call", id, name="echo", arguments={"text": "x"})
    client.lines(2)


SCENES = (
    Scene(pain=17, rule="id-in-use", culprit="client", ill=on_stdio(FAULTY, share), well=on_stdio(FAULTY, number)),
    Scene(
        pain=24,
        rule="costly-tools",
        culprit="server",
        ill=on_stdio([*FAULTY, "wordy"], use_both),
        well=on_stdio(FAULTY, use_both),
    ),
    Scene(pain=24, rule="unused-tools", culprit="unclear", ill=on_stdio(FAULTY, use_one), well=on_stdio(FAULTY, use_both)),
    Scene(
        pain=24,
        rule="tool-changed",
        culprit="server",
        ill=on_stdio([*FAULTY, "new"], use_both),
        well=on_stdio(FAULTY, use_both),
        options=baseline,
    ),
)


@pytest.mark.parametrize("scene", SCENES, ids=str)
def test_the_fault_and_its_culprit_are_found(scene: Scene, tmp_path: Path) -> None:
    assert_found(scene, tmp_path)


@pytest.mark.parametrize("scene", SCENES, ids=str)
def test_without_the_fault_nothing_is(scene: Scene, tmp_path: Path) -> None:
    assert_silent(scene, tmp_path)

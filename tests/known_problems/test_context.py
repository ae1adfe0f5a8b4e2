"""Problems of context, trust and sharing: costly tools, changed definitions, ids that collide."""

from pathlib import Path

import pytest

from tests.known_problems.stage import Case, Talker, asking, assert_found, assert_silent, checked, on_stdio, python

FAULTY = python("faulty.py")


def use_one(client: Talker) -> None:
    """Use one of two tools."""
    client.greet()
    client.ask("tools/list", 1)
    client.ask("tools/call", 2, name="echo", arguments={"text": "x"})


def use_both(client: Talker) -> None:
    """Use both tools."""
    use_one(client)
    client.ask("tools/call", 3, name="page", arguments={"letters": 9})


def baseline(folder: Path) -> tuple[str, ...]:
    """Accept what the server offers, and give the options that compare it with that."""
    options = ("--baseline", str(folder / "accepted"))
    checked(on_stdio(FAULTY, use_both)(folder), *options, "--accept")
    return options


def other_sessions(folder: Path) -> tuple[str, ...]:
    """Give two more captures of the server."""
    return tuple(str(on_stdio(FAULTY, use_one)(folder)) for _ in range(2))


def share(client: Talker) -> None:
    """Send the requests of two clients through a multiplexer that keeps their ids: both count from 1."""
    client.greet()
    client.together(*(asking("tools/call", 1, {"name": "echo", "arguments": {"text": text}}) for text in ("one", "other")))
    client.lines(2)


def number(client: Talker) -> None:
    """Send them through one that gives each request an id of its own."""
    client.greet()
    for id in (1, 2):
        client.say("tools/call", id, name="echo", arguments={"text": "x"})
    client.lines(2)


CASES = (
    Case(problem=17, rule="id-in-use", culprit="client", faulty=on_stdio(FAULTY, share), sound=on_stdio(FAULTY, number)),
    Case(
        problem=24,
        rule="costly-tools",
        culprit="server",
        faulty=on_stdio([*FAULTY, "wordy"], use_both),
        sound=on_stdio(FAULTY, use_both),
    ),
    Case(
        problem=24,
        rule="unused-tools",
        culprit="unclear",
        faulty=on_stdio(FAULTY, use_one),
        sound=on_stdio(FAULTY, use_both),
        options=other_sessions,
    ),
    Case(
        problem=24,
        rule="tool-changed",
        culprit="server",
        faulty=on_stdio([*FAULTY, "new"], use_both),
        sound=on_stdio(FAULTY, use_both),
        options=baseline,
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

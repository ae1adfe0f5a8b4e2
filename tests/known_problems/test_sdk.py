"""Problems with the official Python SDK at both ends, and with real times, as users meet them. Not in `make test`."""

from pathlib import Path

import pytest

from tests.interop.playing import Playing, Scene, tap
from tests.interop.scenes import PYSERVER, steps
from tests.interop.serving import HttpScene, play_tapped
from tests.known_problems.stage import Case, Play, assert_found, assert_silent

pytestmark = pytest.mark.tiered

LIMIT_S = 5
"""The shortest timeout that the rule knows."""
STEPS = 20
"""Steps of `slow`, 0.3 s each: a second longer than the timeout."""

HTTP = (*PYSERVER[:-1], "http", "0")


def slow(timeout_s: float, steps_: int) -> tuple[str, ...]:
    """Give the argv of the client that calls `slow`, and gives up after so long."""
    return steps("legacy", {"list": "tools"}, {"call": "slow", "arguments": {"n": steps_}, "timeout_s": timeout_s})


def on_stdio(client: tuple[str, ...], server: tuple[str, ...]) -> Play:
    """Play an SDK client and a server on stdio."""

    def play(folder: Path) -> Path:
        scene, capture = Scene(client=client, server=server), folder / "a.mcpspy"
        played = Playing(scene, folder / "run", tap(scene, "--capture", str(capture))).end()
        assert played.status == 0, played.errors
        return capture

    return play


def over_http(client: tuple[str, ...]) -> Play:
    """Play them over Streamable HTTP."""

    def play(folder: Path) -> Path:
        played, _ = play_tapped(HttpScene(client=(*client, "URL"), server=HTTP, path="/mcp"), folder / "run")
        assert played.status == 0, played.errors
        return folder / "run" / "a.mcpspy"

    return play


SHELL = ("sh", "-c", 'echo "Starting the server"; exec "$@"', "sh", *PYSERVER)
"""A server behind a script that prints a line first."""

ADD = steps("legacy", {"list": "tools"}, {"call": "add", "arguments": {"a": 1, "b": 2}})

CASES = (
    Case(problem=2, rule="stdout-noise", culprit="server", faulty=on_stdio(ADD, SHELL), sound=on_stdio(ADD, PYSERVER)),
    Case(
        problem=3,
        rule="timed-out",
        culprit="server",
        faulty=on_stdio(slow(LIMIT_S, STEPS), PYSERVER),
        sound=on_stdio(slow(LIMIT_S, 2), PYSERVER),
    ),
    Case(
        problem=3,
        rule="timed-out",
        culprit="server",
        faulty=over_http(slow(LIMIT_S, STEPS)),
        sound=over_http(slow(LIMIT_S, 2)),
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

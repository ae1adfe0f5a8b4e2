"""The same pains with both ends on the official Python SDK, and nothing set forward: as users meet them. Not in `make test`."""

from pathlib import Path

import pytest

from tests.interop.playing import Playing, tap
from tests.interop.playing import Scene as Dialogue
from tests.interop.scenes import PYSERVER, steps
from tests.interop.serving import HttpScene, play_tapped
from tests.pains.stage import Play, Scene, assert_found, assert_silent

LIMIT_S = 5
"""The shortest round time that the rule knows."""
STEPS = 20
"""Of `slow`, 0.3 s each: a second longer."""

HTTP = (*PYSERVER[:-1], "http", "0")


def slow(timeout_s: float, steps_: int) -> tuple[str, ...]:
    """The client that calls `slow`, and gives up after so long."""
    return steps("legacy", {"list": "tools"}, {"call": "slow", "arguments": {"n": steps_}, "timeout_s": timeout_s})


def on_stdio(client: tuple[str, ...], server: tuple[str, ...]) -> Play:
    """What an SDK client and a server say to each other on stdio."""

    def play(folder: Path) -> Path:
        scene, capture = Dialogue(client=client, server=server), folder / "a.mcpspy"
        played = Playing(scene, folder / "run", tap(scene, "--capture", str(capture))).end()
        assert played.status == 0, played.errors
        return capture

    return play


def over_http(client: tuple[str, ...]) -> Play:
    """The same over Streamable HTTP."""

    def play(folder: Path) -> Path:
        played, _ = play_tapped(HttpScene(client=(*client, "URL"), server=HTTP, path="/mcp"), folder / "run")
        assert played.status == 0, played.errors
        return folder / "run" / "a.mcpspy"

    return play


SHELL = ("sh", "-c", 'echo "Starting the server"; exec "$@"', "sh", *PYSERVER)
"""A server that a script starts, which says so."""

ADD = steps("legacy", {"list": "tools"}, {"call": "add", "arguments": {"a": 1, "b": 2}})

SCENES = (
    Scene(pain=2, rule="stdout-noise", culprit="server", ill=on_stdio(ADD, SHELL), well=on_stdio(ADD, PYSERVER)),
    Scene(
        pain=3,
        rule="timed-out",
        culprit="server",
        ill=on_stdio(slow(LIMIT_S, STEPS), PYSERVER),
        well=on_stdio(slow(LIMIT_S, 2), PYSERVER),
    ),
    Scene(
        pain=3,
        rule="timed-out",
        culprit="server",
        ill=over_http(slow(LIMIT_S, STEPS)),
        well=over_http(slow(LIMIT_S, 2)),
    ),
)


@pytest.mark.parametrize("scene", SCENES, ids=str)
def test_the_fault_and_its_culprit_are_found(scene: Scene, tmp_path: Path) -> None:
    assert_found(scene, tmp_path)


@pytest.mark.parametrize("scene", SCENES, ids=str)
def test_without_the_fault_nothing_is(scene: Scene, tmp_path: Path) -> None:
    assert_silent(scene, tmp_path)

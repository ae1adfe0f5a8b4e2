"""Pains of whoever stands between: what mcpspy cannot record or reach is said of it too."""

import resource
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from mcpspy.records import Gap
from tests.interop.serving import recorded
from tests.pains.stage import Caller, Play, Scene, Talker, assert_found, assert_silent, on_stdio, python, serving

FAULTY = python("faulty.py")


def talk(client: Talker) -> None:
    """A handshake, and a call."""
    client.greet()
    client.ask("tools/call", 1, name="echo", arguments={"text": "x"})


def fill_disk(client: Talker) -> None:
    """The same on a disk that is full for a while: not a byte more fits into the capture."""
    client.greet()
    size_bytes = client.capture.stat().st_size
    resource.prlimit(client.pid, resource.RLIMIT_FSIZE, (size_bytes, resource.RLIM_INFINITY))
    client.ask("tools/call", 1, name="echo", arguments={"text": "x"})
    resource.prlimit(client.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    while not any(isinstance(one, Gap) for one in client.records()):
        client.ask("ping", 2)


def calling(*, alive: bool) -> Play:
    """A session with a server that is there to the end, or not."""

    def play(folder: Path) -> Path:
        with ExitStack() as stack:
            with serving(folder) as number:
                tap = stack.enter_context(recorded(f"http://127.0.0.1:{number}/mcp", folder))
                client = stack.enter_context(closing(Caller(tap)))
                client.greet()
                if alive:
                    client.post("tools/list", 1)
            if not alive:
                client.post("tools/list", 1)
        return folder / "a.mcpspy"

    return play


SCENES = (
    Scene(pain=25, rule="recording-gap", culprit="disk", ill=on_stdio(FAULTY, fill_disk), well=on_stdio(FAULTY, talk)),
    Scene(pain=25, rule="upstream-failed", culprit="server", ill=calling(alive=False), well=calling(alive=True)),
)


@pytest.mark.parametrize("scene", SCENES, ids=str)
def test_the_fault_and_its_culprit_are_found(scene: Scene, tmp_path: Path) -> None:
    assert_found(scene, tmp_path)


@pytest.mark.parametrize("scene", SCENES, ids=str)
def test_without_the_fault_nothing_is(scene: Scene, tmp_path: Path) -> None:
    assert_silent(scene, tmp_path)

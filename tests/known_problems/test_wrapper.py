"""Problems of mcpspy itself: it reports what it cannot record or reach."""

import resource
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from mcpspy.records import Gap
from tests.interop.serving import recorded
from tests.known_problems.stage import Caller, Case, Play, Talker, assert_found, assert_silent, on_stdio, python, serving

FAULTY = python("faulty.py")


def talk(client: Talker) -> None:
    """Do a handshake and a call."""
    client.greet()
    client.ask("tools/call", 1, name="echo", arguments={"text": "x"})


def fill_disk(client: Talker) -> None:
    """Do the same on a disk that is full for a while: no byte more fits into the capture."""
    client.greet()
    size_bytes = client.capture.stat().st_size
    resource.prlimit(client.pid, resource.RLIMIT_FSIZE, (size_bytes, resource.RLIM_INFINITY))
    client.ask("tools/call", 1, name="echo", arguments={"text": "x"})
    resource.prlimit(client.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    while not any(isinstance(record, Gap) for record in client.records()):
        client.ask("ping", 2)


def calling(*, alive: bool) -> Play:
    """Do a session with a server that runs to the end, or does not."""

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


CASES = (
    Case(problem=25, rule="recording-gap", culprit="disk", faulty=on_stdio(FAULTY, fill_disk), sound=on_stdio(FAULTY, talk)),
    Case(problem=25, rule="upstream-failed", culprit="server", faulty=calling(alive=False), sound=calling(alive=True)),
)


@pytest.mark.grid(6)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_fault_and_its_culprit_are_found(case: Case, tmp_path: Path) -> None:
    assert_found(case, tmp_path)


@pytest.mark.grid(3)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_without_the_fault_nothing_is(case: Case, tmp_path: Path) -> None:
    assert_silent(case, tmp_path)

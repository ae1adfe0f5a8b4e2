"""A program that goes on in a copy of a prepared process does what it would do in its own: a peer, and what a test starts."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.conftest import PEERS
from tests.deadlines import DEADLINE_S, eventually
from tests.starting import Program

TELLS = """
import json, os, sys
json.dump([os.getpid(), sys.argv[1:], os.getcwd(), dict(os.environ), sys.stdin.read(), sys.stdout.encoding], sys.stdout)
print("told", file=sys.stderr)
sys.exit(3)
"""
LISTENS = """
import os, sys
print(os.getpid(), flush=True)
sys.stdin.read()
"""


@contextmanager
def started(source: str, folder: Path, *arguments: str, is_prepared: bool = True) -> Iterator[subprocess.Popen[str]]:
    """Start a program of these lines, as a peer is started."""
    program = folder / "program.py"
    program.write_text(("import prepared\n" if is_prepared else "") + source)
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    words = [sys.executable, str(program), *arguments]
    environment = {"PYTHONPATH": str(PEERS), "LANG": "C.UTF-8", "NAME": "wörd"}
    with subprocess.Popen(words, cwd=folder, env=environment, text=True, **pipes) as process:  # type: ignore[call-overload]
        try:
            yield process
        finally:
            process.kill()


def told(folder: Path, *, is_prepared: bool) -> tuple[int, list[object], str, int]:
    with started(TELLS, folder, "a", "ü", is_prepared=is_prepared) as process:
        output, errors = process.communicate("hello", DEADLINE_S)
        pid, *facts = json.loads(output)
        return pid - process.pid, facts, errors, process.returncode


def test_its_arguments_folder_environment_streams_and_status_are_its_own(tmp_path: Path) -> None:
    (other, *copied), (same, *plain) = (told(tmp_path, is_prepared=is_prepared) for is_prepared in (True, False))
    assert other != same == 0
    assert copied == plain


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGKILL])
def test_a_signal_ends_both(number: signal.Signals, tmp_path: Path) -> None:
    with started(LISTENS, tmp_path) as process:
        assert process.stdout is not None
        copy = int(process.stdout.readline())
        assert copy != process.pid
        process.send_signal(number)
        assert process.wait(DEADLINE_S) == -number
        eventually(lambda: not Path(f"/proc/{copy}").exists(), "the copy to end")


def test_it_reads_to_the_end_of_its_input(tmp_path: Path) -> None:
    with started(LISTENS, tmp_path) as process:
        process.communicate("", DEADLINE_S)
        assert process.returncode == 0


def puppet(*steps: str) -> list[str]:
    return [sys.executable, str(PEERS / "puppet.py"), *steps]


@pytest.mark.parametrize("start", [Program, subprocess.Popen])
def test_a_program_that_a_test_starts_has_its_own_pid_folder_environment_streams_and_status(
    start: type[subprocess.Popen[str]], tmp_path: Path
) -> None:
    environment = {"LANG": "C.UTF-8", "NAME": "wörd"}
    streams = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    words = puppet("say={pid}", "report", "complain=told", "await=go", "exit=3")
    with start(words, cwd=tmp_path, env=environment, text=True, **streams) as process:  # type: ignore[call-overload]
        output, errors = process.communicate("go\n", DEADLINE_S)
    pid, report = output.splitlines()
    assert int(pid) == process.pid
    assert json.loads(report)["cwd"] == str(tmp_path)
    assert json.loads(report)["environment"].items() >= environment.items()
    assert (errors, process.returncode) == ("told\n", 3)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_signal_ends_a_program_that_a_test_started(number: signal.Signals) -> None:
    with Program(puppet("say=here", "linger"), stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"here\n"
        assert process.poll() is None
        process.send_signal(number)
        assert process.wait(DEADLINE_S) == process.poll() == -number
        process.kill()


def test_a_program_whose_end_is_not_waited_for_long_enough_runs_on() -> None:
    with Program(puppet("linger"), stdout=subprocess.PIPE) as process:
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.01)
        assert process.poll() is None
        process.kill()


@pytest.mark.parametrize(
    ("changes", "is_copied"), [({}, True), ({"NAME": "a"}, True), ({"PYTHONHASHSEED": "1"}, False), ({"LANG": "C"}, False)]
)
def test_an_environment_that_python_reads_as_it_starts_makes_no_copy(changes: dict[str, str], *, is_copied: bool) -> None:
    with Program(puppet(), env={**os.environ, **changes}) as process:
        assert (process._connection is not None) == is_copied

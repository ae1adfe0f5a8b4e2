"""A peer that goes on in a copy of a prepared process does what it would do in its own."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.conftest import PEERS
from tests.deadlines import DEADLINE_S, eventually

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

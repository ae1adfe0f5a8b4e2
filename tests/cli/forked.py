"""mcpspy in a process of its own that need not import it again: a copy of this one, which has. A tenth of what starting one takes.

What the interpreter reads when it starts (`PYTHON…`, the locale) has no effect here: who sets that starts one.
"""

import gc
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from importlib import import_module
from pathlib import Path
from typing import BinaryIO, NoReturn

import mcpspy
from mcpspy.__main__ import main
from tests.deadlines import DEADLINE_S

EXTRAS = ("mcp_types",)
READ_AT_START = ("PYTHON", "LC_", "LANG")

PACKAGE = Path(mcpspy.__file__).parent
for room in ("cli", "transcript", "views"):
    for file in (PACKAGE / room).rglob("*.py"):
        import_module(".".join(file.relative_to(PACKAGE.parent).with_suffix("").parts))
import_module("jsonschema")  # which `check` imports when it needs it


def can_fork(environment: dict[str, str]) -> bool:
    """Check that a copy of this process behaves like a new process with this environment."""
    return hasattr(os, "pidfd_open") and not any(name.startswith(READ_AT_START) for name in environment)


def forked(words: tuple[str, ...], data: bytes, environment: dict[str, str]) -> subprocess.CompletedProcess[bytes]:
    """Run `mcpspy words` to its end, without the extras. Raises: TimeoutExpired."""
    with tempfile.TemporaryFile() as stdin, tempfile.TemporaryFile() as stdout, tempfile.TemporaryFile() as stderr:
        stdin.write(data)
        stdin.seek(0)
        sys.stdout.flush()
        sys.stderr.flush()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # the threads of xdist hold nothing that the copy wants
            pid = os.fork()
        if not pid:
            _be_mcpspy(words, (stdin, stdout, stderr), environment)
        status = _waited(pid, words)
        for file in (stdout, stderr):
            file.seek(0)
        return subprocess.CompletedProcess(words, os.waitstatus_to_exitcode(status), stdout.read(), stderr.read())


def _be_mcpspy(words: tuple[str, ...], files: tuple[BinaryIO, ...], environment: dict[str, str]) -> NoReturn:
    status = 1
    gc.freeze()  # what is not looked at need not be copied
    try:
        for fd, file in enumerate(files):
            os.dup2(file.fileno(), fd)
        sys.stdin, sys.stdout = open(0, encoding="utf-8"), open(1, "w", encoding="utf-8")  # noqa: SIM115 - until the end
        sys.stderr = open(2, "w", encoding="utf-8", errors="backslashreplace")  # noqa: SIM115
        os.environ.clear()
        os.environ.update(environment)
        time.tzset()
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
        sys.modules.update(dict.fromkeys(EXTRAS))  # type: ignore[arg-type]  # None: not to be had
        sys.argv = ["mcpspy", *words]
        status = main()
    except SystemExit as exit:
        status = exit.code if isinstance(exit.code, int) else 1
    except BaseException:  # noqa: BLE001 - as the interpreter would
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def _waited(pid: int, words: tuple[str, ...]) -> int:
    """Return the status with which a child ended."""
    fd = os.pidfd_open(pid)
    try:
        waiting = select.poll()  # takes descriptors above 1,023, which select does not
        waiting.register(fd, select.POLLIN)
        if not waiting.poll(DEADLINE_S * 1000):
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            raise subprocess.TimeoutExpired(words, DEADLINE_S)
    finally:
        os.close(fd)
    return os.waitpid(pid, 0)[1]

"""Processes that have imported much, and copy themselves for each program that a test starts.

One has the SDK, for peers (tests/peers/prepared.py), the other the verbs of mcpspy, for tests (tests/cli/forked.py).
One of each kind belongs to each run of tests, all workers of xdist together, and ends with it. It imports when it is asked
for the first time.
"""

import atexit
import gc
import marshal
import os
import re
import runpy
import selectors
import signal
import socket
import subprocess
import sys
import threading
import time
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import NoReturn

from tests.peers.prepared import STREAMS, address

Request = tuple[list[str], list[str], str, dict[str, str], list[tuple[str, str]]]
"""Arguments, import path, folder, environment, and the encodings of the streams."""

IMPORT = re.compile(r"(?:^(?:from|import) (?!prepared|tests)|import_module\(\")([\w.]+)", re.MULTILINE)
IMPORTED_LATE = {
    "mcp": ("anyio._backends._asyncio", "httpcore2._async", "httpcore2._backends.auto", "jsonschema", "rich.logging"),
    "uvicorn": ("uvicorn.lifespan.on", "uvicorn.loops.asyncio", "uvicorn.protocols.http.h11_impl"),
}
"""Modules that a package imports while it runs."""
DEADLINE_S = 30.0
SIGNALS_BYTES = 64


@contextmanager
def ready(module: str = "tests.preparing") -> Iterator[None]:
    """Run `module` as a process that makes copies for this process and its descendants."""
    if not hasattr(os, "pidfd_open"):
        yield
        return
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(address(os.getpid(), module))
        listener.listen()
        words = [sys.executable, "-m", module, str(listener.fileno())]
        process = subprocess.Popen(words, cwd=Path(__file__).parents[1], stdin=subprocess.PIPE, pass_fds=[listener.fileno()])
    assert process.stdin is not None
    try:
        yield
    finally:
        process.stdin.close()
        process.wait(DEADLINE_S)


class Copies:
    """The copies that run, and the connections of those who asked for them.

    The process calls `prepare` before it copies itself, and the copy calls `be`.
    """

    def __init__(
        self, listener: socket.socket, prepare: Callable[[Request], None], be: Callable[[Request, list[int]], NoReturn]
    ) -> None:
        self._listener = listener
        self._prepare, self._be = prepare, be
        self._selector = selectors.DefaultSelector()
        self._running: dict[int, socket.socket] = {}

    def serve(self) -> None:
        """Make copies until standard input ends; then end those that still run."""
        self._selector.register(0, selectors.EVENT_READ)
        self._selector.register(self._listener, selectors.EVENT_READ, self._accept)
        while True:
            for key, _ in self._selector.select():
                if key.fd == 0:
                    for pid in self._running:
                        os.kill(pid, signal.SIGKILL)
                    return
                key.data()

    def _accept(self) -> None:
        connection, _ = self._listener.accept()
        connection.settimeout(DEADLINE_S)
        try:
            request, fds = _received(connection)
        except OSError:  # it was killed before it had asked
            connection.close()
            return
        self._prepare(request)
        if not (pid := os.fork()):
            self._be(request, fds)
        for fd in fds:
            os.close(fd)
        with suppress(OSError):  # it was killed meanwhile, and takes the copy along
            connection.sendall(pid.to_bytes(4, "big"))
        ended = os.pidfd_open(pid)
        self._running[pid] = connection
        self._selector.register(connection, selectors.EVENT_READ, partial(self._pass_on, connection, pid))
        self._selector.register(ended, selectors.EVENT_READ, partial(self._reap, ended, pid))

    def _pass_on(self, connection: socket.socket, pid: int) -> None:
        """Give a copy the signals of the one who asked for it. Who was killed takes it along."""
        if pid not in self._running:  # it has just ended
            return
        try:
            numbers = connection.recv(SIGNALS_BYTES)
        except OSError:
            numbers = b""
        if not numbers:
            self._selector.unregister(connection)
        for number in numbers or [signal.SIGKILL]:
            os.kill(pid, number)

    def _reap(self, ended: int, pid: int) -> None:
        self._selector.unregister(ended)
        os.close(ended)
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        with self._running.pop(pid) as connection:
            with suppress(KeyError):
                self._selector.unregister(connection)
            with suppress(OSError):
                connection.sendall(status.to_bytes(4, "big", signed=True))


_prepared: set[Path] = set()


def _import_for_program(request: Request) -> None:
    """Import what a program imports, if it is asked for the first time."""
    (program, *_), _, folder, *_ = request
    if (path := Path(folder, program).resolve()) in _prepared:
        return
    _prepared.add(path)
    for name in IMPORT.findall(path.read_text(encoding="utf-8")):
        with suppress(ImportError):  # the peer will say so, if it needs it
            import_module(name)
    for package in IMPORTED_LATE.keys() & sys.modules.keys():
        for name in IMPORTED_LATE[package]:
            import_module(name)
    gc.collect()
    gc.freeze()  # what is not looked at need not be copied


def _received(connection: socket.socket) -> tuple[Request, list[int]]:
    size, fds, _, _ = socket.recv_fds(connection, 4, STREAMS)
    data = b""
    while len(data) < int.from_bytes(size, "big") or not data:
        if not (more := connection.recv(1 << 16)):
            raise EOFError
        data += more
    request: Request = marshal.loads(data)
    return request, fds


def run_program(request: Request, fds: list[int]) -> NoReturn:
    """Run a program from its start to its end, as a new process would."""
    argv, path, folder, environment, encodings = request
    for number, fd in enumerate(fds):
        os.dup2(fd, number)
    os.closerange(STREAMS, os.sysconf("SC_OPEN_MAX"))
    for number, (name, (encoding, errors)) in enumerate(zip(("stdin", "stdout", "stderr"), encodings, strict=True)):
        stream = open(number, "w" if number else "r", encoding=encoding, errors=errors, closefd=False)  # noqa: SIM115
        stream.reconfigure(line_buffering=stream.line_buffering or number == 2)
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
    os.environ.clear()
    os.environ.update(environment)
    time.tzset()
    os.chdir(folder)
    sys.argv[:], sys.path[:] = argv, path
    sys.modules["prepared"] = types.ModuleType("prepared")
    status = _status_of(argv[0])
    threading._shutdown()  # type: ignore[attr-defined]  # waits for threads, as the interpreter does at its end
    atexit._run_exitfuncs()
    for output in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            output.flush()
    if status < 0:
        signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    os._exit(status)


def _status_of(program: str) -> int:
    """Run a program, and return the status that the interpreter would end with."""
    try:
        runpy.run_path(program, run_name="__main__")
    except SystemExit as exit:
        if isinstance(exit.code, str):
            sys.stderr.write(exit.code + "\n")
        return exit.code & 0xFF if isinstance(exit.code, int) else int(exit.code is not None)
    except BaseException as error:  # noqa: BLE001 - as the interpreter would
        sys.excepthook(type(error), error, error.__traceback__)
        return -signal.SIGINT if isinstance(error, KeyboardInterrupt) else 1
    return 0


if __name__ == "__main__":
    Copies(socket.socket(fileno=int(sys.argv[1])), _import_for_program, run_program).serve()

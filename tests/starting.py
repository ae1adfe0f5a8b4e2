"""Programs of tests/peers that a test starts itself, each in a copy at once.

Such a program is started like any other, with `Popen`, and asks a process that is ready for a copy of itself (prepared.py).
Here the test asks instead, and no Python has to start for it: that takes 14 ms of processor time, as much as the copy.
"""

import marshal
import os
import socket
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.deadlines import DEADLINE_S
from tests.peers.prepared import address, ancestors

PEERS = Path(__file__).parent / "peers"
MCPSPY_IN_A_COPY = PEERS / "spy.py"
READ_AT_START = ("PYTHON", "LC_", "LANG")
"""Names of variables that only an interpreter that starts reads begin so."""
ALIKE = {("LANG", "C.UTF-8"), ("PYTHONIOENCODING", "utf-8")}
"""Values that a copy has too."""
ENCODINGS = [("utf-8", "surrogateescape"), ("utf-8", "surrogateescape"), ("utf-8", "backslashreplace")]


def ask(module: str, request: tuple[Any, ...], fds: list[int]) -> tuple[socket.socket, int]:
    """Ask the process that runs `module` for a copy with these streams. Returns a connection, which ends it, and its pid."""
    data = marshal.dumps(request)
    connection = socket.socket(socket.AF_UNIX)
    try:
        _connect(connection, module)
        socket.send_fds(connection, [len(data).to_bytes(4, "big")], fds)
        connection.sendall(data)
        pid = int.from_bytes(connection.recv(4), "big")
        assert pid, "the process that copies itself has ended"
    except BaseException:
        connection.close()
        raise
    return connection, pid


def _connect(connection: socket.socket, module: str) -> None:
    """Connect to the process that we have ready, or, as a worker of xdist, the process that started us."""
    for pid in (os.getpid(), *ancestors()):
        with suppress(OSError):
            return connection.connect(address(pid, module))
    raise AssertionError(f"no process runs {module}")


def finished(
    words: list[str],
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    data: bytes = b"",
    timeout_s: float = DEADLINE_S,
) -> subprocess.CompletedProcess[str]:
    """Run a `Program` to its end, its output as text. Raises: TimeoutExpired."""
    pipe = subprocess.PIPE
    with Program(words, cwd=cwd, env=env, stdin=pipe, stdout=pipe, stderr=pipe) as process:
        try:
            stdout, stderr = process.communicate(data, timeout_s)
        finally:
            process.kill()
    return subprocess.CompletedProcess(words, process.returncode, stdout.decode(), stderr.decode())


def starts_alike(environment: Mapping[str, str] | None = None) -> bool:
    """Check that a copy behaves like a new process with this environment, or with these changes to that of the tests."""
    try:
        os.getcwd()
    except FileNotFoundError:  # a copy could not follow
        return False
    changed = (environment or {}).items() - os.environ.items() - ALIKE
    return hasattr(os, "pidfd_open") and not any(name.startswith(READ_AT_START) for name, _ in changed)


class Program(subprocess.Popen[Any]):
    """`[sys.executable, PROGRAM, …]`, for a program of tests/peers, in a copy. `pid` is that of the copy.

    Of what `Popen` takes, it takes the streams, `cwd` and `env`. It is a `Popen` for any other command, where there are no copies,
    and if the environment has what an interpreter reads when it starts.
    """

    _connection: socket.socket | None = None

    def _execute_child(
        self,
        args: list[str],
        executable: Any,
        preexec_fn: Any,
        close_fds: Any,
        pass_fds: Any,
        cwd: Any,
        env: dict[str, str] | None,
        startupinfo: Any,
        creationflags: Any,
        shell: Any,
        p2cread: int,
        p2cwrite: int,
        c2pread: int,
        c2pwrite: int,
        errread: int,
        errwrite: int,
        *others: Any,
    ) -> None:
        ends = (p2cread, p2cwrite, c2pread, c2pwrite, errread, errwrite)
        if not (list(args[:1]) == [sys.executable] and Path(args[1]).parent == PEERS and starts_alike(env)):
            between = (executable, preexec_fn, close_fds, pass_fds, cwd, env, startupinfo, creationflags, shell)
            super()._execute_child(args, *between, *ends, *others)  # type: ignore[misc]
            return
        path = Path(args[1])
        module = "tests.cli.copied" if path == MCPSPY_IN_A_COPY else "tests.preparing"
        request = (args[1:], [str(path.parent), *sys.path], str(cwd or os.getcwd()), dict(env or os.environ), ENCODINGS)
        fds = [number if end < 0 else end for number, end in enumerate((p2cread, c2pwrite, errwrite))]
        self._connection, self.pid = ask(module, request, fds)
        self._child_created = True
        self._close_pipe_fds(*ends)  # type: ignore[attr-defined]

    def _status(self, timeout: float | None) -> int | None:
        """Wait so long for it to end, and return its status, or None if it still runs."""
        assert self._connection is not None
        self._connection.settimeout(timeout)
        try:
            status = self._connection.recv(4)
        except (BlockingIOError, TimeoutError):
            return None
        self._connection.close()
        return int.from_bytes(status or b"\1", "big", signed=True)

    def _wait(self, timeout: float | None) -> int | None:
        if self._connection is None:
            return super()._wait(timeout)  # type: ignore[misc,no-any-return]
        if self.returncode is None:
            self.returncode = self._status(timeout)
            if self.returncode is None:
                assert timeout is not None
                raise subprocess.TimeoutExpired(self.args, timeout)
        return self.returncode

    def _internal_poll(self, *deadstate: Any, **others: Any) -> int | None:
        if self._connection is None:
            return super()._internal_poll(*deadstate, **others)  # type: ignore[misc,no-any-return]
        if self.returncode is None:
            self.returncode = self._status(0)
        return self.returncode

    def send_signal(self, sig: int) -> None:
        if self._connection is None:
            super().send_signal(sig)
        elif self.returncode is None:
            with suppress(OSError):  # it has ended
                self._connection.sendall(bytes([sig]))

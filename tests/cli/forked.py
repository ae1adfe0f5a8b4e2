"""mcpspy in a process of its own that need not import it again: a copy of one that has (copied.py).

It takes a tenth of what a start takes, and half of what a copy of this process would, which has collected all tests.
What the interpreter reads when it starts (`PYTHON…`, the locale) has no effect here: who sets that starts one.
What a test has changed in its own process has none either: `SPY_…` in the environment says what is to be changed (copied.py).
"""

import marshal
import os
import socket
import subprocess
import tempfile

from tests.deadlines import DEADLINE_S
from tests.peers.prepared import address

READ_AT_START = ("PYTHON", "LC_", "LANG")
COPIED = "tests.cli.copied"


def can_fork(environment: dict[str, str]) -> bool:
    """Check that a copy behaves like a new process with this environment."""
    try:
        os.getcwd()
    except FileNotFoundError:  # a copy could not follow
        return False
    return hasattr(os, "pidfd_open") and not any(name.startswith(READ_AT_START) for name in environment)


def forked(words: tuple[str, ...], data: bytes, environment: dict[str, str]) -> subprocess.CompletedProcess[bytes]:
    """Run `mcpspy words` to its end, without the extras. Raises: TimeoutExpired."""
    request = marshal.dumps((["mcpspy", *words], [], os.getcwd(), environment, []))
    with (
        tempfile.TemporaryFile() as stdin,
        tempfile.TemporaryFile() as stdout,
        tempfile.TemporaryFile() as stderr,
        socket.socket(socket.AF_UNIX) as connection,
    ):
        stdin.write(data)
        stdin.seek(0)
        connection.connect(address(os.getpid(), COPIED))
        connection.settimeout(DEADLINE_S)
        files = [file.fileno() for file in (stdin, stdout, stderr)]
        socket.send_fds(connection, [len(request).to_bytes(4, "big")], files)
        connection.sendall(request)
        try:
            status = connection.recv(4)
        except TimeoutError:  # and the copy is killed as the connection is closed
            raise subprocess.TimeoutExpired(words, DEADLINE_S) from None
        assert status, "the process that copies itself has ended"
        for file in (stdout, stderr):
            file.seek(0)
        return subprocess.CompletedProcess(words, int.from_bytes(status, "big", signed=True), stdout.read(), stderr.read())

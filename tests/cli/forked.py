"""mcpspy in a process of its own that need not import it again, because it is a copy of one that has (copied.py).

It takes a tenth of the time of a start, and half the time of a copy of this process, which has collected all tests.
What the interpreter reads when it starts (`PYTHON…`, the locale) has no effect here: a test that sets it starts an interpreter.
Neither has what a test changed in its own process: variables `SPY_…` set that in the copy (copied.py).
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

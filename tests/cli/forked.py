"""mcpspy in a process of its own that need not import it again, because it is a copy of one that has (copied.py).

It takes a tenth of the time of a start, and half the time of a copy of this process, which has collected all tests.
What the interpreter reads when it starts (`PYTHON…`, the locale) has no effect here: a test that sets it starts an interpreter.
Neither has what a test changed in its own process: variables `SPY_…` set that in the copy (copied.py).
"""

import os
import subprocess
import tempfile

from tests.deadlines import DEADLINE_S
from tests.preparing import Request
from tests.starting import ask

COPIED = "tests.cli.copied"


def forked(words: tuple[str, ...], data: bytes, environment: dict[str, str]) -> subprocess.CompletedProcess[bytes]:
    """Run `mcpspy words` to its end, without the extras. Raises: TimeoutExpired."""
    request: Request = (["mcpspy", *words], [], os.getcwd(), environment, [])
    with (
        tempfile.TemporaryFile() as stdin,
        tempfile.TemporaryFile() as stdout,
        tempfile.TemporaryFile() as stderr,
    ):
        stdin.write(data)
        stdin.seek(0)
        connection, _ = ask(COPIED, request, [file.fileno() for file in (stdin, stdout, stderr)])
        with connection:
            connection.settimeout(DEADLINE_S)
            try:
                status = connection.recv(4)
            except TimeoutError:  # and the copy is killed as the connection is closed
                raise subprocess.TimeoutExpired(words, DEADLINE_S) from None
        assert status, "the process that copies itself has ended"
        for file in (stdout, stderr):
            file.seek(0)
        return subprocess.CompletedProcess(words, int.from_bytes(status, "big", signed=True), stdout.read(), stderr.read())

"""A peer goes on in a copy of a process that has imported the SDK: `import prepared` is the first line of its program.

To import the SDK takes a second, and to copy a process that has done so 20 ms. The copy runs the peer's program from its
start, with its arguments, environment, folder and streams. This process passes signals on to it, and ends as it ends. The
tests have such a process ready (tests/preparing.py); where none of our ancestors has, the peer goes on here.
"""

# What is in C alone: `signal` and `socket` would take as long as the rest of the start.
import _signal as signal  # type: ignore[import-not-found]
import _socket as socket
import marshal
import os
import sys
from collections.abc import Iterator

STREAMS = 3
NOT_PASSED_ON = {getattr(signal, name, 0) for name in ("SIGKILL", "SIGSTOP", "SIGCHLD", "SIGPIPE")}  # of which Windows has none


def address(owner: int, module: str = "tests.preparing") -> bytes:
    """Return the socket of the process that `owner` has ready, for the same Python only."""
    return f"\0mcpspy-{module}-{owner}-".encode() + os.fsencode(sys.prefix)[-60:]


def ancestors() -> Iterator[int]:
    """Yield the pids of our parent, its parent and so on."""
    pid = os.getppid()
    while pid > 1:
        yield pid
        try:
            with open(f"/proc/{pid}/stat", "rb") as file:
                pid = int(file.read().rpartition(b")")[2].split()[1])
        except OSError:  # it has ended
            return


def _connected() -> socket.socket | None:
    if not hasattr(socket, "AF_UNIX"):
        return None
    module = "tests.cli.copied" if os.path.basename(sys.argv[0]) == "spy.py" else "tests.preparing"
    connection = socket.socket(socket.AF_UNIX)
    for pid in ancestors():
        try:
            connection.connect(address(pid, module))
        except OSError:
            continue
        return connection
    connection.close()
    return None


def _go_on_as_a_copy(connection: socket.socket) -> None:
    encodings = [(stream.encoding, stream.errors) for stream in (sys.stdin, sys.stdout, sys.stderr)]
    request = marshal.dumps((sys.argv, sys.path, os.getcwd(), dict(os.environ), encodings))
    for number in signal.valid_signals() - NOT_PASSED_ON:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, lambda number, _: connection.sendall(bytes([number])))
    fds = b"".join(fd.to_bytes(4, sys.byteorder) for fd in range(STREAMS))
    connection.sendmsg([len(request).to_bytes(4, "big")], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, fds)])
    connection.sendall(request)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for fd in range(STREAMS):
        os.dup2(nowhere, fd)
    connection.recv(4)  # the pid of the copy
    status = int.from_bytes(connection.recv(4) or b"\1", "big", signed=True)
    if status < 0:
        if -status not in NOT_PASSED_ON:
            signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    os._exit(status)


if __name__ == "prepared" and (found := _connected()):  # not where tests import it
    _go_on_as_a_copy(found)

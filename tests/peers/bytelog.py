"""A byte logger for stdio: starts COMMAND, passes its three streams on, and keeps every byte that passed in a file per stream.

    bytelog.py [--sockets] FOLDER COMMAND…

FOLDER gets `stdin`, `stdout` and `stderr`; a byte is in its file before it is passed on. COMMAND gets pipes, as Python clients give
them, or with `--sockets` UNIX sockets, as Node's do. SIGTERM is passed on. It ends as the command did: with its status, or 128 + n
where signal n ended it.
"""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from threading import Thread

READ_BYTES = 1 << 16


def channel(*, is_socket: bool) -> tuple[int, int]:
    """Connect two descriptors: what is written to the second is read from the first."""
    if not is_socket:
        return os.pipe()
    one, other = socket.socketpair()
    return one.detach(), other.detach()


def copy(source: int, target: int, log: Path) -> None:
    """Move bytes from one descriptor to another until either end is gone; then close both, so that each side learns of it."""
    with log.open("wb", buffering=0) as file:
        try:
            while data := os.read(source, READ_BYTES):
                file.write(data)
                while data:
                    data = data[os.write(target, data) :]
        except OSError:
            pass  # a reader or a writer has gone: the same as an end
    os.close(target)
    os.close(source)


def main(folder: str, command: list[str], *, is_socket: bool) -> int:
    """Run the command between three copying threads. Returns the exit status."""
    logs = Path(folder)
    logs.mkdir(parents=True)
    child_in, our_in = channel(is_socket=is_socket)
    our_out, child_out = channel(is_socket=is_socket)
    our_err, child_err = channel(is_socket=is_socket)
    child = subprocess.Popen(command, stdin=child_in, stdout=child_out, stderr=child_err)
    for fd in (child_in, child_out, child_err):
        os.close(fd)
    signal.signal(signal.SIGTERM, lambda *_: child.terminate())
    Thread(target=copy, args=(0, our_in, logs / "stdin"), daemon=True).start()
    copiers = [Thread(target=copy, args=(our_out, 1, logs / "stdout")), Thread(target=copy, args=(our_err, 2, logs / "stderr"))]
    for thread in copiers:
        thread.start()
    for thread in copiers:
        thread.join()
    status = child.wait()
    return 128 - status if status < 0 else status


if __name__ == "__main__":
    arguments = sys.argv[1:]
    wants_sockets = arguments[0] == "--sockets"
    where, *rest = arguments[wants_sockets:]
    os._exit(main(where, rest, is_socket=wants_sockets))  # at once: the thread that waits for input would hold up anything else

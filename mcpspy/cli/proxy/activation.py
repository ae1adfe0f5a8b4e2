"""The listening sockets that systemd, or a program like it, opened before it started mcpspy: the protocol of sd_listen_fds(3)."""

import os
import socket
from collections.abc import MutableMapping

FIRST_FD = 3


def inherited_listeners(environ: MutableMapping[str, str]) -> dict[int, socket.socket]:
    """Take the listening TCP sockets that were opened for this process, by port. Later calls, and children, find none.

    The variables are ignored if they are for another process: a child inherits them, but not the meaning of its descriptors.
    """
    pid, count = environ.pop("LISTEN_PID", ""), environ.pop("LISTEN_FDS", "")
    environ.pop("LISTEN_FDNAMES", None)
    if pid != str(os.getpid()) or not count.isdecimal():
        return {}
    listeners: dict[int, socket.socket] = {}
    for fd in range(FIRST_FD, FIRST_FD + int(count)):
        try:
            os.set_inheritable(fd, False)
            inherited = socket.socket(fileno=fd)
        except OSError:  # not open, or no socket
            continue
        if inherited.family == socket.AF_INET and inherited.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
            listeners[inherited.getsockname()[1]] = inherited
        else:
            inherited.detach()
    return listeners

"""A socket at which clients are let in. Refuses to accept them."""

from __future__ import annotations

import errno
import socket

from ...errors import TapError
from .authority import Authority

BACKLOG = 1024

REST_S = 1.0
"""So long nobody is let in once descriptors or memory have run out."""

EXHAUSTED = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
"""What the system says when descriptors or memory have run out."""


def bound(host: str, port: int) -> socket.socket:
    """A socket bound to an address; port 0 picks one. Raises: TapError: if it is taken, or not ours."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        raise TapError(
            "client", f"{Authority(host, port)}: {error.strerror}; name another with --listen, port 0 picks one"
        ) from error
    return listener

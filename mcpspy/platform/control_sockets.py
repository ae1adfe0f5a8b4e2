"""UNIX sockets that only programs of the same user may use: for the control of a tap. Not on Windows.

They are in a folder that is this user's alone. One that is a link, or that others may use, is not used.

This is on the tap's start-up path, so `socket` is not imported, but the part of it that is written in C.
"""

from __future__ import annotations

import _socket
import os
import stat
import sys
from errno import EPERM

from .files import NOFOLLOW, OTHERS, belongs_to_us

TYPE_CHECKING = False
if TYPE_CHECKING:
    from socket import socket as Socket  # noqa: N812 - it is a type

AVAILABLE = hasattr(_socket, "AF_UNIX") and hasattr(os, "geteuid")

MAX_CONTROLLERS = 16
"""More connections to a tap are closed at once."""

_SOL_LOCAL = 0
_LOCAL_PEERCRED = 1
_LOCAL_PEERPID = 2
_UCRED_BYTES = 12


def listen(folder: str, name: str) -> Socket:
    """Make a socket that others connect to, 0600 in a folder that is 0700. Raises: OSError."""
    os.makedirs(os.path.dirname(folder), 0o700, exist_ok=True)
    try:
        os.mkdir(folder, 0o700)
    except FileExistsError:
        os.close(_opened(folder, makes_private=True))
    listener = _new()
    unready = os.path.join(folder, f"{name}.new")
    _with_short_path(folder, f"{name}.new", listener.bind)
    os.chmod(unready, 0o600)
    listener.listen(MAX_CONTROLLERS)
    listener.setblocking(False)
    os.rename(unready, os.path.join(folder, name))  # who sees it can connect: else it would count as left by a killed tap
    return listener


def accept(listener: Socket) -> tuple[Socket, int, int]:
    """Return the connection of somebody who wants to control, with the user and the process; pid 0 if it is not known.

    Raises: OSError: if there is none any more.
    """
    fd: int = listener._accept()[0]  # type: ignore[attr-defined]  # noqa: SLF001 - as `socket.accept` does
    connected = _new(fd)
    connected.setblocking(False)
    user, pid = _peer(connected)
    return connected, user, pid


def connect(folder: str, name: str, timeout_s: float) -> Socket:
    """Connect to a tap. Raises: OSError: if none of our user listens there."""
    fd = _opened(folder)
    try:
        facts = os.stat(name, dir_fd=fd, follow_symlinks=False)
    finally:
        os.close(fd)
    if not stat.S_ISSOCK(facts.st_mode) or not belongs_to_us(facts):
        raise PermissionError(EPERM, "it is no socket of ours", name)
    connected = _new()
    connected.settimeout(timeout_s)
    try:
        _with_short_path(folder, name, connected.connect)
        if _peer(connected)[0] != own_user():
            raise PermissionError(EPERM, "a process of another user listens there", name)
    except OSError:
        connected.close()
        raise
    return connected


def names(folder: str) -> list[str]:
    """List what is in the folder; nothing if there is none. Raises: OSError: if the folder is not this user's alone."""
    try:
        fd = _opened(folder)
    except FileNotFoundError:
        return []
    try:
        return os.listdir(fd)
    finally:
        os.close(fd)


def _opened(folder: str, *, makes_private: bool = False) -> int:
    """Open the folder of sockets. Raises: OSError: if it is a link, belongs to another user, or may be used by others."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | NOFOLLOW)
    facts = os.fstat(fd)
    is_ours = belongs_to_us(facts)
    if is_ours and makes_private:
        os.fchmod(fd, 0o700)
    elif not is_ours or facts.st_mode & OTHERS:
        os.close(fd)
        raise PermissionError(EPERM, "others may use it", folder)
    return fd


def _new(fd: int | None = None) -> Socket:
    return _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM, 0, fd)  # type: ignore[return-value]


def _with_short_path(folder: str, name: str, call: object) -> None:
    """Give a socket its path. One that is too long for a socket's address leads through a descriptor of the folder, on Linux."""
    assert callable(call)
    path = os.path.join(folder, name)
    if len(os.fsencode(path)) <= (107 if sys.platform.startswith("linux") else 103):
        call(path)
        return
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        call(f"/proc/self/fd/{fd}/{name}")
    finally:
        os.close(fd)


def _peer(connected: Socket) -> tuple[int, int]:
    """Return the user and the process at the other end."""
    import struct

    if hasattr(_socket, "SO_PEERCRED"):
        pid, user, _ = struct.unpack("3i", connected.getsockopt(_socket.SOL_SOCKET, _socket.SO_PEERCRED, _UCRED_BYTES))
        return user, pid
    _, user = struct.unpack_from("2I", connected.getsockopt(_SOL_LOCAL, _LOCAL_PEERCRED, 76))
    return user, connected.getsockopt(_SOL_LOCAL, _LOCAL_PEERPID)


def own_user() -> int:
    """Return the user who runs this process."""
    return os.geteuid()

"""The processes that own the ends of local TCP connections: on Linux alone, which tells their inodes and lists descriptors."""

from __future__ import annotations

import os
import socket
import struct
from typing import Final

from .processes import ListedProcess, process

CAN_FIND_OWNERS: Final = hasattr(socket, "AF_NETLINK")

# Of linux/netlink.h, linux/sock_diag.h and linux/inet_diag.h.
_NETLINK_SOCK_DIAG: Final = 4
_SOCK_DIAG_BY_FAMILY: Final = 20
_NLM_F_REQUEST: Final = 1
_NO_COOKIE: Final = (0xFFFFFFFF, 0xFFFFFFFF)
_INODE_AT: Final = 16 + 4 + 48 + 16
"""Offset of the inode in an answer: after its header, four bytes of state, the two ends, and four counts."""
_KERNEL_S: Final = 1.0

Ends = tuple[tuple[str, int], tuple[str, int]]
"""Host and port of a client's end of a connection, and of the tap's."""


def owners_of(unsought: list[tuple[int, Ends]], known: tuple[int, ...]) -> dict[int, ListedProcess]:
    """Find the processes that own connections. `known` pids are likely, and come first."""
    wanted = dict[str, int]()
    for connection, (peer, own) in unsought:
        try:
            wanted[f"socket:[{_inode(peer, own)}]"] = connection
        except OSError:
            continue  # it has left
    owners: dict[int, ListedProcess] = {}
    for pid in dict.fromkeys((*known, *_pids())):
        if not wanted:
            break
        for name in _sockets(pid):
            connection = wanted.pop(name, 0)
            if connection and (owner := process(pid)) is not None:
                owners[connection] = owner
    return owners


def _inode(peer: tuple[str, int], own: tuple[str, int]) -> int:
    """Ask the kernel for the inode of the TCP socket whose ends are these, `peer` its own (sock_diag(7)).

    The table /proc/net/tcp says the same, but reading it takes 10 ms and more. Raises: OSError: there is none.
    """
    family = socket.AF_INET6 if ":" in peer[0] else socket.AF_INET
    ends = struct.pack(">HH", peer[1], own[1]) + b"".join(
        socket.inet_pton(family, host).ljust(16, b"\0") for host in (peer[0], own[0])
    )
    request = struct.pack("=BBBxI", family, socket.IPPROTO_TCP, 0, 0xFFFFFFFF) + ends + struct.pack("=III", 0, *_NO_COOKIE)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_SOCK_DIAG) as kernel:
        kernel.settimeout(_KERNEL_S)
        kernel.send(struct.pack("=IHHII", 16 + len(request), _SOCK_DIAG_BY_FAMILY, _NLM_F_REQUEST, 1, 0) + request)
        answer = kernel.recv(1 << 12)
    if struct.unpack_from("=IH", answer)[1] != _SOCK_DIAG_BY_FAMILY:
        raise OSError("no such socket")
    inode: int = struct.unpack_from("=I", answer, _INODE_AT)[0]
    return inode


def _pids() -> list[int]:
    """Return the pids of all other processes, the youngest first: a client that was started just now may leave soon."""
    own = os.getpid()
    return sorted((int(name) for name in os.listdir("/proc") if name.isdigit() and int(name) != own), reverse=True)


def _sockets(pid: int) -> list[str]:
    """Return the names of the sockets that a process has open; empty for one of another user."""
    names = []
    try:
        for fd in os.listdir(f"/proc/{pid}/fd"):
            try:
                names.append(os.readlink(f"/proc/{pid}/fd/{fd}"))
            except OSError:  # closed just now
                continue
    except OSError:
        pass
    return names

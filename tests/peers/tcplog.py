"""A byte logger for TCP: passes what comes to its port on to a server, and keeps what passed, three files per connection.

    tcplog.py FOLDER PORT

It takes a free port of 127.0.0.1, which is the first line on standard output, and connects each client to PORT there. FOLDER gets
`1.client` with what the first client sent, `1.server` with what was sent to it, `1.ends` with who ended the connection, first one
first, and so on. All of it is in its file before it is passed on; an end is passed on as an end, and a reset as a reset. It ends once
its standard input has and all connections are over: nobody's last bytes are lost here. It knows nothing of HTTP.
"""

import os
import selectors
import socket
import struct
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from threading import Thread

READ_BYTES = 1 << 16
RESET = struct.pack("ii", 1, 0)

Write = Callable[[bytes], object]


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """One end of a connection: who is there, and where to write what came from them."""

    name: str
    socket: socket.socket
    keep: Write


def copy(source: End, target: End, ended: Write) -> None:
    """Move bytes from one end to the other until either is gone, and write down which."""
    gone = source
    try:
        while data := source.socket.recv(READ_BYTES):
            source.keep(data)
            gone = target
            target.socket.sendall(data)
            gone = source
        ended(f"{source.name} eof\n".encode())
        gone = target
        target.socket.shutdown(socket.SHUT_WR)
    except OSError:
        ended(f"{gone.name} reset\n".encode())
        for end in (source, target):
            reset(end.socket)


def reset(end: socket.socket) -> None:
    """Abort a connection, and wake its reader."""
    try:
        end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        end.shutdown(socket.SHUT_RD)
    except OSError:
        pass  # it has gone


def serve(client: socket.socket, port: int, log: Path) -> None:
    """Forward one connection, from its beginning to the end of both directions."""
    with (
        client,
        socket.create_connection(("127.0.0.1", port)) as server,
        log.with_suffix(".ends").open("wb", buffering=0) as ends,
        log.with_suffix(".client").open("wb", buffering=0) as sent,
        log.with_suffix(".server").open("wb", buffering=0) as got,
    ):
        for end in (client, server):
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        near, far = End(name="client", socket=client, keep=sent.write), End(name="server", socket=server, keep=got.write)
        back = Thread(target=copy, args=(far, near, ends.write))
        back.start()
        copy(near, far, ends.write)
        back.join()


def clients(listener: socket.socket) -> Iterator[socket.socket]:
    """Accept clients until standard input ends, and those that had connected by then."""
    listener.setblocking(False)
    with selectors.DefaultSelector() as selector:
        selector.register(listener, selectors.EVENT_READ)
        selector.register(sys.stdin, selectors.EVENT_READ)
        is_over = False
        while not is_over:
            is_over = any(key.fileobj is sys.stdin for key, _ in selector.select())
            while client := accepted(listener):
                yield client


def accepted(listener: socket.socket) -> socket.socket | None:
    """Accept the next client that waits; None if none does."""
    try:
        client, _ = listener.accept()
    except BlockingIOError:
        return None
    client.setblocking(True)
    return client


def main(folder: str, port: str) -> None:
    """Serve until standard input ends, and all that began before."""
    logs = Path(folder)
    logs.mkdir(parents=True)
    listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
    print(listener.getsockname()[1], flush=True)
    for number, client in enumerate(clients(listener), 1):
        Thread(target=serve, args=(client, int(port), logs / f"{number}.both")).start()


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except KeyboardInterrupt:
        os._exit(130)

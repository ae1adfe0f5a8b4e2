"""A byte logger for TCP: passes what comes to its port on to a server, and keeps every byte that passed, two files per connection.

    tcplog.py FOLDER PORT

It takes a free port of 127.0.0.1, which is the first line on standard output, and connects each client to PORT there. FOLDER gets
`1.client` with what the first client sent, `1.server` with what was sent to it, and so on; a byte is in its file before it is passed
on. An end is passed on as an end, and a reset as a reset. It knows nothing of HTTP.
"""

import os
import socket
import struct
import sys
from pathlib import Path
from threading import Thread

READ_BYTES = 1 << 16
RESET = struct.pack("ii", 1, 0)


def copy(source: socket.socket, target: socket.socket, log: Path) -> None:
    """Move bytes from one connection to another until either is gone."""
    with log.open("wb", buffering=0) as file:
        try:
            while data := source.recv(READ_BYTES):
                file.write(data)
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)
        except OSError:
            for end in (source, target):
                reset(end)


def reset(end: socket.socket) -> None:
    """End a connection the hard way, and wake whoever reads it."""
    try:
        end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        end.shutdown(socket.SHUT_RD)
    except OSError:
        pass  # it has gone


def serve(client: socket.socket, port: int, log: Path) -> None:
    """One connection, from its beginning to the end of both directions."""
    with client, socket.create_connection(("127.0.0.1", port)) as server:
        for end in (client, server):
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        back = Thread(target=copy, args=(server, client, log.with_suffix(".server")), daemon=True)
        back.start()
        copy(client, server, log.with_suffix(".client"))
        back.join()


def main(folder: str, port: str) -> None:
    """Serve until killed."""
    logs = Path(folder)
    logs.mkdir(parents=True)
    listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
    print(listener.getsockname()[1], flush=True)
    number = 0
    while True:
        client, _ = listener.accept()
        number += 1
        Thread(target=serve, args=(client, int(port), logs / f"{number}.both"), daemon=True).start()


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except KeyboardInterrupt:
        os._exit(130)

"""A proxy before an HTTP server that gathers each response and passes it on when it is whole, as many do by default.

    gatherer.py PORT UPSTREAM_PORT [streaming]

With `streaming` it passes on what it has at once. It reads one request of each connection, and asks the server to close. On PORT 0 a
free port is taken; either way it is the first line on standard output.
"""

import socket
import sys
from threading import Thread

HEAD_END = b"\r\n\r\n"
READ_BYTES = 1 << 16


def request(client: socket.socket) -> bytes:
    """Read one request, and change it to end the connection after the response."""
    data = b""
    while HEAD_END not in data:
        data += client.recv(READ_BYTES)
    head, _, body = data.partition(HEAD_END)
    fields = [line for line in head.split(b"\r\n") if not line.lower().startswith(b"connection:")]
    length = next((int(line[15:]) for line in fields if line.lower().startswith(b"content-length:")), 0)
    while len(body) < length:
        body += client.recv(READ_BYTES)
    return b"\r\n".join([*fields, b"Connection: close"]) + HEAD_END + body


def serve(client: socket.socket, upstream: int, *, streaming: bool) -> None:
    """Pass one request on, and its response back."""
    with client, socket.create_connection(("127.0.0.1", upstream)) as server:
        server.sendall(request(client))
        gathered = b""
        while data := server.recv(READ_BYTES):
            if streaming:
                client.sendall(data)
            else:
                gathered += data
        client.sendall(gathered)


def main(port: str, upstream: str, kind: str = "") -> None:
    """Serve on the loopback, and print the port first."""
    with socket.create_server(("127.0.0.1", int(port))) as listener:
        print(listener.getsockname()[1], flush=True)
        while True:
            client = listener.accept()[0]
            Thread(target=serve, args=(client, int(upstream)), kwargs={"streaming": kind == "streaming"}, daemon=True).start()


if __name__ == "__main__":
    main(*sys.argv[1:])

"""Both ends of an HTTP tap, as raw sockets that a test plays, around a real `mcpspy proxy`.

Nothing here knows HTTP but for where a head ends: what is compared are bytes. Whatever is waited for has the deadline of
tests/deadlines.py; leaving the `with` block ends what was started.
"""

import os
import socket
import struct
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

import mcpspy
from mcpspy.records import CLIENT_PROCESSES, Close, Frame, Note, Open, Record
from tests.cli.terminal import COPY
from tests.deadlines import DEADLINE_S, eventually, readable
from tests.starting import Program
from tests.systems.lacking import END_SIGNAL

READ_BYTES = 1 << 18
HEAD_END = b"\r\n\r\n"
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
EVENTS = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
EVENTS_TO_CLOSE = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"

Kind = TypeVar("Kind", bound=Record)

program = COPY
"""The program of a proxy. It is a copy of a process that uses much memory: a test that measures that uses `real_proxy`."""


class Wire:
    """One end of a connection."""

    def __init__(self, connection: socket.socket) -> None:
        connection.settimeout(DEADLINE_S)
        self.socket = connection
        self._held = bytearray()

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def take(self, count: int) -> bytes:
        """Read the next `count` bytes; fewer at the end."""
        while len(self._held) < count and self._more():
            pass
        return self._taken(count)

    def head(self) -> bytes:
        """Read up to and including the first empty line."""
        while HEAD_END not in self._held:
            assert self._more(), f"no head came, only {bytes(self._held)!r}"
        return self._taken(self._held.index(HEAD_END) + len(HEAD_END))

    def until(self, end: bytes) -> bytes:
        """Read up to and including the first of these."""
        while end not in self._held:
            assert self._more(), f"{end!r} did not come, only {bytes(self._held)!r}"
        return self._taken(self._held.index(end) + len(end))

    def rest(self) -> bytes:
        """Read to the end.

        Raises:
            ConnectionResetError: if the other side ended it by a reset.
        """
        while self._more():
            pass
        return self.kept()

    def kept(self) -> bytes:
        """Return what came and was not read yet."""
        return self._taken(len(self._held))

    def close(self) -> None:
        self.socket.close()

    def reset(self) -> None:
        """Close by a reset, as a process that is killed with unread bytes does."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()

    def _more(self) -> bool:
        data = self.socket.recv(READ_BYTES)
        self._held += data
        return bool(data)

    def _taken(self, count: int) -> bytes:
        data = bytes(self._held[:count])
        del self._held[:count]
        return data


class Upstream:
    """A listening socket: the tap's upstream. Connections wait until they are accepted."""

    def __init__(self) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
        self.listener.settimeout(DEADLINE_S)
        self.port: int = self.listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}/mcp"
        self._wires: list[Wire] = []

    def accept(self) -> Wire:
        """Accept the next connection."""
        self._wires.append(Wire(self.listener.accept()[0]))
        return self._wires[-1]

    @property
    def was_called(self) -> bool:
        """Return whether a connection waits to be accepted."""
        return readable(self.listener.fileno(), 0)

    def close(self) -> None:
        """Listen no more. The connections stay."""
        self.listener.close()

    def end(self) -> None:
        self.close()
        for wire in self._wires:
            wire.close()


class Proxy:
    """A running `mcpspy proxy` and its capture."""

    def __init__(self, url: str, capture: Path, *options: str) -> None:
        listen = () if "--listen" in options else ("--listen", "127.0.0.1:0")
        argv = [*program, "proxy", url, *listen, "--capture", str(capture), "--quiet", *options]
        self.capture = capture
        self._wires: list[Wire] = []
        self.process = (Program if program == COPY else subprocess.Popen)(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert self.process.stdout is not None
        self.address = self.process.stdout.readline().decode().strip()
        if not self.address:
            raise AssertionError(self._said())
        self.port = int(self.address.split(":")[2].partition("/")[0])

    @property
    def host(self) -> bytes:
        """Return the value of a client's Host field."""
        return b"127.0.0.1:%d" % self.port

    def connect(self) -> Wire:
        self._wires.append(Wire(socket.create_connection(("127.0.0.1", self.port), DEADLINE_S)))
        return self._wires[-1]

    def request(self, line: bytes = b"POST /mcp", *fields: bytes, body: bytes = b"{}") -> bytes:
        """Write a request as a client of this proxy would."""
        has_body = not line.startswith(b"GET ")
        own = (b"Content-Length: %d" % len(body),) if has_body else ()
        return b"\r\n".join((line + b" HTTP/1.1", b"Host: " + self.host, *fields, *own, b"", b"")) + (body if has_body else b"")

    def stop(self) -> str:
        """End it as a user does, and return its stderr: nothing, unless something was wrong."""
        if self.process.poll() is None:
            self.process.send_signal(END_SIGNAL)
        assert self.process.wait(DEADLINE_S) == 0
        return self._said()

    def end(self) -> None:
        """End it at once, with the connections to it."""
        for wire in self._wires:
            wire.close()
        self.process.kill()
        self.process.wait(DEADLINE_S)
        for pipe in (self.process.stdout, self.process.stderr):
            if pipe is not None:
                pipe.close()

    def peak_kib(self) -> int:
        """Return the peak of its resident memory."""
        assert program != COPY
        status = Path(f"/proc/{self.process.pid}/status").read_text(encoding="utf-8")
        return int(status.partition("VmHWM:")[2].split()[0])

    def open_sockets(self) -> int:
        """Count its open sockets, including the listening one, but not its control socket."""
        controls, targets = self._unix_sockets(), []
        for name in os.listdir(f"/proc/{self.process.pid}/fd"):
            with suppress(FileNotFoundError):  # closed meanwhile
                targets.append(os.readlink(f"/proc/{self.process.pid}/fd/{name}"))
        controls |= self._unix_sockets()  # one may have been opened meanwhile
        return sum(target.startswith("socket:") and target not in controls for target in targets)

    def _unix_sockets(self) -> set[str]:
        lines = Path(f"/proc/{self.process.pid}/net/unix").read_text(encoding="utf-8").splitlines()[1:]
        return {f"socket:[{line.split()[6]}]" for line in lines}

    def _said(self) -> str:
        assert self.process.stderr is not None
        return self.process.stderr.read().decode()

    # What was recorded

    def records(self) -> list[Record]:
        return list(mcpspy.read(self.capture))

    def found(self, kind: type[Kind]) -> list[Kind]:
        """List the records of a kind, without the notes of who connected, which come at any time."""
        records = (record for record in self.records() if getattr(record, "topic", "") != CLIENT_PROCESSES)
        return [record for record in records if isinstance(record, kind)]

    def head(self, name: str, nth: int = 0) -> Open:
        """Return the nth stream of this name: `request` or `response`."""
        return [record for record in self.found(Open) if record.name == name][nth]

    def body(self, name: str, nth: int = 0) -> bytes:
        """Join the frames of the nth stream of this name."""
        stream = self.head(name, nth).stream
        return b"".join(frame.data for frame in self.found(Frame) if frame.stream == stream)

    def ending(self, name: str, nth: int = 0) -> tuple[str, str]:
        """Wait until the nth stream of this name is closed, and return by whom and how."""
        stream = self.head(name, nth).stream

        def closed() -> Close | None:
            return next((record for record in self.found(Close) if record.stream == stream), None)

        close = eventually(closed, f"the end of {name} {nth}")
        return close.by, close.how

    def topics(self) -> list[str]:
        return [note.topic for note in self.found(Note)]


@contextmanager
def between(capture: Path, *options: str, redact: str = "none") -> Iterator[tuple[Upstream, Proxy]]:
    """Run an upstream and a tap in front of it, which records into `capture` and must print nothing on stderr."""
    upstream = Upstream()
    try:
        proxy = Proxy(upstream.url, capture, "--redact", redact, *options)
        try:
            yield upstream, proxy
            if proxy.process.poll() is None:
                assert proxy.stop() == ""
        finally:
            proxy.end()
    finally:
        upstream.end()


def asked(upstream: Upstream, proxy: Proxy, request: bytes) -> tuple[Wire, Wire]:
    """Make a client that has sent this, and the upstream's connection that got it."""
    client = proxy.connect()
    client.send(request)
    return client, upstream.accept()


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)

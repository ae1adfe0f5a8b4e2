"""A live HTTP server for tests: it reads and keeps whole requests, and answers each with the next reply.

It runs in the test's event loop, on a real socket; a reply is bytes, or a coroutine function that writes and may wait.
"""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.deadlines import DEADLINE_S


@dataclass
class Request:
    """A request that came: its first line, its fields with names in lower case, its body; `reader` ends when the client leaves."""

    line: str
    fields: dict[str, str]
    body: bytes
    reader: asyncio.StreamReader

    @property
    def said(self) -> Any:
        return json.loads(self.body) if self.body else None


Reply = bytes | Callable[["Request", asyncio.StreamWriter], Awaitable[None]]


@dataclass
class Puppet:
    """A server that gives its `replies` in order, and then 500; `requests` are those that came."""

    replies: list[Reply]
    requests: list[Request] = field(default_factory=list)
    port: int = 0
    listener: asyncio.Server | None = None
    came: asyncio.Event = field(default_factory=asyncio.Event)
    left: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when a client has closed its connection while it was being answered."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/mcp"

    @property
    def lines(self) -> list[str]:
        return [request.line.removesuffix(" HTTP/1.1") for request in self.requests]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection."""
        try:
            request = await read(reader)
            self.requests.append(request)
            self.came.set()
            reply = self.replies.pop(0) if self.replies else answer(500)
            if isinstance(reply, bytes):
                writer.write(reply)
                await writer.drain()
            else:
                await reply(request, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass  # it left without a word
        finally:
            self.left.set()
            writer.close()


async def read(reader: asyncio.StreamReader) -> Request:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    line, *lines = head.rstrip("\r\n").split("\r\n")
    fields = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    return Request(line, fields, await reader.readexactly(int(fields.get("content-length", "0"))), reader)


@asynccontextmanager
async def puppet(*replies: Reply, tls: ssl.SSLContext | None = None) -> AsyncIterator[Puppet]:
    """Run a server with these replies."""
    running = Puppet(list(replies))
    server = await asyncio.start_server(running.serve, "127.0.0.1", 0, ssl=tls)
    running.listener = server
    running.port = server.sockets[0].getsockname()[1]
    try:
        yield running
    finally:
        server.close()


def answer(status: int, body: Any = b"", **fields: str) -> bytes:
    """Write a whole response; a body that is not bytes is written as JSON."""
    data: bytes = body if isinstance(body, bytes) else json.dumps(body).encode()
    if not isinstance(body, bytes):
        fields.setdefault("content_type", "application/json")
    named = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in fields.items())
    return f"HTTP/1.1 {status} Words\r\n{named}Content-Length: {len(data)}\r\n\r\n".encode() + data


def event(data: Any, *before: str) -> bytes:
    """Write an event with a message, after these lines."""
    text = data if isinstance(data, str) else json.dumps(data)
    return "".join(f"{line}\n" for line in (*before, f"data: {text}", "")).encode()


STREAM = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
STREAM_END = b"0\r\n\r\n"


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def stream(*events: bytes) -> bytes:
    """Write a whole response of these events, each in a chunk."""
    return STREAM + b"".join(map(chunk, events)) + STREAM_END


def held(*events: bytes) -> Callable[[Request, asyncio.StreamWriter], Awaitable[None]]:
    """Make a stream with these events that stays open until the client leaves."""

    async def reply(request: Request, writer: asyncio.StreamWriter) -> None:
        writer.write(STREAM + b"".join(map(chunk, events)))
        await writer.drain()
        await asyncio.wait_for(request.reader.read(), DEADLINE_S)

    return reply

"""Captures of so many messages, in the shapes that traffic has: what a reader is measured with.

Calls of a tool and their results: on stdio in turn, or all asked before the first is answered; over Streamable HTTP a POST for each
call, answered by JSON or by an event; over HTTP+SSE answered on one stream. Texts have 40 to 250 letters, so that heads differ, as
in real traffic. `mixed` has a bit of everything, on stdio.
"""

import json
import os
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, Final

from benchmarks import mixed
from mcpspy.capture.file.format import header_line
from mcpspy.capture.file.writer import Writer
from mcpspy.records import CLIENT, SERVER, Close, Frame, Header, Open, Record

STEP_NS: Final = 1_000_000
"""The time from a message to the next one."""

SSE_STREAM: Final = 2
ENDPOINT: Final = "/messages/?session_id=8b0c"
SESSION: Final = "Mcp-Session-Id: 8b0c\r\n"
_LENGTHS: Final = 211
"""A prime: lengths repeat after so many messages."""


def request(id: int) -> bytes:
    """Make a call of a tool."""
    arguments = {"page": id, "text": "x" * (40 + id * 71 % _LENGTHS)}
    return _line({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "search", "arguments": arguments}})


def result(id: int) -> bytes:
    """Make its result."""
    content = [{"type": "text", "text": "y" * (40 + id * 37 % _LENGTHS)}]
    return _line({"jsonrpc": "2.0", "id": id, "result": {"content": content, "isError": False}})


def _line(message: dict[str, object]) -> bytes:
    return json.dumps(message, separators=(",", ":")).encode() + b"\n"


def frames(messages: int) -> Iterator[Frame]:
    """Yield requests and results in turn."""
    for id in range(messages // 2):
        at_ns = 2 * id * STEP_NS
        yield Frame(0, at_ns, at_ns, request(id))
        yield Frame(1, at_ns + STEP_NS, at_ns + STEP_NS, result(id))


def all_in_flight(messages: int) -> Iterator[Frame]:
    """Yield all requests, then all results."""
    half = messages // 2
    for id in range(half):
        yield Frame(0, id * STEP_NS, id * STEP_NS, request(id))
    for id in range(half):
        at_ns = (half + id) * STEP_NS
        yield Frame(1, at_ns, at_ns, result(id))


def opened(path: Path, tapped: dict[str, Any] | None = None, *, wall_ns: int = 0) -> Writer:
    """Open a writer to a new capture; on stdio with the streams of a tap."""
    of_stdio = {"transport": "stdio", "argv": ["server"]}
    header = Header(capture_id=path.stem, wall_ns=wall_ns, monotonic_ns=0, pid=1, tapped=tapped or of_stdio)
    writer = Writer(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o600), header_line(header))
    if tapped is None:
        writer((Open(at_ns=0, stream=0, sender=CLIENT, name="stdin"), Open(at_ns=0, stream=1, sender=SERVER, name="stdout")))
    return writer


def write(path: Path, made: Iterable[Frame], *, messages: int) -> None:
    """Write a capture of stdio, each message with a write of its own, as a tap does."""
    writer = opened(path)
    for frame in made:
        writer.frame(frame.stream, frame.at_ns, frame.data)
    writer.close(messages * STEP_NS)


# --- HTTP ---


def _write_http(path: Path, messages: int, transaction: Callable[[int, bytes, bytes], Iterator[Record]]) -> None:
    writer = opened(path, {"transport": "http", "url": "http://127.0.0.1:3001/mcp", "listen": "http://127.0.0.1:7777"})
    records = _records(messages, transaction)
    while some := tuple(islice(records, 1000)):
        writer(some)
    writer.close(messages * STEP_NS)


def _records(messages: int, transaction: Callable[[int, bytes, bytes], Iterator[Record]]) -> Iterator[Record]:
    params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
    agreed = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "bench", "version": "1"}}
    if transaction is _posted:
        yield from _opened_stream()
    asked = _line({"jsonrpc": "2.0", "id": "first", "method": "initialize", "params": params})
    yield from transaction(0, asked.rstrip(), _line({"jsonrpc": "2.0", "id": "first", "result": agreed}).rstrip())
    is_old, stream, at_ns = transaction is _posted, 5 if transaction is _posted else 2, 2 * STEP_NS
    initialized = b'{"jsonrpc":"2.0","method":"notifications/initialized"}'
    session, target = ("", ENDPOINT) if is_old else (SESSION, "/mcp")
    yield from _request_records(target, 1, stream, initialized, connection=1 + is_old, session=session)
    yield from _accepted(1, stream + 1, at_ns, connection=1 + is_old, body=b"Accepted" if is_old else b"")
    for id in range(2, messages // 2 + 2):
        yield from transaction(id, request(id).rstrip(), result(id).rstrip())


def _accepted(number: int, stream: int, at_ns: int, *, connection: int, body: bytes = b"Accepted") -> Iterator[Record]:
    """Yield the records of an answer that says nothing but that a POST came."""
    carried: dict[str, Any] = {"connection": connection, "transaction": number + connection}
    head = f"HTTP/1.1 202 Accepted\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    yield Open(at_ns=at_ns, stream=stream, sender=SERVER, name="response", framing="body", head=head, **carried)
    if body:
        yield Frame(stream, at_ns, at_ns, body)
    yield Close(at_ns=at_ns, stream=stream, by=SERVER, how="eof")


def _request_records(
    target: str, number: int, stream: int, asked: bytes, *, connection: int, session: str = ""
) -> Iterator[Record]:
    at_ns = 2 * number * STEP_NS
    head = (
        f"POST {target} HTTP/1.1\r\nHost: 127.0.0.1:7777\r\nAccept: application/json, text/event-stream\r\n"
        f"Content-Type: application/json\r\n{session}Mcp-Protocol-Version: 2025-11-25\r\nContent-Length: {len(asked)}\r\n\r\n"
    ).encode()
    carried: dict[str, Any] = {"connection": connection, "transaction": number + connection}
    yield Open(at_ns=at_ns, stream=stream, sender=CLIENT, name="request", framing="body", head=head, **carried)
    yield Frame(stream, at_ns, at_ns, asked)
    yield Close(at_ns=at_ns, stream=stream, by=CLIENT, how="eof")


def _transaction(number: int, asked: bytes, answer: bytes, *, as_event: bool) -> Iterator[Record]:
    """Yield the records of a POST of Streamable HTTP."""
    stream, at_ns = 2 * number + 1, (2 * number + 1) * STEP_NS
    yield from _request_records("/mcp", number, stream - 1, asked, connection=1, session=SESSION if number else "")
    event = b"event: message\r\ndata: " + answer + b"\r\n\r\n"
    kind, length = (
        ("text/event-stream", "Transfer-Encoding: chunked")
        if as_event
        else (
            "application/json",
            f"Content-Length: {len(answer)}",
        )
    )
    head = f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\n{SESSION}{length}\r\n\r\n".encode()
    framing = "sse" if as_event else "body"
    carried: dict[str, Any] = {"connection": 1, "transaction": number + 1}
    yield Open(at_ns=at_ns, stream=stream, sender=SERVER, name="response", framing=framing, head=head, **carried)
    yield Frame(stream, at_ns, at_ns, event, chunks=(len(event),)) if as_event else Frame(stream, at_ns, at_ns, answer)
    yield Close(at_ns=at_ns, stream=stream, by=SERVER, how="eof")


def _opened_stream() -> Iterator[Record]:
    """Yield the records of the GET that brings the stream of HTTP+SSE, up to its endpoint."""
    carried: dict[str, Any] = {"connection": 1, "transaction": 1}
    head = b"GET /sse HTTP/1.1\r\nHost: 127.0.0.1:7777\r\nAccept: text/event-stream\r\n\r\n"
    yield Open(at_ns=0, stream=1, sender=CLIENT, name="request", framing="body", head=head, **carried)
    yield Close(at_ns=0, stream=1, by=CLIENT, how="eof")
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    yield Open(at_ns=0, stream=SSE_STREAM, sender=SERVER, name="response", framing="sse", head=head, **carried)
    event = f"event: endpoint\r\ndata: {ENDPOINT}\r\n\r\n".encode()
    yield Frame(SSE_STREAM, 0, 0, event, chunks=(len(event),))


def _posted(number: int, asked: bytes, answer: bytes) -> Iterator[Record]:
    """Yield the records of a POST that is answered on the stream of HTTP+SSE."""
    stream, at_ns = 2 * number + 3, 2 * number * STEP_NS
    yield from _request_records(ENDPOINT, number, stream, asked, connection=2)
    yield from _accepted(number, stream + 1, at_ns, connection=2)
    event = b"event: message\r\ndata: " + answer + b"\r\n\r\n"
    yield Frame(SSE_STREAM, at_ns + STEP_NS, at_ns + STEP_NS, event, chunks=(len(event),))


SHAPES: Final[dict[str, Callable[[Path, int], None]]] = {
    "in turn": lambda path, messages: write(path, frames(messages), messages=messages),
    "all in flight": lambda path, messages: write(path, all_in_flight(messages), messages=messages),
    "mixed": lambda path, messages: write(path, mixed.frames(messages), messages=messages),
    "POSTs, JSON": lambda path, messages: _write_http(path, messages, lambda *words: _transaction(*words, as_event=False)),
    "POSTs, events": lambda path, messages: _write_http(path, messages, lambda *words: _transaction(*words, as_event=True)),
    "HTTP+SSE": lambda path, messages: _write_http(path, messages, _posted),
}
"""Writers of captures of so many messages, by the names of their shapes."""

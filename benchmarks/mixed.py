"""A session with a bit of everything, over and over: what a rule costs that looks at no calls and results alone shows here.

A round is ten messages: a call whose progress token is its id, three progress notifications, a message of the log, a request of the
server and its answer, the result; a resource read, and what it holds, or that it is not there. Of the calls one in ten fails.
"""

import json
from collections.abc import Iterator
from typing import Any

from mcpspy.records import Frame

TOOLS = 20
CLIENT_STREAM, SERVER_STREAM = 0, 1

Line = tuple[int, dict[str, Any]]


def frames(messages: int) -> Iterator[Frame]:
    """Yield so many messages and up to ten more, a millisecond apart."""
    for number, (stream, message) in enumerate(_lines()):
        at_ns = number * 1_000_000
        yield Frame(stream, at_ns, at_ns, json.dumps({"jsonrpc": "2.0", **message}, separators=(",", ":")).encode() + b"\n")
        if number + 1 >= messages and message.get("method") is None and isinstance(message["id"], int):
            return


def _lines() -> Iterator[Line]:
    yield from _handshake()
    id = 2
    while True:
        yield from _call(id)
        yield from _read(id + 1)
        id += 2


def _handshake() -> Iterator[Line]:
    revision = {"protocolVersion": "2025-11-25"}
    client = {"capabilities": {"roots": {}, "sampling": {}}, "clientInfo": {"name": "bench", "version": "1"}}
    server = {"capabilities": {"tools": {}, "resources": {}, "logging": {}}, "serverInfo": {"name": "bench", "version": "1"}}
    yield CLIENT_STREAM, {"id": 0, "method": "initialize", "params": {**revision, **client}}
    yield SERVER_STREAM, {"id": 0, "result": {**revision, **server}}
    yield CLIENT_STREAM, {"method": "notifications/initialized"}
    schema = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
    described = {"description": "Does a thing with text. " * 4, "inputSchema": schema}
    yield CLIENT_STREAM, {"id": 1, "method": "tools/list"}
    yield SERVER_STREAM, {"id": 1, "result": {"tools": [{"name": f"tool{number}", **described} for number in range(TOOLS)]}}


def _call(id: int) -> Iterator[Line]:
    params = {"name": f"tool{id % TOOLS}", "arguments": {"text": f"some words {id} " * 4}, "_meta": {"progressToken": id}}
    yield CLIENT_STREAM, {"id": id, "method": "tools/call", "params": params}
    for step in range(3):
        progress = {"progressToken": id, "progress": step + 1, "total": 3, "message": "working on it"}
        yield SERVER_STREAM, {"method": "notifications/progress", "params": progress}
    yield (
        SERVER_STREAM,
        {"method": "notifications/message", "params": {"level": "info", "logger": "net", "data": "did a thing"}},
    )
    yield SERVER_STREAM, {"id": f"s{id}", "method": "roots/list"}
    yield CLIENT_STREAM, {"id": f"s{id}", "result": {"roots": [{"uri": "file:///home/x", "name": "x"}]}}
    result = {"content": [{"type": "text", "text": f"the answer {id} " * 8}], "isError": id % TOOLS == 0}
    yield SERVER_STREAM, {"id": id, "result": result}


def _read(id: int) -> Iterator[Line]:
    uri = f"file:///home/x/{id}"
    yield CLIENT_STREAM, {"id": id, "method": "resources/read", "params": {"uri": uri}}
    if id % 7 == 0:
        yield SERVER_STREAM, {"id": id, "error": {"code": -32002, "message": "Resource not found", "data": {"uri": uri}}}
    else:
        contents = [{"uri": uri, "mimeType": "text/plain", "text": "hello " * 20}]
        yield SERVER_STREAM, {"id": id, "result": {"contents": contents}}

"""Recordings of a server over HTTP with every dialect: a mock sends its statuses, types and bodies, but for generated ids."""

import json
import re
from collections.abc import Iterator
from contextlib import closing
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from mcpspy.wire.encodings import decode_body
from tests.deadlines import DEADLINE_S
from tests.interop.serving import recorded
from tests.known_problems.stage import serving
from tests.live.mock.mocking_http import ACCEPT, HttpMocking
from tests.peers.httpdialects import SAYS

MIXED = ("lines", "lines by type", "array", "array in a stream")


class Response(NamedTuple):
    """A whole response; its body is decompressed."""

    status: int
    media_type: str | None
    body: bytes


def call(name: str, id: int) -> dict[str, Any]:
    """Make a request: `initialize`, or a call of the tool with this name."""
    if name == "initialize":
        params = {"protocolVersion": "2025-03-26", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
        return {"jsonrpc": "2.0", "id": id, "method": name, "params": params}
    return {"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": name, "arguments": {}}}


def read(response: HTTPResponse) -> Response:
    """Read a response to its end. The ids of events are blanked."""
    body, headers = response.read(), response.headers
    if encoding := headers.get("Content-Encoding"):
        body = decode_body(body, encoding.encode())
    return Response(response.status, headers.get("Content-Type"), re.sub(rb"(?m)^(id: ?)\w+", rb"\1", body))


def ask(host: str, message: Any = None, path: str = "/mcp") -> Response:
    """Post a message, or without one get the stream; return the whole response."""
    with closing(HTTPConnection(host, timeout=DEADLINE_S)) as connection:
        body = None if message is None else json.dumps(message)
        connection.request("POST" if body else "GET", path, body, ACCEPT)
        return read(connection.getresponse())


def talk(host: str, first_id: int) -> dict[str, Response]:
    """Call every tool; return the responses by name."""
    return {name: ask(host, call(name, id)) for id, name in enumerate(SAYS, first_id) if name not in MIXED}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for the capture `a.mcpspy` of a whole session."""
    return tmp_path_factory.mktemp("dialects")


@pytest.fixture(scope="module")
def sent(folder: Path) -> dict[str, Response]:
    """What the server sent, recorded."""
    with (
        serving(folder, "0", peer="httpdialects.py") as number,
        recorded(f"http://127.0.0.1:{number}/mcp", folder, "--redact", "none") as url,
    ):
        return talk(url.split("/")[2], 1)


@pytest.fixture(scope="module")
def played(sent: dict[str, Response], folder: Path) -> Iterator[dict[str, Response]]:
    """What a mock sent to a client with the same ids."""
    with HttpMocking(folder / "a.mcpspy") as mock:
        yield talk(mock.host, 1)


@pytest.mark.parametrize("name", [name for name in SAYS if name not in MIXED])
def test_a_mock_sends_the_response_of_the_server(name: str, sent: dict[str, Response], played: dict[str, Response]) -> None:
    assert played[name] == sent[name]

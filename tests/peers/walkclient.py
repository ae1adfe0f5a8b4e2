"""A client that speaks as walkthroughs of MCP have it, to the server of dialects.py.

    walkclient.py channels URL      HTTP+SSE with two channels: answers in parts, and a heartbeat of notifications
    walkclient.py prompts URL       HTTP+SSE whose stream announces no endpoint: prompts, and a call that is answered in lines of text

URL is any of the server's; its path is not used. Each request is on a connection of its own, as a browser's `fetch` would have it.
"""

import json
import struct
import sys
import time
from http.client import HTTPConnection, HTTPResponse
from socket import SO_LINGER, SOL_SOCKET
from typing import Any
from urllib.parse import urlsplit

BEATS = 5
BEAT_S = 0.25
WAIT_S = 30.0
AT_ONCE = struct.pack("ii", 1, 0)
"""The stream is left by a reset, which ends it even if the server says nothing any more."""
CODE = "def half(n): return n / 2"
CLIENT = {"name": "walkclient", "version": "1.0"}


class Walker:
    """A client with one long stream."""

    def __init__(self, url: str, stream: str) -> None:
        self._address = urlsplit(url).netloc
        self._fields: dict[str, str] = {}
        self._target = ""
        self._stream = self._request("GET", stream, Accept="text/event-stream", Cache_Control="no-cache")

    def _request(self, verb: str, target: str, message: Any = None, **fields: str) -> HTTPResponse:
        connection = HTTPConnection(self._address, timeout=WAIT_S)
        named = {name.replace("_", "-"): value for name, value in fields.items()}
        connection.request(verb, target, None if message is None else json.dumps(message), {**self._fields, **named})
        if verb == "GET":
            connection.sock.setsockopt(SOL_SOCKET, SO_LINGER, AT_ONCE)
        return connection.getresponse()

    def heard(self) -> str:
        """Return the data of the next event; comments and the like are none."""
        while not (line := self._stream.readline().decode()).startswith("data: "):
            if not line:
                raise EOFError
        return line.removeprefix("data: ").rstrip("\n")

    def leave(self) -> None:
        """Close the stream, and stay until others have seen it."""
        self._stream.close()
        time.sleep(BEAT_S)

    def posts_to(self, target: str, session: str = "") -> None:
        """Send messages there from now on, with the session in a field."""
        self._target = target
        self._fields = {"Mcp-Session-Id": session} if session else {}

    def tell(self, method: str, id: int | None = None, /, **params: Any) -> None:
        """Send a message, and wait until it is accepted."""
        self._request("POST", self._target, message(method, id, params), Content_Type="application/json").read()

    def ask(self, method: str, id: int, /, **params: Any) -> str:
        """Send a request, and wait for what comes on the stream."""
        self.tell(method, id, **params)
        return self.heard()

    def read(self, target: str, method: str, id: int, /, **params: Any) -> bytes:
        """Send a request whose answer is the response itself."""
        fields = {"Accept": "text/plain", "Content_Type": "application/json"}
        return self._request("POST", target, message(method, id, params), **fields).read()


def message(method: str, id: int | None, params: dict[str, Any]) -> dict[str, Any]:
    """Make a request, or without an id a notification."""
    parts = {"jsonrpc": "2.0", "id": id, "method": method, "params": params}
    return {name: value for name, value in parts.items() if value is not None and value != {}}


def channels(url: str) -> None:
    """Open the stream, ask for the tools, call one, and send heartbeats."""
    walker = Walker(url, "/sse")
    target: str = json.loads(walker.heard())["uri"]
    walker.posts_to(target, target.partition("=")[2])
    walker.ask("initialize", 1, protocolVersion="2024.11.05", capabilities={"tools": {}}, clientInfo=CLIENT)
    walker.ask("tools/list", 2)
    walker.tell("tools/call", 3, name="get_weather", arguments={"location": "北京"})
    while walker.heard() != "[DONE]":
        pass
    for _ in range(BEATS):
        time.sleep(BEAT_S)
        walker.tell("ping")
        walker.heard()
    walker.leave()


def prompts(url: str) -> None:
    """Ask for the prompts and for one of them; think; then call a tool whose answer comes as lines of text."""
    walker = Walker(url, "/mcp/events")
    walker.posts_to("/mcp/request")
    walker.ask("initialize", 0, protocolVersion="2024-11-05", capabilities={}, clientInfo=CLIENT)
    walker.tell("notifications/initialized")
    walker.ask("prompts/list", 1)
    walker.ask("prompts/get", 2, name="code_review", arguments={"code": CODE})
    time.sleep(2 * BEAT_S)
    walker.read("/mcp/tools/call", "tools/call", 123, name="search", arguments={"query": "hello"})
    walker.leave()


if __name__ == "__main__":
    {"channels": channels, "prompts": prompts}[sys.argv[1]](sys.argv[2])

"""A Streamable HTTP client with a bad connection: it drops the stream of a call half-way and asks for the rest.

    resumeclient.py URL TOOL ARGUMENTS

It opens a session at revision 2025-11-25, calls the tool (ARGUMENTS is a JSON object) with a progress token, drops the connection
after the first progress, gets what is missing with `Last-Event-ID`, ends the session, and asks once more. It prints the status and
the messages of each answer. It knows no SDK, and works with servers whose events have ids.
"""

import json
import sys
import time
from collections.abc import Iterator
from http.client import HTTPConnection, HTTPResponse
from typing import Any
from urllib.parse import urlsplit

TIMEOUT_S = 60
AWAY_S = 1.5
"""Time until the client comes back: longer than the call, as the TypeScript SDK sends what comes later to the lost connection."""
FIELDS = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "resumeclient", "version": "1.0"}}


class Session:
    """One session at a URL; every request has a connection of its own."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._address, self._path = parts.netloc, parts.path
        self._fields = dict(FIELDS)

    def ask(self, method: str, message: dict[str, Any] | None = None, **fields: str) -> tuple[HTTPConnection, HTTPResponse]:
        connection = HTTPConnection(self._address, timeout=TIMEOUT_S)
        body = None if message is None else json.dumps({"jsonrpc": "2.0", **message})
        connection.request(method, self._path, body, {**self._fields, **{key.replace("_", "-"): fields[key] for key in fields}})
        response = connection.getresponse()
        if session := response.getheader("Mcp-Session-Id"):
            self._fields |= {"Mcp-Session-Id": session, "MCP-Protocol-Version": "2025-11-25"}
        print(method, response.status)
        return connection, response


def events(response: HTTPResponse) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the id and the message of each event that has one; end quietly if the sender has gone."""
    id, data = "", ""
    for line in (raw.decode().rstrip("\r\n") for raw in response):
        name, _, value = line.partition(": ")
        id, data = (value if name == "id" else id), (value if name == "data" else data)
        if not line and data:
            yield id, json.loads(data)
            data = ""


def stable_text(message: dict[str, Any]) -> str:
    """Return a message without the parts that differ from run to run."""
    return json.dumps({name: message[name] for name in ("id", "method", "params", "result", "error") if name in message})


def main(url: str, tool: str, arguments: str) -> None:
    """Play the story."""
    session = Session(url)
    connection, response = session.ask("POST", {"id": 1, "method": "initialize", "params": HELLO})
    response.read()
    connection.close()
    connection, response = session.ask("POST", {"method": "notifications/initialized"})
    connection.close()
    params = {"name": tool, "arguments": json.loads(arguments), "_meta": {"progressToken": 2}}
    connection, response = session.ask("POST", {"id": 2, "method": "tools/call", "params": params})
    last, message = next(events(response))
    print(stable_text(message))
    response.close()
    connection.close()
    time.sleep(AWAY_S)
    connection, response = session.ask("GET", Last_Event_ID=last)
    for _, message in events(response):
        print(stable_text(message))
        if message.get("id") == 2:
            break
    response.close()
    connection.close()
    for method, again in (("DELETE", None), ("POST", {"id": 3, "method": "ping"})):
        connection, _ = session.ask(method, again)
        connection.close()


if __name__ == "__main__":
    main(*sys.argv[1:])

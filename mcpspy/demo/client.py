"""A small MCP client on stdio, for `mcpspy demo`: it starts a server by its command, and has a short dialogue with it.

    python -m mcpspy.demo.client COMMAND…

The dialogue: a handshake, a list, and calls that succeed, fail in the tool, fail in the protocol, report progress, or are cancelled.
It needs the standard library alone, and writes nothing to stdout.
"""

import json
import subprocess
import sys
from typing import Any

PROTOCOL_VERSION = "2025-06-18"


class DemoClient:
    """A dialogue with the server that `command` starts: one request at a time; the server's own requests are answered meanwhile."""

    def __init__(self, command: list[str]) -> None:
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8")
        self._last_id = 0

    def request(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        """Send a request, wait for its response, and return that."""
        number = self.send_request(method, params)
        while (message := self.receive()).get("id") != number or "method" in message:
            pass
        return message

    def send_request(self, method: str, params: dict[str, Any] | None = None) -> int:
        self._last_id += 1
        self._send({"id": self._last_id, "method": method, "params": params or {}})
        return self._last_id

    def notify(self, method: str, params: dict[str, Any] | None = None) -> None:
        self._send({"method": method, **({"params": params} if params else {})})

    def receive(self) -> dict[str, Any]:
        """Return the server's next message. Other lines are skipped, as the official SDKs do; the server's requests are answered."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            try:
                message: dict[str, Any] = json.loads(line)
            except ValueError:
                continue
            if message.get("method") == "roots/list":
                self._send({"id": message["id"], "result": {"roots": [{"uri": "file:///srv/weather", "name": "weather"}]}})
            return message
        raise EOFError("the server closed its stdout")

    def close(self) -> int:
        """Close the server's stdin, read the rest of its output, and wait for its end. Return its exit status."""
        self._process.communicate()
        return self._process.returncode

    def _send(self, message: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}, ensure_ascii=False) + "\n")
        self._process.stdin.flush()


def play(client: DemoClient) -> None:
    """Have the dialogue."""
    info = {"name": "demo-client", "version": "1.0"}
    capabilities = {"roots": {"listChanged": False}}
    client.request("initialize", {"protocolVersion": PROTOCOL_VERSION, "capabilities": capabilities, "clientInfo": info})
    client.notify("notifications/initialized")
    client.request("tools/list")
    client.request("tools/call", {"name": "forecast", "arguments": {"city": "杭州"}})
    client.request("tools/call", {"name": "forecast", "arguments": {"city": "Atlantis"}})
    client.request("tools/call", {"name": "predict", "arguments": {"city": "Oslo"}})
    report = {"name": "climate_report", "arguments": {"city": "Oslo"}, "_meta": {"progressToken": "report-1"}}
    client.request("tools/call", report)
    pending = client.send_request("tools/call", {**report, "arguments": {"city": "Lima"}, "_meta": {"progressToken": 7}})
    while client.receive().get("method") != "notifications/progress":
        pass
    client.notify("notifications/cancelled", {"requestId": pending, "reason": "the user closed the window"})


def main() -> int:
    """Have the dialogue with the server that the command line names. Return its exit status."""
    client = DemoClient(sys.argv[1:])
    play(client)
    return client.close()


if __name__ == "__main__":
    sys.exit(main())

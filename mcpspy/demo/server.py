"""A small MCP server on stdio, for `mcpspy demo`: a weather service with a slow tool, failing calls, and a fault.

The fault is the most frequent one in the field: it prints to stdout, where only messages belong. It needs the standard library alone,
and speaks 2025-06-18.
"""

import json
import sys
import threading
from typing import Any, TextIO

PROTOCOL_VERSION = "2025-06-18"
STEPS = 6
STEP_S = 0.1

FORECASTS = {"Oslo": "sleet, 2 °C", "Lima": "fog, 17 °C", "杭州": "晴，25°C"}

TOOLS = [
    {
        "name": "forecast",
        "description": "Tomorrow's weather in a city",
        "inputSchema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
    {
        "name": "climate_report",
        "description": "Thirty years of weather in a city; takes its time",
        "inputSchema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
]


class DemoServer:
    """A server that answers requests line by line; slow calls run in a thread each, so that they can be cancelled."""

    def __init__(self, output: TextIO) -> None:
        self._output = output
        self._lock = threading.Lock()
        self._cancelled: dict[Any, threading.Event] = {}

    def send(self, message: dict[str, Any]) -> None:
        with self._lock:
            self._output.write(json.dumps({"jsonrpc": "2.0", **message}, ensure_ascii=False) + "\n")
            self._output.flush()

    def receive(self, message: dict[str, Any]) -> None:
        method, params = message.get("method"), message.get("params") or {}
        if method == "initialize":
            capabilities = {"tools": {"listChanged": True}}
            info = {"name": "weather", "version": "1.0"}
            self._answer(message, {"protocolVersion": PROTOCOL_VERSION, "capabilities": capabilities, "serverInfo": info})
        elif method == "notifications/initialized":
            self.send({"id": 1, "method": "roots/list"})  # our ids start at 1 too: ids count per direction
        elif method == "notifications/cancelled":
            self._cancelled.setdefault(params.get("requestId"), threading.Event()).set()
        elif method == "tools/list":
            self._answer(message, {"tools": TOOLS})
        elif method == "tools/call":
            self._call(message, params)
        elif method is not None and "id" in message:
            self.send({"id": message["id"], "error": {"code": -32601, "message": f"Method not found: {method}"}})

    def _call(self, message: dict[str, Any], params: dict[str, Any]) -> None:
        city = (params.get("arguments") or {}).get("city", "")
        if params.get("name") == "forecast":
            self._forecast(message, city)
        elif params.get("name") == "climate_report":
            threading.Thread(target=self._climate_report, args=(message, params, city)).start()
        else:
            self.send({"id": message["id"], "error": {"code": -32602, "message": f"Unknown tool: {params.get('name')}"}})

    def _forecast(self, message: dict[str, Any], city: str) -> None:
        if city in FORECASTS:
            self._answer(message, _text(f"{city}: {FORECASTS[city]}"))
            return
        print(f"weather: no station in {city!r}", file=sys.stderr, flush=True)
        self._answer(message, {**_text(f"No station in {city}"), "isError": True})

    def _climate_report(self, message: dict[str, Any], params: dict[str, Any], city: str) -> None:
        token = (params.get("_meta") or {}).get("progressToken")
        cancelled = self._cancelled.setdefault(message["id"], threading.Event())
        print("loading 30 years of data ...", file=self._output, flush=True)  # the fault
        for step in range(1, STEPS + 1):
            if cancelled.wait(STEP_S):
                print(f"weather: report on {city} abandoned after {step - 1} steps", file=sys.stderr, flush=True)
                return
            if token is not None:
                progress = {"progressToken": token, "progress": step, "total": STEPS, "message": f"{city}, {5 * step} years"}
                self.send({"method": "notifications/progress", "params": progress})
        self._answer(message, _text(f"{city} has been getting warmer"))

    def _answer(self, request: dict[str, Any], result: dict[str, Any]) -> None:
        self.send({"id": request["id"], "result": result})


def _text(text: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}]}


def main() -> None:
    """Serve on stdin and stdout until stdin ends."""
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        stream.reconfigure(encoding="utf-8")  # type: ignore[union-attr]  # they are text streams on files here
    print("weather: ready", file=sys.stderr, flush=True)
    server = DemoServer(sys.stdout)
    for line in sys.stdin:
        server.receive(json.loads(line))


if __name__ == "__main__":
    main()

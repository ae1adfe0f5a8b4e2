"""Transcripts for tests of views: what client and server say, as records, through the real transcriber."""

import json
from typing import Any

from mcpspy.records import Close, End, Exit, Frame, Header, Open, Record, Spawn
from mcpspy.transcript.model import Transcript
from mcpspy.transcript.transcribe import transcribe

MS = 1_000_000
WALL_NS = 1_795_000_000_000_000_000
"""When every story begins: 2026-11-18 11:06:40 UTC."""


class Story:
    """One capture, told line by line; times are milliseconds since it began, and each line comes 1 ms after the one before."""

    def __init__(
        self, label: str = "weather", *, argv: list[str] | None = None, start_ms: int = 0, parent: str = "claude"
    ) -> None:
        self.at_ms = 0
        self.records: list[Record] = [
            Header(
                capture_id=label,
                wall_ns=WALL_NS + start_ms * MS,
                monotonic_ns=start_ms * MS,
                pid=100,
                boot_id="boot",
                parent={"pid": 99, "name": parent, "start": 1},
                label=label,
                tapped={"transport": "stdio", "argv": argv or ["uvx", "mcp-server-weather"], "env": []},
            )
        ]
        for number, sender, name in ((0, "client", "stdin"), (1, "server", "stdout"), (2, "server", "stderr")):
            self._add(Open(at_ns=0, stream=number, sender=sender, name=name))  # type: ignore[arg-type]  # a Side
        self._add(Spawn(at_ns=0, pid=101))

    def client(self, message: dict[str, Any] | bytes, *, at_ms: int | None = None) -> "Story":
        """The client writes a line."""
        return self._line(0, message, at_ms)

    def server(self, message: dict[str, Any] | bytes, *, at_ms: int | None = None) -> "Story":
        """The server writes a line."""
        return self._line(1, message, at_ms)

    def stderr(self, text: str | bytes, *, at_ms: int | None = None) -> "Story":
        """The server writes a line to its stderr."""
        return self._line(2, text if isinstance(text, bytes) else text.encode(), at_ms)

    def call(self, id: Any, method: str, params: Any = None, *, took_ms: int = 10, **answer: Any) -> "Story":
        """A request and its answer: `result=…` or `error=…`, an empty result if neither is given."""
        self.ask(id, method, params)
        return self.answer(id, at_ms=self.at_ms + took_ms, **(answer or {"result": {}}))

    def ask(self, id: Any, method: str, params: Any = None, *, at_ms: int | None = None) -> "Story":
        """The client asks."""
        message = {"jsonrpc": "2.0", "id": id, "method": method}
        return self.client(message if params is None else {**message, "params": params}, at_ms=at_ms)

    def answer(self, id: Any, *, at_ms: int | None = None, **answer: Any) -> "Story":
        """The server answers: `result=…` or `error=…`."""
        return self.server({"jsonrpc": "2.0", "id": id, **answer}, at_ms=at_ms)

    def notify(self, method: str, params: Any = None, *, sender: str = "server", at_ms: int | None = None) -> "Story":
        """Either side notifies."""
        message = {"jsonrpc": "2.0", "method": method, **({} if params is None else {"params": params})}
        return self.server(message, at_ms=at_ms) if sender == "server" else self.client(message, at_ms=at_ms)

    def record(self, record: Record) -> "Story":
        """Any other record; its `at_ns` moves the clock."""
        self.at_ms = record.at_ns // MS
        self._add(record)
        return self

    def end(self, code: int = 0) -> "Story":
        """The client closes stdin, the server ends, the capture is complete."""
        at_ns = (self.at_ms + 1) * MS
        for record in (Close(at_ns=at_ns, stream=0, by="client", how="eof"), Exit(at_ns=at_ns + MS, pid=101, code=code)):
            self._add(record)
        self._add(End(at_ns=at_ns + MS, frames=0, bytes=0))
        return self

    def transcript(self) -> Transcript:
        """What the records mean."""
        return transcribe(self.records)

    def _line(self, stream: int, message: dict[str, Any] | bytes, at_ms: int | None) -> "Story":
        self.at_ms = self.at_ms + 1 if at_ms is None else at_ms
        data = message if isinstance(message, bytes) else json.dumps(message, separators=(",", ":")).encode()
        at_ns = self.at_ms * MS
        self._add(Frame(stream, at_ns, at_ns, data if data.endswith(b"\n") else data + b"\n"))
        return self

    def _add(self, record: Record) -> None:
        record.number = len(self.records)
        self.records.append(record)


def tool_call(name: str, arguments: dict[str, Any] | None = None, **params: Any) -> dict[str, Any]:
    """The params of a tools/call."""
    return {"name": name, "arguments": arguments or {}, **params}


def tool_error(text: str) -> dict[str, Any]:
    """The result of a tool that failed."""
    return {"content": [{"type": "text", "text": text}], "isError": True}


def busy_story() -> "Story":
    """A bit of everything: a slow call with progress, an error, a tool error, noise, stderr, a cancelled and a pending call."""
    story = Story()
    story.stderr("weather server 1.4 starting", at_ms=31)
    story.ask(0, "initialize", {"protocolVersion": "2025-11-25"}, at_ms=40).answer(0, result={"serverInfo": {}}, at_ms=52)
    story.notify("notifications/initialized", sender="client")
    story.server(b"Listening on port 3000, press Ctrl-C to stop")
    story.call(1, "tools/list", took_ms=3, result={"tools": [{"name": "get_weather"}] * 12})
    story.ask(2, "tools/call", tool_call("get_weather", {"city": "Lissabon"}, _meta={"progressToken": 2}))
    for step in range(1, 18):
        params = {"progressToken": 2, "progress": step, "total": 17, "message": f"asking station {step}"}
        story.notify("notifications/progress", params, at_ms=story.at_ms + 66)
    story.notify("notifications/message", {"level": "info", "logger": "net", "data": "17 stations, 2 silent"})
    story.answer(2, result={"content": [{"type": "text", "text": "21 °C"}]}, at_ms=story.at_ms + 80)
    story.call(
        3,
        "tools/call",
        tool_call("get_weather", {"city": "Atlantis"}),
        took_ms=7,
        result=tool_error("city not found: Atlantis"),
    )
    story.call(
        4, "resources/subscribe", {"uri": "weather://alerts"}, took_ms=0, error={"code": -32601, "message": "Method not found"}
    )
    for number in range(46):
        story.stderr(f"Traceback line {number}")
    story.ask(5, "tools/call", tool_call("forecast", {"days": 14}, _meta={"progressToken": 5}))
    story.notify("notifications/cancelled", {"requestId": 5, "reason": "the user lost patience"}, sender="client", at_ms=4200)
    story.server({"jsonrpc": "2.0", "id": 1, "method": "roots/list"}).client(
        {"jsonrpc": "2.0", "id": 1, "result": {"roots": []}}
    )
    story.ask(6, "tools/call", tool_call("天気予報を取得する", {"city": "東京"}), at_ms=4300)
    return story

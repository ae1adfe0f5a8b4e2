"""Scenes for the tests of views: one with a bit of everything, one with three servers, and one in which every string is hostile."""

import json
from typing import Any

from mcpspy.records import Spawn
from mcpspy.transcript.model import Transcript
from mcpspy.transcript.transcribe import transcribe
from tests.transcript.dialogue import Dialogue, cancelled, make_header, notification, request, result

WALL_NS = 1_795_000_000_000_000_000
"""Start of every scene: 2026-11-18 11:06:40 UTC."""


def call(id: Any, tool: str, *, token: Any = None, **arguments: Any) -> dict[str, Any]:
    """Make a tools/call."""
    meta = {} if token is None else {"_meta": {"progressToken": token}}
    return request(id, "tools/call", {"name": tool, "arguments": arguments, **meta})


def failed(id: Any, text: str) -> dict[str, Any]:
    """Make the result of a tool that failed."""
    return result(id, {"content": [{"type": "text", "text": text}], "isError": True})


def refused(id: Any, code: int, message: str) -> dict[str, Any]:
    """Make a JSON-RPC error."""
    return {"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}}


def progress(token: Any, at: int, message: str) -> dict[str, Any]:
    """Make a progress notification."""
    return notification("notifications/progress", {"progressToken": token, "progress": at, "total": 17, "message": message})


def given_up(id: Any, reason: str) -> dict[str, Any]:
    """Make a cancellation."""
    notice = cancelled(id)
    return {**notice, "params": {**notice["params"], "reason": reason}}


def opened(label: str, *, begin_ms: int = 0) -> Dialogue:
    """Begin a dialogue in a capture that began this long after the first."""
    at_ns = begin_ms * 1_000_000
    return Dialogue(header=make_header(label=label, wall_ns=WALL_NS + at_ns, monotonic_ns=at_ns))


def busy_scene() -> Dialogue:
    """Make a slow call with progress, an error, a tool error, noise, stderr, a cancelled call, a server request, a pending call."""
    scene = opened("weather").wait(30).stderr(b"weather server 1.4 starting\n")
    hello = {"protocolVersion": "2025-11-25", "clientInfo": {"name": "claude-code"}}
    scene.client(request(0, "initialize", hello)).wait(11).server(result(0)).client(notification())
    scene.server(b"Listening on port 3000, press Ctrl-C to stop\n")
    scene.client(request(1)).wait(2).server(result(1, {"tools": [{"name": "get_weather"}] * 12}))
    scene.client(call(2, "get_weather", token=2, city="Lissabon"))
    for step in range(1, 18):
        scene.wait(65).server(progress(2, step, f"asking station {step}"))
    scene.server(notification("notifications/message", {"level": "info", "logger": "net", "data": "17 stations, 2 silent"}))
    scene.wait(79).server(result(2, {"content": [{"type": "text", "text": "21 °C"}]}))
    scene.client(call(3, "get_weather", city="Atlantis")).wait(6).server(failed(3, "city not found: Atlantis"))
    scene.client(request(4, "resources/subscribe", {"uri": "weather://alerts"})).server(refused(4, -32601, "Method not found"))
    for number in range(46):
        scene.stderr(f'  File "weather.py", line {number}\n'.encode())
    scene.client(call(5, "forecast", days=14)).wait(2880).client(given_up(5, "the user lost patience"))
    scene.server(request(1, "roots/list")).client(result(1, {"roots": []}))
    return scene.wait(90).client(call(6, "天気予報を取得する", city="東京"))


def three_servers() -> Transcript:
    """Make one client and three servers at once; one of them fails, and one has a Japanese name."""
    dialogues = [opened("weather"), opened("filesystem-of-a-long-name", begin_ms=5), opened("天気", begin_ms=9)]
    for number, scene in enumerate(dialogues):
        hello = {"protocolVersion": "2025-11-25", "clientInfo": {"name": "claude-code"}}
        scene.client(request(1, "initialize", hello)).wait(12 + number).server(result(1)).stderr(b"ready\n")
        scene.client(request("server-discover-probe-1")).wait(9).server(result("server-discover-probe-1"))
        scene.client(call(3, "read_file")).server(failed(3, "ENOENT"))
        scene.server(request(1, "sampling/createMessage", {})).client(result(1))
        scene.client_leaves().server_closes_stdout().exits(number).ends()
    return transcribe(*(scene.records for scene in dialogues))


def hostile_scene(text: str) -> Dialogue:
    """Put `text` into every field that a peer, a file or a command line can fill."""
    scene = Dialogue(header=make_header(label=text, wall_ns=WALL_NS, parent={"pid": 7, "name": text, "start": 1}))
    hello = {"protocolVersion": text, "clientInfo": {"name": text}}
    scene.client(request(text, "initialize", hello)).server(result(text, {text: text}))
    scene.client(request(1, text, {text: text})).server(refused(1, -1, text))
    scene.client(call(2, text, token=text)).server(progress(text, 1, text)).server(failed(2, text))
    scene.client(call(3, text)).client(given_up(3, text))
    scene.server(notification(text, {"uri": text})).server(refused(text, -1, text)).server(result(text))
    scene.server(notification("notifications/message", {"level": text, "logger": text, "data": {text: text}}))
    data = text.encode("utf-8", "surrogatepass").replace(b"\n", b" ")
    scene.server(data + b"\n").client(data + b"\n").stderr(data + b"\n").partial(1, data)
    scene.note(text).damage(text).add(Spawn(at_ns=scene.tick(), pid=5))
    scene.exits(None, signal=text).exits(None, error=text)
    return scene


def payload(value: Any) -> bytes:
    """Spell a JSON value as it comes over the wire, without escapes."""
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")


def ticket_session(calls: int) -> Dialogue:
    """Make a session of many calls: a run of one tool, then two tools in turn; some fail, one is slow; log messages and pings."""
    scene = opened("tickets")
    hello = {"protocolVersion": "2025-11-25", "clientInfo": {"name": "claude-code"}}
    scene.client(request(0, "initialize", hello)).wait(11).server(result(0)).client(notification())
    scene.client(request(1)).wait(2).server(result(1, {"tools": [{"name": "open_ticket"}] * 12}))
    for number in range(calls):
        tool = "open_ticket" if number < calls // 2 else ("search", "close_ticket")[number % 2]
        scene.client(call(number + 2, tool, ticket=f"T-{number}")).wait(300 if number == 7 else number % 3)
        if number % 3 == 0:
            scene.server(notification("notifications/message", {"level": "info", "logger": "db", "data": f"row {number}"}))
        scene.server(failed(number + 2, f"no ticket {number}") if number % 50 == 11 else result(number + 2))
        if number % 10 == 9:
            scene.client(request(f"ping-{number}", "ping")).server(result(f"ping-{number}"))
    return scene.closes()

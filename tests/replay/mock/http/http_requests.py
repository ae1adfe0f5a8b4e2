"""Live HTTP requests, as a mock passes them to the facts of a capture."""

import json
from typing import Any

from mcpspy.records import Frame
from mcpspy.replay.mock.http.answer import HttpRequest, MockAddress, Transport
from mcpspy.replay.mock.http.recorded_http import HttpFacts
from mcpspy.transcript.decoder import Decoder
from mcpspy.transcript.message import Message
from mcpspy.transcript.model import CaptureInfo
from tests.transcript.traffic import Traffic

LIVE = MockAddress("http://127.0.0.1:4321", "/mcp")


def facts(traffic: Traffic, transport: Transport = "streamable") -> HttpFacts:
    return HttpFacts(traffic.wire, transport)


def message(value: Any) -> Message:
    (parsed,) = [
        item
        for item in Decoder(CaptureInfo(0)).feed(Frame(0, 0, 0, json.dumps(value).encode() + b"\n"))
        if isinstance(item, Message)
    ]
    return parsed


def post(value: Any, target: str = "/mcp", *, is_authorized: bool = False, live: MockAddress = LIVE) -> HttpRequest:
    return HttpRequest("POST", target, live, is_authorized, message(value))


def get(target: str = "/mcp", *, is_authorized: bool = False, live: MockAddress = LIVE) -> HttpRequest:
    return HttpRequest("GET", target, live, is_authorized)


def call(name: str, id: Any = 7, **arguments: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": name, "arguments": arguments}}

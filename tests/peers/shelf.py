"""A small stdio server with notes and tools, correct but for the faults that its command line names; it stands on no SDK.

    shelf.py [FAULT]…

    mixed           whatever note is read, the contents are those of `memo:///a`
    silent          no change of a note is reported
    eager           every change is reported to whoever is connected, subscribed or not
    stormy          twenty changes of the tools are announced at the start
    overlap         the second page of tools begins with the last tool of the first
    contradicts     the text of `count` has another number than its structured content
    cut             the text of `dump` stops in the middle
    names           a tool has a name that models refuse
    schemas         a tool has a schema that models refuse
    nosy            `login` asks for a password, and not for a name
    blocks          nothing is answered while `work` runs
    goes_on         `work` goes on after it was cancelled

Tools are `write` (a note), `find` (an order, by `order_id` or `path`; there is none), `count`, `dump`, `login`, and `work`, which is
done when the client has said two things more.
"""

import json
import sys
from typing import Any

FAULTS = frozenset(sys.argv[1:])
NOTES = {"memo:///a": "first", "memo:///b": "second"}
SUBSCRIBED: set[str] = set()
NAMES = ["write", "find", "count", "dump", "login", "work"]
TWICE = 2
MANY = 20
LONG = 400


def say(**message: Any) -> None:
    """Write one message."""
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def heard() -> dict[str, Any]:
    """Read one message, or end."""
    line = sys.stdin.readline()
    if not line:
        raise SystemExit(0)
    message: dict[str, Any] = json.loads(line)
    return message


def tools(cursor: str | None) -> dict[str, Any]:
    """Make a page of the list of tools."""
    properties = {"tags": {"type": "array"}} if "schemas" in FAULTS else {"tags": {"type": "string"}}
    listed = [{"name": name, "inputSchema": {"type": "object", "properties": properties}} for name in NAMES]
    if "names" in FAULTS:
        listed[-1]["name"] = "hard work!"
    if cursor is None:
        return {"tools": listed[:3], "nextCursor": "2"}
    return {"tools": listed[2 if "overlap" in FAULTS else 3 :]}


def read(uri: str) -> dict[str, Any]:
    """Read a note."""
    uri = "memo:///a" if "mixed" in FAULTS else uri
    return {"contents": [{"uri": uri, "text": NOTES[uri]}]}


def write(uri: str, text: str) -> dict[str, Any]:
    """Change a note, and report it."""
    NOTES[uri] = text
    if "eager" in FAULTS or (uri in SUBSCRIBED and "silent" not in FAULTS):
        say(method="notifications/resources/updated", params={"uri": uri})
    return text_result("written")


def text_result(text: str, **rest: Any) -> dict[str, Any]:
    """Make the result of a tool."""
    return {"content": [{"type": "text", "text": text}], **rest}


def work(id: int) -> dict[str, Any]:
    """Work until the client has said two things more, and answer them after that, or as they come."""
    waiting = []
    for _ in range(TWICE):
        message = heard()
        if message["method"] == "notifications/cancelled" and "goes_on" in FAULTS:
            say(method="notifications/progress", params={"progressToken": "t", "progress": 5})
        elif "id" in message and "blocks" in FAULTS:
            waiting.append(message)
        elif "id" in message:
            answer(message)
    say(id=id, result=text_result("done"))
    for message in waiting:
        answer(message)
    return {}


def login() -> dict[str, Any]:
    """Ask the user for a name."""
    field = "password" if "nosy" in FAULTS else "user_name"
    schema = {"type": "object", "properties": {field: {"type": "string"}}}
    say(id="s1", method="elicitation/create", params={"message": "Who are you?", "requestedSchema": schema})
    heard()
    return text_result("hello")


def called(name: str, given: dict[str, Any], id: int) -> dict[str, Any]:
    """Make the result of a call; nothing where it was answered."""
    match name:
        case "write":
            return write(given["uri"], given["text"])
        case "find":
            return text_result("no such order", isError=True)
        case "count":
            number = 7 if "contradicts" in FAULTS else 2
            return text_result(json.dumps({"notes": number}), structuredContent={"notes": 2})
        case "dump":
            text = json.dumps([1000] * LONG)
            return text_result(text[: -len(text) // 3] if "cut" in FAULTS else text)
        case "login":
            return login()
        case "work":
            return work(id)
        case _:
            return text_result("ORD-1041, ORD-1042")


def answer(message: dict[str, Any]) -> None:
    """Answer a request."""
    params = message.get("params", {})
    match message["method"]:
        case "initialize":
            capabilities = {"tools": {"listChanged": True}, "resources": {"subscribe": True}}
            info = {"name": "shelf", "version": "1.0"}
            result = {"protocolVersion": "2025-11-25", "capabilities": capabilities, "serverInfo": info}
        case "tools/list":
            result = tools(params.get("cursor"))
        case "tools/call":
            result = called(params["name"], params.get("arguments", {}), message["id"])
        case "resources/read":
            result = read(params["uri"])
        case "resources/subscribe":
            SUBSCRIBED.add(params["uri"])
            result = {}
        case _:
            result = {}
    if result or message["method"] != "tools/call":
        say(id=message["id"], result=result)


while True:
    request = heard()
    if "id" in request and "method" in request:
        answer(request)
    elif request.get("method") == "notifications/initialized" and "stormy" in FAULTS:
        for _ in range(MANY):
            say(method="notifications/tools/list_changed")

"""The HTTP scenes: which client says what to which server. `python` ones need PyPI alone, `npm` ones the programs of tests/npm."""

import sys

from captures.make import TOOLS, call
from tests.conftest import PEERS
from tests.interop.scenes import steps
from tests.interop.serving import HttpScene

LETTERS = 300_000
"""More than a socket takes at once, and less than the most that the SDK takes in one event."""

CANCELLED = "SLOW CANCELLED"

SCENE = (
    TOOLS,
    call("add", a=1, b=2),
    {**call("slow", n=2), "progress": True},
    call("greet"),
    {"read": "lab://café/x"},
    {"together": [call("add", a=number, b=number) for number in range(20)]},
    call("add", a="one"),
    {"call": "add", "arguments": {"b": 1}, "large": {"a": LETTERS}},
    {**call("slow", n=20), "timeout_s": 0.8},
    call("add", a=3, b=4),
)


def official(kind: str, mode: str, *options: str, said: str = CANCELLED) -> HttpScene:
    """The official Python SDK on both sides."""
    return HttpScene(
        client=(*steps(mode, *SCENE), "URL"),
        server=(sys.executable, str(PEERS / "pyserver.py"), kind, "0", *options),
        path="/sse" if kind == "sse" else "/mcp",
        opening="server/discover" if mode == "auto" else "initialize",
        said=said,
    )


PYTHON = {
    "Streamable HTTP, modern": official("http", "auto"),
    "Streamable HTTP, legacy": official("http", "legacy"),
    "HTTP+SSE, modern": official("sse", "auto"),
    "HTTP+SSE, legacy": official("sse", "legacy"),
    "stateless, modern": official("http", "auto", "stateless_http"),
    "stateless, legacy": official("http", "legacy", "stateless_http", said=""),
    "JSON responses, modern": official("http", "auto", "json_response", said=""),
    "JSON responses, legacy": official("http", "legacy", "json_response"),
    "stateless, JSON responses, legacy": official("http", "legacy", "stateless_http", "json_response", said=""),
}
"""Without a session, and with JSON for every response, a legacy server cannot ask: there `greet` fails, the same way each time."""

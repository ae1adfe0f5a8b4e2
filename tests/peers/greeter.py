"""An MCP client on the Python SDK 2.x that calls `greet` for Ada and Ben, and prints for each what it got.

    greeter.py URL [together]      one that ends in /sse is of HTTP+SSE; `together`: both at once

It ends well if the SDK lets it go on after an error.
"""

import prepared  # noqa: F401 - saves the imports that follow

import asyncio
import sys
from typing import Any

from mcp import Client, MCPError
from mcp.client.sse import sse_client

NAMES = ("Ada", "Ben")
TIME_OUT_S = 20.0


async def greet(client: Any, name: str) -> None:
    """Call the tool, and print what came of it."""
    try:
        result = await client.call_tool("greet", {"name": name}, read_timeout_seconds=TIME_OUT_S)
        print(name, "error" if result.is_error else result.content[0].text, flush=True)
    except MCPError as error:
        print(name, "MCPError", error, flush=True)


async def main(url: str, mode: str = "") -> None:
    """List the tools, and greet."""
    target: Any = sse_client(url) if url.endswith("/sse") else url
    async with Client(target, mode="legacy") as client:
        await client.list_tools()
        if mode:
            await asyncio.gather(*(greet(client, name) for name in NAMES))
            return
        for name in NAMES:
            await greet(client, name)


asyncio.run(main(*sys.argv[1:]))

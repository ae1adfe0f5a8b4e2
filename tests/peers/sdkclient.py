"""An MCP client on the Python SDK, of either generation, or on fastmcp.

    sdkclient.py mcp|fastmcp COMMAND…
    sdkclient.py mcp|fastmcp URL      one that ends in /sse is of HTTP+SSE, any other of Streamable HTTP

It connects as the package does by default, plays one scene with a server that has what sdkserver.py has, and prints what it saw.
"""

import prepared  # noqa: F401 - saves the imports that follow

import asyncio
import importlib
import os
import sys
from typing import Any

import mcp
from mcp.client.sse import sse_client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

CONNECT_S = 60.0


async def report(progress: float, total: float | None, message: str | None) -> None:
    """Take one progress notification, which makes the client ask for them."""


async def play(client: Any, callback: str) -> None:
    """Play the scene; `callback` is the argument that takes progress."""
    await client.list_tools()
    await client.list_resources()
    await client.list_prompts()
    print((await client.call_tool("add", {"a": 1, "b": 2})).content[0].text)
    print((await client.call_tool("count", {"to": 2}, **{callback: report})).content[0].text)
    await client.read_resource("lab://note")
    await client.get_prompt("question", {"about": "this"})


async def play_fastmcp(url: str | None, words: list[str]) -> None:
    """Play on fastmcp."""
    fastmcp = importlib.import_module("fastmcp")
    transports = importlib.import_module("fastmcp.client.transports")
    target = url or transports.StdioTransport(words[0], words[1:], env=dict(os.environ), keep_alive=False)
    async with fastmcp.Client(target) as client:
        await play(client, "progress_handler")


async def play_mcp(url: str | None, words: list[str]) -> None:
    """Play on `mcp`: 2.x has a class for it, 1.x a session."""
    connection: Any
    if url is None:
        connection = stdio_client(StdioServerParameters(command=words[0], args=words[1:], env=dict(os.environ)))
    else:
        connection = sse_client(url, timeout=CONNECT_S) if url.endswith("/sse") else streamable_http_client(url)
    if hasattr(mcp, "Client"):
        async with mcp.Client(connection) as client:
            await play(client, "progress_callback")
    else:
        async with connection as (read, write, *_), mcp.ClientSession(read, write) as session:
            await session.initialize()
            await play(session, "progress_callback")


def main(package: str, *words: str) -> None:
    """Play with the server that the command line names."""
    url = words[0] if words[0].startswith("http://") else None
    asyncio.run((play_fastmcp if package == "fastmcp" else play_mcp)(url, list(words)))


if __name__ == "__main__":
    main(*sys.argv[1:])

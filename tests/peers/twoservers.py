"""A client on the official SDK, of the name NAME, with an HTTP server at URL and, if there is a COMMAND, a stdio server.

Usage: twoservers.py NAME URL [COMMAND…]. It calls the first tool of each with `a` and `b`, the stdio server's within the session of
the other. Before it ends, it prints a line and waits for one.
"""

import asyncio
import os
import sys

from mcp import ClientSession, StdioServerParameters, types
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client


async def call(session: ClientSession) -> None:
    """Shake hands, list the tools, and call the first."""
    await session.initialize()
    tool = (await session.list_tools()).tools[0]
    await session.call_tool(tool.name, {"a": 1, "b": 2})


async def main(name: str, url: str, command: list[str]) -> None:
    """Speak to both servers."""
    info = types.Implementation(name=name, version="1.2")
    async with streamable_http_client(url) as streams, ClientSession(streams[0], streams[1], client_info=info) as remote:
        await call(remote)
        if command:
            server = StdioServerParameters(command=command[0], args=command[1:], env=dict(os.environ))
            async with stdio_client(server) as local_streams, ClientSession(*local_streams, client_info=info) as local:
                await call(local)
        print("called", flush=True)
        await asyncio.to_thread(sys.stdin.readline)


asyncio.run(main(sys.argv[1], sys.argv[2], sys.argv[3:]))

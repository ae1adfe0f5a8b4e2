"""An MCP gateway on the official SDK: a stdio server that forwards to another server.

    gateway.py COMMAND…     forward to this server on stdio
    gateway.py URL          forward to this server over Streamable HTTP

It puts `demo_` before the names of tools, and passes no progress on.
"""

import prepared  # noqa: F401 - saves the imports that follow

import asyncio
import os
import sys
from typing import Any

import mcp
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.types import ListToolsResult

PREFIX = "demo_"


async def drop(progress: float, total: float | None, message: str | None) -> None:
    """Take a progress notification, and pass it on to nobody."""


async def main(*words: str) -> None:
    """Serve on stdio."""
    command = StdioServerParameters(command=words[0], args=list(words[1:]), env=dict(os.environ))
    upstream = words[0] if words[0].startswith("http") else stdio_client(command)
    async with mcp.Client(upstream) as client:

        async def list_tools(context: Any, params: Any) -> ListToolsResult:
            tools = (await client.list_tools()).tools
            return ListToolsResult(tools=[tool.model_copy(update={"name": PREFIX + tool.name}) for tool in tools])

        async def call_tool(context: Any, params: Any) -> Any:
            return await client.call_tool(params.name.removeprefix(PREFIX), params.arguments, progress_callback=drop)

        server = Server("gateway", on_list_tools=list_tools, on_call_tool=call_tool)
        async with stdio_server() as (read, write):
            await server.run(read, write, server.create_initialization_options())


asyncio.run(main(*sys.argv[1:]))

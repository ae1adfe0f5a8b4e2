"""A client on the Python SDK, of either generation, that lists the tools of a stdio server and calls one without arguments.

listclient.py TOOL COMMAND…
"""

import prepared  # noqa: F401 - saves the imports that follow

import asyncio
import os
import sys
from typing import Any

import mcp
from mcp.client.stdio import StdioServerParameters, stdio_client


async def main(tool: str, command: str, *words: str) -> None:
    """Print the names of the tools, and the text of the answer."""
    server = StdioServerParameters(command=command, args=list(words), env=dict(os.environ))
    async with stdio_client(server) as (read, write), mcp.ClientSession(read, write) as session:
        await session.initialize()
        print(*(listed.name for listed in (await session.list_tools()).tools))
        answer: Any = await session.call_tool(tool, {})
        print(answer.content[0].text)


asyncio.run(main(*sys.argv[1:]))

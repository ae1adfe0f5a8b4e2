"""A client on the Python SDK, of either generation, that uses all that a server lists.

listclient.py TOOL URL
listclient.py TOOL COMMAND…

It prints the names of the tools, the answer of one that is called without arguments, the resources and the prompts.
"""

import prepared  # noqa: F401 - saves the imports that follow

import asyncio
import os
import sys
from typing import Any

import mcp
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client


async def use(client: Any, tool: str) -> None:
    """Use everything."""
    print(*(listed.name for listed in (await client.list_tools()).tools))
    print((await client.call_tool(tool, {})).content[0].text)
    for resource in (await client.list_resources()).resources:
        print((await client.read_resource(resource.uri)).contents[0].text)
    for prompt in (await client.list_prompts()).prompts:
        print((await client.get_prompt(prompt.name)).messages[0].content.text)


async def main(tool: str, command: str, *words: str) -> None:
    """Connect as the package does by default."""
    server = StdioServerParameters(command=command, args=list(words), env=dict(os.environ))
    connection: Any = streamable_http_client(command) if command.startswith("http://") else stdio_client(server)
    if hasattr(mcp, "Client"):
        async with mcp.Client(connection) as client:
            await use(client, tool)
        return
    async with connection as (read, write, *_), mcp.ClientSession(read, write) as session:
        await session.initialize()
        await use(session, tool)


asyncio.run(main(*sys.argv[1:]))

"""A client with a configuration file, on the official SDK: starts the servers that an `.mcp.json` names, as clients do.

Usage: configclient.py FILE. Prints for each server a JSON line with its name and its tools.
"""

import asyncio
import json
import sys
from pathlib import Path

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client


async def tools(entry: dict[str, object]) -> list[str]:
    """What the server of one entry offers."""
    parameters = StdioServerParameters.model_validate({key: entry[key] for key in ("command", "args", "env") if key in entry})
    async with stdio_client(parameters) as (reading, writing), ClientSession(reading, writing) as session:
        await session.initialize()
        return [tool.name for tool in (await session.list_tools()).tools]


async def main(servers: dict[str, dict[str, object]]) -> None:
    """One server after the other."""
    for name, entry in servers.items():
        print(json.dumps({"server": name, "tools": await tools(entry)}), flush=True)


asyncio.run(main(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))["mcpServers"]))

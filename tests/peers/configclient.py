"""A client with a configuration file, on the official SDK: starts or calls the servers that an `.mcp.json` names, as clients do.

Usage: configclient.py FILE [CALLS]. CALLS is a JSON object: by server a tool and its arguments, to be called once. Prints for each
server a JSON line with its name and its tools.
"""

import prepared  # noqa: F401 - saves the imports that follow

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from mcp import ClientSession, StdioServerParameters
from mcp.client.sse import sse_client
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client


def transport(entry: dict[str, Any]) -> Any:
    """Open the transport to the server of one entry."""
    if "url" not in entry:
        return stdio_client(
            StdioServerParameters.model_validate({key: entry[key] for key in ("command", "args", "env") if key in entry})
        )
    return sse_client(entry["url"]) if entry.get("type") == "sse" else streamable_http_client(entry["url"])


async def tools(entry: dict[str, Any], call: list[Any]) -> list[str]:
    """List the tools of the server of one entry, after a `call` of a tool, if there is one."""
    async with transport(entry) as streams, ClientSession(streams[0], streams[1]) as session:
        await session.initialize()
        if call:
            await session.call_tool(*call)
        return [tool.name for tool in (await session.list_tools()).tools]


async def main(servers: dict[str, dict[str, Any]], calls: dict[str, list[Any]]) -> None:
    """Use one server after the other."""
    for name, entry in servers.items():
        print(json.dumps({"server": name, "tools": await tools(entry, calls.get(name, []))}), flush=True)


FILE, *CALLS = sys.argv[1:]
asyncio.run(main(json.loads(Path(FILE).read_text(encoding="utf-8"))["mcpServers"], json.loads(CALLS[0]) if CALLS else {}))

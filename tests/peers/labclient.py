"""An MCP client on the Python SDK, of either generation, that makes the calls of the web page of tests/browser.

    labclient.py URL      one that ends in /sse is of HTTP+SSE, any other of Streamable HTTP

It opens with `initialize`, and prints a line for each answer.
"""

import asyncio
import sys
from typing import Any

import mcp
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client

if hasattr(mcp, "Client"):
    import mcp_types as types
else:
    from mcp import types  # type: ignore[no-redef]

CONNECT_S = 60.0


async def elicit(context: Any, params: Any) -> Any:
    """Play the user."""
    return types.ElicitResult(action="accept", content={"name": "Zoë → €"})


async def report(progress: float, total: float | None, message: str | None) -> None:
    """Print one progress notification."""
    print(f"{progress:g} of {total:g}: {message}", flush=True)


async def play(client: Any) -> None:
    """Make the calls of the page."""
    print(", ".join(tool.name for tool in (await client.list_tools()).tools), flush=True)
    for name, arguments in (("add", {"a": 1, "b": 2}), ("slow", {"n": 2}), ("greet", {}), ("sing", {})):
        callbacks = {"progress_callback": report} if name == "slow" else {}
        result = await client.call_tool(name, arguments, **callbacks)
        print(result.content[0].text, flush=True)


async def main(url: str) -> None:
    """Connect, play, disconnect."""
    connection: Any = sse_client(url, timeout=CONNECT_S) if url.endswith("/sse") else streamable_http_client(url)
    if hasattr(mcp, "Client"):
        async with mcp.Client(connection, mode="legacy", elicitation_callback=elicit) as client:
            await play(client)
        return
    async with connection as (read, write, *_), mcp.ClientSession(read, write, elicitation_callback=elicit) as session:
        await session.initialize()
        await play(session)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))

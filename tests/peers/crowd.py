"""Many MCP clients at once on the official Python SDK, all in one process, to one server that adds.

    crowd.py MODE COUNT URL

MODE and URL are those of stepclient.py. Each client opens a session of its own, and all count their request ids alike. When
everybody is connected, each asks for the sum of its number and 1,000,000, and prints the answer it got: a line `NUMBER SUM`.
"""

import prepared  # noqa: F401 - saves the imports that follow

import asyncio
import sys

from mcp import Client
from mcp.client.sse import sse_client

MILLION = 1_000_000
TIMEOUT_S = 60.0
"""For HTTP+SSE, whose client gives up a connection after 5 s: not enough where a crowd shares a busy machine."""


async def one(number: int, mode: str, url: str, everybody: asyncio.Barrier) -> None:
    """Run one client."""
    async with Client(sse_client(url, timeout=TIMEOUT_S) if url.endswith("/sse") else url, mode=mode) as client:
        await everybody.wait()
        result = await client.call_tool("add", {"a": number, "b": MILLION})
        print(number, (result.structured_content or {}).get("result"), flush=True)
        await everybody.wait()


async def main(mode: str, count: str, url: str) -> None:
    """Run all clients."""
    everybody = asyncio.Barrier(int(count))
    async with asyncio.TaskGroup() as group:
        for number in range(int(count)):
            group.create_task(one(number, mode, url, everybody))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))

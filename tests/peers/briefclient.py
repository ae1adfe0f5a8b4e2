"""A client on the official Python SDK over HTTP+SSE that lists the tools, if the server lets it within two seconds.

    briefclient.py URL

It prints the names of the tools, or what kind of error ended it. With a server that never says where to POST, or says so in a way of
its own, the SDK waits for ever.
"""

import prepared  # noqa: F401 - saves the imports that follow

import asyncio
import sys

from mcp import Client
from mcp.client.sse import sse_client

PATIENCE_S = 2.0


async def names(url: str) -> list[str]:
    """Return the names of the tools."""
    async with Client(sse_client(url), mode="legacy") as client:
        return [tool.name for tool in (await client.list_tools()).tools]


def main(url: str) -> None:
    """Print what came of it."""
    try:
        print(asyncio.run(asyncio.wait_for(names(url), PATIENCE_S)))
    except Exception as error:  # noqa: BLE001 - whatever the SDK raises is what is printed
        print(type(error).__name__)


if __name__ == "__main__":
    main(*sys.argv[1:])

"""An MCP client on the official Python SDK, which plays one fixed scene against pyserver.py and prints what it saw.

    pyclient.py stdio MODE COMMAND…
    pyclient.py sse MODE URL
    pyclient.py http MODE URL

MODE is the SDK's: `auto` finds the newest era that both speak, `legacy` opens with `initialize`. The scene: list the tools,
call, follow progress, answer a question, read a resource whose URI is not ASCII, and give a call up after TIMEOUT_S.
"""

import prepared  # noqa: F401 - saves the imports that follow

import asyncio
import sys

import mcp_types
from mcp import Client
from mcp.client import ClientRequestContext
from mcp.client.sse import sse_client
from mcp.client.stdio import StdioServerParameters

TIMEOUT_S = 0.8
CONNECT_S = 60.0


async def answer(context: ClientRequestContext, params: mcp_types.ElicitRequestParams) -> mcp_types.ElicitResult:
    """Answer whatever the server asks."""
    print("ELICIT", params.model_dump(exclude_none=True))
    return mcp_types.ElicitResult(action="accept", content={"name": "Bob"})


async def report(progress: float, total: float | None, message: str | None) -> None:
    """Print one progress notification."""
    print("PROG", progress, total, message)


async def play(client: Client) -> None:
    """Play the scene."""
    tools = await client.list_tools()
    print([tool.name for tool in tools.tools])
    print(await client.call_tool("add", {"a": 1, "b": 2}))
    print(await client.call_tool("slow", {"n": 2}, progress_callback=report))
    print(await client.call_tool("greet", {}))
    print(await client.read_resource("lab://café/x"))
    try:
        await client.call_tool("slow", {"n": 20}, read_timeout_seconds=TIMEOUT_S)
    except Exception as error:  # noqa: BLE001 - which exception it is differs between eras, and is printed
        print("EXC", type(error).__name__, error)
    await asyncio.sleep(0.3)  # the cancellation is on its way


async def main(kind: str, mode: str, *target: str) -> None:
    """Connect as the command line says, and play the scene."""
    if kind == "stdio":
        server = StdioServerParameters(command=target[0], args=list(target[1:]))
        client = Client(server, mode=mode, elicitation_callback=answer)
    elif kind == "sse":
        client = Client(sse_client(target[0], timeout=CONNECT_S), mode=mode, elicitation_callback=answer)
    else:
        client = Client(target[0], mode=mode, elicitation_callback=answer)
    async with client:
        await play(client)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))

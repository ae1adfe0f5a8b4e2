"""An MCP server on the official Python SDK, on any transport and in both eras.

    pyserver.py stdio
    pyserver.py sse PORT [PATH]
    pyserver.py http PORT [stateless_http] [json_response] [compress]

Tools: `add` answers at once, `slow` reports progress and notices its cancellation, `greet` asks the user a question (by
elicitation, or by asking for more input where there are no server requests). One resource has a URI that is not ASCII. On
PORT 0 a free port is taken; either way it is the first line on standard output.
"""

import prepared  # noqa: F401 - saves the imports that follow

import socket
import sys
from typing import Annotated

import anyio
import uvicorn
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.resolve import Elicit, Resolve
from pydantic import BaseModel
from starlette.applications import Starlette

STEP_S = 0.3

server = MCPServer("labserver", instructions="lab")


class Name(BaseModel):
    """Name that `greet` asks the user for."""

    name: str


def ask_name() -> Elicit[Name]:
    """The question that `greet` puts to the user."""
    return Elicit("What is your name?", Name)


@server.tool()
async def add(a: int, b: int) -> int:
    """Add two integers."""
    return a + b


@server.tool()
async def slow(n: int, ctx: Context) -> str:
    """Take n steps, and report progress at each."""
    try:
        for step in range(n):
            await ctx.report_progress(step + 1, n, f"step {step}")
            await anyio.sleep(STEP_S)
    except BaseException as reason:
        print("SLOW CANCELLED", type(reason).__name__, file=sys.stderr, flush=True)
        raise
    return "done"


@server.tool()
async def greet(name: Annotated[Name, Resolve(ask_name)]) -> str:
    """Greet the user by the name that was asked for."""
    return f"hello {name.name}"


@server.resource("lab://café/x")
def resource() -> str:
    """A resource whose URI is not ASCII."""
    return "r"


def serve(app: Starlette, port: int) -> None:
    """Serve on the loopback, and print the port first."""
    listener = socket.create_server(("127.0.0.1", port))
    print(listener.getsockname()[1], flush=True)
    uvicorn.Server(uvicorn.Config(app, log_level="warning")).run(sockets=[listener])


def main(kind: str = "stdio", port: str = "0", *options: str) -> None:
    """Run on the transport that the command line names."""
    if kind == "stdio":
        server.run("stdio")
    elif kind == "sse":
        serve(server.sse_app(sse_path="".join(options) or "/sse"), int(port))
    else:
        app = server.streamable_http_app(stateless_http="stateless_http" in options, json_response="json_response" in options)
        if "compress" in options:
            from starlette_compress import CompressMiddleware

            app.add_middleware(CompressMiddleware, minimum_size=1)
        serve(app, int(port))


if __name__ == "__main__":
    main(*sys.argv[1:])

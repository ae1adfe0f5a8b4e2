"""An MCP server on the Python SDK, of either generation, or on fastmcp.

    sdkserver.py mcp|fastmcp stdio|sse|http [mirrored]

Tools: `add` answers at once, `count` reports progress; `mirrored` adds `place`, whose arguments are repeated in header fields.
There is one resource and one prompt. Over HTTP it takes a free port, which is
the first line on standard output. It uses only what all these packages have, so that any interpreter that has one can run it.
"""

import prepared  # noqa: F401 - saves the imports that follow

import importlib
import os
import socket
import sys
from typing import Annotated, Any

import uvicorn
from pydantic import Field

os.environ["FASTMCP_CHECK_FOR_UPDATES"] = "off"


def classes(package: str) -> tuple[Any, Any]:
    """Return the classes of a server and of a tool's context; their module was renamed in `mcp` 2."""
    if package == "fastmcp":
        module = importlib.import_module("fastmcp")
        return module.FastMCP, module.Context
    try:
        module = importlib.import_module("mcp.server.mcpserver")
        return module.MCPServer, module.Context
    except ModuleNotFoundError:
        module = importlib.import_module("mcp.server.fastmcp")
        return module.FastMCP, module.Context


Server, Context = classes(sys.argv[1])
server = Server("sdkserver")


async def add(a: int, b: int) -> int:
    """Add two integers."""
    return a + b


async def count(to: int, context: Any) -> str:
    """Count, and report each step."""
    for step in range(to):
        await context.report_progress(step + 1, to)
    return "counted"


async def place(
    region: Annotated[str, Field(json_schema_extra={"x-mcp-header": "Region"})] = "eu",
    nearby: Annotated[int, Field(json_schema_extra={"x-mcp-header": "Nearby"})] = 0,
) -> str:
    """Name a place."""
    return f"{region} {nearby}"


def note() -> str:
    """The one resource."""
    return "a note"


def question(about: str) -> str:
    """The one prompt."""
    return f"What is {about}?"


count.__annotations__["context"] = Context  # by which the SDKs know the argument
server.tool()(add)
server.tool()(count)
if "mirrored" in sys.argv:
    server.tool()(place)
server.resource("lab://note")(note)
server.prompt()(question)


def app(transport: str) -> Any:
    """Return the web application, which fastmcp makes with one function for both transports."""
    if hasattr(server, "http_app"):
        return server.http_app(transport=transport)
    return server.sse_app() if transport == "sse" else server.streamable_http_app()


def main(_package: str, transport: str, *_options: str) -> None:
    """Run on the transport that the command line names."""
    if transport == "stdio":
        server.run("stdio")
        return
    listener = socket.create_server(("127.0.0.1", 0))
    print(listener.getsockname()[1], flush=True)
    uvicorn.Server(uvicorn.Config(app(transport), log_level="warning")).run(sockets=[listener])


if __name__ == "__main__":
    main(*sys.argv[1:])

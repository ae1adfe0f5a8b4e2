"""A server on the official Python SDK with one prompt, `code_review`, which wants the code and has two roles.

    promptserver.py stdio
    promptserver.py sse PORT
    promptserver.py http PORT

On PORT 0 a free port is taken; either way it is the first line on standard output.
"""

import prepared  # noqa: F401 - saves the imports that follow

import socket
import sys

import uvicorn
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.prompts.base import AssistantMessage, Message, UserMessage

server = MCPServer("reviewer")


@server.prompt(title="Request Code Review")
def code_review(code: str) -> list[Message]:
    """Ask for the quality of code, and how to improve it."""
    return [UserMessage(f"Please review this Python code:\n{code}"), AssistantMessage("Let me look at it line by line.")]


def main(transport: str, port: str = "0") -> None:
    """Serve; on a socket of the loopback print the port first."""
    if transport == "stdio":
        server.run("stdio")
        return
    listener = socket.create_server(("127.0.0.1", int(port)))
    print(listener.getsockname()[1], flush=True)
    app = server.sse_app() if transport == "sse" else server.streamable_http_app()
    uvicorn.Server(uvicorn.Config(app, log_level="warning")).run(sockets=[listener])


if __name__ == "__main__":
    main(*sys.argv[1:])

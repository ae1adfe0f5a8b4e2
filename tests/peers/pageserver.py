"""An HTTP+SSE server on the official Python SDK with one tool, `fetch`, which answers with a large page.

    pageserver.py PORT

The page is made up, and the same for every address: nothing is fetched. On PORT 0 a free port is taken; either way it is the first
line on standard output.
"""

import socket
import sys

import uvicorn
from mcp.server.mcpserver import MCPServer

PARAGRAPHS = 120

server = MCPServer("fetch")


@server.tool(structured_output=False)
def fetch(url: str) -> str:
    """Fetch a web page."""
    said = "What two sides say to each other, a third can read if it stands between them."
    lines = [f"<p>{number}. {said}</p>" for number in range(PARAGRAPHS)]
    return "\n".join([f'<html lang="en"><head><title>{url}</title></head><body>', *lines, "</body></html>"])


def main(port: str = "0") -> None:
    """Serve on the loopback, and print the port first."""
    listener = socket.create_server(("127.0.0.1", int(port)))
    print(listener.getsockname()[1], flush=True)
    uvicorn.Server(uvicorn.Config(server.sse_app(), log_level="warning")).run(sockets=[listener])


if __name__ == "__main__":
    main(*sys.argv[1:])

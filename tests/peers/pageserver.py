"""An HTTP+SSE server on the official Python SDK with one tool, `fetch`, which answers with a large page.

    pageserver.py PORT [LETTERS]

The page is made up, and as long for every address: nothing is fetched. LETTERS says how long, if that is to be shorter. On PORT 0 a
free port is taken; either way it is the first line on standard output.
"""

import prepared  # noqa: F401 - saves the imports that follow

import socket
import sys

import uvicorn
from mcp.server.mcpserver import MCPServer

LETTERS = 61_514
"""Of the page. The event that holds it is sent in one chunk of 61,629 bytes, 0xf0bd: more than a socket gives at once."""

SAID = "<p>{}. What two sides say to each other, a third can read if it stands between them.</p>"
END = "</body></html>"

letters = int(sys.argv[2]) if len(sys.argv) > 2 else LETTERS

server = MCPServer("fetch")


@server.tool(structured_output=False)
def fetch(url: str) -> str:
    """Fetch a web page."""
    begin = f"<html lang=en><head><title>{url}</title></head><body>"
    paragraphs = "".join(SAID.format(number) for number in range(LETTERS // len(SAID) + 1))
    return (begin + paragraphs)[: letters - len(END)] + END


def main(port: str = "0") -> None:
    """Serve on the loopback, and print the port first."""
    listener = socket.create_server(("127.0.0.1", int(port)))
    print(listener.getsockname()[1], flush=True)
    uvicorn.Server(uvicorn.Config(server.sse_app(), log_level="warning")).run(sockets=[listener])


if __name__ == "__main__":
    main(*sys.argv[1:2])

"""A Streamable HTTP server behind OAuth, on the official Python SDK: 401 and protected-resource metadata, or the token `good`.

    authserver.py PORT [ISSUER]

ISSUER is the URL of an authorization server, which need not exist. On PORT 0 a free port is taken; either way it is the
first line on standard output.
"""

import prepared  # noqa: F401 - saves the imports that follow

import socket
import sys

import uvicorn
from mcp.server.auth.provider import AccessToken, TokenVerifier
from mcp.server.auth.settings import AuthSettings
from mcp.server.mcpserver import MCPServer
from pydantic import AnyHttpUrl

SCOPE = "user"


class OneGoodToken(TokenVerifier):
    """Lets the token `good` in, and no other."""

    async def verify_token(self, token: str) -> AccessToken | None:
        """Return the token's rights, or None."""
        return AccessToken(token=token, client_id="c", scopes=[SCOPE]) if token == "good" else None


def auth_server(port: int, issuer: str) -> MCPServer:
    """Make a server with one tool, whose metadata names its own port."""
    settings = AuthSettings(
        issuer_url=AnyHttpUrl(issuer),
        resource_server_url=AnyHttpUrl(f"http://127.0.0.1:{port}/mcp"),
        required_scopes=[SCOPE],
    )
    server = MCPServer("auth", token_verifier=OneGoodToken(), auth=settings)

    @server.tool()
    def whoami() -> str:
        """Tell the caller who it is."""
        return "me"

    return server


def main(port: str = "0", issuer: str = "http://127.0.0.1:18999") -> None:
    """Serve on the loopback, and print the port first."""
    listener = socket.create_server(("127.0.0.1", int(port)))
    bound = listener.getsockname()[1]
    print(bound, flush=True)
    app = auth_server(bound, issuer).streamable_http_app()
    uvicorn.Server(uvicorn.Config(app, log_level="warning")).run(sockets=[listener])


if __name__ == "__main__":
    main(*sys.argv[1:])

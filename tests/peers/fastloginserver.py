"""A server on fastmcp, of either generation, that logs its clients in itself, or sends them on to another authorization server.

    fastloginserver.py memory|proxy|consent ISSUER

With `memory` it agrees at once, and ISSUER is of no use. `proxy` and `consent` are fastmcp's OAuthProxy: the login leaves for ISSUER
and comes back to the server's own address; `consent` shows a page with a form before that. The port, a free one, is the first line
on standard output.
"""

import prepared  # noqa: F401 - saves the imports that follow

import os
import socket
import sys
from importlib import import_module
from typing import Any

import uvicorn

os.environ["FASTMCP_CHECK_FOR_UPDATES"] = "off"
AUTH = "fastmcp.server.auth"


def provider(mode: str, own: str, issuer: str) -> Any:
    """Return the login of this mode for a server at `own`."""
    if mode == "memory":
        options = import_module(f"{AUTH}.auth").ClientRegistrationOptions(enabled=True)
        return import_module(f"{AUTH}.providers.in_memory").InMemoryOAuthProvider(
            base_url=own, client_registration_options=options
        )
    return import_module(f"{AUTH}.oauth_proxy").OAuthProxy(
        upstream_authorization_endpoint=f"{issuer}/authorize",
        upstream_token_endpoint=f"{issuer}/token",
        upstream_client_id="client-1",
        upstream_client_secret="s" * 40,
        token_verifier=import_module(f"{AUTH}.providers.jwt").StaticTokenVerifier(
            {"good": {"client_id": "client-1", "scopes": []}}
        ),
        base_url=own,
        require_authorization_consent=mode == "consent",
        client_storage=import_module("key_value.aio.stores.memory").MemoryStore(),
    )


def whoami() -> str:
    """Tell the caller who it is."""
    return "me"


def main(mode: str, issuer: str) -> None:
    """Serve on the loopback, and print the port first: the imports of fastmcp print warnings."""
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    print(port, flush=True)
    server = import_module("fastmcp").FastMCP("fastlogin", auth=provider(mode, f"http://127.0.0.1:{port}", issuer))
    server.tool(whoami)
    uvicorn.Server(uvicorn.Config(server.http_app(), log_level="warning")).run(sockets=[listener])


if __name__ == "__main__":
    main(*sys.argv[1:])

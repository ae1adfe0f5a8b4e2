"""An OAuth authorization server that says yes to everybody: metadata, registration, authorization without a page, tokens.

    issuer.py PORT

Whoever asks for authorization is sent back at once with a code, and whoever brings a code gets the token `good`, for any resource.
On PORT 0 a free port is taken; either way it is the first line on standard output; then follows a line of JSON for each request:
`{"method", "path", "resource"}`, the last being what the client asks a token for.
"""

import prepared  # noqa: F401 - saves the imports that follow

import json
import socket
import sys
from urllib.parse import urlencode

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

SCOPE = "user"


def log(request: Request, resource: str | None = None) -> None:
    print(json.dumps({"method": request.method, "path": request.url.path, "resource": resource}), flush=True)


async def metadata(request: Request) -> Response:
    """Answer with the metadata that a client needs (RFC 8414)."""
    log(request)
    issuer = str(request.base_url)
    return JSONResponse(
        {
            "issuer": issuer,
            "authorization_endpoint": f"{issuer}authorize",
            "token_endpoint": f"{issuer}token",
            "registration_endpoint": f"{issuer}register",
            "scopes_supported": [SCOPE],
            "response_types_supported": ["code"],
            "grant_types_supported": ["authorization_code"],
            "token_endpoint_auth_methods_supported": ["none"],
            "code_challenge_methods_supported": ["S256"],
        }
    )


async def register(request: Request) -> Response:
    """Give the client an id (RFC 7591)."""
    log(request)
    return JSONResponse({**await request.json(), "client_id": "client-1", "token_endpoint_auth_method": "none"}, 201)


async def authorize(request: Request) -> Response:
    """Send the user back with a code, as if they had agreed."""
    query = request.query_params
    log(request, query.get("resource"))
    return RedirectResponse(f"{query['redirect_uri']}?{urlencode({'code': 'code-1', 'state': query['state']})}", 302)


async def token(request: Request) -> Response:
    """Give the token for a code."""
    form = await request.form()
    log(request, str(form.get("resource")))
    return JSONResponse({"access_token": "good", "token_type": "Bearer", "expires_in": 3600, "scope": SCOPE})


ROUTES = [
    Route("/.well-known/oauth-authorization-server", metadata),
    Route("/register", register, methods=["POST"]),
    Route("/authorize", authorize),
    Route("/token", token, methods=["POST"]),
]


def main(port: str = "0") -> None:
    """Serve on the loopback, and print the port first."""
    listener = socket.create_server(("127.0.0.1", int(port)))
    print(listener.getsockname()[1], flush=True)
    uvicorn.Server(uvicorn.Config(Starlette(routes=ROUTES), log_level="warning")).run(sockets=[listener])


if __name__ == "__main__":
    main(*sys.argv[1:])

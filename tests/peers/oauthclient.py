"""An MCP client on the official Python SDK that asks its user for permission where a server wants it; the user always agrees.

    oauthclient.py MODE URL

It calls the tool `whoami` and prints what came of it. It keeps tokens in memory, and goes where the authorization server sends its
user by itself. MODE and URL are those of stepclient.py.
"""

import prepared  # noqa: F401 - saves the imports that follow

import asyncio
import sys
from urllib.parse import parse_qs, urlsplit

import httpx2
from mcp import Client
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthToken
from pydantic import AnyUrl

CALLBACK = "http://127.0.0.1:9/callback"
"""URL to which the user is sent back; nobody listens there, and nobody needs to."""


class Memory:
    """The SDK's `TokenStorage`."""

    def __init__(self) -> None:
        self._tokens: OAuthToken | None = None
        self._client: OAuthClientInformationFull | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self._tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self._tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self._client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self._client = client_info


class User:
    """Opens the page of the authorization server, and says where it led."""

    def __init__(self) -> None:
        self._sent_to = ""

    async def open(self, url: str) -> None:
        async with httpx2.AsyncClient() as browser:
            self._sent_to = (await browser.get(url)).headers["location"]

    async def callback(self) -> AuthorizationCodeResult:
        query = parse_qs(urlsplit(self._sent_to).query)
        return AuthorizationCodeResult(code=query["code"][0], state=query["state"][0])


async def main(mode: str, url: str) -> None:
    """Connect, and call the tool."""
    user = User()
    metadata = OAuthClientMetadata(
        client_name="oauthclient", redirect_uris=[AnyUrl(CALLBACK)], token_endpoint_auth_method="none"
    )
    provider = OAuthClientProvider(url, metadata, Memory(), user.open, user.callback)
    async with create_mcp_http_client(auth=provider) as http:
        server = sse_client(url, auth=provider) if url.endswith("/sse") else streamable_http_client(url, http_client=http)
        async with Client(server, mode=mode) as client:
            print((await client.call_tool("whoami", {})).structured_content)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))

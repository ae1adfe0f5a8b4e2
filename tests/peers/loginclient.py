"""An MCP client that logs in where a server wants it, on any generation of the Python SDK; its user always agrees.

    loginclient.py URL

It prints the text that the tool `whoami` answers with, or the error that ended it.
"""

import prepared  # noqa: F401 - saves the imports that follow

import asyncio
import importlib
import sys
from http.client import HTTPMessage
from typing import IO, Any
from urllib.parse import parse_qs, urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

import mcp
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthToken
from pydantic import AnyUrl

CALLBACK = "http://127.0.0.1:9/callback"


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


class Browser(HTTPRedirectHandler):
    """A browser that follows redirects, and keeps that to the callback instead of following it."""

    sent_to = ""

    def redirect_request(
        self, req: Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> Request | None:
        if newurl.startswith(CALLBACK):
            self.sent_to = newurl
            return None
        return super().redirect_request(req, fp, code, msg, headers, newurl)

    async def open(self, url: str) -> None:
        await asyncio.to_thread(self._open, url)

    def _open(self, url: str) -> None:
        try:
            build_opener(self).open(url)
        except OSError:
            pass  # the redirect that is not followed

    async def callback(self) -> Any:
        query = {name: values[0] for name, values in parse_qs(urlsplit(self.sent_to).query).items()}
        if not hasattr(mcp, "Client"):
            return query["code"], query["state"]
        results = importlib.import_module("mcp.client.auth")
        return results.AuthorizationCodeResult(code=query["code"], state=query["state"], iss=query.get("iss"))


async def called(url: str) -> str:
    """Log in, and call the tool."""
    browser = Browser()
    metadata = OAuthClientMetadata(
        client_name="loginclient", redirect_uris=[AnyUrl(CALLBACK)], token_endpoint_auth_method="none"
    )
    provider = OAuthClientProvider(url, metadata, Memory(), browser.open, browser.callback)
    async with create_mcp_http_client(auth=provider) as http:
        connection: Any = streamable_http_client(url, http_client=http)
        if hasattr(mcp, "Client"):
            async with mcp.Client(connection) as client:
                return text_of(await client.call_tool("whoami", {}))
        async with connection as (read, write, *_), mcp.ClientSession(read, write) as session:
            await session.initialize()
            return text_of(await session.call_tool("whoami", {}))


def text_of(result: Any) -> str:
    """Return the first text of a result."""
    return str(result.content[0].text)


def innermost(error: BaseException) -> BaseException:
    """Return the error at the end of groups and causes."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


try:
    print(asyncio.run(called(sys.argv[1])))
except Exception as error:  # noqa: BLE001  # it is what the test compares
    print(type(innermost(error)).__name__, innermost(error))

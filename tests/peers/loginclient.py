"""An MCP client that logs in where a server wants it, on any generation of the Python SDK or of fastmcp; its user always agrees.

    loginclient.py MODE URL

It prints the text that the tool `whoami` answers with, or the error that ended it. MODE is `fastmcp`, or one of stepclient.py, which
the first generation ignores. It keeps tokens in memory.
"""

import prepared  # noqa: F401 - saves the imports that follow

import asyncio
import importlib
import re
import sys
from html import unescape
from http.client import HTTPMessage
from typing import IO, Any
from urllib.parse import parse_qs, urlencode, urljoin, urlsplit
from urllib.request import HTTPCookieProcessor, HTTPRedirectHandler, Request, build_opener

import mcp
from mcp.client.auth import OAuthClientProvider
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


class Browser(HTTPRedirectHandler):
    """A browser that follows redirects, keeps cookies and approves of forms. It keeps the redirect to a callback instead."""

    sent_to = ""

    def redirect_request(
        self, req: Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> Request | None:
        if urlsplit(newurl).path == urlsplit(CALLBACK).path:
            self.sent_to = newurl
            return None
        return super().redirect_request(req, fp, code, msg, headers, newurl)

    async def open(self, url: str) -> None:
        await asyncio.to_thread(self._open, url)

    def _open(self, url: str) -> None:
        opener = build_opener(self, HTTPCookieProcessor())
        try:
            with opener.open(url) as response:
                page, place = response.read().decode(), response.url
            fields = re.findall(r'<input[^>]* name="([^"]*)" value="([^"]*)"', page)
            action = re.search(r'<form[^>]* action="([^"]*)"', page)
            form = urlencode([*((unescape(name), unescape(value)) for name, value in fields), ("action", "approve")])
            opener.open(urljoin(place, unescape(action[1]) if action else ""), form.encode()).close()
        except OSError as error:
            if not self.sent_to:
                raise RuntimeError(f"the login ended at {error}") from error

    async def callback(self) -> Any:
        query = {name: values[0] for name, values in parse_qs(urlsplit(self.sent_to).query).items()}
        if "code" not in query:
            raise RuntimeError(query.get("error"))
        if not hasattr(mcp, "Client"):
            return query["code"], query["state"]
        results = importlib.import_module("mcp.client.auth")
        return results.AuthorizationCodeResult(code=query["code"], state=query["state"], iss=query.get("iss"))


async def called(mode: str, url: str) -> str:
    """Log in, and call the tool."""
    browser = Browser()
    if mode == "fastmcp":
        return await called_by_fastmcp(url, browser)
    metadata = OAuthClientMetadata(
        client_name="loginclient", redirect_uris=[AnyUrl(CALLBACK)], token_endpoint_auth_method="none"
    )
    provider = OAuthClientProvider(url, metadata, Memory(), browser.open, browser.callback)
    async with create_mcp_http_client(auth=provider) as http:
        is_sse = url.endswith("/sse")
        connection: Any = sse_client(url, auth=provider) if is_sse else streamable_http_client(url, http_client=http)
        if hasattr(mcp, "Client"):
            async with mcp.Client(connection, mode=mode) as client:
                return text_of(await client.call_tool("whoami", {}))
        async with connection as (read, write, *_), mcp.ClientSession(read, write) as session:
            await session.initialize()
            return text_of(await session.call_tool("whoami", {}))


async def called_by_fastmcp(url: str, browser: Browser) -> str:
    """Log in with fastmcp's own provider, whose browser and callback are replaced."""
    oauth = importlib.import_module("fastmcp.client.auth").OAuth(url, client_name="loginclient")
    oauth.context.redirect_handler, oauth.context.callback_handler = browser.open, browser.callback
    async with importlib.import_module("fastmcp").Client(url, auth=oauth) as client:
        return text_of(await client.call_tool("whoami", {}))


def text_of(result: Any) -> str:
    """Return the first text of a result."""
    return str(result.content[0].text)


def innermost(error: BaseException) -> BaseException:
    """Return the error at the end of groups and causes."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


try:
    print(asyncio.run(called(*sys.argv[1:])))
except Exception as error:  # noqa: BLE001  # it is what the test compares
    print(type(innermost(error)).__name__, innermost(error))

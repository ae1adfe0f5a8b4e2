"""A client of a live server over HTTP whose transport is not known: Streamable HTTP, or HTTP+SSE if the server refuses that.

Source: MCP specification 2025-11-25, basic/transports, "Backwards Compatibility": POST `initialize`, and where that is answered with
400, 404 or 405, GET the stream of HTTP+SSE. It is the only message that is ever sent twice, and the server has not processed it.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Final, Unpack

from ...errors import UpstreamError
from ...transcript.mcp.methods import INITIALIZE
from ..http.recorder import Numbers
from .http import HttpOptions
from .protocol import Failure, ServerListener, UpstreamClient
from .sse import SseClient
from .streamable import StreamableClient

REFUSALS: Final = (400, 404, 405)
"""The statuses with which a server of HTTP+SSE answers a POST to the address of its stream."""


class ProbingClient:
    """A client of the server at `url`, of whichever transport it speaks. The parameters are those of `StreamableClient`."""

    def __init__(self, url: str, *, listener: ServerListener, listen: bool = True, **options: Unpack[HttpOptions]) -> None:
        options["numbers"] = Numbers()
        self._listener = listener
        self._streamable = StreamableClient(url, listener=self, listen=listen, **options)
        self._sse = SseClient(url, listener=listener, **options)
        self._client: UpstreamClient = self._streamable
        self._opening = b""
        """The first message, as long as it may be refused."""
        self._has_begun = False
        self._change: asyncio.Task[None] | None = None

    async def start(self) -> None:
        await self._streamable.start()

    async def send(self, data: bytes) -> None:
        if self._change is not None:
            await asyncio.wait([self._change])
        if not self._has_begun:
            self._has_begun, self._opening = True, data
        await self._client.send(data)

    async def cancel(self, id: str) -> None:
        await self._client.cancel(id)

    def hold(self, *, holds: bool) -> None:
        self._client.hold(holds=holds)

    async def close(self) -> None:
        if self._change is not None:
            self._change.cancel()
            await asyncio.wait([self._change])
        await self._client.close()

    # Called by the client of Streamable HTTP

    def on_message(self, data: bytes, about: str | None) -> None:
        self._opening = b""
        self._listener.on_message(data, about)

    def on_failed(self, failure: Failure) -> None:
        """Change to HTTP+SSE if the server refused the opening; report any other failure."""
        if self._opening and failure.method == INITIALIZE and failure.status in REFUSALS:
            opening, self._opening = self._opening, b""
            self._change = asyncio.get_running_loop().create_task(self._change_to_sse(opening, failure))
        else:
            self._listener.on_failed(failure)

    def on_lost(self, why: str) -> None:
        self._listener.on_lost(why)

    def on_stderr(self, data: bytes) -> None:
        """Do nothing: no process is started."""

    async def _change_to_sse(self, opening: bytes, failure: Failure) -> None:
        await self._streamable.close()
        self._client = self._sse
        try:
            await self._sse.start()
        except UpstreamError as error:
            self._listener.on_failed(replace(failure, why=f"{failure.why}; and over HTTP+SSE {error.reason}"))
        else:
            await self._sse.send(opening)

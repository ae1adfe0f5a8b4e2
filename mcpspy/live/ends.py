"""asyncio's ends of a link: what the event loop calls when bytes come, buffers fill and connections are lost.

Refuses to decide anything: every call is passed on to the link.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .http import HttpTap
    from .link import Link


class ClientEnd(asyncio.Protocol):
    """asyncio's end of a client connection."""

    __slots__ = ("_tap", "link")

    def __init__(self, tap: HttpTap) -> None:
        self._tap = tap
        self.link: Link | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.link = self._tap.entered(transport)

    def data_received(self, data: bytes) -> None:
        assert self.link is not None
        self.link.client_data(data)

    def connection_lost(self, exc: Exception | None) -> None:
        if self.link is not None:
            self.link.client_lost(exc)

    def pause_writing(self) -> None:
        if self.link is not None:
            self.link.pause_server()

    def resume_writing(self) -> None:
        if self.link is not None:
            self.link.resume_server()


class ServerEnd(asyncio.Protocol):
    """asyncio's end of an upstream connection."""

    __slots__ = ("_link",)

    def __init__(self, link: Link) -> None:
        self._link = link

    def data_received(self, data: bytes) -> None:
        self._link.server_data(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self._link.server_lost(exc)

    def pause_writing(self) -> None:
        self._link.pause_client()

    def resume_writing(self) -> None:
        self._link.resume_client()


def close_by_reset(transport: asyncio.Transport) -> None:
    """Close a connection by a reset, behind what is still to be sent."""
    own = transport.get_extra_info("socket")
    own.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    transport.close()

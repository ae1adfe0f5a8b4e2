"""Requests to a live server over HTTP, each on a connection of its own.

So nothing is sent twice: on a connection that was kept, nobody could tell whether the server got the request before it closed.
Redirects, cookies, compression and proxies are left to the caller.
"""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from ...errors import UpstreamError
from ...records import Note
from ...wire.http_fields import with_value
from ..http.listener import after_origin, origin
from ..http.recorder import Numbers
from .transaction import OutgoingRequest

if TYPE_CHECKING:
    from ...records import Sink
    from .transaction import Receiver

CONNECT_S = 30.0
"""How long a server may take to accept a connection, including its name and its TLS."""

FRESH_S = 1.0
"""How long the connection made by `reach` may wait for the first request."""


class UnreachableError(Exception):
    """No connection could be made; the message gives the reason, as a phrase."""


class HttpTransport:
    """The server at `url`, how to connect to it, and the sink for its records.

    `headers` are put into every request, in place of fields of the same names. `numbers` may be shared within a capture.
    """

    def __init__(
        self,
        url: str,
        *,
        sink: Sink,
        now_ns: Callable[[], int],
        headers: Sequence[tuple[bytes, bytes]] = (),
        tls: ssl.SSLContext | None = None,
        numbers: Numbers | None = None,
    ) -> None:
        server = origin(url)
        if server is None:
            raise UpstreamError(
                url, "this is not the URL of a server", "It begins with http:// or https://, then comes the host"
            )
        self.url = url
        self.origin = server
        self.target = target_of(url)
        self.sink = sink
        self.now_ns = now_ns
        self.numbers = numbers or Numbers()
        self._headers = tuple(headers)
        self._tls = tls or ssl.create_default_context() if server.scheme == "https" else None
        self._held: tuple[asyncio.Transport, float] | None = None
        self._has_noted_tls = False
        self.holds = False
        self.open: set[OutgoingRequest] = set()
        """The requests under way."""

    async def reach(self) -> None:
        """Connect to the server, and keep the connection for the next request. Raises: UpstreamError: if it cannot be reached."""
        try:
            transport = await self.connect(asyncio.Protocol)
        except UnreachableError as error:
            raise UpstreamError(
                self.url, f"it cannot be reached: {error}", "Is the server running, and is this its address?"
            ) from error
        self._held = transport, asyncio.get_running_loop().time()

    async def ask(
        self,
        method: str,
        fields: Sequence[tuple[bytes, bytes]],
        body: bytes,
        receiver: Receiver,
        *,
        target: str = "",
    ) -> OutgoingRequest:
        """Send a request, once. Raises: UnreachableError: if nothing was sent."""
        first_lines = f"{method} {target or self.target} HTTP/1.1\r\nHost: {self.origin.host_field}\r\n"
        head = b"".join(
            [first_lines.encode(), b"User-Agent: mcpspy\r\n", *(b"%b: %b\r\n" % field for field in fields), b"\r\n"]
        )
        for name, value in self._headers:
            head = with_value(head, name, value)
        request = OutgoingRequest(self, method, head, body, receiver)
        held, self._held = self._held, None
        if held is not None and not held[0].is_closing() and asyncio.get_running_loop().time() - held[1] < FRESH_S:
            held[0].set_protocol(request)
            request.connection_made(held[0])
        else:
            if held is not None:
                held[0].abort()
            await self.connect(lambda: request)
        return request

    def hold(self, *, holds: bool) -> None:
        """Stop reading all responses, or go on."""
        self.holds = holds
        for request in self.open:
            request.hold(holds=holds)

    def close(self) -> None:
        """Leave everything under way."""
        for request in list(self.open):
            request.leave()
        if self._held is not None:
            self._held[0].abort()
            self._held = None

    async def connect(self, make: Callable[[], asyncio.Protocol]) -> asyncio.Transport:
        """Connect to the first of the server's addresses that accepts. Raises: UnreachableError."""
        host, port = self.origin.authority.host, self.origin.authority.port
        loop = asyncio.get_running_loop()
        reasons: list[str] = []
        try:
            async with asyncio.timeout(CONNECT_S):
                infos = await loop.getaddrinfo(host, port, type=1)
                for address in dict.fromkeys(str(info[4][0]) for info in infos):
                    name = host if self._tls is not None else None
                    try:
                        transport, _ = await loop.create_connection(make, address, port, ssl=self._tls, server_hostname=name)
                    except OSError as error:
                        reasons.append(_reason(error))
                    else:
                        self._note_tls(transport)
                        return transport
        except TimeoutError:
            reasons.append(f"no connection within {CONNECT_S:.0f} s")
        except (OSError, UnicodeError) as error:  # from the name
            reasons.append(_reason(error))
        raise UnreachableError("; ".join(dict.fromkeys(reasons)))

    def _note_tls(self, transport: asyncio.Transport) -> None:
        tls = transport.get_extra_info("ssl_object")
        if tls is not None and not self._has_noted_tls:
            self._has_noted_tls = True
            cipher = tls.cipher()
            self.sink(
                (Note(at_ns=self.now_ns(), topic="tls", text=f"{tls.version()}, {cipher[0] if cipher else 'no cipher'}"),)
            )


def target_of(url: str) -> str:
    """Return path and query of a URL, as a request line has them."""
    path = after_origin(url).partition("#")[0]
    return path if path.startswith("/") else f"/{path}"


def _reason(error: Exception) -> str:
    """Say why no connection could be made, in the system's words."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return error.verify_message
    if isinstance(error, ssl.SSLError):
        return error.reason or str(error)
    code = error.errno if isinstance(error, OSError) else None
    with suppress(ValueError, OverflowError):
        if code is not None and code > 0:
            return os.strerror(code)
    return getattr(error, "strerror", None) or str(error)

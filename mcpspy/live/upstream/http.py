"""The way to a live server over HTTP: each request goes on a connection of its own.

So nothing can be sent twice: a connection that was kept could turn out to be closed, and to whom then belongs the request? Refuses
redirects, cookies, compression and proxies: whoever asks decides what follows from a response.
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
"""How long a server may take to accept a connection, its name and its TLS included."""

FRESH_S = 1.0
"""So long the connection by which a server was reached may wait for the first request."""


class UnreachableError(Exception):
    """No connection could be made; the message says why, in a phrase."""


class HttpTransport:
    """The way to the server at `url`: where it is, how it is spoken to, and what is recorded of it.

    `headers` are put into every request, in place of what stands there. `numbers` may be shared by all that goes into one capture.
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
        found = origin(url)
        if found is None:
            raise UpstreamError(
                url, "this is not the URL of a server", "It begins with http:// or https://, then comes the host"
            )
        self.url = url
        self.origin = found
        self.target = target_of(url)
        self.sink = sink
        self.now_ns = now_ns
        self.numbers = numbers or Numbers()
        self._headers = tuple(headers)
        self._tls = tls or ssl.create_default_context() if found.scheme == "https" else None
        self._held: tuple[asyncio.Transport, float] | None = None
        self._has_told_tls = False
        self.holds = False
        self.open: set[OutgoingRequest] = set()
        """What is under way."""

    async def reach(self) -> None:
        """See whether the server can be reached; the connection is kept for what is asked next. Raises: UpstreamError."""
        try:
            transport = await self.connected(asyncio.Protocol)
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
        begun = f"{method} {target or self.target} HTTP/1.1\r\nHost: {self.origin.host_field}\r\n"
        head = b"".join([begun.encode(), b"User-Agent: mcpspy\r\n", *(b"%b: %b\r\n" % field for field in fields), b"\r\n"])
        for name, value in self._headers:
            head = with_value(head, name, value)
        transaction = OutgoingRequest(self, method, head, body, receiver)
        held, self._held = self._held, None
        if held is not None and not held[0].is_closing() and asyncio.get_running_loop().time() - held[1] < FRESH_S:
            held[0].set_protocol(transaction)
            transaction.connection_made(held[0])
        else:
            if held is not None:
                held[0].abort()
            await self.connected(lambda: transaction)
        return transaction

    def hold(self, *, holds: bool) -> None:
        """Read nothing more of any response, or read on."""
        self.holds = holds
        for transaction in self.open:
            transaction.hold(holds=holds)

    def close(self) -> None:
        """Leave whatever is under way."""
        for transaction in list(self.open):
            transaction.leave()
        if self._held is not None:
            self._held[0].abort()
            self._held = None

    async def connected(self, make: Callable[[], asyncio.Protocol]) -> asyncio.Transport:
        """A connection, to the first of the server's addresses that accepts one."""
        host, port = self.origin.authority.host, self.origin.authority.port
        loop = asyncio.get_running_loop()
        reasons: list[str] = []
        try:
            async with asyncio.timeout(CONNECT_S):
                found = await loop.getaddrinfo(host, port, type=1)
                for address in dict.fromkeys(str(one[4][0]) for one in found):
                    name = host if self._tls is not None else None
                    try:
                        transport, _ = await loop.create_connection(make, address, port, ssl=self._tls, server_hostname=name)
                    except OSError as error:
                        reasons.append(_reason(error))
                    else:
                        self._tell_tls(transport)
                        return transport
        except TimeoutError:
            reasons.append(f"no connection within {CONNECT_S:.0f} s")
        except (OSError, UnicodeError) as error:  # of the name
            reasons.append(_reason(error))
        raise UnreachableError("; ".join(dict.fromkeys(reasons)))

    def _tell_tls(self, transport: asyncio.Transport) -> None:
        tls = transport.get_extra_info("ssl_object")
        if tls is not None and not self._has_told_tls:
            self._has_told_tls = True
            cipher = tls.cipher()
            self.sink(
                (Note(at_ns=self.now_ns(), topic="tls", text=f"{tls.version()}, {cipher[0] if cipher else 'no cipher'}"),)
            )


def target_of(url: str) -> str:
    """What a request line says for this URL."""
    path = after_origin(url).partition("#")[0]
    return path if path.startswith("/") else f"/{path}"


def _reason(error: Exception) -> str:
    """Why no connection could be made, in the system's words."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return error.verify_message
    if isinstance(error, ssl.SSLError):
        return error.reason or str(error)
    code = error.errno if isinstance(error, OSError) else None
    with suppress(ValueError, OverflowError):
        if code is not None and code > 0:
            return os.strerror(code)
    return getattr(error, "strerror", None) or str(error)

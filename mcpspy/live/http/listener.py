"""Addresses as URLs and header fields spell them, the sockets at which clients are let in, and the check of who may come in.

A name is loopback only if it says so itself: nothing is resolved, or a page in a browser could make any name loopback.

The check looks at a request's head before anything is forwarded, for a tap or a mock. The tap writes the upstream's own name
into Host and Origin, which disarms the upstream's defence against DNS rebinding: a page in a browser could reach a server on
this machine through us. So the tap enforces that defence itself.
"""

from __future__ import annotations

import errno
import socket
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from http import HTTPStatus
from ipaddress import ip_address

from ...errors import TapError
from ...platform.sockets import claim
from ...wire.http_head import RequestHead
from ...wire.login import is_local

DEFAULT_PORTS = {"http": 80, "https": 443}

BACKLOG = 1024

REST_S = 1.0
"""Time without accepting connections after descriptors or memory have run out."""

_EXHAUSTED = (errno.EMFILE, getattr(errno, "WSAEMFILE", errno.EMFILE), errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)

MAX_KNOWN = 256

_DOCUMENT = (b"navigate", b"document")
"""Sec-Fetch-Mode and Sec-Fetch-Dest of a link that is followed, or an address that is typed."""

_OWN_ORIGIN = (b"none", b"same-origin")
_OWN_SITES = (*_OWN_ORIGIN, b"same-site")
"""The values of Sec-Fetch-Site that are let in. On a loopback name, a page of the same site is of this machine; on another name it
may be somebody else's."""


@dataclass(frozen=True, slots=True)
class Authority:
    """A host, lower-case and without brackets, and a port."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def is_loopback(self) -> bool:
        """True for localhost, 127.0.0.0/8 and ::1; no name is resolved."""
        if self.host == "localhost":
            return True
        try:
            return ip_address(self.host).is_loopback
        except ValueError:
            return False

    @property
    def is_local(self) -> bool:
        """True for loopback names, and for 0.0.0.0 and ::, at which a server listens on all interfaces."""
        return is_local(self.host)


@dataclass(frozen=True, slots=True)
class HttpOrigin:
    """Scheme, host and port, which browsers and SDKs compare."""

    scheme: str
    authority: Authority

    def __str__(self) -> str:
        """Write it as in an Origin field: without a port that the scheme implies."""
        if self.authority.port == DEFAULT_PORTS.get(self.scheme):
            return f"{self.scheme}://{self.host_field}"
        return f"{self.scheme}://{self.authority}"

    @property
    def host_field(self) -> str:
        """The value of a Host field."""
        if self.authority.port == DEFAULT_PORTS.get(self.scheme):
            return f"[{self.authority.host}]" if ":" in self.authority.host else self.authority.host
        return str(self.authority)


def authority(text: str, *, scheme: str = "http") -> Authority | None:
    """Parse `host`, `host:port` or `[v6]:port`. None for anything else, and for text with userinfo."""
    host, colon, port = text, "", ""
    if text.startswith("["):
        host, closed, rest = text[1:].partition("]")
        if not closed or (rest and not rest.startswith(":")):
            return None
        colon, port = rest[:1], rest[1:]
        if not _is_v6(host):
            return None
    elif text.count(":") == 1:
        host, colon, port = text.partition(":")
    host = host.lower().removesuffix(".")
    if not host or (colon and not port) or not _is_host(host):
        return None
    if not colon:
        return Authority(host, DEFAULT_PORTS.get(scheme, 0))
    if not (port.isascii() and port.isdecimal() and len(port) <= 5 and int(port) <= 65535):
        return None
    return Authority(host, int(port))


def origin(text: str) -> HttpOrigin | None:
    """Return the origin of an http or https URL; None for anything else, such as `null`."""
    scheme, mark, rest = text.partition("://")
    scheme = scheme.lower()
    if not mark or scheme not in DEFAULT_PORTS:
        return None
    end = min((at for at in map(rest.find, "/?#") if at >= 0), default=len(rest))
    parsed = authority(rest[:end], scheme=scheme)
    return None if parsed is None else HttpOrigin(scheme, parsed)


def after_origin(url: str) -> str:
    """Return the rest of a URL after its origin: path, query and fragment, unchanged."""
    rest = url.partition("://")[2]
    end = min((at for at in map(rest.find, "/?#") if at >= 0), default=len(rest))
    return rest[end:]


def bound_socket(host: str, port: int) -> socket.socket:
    """Bind a socket to an address; port 0 picks one. Raises: TapError: if it is taken, or not ours."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    claim(listener)
    try:
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        raise TapError(
            "client", f"{Authority(host, port)}: {error.strerror}; name another with --listen, port 0 picks one"
        ) from error
    return listener


def accept_all(
    listener: socket.socket, enter: Callable[[socket.socket], None], has_room: Callable[[], bool] = lambda: True
) -> bool:
    """Accept every client that waits, as long as `has_room`, and call `enter` with each connection, made non-blocking.

    Returns False if there is no room, or descriptors or memory have run out. Then accept nobody for `REST_S`.
    """
    while has_room():
        try:
            client = listener.accept()[0]
        except BlockingIOError:
            return True
        except OSError as error:
            if error.errno in _EXHAUSTED:
                return False
            continue  # the client has left already
        client.setblocking(False)
        enter(client)
    return False


def _is_v6(host: str) -> bool:
    try:
        return ip_address(host).version == 6
    except ValueError:
        return False


def _is_host(host: str) -> bool:
    return _is_v6(host) or all(letter.isalnum() or letter in "-._" for letter in host)


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """The response to a request that is not forwarded: its status and a sentence with the reason."""

    status: int
    reason: str


def refusal_response(refusal: Refusal) -> tuple[bytes, bytes]:
    """Return head and body of the response in mcpspy's own name. No client takes the body for JSON-RPC."""
    body = f"mcpspy: {refusal.reason}\n".encode()
    head = (
        f"HTTP/1.1 {refusal.status} {HTTPStatus(refusal.status).phrase}\r\nContent-Type: text/plain; charset=utf-8\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    return head.encode(), body


class HostCheck:
    """A check that lets in requests whose Host and Origin name this tap: a loopback name with its `port`, or one of `allowed_hosts`.

    `allowed_hosts` are lower-case names without ports. A browser sends no Origin for a page's images, frames and plain GETs; there
    Sec-Fetch-Site says whether the page is foreign (W3C, Fetch Metadata Request Headers). What a person opens is let in, as the last
    step of a login is. The answer for each combination of these fields is kept: parsing them costs 20 µs, and a client sends the same
    ones with every request.
    """

    def __init__(self, port: int, allowed_hosts: frozenset[str] = frozenset()) -> None:
        self._port = port
        self._allowed_hosts = allowed_hosts
        self._judged = lru_cache(MAX_KNOWN)(self._judge)

    def refusal(self, head: RequestHead) -> Refusal | None:
        """Return the refusal of this request; None if it may pass."""
        target = head.target
        if head.method == b"CONNECT":
            return Refusal(status=405, reason="this is a reverse proxy: it opens no tunnels")
        if not target.startswith(b"/"):
            return Refusal(status=400, reason="the request target has to be a path; this is a reverse proxy")
        if target.startswith((b"//", b"/\\")):
            return Refusal(status=400, reason="the request target begins with two slashes")
        if head.lowered.count(b"\r\nhost:") != 1 or head.lowered.count(b"\r\norigin:") > 1:
            return Refusal(status=400, reason="a request has one Host field, and at most one Origin")
        site, page = head.value(b"sec-fetch-site"), head.value(b"origin")
        if head.method == b"GET" and (head.value(b"sec-fetch-mode"), head.value(b"sec-fetch-dest")) == _DOCUMENT:
            site = None
        return self._judged(head.value(b"host"), page, site)

    def _judge(self, host: bytes | None, page: bytes | None, site: bytes | None) -> Refusal | None:
        named = authority((host or b"").decode("latin-1"))
        if named is None:
            return Refusal(status=400, reason="the Host field is no host")
        if not (named.host in self._allowed_hosts or (named.is_loopback and named.port == self._port)):
            reason = f"this is mcpspy on port {self._port} of this machine, not {named}; see --allowed-host"
            return Refusal(status=421, reason=reason)
        if page is None:
            is_foreign = site is not None and site.lower() not in (_OWN_SITES if named.is_loopback else _OWN_ORIGIN)
            return Refusal(status=403, reason="pages of another site may not call here") if is_foreign else None
        origin_of_page = origin(page.decode("latin-1"))
        if origin_of_page is not None:
            from_host = origin_of_page.authority
            if from_host.is_loopback or from_host.host in self._allowed_hosts:
                return None
        return Refusal(status=403, reason="pages of this origin may not call here; see --allowed-host")

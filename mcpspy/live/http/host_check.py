"""The check of a request's head that decides whether an HTTP tap or mock lets it in, before anything is forwarded.

The tap writes the upstream's own name into Host and Origin, which disarms the upstream's defence against DNS rebinding: a page in a
browser could reach a server on this machine through us. So the tap enforces that defence itself. No name is resolved.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from http import HTTPStatus

from ...wire.http_head import RequestHead
from .listener import authority, origin

MAX_KNOWN = 256

_DOCUMENT = (b"navigate", b"document")
"""Sec-Fetch-Mode and Sec-Fetch-Dest of a link that is followed, or an address that is typed."""

_OWN_ORIGIN = (b"none", b"same-origin")
_OWN_SITES = (*_OWN_ORIGIN, b"same-site")
"""The values of Sec-Fetch-Site that are let in. On a loopback name, a page of the same site is of this machine; on another name it
may be somebody else's."""


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

"""The check of a request's head that decides whether an HTTP tap or mock lets it in, before anything is forwarded.

The tap writes the upstream's own name into Host and Origin, which disarms the upstream's defence against DNS rebinding: a page in a
browser could reach a server on this machine through us. So the tap enforces that defence itself. No name is resolved.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from .listener import authority, origin

if TYPE_CHECKING:
    from ...wire.http_head import RequestHead

MAX_KNOWN = 256

REASONS = {
    400: "Bad Request",
    403: "Forbidden",
    405: "Method Not Allowed",
    408: "Request Timeout",
    421: "Misdirected Request",
    502: "Bad Gateway",
    504: "Gateway Timeout",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """The response to a request that is not forwarded: its status and a sentence with the reason."""

    status: int
    reason: str


def refusal_response(refusal: Refusal) -> tuple[bytes, bytes]:
    """Return head and body of the response in mcpspy's own name. No client takes the body for JSON-RPC."""
    body = f"mcpspy: {refusal.reason}\n".encode()
    head = (
        f"HTTP/1.1 {refusal.status} {REASONS[refusal.status]}\r\nContent-Type: text/plain; charset=utf-8\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    return head.encode(), body


class HostCheck:
    """Lets in requests whose Host and Origin name this tap: a loopback name with its `port`, or one of `allowed_hosts`.

    `allowed_hosts` are lower-case names without ports. The answer for each pair of Host and Origin is kept: parsing them costs
    20 µs, and a client sends the same ones with every request.
    """

    __slots__ = ("_allowed_hosts", "_known", "_port")

    def __init__(self, port: int, allowed_hosts: frozenset[str] = frozenset()) -> None:
        self._port = port
        self._allowed_hosts = allowed_hosts
        self._known: dict[tuple[bytes | None, bytes | None], Refusal | None] = {}

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
        names = (head.value(b"host"), head.value(b"origin"))
        if names not in self._known:
            if len(self._known) >= MAX_KNOWN:
                self._known.clear()
            self._known[names] = self._judged(*names)
        return self._known[names]

    def _judged(self, host: bytes | None, page: bytes | None) -> Refusal | None:
        named = authority((host or b"").decode("latin-1"))
        if named is None:
            return Refusal(status=400, reason="the Host field is no host")
        if not (named.host in self._allowed_hosts or (named.is_loopback and named.port == self._port)):
            reason = f"this is mcpspy on port {self._port} of this machine, not {named}; see --allowed-host"
            return Refusal(status=421, reason=reason)
        if page is None:
            return None
        origin_of_page = origin(page.decode("latin-1"))
        if origin_of_page is not None:
            from_host = origin_of_page.authority
            if from_host.is_loopback or from_host.host in self._allowed_hosts:
                return None
        return Refusal(status=403, reason="pages of this origin may not call here; see --allowed-host")

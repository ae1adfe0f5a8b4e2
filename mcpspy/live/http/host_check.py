"""Which requests an HTTP tap lets in: decided on the head, before anything is forwarded.

The tap writes the upstream's own name into Host and Origin, and so disarms the upstream's defence against DNS rebinding: a page in a
browser could reach a server on this machine through us. So the tap enforces that defence itself. Refuses to
look at bodies, and to resolve names.
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
    """Why a request is not forwarded: the status it gets instead, and a sentence."""

    status: int
    reason: str


def injected_response(refusal: Refusal) -> tuple[bytes, bytes]:
    """Head and body of what the client gets instead. The body looks like nothing that a client would take for JSON-RPC."""
    body = f"mcpspy: {refusal.reason}\n".encode()
    head = (
        f"HTTP/1.1 {refusal.status} {REASONS[refusal.status]}\r\nContent-Type: text/plain; charset=utf-8\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    return head.encode(), body


class Gate:
    """Lets in who names this tap, by a loopback name with its `port` or one of `allowed_hosts`, from an origin of that kind.

    `allowed_hosts` are names without ports, lower-case. What Host and Origin say is decided once for each pair: parsing them
    costs 20 µs, and a client sends the same ones with every request.
    """

    __slots__ = ("_allowed_hosts", "_known", "_port")

    def __init__(self, port: int, allowed_hosts: frozenset[str] = frozenset()) -> None:
        self._port = port
        self._allowed_hosts = allowed_hosts
        self._known: dict[tuple[bytes | None, bytes | None], Refusal | None] = {}

    def refusal(self, head: RequestHead) -> Refusal | None:
        """Why this request may not pass; None if it may."""
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

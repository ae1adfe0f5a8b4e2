"""A request and its response in an HTTP tap, and what the tap decides on their heads.

Heads pass unchanged but for the names that `rewriting` changes, the user's extra fields, and compression, which is declined for
responses that may have to be read.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ...wire.http_body import body_framing
from ...wire.http_head import RequestHead, ResponseHead, values, with_mapped_values, with_value, without_field
from .listener import HostCheck, Refusal
from .recorder import StreamRecorder
from .rewriting import Rewriting, path_of

_FORM = b"application/x-www-form-urlencoded"


class RequestPlan:
    """The decisions on a request's head: whether it may pass, the head to forward, and what its response may need.

    A client sends the same head again and again; working this out costs 25 µs, looking it up 0.2.
    """

    __slots__ = (
        "browser_location", "forwarded", "framing", "is_last", "is_login", "is_login_form", "is_metadata", "is_usual_post", "method",
        "proves_address", "refusal", "rewriting", "session", "target", "wants_events",
    )  # fmt: skip

    def __init__(
        self,
        head: RequestHead,
        host_check: HostCheck,
        rewriting: Rewriting,
        extra_fields: Sequence[tuple[bytes, bytes]],
        *,
        speaks_mcp: bool = True,
        declines_compression: bool = False,
    ) -> None:
        is_get = head.method == b"GET" and speaks_mcp
        self.method = head.method
        self.target = head.target
        self.session = head.value(b"mcp-session-id")
        self.rewriting = rewriting
        self.refusal: Refusal | None = host_check.refusal(head)
        self.is_login = path_of(head.target) in rewriting.login_paths
        self.browser_location = rewriting.browser_location(head.target) if is_get else b""
        self.framing = body_framing(head.value(b"content-type"), head.value(b"content-encoding"))
        self.wants_events = is_get and b"text/event-stream" in (head.value(b"accept") or b"")
        self.is_login_form = self.is_login and _is_form(head)
        is_answered_with_names = self.is_login and speaks_mcp and not (self.is_login_form or self.browser_location)
        self.is_metadata = is_answered_with_names or (is_get and rewriting.is_metadata(head.target))
        self.is_usual_post = head.method == b"POST" and not self.is_login
        options = {option.lower() for option in _listed(head.raw, b"connection")}
        self.is_last = b"close" in options or (head.version == b"HTTP/1.0" and b"keep-alive" not in options)
        """True if the connection ends with the response (RFC 9112, section 9.3)."""
        self.proves_address = b"\r\ndpop:" in head.lowered
        self.forwarded = self._forwarded(head, extra_fields, declines_compression=declines_compression)

    def _forwarded(
        self, head: RequestHead, extra_fields: Sequence[tuple[bytes, bytes]], *, declines_compression: bool
    ) -> bytes:
        """Return the head for the upstream, with `extra_fields` in place of the client's, or after them."""
        raw = head.raw
        if self.is_login:
            raw = raw.replace(head.target, self.rewriting.login_target(head.target), 1)
        raw = with_value(raw, b"Host", self.rewriting.upstream.host_field.encode())
        if b"\r\norigin:" in head.lowered:
            raw = with_mapped_values(raw, b"origin", self.rewriting.origin_field)
        if self.wants_events or self.is_metadata or declines_compression:
            raw = with_mapped_values(raw, b"accept-encoding", lambda _: b"identity")
        if b"\r\nupgrade:" in head.lowered:
            raw = _without_http2(raw)
        for name, value in extra_fields:
            raw = with_value(raw, name, value)
        return raw


def _is_form(head: RequestHead) -> bool:
    """Return whether a request has a form that can be read whole before it is sent on."""
    is_plain = not head.value(b"content-encoding") and head.value(b"expect") is None
    media_type = (head.value(b"content-type") or b"").partition(b";")[0].strip().lower()
    return head.method == b"POST" and is_plain and media_type == _FORM and head.ends_by in ("length", "chunks")


def _without_http2(raw: bytes) -> bytes:
    """Leave out the offer to go on with HTTP/2: it is made to the next hop (RFC 9110, section 7.8), and a tap reads HTTP/1.x."""
    offered = _listed(raw, b"upgrade")
    upgrades = [value for value in offered if value.lower() != b"h2c"]
    if len(upgrades) == len(offered):
        return raw
    dropped = (b"http2-settings",) if upgrades else (b"http2-settings", b"upgrade")
    options = [value for value in _listed(raw, b"connection") if value.lower() not in dropped]
    raw = without_field(raw, b"HTTP2-Settings")
    for name, kept in ((b"Upgrade", upgrades), (b"Connection", options)):
        raw = with_value(raw, name, b", ".join(kept)) if kept else without_field(raw, name)
    return raw


def _listed(raw: bytes, name: bytes) -> list[bytes]:
    return [value for item in b",".join(values(raw, name)).split(b",") if (value := item.strip(b" \t"))]


class ResponsePlan:
    """The decisions on a response's head: the head to forward, and how the body is cut.

    `flows` means that the body is a compressed stream of events: it is one frame, and each piece is recorded when it comes.
    """

    __slots__ = ("flows", "forwarded", "framing")

    def __init__(self, head: ResponseHead, rewriting: Rewriting) -> None:
        self.framing = body_framing(head.value(b"content-type"), head.value(b"content-encoding"))
        self.flows = self.framing == "body" and body_framing(head.value(b"content-type")) == "sse"
        raw = head.raw
        if b"\r\nlocation:" in head.lowered:
            raw = with_mapped_values(raw, b"location", rewriting.location)
        if b"\r\nwww-authenticate:" in head.lowered:
            raw = with_mapped_values(raw, b"www-authenticate", rewriting.challenge)
        if b"\r\nlink:" in head.lowered:
            raw = with_mapped_values(raw, b"link", rewriting.link)
        self.forwarded = raw


_ends_login = re.compile(rb"[?&#](?:code|error)=")
"""A redirect that takes a code or an error to the client (RFC 6749, section 4.1.2)."""


def redirected(head: ResponseHead, location: bytes) -> bytes:
    """Return the head that sends a browser to `location` instead; nothing if this one ends the login, or is an error."""
    if head.status // 100 not in (2, 3) or _ends_login.search(head.value(b"location") or b""):
        return b""
    raw = without_field(without_field(head.raw, b"Set-Cookie"), b"Content-Encoding")
    return with_value(b"HTTP/1.1 302 Found" + raw[raw.index(b"\r\n") :], b"Location", location)


class ProxiedTransaction:
    """A request and its response, which is None until its final head has come."""

    __slots__ = ("plan", "number", "request", "response")

    def __init__(self, number: int, plan: RequestPlan, request: StreamRecorder) -> None:
        self.number = number
        self.plan = plan
        self.request = request
        self.response: StreamRecorder | None = None

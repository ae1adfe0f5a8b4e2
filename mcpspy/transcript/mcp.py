"""What MCP's messages are about: the parts of their payloads that a transcript is built on.

Source: MCP specification, every revision from 2024-11-05 to 2026-07-28, schema. Refuses to raise: a payload that is not shaped
as its method wants it is about nothing.
"""

from sys import intern
from typing import Final

from ..wire.slices import Slice, members, string, token
from .mcp_codes import CLIENT_INFO, PROTOCOL_VERSION
from .mcp_methods import CANCELLED, PROGRESS, TARGETS

__all__ = ["CANCELLED", "PROGRESS", "client_name", "is_tool_error", "notification_facts", "request_facts", "revision"]

_MODERN_YEAR: Final = "2026"


def request_facts(method: str, params: Slice) -> tuple[str | None, str | None]:
    """Target and progress token of a request."""
    if not params:
        return None, None
    found = members(params)
    meta = found.get("_meta")
    progress = None if meta is None else members(meta).get("progressToken")
    return _target(method, found), None if progress is None else token(progress)


def notification_facts(method: str, params: Slice) -> tuple[str | None, str | None]:
    """Target of a notification, and the token by which it names a request."""
    if not params:
        return None, None
    found = members(params)
    named = found.get("progressToken" if method == PROGRESS else "requestId") if method in (PROGRESS, CANCELLED) else None
    return _target(method, found), None if named is None else token(named)


def is_tool_error(result: Slice) -> bool:
    """Whether a result says `isError: true`."""
    said = members(result).get("isError")
    return said is not None and bytes(said) == b"true"


def client_name(request: Slice) -> str | None:
    """The client's name for itself: in `initialize` (to 2025-11-25), or in the `_meta` of any request (from 2026-07-28)."""
    found = members(members(request).get("params", b""))
    info = found.get("clientInfo")
    if info is None and "_meta" in found:
        info = members(found["_meta"]).get(CLIENT_INFO)
    name = None if info is None else members(info).get("name")
    return (None if name is None else string(name)) or None


def revision(request: bytes) -> str | None:
    """The revision that a request of the modern era names in its `_meta`; None for all others.

    Source: MCP specification 2026-07-28, basic/versioning.
    """
    if PROTOCOL_VERSION.encode() not in request:
        return None
    named = members(members(members(request).get("params", b"")).get("_meta", b"")).get(PROTOCOL_VERSION)
    said = None if named is None else string(named)
    return said if said is not None and said >= _MODERN_YEAR else None


def _target(method: str, params: dict[str, Slice]) -> str | None:
    if method == "completion/complete" and "ref" in params:
        reference = members(params["ref"])
        value = reference.get("name", reference.get("uri"))
    else:
        member = TARGETS.get(method)
        value = None if member is None else params.get(member)
    text = None if value is None else string(value)
    return None if text is None else intern(text)

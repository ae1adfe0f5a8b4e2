"""What MCP's messages are about: the parts of their payloads that a transcript is built on.

Source: MCP specification, every revision from 2024-11-05 to 2026-07-28, schema. Refuses to raise: a payload that is not shaped
as its method wants it is about nothing.
"""

from sys import intern
from typing import TYPE_CHECKING, Final, TypeAlias

from ...wire.json_spans import Slice, id_key, members, string
from .codes import CLIENT_INFO, PROGRESS_TOKEN, PROTOCOL_VERSION
from .methods import CANCELLED, PROGRESS, TARGETS
from .revisions import Era, era

if TYPE_CHECKING:
    from ..message import Message

__all__ = [
    "CANCELLED", "PROGRESS", "Facts", "client_name", "negotiated", "notification_facts", "request_facts", "result_facts", "revision",
]  # fmt: skip

COMPLETE: Final = "complete"
INPUT_REQUIRED: Final = "input_required"
TASK: Final = "task"
"""What `resultType` says, from 2026-07-28. Absent, it means `complete`; tasks of 2025-11-25 are told by their shape."""
PARTIAL: Final = "partial"
"""Our word for a result with `isComplete: false`, as some servers send them: more of it follows under the same id."""

Facts: TypeAlias = tuple[str | None, str | None, str | None]
"""The target of a message, the id key by which it is found or finds another, and the revision that it names."""


def request_facts(method: str, params: Slice) -> Facts:
    """Target, progress token and revision of a request. Only requests from 2026-07-28 on name one in their `_meta`."""
    if not params:
        return None, None, None
    found = members(params)
    if "_meta" not in found:
        return _target(method, found), None, None
    meta = members(found["_meta"])
    progress = meta.get(PROGRESS_TOKEN)
    said = meta.get(PROTOCOL_VERSION)
    return _target(method, found), None if progress is None else id_key(progress), None if said is None else _shared(said)


def notification_facts(method: str, params: Slice) -> Facts:
    """Target of a notification, the id key by which it names a request, and the revision, which some peers name here too."""
    if not params:
        return None, None, None
    found = members(params)
    named = found.get("progressToken" if method == PROGRESS else "requestId") if method in (PROGRESS, CANCELLED) else None
    said = members(found["_meta"]).get(PROTOCOL_VERSION) if "_meta" in found else None
    return _target(method, found), None if named is None else id_key(named), None if said is None else _shared(said)


def result_facts(result: Slice) -> tuple[bool, str | None]:
    """Whether a result says `isError: true`, and what it is instead of complete: see `Message.result_type`."""
    found = members(result)
    said = found.get("isError")
    is_error = said is not None and bytes(said) == b"true"
    if "resultType" in found:
        named = string(found["resultType"])
        return is_error, None if named is None or named == COMPLETE else intern(named)
    if "task" in found and "taskId" in members(found["task"]):
        return is_error, TASK
    if "isComplete" in found and bytes(found["isComplete"]) == b"false":
        return is_error, PARTIAL
    return is_error, None


def negotiated(response: "Message") -> str | None:
    """The revision that the result of `initialize` names; None for an error."""
    said = members(members(response.raw).get("result", b"")).get("protocolVersion")
    return None if said is None else _shared(said)


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
    return said if said is not None and era(said) is Era.MODERN else None


def _shared(value: Slice) -> str | None:
    """A string that many messages name: one object for all of them."""
    text = string(value)
    return intern(text) if text else None


def _target(method: str, params: dict[str, Slice]) -> str | None:
    if method == "completion/complete" and "ref" in params:
        reference = members(params["ref"])
        value = reference.get("name", reference.get("uri"))
    else:
        member = TARGETS.get(method)
        value = None if member is None else params.get(member)
    text = None if value is None else string(value)
    return None if text is None else intern(text)

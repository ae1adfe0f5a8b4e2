"""Payloads of messages to the fields that a transcript is built on: targets, tokens, revisions, types of results, names of clients.

A payload of another shape than its method wants has no such fields; nothing raises.
Source: MCP specification, every revision from 2024-11-05 to 2026-07-28, schema.
"""

from sys import intern
from typing import Final, TypeAlias

from ...wire.json_spans import Slice, id_key, members, string
from ..message import Message
from .codes import CLIENT_INFO, COMPLETE, PROGRESS_TOKEN, PROTOCOL_VERSION, TASK
from .methods import CANCELLED, PROGRESS, TARGETS
from .revisions import Era, era

PARTIAL: Final = "partial"
"""Our word for a result with `isComplete: false`, which some servers send: another result with the same id follows."""

_ENDS: Final = ("cancelled", "complete", "completed", "done", "error", "failed", "finished", "success", "succeeded")

Fields: TypeAlias = tuple[str | None, str | None, str | None]
"""The target of a message, the id key by which it is found or finds another, and the revision that it names."""


def request_facts(method: str, params: Slice) -> Fields:
    """Return target, progress token and revision of a request. Only requests from 2026-07-28 on name a revision in their `_meta`."""
    if not params:
        return None, None, None
    values = members(params)
    if "_meta" not in values:
        return _target(method, values), None, None
    meta = members(values["_meta"])
    progress = meta.get(PROGRESS_TOKEN)
    revision = meta.get(PROTOCOL_VERSION)
    return (
        _target(method, values),
        None if progress is None else id_key(progress),
        None if revision is None else _shared(revision),
    )


def notification_facts(method: str, params: Slice) -> Fields:
    """Return target of a notification, the id key by which it names a request, and the revision, which some peers name here too."""
    if not params:
        return None, None, None
    values = members(params)
    key = values.get("progressToken" if method == PROGRESS else "requestId") if method in (PROGRESS, CANCELLED) else None
    revision = members(values["_meta"]).get(PROTOCOL_VERSION) if "_meta" in values else None
    return _target(method, values), None if key is None else id_key(key), None if revision is None else _shared(revision)


def result_facts(result: Slice) -> tuple[bool, str | None]:
    """Return whether a result has `isError: true`, and its type if it is not complete: see `Message.result_type`."""
    values = members(result)
    flag = values.get("isError")
    is_error = flag is not None and bytes(flag) == b"true"
    if "resultType" in values:
        name = string(values["resultType"])
        return is_error, None if name is None or name == COMPLETE else intern(name)
    if "task" in values and "taskId" in members(values["task"]):
        return is_error, TASK
    if "isComplete" in values and bytes(values["isComplete"]) == b"false":
        return is_error, PARTIAL
    return is_error, None


def is_progress(message: "Message") -> bool:
    """Return whether a result is progress in the place of an answer: it names how far it is, and that this is not the end."""
    values = members(members(message.raw).get("result", b""))
    if "progress" not in values:
        return False
    status = string(values["status"]) if "status" in values else None
    if (status or "").lower() in _ENDS:
        return False
    progress, total = _number(values["progress"]), _number(values.get("total", b"100"))
    return progress is None or total is None or progress < total


def _number(value: Slice) -> float | None:
    try:
        return float(bytes(value))
    except ValueError:
        return None


def negotiated(response: "Message") -> str | None:
    """Return the revision that the result of `initialize` names; None for an error."""
    revision = members(members(response.raw).get("result", b"")).get("protocolVersion")
    return None if revision is None else _shared(revision)


def code_of(error: "Message") -> str:
    """Return the code of a JSON-RPC error as it was spelled; empty if it has none."""
    return bytes(members(members(error.raw).get("error", b"")).get("code", b"")).decode("utf-8", "replace")


def client_name(request: Slice) -> str | None:
    """Return the name that a client gives itself: in `initialize` (to 2025-11-25), or in `_meta` of any request (from 2026-07-28)."""
    params = members(members(request).get("params", b""))
    info = params.get("clientInfo")
    if info is None and "_meta" in params:
        info = members(params["_meta"]).get(CLIENT_INFO)
    name = None if info is None else members(info).get("name")
    return (None if name is None else string(name)) or None


def revision(request: bytes) -> str | None:
    """Return the revision that a request of the modern era names in its `_meta`; None for other requests.

    Source: MCP specification 2026-07-28, basic/versioning.
    """
    if PROTOCOL_VERSION.encode() not in request:
        return None
    value = members(members(members(request).get("params", b"")).get("_meta", b"")).get(PROTOCOL_VERSION)
    named = None if value is None else string(value)
    return named if named is not None and era(named) is Era.MODERN else None


def _shared(value: Slice) -> str | None:
    """Return the text of a string that many messages have, as one object for all of them."""
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

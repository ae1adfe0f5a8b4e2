"""Names by which messages refer to calls: required input and its retry, tasks, subscriptions, elicitations.

Messages go in, names come out. Payloads are read only of the few messages that are about such things. Nothing raises: a message of
another shape than the specification wants refers to nothing. Source: see `call`.
"""

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from ...wire.json_spans import Slice, id_key, members, string
from ..digests import digest, json_digest
from ..exchange import Exchange
from ..mcp.codes import RELATED_TASK, SUBSCRIPTION_ID, URL_ELICITATION_REQUIRED
from ..message import Message
from .candidates import Name

_NEW_IN_EACH_ROUND: Final = frozenset(("inputResponses", "requestState", "_meta"))
"""Members of `params` that differ between the rounds of one call."""

MAX_DIGITS: Final = 19
"""Digits of the longest time in milliseconds that is read."""


class TaskFacts(NamedTuple):
    """A message's report on a task. `is_error` is that of the result that it brings, if it brings one."""

    id: str
    status: str
    message: str
    ttl_ms: int | None
    poll_interval_ms: int | None
    is_error: bool


def fingerprint(request: Message) -> bytes:
    """Return a digest of `params` without the members that are new in each round: equal for the rounds of one call."""
    params = request.params
    if not isinstance(params, dict):
        return b""
    lasting = {name: value for name, value in params.items() if name not in _NEW_IN_EACH_ROUND}
    return json_digest(lasting) or digest(request.raw)


def required_input(row: Exchange, result: Message) -> Iterable[Name]:
    """Yield the names under which a retry may bring the input that `result` requires (2026-07-28, basic/patterns/mrtr)."""
    content = members(members(result.raw).get("result", b""))
    digest = fingerprint(row.request)
    if "requestState" in content:
        state = id_key(content["requestState"])
        yield "state", row.method, state, digest
        yield "state", row.method, state
    yield "keys", row.method, digest, _keys(content.get("inputRequests"))


def retry(request: Message) -> list[tuple[Name, bool]] | None:
    """Return the names of the call that a request may retry, the surest first; None if it is no retry.

    Each comes with whether it still holds while another retry is under way, which only a state can show.
    """
    params = _params(request)
    if "requestState" in params:
        state = id_key(params["requestState"])
        return [(("state", request.method, state, fingerprint(request)), True), (("state", request.method, state), True)]
    if "inputResponses" in params:
        return [(("keys", request.method, fingerprint(request), _keys(params["inputResponses"])), False)]
    return None


def task_facts(message: Message) -> TaskFacts | None:
    """Return the report of a result or a notification on a task, which it is itself or has as its member `task`."""
    content = members(members(message.raw).get("params" if message.method else "result", b""))
    if "task" in content and "taskId" not in content:
        content = members(content["task"])
    id = _text(content, "taskId")
    if id is None:
        return None
    error = members(content["result"]).get("isError") if "result" in content else None
    return TaskFacts(
        id,
        _text(content, "status") or "",
        _text(content, "statusMessage") or "",
        _milliseconds(content, "ttl", "ttlMs"),
        _milliseconds(content, "pollInterval", "pollIntervalMs"),
        error is not None and bytes(error) == b"true",
    )


def related_task(message: Message) -> str | None:
    """Return the id of the task that a request or a notification belongs to (2025-11-25, basic/utilities/tasks)."""
    meta = members(_params(message).get("_meta", b""))
    return _text(members(meta[RELATED_TASK]), "taskId") if RELATED_TASK in meta else None


def subscription(notification: Message) -> str | None:
    """Return the id key of the request that subscribed to a notification (2026-07-28, basic/patterns/subscriptions)."""
    id = members(_params(notification).get("_meta", b"")).get(SUBSCRIPTION_ID)
    return None if id is None else id_key(id)


def elicitation(message: Message) -> str | None:
    """Return the id of the elicitation that a request or a notification is about (2025-11-25, client/elicitation)."""
    return _text(_params(message), "elicitationId") if b"elicitationId" in message.raw else None


def elicitations(error: Message) -> list[str]:
    """Return the ids of the elicitations that an error sends the user to; empty for other errors."""
    content: Any = error.error
    if not isinstance(content, dict) or content.get("code") != URL_ELICITATION_REQUIRED:
        return []
    data = content.get("data")
    listed = data.get("elicitations") if isinstance(data, dict) else None
    ids = [item.get("elicitationId") for item in listed if isinstance(item, dict)] if isinstance(listed, list) else []
    return [id for id in ids if isinstance(id, str)]


def _params(message: Message) -> dict[str, Slice]:
    return members(members(message.raw).get("params", b""))


def _keys(value: Slice | None) -> tuple[str, ...]:
    return () if value is None else tuple(sorted(members(value)))


def _text(content: dict[str, Slice], name: str) -> str | None:
    return string(content[name]) if name in content else None


def _milliseconds(content: dict[str, Slice], *names: str) -> int | None:
    digits = next((bytes(content[name]) for name in names if name in content), b"")
    return int(digits) if digits.isdigit() and len(digits) <= MAX_DIGITS else None

"""What messages call things by: the input that a result requires and a retry brings, tasks, subscriptions, elicitations.

Refuses to raise and to join: a message that is not shaped as the specification wants it names nothing. Reads payloads only of the
few messages that are about such things. Source: see `call`.
"""

from __future__ import annotations

import json
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ...wire.json_spans import Slice, id_key, members, string
from ..mcp.codes import RELATED_TASK, SUBSCRIPTION_ID, URL_ELICITATION_REQUIRED
from ..mcp.methods import METHODS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..model import Exchange, Message
    from .candidates import Name

MAY_NEED_INPUT: Final = frozenset(one.name for one in METHODS if one.may_need_input)

_ANEW: Final = frozenset(("inputResponses", "requestState", "_meta"))
"""Members of `params` that are not what a request asks for."""


MAX_DIGITS: Final = 19
"""More milliseconds than that nobody waits for."""


class TaskFacts(NamedTuple):
    """What a message says of a task. `is_error` is of the result that it brings, if it brings one."""

    id: str
    status: str
    message: str
    ttl_ms: int | None
    poll_interval_ms: int | None
    is_error: bool


def fingerprint(request: Message) -> bytes:
    """Equal for requests that ask for the same: of their `params` everything but what is new in each round."""
    params = request.params
    if not isinstance(params, dict):
        return b""
    asked = {name: value for name, value in params.items() if name not in _ANEW}
    try:
        text = json.dumps(asked, sort_keys=True)
    except (ValueError, RecursionError):
        return blake2b(request.raw, digest_size=16).digest()
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def required_input(row: Exchange, result: Message) -> Iterable[Name]:
    """The names under which a retry may bring what `result` requires (2026-07-28, basic/patterns/mrtr)."""
    said = members(members(result.raw).get("result", b""))
    asked = fingerprint(row.request)
    if "requestState" in said:
        state = id_key(said["requestState"])
        yield "state", row.method, state, asked
        yield "state", row.method, state
    yield "keys", row.method, asked, _keys(said.get("inputRequests"))


def retry(request: Message) -> list[tuple[Name, bool]] | None:
    """The names of what a request may be a retry of, the surest first; None if it is none.

    With each: whether it is that also while another retry is under way, which only a state can tell.
    """
    said = _params(request)
    if "requestState" in said:
        state = id_key(said["requestState"])
        return [(("state", request.method, state, fingerprint(request)), True), (("state", request.method, state), True)]
    if "inputResponses" in said:
        return [(("keys", request.method, fingerprint(request), _keys(said["inputResponses"])), False)]
    return None


def task_facts(message: Message) -> TaskFacts | None:
    """What a result or a notification says of a task: itself, or in its member `task`."""
    said = members(members(message.raw).get("params" if message.method else "result", b""))
    if "task" in said and "taskId" not in said:
        said = members(said["task"])
    id = _text(said, "taskId")
    if id is None:
        return None
    error = members(said["result"]).get("isError") if "result" in said else None
    return TaskFacts(
        id,
        _text(said, "status") or "",
        _text(said, "statusMessage") or "",
        _milliseconds(said, "ttl", "ttlMs"),
        _milliseconds(said, "pollInterval", "pollIntervalMs"),
        error is not None and bytes(error) == b"true",
    )


def related_task(message: Message) -> str | None:
    """The task that a request or a notification belongs to (2025-11-25, basic/utilities/tasks)."""
    meta = members(_params(message).get("_meta", b""))
    return _text(members(meta[RELATED_TASK]), "taskId") if RELATED_TASK in meta else None


def subscription(notification: Message) -> str | None:
    """The id key of the request that wanted this notification (2026-07-28, basic/patterns/subscriptions)."""
    named = members(_params(notification).get("_meta", b"")).get(SUBSCRIPTION_ID)
    return None if named is None else id_key(named)


def elicitation(message: Message) -> str | None:
    """The id of the elicitation that a request or a notification is about (2025-11-25, client/elicitation)."""
    return _text(_params(message), "elicitationId") if b"elicitationId" in message.raw else None


def elicitations(error: Message) -> list[str]:
    """The ids of the elicitations that an error sends the user to; empty for other errors."""
    said: Any = error.error
    if not isinstance(said, dict) or said.get("code") != URL_ELICITATION_REQUIRED:
        return []
    data = said.get("data")
    listed = data.get("elicitations") if isinstance(data, dict) else None
    named = [one.get("elicitationId") for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
    return [one for one in named if isinstance(one, str)]


def _params(message: Message) -> dict[str, Slice]:
    return members(members(message.raw).get("params", b""))


def _keys(value: Slice | None) -> tuple[str, ...]:
    return () if value is None else tuple(sorted(members(value)))


def _text(said: dict[str, Slice], name: str) -> str | None:
    return string(said[name]) if name in said else None


def _milliseconds(said: dict[str, Slice], *names: str) -> int | None:
    digits = next((bytes(said[name]) for name in names if name in said), b"")
    return int(digits) if digits.isdigit() and len(digits) <= MAX_DIGITS else None

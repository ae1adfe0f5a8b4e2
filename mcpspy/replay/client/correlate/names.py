"""What the specification says a client hands back as its server gave it out, and where it stands on either side.

Source: MCP specification: basic/utilities/pagination; basic/patterns/mrtr (2026-07-28); basic/utilities/tasks, client/elicitation
(2025-11-25); SEP-2663 for tasks from 2026-07-28 on. Refuses to look for values anywhere else.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from ....transcript.mcp.codes import RELATED_TASK
from ....transcript.mcp.methods import LISTEN
from ....transcript.model import Kind

if TYPE_CHECKING:
    from ....transcript.model import Message
    from ...compare.ignore import Step

CURSOR: Final = "cursor"
TASK_ID: Final = "task id"
STATE: Final = "state"
ELICITATION_ID: Final = "elicitation id"
INPUT: Final = "input request"


class Named(NamedTuple):
    """A value that is carried: what it is, within which method (empty: any), and as the server gave it out."""

    what: str
    method: str
    value: str


Place: TypeAlias = "tuple[Named, tuple[Step, ...], bool]"
"""What it is, the steps that lead there from the root of the message, and whether it is a member's name there."""


def given(message: Message, method: str, body: dict[str, Any]) -> Iterator[Place]:
    """What a message of the server's gives out. `method` is that of the request that it answers, or its own."""
    match message.kind:
        case Kind.RESULT:
            yield from _in_result(body.get("result"), method)
        case Kind.ERROR:
            for at, one in enumerate(_list(_object(_object(body.get("error")).get("data")).get("elicitations"))):
                yield from _value(ELICITATION_ID, one, "elicitationId", ("error", "data", "elicitations", at))
        case _:
            params = body.get("params")
            yield from _value(TASK_ID, params, "taskId", ("params",))
            yield from _value(ELICITATION_ID, params, "elicitationId", ("params",))
            yield from _related(params)


def taken(message: Message, body: dict[str, Any]) -> Iterator[Place]:
    """What a message of the client's may hand back."""
    params = body.get("params")
    method = message.method or ""
    yield from _value(CURSOR, params, "cursor", ("params",), method)
    yield from _value(TASK_ID, params, "taskId", ("params",))
    yield from _value(STATE, params, "requestState", ("params",))
    yield from _value(ELICITATION_ID, params, "elicitationId", ("params",))
    yield from _related(params)
    yield from _related(body.get("result"), "result")
    for name in _object(_object(params).get("inputResponses")):
        yield Named(INPUT, "", name), ("params", "inputResponses", name), True
    if method == LISTEN:
        yield from _task_ids(params, ("params",))


def _in_result(result: Any, method: str) -> Iterator[Place]:
    yield from _value(CURSOR, result, "nextCursor", ("result",), method)
    yield from _value(STATE, result, "requestState", ("result",))
    yield from _value(TASK_ID, result, "taskId", ("result",))
    task = _object(result).get("task")
    yield from _value(TASK_ID, task, "taskId", ("result", "task"))
    for at, one in enumerate(_list(_object(result).get("tasks"))):
        yield from _value(TASK_ID, one, "taskId", ("result", "tasks", at))
    yield from _related(result, "result")
    for name in _object(_object(result).get("inputRequests")):
        yield Named(INPUT, "", name), ("result", "inputRequests", name), True


def _value(what: str, around: Any, name: str, steps: tuple[Step, ...], method: str = "") -> Iterator[Place]:
    """A text under one name. An empty one says nothing."""
    value = _object(around).get(name)
    if isinstance(value, str) and value:
        yield Named(what, method, value), (*steps, name), False


def _related(around: Any, under: str = "params") -> Iterator[Place]:
    related = _object(_object(around).get("_meta")).get(RELATED_TASK)
    yield from _value(TASK_ID, related, "taskId", (under, "_meta", RELATED_TASK))


def _task_ids(params: Any, steps: tuple[Step, ...]) -> Iterator[Place]:
    """The tasks of whose news a subscription wants to hear, in whichever member they are listed."""
    for name, value in _object(params).items():
        if name == "taskIds":
            for at, one in enumerate(_list(value)):
                if isinstance(one, str) and one:
                    yield Named(TASK_ID, "", one), (*steps, name, at), False
        elif isinstance(value, dict) and len(steps) == 1:
            yield from _task_ids(value, (*steps, name))


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []

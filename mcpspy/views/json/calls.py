"""What the JSON of a row says of the call that it belongs to: all of it on the row that began it, where it stands on the others.

So a call of a thousand polls is told once, and no row lists the others. docs/json.md describes every field.
"""

from typing import Any

from ...transcript.calls.call import Call, Task
from ...transcript.model import CaptureInfo, Exchange, UnpairedMessage


def call_object(row: Exchange | UnpairedMessage, source: CaptureInfo) -> dict[str, Any]:
    """The member `call` of a row; nothing for one that is an exchange and no more."""
    call = source.calls.get(row.row)
    if call is None:
        return {}
    made: dict[str, Any] = {"row": call.row}
    if isinstance(row, Exchange):
        made["part"] = call.part(row).value
        if count := call.count(row):
            made["number"] = count
    else:
        made["part"] = "notification"
    return {"call": {**made, **_whole(call)} if row is call.first else made}


def _whole(call: Call) -> dict[str, Any]:
    made: dict[str, Any] = {
        "outcome": call.outcome.value,
        "duration_ns": call.duration_ns,
        "wire_ns": call.wire_ns,
        "rounds": len(call.rounds),
        "polls": len(call.polls),
        "notifications": len(call.told),
        "needs_input": call.needs_input,
        "last_row": max(call.exchanges[-1].row, call.told[-1].row if call.told else 0),
    }
    if call.task is not None:
        made["task"] = _task(call.task)
    if call.elicitations:
        made["elicitations"] = {"asked": call.elicitations, "completed": call.completed}
    return made


def _task(task: Task) -> dict[str, Any]:
    made: dict[str, Any] = {"id": task.id, "status": task.status or None, "ttl_ms": task.ttl_ms}
    made["poll_interval_ms"] = task.poll_interval_ms
    return made | ({"cancelled": True} if task.cancelled else {})

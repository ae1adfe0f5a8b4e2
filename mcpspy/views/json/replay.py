"""A replay as JSON for programs: docs/json.md describes every field."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ...replay.client.outgoing import PlannedMessage
from ...replay.client.plan import UnsentMessage
from ...replay.client.player import Report
from ...replay.compare.compare import Comparison
from ..text.json_text import SCHEMA, RawJson, as_json, payload, with_lines
from .diff import comparison_json


def replay_object(report: Report, path: str, compared: Comparison) -> dict[str, Any]:
    """Return the outcome of one client's plan: the new capture, what was sent, and how it differs from the old capture."""
    return {
        "capture": path,
        "sent": report.sends,
        "requests": len(report.sent),
        "unsent": unsent_objects(report.unsent),
        "withheld": [message.row for message in report.withheld],
        "late": report.late,
        "ended": [{"row": row, "why": why} for row, why in report.ended.items()],
        "misses": [miss.data | {"sentence": miss.sentence} for miss in report.misses],
        "lost": report.lost or None,
        "comparison": RawJson(comparison_json(compared).rstrip("\n")),
    }


def replays_json(target: Mapping[str, Any], clients: Sequence[dict[str, Any]], status: int) -> str:
    """Return the outcome of a whole replay, as one object."""
    return as_json({"schema": SCHEMA, "target": target, "exit": status, "clients": list(clients)}) + "\n"


def plans_json(target: Mapping[str, Any], planned: Iterable[PlannedMessage], left_out: Iterable[UnsentMessage]) -> str:
    """Return what a replay would send, as one object with a message per line."""
    head = {"schema": SCHEMA, "target": target, "unsent": unsent_objects(left_out)}
    return with_lines(head, "sends", map(_rehearsed_object, planned))


def _rehearsed_object(planned: PlannedMessage) -> dict[str, Any]:
    message = planned.send.message
    members: dict[str, Any] = {
        "client": planned.client,
        "row": planned.send.row,
        "kind": message.kind.value,
        "method": message.method,
        "target": message.target,
    }
    if planned.effect is not None:
        members["effect"] = planned.effect.value
    if planned.correlated:
        members["correlated"] = [
            {"what": value.what, "from_row": value.from_row, "value": value.value} for value in planned.correlated
        ]
    return members | {"refused": planned.refused or None} | payload(planned.data)


def unsent_objects(unsent: Iterable[UnsentMessage]) -> list[dict[str, Any]]:
    """Return the messages that were not sent, each with the reason."""
    return [
        {"row": left_out.row, "method": left_out.message.method, "target": left_out.message.target, "why": left_out.why}
        for left_out in unsent
    ]

"""A replay as JSON for programs: docs/json.md describes every field."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..text.json_text import SCHEMA, RawJson, as_json, payload
from .comparison import comparison_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ...replay.client.outgoing import PlannedMessage
    from ...replay.client.plan import UnsentMessage
    from ...replay.client.player import Report
    from ...replay.compare.compare import Comparison


def replay_object(report: Report, path: str, compared: Comparison) -> dict[str, Any]:
    """What became of one client's plan, the capture of it, and how it differs from the recording."""
    return {
        "capture": path,
        "sent": report.sends,
        "requests": len(report.sent),
        "unsent": unsent_objects(report.unsent),
        "late": report.late,
        "ended": [{"row": row, "why": why} for row, why in report.ended.items()],
        "misses": [miss.data | {"sentence": miss.sentence} for miss in report.misses],
        "lost": report.lost or None,
        "comparison": RawJson(comparison_json(compared).rstrip("\n")),
    }


def replays_json(target: Mapping[str, Any], clients: Sequence[dict[str, Any]], status: int) -> str:
    """The whole of it: one object."""
    return as_json({"schema": SCHEMA, "target": target, "exit": status, "clients": list(clients)}) + "\n"


def plans_json(target: Mapping[str, Any], found: Iterable[PlannedMessage], left_out: Iterable[UnsentMessage]) -> str:
    """What would be sent: one object, with a message per line."""
    head = as_json({"schema": SCHEMA, "target": target, "unsent": unsent_objects(left_out)})[:-1]
    return f'{head},"sends":[\n' + ",\n".join(as_json(_rehearsed_object(one)) for one in found) + "]}\n"


def _rehearsed_object(one: PlannedMessage) -> dict[str, Any]:
    message = one.send.message
    made: dict[str, Any] = {
        "client": one.client, "row": one.send.row, "kind": message.kind.value, "method": message.method, "target": message.target,
    }  # fmt: skip
    if one.effect is not None:
        made["effect"] = one.effect.value
    if one.carried:
        made["carried"] = [{"what": each.what, "from_row": each.from_row, "value": each.value} for each in one.carried]
    return made | {"refused": one.refused or None} | payload(one.data)


def unsent_objects(unsent: Iterable[UnsentMessage]) -> list[dict[str, Any]]:
    """What was not sent, and why."""
    return [{"row": one.row, "method": one.message.method, "target": one.message.target, "why": one.why} for one in unsent]

"""A replay as JSON for programs: docs/json.md describes every field."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .comparison_json import comparison_json
from .json_text import SCHEMA, Verbatim, as_json, payload

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ..replay.compare import Comparison
    from ..replay.driving import Report
    from ..replay.effects import Effects
    from ..replay.plan import LeftOut, Plan


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
        "comparison": Verbatim(comparison_json(compared).rstrip("\n")),
    }


def replays_json(target: Mapping[str, Any], clients: Sequence[dict[str, Any]], status: int) -> str:
    """The whole of it: one object."""
    return as_json({"schema": SCHEMA, "target": target, "exit": status, "clients": list(clients)}) + "\n"


def plans_json(
    target: Mapping[str, Any],
    plans: Iterable[Plan],
    effects: Effects,
    payloads: Mapping[int, bytes],
    refused: Mapping[int, str],
) -> str:
    """What would be sent: one object, with a message per line."""
    made: list[str] = []
    unsent: list[dict[str, Any]] = []
    for client, plan in enumerate(plans):
        unsent += unsent_objects(plan.left_out)
        for send in plan.sends:
            one: dict[str, Any] = {
                "client": client, "row": send.row, "kind": send.message.kind.value, "method": send.message.method,
                "target": send.message.target,
            }  # fmt: skip
            if send.exchange is not None:
                one["effect"] = effects.of(send.exchange).value
            one["refused"] = refused.get(send.row)
            made.append(as_json(one | payload(payloads.get(send.row, b""))))
    head = as_json({"schema": SCHEMA, "target": target, "unsent": unsent})[:-1]
    return f'{head},"sends":[\n' + ",\n".join(made) + "]}\n"


def unsent_objects(unsent: Iterable[LeftOut]) -> list[dict[str, Any]]:
    """What was not sent, and why."""
    return [{"row": one.row, "method": one.message.method, "target": one.message.target, "why": one.why} for one in unsent]

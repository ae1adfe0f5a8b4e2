"""Comparisons of captures, and of a replay or a call with its recording, as JSON for programs: docs/json.md describes every field."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, Protocol

from ...replay.client.outgoing import PlannedMessage
from ...replay.client.plan import UnsentMessage
from ...replay.client.player import Report
from ...replay.compare.compare import CallChange, Comparison, ServerComparison
from ...replay.compare.difference import Difference, Differences
from ...replay.compare.server import DefinitionChange
from ...replay.json_values import readable_json
from ...replay.mock.content import VOLATILE
from ...transcript.model import CaptureInfo, Exchange, Transcript
from ..text.json_text import SCHEMA, RawJson, as_json, payload, with_lines
from .rows import capture_object, finding_object

if TYPE_CHECKING:
    from ...replay.client.outgoing import Effect

MAX_VALUE_LETTERS: Final = 4_000
"""A longer value is replaced by its size and digest."""


def comparison_json(comparison: Comparison) -> str:
    """Return one object, with a server per line."""
    head = {
        "schema": SCHEMA,
        "before": _captures(comparison.before),
        "after": _captures(comparison.after),
        "summary": comparison_summary(comparison),
        "ignore": comparison.ignore,
        "volatile": VOLATILE,
        "limit": asdict(comparison.limit),
    }
    return with_lines(head, "servers", map(_server, comparison.servers))


def difference_objects(differences: Differences) -> list[dict[str, Any]]:
    """Return the differences that are listed."""
    return [difference_object(difference) for difference in differences.listed]


def difference_object(difference: Difference) -> dict[str, Any]:
    """Return one difference: its path, its kind, and the values."""
    members: dict[str, Any] = {"path": difference.path, "how": difference.how}
    if difference.how != "added":
        members |= _value("before", difference.before)
    return members if difference.how == "removed" else members | _value("after", difference.after)


def _value(name: str, value: Any) -> dict[str, Any]:
    text = readable_json(value)
    if len(text) <= MAX_VALUE_LETTERS:
        return {name: RawJson(text)}
    data = text.encode("utf-8", "surrogatepass")
    return {f"{name}_bytes": len(data), f"{name}_sha256": sha256(data).hexdigest()}


def _captures(transcript: Transcript) -> list[dict[str, Any]]:
    return [capture_object(capture) for capture in transcript.captures]


def comparison_summary(comparison: Comparison) -> dict[str, Any]:
    """Return the counts of what changed."""
    servers = comparison.servers
    calls = [change.how for server in servers for change in server.calls]
    return {
        "different": comparison.different,
        "whole": comparison.whole,
        "same": sum(server.same for server in servers),
        "changed": calls.count("changed"),
        "added": calls.count("added"),
        "removed": calls.count("removed"),
        "identity": sum(server.identity.count for server in servers),
        "definitions": sum(len(server.definitions) for server in servers),
        "messages": sum(len(server.messages) for server in servers),
        "findings": sum(len(server.findings) for server in servers),
        "took": sum(len(server.took) for server in servers),
        "slower": len(comparison.slower),
    }


def _server(server: ServerComparison) -> dict[str, Any]:
    return {
        "server": server.name,
        "before": _index(server.before),
        "after": _index(server.after),
        "same": server.same,
        "identity": difference_objects(server.identity),
        "definitions": [_definition(change) for change in server.definitions],
        "calls": [_call(change) for change in server.calls],
        "messages": [
            {"how": change.how, "count": change.count, "row": change.row.row, "kind": change.row.message.kind.value}
            for change in server.messages
        ],
        "took": [
            _rows(took.before, took.after) | {"before_ns": took.before_ns, "after_ns": took.after_ns} for took in server.took
        ],
        "findings": [
            {"how": change.how, "count": change.count, "finding": finding_object(change.finding)} for change in server.findings
        ],
    }


def _index(capture: CaptureInfo | None) -> int | None:
    return None if capture is None else capture.index


def _definition(change: DefinitionChange) -> dict[str, Any]:
    members: dict[str, Any] = {"how": change.how, "part": change.part.value, "name": change.name}
    members |= {
        "before_row": change.before.row if change.before else None,
        "after_row": change.after.row if change.after else None,
    }
    return members | _differences("fields", change.fields)


def _call(change: CallChange) -> dict[str, Any]:
    members: dict[str, Any] = {"how": change.how, **_rows(change.before, change.after)}
    members["outcomes"] = [None if side is None else side.outcome.value for side in (change.before, change.after)]
    members |= _differences("params", change.params) | _differences("answer", change.answer)
    return members | ({"repeated": change.repeated} if change.repeated else {})


def _differences(name: str, differences: Differences) -> dict[str, Any]:
    members: dict[str, Any] = {name: difference_objects(differences)}
    return members | ({f"more_{name}": differences.more} if differences.more else {})


def _rows(before: Exchange | None, after: Exchange | None) -> dict[str, Any]:
    shown = after or before
    assert shown is not None
    return {
        "from": shown.sender,
        "method": shown.method,
        "target": shown.target,
        "before_row": before.row if before else None,
        "after_row": after.row if after else None,
    }


class SentCall(Protocol):
    """The outcome of a call; see `cli.call.live.CallResult`."""

    @property
    def target(self) -> dict[str, Any]: ...
    @property
    def live(self) -> Exchange | None: ...
    @property
    def why(self) -> str: ...
    @property
    def comparison(self) -> Comparison | None: ...
    @property
    def path(self) -> str: ...
    @property
    def row(self) -> int | None: ...
    @property
    def status(self) -> int: ...


def call_json(request: Exchange, recorded: Exchange | None, sent: SentCall) -> str:
    """Return the outcome of a call: `recorded` is the one that it repeats, if it repeats one."""
    live = sent.live
    answer = None if live is None else live.response
    members: dict[str, Any] = {
        "schema": SCHEMA,
        "exit": sent.status,
        "target": sent.target,
        "method": request.method,
        "name": request.target,
        "outcome": None if live is None or answer is None else live.outcome.value,
        "took_ns": None if live is None else live.duration_ns,
        "answer": None if answer is None else payload(answer.raw.strip(b"\r\n")),
        "why": sent.why or None,
        "capture": sent.path or None,
        "row": sent.row,
        "recorded": None if recorded is None else _recorded(recorded),
        "comparison": None if sent.comparison is None else RawJson(comparison_json(sent.comparison).rstrip("\n")),
    }
    return as_json(members) + "\n"


def planned_call_json(request: Exchange, data: bytes, effect: Effect, redacted: str) -> str:
    """Return what would be sent."""
    members: dict[str, Any] = {"schema": SCHEMA, "method": request.method, "name": request.target, "effect": effect.value}
    return as_json(members | {"redacted": redacted or None, "request": payload(data)}) + "\n"


def _recorded(exchange: Exchange) -> dict[str, Any]:
    return {"row": exchange.row, "outcome": exchange.outcome.value, "took_ns": exchange.duration_ns}


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

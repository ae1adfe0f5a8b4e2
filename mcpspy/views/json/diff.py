"""A comparison as JSON for programs: docs/json.md describes every field."""

from dataclasses import asdict
from hashlib import sha256
from typing import Any, Final

from ...replay.compare.compare import CallChange, Comparison, ServerComparison
from ...replay.compare.difference import Difference, Differences
from ...replay.compare.server import DefinitionChange
from ...replay.json.canonical import readable_json
from ...replay.mock.content import VOLATILE
from ...transcript.model import CaptureInfo, Exchange, Transcript
from ..text.json_text import SCHEMA, RawJson, with_lines
from .rows import capture_object, finding_object

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

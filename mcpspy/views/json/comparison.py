"""A comparison as JSON for programs: docs/json.md describes every field."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final

from ...replay.json.canonical import spelled
from ...replay.mock.content import VOLATILE
from ..text.json_text import SCHEMA, RawJson, as_json
from .rows import capture_object, finding_object

if TYPE_CHECKING:
    from ...replay.compare.compare import CallChange, Comparison, ServerComparison
    from ...replay.compare.difference import Difference, Differences
    from ...replay.compare.server import DefinitionChange
    from ...transcript.model import CaptureInfo, Exchange, Transcript

MAX_VALUE_LETTERS: Final = 4_000
"""A value that is longer is told by its size and digest."""


def comparison_json(found: Comparison) -> str:
    """One object, with a server per line."""
    head = as_json(
        {
            "schema": SCHEMA,
            "before": _captures(found.before),
            "after": _captures(found.after),
            "summary": _summary(found),
            "ignore": found.ignore,
            "volatile": VOLATILE,
            "limit": {"factor": found.limit.factor, "least_ns": found.limit.least_ns, "counts": found.limit.counts},
        }
    )[:-1]
    servers = ",\n".join(as_json(_server(one)) for one in found.servers)
    return f'{head},"servers":[\n{servers}]}}\n' if servers else f'{head},"servers":[]}}\n'


def difference_objects(found: Differences) -> list[dict[str, Any]]:
    """Those that are listed."""
    return [difference_object(one) for one in found.listed]


def difference_object(one: Difference) -> dict[str, Any]:
    """One difference: where, how, and the values."""
    made: dict[str, Any] = {"path": one.path, "how": one.how}
    if one.how != "added":
        made |= _value("before", one.before)
    return made if one.how == "removed" else made | _value("after", one.after)


def _value(name: str, value: Any) -> dict[str, Any]:
    text = spelled(value)
    if len(text) <= MAX_VALUE_LETTERS:
        return {name: RawJson(text)}
    data = text.encode("utf-8", "surrogatepass")
    return {f"{name}_bytes": len(data), f"{name}_sha256": sha256(data).hexdigest()}


def _captures(transcript: Transcript) -> list[dict[str, Any]]:
    return [capture_object(one) for one in transcript.captures]


def _summary(found: Comparison) -> dict[str, Any]:
    servers = found.servers
    calls = [one.how for server in servers for one in server.calls]
    return {
        "different": found.different,
        "whole": found.whole,
        "same": sum(one.same for one in servers),
        "changed": calls.count("changed"),
        "added": calls.count("added"),
        "removed": calls.count("removed"),
        "identity": sum(one.identity.count for one in servers),
        "definitions": sum(len(one.definitions) for one in servers),
        "findings": sum(len(one.findings) for one in servers),
        "took": sum(len(one.took) for one in servers),
        "slower": len(found.slower),
    }


def _server(one: ServerComparison) -> dict[str, Any]:
    return {
        "server": one.name,
        "before": _index(one.before),
        "after": _index(one.after),
        "same": one.same,
        "identity": difference_objects(one.identity),
        "definitions": [_definition(change) for change in one.definitions],
        "calls": [_call(change) for change in one.calls],
        "took": [
            _rows(took.before, took.after) | {"before_ns": took.before_ns, "after_ns": took.after_ns} for took in one.took
        ],
        "findings": [
            {"how": change.how, "count": change.count, "finding": finding_object(change.finding)} for change in one.findings
        ],
    }


def _index(capture: CaptureInfo | None) -> int | None:
    return None if capture is None else capture.index


def _definition(one: DefinitionChange) -> dict[str, Any]:
    made: dict[str, Any] = {"how": one.how, "part": one.part.value, "name": one.name}
    made |= {"before_row": one.before.row if one.before else None, "after_row": one.after.row if one.after else None}
    return made | _told("fields", one.fields)


def _call(one: CallChange) -> dict[str, Any]:
    made: dict[str, Any] = {"how": one.how, **_rows(one.before, one.after)}
    made["outcomes"] = [None if side is None else side.outcome.value for side in (one.before, one.after)]
    made |= _told("params", one.params) | _told("answer", one.answer)
    return made | ({"repeated": one.repeated} if one.repeated else {})


def _told(name: str, found: Differences) -> dict[str, Any]:
    made: dict[str, Any] = {name: difference_objects(found)}
    return made | ({f"more_{name}": found.more} if found.more else {})


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

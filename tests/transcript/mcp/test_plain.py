"""Plain types of messages: content that fits them fits the official types of the package mcp-types too."""

import json
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from mcpspy.cli.transcripts import transcript_of_file
from mcpspy.records import CLIENT, SERVER, Side
from mcpspy.transcript.findings.protocol import types
from mcpspy.transcript.mcp.plain import is_plain
from mcpspy.transcript.mcp.revisions import Era
from mcpspy.transcript.model import Exchange, UnpairedMessage

CAPTURES = Path(__file__).parents[3] / "captures"
REVISIONS = {Era.LEGACY: "2025-11-25", Era.MODERN: "2026-07-28"}
VALUES: tuple[Any, ...] = (
    None,
    True,
    7,
    -1,
    1.5,
    "word",
    [],
    ["word"],
    [7],
    [None],
    {},
    {"name": "word"},
    {"name": 7},
    {"type": "text"},
)

_URI = {"uri": "file:///a", "name": "a", "title": "A", "size": 3, "mimeType": "text/plain", "_meta": {"a": 1}}
_LABELS = {
    "annotations": {"audience": ["user"], "lastModified": "2026", "priority": 0.5},
    "icons": [{"src": "a", "sizes": ["1x1"]}],
}
_BLOCKS = [
    {"type": "text", "text": "a", **_LABELS},
    {"type": "image", "data": "YQ==", "mimeType": "image/png"},
    {"type": "audio", "data": "YQ==", "mimeType": "audio/wav"},
    {"type": "resource_link", **_URI},
    {"type": "resource", "resource": {"uri": "a", "text": "b"}},
]
_PAGE = {"_meta": {}, "nextCursor": "2"}
_CACHED = {"resultType": "complete", "cacheScope": "public", "ttlMs": 5}
_TEMPLATES = {"resourceTemplates": [{"uriTemplate": "a{b}", "name": "a", **_LABELS}], **_PAGE}
_READ = {"contents": [{"uri": "a", "text": "b", "mimeType": "text/plain", "_meta": {}}]}
_PROMPT = {"description": "d", "messages": [{"role": "user", "content": block} for block in _BLOCKS]}
_META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "c", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {"roots": {}, "elicitation": {"form": {}}},
    "progressToken": 1,
}
_FILTER = {"notifications": {"toolsListChanged": True, "resourceSubscriptions": ["a"]}}
_FORM = {
    "message": "m",
    "mode": "form",
    "requestedSchema": {"type": "object", "properties": {"a": {"type": "string"}}, "required": []},
}
_SAMPLING = {"messages": [{"role": "user", "content": _BLOCKS[0]}], "maxTokens": 5, "temperature": 0.1, "stopSequences": ["a"]}

Sample = tuple[Era, Side, str, str, Any]
SAMPLES: list[Sample] = [
    (Era.LEGACY, CLIENT, "tools/call", "params", {"name": "a", "arguments": {"a": 1}, "_meta": {"progressToken": "a"}}),
    (Era.LEGACY, CLIENT, "resources/subscribe", "params", {"uri": "a", "_meta": {}}),
    (Era.LEGACY, CLIENT, "tools/list", "params", {"cursor": "2", "_meta": {}}),
    (Era.LEGACY, CLIENT, "notifications/progress", "params", {"progressToken": 1, "progress": 1.5, "total": 2, "message": "m"}),
    (Era.LEGACY, CLIENT, "notifications/cancelled", "params", {"requestId": 1, "reason": "r", "_meta": {}}),
    (Era.LEGACY, CLIENT, "elicitation/create", "result", {"action": "accept", "content": {"a": 1, "b": ["c"]}, "_meta": {}}),
    (Era.LEGACY, CLIENT, "roots/list", "result", {"roots": [{"uri": "file:///a", "name": "a", "_meta": {}}]}),
    (Era.LEGACY, SERVER, "elicitation/create", "params", _FORM),
    (Era.LEGACY, SERVER, "sampling/createMessage", "params", _SAMPLING),
    (Era.LEGACY, SERVER, "notifications/progress", "params", {"progressToken": 1, "progress": 1.5, "total": 2, "message": "m"}),
    (Era.LEGACY, SERVER, "notifications/cancelled", "params", {"requestId": "1", "reason": "r"}),
    (Era.LEGACY, SERVER, "notifications/message", "params", {"level": "info", "data": {}, "logger": "l"}),
    (Era.LEGACY, SERVER, "notifications/resources/updated", "params", {"uri": "a", "_meta": {}}),
    (
        Era.LEGACY,
        SERVER,
        "tools/call",
        "result",
        {"content": _BLOCKS, "isError": False, "structuredContent": {"a": 1}, "_meta": {}},
    ),
    (Era.LEGACY, SERVER, "prompts/get", "result", _PROMPT),
    (Era.LEGACY, SERVER, "resources/read", "result", _READ),
    (Era.LEGACY, SERVER, "resources/list", "result", {"resources": [{**_URI, **_LABELS}], **_PAGE}),
    (Era.LEGACY, SERVER, "resources/templates/list", "result", _TEMPLATES),
    (Era.MODERN, CLIENT, "tools/call", "params", {"name": "a", "arguments": {}, "requestState": "s", "_meta": _META}),
    (Era.MODERN, CLIENT, "subscriptions/listen", "params", {**_FILTER, "_meta": _META}),
    (Era.MODERN, CLIENT, "prompts/get", "params", {"name": "a", "arguments": {"a": "b"}, "_meta": _META}),
    (Era.MODERN, CLIENT, "resources/read", "params", {"uri": "a", "_meta": _META}),
    (Era.MODERN, CLIENT, "notifications/cancelled", "params", {"requestId": 1, "reason": "r"}),
    (Era.MODERN, SERVER, "notifications/subscriptions/acknowledged", "params", {**_FILTER, "_meta": {}}),
    (Era.MODERN, SERVER, "notifications/progress", "params", {"progressToken": 1, "progress": 1, "total": 2, "message": "m"}),
    (Era.MODERN, SERVER, "notifications/message", "params", {"level": "info", "data": 1, "logger": "l"}),
    (Era.MODERN, SERVER, "notifications/resources/updated", "params", {"uri": "a"}),
    (Era.MODERN, SERVER, "tools/call", "result", {"content": _BLOCKS, "resultType": "complete", "structuredContent": [1]}),
    (Era.MODERN, SERVER, "prompts/get", "result", {**_PROMPT, "resultType": "complete"}),
    (Era.MODERN, SERVER, "resources/read", "result", {**_READ, **_CACHED}),
    (Era.MODERN, SERVER, "resources/list", "result", {"resources": [{**_URI, **_LABELS}], **_PAGE, **_CACHED}),
    (Era.MODERN, SERVER, "resources/templates/list", "result", {**_TEMPLATES, **_CACHED}),
]


def recorded_samples() -> Iterator[Sample]:
    """Yield the first message of each kind in the captures of the repository."""
    seen: set[tuple[Any, ...]] = set()
    for path in sorted(CAPTURES.glob("*.mcpspy")):
        for row in transcript_of_file(str(path)).rows:
            if not isinstance(row, Exchange | UnpairedMessage):
                continue
            for message in row.messages if isinstance(row, Exchange) else (row.message,):
                member = types._MEMBER.get(message.kind)
                method = message.method or (row.request.method if isinstance(row, Exchange) else "") or ""
                if message.era is not None and member is not None and message.result_type is None:
                    sample: Sample = (message.era, message.sender, method, member, json.loads(message.raw).get(member))
                    if sample[:4] not in seen and fits(sample):
                        seen.add(sample[:4])
                        yield sample


def official_names() -> list[str]:
    """Return the names that members have in the official types."""
    import mcp_types._v2025_11_25 as legacy
    import mcp_types._v2026_07_28 as modern

    models = [model for module in (legacy, modern) for model in vars(module).values() if hasattr(model, "model_fields")]
    return sorted({field.alias or name for model in models for name, field in model.model_fields.items()})


def changed(content: Any, names: list[str]) -> Iterator[Any]:
    """Yield `content` with each value left out, each replaced, and members added to each object."""

    def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
        yield path
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
            yield from places(inner, (*path, key))

    def put(path: tuple[Any, ...], value: Any) -> Any:
        copy = deepcopy({"": content})
        inner: Any = copy
        for key in ("", *path)[:-1]:
            inner = inner[key]
        inner[("", *path)[-1]] = value
        return copy[""]

    for path in [path for path in places(content) if len(path) < 6]:
        value: Any = content
        for key in path:
            value = value[key]
        yield from (put(path, other) for other in VALUES)
        if isinstance(value, dict):
            yield from (put(path, {key: item for key, item in value.items() if key != left_out}) for left_out in value)
            added = [name for name in names if name not in value]
            yield from (put((*path, name), other) for name in added for other in (7, ["word"], {"type": 7}))


def fits(sample: Sample) -> bool:
    era, sender, method, member, content = sample
    return is_plain(era, sender, method, member, json.dumps(content).encode())


def mistake(sample: Sample) -> str:
    era, sender, method, member, content = sample
    kind = "result" if member == "result" else "notification" if method.startswith("notifications/") else "request"
    return types._checks()[f"{sender} {kind}"](method, REVISIONS[era], content)


@pytest.mark.grid(10)
@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: f"{sample[0]}-{sample[1]}-{sample[2]}-{sample[3]}")
def test_what_is_plain_is_as_specified(sample: Sample) -> None:
    assert fits(sample)
    assert mistake(sample) == ""
    others = [(*sample[:4], content) for content in changed(sample[4], official_names())]
    assert [other for other in others if fits(other) and mistake(other)] == []


@pytest.mark.more
def test_what_is_plain_in_captures_is_as_specified_however_it_is_changed() -> None:
    names = official_names()
    samples = list(recorded_samples())
    assert len(samples) > 20
    for sample in samples:
        assert mistake(sample) == ""
        others = changed(sample[4], names if len(json.dumps(sample[4])) < 2_000 else [])
        for other in ((*sample[:4], content) for content in others):
            assert not fits(other) or mistake(other) == "", other


@pytest.mark.parametrize("method", sorted(types.METHODS_OF_NO_TYPE))
@pytest.mark.parametrize("kind", ["request", "notification", "result"])
def test_nothing_is_specified_for_what_is_no_method_of_mcp(kind: str, method: str) -> None:
    checks = [types._checks()[f"{sender} {kind}"] for sender in (CLIENT, SERVER)]
    assert [check(method, revision, 7) for check in checks for revision in REVISIONS.values()] == [""] * 4

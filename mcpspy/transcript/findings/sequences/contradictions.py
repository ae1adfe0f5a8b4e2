r"""Findings about results whose `structuredContent` is not what their text says.

    tools/call weather {"city":"Oslo"}
        content: [{"type": "text", "text": "{\"city\": \"Oslo\", \"c\": 4}"}]      structuredContent: {"city": "Rome", "c": 21}

Source: MCP specification, server/tools (a tool that returns structured content should also return it as JSON in a text).
"""

import json
from collections.abc import Iterator
from typing import Any, Final

from ....wire.json_spans import UNREADABLE
from ...mcp.blocks import listed, member
from ...model import Exchange
from ..facts import CaptureFacts
from ..rule import Hit, hit_in, protocol_rule
from ..words import call_name, quoted

_CALL: Final = '· handshake 2025-11-25, server: tools\n→ tools/call 1 {"name":"weather"}\n'
_RESULT: Final = (
    r'← result 1 {"content":[{"type":"text","text":"{\"city\":\"Oslo\",\"c\":4}"}],"structuredContent":{"city":"%s","c":%d}}'
)

TEXT_CONTRADICTS: Final = protocol_rule(
    name="text-contradicts",
    title="Text and structuredContent differ",
    what="The text of a result is JSON with the members of its structuredContent, and other values.",
    why="A client that reads the one shows something other than a client that reads the other.",
    blame="The server: it wrote both into one result, and they are to hold the same.",
    example=_CALL + _RESULT % ("Rome", 21),
    clean=_CALL + _RESULT % ("Oslo", 4),
    advice="Make the text from the structured content (json.dumps of the same object), and keep neither between calls.",
)

RULES: Final = (TEXT_CONTRADICTS,)

MAX_CALLS: Final = 10_000
"""The results of so many calls of a capture are looked at."""
MAX_BYTES: Final = 64 << 10
"""Larger results are not compared."""


def find(facts: CaptureFacts) -> Iterator[Hit]:
    """Find results that contradict themselves."""
    for call in facts.first(facts.calls, MAX_CALLS, RULES):
        response = call.response
        if response is None or b'"structuredContent"' not in response.raw:
            continue
        if response.size <= MAX_BYTES and (difference := _difference(call)):
            what = f"The result of {call_name(call)} says {difference}."
            yield hit_in(TEXT_CONTRADICTS, response, call.row, what, group=call.target or "")


def _difference(call: Exchange) -> str:
    """Quote the first member that differs; empty if the text is not JSON of the same shape, or says the same."""
    assert call.response is not None
    result = call.response.result
    structured = member(result, "structuredContent")
    texts = [block["text"] for block in listed(result, "content") if isinstance(block.get("text"), str)]
    if not isinstance(structured, dict) or len(texts) != 1 or texts[0].lstrip()[:1] != "{":
        return ""
    try:
        written = json.loads(texts[0])
    except UNREADABLE:
        return ""
    if not isinstance(written, dict) or written.keys() != structured.keys():
        return ""
    try:
        names = [name for name, value in structured.items() if not _is_same(written[name], value)]
    except RecursionError:
        return ""
    if not names:
        return ""
    before, after = (quoted(json.dumps(value[names[0]], ensure_ascii=False), 40) for value in (written, structured))
    return f"{before} for {names[0][:40]} in its text, and {after} in its structuredContent"


def _is_same(written: Any, other: Any) -> bool:
    """Compare two values; numbers of other precision, and texts that were cut or trimmed, are the same."""
    if isinstance(written, bool) or isinstance(other, bool):
        return written is other
    if isinstance(written, int | float) and isinstance(other, int | float):
        return abs(written - other) <= abs(other) / 100
    if isinstance(written, str) and isinstance(other, str):
        short, long = sorted((written.strip().rstrip("….").strip(), other.strip().rstrip("….").strip()), key=len)
        return long.startswith(short)
    if isinstance(written, dict) and isinstance(other, dict):
        return all(_is_same(written[name], other[name]) for name in written.keys() & other.keys())
    if isinstance(written, list) and isinstance(other, list):
        return all(_is_same(first, second) for first, second in zip(written, other, strict=False))
    return bool(written == other) or None in (written, other)

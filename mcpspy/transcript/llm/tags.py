"""Tools in plain text, as models and agents without a field for them write: `<tool_call>`, `<tool_response>`, `<tools>`.

Source: the prompt template of Qwen and Hermes models, which many agents and servers use. Refuses to guess at other spellings.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ...wire.json_spans import members as slices
from .json_values import members, size_bytes, string, value
from .model import ToolOffer, ToolReturn, ToolUse

CALL: Final = "tool_call"
RESPONSE: Final = "tool_response"
TOOLS: Final = "tools"


def uses_in(text: str, begin: int = 0, *, is_over: bool = True) -> list[tuple[ToolUse, int]]:
    """The tool uses in a text from an index on, each with the index behind it.

    Of a text that is over, one that lacks its closing tag counts if its JSON is whole.
    """
    found = []
    for _, inner, end, is_closed in _within(text, CALL, begin):
        if not is_closed and not is_over:
            break
        use = _use(inner)
        if is_closed or use.name:
            found.append((use, end))
    return found


def returns_in(text: str) -> tuple[ToolReturn, ...]:
    """What a turn of the user's carries back."""
    return tuple(ToolReturn(text=inner, from_text=True) for _, inner, _, is_closed in _within(text, RESPONSE) if is_closed)


def without_returns(text: str) -> str:
    """What else such a turn says."""
    rest, at = [], 0
    for begin, _, end, is_closed in _within(text, RESPONSE):
        if is_closed:
            rest.append(text[at:begin])
            at = end
    return "".join((*rest, text[at:])).strip() if rest else text


def offers_in(text: str) -> tuple[ToolOffer, ...]:
    """The tools that a system prompt describes, one JSON object in a line."""
    found = []
    for _, inner, _, is_closed in _within(text, TOOLS):
        for line in inner.splitlines() if is_closed else ():
            made = _offer(line)
            if made is not None:
                found.append(made)
    return tuple(found)


def _within(text: str, name: str, at: int = 0) -> Iterator[tuple[int, str, int, bool]]:
    """Where a tag opens, what stands behind it, the index behind its end, and whether it was closed."""
    opening, closing = f"<{name}>", f"</{name}>"
    at = text.find(opening, at)
    while at >= 0:
        begin = at + len(opening)
        end = text.find(closing, begin)
        if end < 0:
            yield at, text[begin:].strip("\r\n"), len(text), False
            return
        yield at, text[begin:end].strip("\r\n"), end + len(closing), True
        at = text.find(opening, end)


def _use(inner: str) -> ToolUse:
    found = slices(inner.strip().encode("utf-8", "replace"))
    name, arguments = found.get("name"), found.get("arguments")
    said = "" if name is None else string(value(bytes(name)))
    if not said:
        return ToolUse(arguments=inner.strip(), from_text=True)
    text = "" if arguments is None else bytes(arguments).decode("utf-8", "replace")
    if text.startswith('"'):  # some write the arguments as a string with JSON in it
        text = string(value(text.encode())) or text
    return ToolUse(name=said, arguments=text, from_text=True)


def _offer(line: str) -> ToolOffer | None:
    definition = value(line.strip().encode("utf-8", "replace")) if line.strip().startswith("{") else None
    inner = members(definition)
    function = members(inner.get("function")) or inner
    name = string(function.get("name"))
    if not name:
        return None
    schema = function.get("parameters")
    return ToolOffer(
        name=name, description=string(function.get("description")), schema=schema, bytes=size_bytes(inner), from_text=True
    )

"""Tools written in plain text, by models and agents without a field for them: `<tool_call>`, `<tool_response>`, `<tools>`.

Source: the prompt template of Qwen and Hermes models, which many agents and servers use. Other spellings are not recognised.
"""

import re
from collections.abc import Iterator
from typing import Final

from ...lazy_pattern import lazy_pattern
from ...wire.json_spans import members as slices
from .json_values import json_value, members, size_bytes, string
from .prompt import ToolOffer, ToolReturn, ToolUse

CALL: Final = "tool_call"
RESPONSE: Final = "tool_response"
TOOLS: Final = "tools"

_TAG_LETTERS: Final = 100
_INSERTED: Final = {
    "system", "reminder", "environment", "context", "instructions", "command", "details", "info", "ide", "tools",
}  # fmt: skip
"""Words of the names of elements that agents insert. These names have several words."""
_first_tag = lazy_pattern(r"\s*<([a-z]+(?:[-_][a-z]+)+)(?:\s[^<>]*)?>", re.IGNORECASE)
_last_tag = lazy_pattern(r"</([a-z]+(?:[-_][a-z]+)+)>\s*$", re.IGNORECASE)
_around_words = lazy_pattern(r"<(task|user[-_][a-z]+)>(.*)</\1>$", re.DOTALL)
"""Elements in which some agents put the words of the user."""


def uses_in(text: str, begin: int = 0, *, is_over: bool = True) -> list[tuple[ToolUse, int]]:
    """Find the tool uses in a text from the index `begin` on, each with the index after it.

    In a text that is over, a use without its closing tag counts if its JSON is complete.
    """
    uses = []
    for _, inner, end, is_closed in _elements(text, CALL, begin):
        if not is_closed and not is_over:
            break
        use = _use(inner)
        if is_closed or use.name:
            uses.append((use, end))
    return uses


def returns_in(text: str) -> tuple[ToolReturn, ...]:
    """Find the tool returns in a user's turn."""
    return tuple(ToolReturn(text=inner, from_text=True) for _, inner, _, is_closed in _elements(text, RESPONSE) if is_closed)


def without_returns(text: str) -> str:
    """Cut the tool returns out of a user's turn."""
    rest, at = [], 0
    for begin, _, end, is_closed in _elements(text, RESPONSE):
        if is_closed:
            rest.append(text[at:begin])
            at = end
    return "".join((*rest, text[at:])).strip() if rest else text


def users_words(text: str) -> str:
    """Return a user's words without what agents put before and after them: `<system-reminder>…</system-reminder>` and the like.

    Other elements stay, since users paste markup too, except for one around all of the words. Empty if there are no words.
    """
    begin, end = 0, len(text)
    while (match := _first_tag.match(text, begin)) is not None and _is_inserted(match[1]):
        close = text.find(f"</{match[1]}>", match.end())
        if close < 0:
            break
        begin = close + len(f"</{match[1]}>")
    while (match := _last_tag.search(text[max(begin, end - _TAG_LETTERS) : end])) is not None and _is_inserted(match[1]):
        opening = text.rfind(f"<{match[1]}", begin, end)
        if opening < 0:
            break
        end = opening
    words = text[begin:end].strip()
    around = _around_words.match(words)
    return words if around is None else around[2].strip()


def _is_inserted(name: str) -> bool:
    return not _INSERTED.isdisjoint(name.lower().replace("_", "-").split("-"))


def offers_in(text: str) -> tuple[ToolOffer, ...]:
    """Find the tools that a system prompt describes, one JSON object a line."""
    offers = []
    for _, inner, _, is_closed in _elements(text, TOOLS):
        for line in inner.splitlines() if is_closed else ():
            offer = _offer(line)
            if offer is not None:
                offers.append(offer)
    return tuple(offers)


def _elements(text: str, name: str, at: int = 0) -> Iterator[tuple[int, str, int, bool]]:
    """Find the elements of this tag: the index of the tag, the text within, the index after the end, and whether it is closed."""
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
    fields = slices(inner.strip().encode("utf-8", "replace"))
    name_slice, arguments = fields.get("name"), fields.get("arguments")
    name = "" if name_slice is None else string(json_value(bytes(name_slice)))
    if not name:
        return ToolUse(arguments=inner.strip(), from_text=True)
    text = "" if arguments is None else bytes(arguments).decode("utf-8", "replace")
    if text.startswith('"'):  # some write the arguments as a string with JSON in it
        text = string(json_value(text.encode())) or text
    return ToolUse(name=name, arguments=text, from_text=True)


def _offer(line: str) -> ToolOffer | None:
    definition = json_value(line.strip().encode("utf-8", "replace")) if line.strip().startswith("{") else None
    outer = members(definition)
    function = members(outer.get("function")) or outer
    name = string(function.get("name"))
    if not name:
        return None
    schema = function.get("parameters")
    return ToolOffer(
        name=name, description=string(function.get("description")), schema=schema, bytes=size_bytes(outer), from_text=True
    )

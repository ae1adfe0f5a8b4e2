"""What of a tool's result a model was told: all of it, a part, or something else.

Clients wrap results, join their blocks, write JSON anew: whatever says the same counts as the whole. Refuses to say whether a change
is for the better: a client may well shorten what is too long.
"""

from __future__ import annotations

import json
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from ..model import Kind
from ..stats.cost import result_text
from .json_values import read_json, value_key

if TYPE_CHECKING:
    from ..message import Message

MIN_SHARED_LETTERS: Final = 16
"""A text that was cut begins with as many letters of the result at least, unless it is all of it that is left."""

_MARKS: Final = " \t\r\n.…[("
"""What may stand between the beginning of a result and words on how it was cut."""


class Fidelity(StrEnum):
    """How much of a result a tool return tells."""

    WHOLE = "whole"
    CUT = "cut"
    """It begins as the result does, and ends before it."""
    CHANGED = "changed"
    NOTHING = "nothing"
    """There is a result, and the return is empty."""


def fidelity(text: str, result: Message) -> Fidelity:
    """How much of `result`, a result or an error, the `text` of a tool return tells."""
    texts = texts_of(result)
    bare = text.strip()
    if all(_holds(bare, one) for one in texts) or _is_same_json(bare, texts, result):
        return Fidelity.WHOLE
    if not bare:
        return Fidelity.NOTHING
    return Fidelity.CUT if _is_cut(bare, texts) else Fidelity.CHANGED


def texts_of(result: Message) -> list[str]:
    """What of a result, or of an error, is text: its blocks, the message."""
    if result.kind is Kind.ERROR:
        error = result.error
        said = error.get("message") if isinstance(error, dict) else None
        return [said.strip()] if isinstance(said, str) and said.strip() else []
    value = result.result
    content = value.get("content") if isinstance(value, dict) else None
    found = [text.strip() for block in content if (text := _text(block))] if isinstance(content, list) else []
    if not found:
        found = [result_text(result).decode("utf-8", "replace").strip()]
    return [one for one in found if one]


def text_sizes(text: str, result: Message) -> tuple[int, int]:
    """How many bytes of text a return tells, and how many the result has."""
    return len(text.encode("utf-8", "replace")), sum(len(one.encode("utf-8", "replace")) for one in texts_of(result))


def _text(block: Any) -> str:
    if not isinstance(block, dict):
        return ""
    resource = block.get("resource")
    text = block.get("text", resource.get("text") if isinstance(resource, dict) else None)
    return text if isinstance(text, str) else ""


def _holds(text: str, part: str) -> bool:
    """Whether `text` has `part` in it, as it is or as a string in JSON."""
    if part in text:
        return True
    return any(json.dumps(part, ensure_ascii=is_escaped)[1:-1] in text for is_escaped in (False, True))


def _is_same_json(text: str, texts: list[str], result: Message) -> bool:
    """Whether a return is the JSON of the result's only text, or of its structured content, written anew."""
    if text[:1] not in ("{", "["):
        return False
    value = result.result
    structured = value.get("structuredContent") if isinstance(value, dict) else None
    said = value_key(text)
    if structured is not None and said == value_key(_dumped(structured)):
        return True
    return len(texts) == 1 and texts[0][:1] in ("{", "[") and read_json(texts[0])[0] and said == value_key(texts[0])


def _dumped(value: Any) -> str:
    try:
        return json.dumps(value)
    except (ValueError, RecursionError):
        return ""


def _is_cut(text: str, texts: list[str]) -> bool:
    """Whether `text` begins with the beginning of the result, or is one of several blocks."""
    if len(texts) > 1 and any(_holds(text, one) for one in texts if len(one) >= MIN_SHARED_LETTERS):
        return True
    whole = "\n".join(texts)
    shared = _shared_letters(text, whole)
    return shared >= MIN_SHARED_LETTERS or (shared > 0 and shared == len(text.rstrip(_MARKS)))


def _shared_letters(text: str, whole: str) -> int:
    """How many letters of `whole` from its beginning on stand in `text` together, by halving."""
    low, high = 0, min(len(text), len(whole))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if whole[:middle] in text else (low, middle - 1)
    return low

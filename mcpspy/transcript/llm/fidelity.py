"""Fidelity of a tool return: how much of a tool's result the client reported to the model.

Clients wrap results, join their blocks and rewrite JSON: a return with the same content counts as whole. Whether a change is an
improvement is not judged; a client may well shorten a long result.
"""

import json
from enum import StrEnum
from typing import Any, Final

from ..message import Message
from ..model import Kind
from ..stats.context import result_text
from .json_values import read_json, value_key

MIN_SHARED_LETTERS: Final = 16
"""A text that was cut shares at least this many letters with the beginning of the result, unless no more of it is left."""

_MARKS: Final = " \t\r\n.…[("
"""Characters between the beginning of a result and a note that it was cut."""


class Fidelity(StrEnum):
    """Degrees of fidelity: the part of a result that a tool return holds."""

    WHOLE = "whole"
    CUT = "cut"
    """It begins as the result does, and ends earlier."""
    CHANGED = "changed"
    NOTHING = "nothing"
    """The return is empty, and the result is not."""


def fidelity(text: str, result: Message) -> Fidelity:
    """Compare the `text` of a tool return with a result or an error."""
    texts = texts_of(result)
    bare = text.strip()
    if all(_holds(bare, part) for part in texts) or _is_same_json(bare, texts, result):
        return Fidelity.WHOLE
    if not bare:
        return Fidelity.NOTHING
    return Fidelity.CUT if _is_cut(bare, texts) else Fidelity.CHANGED


def texts_of(result: Message) -> list[str]:
    """Return the texts of a result, which are those of its blocks, or the message of an error; none of them is empty."""
    if result.kind is Kind.ERROR:
        error = result.error
        message = error.get("message") if isinstance(error, dict) else None
        return [message.strip()] if isinstance(message, str) and message.strip() else []
    value = result.result
    content = value.get("content") if isinstance(value, dict) else None
    texts = [text.strip() for block in content if (text := _text(block))] if isinstance(content, list) else []
    if not texts:
        texts = [result_text(result).decode("utf-8", "replace").strip()]
    return [text for text in texts if text]


def text_sizes(text: str, result: Message) -> tuple[int, int]:
    """Measure the text of a return, and that of the result, in bytes."""
    return len(text.encode("utf-8", "replace")), sum(len(part.encode("utf-8", "replace")) for part in texts_of(result))


def _text(block: Any) -> str:
    if not isinstance(block, dict):
        return ""
    resource = block.get("resource")
    text = block.get("text", resource.get("text") if isinstance(resource, dict) else None)
    return text if isinstance(text, str) else ""


def _holds(text: str, part: str) -> bool:
    """Return True if `part` is in `text`, as it is or as a JSON string."""
    if part in text:
        return True
    return any(json.dumps(part, ensure_ascii=is_escaped)[1:-1] in text for is_escaped in (False, True))


def _is_same_json(text: str, texts: list[str], result: Message) -> bool:
    """Return True if `text` is the JSON of the result's only text, or of its structured content, by value."""
    if text[:1] not in ("{", "["):
        return False
    value = result.result
    structured = value.get("structuredContent") if isinstance(value, dict) else None
    key = value_key(text)
    if structured is not None and key == value_key(_json(structured)):
        return True
    return len(texts) == 1 and texts[0][:1] in ("{", "[") and read_json(texts[0])[0] and key == value_key(texts[0])


def _json(value: Any) -> str:
    try:
        return json.dumps(value)
    except (ValueError, RecursionError):
        return ""


def _is_cut(text: str, texts: list[str]) -> bool:
    """Return True if `text` begins as the result does, or holds one of its several blocks."""
    if len(texts) > 1 and any(_holds(text, part) for part in texts if len(part) >= MIN_SHARED_LETTERS):
        return True
    whole = "\n".join(texts)
    shared = _shared_letters(text, whole)
    return shared >= MIN_SHARED_LETTERS or (shared > 0 and shared == len(text.rstrip(_MARKS)))


def _shared_letters(text: str, whole: str) -> int:
    """Return the length of the longest beginning of `whole` that is in `text`, by bisection."""
    low, high = 0, min(len(text), len(whole))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if whole[:middle] in text else (low, middle - 1)
    return low

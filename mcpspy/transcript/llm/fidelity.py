"""Fidelity of a tool return: how much of a tool's result the client reported to the model.

Clients wrap results, put lines around them, join their blocks and rewrite JSON: a return with the same content counts as whole.
Whether a change is an improvement is not judged; a client may well shorten a long result.
"""

import json
from collections.abc import Iterator
from enum import StrEnum
from typing import Any, Final

from ...lazy_pattern import lazy_pattern
from ..message import Message
from ..model import Kind
from ..stats.context import result_text
from .json_values import read_json, value_key

MIN_SHARED_LETTERS: Final = 16
"""A text that was cut shares at least this many letters with the beginning of the result, unless no more of it is left."""

_MARKS: Final = " \t\r\n.…[("
"""Characters between the beginning of a result and a note that it was cut."""


MAX_JSON_STARTS: Final = 20
"""The number of brackets at which JSON may begin in a return; more of them are not looked at."""

_json_start = lazy_pattern(r"[{\[]")
_DECODER: Final = json.JSONDecoder()


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
    """Return True if `text` holds the result by value: the JSON of its only text or its structured content, or its texts in JSON."""
    value = result.result
    structured = value.get("structuredContent") if isinstance(value, dict) else None
    keys = {value_key(_json(structured))} if structured is not None else set()
    if len(texts) == 1 and texts[0][:1] in ("{", "[") and read_json(texts[0])[0]:
        keys.add(value_key(texts[0]))
    for found in _json_values(text):
        parts = [found, *(found.values() if isinstance(found, dict) else ())]
        if any(isinstance(part, dict | list) and value_key(_json(part)) in keys for part in parts):
            return True
        strings = list(_strings(found))
        if texts and all(any(part in string for string in strings) for part in texts):
            return True
    return False


def _json_values(text: str) -> Iterator[Any]:
    """Yield the objects and arrays in a text, between lines, marks or words that a client puts around them."""
    start = 0
    for _ in range(MAX_JSON_STARTS):
        match = _json_start.search(text, start)
        if match is None:
            return
        try:
            value, start = _DECODER.raw_decode(text, match.start())
        except (ValueError, RecursionError):
            start = match.end()
        else:
            yield value


def _strings(value: Any) -> Iterator[str]:
    """Yield the strings in a JSON value, at any depth."""
    waiting = [value]
    while waiting:
        part = waiting.pop()
        if isinstance(part, str):
            yield part
        elif isinstance(part, dict | list):
            waiting += part.values() if isinstance(part, dict) else part


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

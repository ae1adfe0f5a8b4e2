"""JSON for programs: values to text, with payloads embedded as they were spelled, harmless on a terminal all the same.

Refuses to know rows and messages; `rows_json` and `messages_json` do.
"""

import json
from base64 import b64encode
from typing import Any

from .escape import json_text

SCHEMA = 1
"""The version of what docs/json.md describes. Fields may come; what is there keeps its name and meaning."""


class RawJson(str):
    """JSON text to be embedded as it is."""

    __slots__ = ()


_quoted = json.JSONEncoder(ensure_ascii=False).encode


def as_json(value: Any) -> str:
    """`value` on one line. Takes what `json` takes, and Verbatim anywhere among it."""
    return json_text(_text(value))


def payload(data: bytes) -> dict[str, str]:
    """Captured bytes as members of an object: `text` if they are UTF-8, else `base64`."""
    try:
        return {"text": data.decode()}
    except UnicodeDecodeError:
        return {"base64": b64encode(data).decode()}


def _text(value: Any) -> str:
    if isinstance(value, RawJson):
        return value
    if isinstance(value, dict):
        return "{" + ",".join([f"{_quoted(name)}:{_text(one)}" for name, one in value.items()]) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join([_text(one) for one in value]) + "]"
    return _quoted(value)

"""JSON for programs: values to text. Payloads are embedded as they were spelled, and the text is harmless on a terminal."""

import json
from base64 import b64encode
from collections.abc import Iterable
from typing import Any

from .escape import json_text

SCHEMA = 1
"""The version of the JSON that docs/json.md describes. Fields may be added; a field keeps its name and meaning."""


class RawJson(str):
    """JSON text that is embedded as it is."""

    __slots__ = ()


_quoted = json.JSONEncoder(ensure_ascii=False).encode


def as_json(value: Any) -> str:
    """Write `value` on one line. It may hold whatever `json` takes, and RawJson anywhere inside."""
    return json_text(_text(value))


def with_lines(head: dict[str, Any], name: str, items: Iterable[Any], more: str = "") -> str:
    """Write an object whose member `name` has an item per line; `more` is the text of the members that follow."""
    lines = ",".join(f"\n{as_json(item)}" for item in items)
    return f'{as_json(head)[:-1]},"{name}":[{lines}]{more}}}\n'


def payload(data: bytes) -> dict[str, str]:
    """Return captured bytes as a member of an object: `text` if they are UTF-8, else `base64`."""
    try:
        return {"text": data.decode()}
    except UnicodeDecodeError:
        return {"base64": b64encode(data).decode()}


def _text(value: Any) -> str:
    if isinstance(value, RawJson):
        return value
    if isinstance(value, dict):
        return "{" + ",".join([f"{_quoted(name)}:{_text(member)}" for name, member in value.items()]) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join([_text(item) for item in value]) + "]"
    return _quoted(value)

"""Values exchanged in the bytes of a JSON message; every byte that no edit names stays as it was written.

Refuses to read the values that it puts in: they are JSON already.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ...wire.json_spans import Place, place

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ..compare.ignore import Step


class Edit(NamedTuple):
    """A value, as JSON, and where it goes: by the steps from the root of the message, as `("params", "arguments", "path")`.

    `adds` says that a member that is not there is added.
    """

    steps: tuple[Step, ...]
    value: bytes
    adds: bool = False


def edited(payload: bytes, edits: Iterable[Edit]) -> bytes:
    """The payload with these values in their places, one after the other. An edit whose place is not there changes nothing."""
    for edit in edits:
        payload = _put(payload, edit)
    return payload


def has_place(payload: bytes, steps: Sequence[Step]) -> bool:
    """Whether there is a value at these steps."""
    return place(payload, steps) is not None


def _put(payload: bytes, edit: Edit) -> bytes:
    found = place(payload, edit.steps)
    if found is not None:
        return payload[: found[0]] + edit.value + payload[found[1] :]
    return _added(payload, edit) if edit.adds else payload


def _added(payload: bytes, edit: Edit) -> bytes:
    """The payload with the member added to its object, and with objects around it where these are missing too."""
    *around, last = edit.steps
    if not isinstance(last, str):
        return payload
    found = place(payload, around)
    if found is None:
        return _added(payload, Edit(tuple(around), b"{" + _named(last, edit.value) + b"}", adds=True)) if around else payload
    return _with_member(payload, found, _named(last, edit.value))


def _with_member(payload: bytes, found: Place, member: bytes) -> bytes:
    begin, end = found
    text = payload[begin:end].rstrip()
    if text[:1] != b"{" or text[-1:] != b"}":
        return payload
    inside = text[1:-1].rstrip()
    comma = b"," if inside.strip() else b""
    return payload[:begin] + b"{" + inside + comma + member + b"}" + payload[begin + len(text) :]


def _named(name: str, value: bytes) -> bytes:
    import json

    return json.dumps(name).encode() + b":" + value

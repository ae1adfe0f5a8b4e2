"""Texts that a model's answer spells in pieces, one to an event: a secret that they cut is found in the whole, and edited in each.

Which members are pieces is told by their names: whatever stands under `delta`, as all APIs have it. Refuses to know more of them.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any, Final, NamedTuple

from ..wire.edits import Edit, event_edits, shifted
from ..wire.json_spans import JsonWalk
from ..wire.jsonrpc import parse
from .encodings import JSON

_DELTA: Final = "delta"
_INDEXES: Final = ("index", "output_index", "content_index", "summary_index")
_JSON_NAMES: Final = {"arguments", "partial_json"}
"""Members whose pieces spell JSON, joined."""

_Find = Callable[[bytes], list[Edit]]


class _Piece(NamedTuple):
    """A piece of a text: in which event, where in its data, as it is written and as it is meant."""

    event: int
    start: int
    raw: bytes
    text: bytes


class _Key(NamedTuple):
    """Equal for the pieces of one text: whether it spells JSON, what the events call themselves, and where in them it stands."""

    is_json: bool
    kind: str
    way: tuple[Hashable, ...]


def delta_edits(events: Sequence[bytes], payload: _Find, text: _Find) -> list[Edit]:
    """Edits of a stream, which are these events joined: what `payload` finds in texts that spell JSON, and `text` in others."""
    joined: dict[_Key, list[_Piece]] = {}
    for number, event in enumerate(events):
        if b'"delta"' in event:
            event_edits(event, lambda data, at=number: _noted(joined, at, data), _nothing)  # type: ignore[misc]
    found: dict[int, list[Edit]] = {}
    for key, pieces in joined.items():
        edits = (payload if key.is_json else text)(b"".join(one.text for one in pieces))
        for number, edit in _dealt(pieces, edits):
            found.setdefault(number, []).append(edit)
    made: list[Edit] = []
    begin = 0
    for number, event in enumerate(events):
        edits = sorted(found.get(number, ()))
        moved = event_edits(event, lambda _, edits=edits: edits, _nothing) if edits else ()  # type: ignore[misc]
        made += shifted(moved, begin)
        begin += len(event)
    return made


def _nothing(_: bytes) -> list[Edit]:
    return []


def _noted(joined: dict[_Key, list[_Piece]], number: int, data: bytes) -> list[Edit]:
    """Take note of the pieces in an event's data."""
    said: Any = None
    walk = JsonWalk(data)
    for leaf in walk.leaves(bare=False):
        if leaf.is_name or not leaf.is_string:
            continue
        steps = walk.steps
        if _DELTA in steps:
            said = parse(data) if said is None else said
            raw = data[leaf.start : leaf.end]
            joined.setdefault(_key(steps, said), []).append(_Piece(number, leaf.start, raw, JSON.read(raw)))
    return []


def _key(steps: Sequence[str | int], said: Any) -> _Key:
    """The text that a piece belongs to: objects on the way to it that have an index go by that."""
    way: list[Hashable] = []
    kind = said.get("type") if isinstance(said, dict) else None
    kind = kind if isinstance(kind, str) else ""
    is_json = steps[-1] in _JSON_NAMES or any(name in kind for name in _JSON_NAMES)
    for step in steps:
        if isinstance(said, dict):
            way += (said[name] for name in _INDEXES if isinstance(said.get(name), int))
        said = _inner(said, step)
        has_index = isinstance(said, dict) and isinstance(said.get("index"), int)
        way.append(None if isinstance(step, int) and has_index else step)
    return _Key(is_json, kind, tuple(way))


def _inner(said: Any, step: str | int) -> Any:
    if isinstance(said, dict):
        return said.get(step)
    return said[step] if isinstance(said, list) and isinstance(step, int) and step < len(said) else None


def _dealt(pieces: Sequence[_Piece], edits: Sequence[Edit]) -> Iterator[tuple[int, Edit]]:
    """Edits of the joined text as edits of the data of events: what is new stands in the piece in which it begins."""
    begin = first = 0
    for one in pieces:
        end = begin + len(one.text)
        while first < len(edits) and edits[first].end <= begin:
            first += 1
        own: list[Edit] = []
        for edit in edits[first:]:
            if edit.start >= end:
                break
            start = max(edit.start, begin)
            new = edit.new if start == edit.start else b""
            own.append(Edit(start - begin, min(edit.end, end) - begin, new, edit.kind))
        yield from ((one.event, edit) for edit in JSON.back(one.raw, own, one.start))
        begin = end

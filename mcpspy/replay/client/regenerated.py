"""Values that a server makes anew at each run by the specification, put back to the recorded ones wherever the live server says them.

So a task's id in a text is no difference. Refuses to guess: what only looks made up is for `correlate`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

from ...wire.edits import ValueEdit, with_values
from ...wire.json_spans import span_at
from ..json.canonical import read
from ..json.redacted import mask_of, masked
from ..json.walk import value_at

if TYPE_CHECKING:
    from ...transcript.model import Exchange, Message
    from ..compare.ignore import Step


MIN_LETTERS: Final = 6
"""Shorter values stand in a text by chance."""

MAX_ELICITATIONS: Final = 8

MAX_ODD: Final = 50
"""So many values that are no words are looked for; words are looked up, however many there are."""

_word = re.compile(rb"[A-Za-z0-9_-]{6,}")

_IN_REQUESTS: Final[tuple[tuple[Step, ...], ...]] = (("params", "elicitationId"), ("params", "taskId"))
_IN_ANSWERS: Final[tuple[tuple[Step, ...], ...]] = (
    ("result", "taskId"),
    ("result", "task", "taskId"),
    ("result", "nextCursor"),
    ("result", "requestState"),
    *(("error", "data", "elicitations", at, "elicitationId") for at in range(MAX_ELICITATIONS)),
)
_NAMES: Final = re.compile(rb'"(?:elicitationId|taskId|nextCursor|requestState)"')


def restore_regenerated(pairs: Iterable[tuple[Exchange, Exchange]]) -> None:
    """Exchange these values in live messages: `pairs` are live exchanges, each with the recorded one that it is of."""
    listed = list(pairs)
    recorded: dict[bytes, bytes] = {}
    for live, before in listed:
        for now, then, paths in ((live.request, before.request, _IN_REQUESTS), (live.response, before.response, _IN_ANSWERS)):
            if now is not None and then is not None and _NAMES.search(now.raw) and _NAMES.search(then.raw):
                recorded.update(_other(now.raw, then.raw, paths))
    if recorded:
        odd = [one for one in recorded if not _word.fullmatch(one)]
        alternatives = [*map(re.escape, sorted(odd[:MAX_ODD], key=len, reverse=True)), _word.pattern]
        found = re.compile(b"|".join(alternatives))
        for message in _messages(live for live, _ in listed):
            message.raw = found.sub(lambda one: recorded.get(one[0], one[0]), message.raw)


def _other(now: bytes, then: bytes, paths: Iterable[tuple[Step, ...]]) -> Iterator[tuple[bytes, bytes]]:
    """The texts, as they are spelled in JSON, that stand at the same place and are not the same."""
    for path in paths:
        one, other = span_at(now, path), span_at(then, path)
        if one is None or other is None:
            continue
        live, recorded = now[slice(*one)], then[slice(*other)]
        if live != recorded and _is_text(live) and _is_text(recorded):
            yield live[1:-1], recorded[1:-1]


def _is_text(value: bytes) -> bool:
    try:
        return value[:1] == b'"' and len(json.loads(value)) >= MIN_LETTERS
    except ValueError:
        return False


def _messages(exchanges: Iterable[Exchange]) -> Iterator[Message]:
    for one in exchanges:
        yield one.request
        if one.response is not None:
            yield one.response


_MARK: Final = b"redacted-"


def restore_pseudonyms(pairs: Iterable[tuple[Exchange, Exchange]]) -> None:
    """Exchange what fits in live messages: `pairs` are live exchanges, each with the recorded one that it is of."""
    for live, before in pairs:
        for now, then in ((live.request, before.request), (live.response, before.response)):
            if now is not None and then is not None and _MARK in then.raw:
                _put(now, then)


def _put(now: Message, then: Message) -> None:
    live, recorded = read(now.raw), read(then.raw)
    holes = (hole for hole in mask_of(recorded) if masked(live, (hole,)) is not None)
    now.raw = with_values(
        now.raw, [ValueEdit(hole.steps, json.dumps(value_at(recorded, hole.steps)).encode()) for hole in holes]
    )

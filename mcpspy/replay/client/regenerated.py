"""Regenerated values: values of a live server that differ at each run, replaced by the recorded ones before a comparison.

By the specification these are task ids, cursors, `requestState` and elicitation ids: they are replaced wherever the server uses them,
in texts too. A redacted value is replaced where the live value fits around its pseudonym. Values that only look generated are
the job of `correlate`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

from ...wire.edits import ValueEdit, with_values
from ...wire.json_spans import span_at
from ..json.canonical import read
from ..json.redacted import mask_of, with_stand_ins
from ..json.walk import value_at

if TYPE_CHECKING:
    from ...transcript.model import Exchange, Message
    from ..compare.ignore import Step


MIN_LETTERS: Final = 6
"""Shorter values occur in texts by chance."""

MAX_ELICITATIONS: Final = 8

MAX_OTHERS: Final = 50
"""The most values that are not words and are searched for; words are looked up, however many there are."""

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
_PSEUDONYM_START: Final = b"redacted-"


def restore_regenerated(pairs: Iterable[tuple[Exchange, Exchange]]) -> None:
    """Replace generated values in live messages: `pairs` are live exchanges, each with its recorded one."""
    exchanges = list(pairs)
    recorded_values: dict[bytes, bytes] = {}
    for live, recorded in exchanges:
        both = ((live.request, recorded.request, _IN_REQUESTS), (live.response, recorded.response, _IN_ANSWERS))
        for now, then, paths in both:
            if now is not None and then is not None and _NAMES.search(now.raw) and _NAMES.search(then.raw):
                recorded_values.update(_different_texts(now.raw, then.raw, paths))
    if recorded_values:
        others = [value for value in recorded_values if not _word.fullmatch(value)]
        alternatives = [*map(re.escape, sorted(others[:MAX_OTHERS], key=len, reverse=True)), _word.pattern]
        values = re.compile(b"|".join(alternatives))
        for message in _messages(live for live, _ in exchanges):
            message.raw = values.sub(lambda match: recorded_values.get(match[0], match[0]), message.raw)


def _different_texts(now: bytes, then: bytes, paths: Iterable[tuple[Step, ...]]) -> Iterator[tuple[bytes, bytes]]:
    """Yield the live and the recorded text, as spelled in JSON, at each path where they differ."""
    for path in paths:
        live_span, recorded_span = span_at(now, path), span_at(then, path)
        if live_span is None or recorded_span is None:
            continue
        live, recorded = now[slice(*live_span)], then[slice(*recorded_span)]
        if live != recorded and _is_long_text(live) and _is_long_text(recorded):
            yield live[1:-1], recorded[1:-1]


def _is_long_text(value: bytes) -> bool:
    try:
        return value[:1] == b'"' and len(json.loads(value)) >= MIN_LETTERS
    except ValueError:
        return False


def _messages(exchanges: Iterable[Exchange]) -> Iterator[Message]:
    for exchange in exchanges:
        yield exchange.request
        if exchange.response is not None:
            yield exchange.response


def restore_pseudonyms(pairs: Iterable[tuple[Exchange, Exchange]]) -> None:
    """Put the recorded pseudonyms into live messages where the live values fit: `pairs` are live and recorded exchanges."""
    for live, recorded in pairs:
        for now, then in ((live.request, recorded.request), (live.response, recorded.response)):
            if now is not None and then is not None and _PSEUDONYM_START in then.raw:
                _put_pseudonyms(now, then)


def _put_pseudonyms(now: Message, then: Message) -> None:
    live, recorded = read(now.raw), read(then.raw)
    fitting = [text.steps for text in mask_of(recorded) if with_stand_ins(live, (text,)) is not None]
    edits = [ValueEdit(steps, json.dumps(value_at(recorded, steps)).encode()) for steps in fitting]
    now.raw = with_values(now.raw, edits)

"""Pseudonyms in a recording held against what a live server says: a text that fits around one is no difference.

Nobody here knows what was redacted, so anything fits in its place. Refuses to look at texts that do not.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from ...wire.edits import ValueEdit, with_values
from .canonical import read
from .leaves import at
from .masks import mask_of, masked

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ...transcript.model import Exchange, Message

_MARK: Final = b"redacted-"


def put_pseudonyms(pairs: Iterable[tuple[Exchange, Exchange]]) -> None:
    """Exchange what fits in live messages: `pairs` are live exchanges, each with the recorded one that it is of."""
    for live, before in pairs:
        for now, then in ((live.request, before.request), (live.response, before.response)):
            if now is not None and then is not None and _MARK in then.raw:
                _put(now, then)


def _put(now: Message, then: Message) -> None:
    live, recorded = read(now.raw), read(then.raw)
    holes = (hole for hole in mask_of(recorded) if masked(live, (hole,)) is not None)
    now.raw = with_values(now.raw, [ValueEdit(hole.steps, json.dumps(at(recorded, hole.steps)).encode()) for hole in holes])

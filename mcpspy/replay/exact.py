"""The matcher that takes requests for equal if their method, target and params are: repeated ones get their answers in order.

Params are compared as JSON, without `_meta` and without what a user or a model answered (`inputResponses` counts by its keys):
the story goes on as it was recorded, whatever they say. Refuses to guess: what is not equal is a miss, with what comes nearest.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, Literal

from ..transcript.mcp_methods import OPENINGS
from .miss import Miss

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..transcript.model import Exchange, Message

Reuse = Literal["last", "error"]

MAX_TARGETS: Final = 200
"""Among so many targets the nearest is looked for: it is a hint, and each costs 0.1 ms."""

MAX_METHODS: Final = 6
"""So many methods are named where one was never recorded."""

Key = tuple[str, str, str]


class Exact:
    """Recorded answers by what was asked; `reuse` says what comes after the last of several: that one again, or an error."""

    __slots__ = ("_answers", "_given", "_reuse", "_targets")

    def __init__(self, exchanges: Iterable[Exchange], reuse: Reuse = "last") -> None:
        self._answers: dict[Key, list[Exchange]] = {}
        self._given: dict[Key, int] = {}
        self._targets: dict[str, dict[str, Exchange]] = {}
        """By method and target the first recorded exchange."""
        self._reuse = reuse
        for one in exchanges:
            self._answers.setdefault(key(one.request), []).append(one)
            self._targets.setdefault(one.method, {}).setdefault(one.target or "", one)

    def match(self, request: Message) -> Exchange | Miss:
        """The recorded exchange to play for a request, or why there is none. Counts: the next equal one gets the next."""
        wanted = key(request)
        recorded = self._answers.get(wanted)
        if recorded is None:
            return self._missed(request)
        given = self._given.get(wanted, 0)
        if given < len(recorded):
            self._given[wanted] = given + 1
            return recorded[given]
        if self._reuse == "last":
            return recorded[-1]
        times = "once" if len(recorded) == 1 else f"{len(recorded)} times"
        return Miss(request=request, reason=f"was recorded {times} and asked for once more", nearest=recorded[-1])

    def _missed(self, request: Message) -> Miss:
        targets = self._targets.get(request.method or "")
        if targets is None:
            return Miss(request=request, reason=_never(request, list(self._targets)), is_unknown=True)
        nearest = targets.get(request.target or "") or _nearest(request.target or "", targets)
        return Miss(request=request, reason="was never recorded", nearest=nearest)


def _nearest(target: str, targets: dict[str, Exchange]) -> Exchange:
    from difflib import get_close_matches  # a miss can wait for it, a start-up should not

    some = list(targets)[:MAX_TARGETS]
    close = get_close_matches(target, some, n=1, cutoff=0)
    return targets[close[0] if close else some[0]]


def key(request: Message) -> Key:
    """Equal for requests that ask for the same. What opens a session is the same whoever opens it."""
    method = request.method or ""
    if method in OPENINGS:
        return method, "", ""
    params = request.params
    return method, request.target or "", _canonical(params) if isinstance(params, dict) else ""


def _canonical(params: dict[str, Any]) -> str:
    asked = {name: value for name, value in params.items() if name != "_meta"}
    if isinstance(asked.get("inputResponses"), dict):
        asked["inputResponses"] = sorted(asked["inputResponses"])
    try:
        return json.dumps(asked, sort_keys=True) if asked else ""
    except (ValueError, RecursionError):  # nested too deep for `json`: as Python spells it
        return repr(sorted(asked))


def _never(request: Message, methods: list[str]) -> str:
    if request.method in OPENINGS and (opening := [one for one in methods if one in OPENINGS]):
        return f"was never recorded: this recording opens with {opening[0]}"
    told = ", ".join(methods[:MAX_METHODS]) + (", …" if len(methods) > MAX_METHODS else "")
    return f"was never recorded; what was is {told}" if methods else "was never recorded"

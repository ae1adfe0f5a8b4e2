"""The matcher that takes requests for equal if their method, target and params are: repeated ones get their answers in order.

Params are compared as JSON, without `_meta` and without what a user or a model answered (`inputResponses` counts by its keys):
the story goes on as it was recorded, whatever they say. Refuses to guess: what is not equal is a miss, with what comes nearest.
"""

from __future__ import annotations

import json
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Final, Literal

from ..transcript.mcp_methods import OPENINGS
from .miss import Miss

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..transcript.model import Exchange, Message

Reuse = Literal["last", "error"]

MAX_METHODS: Final = 6
"""So many methods are named where one was never recorded."""

Key = tuple[str, str, str]


class Exact:
    """Recorded answers by what was asked; `reuse` says what comes after the last of several: that one again, or an error."""

    __slots__ = ("_answers", "_given", "_reuse")

    def __init__(self, exchanges: Iterable[Exchange], reuse: Reuse = "last") -> None:
        self._answers: dict[Key, list[Exchange]] = {}
        self._given: dict[Key, int] = {}
        self._reuse = reuse
        for one in exchanges:
            self._answers.setdefault(key(one.request), []).append(one)

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
        alike = [some for (method, _, _), some in self._answers.items() if method == request.method]
        if not alike:
            methods = list(dict.fromkeys(method for method, _, _ in self._answers))
            return Miss(request=request, reason=_never(request, methods), is_unknown=True)
        targets = {some[0].target or "": some[0] for some in reversed(alike)}
        same = targets.get(request.target or "")
        if same is not None:
            return Miss(request=request, reason="was never recorded", nearest=same)
        close = get_close_matches(request.target or "", targets, n=1, cutoff=0)
        return Miss(request=request, reason="was never recorded", nearest=targets[close[0]] if close else alike[0][0])


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

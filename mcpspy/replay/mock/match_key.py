"""What makes two requests the same question: how strictly their params are compared, and the key by which equal ones are found.

Refuses to judge what was answered.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, Protocol

from ...transcript.mcp.codes import PROGRESS_TOKEN
from ...transcript.mcp.methods import OPENINGS
from ..compare.ignore import pruned
from ..json.canonical import canonical

if TYPE_CHECKING:
    from ..compare.ignore import Ignore, Step

_ALWAYS_NEW: Final = frozenset({PROGRESS_TOKEN, "traceparent", "tracestate", "baggage"})
_ANSWERS: Final = "inputResponses"

MAX_KEY_LETTERS: Final = 4_000


class Strictness(StrEnum):
    """How much of a request has to be as it was recorded."""

    STRICT = "strict"
    """All of it but progress tokens and trace context, which are new each time."""
    DEFAULT = "default"
    """Not `_meta`, which says who asks and names this run, nor what a user or a model answered; of an opening the method alone.

    So another client may ask, or another version of it, and whatever is answered to a question, the story goes on.
    """
    LOOSE = "loose"
    """The same; where nothing matches so, method and target are enough."""


class MatchRules(Protocol):
    """By which questions are the same.

    `what` is what they call that of which something counts; `counts_target` says whether the target is part of it.
    """

    strictness: Strictness

    @property
    def what(self) -> str: ...

    @property
    def counts_target(self) -> bool: ...

    def less(self) -> MatchRules:
        """The same rules, by default strictness."""

    def counted(self, method: str, params: Any) -> Any:
        """What of params counts."""

    def traits(self, counted: Any) -> frozenset[str]:
        """By what that is known among others like it."""

    def leave_out(self, steps: tuple[Step, ...]) -> str:
        """The ignore rule that leaves this place out."""


class RequestRules:
    """The rules of MCP."""

    __slots__ = ("_ignore", "strictness")

    what: Final = "these params"
    counts_target: Final = False

    def __init__(self, strictness: Strictness, ignore: Ignore) -> None:
        self.strictness = strictness
        self._ignore = ignore

    def less(self) -> RequestRules:
        """The same rules, by default strictness."""
        return RequestRules(Strictness.DEFAULT, self._ignore)

    def counted(self, method: str, params: Any) -> Any:
        """What of params counts. `_meta` is taken out by hand: rules would take ten times as long."""
        if method in OPENINGS and self.strictness is not Strictness.STRICT:
            return {}
        if isinstance(params, dict):
            if "_meta" in params:
                params = self._without_meta(params)
            if isinstance(params.get(_ANSWERS), dict) and self.strictness is not Strictness.STRICT:
                params = {**params, _ANSWERS: sorted(params[_ANSWERS])}
        return pruned(params, self._ignore)

    def traits(self, counted: Any) -> frozenset[str]:
        """By what that is known among others like it."""
        from ..json.walk import traits  # for what may never be missed

        return traits(counted)

    def leave_out(self, steps: tuple[Step, ...]) -> str:
        """The ignore rule that leaves this place out, in every item of a list alike."""
        from ..compare.difference import rule_for  # as above

        return rule_for(steps)

    def _without_meta(self, params: dict[str, Any]) -> dict[str, Any]:
        meta = params["_meta"]
        made = {name: one for name, one in params.items() if name != "_meta"}
        if self.strictness is not Strictness.STRICT:
            return made
        kept = {name: one for name, one in meta.items() if name not in _ALWAYS_NEW} if isinstance(meta, dict) else meta
        return {**made, "_meta": kept} if kept else made


def match_key(method: str, counted: Any) -> str:
    """The text by which a question is found; of a long one its digest, for prompts of one conversation repeat each other."""
    text = canonical(counted)
    if len(text) > MAX_KEY_LETTERS:
        from hashlib import sha256

        text = sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{method} {text}"

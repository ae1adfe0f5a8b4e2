"""What makes two requests the same question: how strictly their params are compared, and the key by which equal ones are found.

Refuses to judge what was answered.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from ..transcript.mcp_codes import PROGRESS_TOKEN
from ..transcript.mcp_methods import OPENINGS
from .asked import VOLATILE_META
from .canonical import canonical
from .difference import pruned

if TYPE_CHECKING:
    from .ignore import Ignore

_ALWAYS_NEW: Final = frozenset({PROGRESS_TOKEN, "traceparent", "tracestate", "baggage"})
_OF_THIS_RUN: Final = frozenset(VOLATILE_META)

_ANSWERS: Final = "inputResponses"


class Strictness(StrEnum):
    """How much of a request has to be as it was recorded."""

    STRICT = "strict"
    """All of it but progress tokens and trace context, which are new each time."""
    DEFAULT = "default"
    """Not what `_meta` says of who asks and of this run, nor what a user or a model answered; of an opening the method alone.

    So another version of a client may ask, and whatever is answered to a question, the story goes on.
    """
    LOOSE = "loose"
    """The same; where nothing matches so, method and target are enough."""


class Asking:
    """The rules by which questions are the same."""

    __slots__ = ("_ignore", "_meta", "strictness")

    def __init__(self, strictness: Strictness, ignore: Ignore) -> None:
        self.strictness = strictness
        self._ignore = ignore
        self._meta = _ALWAYS_NEW if strictness is Strictness.STRICT else _OF_THIS_RUN

    def counted(self, method: str, params: Any) -> Any:
        """What of params counts. Volatile keys of `_meta` are taken out by hand: a rule for each would take ten times as long."""
        if method in OPENINGS and self.strictness is not Strictness.STRICT:
            return {}
        if isinstance(params, dict):
            if "_meta" in params:
                params = self._without_volatile(params)
            if isinstance(params.get(_ANSWERS), dict) and self.strictness is not Strictness.STRICT:
                params = {**params, _ANSWERS: sorted(params[_ANSWERS])}
        return pruned(params, self._ignore)

    def _without_volatile(self, params: dict[str, Any]) -> dict[str, Any]:
        meta = params["_meta"]
        if not isinstance(meta, dict):
            return params
        kept = {name: one for name, one in meta.items() if name not in self._meta}
        made = {name: one for name, one in params.items() if name != "_meta"}
        if kept:
            made["_meta"] = kept
        return made


def key_of(method: str, counted: Any) -> str:
    """The text by which a question is found."""
    return f"{method} {canonical(counted)}"

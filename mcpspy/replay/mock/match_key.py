"""Match keys: the text by which equal requests are found, and how strictly params are compared.

Looks at requests alone, never at their answers.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Final, Protocol

from ...json_path import Step
from ...transcript.mcp.codes import PROGRESS_TOKEN
from ...transcript.mcp.methods import OPENINGS
from ..compare.ignore import Ignore, without_ignored
from ..json_values import canonical

_ALWAYS_NEW: Final = frozenset({PROGRESS_TOKEN, "traceparent", "tracestate", "baggage"})
_ANSWERS: Final = "inputResponses"

MAX_KEY_LETTERS: Final = 4_000


class Strictness(StrEnum):
    """The strictness of a comparison: the parts of a request that have to equal the recorded one."""

    STRICT = "strict"
    """All but progress tokens and trace context, which are new each time."""
    DEFAULT = "default"
    """Not `_meta`, which names the client and this run; not the answers of a user or a model; of an opening only the method.

    So another client, or another version of it, gets the recorded answers too, and a dialogue goes on whatever a user answers.
    """
    LOOSE = "loose"
    """As `default`; a request that matches nothing so is matched by method and target alone."""


class MatchRules(Protocol):
    """The rules by which requests are equal.

    `subject` names in a sentence what is compared. `counts_target` says that the target is a part of it.
    """

    strictness: Strictness

    @property
    def subject(self) -> str: ...

    @property
    def counts_target(self) -> bool: ...

    def relaxed(self) -> MatchRules:
        """Return the same rules with default strictness."""

    def counted(self, method: str, params: Any) -> Any:
        """Return the part of params that is compared."""

    def traits(self, counted: Any) -> frozenset[str]:
        """Return the traits by which two counted parts are more or less similar."""

    def ignore_rule(self, steps: tuple[Step, ...]) -> str:
        """Return the ignore rule that leaves this JSON path out."""


class RequestRules:
    """The match rules for MCP."""

    __slots__ = ("_ignore", "strictness")

    subject: Final = "these params"
    counts_target: Final = False

    def __init__(self, strictness: Strictness, ignore: Ignore) -> None:
        self.strictness = strictness
        self._ignore = ignore

    def relaxed(self) -> RequestRules:
        """Return the same rules with default strictness."""
        return RequestRules(Strictness.DEFAULT, self._ignore)

    def counted(self, method: str, params: Any) -> Any:
        """Return the part of params that is compared. `_meta` is taken out by hand: ignore rules would take ten times as long."""
        if method in OPENINGS and self.strictness is not Strictness.STRICT:
            return {}
        if isinstance(params, dict):
            if "_meta" in params:
                params = self._without_meta(params)
            if isinstance(params.get(_ANSWERS), dict) and self.strictness is not Strictness.STRICT:
                params = {**params, _ANSWERS: sorted(params[_ANSWERS])}
        return without_ignored(params, self._ignore)

    def traits(self, counted: Any) -> frozenset[str]:
        """Return the traits by which two counted parts are more or less similar."""
        from ..json_values import traits  # only a miss needs it

        return traits(counted)

    def ignore_rule(self, steps: tuple[Step, ...]) -> str:
        """Return the ignore rule that leaves this JSON path out, in every item of a list."""
        from ..compare.difference import rule_for  # only a miss needs it

        return rule_for(steps)

    def _without_meta(self, params: dict[str, Any]) -> dict[str, Any]:
        meta = params["_meta"]
        kept_params = {name: value for name, value in params.items() if name != "_meta"}
        if self.strictness is not Strictness.STRICT:
            return kept_params
        kept = {name: value for name, value in meta.items() if name not in _ALWAYS_NEW} if isinstance(meta, dict) else meta
        return {**kept_params, "_meta": kept} if kept else kept_params


def match_key(method: str, counted: Any) -> str:
    """Return the text that equal requests share. A long one becomes a digest: prompts of one conversation repeat each other."""
    text = canonical(counted)
    if len(text) > MAX_KEY_LETTERS:
        from hashlib import sha256

        text = sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{method} {text}"

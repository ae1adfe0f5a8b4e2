"""Why a question has no recorded answer: what is nearest to it, where it differs, and what would let it match.

It is given a bounded number of recorded questions to look at. Refuses to decide what matches.
"""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ...transcript.mcp.methods import OPENINGS
from ..compare.difference import Differences, differences
from ..json.similarity import likeness
from .miss import METHOD, TARGET, Miss

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ...transcript.model import Exchange, Message
    from .match_key import Rules

MAX_METHODS: Final = 6
"""So many methods are named where one was never recorded."""

MAX_RULES: Final = 5
"""More rules than that are no advice."""


class Candidate(NamedTuple):
    """A recorded question, and what of its params counts."""

    exchange: Exchange
    counted: Any


def unknown_method(request: Message, methods: Iterable[str]) -> Miss:
    """A miss of a method that was never recorded, while `methods` were."""
    known = list(methods)
    opening = [one for one in known if one in OPENINGS]
    if request.method in OPENINGS and opening:
        reason = f"was never recorded: this recording opens with {opening[0]}"
    elif known:
        reason = f"was never recorded; what was is {', '.join(known[:MAX_METHODS])}{', …' if len(known) > MAX_METHODS else ''}"
    else:
        reason = "was never recorded"
    return Miss(request=request, reason=reason, refused_by=METHOD)


def unknown_target(request: Message, candidates: Sequence[Candidate]) -> Miss:
    """A miss of a target that was never recorded; its method was. Never without candidates."""
    targets = {one.exchange.target or "": one.exchange for one in reversed(candidates)}
    close = get_close_matches(request.target or "", targets, n=1, cutoff=0)
    nearest = targets[close[0]] if close else candidates[0].exchange
    return Miss(request=request, reason="was never recorded", refused_by=TARGET, nearest=nearest)


def other_params(request: Message, counted: Any, candidates: Sequence[Candidate], rules: Rules, options: Sequence[str]) -> Miss:
    """A miss by params alone. `counted` is what of them counts, by `rules`. Never without candidates."""
    nearest, found = _nearest(counted, candidates, rules)
    ignore = tuple(dict.fromkeys(rules.leave_out(one.steps) for one in found.listed if one.steps))
    return Miss(
        request=request,
        reason=f"was never recorded with {rules.what}",
        refused_by=f"--match {rules.strictness}",
        nearest=nearest,
        differences=found,
        ignore=ignore if len(ignore) <= MAX_RULES and not found.more else (),
        options=tuple(options),
    )


def used_up(request: Message, last: Exchange, count: int) -> Miss:
    """A miss of what was asked more often than the `count` times that it was recorded, and `last` so."""
    times = "once" if count == 1 else f"{count} times"
    reason = f"was recorded {times} and asked for once more"
    return Miss(request=request, reason=reason, refused_by="--reuse error", nearest=last, options=("--reuse last",))


def _nearest(counted: Any, candidates: Sequence[Candidate], rules: Rules) -> tuple[Exchange, Differences]:
    """The most alike of the candidates, and where what is asked differs from it."""
    asked = rules.traits(counted)
    best = max(candidates, key=lambda one: likeness(rules.traits(one.counted), asked))
    return best.exchange, differences(best.counted, counted)

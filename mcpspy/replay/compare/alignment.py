"""Alignment of the calls of two transcripts: which call of one is which of the other, by sender, method and params, never by id.

Equal calls are paired in order. Of the others, calls of one method and target are paired by the similarity of their params: these are
the same call with other params. What is left was added or removed. Linear, except for similar calls.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from ...transcript.calls.call import ABOUT_TASKS
from ...transcript.mcp.methods import OPENINGS
from ...transcript.model import Exchange
from ..json.walk import similarity, traits
from ..mock.content import match_digest, params_value
from .ignore import without_ignored

if TYPE_CHECKING:
    from .ignore import Ignore

MAX_COMPARED: Final = 100
"""The most calls of one method and target on either side whose similarity is computed; more are paired in order."""

_WITHOUT_TARGET: Final = {*ABOUT_TASKS, *OPENINGS}
"""Methods whose target, a task's id or a revision, does not distinguish calls."""

Pair: TypeAlias = tuple[Exchange | None, Exchange | None]
"""A call before and after; None on the side that does not have it."""

_Group: TypeAlias = tuple[str, str, str | None]


class _Call(NamedTuple):
    at: int
    exchange: Exchange


def call_pairs(before: Sequence[Exchange], after: Sequence[Exchange], ignore: Ignore) -> list[Pair]:
    """Pair every call of both sides once, in the order of `after`; a removed call follows the call that came before it."""
    partner: dict[int, int] = {}
    old, new = _pair_equal(before, after, lambda exchange: _key(exchange, ignore), partner)
    if len(before) == len(after) == 1:
        partner[0] = 0  # a user who selects two calls wants them compared
    else:
        _pair_similar(old, new, ignore, partner)
    return _in_order(before, after, partner)


def _key(exchange: Exchange, ignore: Ignore) -> bytes:
    return match_digest(exchange.sender, exchange.method, params_value(exchange.request), ignore)


def _group(exchange: Exchange) -> _Group:
    target = None if exchange.method in _WITHOUT_TARGET else exchange.target
    return exchange.sender, exchange.method, target


def _pair_equal(
    before: Iterable[Exchange], after: Iterable[Exchange], key: Callable[[Exchange], bytes], partner: dict[int, int]
) -> tuple[list[_Call], list[_Call]]:
    """Pair calls with equal keys, the first with the first; return the others of each side."""
    waiting: defaultdict[bytes, deque[_Call]] = defaultdict(deque)
    for at, exchange in enumerate(before):
        waiting[key(exchange)].append(_Call(at, exchange))
    added: list[_Call] = []
    for at, exchange in enumerate(after):
        same = waiting.get(key(exchange))
        if same:
            partner[at] = same.popleft().at
        else:
            added.append(_Call(at, exchange))
    removed = sorted((call for calls in waiting.values() for call in calls), key=lambda call: call.at)
    return removed, added


def _pair_similar(before: list[_Call], after: list[_Call], ignore: Ignore, partner: dict[int, int]) -> None:
    groups: defaultdict[_Group, tuple[list[_Call], list[_Call]]] = defaultdict(lambda: ([], []))
    for side, calls in enumerate((before, after)):
        for call in calls:
            groups[_group(call.exchange)][side].append(call)
    for old, new in groups.values():
        for first, second in _most_similar(old, new, ignore):
            partner[second.at] = first.at


def _most_similar(old: list[_Call], new: list[_Call], ignore: Ignore) -> Iterable[tuple[_Call, _Call]]:
    """Yield the most similar pairs first, each call once; among equally similar pairs the order decides."""
    if len(old) <= 1 >= len(new) or max(len(old), len(new)) > MAX_COMPARED:
        yield from zip(old, new, strict=False)
        return
    old_traits, new_traits = (
        [traits(without_ignored(params_value(call.exchange.request), ignore)) for call in calls] for calls in (old, new)
    )
    ranked = sorted(
        (-similarity(first, second), abs(i - j), i, j)
        for i, first in enumerate(old_traits)
        for j, second in enumerate(new_traits)
    )
    taken_old: set[int] = set()
    taken_new: set[int] = set()
    for _, _, i, j in ranked:
        if i not in taken_old and j not in taken_new:
            taken_old.add(i)
            taken_new.add(j)
            yield old[i], new[j]


def _in_order(before: Sequence[Exchange], after: Sequence[Exchange], partner: dict[int, int]) -> list[Pair]:
    after_of = {old: new for new, old in partner.items()}
    placed: list[tuple[int, int, Pair]] = []
    last = -1
    for at, exchange in enumerate(before):
        if at in after_of:
            last = after_of[at]
        else:
            placed.append((last, at + 1, (exchange, None)))
    for at, exchange in enumerate(after):
        placed.append((at, 0, (before[partner[at]] if at in partner else None, exchange)))
    return [pair for _, _, pair in sorted(placed, key=lambda item: item[:2])]

"""Which call of one transcript is which of another: by who asked, method and params, and never by id.

Equal calls are paired in order. Of what is left, calls of one method and target are paired by how like their params are: they were
asked otherwise. The rest came or went. Linear, but for the few that are alike.
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
from .ignore import pruned

if TYPE_CHECKING:
    from .ignore import Ignore

MAX_COMPARED: Final = 100
"""Of calls with one method and target so many on either side are held against each other; more are paired in order."""

_ALIKE: Final = {*ABOUT_TASKS, *OPENINGS}
"""Methods whose target, a task's id or a revision, does not tell one call from another."""

Pair: TypeAlias = tuple[Exchange | None, Exchange | None]
"""A call before and after; None for one that is on the other side alone."""

_Group: TypeAlias = tuple[str, str, str | None]


class _Question(NamedTuple):
    at: int
    exchange: Exchange


def call_pairs(before: Sequence[Exchange], after: Sequence[Exchange], ignore: Ignore) -> list[Pair]:
    """Every call of both sides once, in the order of `after`; what went stands behind what came before it."""
    partner: dict[int, int] = {}
    old, new = _paired(before, after, lambda one: _key(one, ignore), partner)
    if len(before) == len(after) == 1:
        partner[0] = 0  # whoever asks for two calls wants to see them compared
    else:
        _pair_alike(old, new, ignore, partner)
    return _in_order(before, after, partner)


def _key(exchange: Exchange, ignore: Ignore) -> bytes:
    return match_digest(exchange.sender, exchange.method, params_value(exchange.request), ignore)


def _group(exchange: Exchange) -> _Group:
    target = None if exchange.method in _ALIKE else exchange.target
    return exchange.sender, exchange.method, target


def _paired(
    before: Iterable[Exchange], after: Iterable[Exchange], key: Callable[[Exchange], bytes], partner: dict[int, int]
) -> tuple[list[_Question], list[_Question]]:
    """Pair calls with equal keys, the first with the first; what is left of either side."""
    waiting: defaultdict[bytes, deque[_Question]] = defaultdict(deque)
    for at, one in enumerate(before):
        waiting[key(one)].append(_Question(at, one))
    left: list[_Question] = []
    for at, one in enumerate(after):
        same = waiting.get(key(one))
        if same:
            partner[at] = same.popleft().at
        else:
            left.append(_Question(at, one))
    return sorted((one for some in waiting.values() for one in some), key=lambda one: one.at), left


def _pair_alike(before: list[_Question], after: list[_Question], ignore: Ignore, partner: dict[int, int]) -> None:
    groups: defaultdict[_Group, tuple[list[_Question], list[_Question]]] = defaultdict(lambda: ([], []))
    for side, questions in enumerate((before, after)):
        for one in questions:
            groups[_group(one.exchange)][side].append(one)
    for old, new in groups.values():
        for first, second in _nearest(old, new, ignore):
            partner[second.at] = first.at


def _nearest(old: list[_Question], new: list[_Question], ignore: Ignore) -> Iterable[tuple[_Question, _Question]]:
    """Pairs of the most alike first, each once; among equally alike ones the order decides."""
    if len(old) <= 1 >= len(new) or max(len(old), len(new)) > MAX_COMPARED:
        yield from zip(old, new, strict=False)
        return
    olds, news = ([traits(pruned(params_value(one.exchange.request), ignore)) for one in some] for some in (old, new))
    ranked = sorted((-similarity(one, other), abs(i - j), i, j) for i, one in enumerate(olds) for j, other in enumerate(news))
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
    for at, one in enumerate(before):
        if at in after_of:
            last = after_of[at]
        else:
            placed.append((last, at + 1, (one, None)))
    placed += [(at, 0, (before[partner[at]] if at in partner else None, one)) for at, one in enumerate(after)]
    return [pair for _, _, pair in sorted(placed, key=lambda one: one[:2])]

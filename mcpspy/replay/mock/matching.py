"""Finds for what is asked now the recorded exchange that answers it, or says why there is none.

Questions are the same by method and by what counts of their params (`question`). What one client asked, in order, is a way; where
ways begin alike and then branch, what a live client has asked before says on which it walks, and so which of several answers to the
same question it gets. Lookup is in a few dicts, however much was recorded; only a miss looks further.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ...records import CLIENT
from ..compare.ignore import Ignore
from ..json.canonical import canonical
from ..json.redacted import MAX_MASKS, Mask, mask_of, masked
from .content import asked_value
from .match_key import Asking, Rules, Strictness, key_of
from .owner import owner

if TYPE_CHECKING:
    from ...records import Side
    from ...transcript.model import Exchange, Message
    from .miss import Candidate, Miss
    from .owner import Owner

_ROOT: Final = 0

MAX_CONSIDERED: Final = 200
"""So many different questions of one method, and of one target, are kept to explain a miss by."""


class Reuse(StrEnum):
    """What becomes of a question that is asked more often than it was recorded."""

    LAST = "last"
    """It gets its last answer again."""
    ERROR = "error"
    """It is a miss."""


class How(StrEnum):
    """By what a recorded exchange was found."""

    HISTORY = "history"
    """All that was asked before is as recorded."""
    ORDER = "order"
    """It is the next one of its kind."""
    REUSED = "reused"
    """All were given, and this is the last one again."""
    LOOSE = "loose"
    """Its method and target alone are the same."""


class _Recorded(NamedTuple):
    """A recorded question: on which way it stands, and where."""

    exchange: Exchange
    way: int
    at: int


class _Entry:
    """The recorded questions of one key, by way, in order."""

    __slots__ = ("count", "of", "ways")

    def __init__(self) -> None:
        self.of: dict[int, list[_Recorded]] = {}
        self.ways: list[int] = []
        self.count = 0

    def add(self, one: _Recorded) -> None:
        if one.way not in self.of:
            self.of[one.way] = []
            self.ways.append(one.way)
        self.of[one.way].append(one)
        self.count += 1


class Matcher:
    """What was recorded, made ready to be asked. It never changes; each live client has a `walk` of its own.

    `exchanges` are in the order in which they began. `side` is who asks: of its requests it knows the answers. `rules` makes what
    says which questions are the same.

    Raises: PathError: for an ignore rule that cannot be read.
    """

    def __init__(
        self,
        exchanges: Iterable[Exchange],
        *,
        side: Side = CLIENT,
        strictness: Strictness = Strictness.DEFAULT,
        ignore: Sequence[str] = (),
        reuse: Reuse = Reuse.LAST,
        rules: Callable[[Strictness, Ignore], Rules] = Asking,
    ) -> None:
        self.reuse = reuse
        self.asking = rules(strictness, Ignore.of(ignore))
        self.entries: dict[str, _Entry] = {}
        self.masks: dict[str, dict[Mask, None]] = {}
        self.loose: dict[str, _Entry] = {}
        self.children: dict[tuple[int, str], int] = {}
        self.nodes: list[dict[int, _Recorded]] = [{}]
        """Of each node of the tree of questions, the ways that come by it. The root is no question."""
        self.ways = 0
        self.places: dict[int, tuple[int, int]] = {}
        """On which way a row stands, and where."""
        self._methods: dict[str, dict[str, Exchange]] = {}
        self._targets: dict[tuple[str, str | None], dict[str, Exchange]] = {}
        """The first questions that differ, by their keys: those that a miss is held against."""
        self.owners: list[Owner] = []
        """Of each way, who went it."""
        for who, way in _owned(exchanges, side).items():
            self.owners.append(who)
            self._add(way)

    def walk(self, number: int = 0) -> Walk:
        """The walk of a client that has asked nothing yet. The how many-th it is says which of ways that are alike it takes."""
        return Walk(self, number % self.ways if self.ways else 0)

    def entry(self, method: str, counted: Any) -> tuple[str, _Entry] | None:
        """The recorded questions that are the same as this one, under their key."""
        key = key_of(method, counted)
        found = self.entries.get(key)
        if found is not None:
            return key, found
        for mask in self.masks.get(method, ()):
            fitted = masked(counted, mask)
            if fitted is not None:
                key = key_of(method, fitted)
                found = self.entries.get(key)
                if found is not None:
                    return key, found
        return None

    def miss(self, request: Message, counted: Any) -> Miss:
        """Why there is no such question."""
        from .miss import other_params, unknown_method, unknown_target  # 10 ms of start-up, for what may never be missed

        method = request.method or ""
        known = self._targets.get((method, request.target))
        if known is None and self.asking.counts_target:
            known = self._methods.get(method)
        if known is not None:
            return other_params(request, counted, self._candidates(known), self.asking, [self._looser(request, known)])
        known = self._methods.get(method)
        if known is not None:
            return unknown_target(request, self._candidates(known))
        return unknown_method(request, self._methods)

    def _candidates(self, known: dict[str, Exchange]) -> list[Candidate]:
        """What it may have meant, with what counts of it, which is read again: kept, it would take more than the recording."""
        from .miss import Candidate

        asking = self.asking
        return [Candidate(one, asking.counted(one.method, asked_value(one.request))) for one in known.values()]

    def _looser(self, request: Message, known: dict[str, Exchange]) -> str:
        """What would let a question match whose params alone were never recorded."""
        if self.asking.strictness is Strictness.STRICT:
            less = self.asking.less()
            method = request.method or ""
            wanted = canonical(less.counted(method, asked_value(request)))
            if any(canonical(less.counted(method, asked_value(one.request))) == wanted for one in known.values()):
                return "--match default"
        return "--match loose"

    def _add(self, exchanges: Iterable[Exchange]) -> None:
        node, way = _ROOT, self.ways
        self.ways += 1
        for at, exchange in enumerate(exchanges):
            method = exchange.method
            counted = self.asking.counted(method, asked_value(exchange.request))
            one = _Recorded(exchange, way, at)
            self.places[exchange.row] = way, at
            key = key_of(method, counted)
            self.entries.setdefault(key, _Entry()).add(one)
            self.loose.setdefault(_loose_key(method, exchange.target), _Entry()).add(one)
            child = self._grow(node, key, one)
            other = self._add_masked(method, counted, one)
            if other is not None:
                self.children.setdefault((node, other), child)
            node = child
            for known in (self._methods.setdefault(method, {}), self._targets.setdefault((method, exchange.target), {})):
                if len(known) < MAX_CONSIDERED:
                    known.setdefault(key, exchange)

    def _add_masked(self, method: str, counted: Any, one: _Recorded) -> str | None:
        """Let a question be found without knowing what was redacted in it; the key it is found by then."""
        mask = mask_of(counted)
        if not mask:
            return None
        masks = self.masks.setdefault(method, {})
        if len(masks) >= MAX_MASKS and mask not in masks:
            return None
        masks[mask] = None
        key = key_of(method, masked(counted, mask))
        self.entries.setdefault(key, _Entry()).add(one)
        return key

    def _grow(self, node: int, key: str, one: _Recorded) -> int:
        child = self.children.get((node, key))
        if child is None:
            child = self.children[node, key] = len(self.nodes)
            self.nodes.append({})
        self.nodes[child][one.way] = one
        return child


class Walk:
    """What one live client asks, one question after the other. It remembers what it was given."""

    __slots__ = ("_at", "_here", "_last", "_matcher", "_node", "_others", "_taken", "how")

    def __init__(self, matcher: Matcher, here: int) -> None:
        self._matcher = matcher
        self._here, self._at = here, -1
        """On which way it is, and how far it has come."""
        self._node: int | None = _ROOT
        """Where it stands in the tree; None once it has left it."""
        self._taken: dict[tuple[str, int], dict[int, int]] = {}
        """Of the questions of one key and way: after a place that was given, the next that may be free (union-find)."""
        self._others: dict[str, int] = {}
        self._last: dict[str, Exchange] = {}
        self.how = How.ORDER
        """How the last exchange was found."""

    @property
    def owner(self) -> Owner | None:
        """The recorded client on whose way it is; None if nothing was recorded."""
        return self._matcher.owners[self._here] if self._matcher.owners else None

    def branch(self, exchange: Exchange) -> Walk:
        """Another walk that stands behind this exchange, and to which nothing was given yet."""
        other = Walk(self._matcher, self._here)
        other._here, other._at = self._matcher.places.get(exchange.row, (self._here, -1))
        other._node = None
        return other

    def match(self, request: Message) -> Exchange | Miss:
        """The recorded exchange that answers this request, which counts as given then; or why there is none."""
        matcher = self._matcher
        method = request.method or ""
        counted = matcher.asking.counted(method, asked_value(request))
        found = matcher.entry(method, counted)
        if found is not None:
            return self._given(request, *found)
        self._node = None
        if matcher.asking.strictness is Strictness.LOOSE:
            key = _loose_key(method, request.target)
            entry = matcher.loose.get(key)
            if entry is not None:
                given = self._given(request, key, entry)
                self.how = How.LOOSE
                return given
        return matcher.miss(request, counted)

    def _given(self, request: Message, key: str, entry: _Entry) -> Exchange | Miss:
        """The answer that this question gets now."""
        self.how = How.HISTORY
        one = self._by_history(key, entry)
        if one is None:
            self.how = How.ORDER
            one = self._in_order(key, entry)
        if one is not None:
            self._here, self._at = one.way, one.at
            self._last[key] = one.exchange
            return one.exchange
        if self._matcher.reuse is Reuse.ERROR:
            from .miss import used_up

            return used_up(request, self._last[key], entry.count)
        self.how = How.REUSED
        return self._last[key]

    def _by_history(self, key: str, entry: _Entry) -> _Recorded | None:
        """A question at the same place of the tree."""
        if self._node is None:
            return None
        self._node = self._matcher.children.get((self._node, key))
        if self._node is None:
            return None
        recorded = self._matcher.nodes[self._node]
        one = recorded.get(self._here) or next(iter(recorded.values()))
        places = entry.of[one.way]
        place = bisect_right(places, one.at, key=lambda other: other.at) - 1
        return self._take(key, places, place) if self._next_free(key, places, place) == place else None

    def _in_order(self, key: str, entry: _Entry) -> _Recorded | None:
        """The next free one: further on on this way, else earlier on it, else on another."""
        places = entry.of.get(self._here)
        if places is not None:
            after = bisect_right(places, self._at, key=lambda one: one.at)
            for place in (after, 0):
                free = self._next_free(key, places, place)
                if free < len(places):
                    return self._take(key, places, free)
        for number in range(self._others.get(key, 0), len(entry.ways)):
            places = entry.of[entry.ways[number]]
            free = self._next_free(key, places, 0)
            if free < len(places):
                return self._take(key, places, free)
            self._others[key] = number + 1
        return None

    def _next_free(self, key: str, places: list[_Recorded], place: int) -> int:
        taken = self._taken.get((key, places[0].way))
        if taken is None:
            return place
        root = place
        while root in taken:
            root = taken[root]
        while place != root:
            taken[place], place = root, taken[place]
        return root

    def _take(self, key: str, places: list[_Recorded], place: int) -> _Recorded:
        self._taken.setdefault((key, places[0].way), {})[place] = place + 1
        return places[place]


def _loose_key(method: str, target: str | None) -> str:
    return f"loose {method} {target or ''}"


def ways(exchanges: Iterable[Exchange], side: Side = CLIENT) -> list[list[Exchange]]:
    """What each client asked, in order."""
    return list(_owned(exchanges, side).values())


def _owned(exchanges: Iterable[Exchange], side: Side) -> dict[Owner, list[Exchange]]:
    found: dict[Owner, list[Exchange]] = {}
    for row in exchanges:
        if row.sender == side:
            found.setdefault(owner(row.capture, row.transaction), []).append(row)
    return found

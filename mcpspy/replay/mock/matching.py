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
from .content import params_value
from .match_key import MatchRules, RequestRules, Strictness, match_key
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


class MatchedBy(StrEnum):
    """By what a recorded exchange was found."""

    HISTORY = "history"
    """All that was asked before is as recorded."""
    ORDER = "order"
    """It is the next one of its kind."""
    REUSED = "reused"
    """All were given, and this is the last one again."""
    LOOSE = "loose"
    """Its method and target alone are the same."""


class _RecordedRequest(NamedTuple):
    """A recorded question: on which way it stands, and where."""

    exchange: Exchange
    sequence: int
    at: int


class _EqualRequests:
    """The recorded questions of one key, by sequence, in order."""

    __slots__ = ("count", "of", "sequences")

    def __init__(self) -> None:
        self.of: dict[int, list[_RecordedRequest]] = {}
        self.sequences: list[int] = []
        self.count = 0

    def add(self, one: _RecordedRequest) -> None:
        if one.sequence not in self.of:
            self.of[one.sequence] = []
            self.sequences.append(one.sequence)
        self.of[one.sequence].append(one)
        self.count += 1


class RequestMatcher:
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
        rules: Callable[[Strictness, Ignore], MatchRules] = RequestRules,
    ) -> None:
        self.reuse = reuse
        self.rules = rules(strictness, Ignore.of(ignore))
        self.entries: dict[str, _EqualRequests] = {}
        self.masks: dict[str, dict[Mask, None]] = {}
        self.loose: dict[str, _EqualRequests] = {}
        self.children: dict[tuple[int, str], int] = {}
        self.nodes: list[dict[int, _RecordedRequest]] = [{}]
        """Of each node of the tree of questions, the ways that come by it. The root is no question."""
        self.sequences = 0
        self.places: dict[int, tuple[int, int]] = {}
        """On which way a row stands, and where."""
        self._methods: dict[str, dict[str, Exchange]] = {}
        self._targets: dict[tuple[str, str | None], dict[str, Exchange]] = {}
        """The first questions that differ, by their keys: those that a miss is held against."""
        self.owners: list[Owner] = []
        """Of each sequence, who went it."""
        for who, sequence in _owned(exchanges, side).items():
            self.owners.append(who)
            self._add(sequence)

    def cursor(self, number: int = 0) -> MatchCursor:
        """The walk of a client that has asked nothing yet. The how many-th it is says which of ways that are alike it takes."""
        return MatchCursor(self, number % self.sequences if self.sequences else 0)

    def entry(self, method: str, counted: Any) -> tuple[str, _EqualRequests] | None:
        """The recorded questions that are the same as this one, under their key."""
        key = match_key(method, counted)
        found = self.entries.get(key)
        if found is not None:
            return key, found
        for mask in self.masks.get(method, ()):
            fitted = masked(counted, mask)
            if fitted is not None:
                key = match_key(method, fitted)
                found = self.entries.get(key)
                if found is not None:
                    return key, found
        return None

    def miss(self, request: Message, counted: Any) -> Miss:
        """Why there is no such question."""
        from .miss import method_miss, params_miss, target_miss  # 10 ms of start-up, for what may never be missed

        method = request.method or ""
        known = self._targets.get((method, request.target))
        if known is None and self.rules.counts_target:
            known = self._methods.get(method)
        if known is not None:
            return params_miss(request, counted, self._candidates(known), self.rules, [self._looser(request, known)])
        known = self._methods.get(method)
        if known is not None:
            return target_miss(request, self._candidates(known))
        return method_miss(request, self._methods)

    def _candidates(self, known: dict[str, Exchange]) -> list[Candidate]:
        """What it may have meant, with what counts of it, which is read again: kept, it would take more than the recording."""
        from .miss import Candidate

        asking = self.rules
        return [Candidate(one, asking.counted(one.method, params_value(one.request))) for one in known.values()]

    def _looser(self, request: Message, known: dict[str, Exchange]) -> str:
        """What would let a question match whose params alone were never recorded."""
        if self.rules.strictness is Strictness.STRICT:
            less = self.rules.less()
            method = request.method or ""
            wanted = canonical(less.counted(method, params_value(request)))
            if any(canonical(less.counted(method, params_value(one.request))) == wanted for one in known.values()):
                return "--match default"
        return "--match loose"

    def _add(self, exchanges: Iterable[Exchange]) -> None:
        node, sequence = _ROOT, self.sequences
        self.sequences += 1
        for at, exchange in enumerate(exchanges):
            method = exchange.method
            counted = self.rules.counted(method, params_value(exchange.request))
            one = _RecordedRequest(exchange, sequence, at)
            self.places[exchange.row] = sequence, at
            key = match_key(method, counted)
            self.entries.setdefault(key, _EqualRequests()).add(one)
            self.loose.setdefault(_loose_key(method, exchange.target), _EqualRequests()).add(one)
            child = self._grow(node, key, one)
            other = self._add_masked(method, counted, one)
            if other is not None:
                self.children.setdefault((node, other), child)
            node = child
            for known in (self._methods.setdefault(method, {}), self._targets.setdefault((method, exchange.target), {})):
                if len(known) < MAX_CONSIDERED:
                    known.setdefault(key, exchange)

    def _add_masked(self, method: str, counted: Any, one: _RecordedRequest) -> str | None:
        """Let a question be found without knowing what was redacted in it; the key it is found by then."""
        mask = mask_of(counted)
        if not mask:
            return None
        masks = self.masks.setdefault(method, {})
        if len(masks) >= MAX_MASKS and mask not in masks:
            return None
        masks[mask] = None
        key = match_key(method, masked(counted, mask))
        self.entries.setdefault(key, _EqualRequests()).add(one)
        return key

    def _grow(self, node: int, key: str, one: _RecordedRequest) -> int:
        child = self.children.get((node, key))
        if child is None:
            child = self.children[node, key] = len(self.nodes)
            self.nodes.append({})
        self.nodes[child][one.sequence] = one
        return child


class MatchCursor:
    """What one live client asks, one question after the other. It remembers what it was given."""

    __slots__ = ("_at", "_here", "_last", "_matcher", "_node", "_others", "_taken", "matched_by")

    def __init__(self, matcher: RequestMatcher, here: int) -> None:
        self._matcher = matcher
        self._here, self._at = here, -1
        """On which way it is, and how far it has come."""
        self._node: int | None = _ROOT
        """Where it stands in the tree; None once it has left it."""
        self._taken: dict[tuple[str, int], dict[int, int]] = {}
        """Of the questions of one key and sequence: after a place that was given, the next that may be free (union-find)."""
        self._others: dict[str, int] = {}
        self._last: dict[str, Exchange] = {}
        self.matched_by = MatchedBy.ORDER
        """How the last exchange was found."""

    @property
    def owner(self) -> Owner | None:
        """The recorded client on whose way it is; None if nothing was recorded."""
        return self._matcher.owners[self._here] if self._matcher.owners else None

    def branch(self, exchange: Exchange) -> MatchCursor:
        """Another walk that stands behind this exchange, and to which nothing was given yet."""
        other = MatchCursor(self._matcher, self._here)
        other._here, other._at = self._matcher.places.get(exchange.row, (self._here, -1))
        other._node = None
        return other

    def match(self, request: Message) -> Exchange | Miss:
        """The recorded exchange that answers this request, which counts as given then; or why there is none."""
        matcher = self._matcher
        method = request.method or ""
        counted = matcher.rules.counted(method, params_value(request))
        found = matcher.entry(method, counted)
        if found is not None:
            return self._given(request, *found)
        self._node = None
        if matcher.rules.strictness is Strictness.LOOSE:
            key = _loose_key(method, request.target)
            entry = matcher.loose.get(key)
            if entry is not None:
                given = self._given(request, key, entry)
                self.matched_by = MatchedBy.LOOSE
                return given
        return matcher.miss(request, counted)

    def _given(self, request: Message, key: str, entry: _EqualRequests) -> Exchange | Miss:
        """The answer that this question gets now."""
        self.matched_by = MatchedBy.HISTORY
        one = self._by_history(key, entry)
        if one is None:
            self.matched_by = MatchedBy.ORDER
            one = self._in_order(key, entry)
        if one is not None:
            self._here, self._at = one.sequence, one.at
            self._last[key] = one.exchange
            return one.exchange
        if self._matcher.reuse is Reuse.ERROR:
            from .miss import reuse_miss

            return reuse_miss(request, self._last[key], entry.count)
        self.matched_by = MatchedBy.REUSED
        return self._last[key]

    def _by_history(self, key: str, entry: _EqualRequests) -> _RecordedRequest | None:
        """A question at the same place of the tree."""
        if self._node is None:
            return None
        self._node = self._matcher.children.get((self._node, key))
        if self._node is None:
            return None
        recorded = self._matcher.nodes[self._node]
        one = recorded.get(self._here) or next(iter(recorded.values()))
        places = entry.of[one.sequence]
        place = bisect_right(places, one.at, key=lambda other: other.at) - 1
        return self._take(key, places, place) if self._next_free(key, places, place) == place else None

    def _in_order(self, key: str, entry: _EqualRequests) -> _RecordedRequest | None:
        """The next free one: further on on this sequence, else earlier on it, else on another."""
        places = entry.of.get(self._here)
        if places is not None:
            after = bisect_right(places, self._at, key=lambda one: one.at)
            for place in (after, 0):
                free = self._next_free(key, places, place)
                if free < len(places):
                    return self._take(key, places, free)
        for number in range(self._others.get(key, 0), len(entry.sequences)):
            places = entry.of[entry.sequences[number]]
            free = self._next_free(key, places, 0)
            if free < len(places):
                return self._take(key, places, free)
            self._others[key] = number + 1
        return None

    def _next_free(self, key: str, places: list[_RecordedRequest], place: int) -> int:
        taken = self._taken.get((key, places[0].sequence))
        if taken is None:
            return place
        root = place
        while root in taken:
            root = taken[root]
        while place != root:
            taken[place], place = root, taken[place]
        return root

    def _take(self, key: str, places: list[_RecordedRequest], place: int) -> _RecordedRequest:
        self._taken.setdefault((key, places[0].sequence), {})[place] = place + 1
        return places[place]


def _loose_key(method: str, target: str | None) -> str:
    return f"loose {method} {target or ''}"


def client_sequences(exchanges: Iterable[Exchange], side: Side = CLIENT) -> list[list[Exchange]]:
    """What each client asked, in order."""
    return list(_owned(exchanges, side).values())


def _owned(exchanges: Iterable[Exchange], side: Side) -> dict[Owner, list[Exchange]]:
    found: dict[Owner, list[Exchange]] = {}
    for row in exchanges:
        if row.sender == side:
            found.setdefault(owner(row.capture, row.transaction), []).append(row)
    return found

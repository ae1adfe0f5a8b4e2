"""The recorded exchange that answers a live request, or the reason why there is none.

Two requests are equal if their method and the counted part of their params are (`match_key`). What one recorded client asked, in
order, is a client sequence. All sequences together are a tree, and what a live client has asked so far is a path in it. The path
says which of several answers to equal requests the client gets. Two recorded clients, and what three live ones get:

    recorded                                              live
    sequence 0   ping   write a   read → [a]              ping   write a   read   → [a]   by history
    sequence 1   ping   write b   read → [b]              ping   write b   read   → [b]   by history
                                                          write b   read          → [b]   by order
    root ── ping ─┬─ write a ── read
                  └─ write b ── read

The third client left the tree with its first request. From then on it gets the next equal request that it was not given yet: one
later in its sequence (here 1, since `write b` is there), else one earlier in it, else one of another sequence. When all are given,
`Reuse` decides. A lookup takes a few dict accesses, however large the capture; only a miss looks further.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from ...records import CLIENT
from ...transcript.http.transaction import Scope, Transaction
from ...transcript.model import Exchange, Message
from ..compare.ignore import Ignore
from ..json_values import MAX_MASKS, Mask, canonical, mask_of, with_stand_ins
from .content import params_value
from .match_key import MatchRules, RequestRules, Strictness, match_key

if TYPE_CHECKING:
    from ...records import Side
    from .miss import Candidate, Miss

_ROOT: Final = 0

MAX_CONSIDERED: Final = 200
"""The most different requests of one method, and of one target, that are kept to explain a miss."""

Owner: TypeAlias = "tuple[int, int | str]"
"""One recorded client."""


class Reuse(StrEnum):
    """Answer to a request that comes more often than it was recorded."""

    LAST = "last"
    """Its last answer again."""
    ERROR = "error"
    """A miss."""


class MatchReason(StrEnum):
    """Reason why a recorded exchange was chosen."""

    HISTORY = "history"
    """The client's requests so far are as recorded."""
    ORDER = "order"
    """It is the next equal one."""
    REUSED = "reused"
    """All equal ones were given, and this is the last one again."""
    LOOSE = "loose"
    """Only its method and target are equal."""


class _RecordedRequest(NamedTuple):
    """A recorded request, the number of its client sequence, and its place in that sequence."""

    exchange: Exchange
    sequence: int
    place: int


class _EqualRequests:
    """The recorded requests with one match key, by client sequence, in order."""

    __slots__ = ("by_sequence", "count", "sequences")

    def __init__(self) -> None:
        self.by_sequence: dict[int, list[_RecordedRequest]] = {}
        self.sequences: list[int] = []
        self.count = 0

    def add(self, request: _RecordedRequest) -> None:
        if request.sequence not in self.by_sequence:
            self.by_sequence[request.sequence] = []
            self.sequences.append(request.sequence)
        self.by_sequence[request.sequence].append(request)
        self.count += 1


class RequestMatcher:
    """Recorded exchanges, indexed for lookup. It never changes; each live client has a `cursor` of its own.

    `exchanges` are in the order in which they began. `side` is the side that asks: only its requests are looked up. `rules` makes
    the rules by which requests are equal. `siblings` finds captures that are not served, for the explanation of a miss.

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
        siblings: Callable[[], tuple[str, ...]] = tuple,
    ) -> None:
        self.reuse = reuse
        self._siblings = siblings
        self.rules = rules(strictness, Ignore.of(ignore))
        self.by_key: dict[str, _EqualRequests] = {}
        self.masks: dict[str, dict[Mask, None]] = {}
        self.by_target: dict[str, _EqualRequests] = {}
        self.children: dict[tuple[int, str], int] = {}
        self.nodes: list[dict[int, _RecordedRequest]] = [{}]
        """The nodes of the tree, each with its request in every sequence that passes it. The root has none."""
        self.sequences = 0
        self.places: dict[int, tuple[int, int]] = {}
        """By row: the number of its sequence, and its place there."""
        self._known_by_method: dict[str, dict[str, Exchange]] = {}
        self._known_by_target: dict[tuple[str, str | None], dict[str, Exchange]] = {}
        """The first different requests, by match key: those to which a miss is compared."""
        self.owners: list[Owner] = []
        """The recorded client of each sequence."""
        for client, sequence in _by_owner(exchanges, side).items():
            self.owners.append(client)
            self._add(sequence)

    def cursor(self, number: int = 0) -> MatchCursor:
        """Return a cursor for a client that has asked nothing yet. `number` of the live client decides between equal sequences."""
        return MatchCursor(self, number % self.sequences if self.sequences else 0)

    def equal_requests(self, method: str, counted: Any) -> tuple[str, _EqualRequests] | None:
        """Look up the recorded requests that equal this one; return their key with them."""
        key = match_key(method, counted)
        equal = self.by_key.get(key)
        if equal is not None:
            return key, equal
        for mask in self.masks.get(method, ()):
            fitting = with_stand_ins(counted, mask)
            if fitting is not None:
                key = match_key(method, fitting)
                equal = self.by_key.get(key)
                if equal is not None:
                    return key, equal
        return None

    def miss(self, request: Message, counted: Any) -> Miss:
        """Explain why no recorded request equals this one."""
        from dataclasses import replace

        return replace(self._explain(request, counted), siblings=self._siblings())

    def _explain(self, request: Message, counted: Any) -> Miss:
        from .miss import method_miss, params_miss, target_miss  # 10 ms of start-up, which a mock without a miss saves

        method = request.method or ""
        known = self._known_by_target.get((method, request.target))
        if known is None and self.rules.counts_target:
            known = self._known_by_method.get(method)
        if known is not None:
            return params_miss(request, counted, self._candidates(known), self.rules, [self._looser_option(request, known)])
        known = self._known_by_method.get(method)
        if known is not None:
            return target_miss(request, self._candidates(known))
        return method_miss(request, self._known_by_method)

    def _candidates(self, known: dict[str, Exchange]) -> list[Candidate]:
        """Pair each known request with its counted params. They are read again: kept, they would take more than the capture."""
        from .miss import Candidate

        rules = self.rules
        return [
            Candidate(exchange, rules.counted(exchange.method, params_value(exchange.request))) for exchange in known.values()
        ]

    def _looser_option(self, request: Message, known: dict[str, Exchange]) -> str:
        """Name the option that would let a request match of which only the params are unknown."""
        if self.rules.strictness is Strictness.STRICT:
            relaxed = self.rules.relaxed()
            method = request.method or ""
            wanted = canonical(relaxed.counted(method, params_value(request)))
            if any(canonical(relaxed.counted(method, params_value(exchange.request))) == wanted for exchange in known.values()):
                return "--match default"
        return "--match loose"

    def _add(self, exchanges: Iterable[Exchange]) -> None:
        node, sequence = _ROOT, self.sequences
        self.sequences += 1
        for place, exchange in enumerate(exchanges):
            method = exchange.method
            counted = self.rules.counted(method, params_value(exchange.request))
            request = _RecordedRequest(exchange, sequence, place)
            self.places[exchange.row] = sequence, place
            key = match_key(method, counted)
            self.by_key.setdefault(key, _EqualRequests()).add(request)
            self.by_target.setdefault(_target_key(method, exchange.target), _EqualRequests()).add(request)
            child = self._child(node, key, request)
            masked_key = self._add_masked(method, counted, request)
            if masked_key is not None:
                self.children.setdefault((node, masked_key), child)
            node = child
            by_method = self._known_by_method.setdefault(method, {})
            by_target = self._known_by_target.setdefault((method, exchange.target), {})
            for known in (by_method, by_target):
                if len(known) < MAX_CONSIDERED:
                    known.setdefault(key, exchange)

    def _add_masked(self, method: str, counted: Any, request: _RecordedRequest) -> str | None:
        """Let a request be found by a client that sends what was redacted in it; return its key without the redacted values."""
        mask = mask_of(counted)
        if not mask:
            return None
        masks = self.masks.setdefault(method, {})
        if len(masks) >= MAX_MASKS and mask not in masks:
            return None
        masks[mask] = None
        key = match_key(method, with_stand_ins(counted, mask))
        self.by_key.setdefault(key, _EqualRequests()).add(request)
        return key

    def _child(self, node: int, key: str, request: _RecordedRequest) -> int:
        child = self.children.get((node, key))
        if child is None:
            child = self.children[node, key] = len(self.nodes)
            self.nodes.append({})
        self.nodes[child][request.sequence] = request
        return child


class MatchCursor:
    """One live client's place in what was recorded. It remembers which exchanges the client was given."""

    __slots__ = ("_last", "_matcher", "_node", "_others", "_place", "_sequence", "_taken", "reason")

    def __init__(self, matcher: RequestMatcher, sequence: int) -> None:
        self._matcher = matcher
        self._sequence, self._place = sequence, -1
        """The client sequence that the live client follows, and its last place there."""
        self._node: int | None = _ROOT
        """The place in the tree; None once the client has left it."""
        self._taken: dict[tuple[str, int], dict[int, int]] = {}
        """By match key and sequence: after an index that was given, the next that may be free (union-find)."""
        self._others: dict[str, int] = {}
        """By match key: how many sequences have no free request left."""
        self._last: dict[str, Exchange] = {}
        self.reason = MatchReason.ORDER
        """The reason for the last match."""

    @property
    def owner(self) -> Owner | None:
        """The recorded client whose sequence it follows; None if nothing was recorded."""
        return self._matcher.owners[self._sequence] if self._matcher.owners else None

    def branch(self, exchange: Exchange) -> MatchCursor:
        """Return a new cursor right after this exchange, which was given nothing yet."""
        branch = MatchCursor(self._matcher, self._sequence)
        branch._sequence, branch._place = self._matcher.places.get(exchange.row, (self._sequence, -1))
        branch._node = None
        return branch

    def match(self, request: Message) -> Exchange | Miss:
        """Give the recorded exchange that answers this request, and remember that; or explain why there is none."""
        matcher = self._matcher
        method = request.method or ""
        counted = matcher.rules.counted(method, params_value(request))
        equal_requests = matcher.equal_requests(method, counted)
        if equal_requests is not None:
            return self._give(request, *equal_requests)
        self._node = None
        if matcher.rules.strictness is Strictness.LOOSE:
            key = _target_key(method, request.target)
            equal = matcher.by_target.get(key)
            if equal is not None:
                match = self._give(request, key, equal)
                self.reason = MatchReason.LOOSE
                return match
        return matcher.miss(request, counted)

    def _give(self, request: Message, key: str, equal: _EqualRequests) -> Exchange | Miss:
        """Choose one of the equal requests."""
        self.reason = MatchReason.HISTORY
        match = self._by_history(key, equal)
        if match is None:
            self.reason = MatchReason.ORDER
            match = self._by_order(key, equal)
        if match is not None:
            self._sequence, self._place = match.sequence, match.place
            self._last[key] = match.exchange
            return match.exchange
        if self._matcher.reuse is Reuse.ERROR:
            from .miss import reuse_miss

            return reuse_miss(request, self._last[key], equal.count)
        self.reason = MatchReason.REUSED
        return self._last[key]

    def _by_history(self, key: str, equal: _EqualRequests) -> _RecordedRequest | None:
        """Choose the request at the client's place in the tree, if it is free."""
        if self._node is None:
            return None
        self._node = self._matcher.children.get((self._node, key))
        if self._node is None:
            return None
        at_node = self._matcher.nodes[self._node]
        request = at_node.get(self._sequence) or next(iter(at_node.values()))
        requests = equal.by_sequence[request.sequence]
        index = bisect_right(requests, request.place, key=_place) - 1
        return self._take(key, requests, index) if self._next_free(key, requests, index) == index else None

    def _by_order(self, key: str, equal: _EqualRequests) -> _RecordedRequest | None:
        """Choose the next free request: later in this sequence, else earlier in it, else in another one."""
        requests = equal.by_sequence.get(self._sequence)
        if requests is not None:
            later = bisect_right(requests, self._place, key=_place)
            for index in (later, 0):
                free = self._next_free(key, requests, index)
                if free < len(requests):
                    return self._take(key, requests, free)
        for number in range(self._others.get(key, 0), len(equal.sequences)):
            requests = equal.by_sequence[equal.sequences[number]]
            free = self._next_free(key, requests, 0)
            if free < len(requests):
                return self._take(key, requests, free)
            self._others[key] = number + 1
        return None

    def _next_free(self, key: str, requests: list[_RecordedRequest], index: int) -> int:
        """Find the first index from this one on that was not given yet."""
        taken = self._taken.get((key, requests[0].sequence))
        if taken is None:
            return index
        root = index
        while root in taken:
            root = taken[root]
        while index != root:
            taken[index], index = root, taken[index]
        return root

    def _take(self, key: str, requests: list[_RecordedRequest], index: int) -> _RecordedRequest:
        self._taken.setdefault((key, requests[0].sequence), {})[index] = index + 1
        return requests[index]


def _place(request: _RecordedRequest) -> int:
    return request.place


def _target_key(method: str, target: str | None) -> str:
    return f"loose {method} {target or ''}"


def client_sequences(exchanges: Iterable[Exchange], side: Side = CLIENT) -> list[list[Exchange]]:
    """Return the requests of each client, in order."""
    return list(_by_owner(exchanges, side).values())


def _by_owner(exchanges: Iterable[Exchange], side: Side) -> dict[Owner, list[Exchange]]:
    sequences: dict[Owner, list[Exchange]] = {}
    for exchange in exchanges:
        if exchange.sender == side:
            sequences.setdefault(owner(exchange.capture, exchange.transaction), []).append(exchange)
    return sequences


def owner(capture: int, transaction: Transaction | None) -> Owner:
    """Return the client that sent what this transaction carried; without a transaction, the client on stdio.

    A session that became unknown and the one that replaced it have the same owner.
    """
    if transaction is None:
        return capture, ""
    scope = transaction.scope
    if scope.is_one_transaction:
        return capture, scope.client
    return capture, id(first_scope(scope))


def first_scope(scope: Scope) -> Scope:
    """Return the first of the sessions that replaced each other, up to this one."""
    while scope.replaces is not None:
        scope = scope.replaces
    return scope

"""Comparison of two large captures by the digests of their rows: only rows that differ, and slow ones, are read.

    before   initialize  search A  search B  search C  │  search D → "rain"  │  ping
    after    initialize  search A  search B  search C  │  search D → "sun"   │  log out  ping
             digests of the requests and answers equal │ answers: read      │ added: read

Calls are paired as in `compare`, but equal ones at the beginning and at the end by their place. Values that a server made up, and a
client sent back, are not recognized here as in `correlate`: they are differences.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections import defaultdict, deque
from collections.abc import Container, Iterable, Iterator, Sequence
from itertools import chain, islice
from operator import ne
from typing import Final, NamedTuple

from ...lazy_pattern import lazy_pattern
from ...transcript.mcp.methods import OPENINGS
from ...transcript.model import Exchange, Row, Transcript, UnpairedMessage
from ...transcript.offers.definitions import offers
from ...transcript.stored_rows import BLOCK_ROWS, StoredRows
from ..mock.content import VOLATILE
from .compare import (
    CallChange,
    ComparedSide,
    Comparison,
    Limit,
    ServerComparison,
    call_change,
    call_pairs,
    duration_change,
    finding_changes,
    findings_by_request,
)
from .difference import differences
from .digests import CALL, COUNTED, NOISE, PRESENT, RowDigests, known_digests
from .ignore import Ignore
from .messages import MessageChange
from .server import definition_changes, identity

MAX_READ: Final = 1_000
"""So many calls that differ are read, and so many that only one side has: each takes 50 µs."""

MAX_SLOW_BLOCKS: Final = 1_000
"""So many blocks with slow calls are read, those with the slowest."""

FIRST_ROWS: Final = 1_000
"""Among so many rows a client introduces itself."""

_calls: Final = lazy_pattern(bytes([CALL]) + b"+")
_messages: Final = lazy_pattern(b"[%b]" % bytes([COUNTED, PRESENT, NOISE]))


def compare_stored(
    before: Transcript,
    after: Transcript,
    ignore: Sequence[str] = (),
    limit: Limit | None = None,
    rules_left: Iterable[str] = (),
) -> Comparison | None:
    """Compare two transcripts of one capture each; None if one of them has no digests. See `compare`.

    Findings of `rules_left` are left out: not both captures were searched for them.
    """
    old, new = known_digests(before), known_digests(after)
    if old is None or new is None:
        return None
    comparing = _Comparing(_Side(before, old), _Side(after, new), Ignore.of((*VOLATILE, *ignore)), limit or Limit())
    left = tuple(dict.fromkeys(rules_left))
    comparing.compare(left)
    return Comparison(
        before=before,
        after=after,
        servers=[comparing.server],
        ignore=tuple(ignore),
        limit=comparing.limit,
        unread=comparing.unread,
        rules_left=left,
    )


class _Side:
    """One side: its calls, by their place among them, with their digests."""

    def __init__(self, transcript: Transcript, digests: RowDigests) -> None:
        self.transcript = transcript
        self.digests = digests
        self.info = transcript.captures[0]
        self._begins, self._places = array("I"), array("I")
        asked, answered = _numbers(digests.asked), _numbers(digests.answered)
        self.asked, self.answered = array("Q"), array("Q")
        for run in _calls.finditer(digests.kinds):
            self._begins.append(run.start())
            self._places.append(len(self.asked))
            self.asked.extend(asked[run.start() : run.end()])
            self.answered.extend(answered[run.start() : run.end()])

    def call(self, at: int) -> Exchange:
        """Read the call at this place."""
        run = bisect_right(self._places, at) - 1
        row = self.transcript.rows[self._begins[run] + at - self._places[run]]
        assert isinstance(row, Exchange)
        return row

    def place(self, position: int) -> int | None:
        """Return the place of the call at this position of all rows; None if it is not compared."""
        run = bisect_right(self._begins, position) - 1
        return self._places[run] + position - self._begins[run] if self.digests.kinds[position] == CALL else None

    def message(self, position: int) -> UnpairedMessage:
        """Read the message at this position of all rows."""
        row = self.transcript.rows[position]
        assert isinstance(row, UnpairedMessage)
        return row

    def messages(self) -> dict[tuple[int, bytes], list[int]]:
        """Return the positions of messages in no exchange that are compared, by kind and digest."""
        kinds, asked = self.digests.kinds, self.digests.asked
        by_key: defaultdict[tuple[int, bytes], list[int]] = defaultdict(list)
        for match in _messages.finditer(kinds):
            at = match.start()
            by_key[kinds[at], asked[8 * at : 8 * at + 8]].append(at)
        return by_key

    def slow_blocks(self, least_ns: int) -> list[tuple[int, int]]:
        """Return the blocks of rows with a call that took so long, each after its longest time; the slowest first."""
        rows = self.transcript.rows
        if isinstance(rows, StoredRows):
            longest: Iterable[int] = rows.columns["longest"]
        else:
            blocks = (rows[begin : begin + BLOCK_ROWS] for begin in range(0, len(rows), BLOCK_ROWS))
            longest = (max(map(_took_ns, block)) for block in blocks)
        return sorted(((ns, number) for number, ns in enumerate(longest) if ns > least_ns), reverse=True)


def _took_ns(row: Row) -> int:
    return (row.duration_ns or 0) if isinstance(row, Exchange) else 0


class _Pairing(NamedTuple):
    """Calls paired by equal requests: the first `head` and the last `tail` by their place, others as `middle` says.

    `removed` and `added` have places of calls that only one side has, or whose requests differ.
    """

    head: int
    tail: int
    middle: dict[int, int]
    removed: list[int]
    added: list[int]


class _Comparing:
    """The comparison of the only server of both sides. Its results are `server` and `unread`."""

    def __init__(self, old: _Side, new: _Side, rules: Ignore, limit: Limit) -> None:
        self._old, self._new = old, new
        self._rules = rules
        self.limit = limit
        self.server = ServerComparison(before=old.info, after=new.info)
        self.unread = 0

    def compare(self, rules_left: Container[str]) -> None:
        """Compare everything."""
        old, new, server = self._old, self._new, self.server
        exits = old.info.exit, new.info.exit
        ends = exits if None not in exits else (None, None)
        server.identity = differences(identity(_openings(old), ends[0]), identity(_openings(new), ends[1]), self._rules)
        pairing = _paired(old.asked, new.asked)
        self._compare_answers(pairing)
        self._compare_others(pairing)
        self._compare_durations(pairing)
        before, after = offers(old.transcript)[0], offers(new.transcript)[0]
        server.definitions = list(definition_changes(before, after, self._rules))
        self._compare_messages()
        sides = [findings_by_request(ComparedSide(transcript=side.transcript), side.info) for side in (old, new)]
        kept = [[(key, finding) for key, finding in side if finding.rule not in rules_left] for side in sides]
        server.findings = finding_changes(*kept)

    def _compare_answers(self, pairing: _Pairing) -> None:
        """Compare the answers of calls with equal requests."""
        old, new = self._old.answered, self._new.answered
        begins = len(old) - pairing.tail, len(new) - pairing.tail
        places = chain(
            _unequal(old, new, 0, 0, pairing.head),
            ((old_at, new_at) for new_at, old_at in pairing.middle.items() if old[old_at] != new[new_at]),
            _unequal(old, new, *begins, pairing.tail),
        )
        paired = pairing.head + pairing.tail + len(pairing.middle)
        differing = list(islice(places, MAX_READ + 1))
        if len(differing) > MAX_READ:
            count = sum(map(ne, old[: pairing.head], new)) + sum(map(ne, old[begins[0] :], new[begins[1] :]))
            count += sum(old[old_at] != new[new_at] for new_at, old_at in pairing.middle.items())
            differing.pop()
            self.unread += count - MAX_READ
        else:
            count = len(differing)
        self.server.same += paired - count
        for old_at, new_at in differing:
            self._take(self._old.call(old_at), self._new.call(new_at))

    def _compare_others(self, pairing: _Pairing) -> None:
        """Compare calls whose requests differ, with those that are most alike."""
        removed = [self._old.call(at) for at in pairing.removed[:MAX_READ]]
        added = [self._new.call(at) for at in pairing.added[:MAX_READ]]
        self.unread += max(len(pairing.removed), len(pairing.added), MAX_READ) - MAX_READ
        for before, after in call_pairs(removed, added, self._rules, are_all=False):
            self._take(before, after)
            took = None if before is None or after is None else duration_change(before, after, self.limit)
            if took is not None:
                self.server.took.append(took)
        self.server.calls.sort(key=_order)

    def _take(self, before: Exchange | None, after: Exchange | None) -> None:
        change = call_change(before, after, self._rules, whole=True)
        if change is None:
            self.server.same += 1
        else:
            self.server.calls.append(change)

    def _compare_durations(self, pairing: _Pairing) -> None:
        """Compare the durations of calls with equal requests, where one of them took so long that it can matter."""
        old, new = self._old, self._new
        shift = len(new.asked) - len(old.asked)
        tail_begins = len(old.asked) - pairing.tail
        back = {old_at: new_at for new_at, old_at in pairing.middle.items()}

        def partner(old_at: int) -> int | None:
            if old_at < pairing.head:
                return old_at
            return old_at + shift if old_at >= tail_begins else back.get(old_at)

        def origin(new_at: int) -> int | None:
            if new_at < pairing.head:
                return new_at
            return new_at - shift if new_at >= tail_begins + shift else pairing.middle.get(new_at)

        slow = {(old_at, new_at) for old_at in _slow_calls(old, self.limit) if (new_at := partner(old_at)) is not None}
        slow |= {(old_at, new_at) for new_at in _slow_calls(new, self.limit) if (old_at := origin(new_at)) is not None}
        for old_at, new_at in sorted(slow, key=lambda pair: pair[1]):
            took = duration_change(old.call(old_at), new.call(new_at), self.limit)
            if took is not None:
                self.server.took.append(took)

    def _compare_messages(self) -> None:
        """Compare the messages in no exchange, as `message_changes` does."""
        old, new = self._old.messages(), self._new.messages()
        with_noise = self._old.digests.transports == self._new.digests.transports
        for key in {**old, **new}:
            rows, others = old.get(key, []), new.get(key, [])
            more = len(others) - len(rows)
            if not more or (rows and others and key[0] != COUNTED) or (key[0] == NOISE and not with_noise):
                continue
            if len(self.server.messages) >= MAX_READ:
                self.unread += 1
            elif more > 0:
                self.server.messages.append(MessageChange(how="added", row=self._new.message(others[-more]), count=more))
            else:
                self.server.messages.append(MessageChange(how="removed", row=self._old.message(rows[more]), count=-more))


def _numbers(data: bytes) -> array[int]:
    numbers = array("Q")
    numbers.frombytes(data)
    return numbers


def _paired(old: array[int], new: array[int]) -> _Pairing:
    """Pair calls by the digests of their requests."""
    head = _common(old.tobytes(), new.tobytes())
    tail = _common(old[head:][::-1].tobytes(), new[head:][::-1].tobytes())
    end, new_end = len(old) - tail, len(new) - tail
    waiting: defaultdict[int, deque[int]] = defaultdict(deque)
    for at in range(head, end):
        waiting[old[at]].append(at)
    middle: dict[int, int] = {}
    added: list[int] = []
    for at in range(head, new_end):
        same = waiting.get(new[at])
        if same:
            middle[at] = same.popleft()
        else:
            added.append(at)
    removed = sorted(at for places in waiting.values() for at in places)
    return _Pairing(head, tail, middle, removed, added)


def _common(old: bytes, new: bytes) -> int:
    """Return how many numbers of 64 bits both begin with."""
    low, high = 0, min(len(old), len(new)) // 8
    while low < high:
        middle = (low + high + 1) // 2
        if old[low * 8 : middle * 8] == new[low * 8 : middle * 8]:
            low = middle
        else:
            high = middle - 1
    return low


def _unequal(old: array[int], new: array[int], old_at: int, new_at: int, count: int) -> Iterator[tuple[int, int]]:
    """Yield the places where numbers differ, among so many from these places on."""
    for begin in range(0, count, BLOCK_ROWS):
        size = min(BLOCK_ROWS, count - begin)
        first, second = old_at + begin, new_at + begin
        if old[first : first + size] != new[second : second + size]:
            yield from ((first + at, second + at) for at in range(size) if old[first + at] != new[second + at])


def _openings(side: _Side) -> Iterator[Exchange]:
    """Yield the calls by which a client and a server may have introduced themselves."""
    rows = side.transcript.rows
    some = rows.likely(_is_opening) if isinstance(rows, StoredRows) else rows
    yield from (row for row in some if isinstance(row, Exchange) and row.method in OPENINGS)
    yield from (row for row in rows[:FIRST_ROWS] if isinstance(row, Exchange))


def _is_opening(row: Row) -> bool:
    return isinstance(row, Exchange) and row.method in OPENINGS


def _slow_calls(side: _Side, limit: Limit) -> Iterator[int]:
    """Yield the places of calls that took longer than the limit allows to differ."""
    rows = side.transcript.rows
    for _, number in side.slow_blocks(limit.least_ns)[:MAX_SLOW_BLOCKS]:
        begin = number * BLOCK_ROWS
        for at, row in enumerate(rows[begin : begin + BLOCK_ROWS], begin):
            if _took_ns(row) > limit.least_ns and (place := side.place(at)) is not None:
                yield place


def _order(change: CallChange) -> tuple[int, bool]:
    """Return what calls are sorted by: their rows after, and of removed calls their rows before."""
    shown = change.after or change.before
    return (0 if shown is None else shown.row), change.after is None

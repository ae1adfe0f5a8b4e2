"""Two transcripts held against each other, server by server: who speaks, what is offered, what was asked and what came back.

How long calls took is told past a limit and counts for nothing unless that is asked for: two runs never take the same time.
Refuses to compare bytes, ids, order and the messages that belong to no exchange.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import TYPE_CHECKING, Literal, TypeAlias

from ...transcript.calls.call import CallPart
from ...transcript.model import CaptureInfo, Exchange, Outcome, Transcript
from ...transcript.offers.definitions import LISTINGS, offers
from ..mock.content import VOLATILE, answer_bytes, answer_reading, params_bytes, params_reading
from .alignment import call_pairs
from .difference import NO_DIFFERENCES as _NONE
from .difference import Differences, differences
from .ignore import Ignore
from .server import DefinitionChange, definition_changes, identity

if TYPE_CHECKING:
    from ...transcript.findings.rule import Finding

How: TypeAlias = Literal["added", "changed", "removed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """From when on a call took another time: `factor` times as long or as short, and `least_ns` more or less.

    `counts` says that one which takes longer is a difference.
    """

    factor: float = 2.0
    least_ns: int = 100_000_000
    counts: bool = False

    def is_passed(self, before_ns: int, after_ns: int) -> bool:
        """Whether these two durations are further apart."""
        shorter, longer = sorted((before_ns, after_ns))
        return longer - shorter > self.least_ns and longer > shorter * self.factor


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedSide:
    """One side of a comparison. `rows` are those that are compared, by their numbers; None: all, and what is not in rows too."""

    transcript: Transcript
    rows: frozenset[int] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CallChange:
    """A call that came, went, was asked otherwise, or was answered otherwise. `repeated` are members that a payload has twice."""

    how: How
    before: Exchange | None = None
    after: Exchange | None = None
    params: Differences = _NONE
    answer: Differences = _NONE
    repeated: tuple[str, ...] = ()

    @property
    def outcomes(self) -> tuple[Outcome, Outcome] | None:
        """How it ended before and after, where that is not the same."""
        if self.before is None or self.after is None or self.before.outcome is self.after.outcome:
            return None
        return self.before.outcome, self.after.outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class DurationChange:
    """A call that took another time, past the limit."""

    before: Exchange
    after: Exchange
    before_ns: int
    after_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingChange:
    """A rule that finds something on one side and not on the other; `finding` is the first such, `count` how many there are."""

    how: Literal["added", "removed"]
    finding: Finding
    count: int


@dataclass(slots=True, eq=False, kw_only=True)
class ServerComparison:
    """One server on both sides; None where it is on the other alone. `same` counts the calls without a difference."""

    before: CaptureInfo | None
    after: CaptureInfo | None
    identity: Differences = _NONE
    definitions: list[DefinitionChange] = field(default_factory=list)
    calls: list[CallChange] = field(default_factory=list)
    took: list[DurationChange] = field(default_factory=list)
    findings: list[FindingChange] = field(default_factory=list)
    same: int = 0

    @property
    def name(self) -> str:
        """Its lane, as it is called now. Not safe to be shown."""
        source = self.after or self.before
        return source.server if source is not None else ""


@dataclass(slots=True, eq=False, kw_only=True)
class Comparison:
    """All of it. Rules to ignore and the limit of durations are those it was made with."""

    before: Transcript
    after: Transcript
    servers: list[ServerComparison]
    ignore: tuple[str, ...] = ()
    limit: Limit = Limit()
    whole: bool = True
    """Whether all was compared; else calls of some rows, and findings about them."""

    @property
    def slower(self) -> list[DurationChange]:
        """Calls that took longer, past the limit."""
        return [one for server in self.servers for one in server.took if one.after_ns > one.before_ns]

    @property
    def different(self) -> bool:
        """Whether anything that counts differs."""
        return any(
            one.before is None or one.after is None or one.identity or one.definitions or one.calls or one.findings
            for one in self.servers
        ) or (self.limit.counts and bool(self.slower))


def compare(before: ComparedSide, after: ComparedSide, ignore: Sequence[str] = (), limit: Limit | None = None) -> Comparison:
    """What changed from `before` to `after`. `ignore` comes to what is volatile anyway. Raises: PathError: for a path of `ignore`."""
    rules = Ignore.of((*VOLATILE, *ignore))
    limit = limit or Limit()
    whole = before.rows is None and after.rows is None
    made = [
        ServerComparison(before=old, after=new) for old, new in _servers(before.transcript.captures, after.transcript.captures)
    ]
    old_calls, new_calls = _calls(before), _calls(after)
    for one in made:
        _compare_calls(one, old_calls, new_calls, rules, limit, whole=whole)
        one.findings = _finding_changes(_findings(before, one.before), _findings(after, one.after))
    if whole:
        _compare_offers(made, before.transcript, after.transcript, rules)
    else:
        made = [one for one in made if one.calls or one.same or one.findings]
    return Comparison(
        before=before.transcript, after=after.transcript, servers=made, ignore=tuple(ignore), limit=limit, whole=whole
    )


def _servers(before: list[CaptureInfo], after: list[CaptureInfo]) -> list[tuple[CaptureInfo | None, CaptureInfo | None]]:
    """Which server is which: by label, in order. One alone on either side is the same whatever it is called."""
    if len(before) == len(after) == 1:
        return [(before[0], after[0])]
    named: dict[str, tuple[list[CaptureInfo], list[CaptureInfo]]] = {}
    for side, captures in enumerate((before, after)):
        for one in captures:
            label = one.header.label if one.header else ""
            named.setdefault(label, ([], []))[side].append(one)
    return [pair for olds, news in named.values() for pair in zip_longest(olds, news)]


def _calls(side: ComparedSide) -> defaultdict[int, list[Exchange]]:
    """The exchanges that are compared, by capture. How often a task was asked how it stands is chance: the last time counts."""
    found: defaultdict[int, list[Exchange]] = defaultdict(list)
    for row in side.transcript.rows:
        if not isinstance(row, Exchange) or (side.rows is not None and row.row not in side.rows):
            continue
        call = side.transcript.call_of(row)
        if call is None or side.rows is not None or call.part(row) is not CallPart.POLL or row is call.polls[-1]:
            found[row.capture].append(row)
    return found


def _compare_calls(
    made: ServerComparison,
    old_calls: defaultdict[int, list[Exchange]],
    new_calls: defaultdict[int, list[Exchange]],
    rules: Ignore,
    limit: Limit,
    *,
    whole: bool,
) -> None:
    old = [] if made.before is None else old_calls[made.before.index]
    new = [] if made.after is None else new_calls[made.after.index]
    if whole and made.before is not None and made.after is not None:
        exits = made.before.exit, made.after.exit  # of a server that still runs, or was not started by a tap, there is none
        ends = exits if None not in exits else (None, None)
        made.identity = differences(identity(old, ends[0]), identity(new, ends[1]), rules)
    for before, after in call_pairs(old, new, rules):
        change = _call_change(before, after, rules, whole=whole)
        if change is None:
            made.same += 1
        else:
            made.calls.append(change)
        took = None if before is None or after is None else _took(before, after, limit)
        if took is not None:
            made.took.append(took)


def _call_change(before: Exchange | None, after: Exchange | None, rules: Ignore, *, whole: bool) -> CallChange | None:
    """What changed of a call; None where nothing did."""
    if before is None or after is None:
        return CallChange(how="added" if before is None else "removed", before=before, after=after)
    differ = before.outcome is not after.outcome
    is_told = whole and not differ and before.method in LISTINGS  # by definitions and identity, better than as a payload
    params, answer = _NONE, _NONE
    repeated: tuple[str, ...] = ()
    if not is_told:
        params, in_params = _params(before, after, rules)
        answer, in_answer = _answers(before, after, rules)
        repeated = tuple(dict.fromkeys((*in_params, *in_answer)))
    if not (differ or params or answer or before.method != after.method):
        return None
    return CallChange(how="changed", before=before, after=after, params=params, answer=answer, repeated=repeated)


def _params(before: Exchange, after: Exchange, rules: Ignore) -> tuple[Differences, tuple[str, ...]]:
    if params_bytes(before.request) == params_bytes(after.request):
        return _NONE, ()
    old, new = params_reading(before.request), params_reading(after.request)
    return differences(old.value, new.value, rules), (*old.repeated, *new.repeated)


def _answers(before: Exchange, after: Exchange, rules: Ignore) -> tuple[Differences, tuple[str, ...]]:
    if answer_bytes(before) == answer_bytes(after) or _is_unkept(before) or _is_unkept(after):
        return _NONE, ()
    old, new = answer_reading(before), answer_reading(after)
    return differences(old.value, new.value, rules), (*old.repeated, *new.repeated)


def _is_unkept(exchange: Exchange) -> bool:
    """Whether its answer was too large to be recorded."""
    return exchange.response is not None and exchange.response.unkept_bytes > 0


def _took(before: Exchange, after: Exchange, limit: Limit) -> DurationChange | None:
    before_ns, after_ns = before.duration_ns, after.duration_ns
    if before_ns is None or after_ns is None or not limit.is_passed(before_ns, after_ns):
        return None
    return DurationChange(before=before, after=after, before_ns=before_ns, after_ns=after_ns)


def _compare_offers(made: list[ServerComparison], before: Transcript, after: Transcript, rules: Ignore) -> None:
    old, new = offers(before), offers(after)
    for one in made:
        if one.before is not None and one.after is not None:
            one.definitions = list(definition_changes(old[one.before.index], new[one.after.index], rules))


def _findings(side: ComparedSide, source: CaptureInfo | None) -> list[tuple[tuple[str, ...], Finding]]:
    """What was found about a capture, each with what makes it the same at another time: its rule and what its row asks."""
    if source is None:
        return []
    found = [one for one in side.transcript.findings if one.capture == source.index]
    wanted = {one.row for one in found if one.row is not None}
    words = {
        row.row: (row.method, row.target or "")
        for row in side.transcript.rows
        if isinstance(row, Exchange) and row.row in wanted
    }
    return [((one.rule, *words.get(one.row or 0, ())), one) for one in found if side.rows is None or one.row in side.rows]


def _finding_changes(
    before: Iterable[tuple[tuple[str, ...], Finding]], after: Iterable[tuple[tuple[str, ...], Finding]]
) -> list[FindingChange]:
    old, new = _grouped(before), _grouped(after)
    came = [FindingChange(how="added", finding=some[0], count=len(some)) for key, some in new.items() if key not in old]
    went = [FindingChange(how="removed", finding=some[0], count=len(some)) for key, some in old.items() if key not in new]
    return came + went


def _grouped(found: Iterable[tuple[tuple[str, ...], Finding]]) -> dict[tuple[str, ...], list[Finding]]:
    made: dict[tuple[str, ...], list[Finding]] = {}
    for key, one in found:
        made.setdefault(key, []).append(one)
    return made

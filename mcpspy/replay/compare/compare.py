"""Comparison of two transcripts, server by server: identity, definitions, calls, the server's other messages, and findings.

Durations are reported past a limit, and are no difference unless the limit says so: two runs never take the same time. Bytes, ids,
order and the client's notifications are not compared.
"""

from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Final, Literal, NamedTuple, TypeAlias

from ...records import CLIENT
from ...transcript.calls.call import ABOUT_TASKS, CallPart
from ...transcript.definitions import LISTINGS, offers
from ...transcript.findings.rule import Finding
from ...transcript.mcp.methods import OPENINGS, PROGRESS
from ...transcript.model import CaptureInfo, Exchange, Outcome, Transcript, UnpairedMessage
from ..json_values import similarity, traits
from ..mock.content import VOLATILE, answer_bytes, answer_reading, match_digest, params_bytes, params_reading, params_value
from .difference import NO_DIFFERENCES as _NONE
from .difference import Differences, differences
from .ignore import Ignore, without_ignored
from .messages import MessageChange, are_of_one_transport, compared_messages, event_rows, message_changes
from .server import DefinitionChange, definition_changes, identity

How: TypeAlias = Literal["added", "changed", "removed"]

LATE_NS: Final = 1_000_000_000
"""Progress that begins later is told at intervals: a call that ends sooner has none by chance."""

_FindingKey: TypeAlias = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """The limit past which a duration changed: `factor` times as long or as short, and `least_ns` more or less.

    With `counts` a longer duration is a difference.
    """

    factor: float = 2.0
    least_ns: int = 100_000_000
    counts: bool = False

    def is_passed(self, before_ns: int, after_ns: int) -> bool:
        """Return whether these two durations are further apart."""
        shorter, longer = sorted((before_ns, after_ns))
        return longer - shorter > self.least_ns and longer > shorter * self.factor


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedSide:
    """One side of a comparison. `rows` are the numbers of the rows to compare; None for everything, definitions included."""

    transcript: Transcript
    rows: frozenset[int] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CallChange:
    """A call that was added or removed, or whose params or answer changed. `repeated` are members that a payload has twice."""

    how: How
    before: Exchange | None = None
    after: Exchange | None = None
    params: Differences = _NONE
    answer: Differences = _NONE
    repeated: tuple[str, ...] = ()

    @property
    def outcomes(self) -> tuple[Outcome, Outcome] | None:
        """The outcomes before and after, if they differ."""
        if self.before is None or self.after is None or self.before.outcome is self.after.outcome:
            return None
        return self.before.outcome, self.after.outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class DurationChange:
    """A call whose duration changed, past the limit."""

    before: Exchange
    after: Exchange
    before_ns: int
    after_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingChange:
    """A finding that only one side has; `finding` is the first, `count` the number of the same."""

    how: Literal["added", "removed"]
    finding: Finding
    count: int


@dataclass(slots=True, eq=False, kw_only=True)
class ServerComparison:
    """One server on both sides; None on the side that does not have it. `same` counts the calls without a difference."""

    before: CaptureInfo | None
    after: CaptureInfo | None
    identity: Differences = _NONE
    definitions: list[DefinitionChange] = field(default_factory=list)
    calls: list[CallChange] = field(default_factory=list)
    messages: list[MessageChange] = field(default_factory=list)
    took: list[DurationChange] = field(default_factory=list)
    findings: list[FindingChange] = field(default_factory=list)
    same: int = 0

    @property
    def is_different(self) -> bool:
        """True if anything but durations differs."""
        is_on_both_sides = self.before is not None and self.after is not None
        changes = self.identity or self.definitions or self.calls or self.messages or self.findings
        return not is_on_both_sides or bool(changes)

    @property
    def name(self) -> str:
        """The name of its lane, the one after if there are two. Not escaped."""
        capture = self.after or self.before
        return capture.server if capture is not None else ""


@dataclass(slots=True, eq=False, kw_only=True)
class Comparison:
    """A whole comparison, with the ignore rules and the limit it was made with."""

    before: Transcript
    after: Transcript
    servers: list[ServerComparison]
    ignore: tuple[str, ...] = ()
    limit: Limit = Limit()
    whole: bool = True
    """True if everything was compared; else only some rows, and the findings about them."""

    @property
    def slower(self) -> list[DurationChange]:
        """The calls that took longer, past the limit."""
        return [change for server in self.servers for change in server.took if change.after_ns > change.before_ns]

    @property
    def different(self) -> bool:
        """True if anything that counts differs."""
        return any(server.is_different for server in self.servers) or (self.limit.counts and bool(self.slower))


def compare(before: ComparedSide, after: ComparedSide, ignore: Sequence[str] = (), limit: Limit | None = None) -> Comparison:
    """Compare two transcripts. `ignore` is added to what is volatile anyway. Raises: PathError: for a path of `ignore`."""
    rules = Ignore.of((*VOLATILE, *ignore))
    limit = limit or Limit()
    whole = before.rows is None and after.rows is None
    servers = [
        ServerComparison(before=old, after=new)
        for old, new in server_pairs(before.transcript.captures, after.transcript.captures)
    ]
    old_calls, new_calls = _calls(before), _calls(after)
    for server in servers:
        _compare_calls(server, old_calls, new_calls, rules, limit, whole=whole)
        server.findings = finding_changes(findings_by_request(before, server.before), findings_by_request(after, server.after))
    if whole:
        _compare_offers(servers, before.transcript, after.transcript, rules)
        _compare_messages(servers, before.transcript, after.transcript, rules)
    else:
        servers = [server for server in servers if server.calls or server.same or server.findings]
    return Comparison(
        before=before.transcript, after=after.transcript, servers=servers, ignore=tuple(ignore), limit=limit, whole=whole
    )


def server_pairs(before: list[CaptureInfo], after: list[CaptureInfo]) -> list[tuple[CaptureInfo | None, CaptureInfo | None]]:
    """Pair the servers by label, in order. If each side has only one, they are the same whatever their labels."""
    if len(before) == len(after) == 1:
        return [(before[0], after[0])]
    by_label: dict[str, tuple[list[CaptureInfo], list[CaptureInfo]]] = {}
    for side, captures in enumerate((before, after)):
        for capture in captures:
            label = capture.header.label if capture.header else ""
            by_label.setdefault(label, ([], []))[side].append(capture)
    return [pair for old, new in by_label.values() for pair in zip_longest(old, new)]


def _calls(side: ComparedSide) -> defaultdict[int, list[Exchange]]:
    """Return the exchanges to compare, by capture. Of the polls of a task only the last counts: their number is chance."""
    calls: defaultdict[int, list[Exchange]] = defaultdict(list)
    for row in side.transcript.rows:
        if not isinstance(row, Exchange) or (row.is_by_mcpspy if side.rows is None else row.row not in side.rows):
            continue
        call = side.transcript.call_of(row)
        if call is None or side.rows is not None or call.part(row) is not CallPart.POLL or row is call.polls[-1]:
            calls[row.capture].append(row)
    return calls


def _compare_calls(
    server: ServerComparison,
    old_calls: defaultdict[int, list[Exchange]],
    new_calls: defaultdict[int, list[Exchange]],
    rules: Ignore,
    limit: Limit,
    *,
    whole: bool,
) -> None:
    old = [] if server.before is None else old_calls[server.before.index]
    new = [] if server.after is None else new_calls[server.after.index]
    if whole and server.before is not None and server.after is not None:
        exits = server.before.exit, server.after.exit  # none for a server that still runs, or was not started by a tap
        ends = exits if None not in exits else (None, None)
        server.identity = differences(identity(old, ends[0]), identity(new, ends[1]), rules)
    for before, after in call_pairs(old, new, rules):
        change = call_change(before, after, rules, whole=whole)
        if change is None:
            server.same += 1
        else:
            server.calls.append(change)
        took = None if before is None or after is None else duration_change(before, after, limit)
        if took is not None:
            server.took.append(took)


def call_change(before: Exchange | None, after: Exchange | None, rules: Ignore, *, whole: bool) -> CallChange | None:
    """Compare a call with its partner; None if nothing changed."""
    if before is None or after is None:
        return CallChange(how="added" if before is None else "removed", before=before, after=after)
    has_other_outcome = before.outcome is not after.outcome
    is_listing = whole and not has_other_outcome and before.method in LISTINGS  # compared by definitions and identity
    params, answer = _NONE, _NONE
    repeated: tuple[str, ...] = ()
    if not is_listing:
        params, in_params = _params(before, after, rules)
        answer, in_answer = _answers(before, after, rules)
        repeated = tuple(dict.fromkeys((*in_params, *in_answer)))
    if not (has_other_outcome or params or answer or before.method != after.method):
        return None
    return CallChange(how="changed", before=before, after=after, params=params, answer=answer, repeated=repeated)


def _params(before: Exchange, after: Exchange, rules: Ignore) -> tuple[Differences, tuple[str, ...]]:
    if params_bytes(before.request) == params_bytes(after.request):
        return _NONE, ()
    old, new = params_reading(before.request), params_reading(after.request)
    return differences(old.value, new.value, rules), (*old.repeated, *new.repeated)


def _answers(before: Exchange, after: Exchange, rules: Ignore) -> tuple[Differences, tuple[str, ...]]:
    old_progress, new_progress = _progress(before, after)
    if answer_bytes(before) == answer_bytes(after) or _is_unkept(before) or _is_unkept(after):
        return differences(old_progress, new_progress, rules), ()
    old, new = answer_reading(before), answer_reading(after)
    return differences(old.value | old_progress, new.value | new_progress, rules), (*old.repeated, *new.repeated)


def _progress(before: Exchange, after: Exchange) -> tuple[dict[str, int], dict[str, int]]:
    """Return the progress of each, as a member of the call, if only one has any though both asked for it.

    How often it comes depends on time. So does whether it comes at all, if it begins late and the other call ended before.
    """
    told, silent = (before, after) if before.progress else (after, before)
    if silent.progress or not told.progress or told.sender != CLIENT or None in (before.response, after.response):
        return {}, {}
    first_ns = next(message.at_ns for message in told.notifications if message.method == PROGRESS) - told.at_ns
    if silent.request.correlation_key is None or (first_ns > LATE_NS and (silent.duration_ns or 0) < first_ns):
        return {}, {}
    progress = {"progress": told.progress}
    return (progress, {}) if told is before else ({}, progress)


def _is_unkept(exchange: Exchange) -> bool:
    """Return whether the answer was too large to be recorded."""
    return exchange.response is not None and exchange.response.unkept_bytes > 0


def duration_change(before: Exchange, after: Exchange, limit: Limit) -> DurationChange | None:
    """Compare the durations of a call with those of its partner; None if they are within the limit."""
    before_ns, after_ns = before.duration_ns, after.duration_ns
    if before_ns is None or after_ns is None or not limit.is_passed(before_ns, after_ns):
        return None
    return DurationChange(before=before, after=after, before_ns=before_ns, after_ns=after_ns)


def _compare_offers(servers: list[ServerComparison], before: Transcript, after: Transcript, rules: Ignore) -> None:
    old, new = offers(before), offers(after)
    for server in servers:
        if server.before is not None and server.after is not None:
            server.definitions = list(definition_changes(old[server.before.index], new[server.after.index], rules))


def _compare_messages(servers: list[ServerComparison], before: Transcript, after: Transcript, rules: Ignore) -> None:
    old, new = _unpaired(before), _unpaired(after)
    for server in servers:
        if server.before is not None and server.after is not None:
            rows = compared_messages(server.before, old[server.before.index]) + event_rows(before, server.before)
            others = compared_messages(server.after, new[server.after.index]) + event_rows(after, server.after)
            with_noise = are_of_one_transport(server.before, server.after)
            server.messages = message_changes(rows, others, rules, with_noise=with_noise)


def _unpaired(transcript: Transcript) -> defaultdict[int, list[UnpairedMessage]]:
    rows: defaultdict[int, list[UnpairedMessage]] = defaultdict(list)
    for row in transcript.rows:
        if isinstance(row, UnpairedMessage):
            rows[row.capture].append(row)
    return rows


def findings_by_request(side: ComparedSide, capture: CaptureInfo | None) -> list[tuple[_FindingKey, Finding]]:
    """Return the findings about a capture, each with a key that the same finding has in another capture: its rule and request."""
    if capture is None:
        return []
    findings = [finding for finding in side.transcript.findings if finding.capture == capture.index]
    rows = {finding.row for finding in findings if finding.row is not None}
    exchanges = (row for row in side.transcript.rows if isinstance(row, Exchange) and row.row in rows)
    requests = {row.row: (row.method, row.target or "") for row in exchanges}
    return [
        ((finding.rule, *requests.get(finding.row or 0, ())), finding)
        for finding in findings
        if side.rows is None or finding.row in side.rows
    ]


def finding_changes(
    before: Iterable[tuple[_FindingKey, Finding]], after: Iterable[tuple[_FindingKey, Finding]]
) -> list[FindingChange]:
    """Compare findings by their keys."""
    old, new = _by_key(before), _by_key(after)
    added = [FindingChange(how="added", finding=same[0], count=len(same)) for key, same in new.items() if key not in old]
    removed = [FindingChange(how="removed", finding=same[0], count=len(same)) for key, same in old.items() if key not in new]
    return added + removed


def _by_key(findings: Iterable[tuple[_FindingKey, Finding]]) -> dict[_FindingKey, list[Finding]]:
    by_key: dict[_FindingKey, list[Finding]] = {}
    for key, finding in findings:
        by_key.setdefault(key, []).append(finding)
    return by_key


# --- Alignment: which call of one side is which of the other, by sender, method and params, never by id ---
#
# Equal calls are paired in order. Of the others, calls of one method and target are paired by the similarity of their params: these
# are the same call with other params. What is left was added or removed. Linear, except for similar calls.


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


def call_pairs(before: Sequence[Exchange], after: Sequence[Exchange], ignore: Ignore, *, are_all: bool = True) -> list[Pair]:
    """Pair every call of both sides once, in the order of `after`; a removed call follows the call that came before it.

    Two single calls are paired however different they are, but not if other calls are paired already: `are_all` is False.
    """
    partner: dict[int, int] = {}
    old, new = _pair_equal(before, after, lambda exchange: _key(exchange, ignore), partner)
    if are_all and len(before) == len(after) == 1:
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

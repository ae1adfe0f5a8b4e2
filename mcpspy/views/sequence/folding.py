"""Runs of like calls as loops, before any format: the first ordinary call, the odd ones out, and a title that counts all.

Calls are alike if they have one client, one server, one method and one tool. Calls at the same time, and several calls that repeat
as a group, fold too. Heartbeats and log messages between them do not end a run. Errors that others do not have, slow calls, and
calls with other messages than most are odd: they are drawn. Nothing changes its position.

    a ─► ◄─ ok      ┐                 loop ×4 a · p50 1.2 ms · 1 error
    a ─► ◄─ ok      │ fold into         a ─► ◄─ ok
    ping ─► ◄─ ok   │                   ping ─► ◄─ ok
    a ─► ◄─ error   │                   a ─► ◄─ error
    a ─► ◄─ ok      ┘
    b ─► ◄─ ok                        b ─► ◄─ ok

Rows that are drawn as one are found here too: polls of a task that bring nothing new, the pages of one list, equal notifications in a
row. Rows with a finding and rows that failed are always drawn.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any, Final, NamedTuple

from ...lazy_pattern import lazy_pattern
from ...transcript.definitions import LISTINGS
from ...transcript.findings.rule import Severity
from ...transcript.http.transaction import Transaction
from ...transcript.mcp.content import content_facts
from ...transcript.model import Exchange, Kind, ModelCall, Numbered, Outcome, Row, Transcript, UnpairedMessage
from ..text.escape import one_line
from ..text.units import MILLISECOND_NS, counted, duration
from ..timeline.calls import PollFolder, PollRun
from .diagram import Arrow, ArrowKind, Aside, Fragment, FragmentKind, OmittedMessages, Step, flat, messages

MIN_REPEATS: Final = 3
"""Fewer like calls are drawn one by one."""

MAX_GROUP: Final = 6
"""The most calls that fold as a group."""

MAX_ODD: Final = 6
"""The most odd calls that one loop draws; the title counts all."""

MAX_WITHIN: Final = 16
"""A call during which more others begin stands for itself, so that a stream that is open all the time does not prevent loops."""

MAX_NAMES: Final = 4

SLOW_TIMES: Final = 5
SLOW_BY_NS: Final = 10 * MILLISECOND_NS
"""A call is slow if it took five times as long as the median, and 10 ms longer."""

_NAMED: Final = frozenset({"tools/call", "prompts/get"})
"""Methods whose target says what they do. The targets of others are data."""

_HEARTBEATS: Final = frozenset({"ping", "pong", "notifications/ping", "notifications/pong"})
_LOGS: Final = {"notifications/message": "log message", "notifications/progress": "progress notification"}
"""Notifications that do not end a run of calls, in words."""

_digits: Final = lazy_pattern(r"\d+")

_MEMBERS: Final = {"tools": "tool", "prompts": "prompt", "resources": "resource", "templates": "template"}
"""The facts that hold the items of a list, and the name of one item."""


@dataclass(slots=True, eq=False)
class _Unit:
    """The steps of one row, by their places in the list. Units without a key are always drawn; those in `passing` end no run."""

    row: Numbered | None
    places: list[int] = field(default_factory=list)
    key: tuple[str, ...] = ()
    """Lanes, method and tool."""
    name: str = ""
    shape: tuple[object, ...] = ()
    style: str = ""
    at_ns: int = 0
    took_ns: int | None = None
    is_passing: bool = False
    is_heartbeat: bool = False
    is_slow: bool = False


@dataclass(slots=True, eq=False)
class _Segment:
    """Steps between which no call is open: those of one call, or of calls that overlap.

    `key` has the keys of its calls, one if all are alike; it is empty if there are none but passing ones, and None if they cannot
    fold.
    """

    begin: int
    end: int
    units: list[_Unit]
    key: tuple[tuple[str, ...], ...] | None


class Folder:
    """Folder of the steps of some rows of a transcript. `is_timeless` leaves out what differs between two recordings of one session.

    Without `folds_calls` only heartbeats fold.
    """

    __slots__ = ("_flagged", "_folds_calls", "_is_timeless", "_rows")

    def __init__(self, transcript: Transcript, rows: Iterable[Row], *, is_timeless: bool, folds_calls: bool = True) -> None:
        self._rows: Mapping[int, Numbered] = {row.row: row for row in rows if isinstance(row, Numbered)}
        findings = [finding for finding in transcript.findings if finding.severity is not Severity.NOTE]
        self._flagged = {row for finding in findings for row in finding.rows}
        self._is_timeless = is_timeless
        self._folds_calls = folds_calls

    def folded(self, steps: Sequence[Step]) -> list[Step]:
        """Fold the runs among `steps`, and among those of the phases and agent runs in them."""
        made: list[Step] = []
        for is_group, some in groupby(steps, key=_is_group):
            if is_group:
                made += [replace(step, steps=self.folded(step.steps)) for step in some if isinstance(step, Fragment)]
            else:
                made += self._runs(list(some))
        return made

    def _runs(self, steps: Sequence[Step]) -> Iterator[Step]:
        done = 0
        for loop in _loops(list(_segments(self._units(steps)))):
            yield from steps[done : loop[0].begin]
            yield self._loop(steps, loop)
            done = loop[-1].end
        yield from steps[done:]

    def _units(self, steps: Sequence[Step]) -> list[_Unit | None]:
        """Find the unit of each step."""
        units: dict[int, _Unit] = {}
        made: list[_Unit | None] = []
        for place, step in enumerate(steps):
            number = _row(step)
            unit = units.get(number)
            if unit is None and number:
                unit = units[number] = _Unit(self._rows.get(number))
            if unit is not None:
                unit.places.append(place)
            made.append(unit)
        for unit in units.values():
            self._describe(unit, [steps[place] for place in unit.places])
        _exclude_long(list(units.values()))
        return made

    def _describe(self, unit: _Unit, steps: Sequence[Step]) -> None:
        """Find out what a unit is like. It gets no key if it begins or ends elsewhere."""
        row = unit.row
        parts = [step for step in flat(steps) if not isinstance(step, OmittedMessages)]
        first, last = parts[0], parts[-1]
        words = _words(row)
        if not words or not isinstance(first, Arrow) or not _is_whole(parts):
            return
        if not self._folds_calls and words[0] not in _HEARTBEATS:
            return
        unit.at_ns = first.at_ns
        has_rounds = isinstance(steps[0], Fragment)
        unit.key = (first.start, first.end, *words, *(["rounds"] if has_rounds else []))
        unit.name = one_line(words[-1] if words[0] == "tools/call" else " ".join(words))
        unit.style = next((step.style for step in parts if step.style in ("bad", "warn")), "")
        kinds = tuple(_shape(step) for step in parts if step.style or not _is_notification(step))
        said = _digits.sub("", last.text) if unit.style == "bad" else ""
        unit.is_heartbeat = words[0] in _HEARTBEATS
        is_flagged = not unit.is_heartbeat and unit.row is not None and unit.row.row in self._flagged
        unit.shape = (kinds, said, is_flagged)
        unit.is_passing = unit.is_heartbeat or (words[0] in _LOGS and not unit.style)
        unit.took_ns = last.at_ns - first.at_ns if has_rounds else _took_ns(row)

    def _loop(self, steps: Sequence[Step], segments: Sequence[_Segment]) -> Fragment:
        by_key: dict[tuple[str, ...], list[_Unit]] = {}
        for segment in segments:
            for unit in segment.units:
                by_key.setdefault(unit.key, []).append(unit)
        usual: list[_Unit] = []
        odd: list[_Unit] = []
        for units in by_key.values():
            first, others = self._split(units)
            usual.append(first)
            odd += others
        drawn = _worst(odd)
        places = {place for unit in (*usual, *drawn) for place in unit.places}
        begin, end = segments[0].begin, segments[-1].end
        kept = [steps[place] for place in range(begin, end) if place in places]
        title = " · ".join(filter(None, self._title(list(by_key.values()), len(odd), len(drawn))))
        folded = messages(steps[begin:end]) - messages(kept)
        return Fragment(kind=FragmentKind.LOOP, title=title, steps=kept, folded=folded)

    def _split(self, units: Sequence[_Unit]) -> tuple[_Unit, list[_Unit]]:
        """Find the first ordinary unit, and the odd ones."""
        median_ns = None if self._is_timeless else _median_ns(units)
        if median_ns is not None:
            limit_ns = max(SLOW_TIMES * median_ns, median_ns + SLOW_BY_NS)
            for unit in units:
                unit.is_slow = unit.took_ns is not None and unit.took_ns > limit_ns
        usual = Counter(unit.shape for unit in units if not unit.is_slow).most_common(1)[0][0]
        odd = [unit for unit in units if unit.is_slow or unit.shape != usual]
        return next(unit for unit in units if unit.shape == usual and not unit.is_slow), odd

    def _title(self, runs: Sequence[Sequence[_Unit]], odd: int, drawn: int) -> Iterator[str]:
        """Yield the parts of a title. `runs` are the units of each key; so many of the `odd` ones are drawn."""
        main = [units for units in runs if not units[0].is_passing] or runs
        times = min(map(len, main))
        names = [units[0].name + (f" ×{len(units) // times}" if len(units) >= 2 * times else "") for units in main[:MAX_NAMES]]
        yield f"×{times:,} {', '.join(names)}{', …' if len(main) > MAX_NAMES else ''}"
        medians = [median_ns for median_ns in map(_median_ns, main[:MAX_NAMES]) if median_ns is not None]
        if medians and not self._is_timeless:
            yield f"p50 {', '.join(map(duration, medians))}"
        if main[0][0].is_heartbeat and times > 1 and not self._is_timeless:
            yield f"every {duration((main[0][-1].at_ns - main[0][0].at_ns) // (len(main[0]) - 1))}"
        outcomes = _outcomes([unit for units in runs for unit in units])
        yield f"{outcomes} ({drawn:,} drawn)" if drawn < odd else outcomes
        yield ", ".join(_passed(units) for units in runs if units not in main)
        numbers = [unit.row.row for units in runs for unit in units if unit.row is not None]
        yield "" if self._is_timeless else f"rows {min(numbers)}–{max(numbers)}"


def _is_group(step: Step) -> bool:
    return isinstance(step, Fragment) and step.kind is not FragmentKind.LOOP


def _row(step: Step) -> int:
    """Return the row of a step, or of the first step of a fragment."""
    while isinstance(step, Fragment):
        step = step.steps[0]
    return 0 if isinstance(step, OmittedMessages) else step.row


def _words(row: Numbered | None) -> tuple[str, ...]:
    """Return the method of a row, and what it calls. Nothing for rows that do not fold."""
    match row:
        case Exchange():
            return (row.method, row.target) if row.method in _NAMED and row.target else (row.method,)
        case UnpairedMessage():
            return (row.message.method,) if row.message.method else ()
        case Transaction():
            return row.method, row.target
        case ModelCall():
            return (row.target or row.method,)
        case _:
            return ()


def _is_whole(parts: Sequence[Arrow | Aside]) -> bool:
    """Return whether all activations that begin in these steps end in them."""
    opened = [step.opens for step in parts if isinstance(step, Arrow) and step.opens]
    closed = [step.closes for step in parts if step.closes]
    return opened == closed or Counter(opened) == Counter(closed)


def _is_notification(step: Arrow | Aside) -> bool:
    return isinstance(step, Arrow) and step.kind is ArrowKind.NOTIFICATION


def _shape(step: Arrow | Aside) -> tuple[str, ...]:
    return (step.start, step.end, step.kind, step.style) if isinstance(step, Arrow) else (step.at, step.style)


def _took_ns(row: Numbered | None) -> int | None:
    return row.duration_ns if isinstance(row, Exchange | ModelCall) else None


def _exclude_long(units: Sequence[_Unit]) -> None:
    """Take the keys from units during which many others begin that are not like them. `units` are in the order of their begin."""
    begins = [unit.places[0] for unit in units]
    alike: dict[tuple[str, ...], list[int]] = {}
    for unit in units:
        alike.setdefault(unit.key, []).append(unit.places[0])
    for at, unit in enumerate(units):
        within = bisect_left(begins, unit.places[-1]) - at
        if within > MAX_WITHIN and unit.key:
            own = alike[unit.key]
            same = bisect_left(own, unit.places[-1]) - bisect_left(own, unit.places[0])
            unit.key = () if within - same > MAX_WITHIN else unit.key


def _segments(units: Sequence[_Unit | None]) -> Iterator[_Segment]:
    """Divide steps where no call is open. `units` has the unit of each step."""
    begin = until = 0
    inside: list[_Unit] = []
    can_fold = True
    for place, unit in enumerate(units):
        if unit is None or not unit.key:
            can_fold = False
        elif unit.places[0] == place:
            inside.append(unit)
            until = max(until, unit.places[-1])
        if place >= until:
            keys = tuple(unit.key for unit in inside if not unit.is_passing)
            key = (keys[:1] if len(set(keys)) == 1 else keys) if can_fold else None
            yield _Segment(begin, place + 1, inside, key)
            begin, inside, can_fold = place + 1, [], True


def _loops(segments: Sequence[_Segment]) -> Iterator[Sequence[_Segment]]:
    """Find the runs of segments that fold. Passing ones within a run, and those of the same kinds after it, belong to it."""
    main = [place for place, segment in enumerate(segments) if segment.key != ()]
    keys = [segments[place].key for place in main]
    done = at = 0
    while at < len(main):
        count = _repeated(keys, at)
        if count == 1 and len(segments[main[at]].units) < MIN_REPEATS:
            count = 0
        if count:
            begin, end = main[at], main[at + count - 1] + 1
            within = {unit.key for segment in segments[begin:end] for unit in segment.units}
            while end < len(segments) and segments[end].key == () and within.issuperset(_keys(segments[end])):
                end += 1
            yield from _passing(segments[done:begin])
            yield segments[begin:end]
            done = end
        at += max(1, count)
    yield from _passing(segments[done:])


def _repeated(keys: Sequence[tuple[tuple[str, ...], ...] | None], at: int) -> int:
    """Count the segments from `at` on that repeat, alone or as a group. 1 is one of calls that overlap and are alike; 0 is none."""
    best = 1 if (key := keys[at]) is not None and len(key) == 1 else 0
    for group in range(1, MAX_GROUP + 1):
        end = at
        while end + group < len(keys) and keys[end] is not None and keys[end] == keys[end + group]:
            end += 1
        times = (end - at) // group + 1
        if times >= MIN_REPEATS and times * group > best:
            best = times * group
    return best


def _passing(segments: Sequence[_Segment]) -> Iterator[Sequence[_Segment]]:
    """Find the runs of like passing units, such as heartbeats while nothing is called, which both sides may send."""
    for key, some in groupby(segments, key=lambda segment: _beats(segment) if segment.key == () else None):
        run = list(some)
        if key is not None and max(Counter(unit.key for segment in run for unit in segment.units).values()) >= MIN_REPEATS:
            yield run


def _beats(segment: _Segment) -> frozenset[tuple[str, ...]]:
    """Return one key for all kinds of heartbeats, and the keys of other units."""
    return frozenset(("heartbeat",) if unit.is_heartbeat else unit.key for unit in segment.units)


def _keys(segment: _Segment) -> frozenset[tuple[str, ...]]:
    return frozenset(unit.key for unit in segment.units)


def _median_ns(units: Sequence[_Unit]) -> int | None:
    took_ns = sorted(unit.took_ns for unit in units if unit.took_ns is not None)
    return took_ns[(len(took_ns) - 1) // 2] if took_ns else None


def _worst(odd: Sequence[_Unit]) -> list[_Unit]:
    """Choose the odd units that are drawn: one of each kind first, errors before others, and the slowest."""
    seen: Counter[tuple[object, ...]] = Counter()
    ranked: list[tuple[tuple[int, bool, int], _Unit]] = []
    for unit in sorted(odd, key=lambda unit: -(unit.took_ns or 0)):
        ranked.append(((seen[unit.key, unit.shape], unit.style != "bad", -(unit.took_ns or 0)), unit))
        seen[unit.key, unit.shape] += 1
    return [unit for _, unit in sorted(ranked, key=lambda entry: entry[0])[:MAX_ODD]]


def _passed(units: Sequence[_Unit]) -> str:
    """Count the heartbeats or log messages within a loop."""
    return counted(len(units), _LOGS.get(units[0].name, units[0].name))


def _outcomes(units: Sequence[_Unit]) -> str:
    """Say how calls ended, and how many were slow. Empty if they were no calls."""
    errors = sum(unit.style == "bad" for unit in units)
    warnings = sum(unit.style == "warn" for unit in units)
    slow = sum(unit.is_slow for unit in units)
    words = [counted(errors, "error")] if errors else []
    words += [counted(warnings, "warning")] if warnings else []
    words += [f"{slow:,} slow"] if slow else []
    has_answers = any(unit.took_ns is not None for unit in units)
    return ", ".join(words) or ("all ok" if has_answers else "")


class RepeatedExchange(NamedTuple):
    """Exchanges drawn as one, from the first request to the last response. `words` sum up their results."""

    first: Exchange
    last: Exchange
    times: int
    words: str = ""


class RepeatedNotification(NamedTuple):
    """Equal notifications in a row, drawn as one."""

    first: UnpairedMessage
    last: UnpairedMessage
    times: int


Drawable = Row | RepeatedExchange | RepeatedNotification


def repeats(transcript: Transcript, rows: Iterable[Row]) -> Iterator[Drawable]:
    """Yield `rows` in order, with one item for several rows at the position of the last of them."""
    flagged = {row for finding in transcript.findings for row in finding.rows}
    polls, pages = PollFolder(), _Pages()
    for row in _with_news(rows, flagged):
        if not isinstance(row, Exchange):
            yield row
            continue
        call = transcript.call_of(row)
        if call is None:
            yield from pages.feed(row, is_flagged=row.row in flagged)
        elif not polls.feed(row, call, flagged=row.row in flagged):
            run = polls.take(call)
            if run is not None:
                yield _run(run)
            yield row
    for run in polls.close():
        yield _run(run)
    yield from pages.close()


def _with_news(rows: Iterable[Row], flagged: Container[int]) -> Iterator[Row | RepeatedNotification]:
    for key, some in groupby(rows, key=lambda row: _news_key(row, flagged)):
        held = list(some)
        if key is not None and len(held) > 1 and isinstance(held[0], UnpairedMessage) and isinstance(held[-1], UnpairedMessage):
            yield RepeatedNotification(first=held[0], last=held[-1], times=len(held))
        else:
            yield from held


def _news_key(row: Row, flagged: Container[int]) -> tuple[int, str, bytes] | None:
    """Return a key that is equal for equal notifications. None for all other rows."""
    if not isinstance(row, UnpairedMessage) or row.message.kind is not Kind.NOTIFICATION or row.row in flagged:
        return None
    return row.capture, row.message.sender, row.message.raw.strip()


def _run(run: PollRun) -> Drawable:
    return RepeatedExchange(first=run.first, last=run.last, times=run.before + 1) if run.before else run.last


class _Pages:
    """Pages of lists that wait for their last page. `feed` and `close` return what can be drawn."""

    __slots__ = ("_held",)

    def __init__(self) -> None:
        self._held: dict[tuple[int, str, str], list[Exchange]] = {}
        """Pages that name a next page, by capture, sender and method."""

    def feed(self, row: Exchange, *, is_flagged: bool) -> Iterator[Drawable]:
        if row.method not in LISTINGS:
            yield row
            return
        key = row.capture, row.sender, row.method
        held = self._held.pop(key, [])
        if held and (is_flagged or not _has(row, "cursor") or row.outcome is not Outcome.OK):
            yield from _pages(held)
            held = []
        if is_flagged or row.outcome is not Outcome.OK:
            yield row
        elif _has_more(row):
            self._held[key] = [*held, row]
        else:
            yield from _pages([*held, row])

    def close(self) -> Iterator[Drawable]:
        for held in self._held.values():
            yield from _pages(held)


def _pages(held: list[Exchange]) -> Iterator[Drawable]:
    if len(held) == 1:
        yield held[0]
        return
    total: dict[str, int] = {}
    for page in held:
        facts: dict[str, Any] = {} if page.response is None else content_facts(page.response, page.method)
        for name in _MEMBERS:
            if isinstance(facts.get(name), list):
                total[name] = total.get(name, 0) + len(facts[name])
    words = ", ".join(counted(count, _MEMBERS[name]) for name, count in total.items())
    yield RepeatedExchange(first=held[0], last=held[-1], times=len(held), words=f"{words} on {len(held)} pages")


def _has(row: Exchange, name: str) -> bool:
    params = row.request.params
    return isinstance(params, dict) and bool(params.get(name))


def _has_more(row: Exchange) -> bool:
    result = None if row.response is None else row.response.result
    return isinstance(result, dict) and isinstance(result.get("nextCursor"), str)

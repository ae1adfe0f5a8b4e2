"""Steps of a diagram put into fragments: phases of a server's life, agent runs, and the rounds of one call.

Phases are drawn for one server with one client, because those of several overlap. Agent runs are drawn if a model was recorded and
the runs came one after the other. Rounds are drawn if nothing else happened between them. No step changes its position.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Final

from ...records import CLIENT
from ...transcript.calls.call import Call, CallPart
from ...transcript.http.transaction import Transaction
from ...transcript.model import Exchange, ModelCall, Row, Transcript
from ...transcript.phases import ANY_TIME, DISCOVERY, HANDSHAKE, Phase, PhaseName, lifecycles
from ..text.escape import one_line
from ..text.units import counted, duration
from .diagram import Arrow, ArrowKind, Aside, Fragment, FragmentKind, OmittedMessages, Step

if TYPE_CHECKING:
    from ...transcript.llm.agent_runs import AgentRun

Flat = Arrow | Aside | OmittedMessages

_ORDER: Final = tuple(PhaseName)


def grouped(steps: Sequence[Flat], transcript: Transcript, rows: Sequence[Row], runs: Sequence[AgentRun] = ()) -> list[Step]:
    """Put `steps` into fragments where one applies."""
    phases = _phases(transcript, rows, steps)
    if runs:
        return _with_runs(steps, transcript, runs, phases)
    parts = _parts(steps, phases)
    return (
        _with_rounds(steps, transcript) if len(parts) < 2 else _in_phases(parts, transcript, phases)
    )  # one alone says nothing


def _parts(steps: Sequence[Flat], phases: _Phases | None) -> list[tuple[PhaseName | None, list[Flat]]]:
    return [] if phases is None else [(name, list(flat_steps)) for name, flat_steps in groupby(steps, key=phases.feed)]


def _in_phases(
    parts: Sequence[tuple[PhaseName | None, list[Flat]]], transcript: Transcript, phases: _Phases | None
) -> list[Step]:
    made: list[Step] = []
    for name, flat_steps in parts:
        inner = _with_rounds(flat_steps, transcript)
        if name is None or phases is None:
            made += inner
            continue
        made.append(Fragment(kind=FragmentKind.PHASE, title=phases.title(name, flat_steps), steps=inner))
    return made


def _with_runs(steps: Sequence[Flat], transcript: Transcript, runs: Sequence[AgentRun], phases: _Phases | None) -> list[Step]:
    """Draw a fragment for each agent run that no other overlaps; before, between and after them draw phases."""
    from .model_calls import run_words

    places: dict[int, list[int]] = {}
    for at, step in enumerate(steps):
        places.setdefault(_row(step), []).append(at)
    drawn = [(run, [at for call in run.calls for at in places.get(call.row, ())]) for run in runs]
    spans = sorted(((ats[0], ats[-1] + 1, run) for run, ats in drawn if ats), key=lambda span: span[:2])
    made: list[Step] = []
    done = reach = 0
    for number, (begin, end, run) in enumerate(spans):
        is_alone = begin >= reach and (number + 1 == len(spans) or spans[number + 1][0] >= end)
        reach = max(reach, end)
        if not is_alone or end - begin < 2:
            continue
        made += _outside_runs(steps[done:begin], transcript, phases)
        inner = _with_rounds(steps[begin:end], transcript)
        made.append(Fragment(kind=FragmentKind.RUN, title=run_words(run), steps=inner))
        _parts(steps[begin:end], phases)  # which may end one of them
        done = end
    return [*made, *_outside_runs(steps[done:], transcript, phases)]


def _outside_runs(steps: Sequence[Flat], transcript: Transcript, phases: _Phases | None) -> list[Step]:
    return _with_rounds(steps, transcript) if phases is None else _in_phases(_parts(steps, phases), transcript, phases)


def _phases(transcript: Transcript, rows: Sequence[Row], steps: Sequence[Flat]) -> _Phases | None:
    """Find the phases of the only server with only one client among these rows. Captures of model APIs do not count."""
    captures = {row.capture for row in rows if not transcript.captures[row.capture].is_model}
    if len(captures) != 1:
        return None
    capture = transcript.captures[captures.pop()]
    if len(capture.clients) > 1:
        return None
    lifecycle = lifecycles(transcript)[capture.index]
    rows_by_number = {row.row: row for row in rows if isinstance(row, (Exchange, Transaction, ModelCall))}
    last_message_ns = max(
        (step.at_ns for step in steps if not isinstance(rows_by_number.get(_row(step)), Transaction)), default=0
    )
    return _Phases(rows_by_number, lifecycle.phases, last_message_ns)


class _Phases:
    """Assignment of steps to phases. Requests begin phases, and no step returns to an earlier one."""

    __slots__ = ("_begins_ns", "_last_message_ns", "_now", "_rows", "_took_ns")

    def __init__(
        self, rows: Mapping[int, Exchange | Transaction | ModelCall], phases: Sequence[Phase], last_message_ns: int
    ) -> None:
        self._rows = rows
        self._begins_ns = {phase.name: phase.begin_ns for phase in phases}
        self._took_ns = {phase.name: phase.duration_ns for phase in phases}
        self._last_message_ns = last_message_ns
        """The time of the last message. Streams that end later belong to the shutdown."""
        self._now: PhaseName | None = None

    def feed(self, step: Flat) -> PhaseName | None:
        """Return the phase of the step. None before the first phase."""
        phase = self._begun_by(step)
        if phase is not None and (self._now is None or _ORDER.index(phase) > _ORDER.index(self._now)):
            self._now = phase
        return self._now

    def title(self, name: PhaseName, steps: Sequence[Flat]) -> str:
        """Return the title of a phase with its duration, as the timeline has it; of one that it does not have, that of the steps."""
        took_ns = self._took_ns[name] if name in self._took_ns else steps[-1].at_ns - steps[0].at_ns
        return f"{name.value} · {duration(took_ns)}" if took_ns else name.value

    def _begun_by(self, step: Flat) -> PhaseName | None:
        """Return the phase that a step begins; None if it begins none."""
        row = self._rows.get(_row(step))
        if self._has_begun(PhaseName.SHUTDOWN, step) or self._is_end(step, row):
            return PhaseName.SHUTDOWN
        if self._has_begun(PhaseName.HEARTBEAT, step):
            return PhaseName.HEARTBEAT
        if not isinstance(step, Arrow) or step.kind is not ArrowKind.REQUEST:
            return PhaseName.START if self._now is None else None
        if isinstance(row, ModelCall):
            return PhaseName.CALLS
        if isinstance(row, Transaction):
            return PhaseName.SHUTDOWN if row.method == "DELETE" else PhaseName.START if self._now is None else None
        if row is None or row.sender != CLIENT or row.method in ANY_TIME:
            return None
        return (
            PhaseName.HANDSHAKE
            if row.method in HANDSHAKE
            else PhaseName.DISCOVERY
            if row.method in DISCOVERY
            else PhaseName.CALLS
        )

    def _has_begun(self, phase: PhaseName, step: Flat) -> bool:
        return phase in self._begins_ns and step.at_ns >= self._begins_ns[phase]

    def _is_end(self, step: Flat, row: Exchange | Transaction | ModelCall | None) -> bool:
        """Return whether the step is the end of a stream after the last message."""
        if not isinstance(row, Transaction) or self._now in (None, PhaseName.START):
            return False
        is_event = isinstance(step, Arrow) and step.kind in (ArrowKind.REQUEST, ArrowKind.NOTIFICATION)
        return not is_event and step.at_ns > self._last_message_ns


def _with_rounds(steps: Sequence[Flat], transcript: Transcript) -> list[Step]:
    """Draw a loop around the rounds of each call that nothing else interrupts."""
    calls = {call.row: call for capture in transcript.captures for call in capture.calls.values() if len(call.rounds) > 1}
    counts = Counter(map(_row, steps)) if calls else Counter[int]()
    made: list[Step] = []
    at = 0
    while at < len(steps):
        call = calls.get(_row(steps[at]))
        end = at if call is None else _end(steps, at, call, counts)
        if call is None or end == at:
            made.append(steps[at])
            at += 1
        else:
            made.append(Fragment(kind=FragmentKind.LOOP, title=_rounds(call), steps=steps[at:end]))
            at = end
    return made


def _end(steps: Sequence[Flat], begin: int, call: Call, counts: Counter[int]) -> int:
    """Find the end of the steps of a call. Returns `begin` if other steps interrupt it, or if only one round is drawn."""
    own = {exchange.row for exchange in call.exchanges} | {unpaired.row for unpaired in call.notifications}
    end = begin
    while end < len(steps) and _row(steps[end]) in own:
        end += 1
    is_all = end - begin == sum(counts[row] for row in own)
    rounds = sum(1 for exchange in call.rounds if counts[exchange.row])
    return end if is_all and rounds > 1 else begin


def _rounds(call: Call) -> str:
    first: Exchange = call.first
    took_ns = call.duration_ns
    words = one_line(f"{first.method} {first.target or ''}".rstrip())
    rounds = f"{words}: {counted(sum(call.part(exchange) is CallPart.ROUND for exchange in call.exchanges), 'round')}"
    return rounds if took_ns is None else f"{rounds} · {duration(took_ns)}"


def _row(step: Flat) -> int:
    return 0 if isinstance(step, OmittedMessages) else step.row

"""What a user asked for and what it took: the model calls from a user's turn to the answer without tool uses, and whose time it was.

What overlaps is counted once: while a model is at work it is the model's time, else the servers' while one of them is, else the
client's. Refuses to say what a client did in its time.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from ...records import CLIENT
from ..mcp.methods import LISTEN
from ..model import Exchange, Outcome, UnpairedMessage
from ..phases import ANY_TIME, DISCOVERY, INITIALIZED
from .call import ModelCall

if TYPE_CHECKING:
    from ..model import Row, Transcript
    from .tool_trips import ToolTrip

Span = tuple[int, int]
"""From when to when, in nanoseconds on the transcript's clock."""

_FAILED: Final = (Outcome.HTTP_ERROR, Outcome.ERROR, Outcome.UNANSWERED, Outcome.REDIRECTED)
"""Outcomes after which a client asks again, for the same."""

_OVERLAPPING: Final = 8
"""Of so many runs that began before it, a call to a server is looked for in the last ones."""


class AgentRun(msgspec.Struct, eq=False, kw_only=True):
    """What a user asked for, from the turn to the final answer. `calls` are never empty."""

    calls: list[ModelCall]
    tool_trips: list[ToolTrip] = []
    """What the answers wanted done."""
    user_text: str = ""
    """The user's words; empty where the capture begins later."""
    spoken_ns: int = 0
    """When the user is taken to have spoken, which nobody recorded: see `spoken`."""
    is_whole: bool = False
    """Whether its final answer came: one that wants nothing done."""
    ended_ns: int = 0
    """When the last byte of its last answer came; while that goes on, when the last of its calls began."""
    model_ns: int = 0
    server_ns: int = 0
    client_ns: int = 0

    @property
    def began_ns(self) -> int:
        """When the last byte of its first prompt was read."""
        return self.calls[0].at_ns

    @property
    def took_ns(self) -> int:
        """How long it took in all: what model, servers and client took comes to this."""
        return self.ended_ns - self.began_ns


def agent_runs(transcript: Transcript, found: Iterable[ToolTrip]) -> list[AgentRun]:
    """The runs of all conversations, in the order in which they began. `found` are the tool round trips of the transcript."""
    made = _of_calls(transcript.model_calls)
    by_call = {call.row: run for run in made for call in run.calls}
    for tool_trip in found:
        by_call[tool_trip.by.row].tool_trips.append(tool_trip)
    asked = _asked_of_servers(transcript, made)
    for run, spans, spoken_ns in zip(made, asked, spoken(transcript, [run.began_ns for run in made]), strict=True):
        _split(run, spans)
        run.spoken_ns = spoken_ns
    return made


def _of_calls(model_calls: Iterable[ModelCall]) -> list[AgentRun]:
    """Runs without their times: a call goes on with one if the answer before it wanted something done, or did not come."""
    made: list[AgentRun] = []
    by_row: dict[int, AgentRun] = {}
    ended: set[int] = set()
    for call in model_calls:
        known = by_row.get(call.before)
        if known is None or call.before in ended:
            known = AgentRun(calls=[], user_text=_user_text(call))
            made.append(known)
        known.calls.append(call)
        by_row[call.row] = known
        if _is_final(call):
            ended.add(call.row)
    for run in made:
        last = run.calls[-1]
        run.is_whole = _is_final(last)
        run.ended_ns = max(one.at_ns if one.ended_ns is None else one.ended_ns for one in run.calls)
    return made


def _is_final(call: ModelCall) -> bool:
    """Whether its answer wants nothing done, so that whatever comes next is for the user to say."""
    answer = call.answer
    if answer is None or call.outcome in _FAILED:
        return False
    return answer.is_whole and all(one.is_hosted for one in answer.turn.uses)


def _user_text(call: ModelCall) -> str:
    """What the user said last."""
    said = [one.text for one in call.prompt.turns[call.added :] if one.role == "user" and one.text and not one.returns]
    return said[-1] if said else ""


def _asked_of_servers(transcript: Transcript, made: list[AgentRun]) -> list[list[Span]]:
    """For each run, when servers were at work for it: its tool round trips, and what else was asked of servers meanwhile."""
    spans: list[list[Span]] = [[] for _ in made]
    of_call = {
        tool_trip.call.row: at for at, run in enumerate(made) for tool_trip in run.tool_trips if tool_trip.call is not None
    }
    began = [one.began_ns for one in made]
    for row in transcript.rows:
        if not isinstance(row, Exchange) or row.sender != CLIENT or row.method == LISTEN:
            continue
        at = of_call.get(row.row)
        at = _meanwhile(row.at_ns, made, began) if at is None else at
        if at is not None:
            spans[at].append((row.at_ns, _end_ns(transcript, row, made[at])))
    return spans


def _meanwhile(at_ns: int, made: list[AgentRun], began: list[int]) -> int | None:
    last = bisect_right(began, at_ns)
    return next((at for at in range(last - 1, max(last - 1 - _OVERLAPPING, -1), -1) if at_ns <= made[at].ended_ns), None)


def _end_ns(transcript: Transcript, row: Exchange, run: AgentRun) -> int:
    call = transcript.call_of(row)
    took_ns = row.duration_ns if call is None else call.duration_ns
    return run.ended_ns if took_ns is None else row.at_ns + took_ns


def _split(run: AgentRun, asked: list[Span]) -> None:
    """Whose time the run was."""
    within = run.began_ns, run.ended_ns
    inferring = [(one.at_ns, run.ended_ns if one.ended_ns is None else one.ended_ns) for one in run.calls]
    run.model_ns = covered_ns(inferring, within)
    busy_ns = covered_ns([*inferring, *asked], within)
    run.server_ns = busy_ns - run.model_ns
    run.client_ns = run.took_ns - busy_ns


def covered_ns(spans: Iterable[Span], within: Span) -> int:
    """How long at least one of `spans` lasted, within a span."""
    total, until = 0, within[0]
    for begin, end in sorted(spans):
        last = min(end, within[1])
        if last > until:
            total += last - max(begin, until)
            until = last
    return total


def spoken(transcript: Transcript, prompts_ns: Sequence[int]) -> list[int]:
    """For each of these prompts, which are in order, when the user is taken to have spoken, on the transcript's clock.

    That is right before the first list that was asked for after the longest silence, else when the prompt came.
    """
    found: list[int] = []
    rows = iter(transcript.rows)
    row = next(rows, None)
    quiet = _Quiet()
    for prompt_ns in prompts_ns:
        while row is not None and row.at_ns < prompt_ns:
            quiet.feed(row)
            row = next(rows, None)
        found.append(quiet.longest_before(prompt_ns))
    return found


class _Quiet:
    """What was asked for since something happened that no user had to wait for. `lists` are spans, in nanoseconds."""

    __slots__ = ("_lists", "_since_ns")

    def __init__(self) -> None:
        self._since_ns: int | None = None
        self._lists: list[tuple[int, int]] = []

    def feed(self, row: Row) -> None:
        """Take in what came before the prompt."""
        match row:
            case Exchange() if row.sender != CLIENT or row.method in ANY_TIME:
                pass
            case Exchange() if row.method in DISCOVERY:
                self._lists.append((row.at_ns, row.at_ns + (row.duration_ns or 0)))
            case Exchange():
                self._begin(row.at_ns + (row.duration_ns or 0))
            case ModelCall():
                self._begin(row.at_ns if row.ended_ns is None else row.ended_ns)
            case UnpairedMessage() if row.message.method == INITIALIZED:
                self._begin(row.at_ns)
            case _:
                pass

    def longest_before(self, prompt_ns: int) -> int:
        """The end of the longest silence before a prompt."""
        if self._since_ns is None:
            return prompt_ns
        since_ns, longest_ns, spoken_ns = self._since_ns, -1, prompt_ns
        for begin_ns, end_ns in (*self._lists, (prompt_ns, prompt_ns)):
            if begin_ns - since_ns > longest_ns:
                longest_ns, spoken_ns = begin_ns - since_ns, begin_ns
            since_ns = max(since_ns, end_ns)
        return spoken_ns if spoken_ns == prompt_ns else spoken_ns - 1

    def _begin(self, at_ns: int) -> None:
        self._since_ns = at_ns if self._since_ns is None else max(at_ns, self._since_ns)
        self._lists = _after(self._lists, self._since_ns)


def _after(lists: Iterable[tuple[int, int]], since_ns: int) -> list[tuple[int, int]]:
    return [one for one in lists if one[0] >= since_ns]

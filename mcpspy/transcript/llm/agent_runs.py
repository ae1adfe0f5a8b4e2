"""Agent runs: the model calls from a user's turn to the answer without tool uses, and how long model, servers and client took.

Time that overlaps is counted once: it is the model's while a model call goes on, else the servers' while a call to one of them does,
else the client's. The time at which the user spoke is not recorded, and is estimated.

    user turn   ╎   ┌─ model call ─┐     ┌─ tools/call ─┐   ┌─ model call ─┐
                ╎   │ wants a tool │     │              │   │ final answer │
                ╎   └──────────────┘     └──────────────┘   └──────────────┘
    whose time      model         client server        client model
                    └ began_ns                                     ended_ns ┘
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from ...records import CLIENT
from ..mcp.methods import INITIALIZED, LISTEN
from ..model import Exchange, Outcome, Row, Transcript, UnpairedMessage
from ..phases import ANY_TIME, DISCOVERY
from .model_call import ModelCall
from .tags import users_words
from .tool_trips import ToolTrip

Span = tuple[int, int]
"""Begin and end, in nanoseconds on the transcript's clock."""

_FAILED: Final = (Outcome.HTTP_ERROR, Outcome.ERROR, Outcome.UNANSWERED, Outcome.REDIRECTED)
"""Outcomes after which a client tries again."""

_OVERLAPPING: Final = 8
"""Number of runs, the last that began before it, that a call to a server may belong to."""


class AgentRun(msgspec.Struct, eq=False, kw_only=True):
    """A user's request to an agent, from the user's turn to the final answer. `calls` is never empty."""

    calls: list[ModelCall]
    tool_trips: list[ToolTrip] = []
    """The round trips of the tool uses in its answers."""
    user_text: str = ""
    """The text of the user's turn; empty if the capture begins later."""
    spoken_ns: int = 0
    """Estimated time at which the user spoke: see `user_turn_times`."""
    is_whole: bool = False
    """True if it has its final answer, which is one without tool uses."""
    ended_ns: int = 0
    """Time at which the last byte of its last answer was read; while that goes on, at which the last of its calls began."""
    model_ns: int = 0
    server_ns: int = 0
    client_ns: int = 0

    @property
    def began_ns(self) -> int:
        """Time at which the last byte of its first prompt was read."""
        return self.calls[0].at_ns

    @property
    def took_ns(self) -> int:
        """Its duration, the sum of the times of model, servers and client."""
        return self.ended_ns - self.began_ns


def agent_runs(transcript: Transcript, tool_trips: Iterable[ToolTrip]) -> list[AgentRun]:
    """Return the runs of all conversations, in the order in which they began. `tool_trips` are those of the transcript."""
    runs = _of_calls(transcript.model_calls)
    by_call = {call.row: run for run in runs for call in run.calls}
    for tool_trip in tool_trips:
        by_call[tool_trip.used_in.row].tool_trips.append(tool_trip)
    server_spans = _server_spans(transcript, runs)
    spoken = user_turn_times(transcript, [run.began_ns for run in runs])
    for run, spans, spoken_ns in zip(runs, server_spans, spoken, strict=True):
        _split_time(run, spans)
        run.spoken_ns = spoken_ns
    return runs


def _of_calls(model_calls: Iterable[ModelCall]) -> list[AgentRun]:
    """Make the runs without their times. A call continues a run unless the answer before it was final."""
    runs: list[AgentRun] = []
    by_row: dict[int, AgentRun] = {}
    final: set[int] = set()
    for call in model_calls:
        run = by_row.get(call.before)
        if run is None or call.before in final:
            run = AgentRun(calls=[], user_text=_user_text(call))
            runs.append(run)
        run.calls.append(call)
        by_row[call.row] = run
        if _is_final(call):
            final.add(call.row)
    for run in runs:
        run.is_whole = _is_final(run.calls[-1])
        run.ended_ns = max(call.at_ns if call.ended_ns is None else call.ended_ns for call in run.calls)
    return runs


def _is_final(call: ModelCall) -> bool:
    """Return True if a call's answer wants no tool called, so that the next turn is the user's."""
    answer = call.answer
    if answer is None or call.outcome in _FAILED:
        return False
    return answer.is_whole and all(use.is_hosted for use in answer.turn.uses)


def _user_text(call: ModelCall) -> str:
    """Return the user's words in the turns that are new in a prompt: the last ones, without what the agent adds."""
    new_turns = call.prompt.turns[call.added :]
    texts = [turn.text for turn in new_turns if turn.role == "user" and turn.text and not turn.returns]
    return next((words for text in reversed(texts) if (words := users_words(text))), texts[-1] if texts else "")


def _server_spans(transcript: Transcript, runs: list[AgentRun]) -> list[list[Span]]:
    """Find, for each run, the spans of calls to servers: those of its tool round trips, and other calls during the run."""
    spans: list[list[Span]] = [[] for _ in runs]
    of_call = {
        tool_trip.call.row: at for at, run in enumerate(runs) for tool_trip in run.tool_trips if tool_trip.call is not None
    }
    began = [run.began_ns for run in runs]
    for row in transcript.rows:
        if not isinstance(row, Exchange) or row.sender != CLIENT or row.method == LISTEN:
            continue
        at = of_call.get(row.row)
        at = _run_at(row.at_ns, runs, began) if at is None else at
        if at is not None:
            spans[at].append((row.at_ns, _end_ns(transcript, row, runs[at])))
    return spans


def _run_at(at_ns: int, runs: list[AgentRun], began: list[int]) -> int | None:
    """Return the index of the last run that goes on at this time; None if none does."""
    last = bisect_right(began, at_ns)
    return next((at for at in range(last - 1, max(last - 1 - _OVERLAPPING, -1), -1) if at_ns <= runs[at].ended_ns), None)


def _end_ns(transcript: Transcript, row: Exchange, run: AgentRun) -> int:
    call = transcript.call_of(row)
    took_ns = row.duration_ns if call is None else call.duration_ns
    return run.ended_ns if took_ns is None else row.at_ns + took_ns


def _split_time(run: AgentRun, server_spans: list[Span]) -> None:
    """Set the times of model, servers and client."""
    within = run.began_ns, run.ended_ns
    model_spans = [(call.at_ns, run.ended_ns if call.ended_ns is None else call.ended_ns) for call in run.calls]
    run.model_ns = covered_ns(model_spans, within)
    busy_ns = covered_ns([*model_spans, *server_spans], within)
    run.server_ns = busy_ns - run.model_ns
    run.client_ns = run.took_ns - busy_ns


def covered_ns(spans: Iterable[Span], within: Span) -> int:
    """Measure the time within a span that is covered by at least one of `spans`."""
    total, until = 0, within[0]
    for begin, end in sorted(spans):
        last = min(end, within[1])
        if last > until:
            total += last - max(begin, until)
            until = last
    return total


def user_turn_times(transcript: Transcript, prompts_ns: Sequence[int]) -> list[int]:
    """Estimate the time at which the user spoke before each of these prompts, which are in order, on the transcript's clock.

    Some clients list the servers' tools when they connect, others when the user speaks. A user takes longer than a program, so that
    the longest silence before the prompt is taken for the user's: the time is right before the first list after it, else that of the
    prompt. Nothing before the last handshake, answer or call is considered.
    """
    times: list[int] = []
    rows = iter(transcript.rows)
    row = next(rows, None)
    silence = _Silence()
    for prompt_ns in prompts_ns:
        while row is not None and row.at_ns < prompt_ns:
            silence.feed(row)
            row = next(rows, None)
        times.append(silence.end_before(prompt_ns))
    return times


class _Silence:
    """The time since the last row for which no user had to speak, and the spans of the lists that were requested since."""

    __slots__ = ("_lists", "_since_ns")

    def __init__(self) -> None:
        self._since_ns: int | None = None
        self._lists: list[Span] = []

    def feed(self, row: Row) -> None:
        """Take in a row before the prompt."""
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

    def end_before(self, prompt_ns: int) -> int:
        """Return the end of the longest silence before a prompt."""
        if self._since_ns is None:
            return prompt_ns
        since_ns, longest_ns, spoken_ns = self._since_ns, -1, prompt_ns
        for begin_ns, end_ns in (*self._lists, (prompt_ns, prompt_ns)):
            if begin_ns - since_ns > longest_ns:
                longest_ns, spoken_ns = begin_ns - since_ns, begin_ns
            since_ns = max(since_ns, end_ns)
        return spoken_ns if spoken_ns == prompt_ns else spoken_ns - 1

    def _begin(self, at_ns: int) -> None:
        since_ns = at_ns if self._since_ns is None else max(at_ns, self._since_ns)
        self._since_ns = since_ns
        self._lists = [span for span in self._lists if span[0] >= since_ns]

"""Model calls and agent runs to spans, by the GenAI conventions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ..transcript.llm.agent_runs import AgentRun, agent_runs
from ..transcript.llm.model_call import ModelCall
from ..transcript.llm.tool_trips import tool_trips
from ..transcript.model import CaptureInfo, Outcome, Transcript
from .span import LARGEST, Attributes, TelemetrySpan, TraceContext, own_context

PROVIDERS: Final = {"chat": "openai", "responses": "openai", "messages": "anthropic"}
"""By its API, whose provider may be another one that speaks it."""


class ModelSpans:
    """Spans of the model calls of a transcript and of the agent runs that they belong to."""

    def __init__(self, transcript: Transcript) -> None:
        self._transcript = transcript
        self._runs: list[AgentRun] = []
        self.parents: dict[int, TraceContext] = {}
        """The span of its run, by the row of each model call, and of each call that a model wanted."""
        if transcript.model_calls:
            self._runs = agent_runs(transcript, tool_trips(transcript))
        for run in self._runs:
            context = self._context(run)
            self.parents |= {call.row: context for call in run.calls}
            self.parents |= {trip.call.row: context for trip in run.tool_trips if trip.call is not None and trip.candidates < 2}

    def spans(self) -> Iterator[TelemetrySpan]:
        """Yield a span for each model call that is over, and for each run that is."""
        for run in self._runs:
            info = self._info(run.calls[0])
            if all(call.outcome is not Outcome.PENDING for call in run.calls) and (run.is_whole or info.closed):
                yield self._run(run, info)
            for call in run.calls:
                if call.outcome is not Outcome.PENDING:
                    yield self._call(call, self._info(call))

    def _info(self, call: ModelCall) -> CaptureInfo:
        return self._transcript.captures[call.capture]

    def _context(self, run: AgentRun) -> TraceContext:
        call = run.calls[0]
        return own_context(_capture_id(self._info(call)), "run", call.number)

    def _run(self, run: AgentRun, info: CaptureInfo) -> TelemetrySpan:
        began_ns = _began_ns(info)
        return TelemetrySpan(
            name="invoke_agent",
            is_server=False,
            context=self._context(run),
            parent=None,
            began_ns=began_ns + run.began_ns,
            ended_ns=began_ns + max(run.began_ns, run.ended_ns),
            attributes={"gen_ai.operation.name": "invoke_agent"},
            is_operation=False,
        )

    def _call(self, call: ModelCall, info: CaptureInfo) -> TelemetrySpan:
        began_ns, parent, answer = _began_ns(info), self.parents.get(call.row), call.answer
        attributes: Attributes = {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": PROVIDERS[call.api],
        }
        if call.model:
            attributes["gen_ai.request.model"] = call.model
        if answer is not None:
            named = {"gen_ai.response.model": answer.model, "gen_ai.response.id": answer.id}
            attributes |= {name: value for name, value in named.items() if value}
            usage = {
                "gen_ai.usage.input_tokens": answer.usage.input_tokens,
                "gen_ai.usage.output_tokens": answer.usage.output_tokens,
            }
            attributes |= {name: min(count, LARGEST) for name, count in usage.items() if count is not None}
            if answer.finish:
                attributes["gen_ai.response.finish_reasons"] = [answer.finish]
        error = None
        if call.outcome in (Outcome.HTTP_ERROR, Outcome.REDIRECTED, Outcome.ERROR, Outcome.UNANSWERED):
            has_status = call.outcome in (Outcome.HTTP_ERROR, Outcome.REDIRECTED)
            attributes["error.type"] = str(call.transaction.status) if has_status else "_OTHER"
            error = "" if answer is None else answer.error
        return TelemetrySpan(
            name=f"chat {call.model}" if call.model else "chat",
            is_server=False,
            context=own_context(_capture_id(info), "chat", call.number, parent=parent),
            parent=parent,
            began_ns=began_ns + call.at_ns,
            ended_ns=began_ns + call.at_ns + max(0, call.duration_ns or 0),
            attributes=attributes,
            error=error,
            is_operation=False,
        )


def _capture_id(info: CaptureInfo) -> str:
    return "" if info.header is None else info.header.capture_id


def _began_ns(info: CaptureInfo) -> int:
    return -info.shift_ns if info.header is None else info.header.wall_ns - info.shift_ns

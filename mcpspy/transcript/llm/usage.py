"""Statistics of model API traffic: calls, times and tokens by model; offers, uses and returns by tool; agent runs.

Tokens are those that the API counted. Where it counted none, and for tools, which no API counts apart, they are estimated
(`stats.tokens`); counted and estimated tokens are never added up. Does not compute what they cost in money.
"""

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field
from functools import cached_property

from ..model import Transcript
from ..outcome import Outcome
from ..stats.statistics import WELL, Latency, latency
from ..stats.tokens import estimated_tokens
from .agent_runs import AgentRun, agent_runs
from .model_call import ModelCall
from .prompt import Answer, Prompt, ToolOffer, offer_text
from .tool_trips import ToolTrip, tool_trips


@dataclass(eq=False, kw_only=True)
class ModelNumbers:
    """Numbers of the calls of one model in one capture. Tokens are sums over the `counted` calls, whose tokens the API counted."""

    capture: int
    model: str
    outcomes: Counter[Outcome] = field(default_factory=Counter)
    durations_ns: list[int] = field(default_factory=list)
    """Of complete answers, from the last byte of the prompt to the last byte of the answer."""
    until_first_ns: list[int] = field(default_factory=list)
    """From the last byte of the prompt to the first token, of answers in deltas."""
    counted: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    reasoning_tokens: int = 0
    estimated_input_tokens: int = 0
    """Of the calls whose tokens the API did not count."""
    estimated_output_tokens: int = 0
    uses: int = 0

    @cached_property
    def latency(self) -> Latency | None:
        """The distribution of its durations."""
        return latency(self.durations_ns)

    @cached_property
    def until_first(self) -> Latency | None:
        """The distribution of the times to the first token."""
        return latency(self.until_first_ns)

    @property
    def calls(self) -> int:
        """Number of calls."""
        return self.outcomes.total()

    @property
    def failed(self) -> int:
        """Number of calls that did not succeed."""
        return sum(count for outcome, count in self.outcomes.items() if outcome not in WELL)


@dataclass(eq=False, kw_only=True)
class ToolNumbers:
    """Numbers of one tool, by the name under which it is offered to models. Tokens are estimated."""

    name: str
    prompts: int = 0
    """Number of prompts that offer it."""
    definition_tokens: int = 0
    """Tokens of its last offer."""
    offered_tokens: int = 0
    """Tokens of all its offers together."""
    uses: int = 0
    called: int = 0
    """Number of uses that became a recorded call."""
    failed: int = 0
    """Number of these calls that failed."""
    durations_ns: list[int] = field(default_factory=list)
    """Of these calls."""
    told_tokens: int = 0
    """Tokens of its returns, each return counted once."""

    @cached_property
    def latency(self) -> Latency | None:
        """The distribution of these durations."""
        return latency(self.durations_ns)


@dataclass(slots=True, eq=False, kw_only=True)
class LegNumbers:
    """All statistics of model API traffic. Models and tools are in the order in which they first appear."""

    models: list[ModelNumbers]
    tools: list[ToolNumbers]
    runs: list[AgentRun]


def leg_numbers(transcript: Transcript, rows: Collection[int] | None = None) -> LegNumbers:
    """Count the model calls of a transcript, or only those in `rows`."""
    all_trips = tool_trips(transcript)
    calls = [call for call in transcript.model_calls if rows is None or call.row in rows]
    counted = {call.row for call in calls}
    counting = _Counting()
    for call in calls:
        counting.feed(call)
    counting.feed_tool_trips([tool_trip for tool_trip in all_trips if tool_trip.used_in.row in counted])
    runs = [run for run in agent_runs(transcript, all_trips) if any(call.row in counted for call in run.calls)]
    return LegNumbers(models=list(counting.models.values()), tools=list(counting.tools.values()), runs=runs)


class _Counting:
    """The numbers of models and tools while they are counted."""

    __slots__ = ("_definitions", "models", "tools")

    def __init__(self) -> None:
        self.models: dict[tuple[int, str], ModelNumbers] = {}
        self._definitions: dict[tuple[str, str, int], int] = {}
        self.tools: dict[str, ToolNumbers] = {}

    def feed(self, call: ModelCall) -> None:
        """Count a call."""
        key = call.capture, call.model
        numbers = self.models.setdefault(key, ModelNumbers(capture=call.capture, model=call.model))
        numbers.outcomes[call.outcome] += 1
        if call.outcome is Outcome.OK and call.duration_ns is not None:
            numbers.durations_ns.append(call.duration_ns)
        if call.until_first_ns is not None:
            numbers.until_first_ns.append(call.until_first_ns)
        prompt, answer = call.prompt, call.answer
        for offer in prompt.offers:
            self._count_offer(offer)
        if answer is not None:
            numbers.uses += len(answer.turn.uses)
            _count_tokens(numbers, prompt, answer)

    def _count_offer(self, offer: ToolOffer) -> None:
        key = offer.name, offer.description, offer.bytes
        tokens = self._definitions.get(key)
        if tokens is None:
            tokens = self._definitions[key] = estimated_tokens(offer_text(offer))
        tool = self.tools.setdefault(offer.name, ToolNumbers(name=offer.name))
        tool.prompts += 1
        tool.definition_tokens = tokens
        tool.offered_tokens += tokens

    def feed_tool_trips(self, tool_trips: list[ToolTrip]) -> None:
        """Count tool round trips."""
        for tool_trip in tool_trips:
            name, call = tool_trip.use.name, tool_trip.call
            tool = self.tools.setdefault(name, ToolNumbers(name=name))
            tool.uses += 1
            if tool_trip.returned is not None:
                tool.told_tokens += estimated_tokens(tool_trip.returned.text.encode("utf-8", "replace"))
            if call is not None:
                tool.called += 1
                tool.failed += call.outcome not in WELL
                if call.duration_ns is not None:
                    tool.durations_ns.append(call.duration_ns)


def _count_tokens(numbers: ModelNumbers, prompt: Prompt, answer: Answer) -> None:
    usage = answer.usage
    if usage.input_tokens is None and usage.output_tokens is None:
        numbers.estimated_input_tokens += estimated_tokens(_prompt_text(prompt))
        numbers.estimated_output_tokens += estimated_tokens(_answer_text(answer))
        return
    numbers.counted += 1
    numbers.input_tokens += usage.input_tokens or 0
    numbers.output_tokens += usage.output_tokens or 0
    numbers.cached_tokens += usage.cached_tokens or 0
    numbers.reasoning_tokens += usage.reasoning_tokens or 0


def _prompt_text(prompt: Prompt) -> bytes:
    parts = [offer_text(offer) for offer in prompt.offers if not offer.from_text]
    for turn in prompt.turns:
        parts.append(turn.text.encode("utf-8", "replace"))
        parts += [use.arguments.encode("utf-8", "replace") for use in turn.uses if not use.from_text]
        parts += [tool_return.text.encode("utf-8", "replace") for tool_return in turn.returns]
    return b"\n".join(parts)


def _answer_text(answer: Answer) -> bytes:
    turn = answer.turn
    parts = [turn.text, turn.thinking, turn.refusal, *(use.arguments for use in turn.uses if not use.from_text)]
    return "\n".join(filter(None, parts)).encode("utf-8", "replace")

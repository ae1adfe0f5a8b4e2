"""A model's leg in numbers: per model its calls, times and tokens, per tool what its offers and returns took, and whose time it was.

Tokens are those that the API counted; where it did not, and of tools, of which no API says it, they are estimated (`tokens`), and the
two are never added up. Refuses to say what they cost in money.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..outcome import Outcome
from ..stats.statistics import WELL, Latency, latency
from ..stats.tokens import estimated_tokens
from .agent_runs import AgentRun, agent_runs
from .model import offer_text
from .tool_trips import tool_trips

if TYPE_CHECKING:
    from ..model import Transcript
    from .call import ModelCall
    from .model import Answer, Prompt, ToolOffer
    from .tool_trips import ToolTrip


@dataclass(slots=True, eq=False, kw_only=True)
class ModelNumbers:
    """The calls of one model by one capture. Tokens are sums over `counted` calls, those of which the API said them."""

    capture: int
    model: str
    outcomes: Counter[Outcome] = field(default_factory=Counter)
    latency: Latency | None = None
    """Of whole answers, from the prompt's last byte to theirs."""
    until_first: Latency | None = None
    """To the first token, of those that came in deltas."""
    counted: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    reasoning_tokens: int = 0
    estimated_input_tokens: int = 0
    """Of the calls of which the API did not say how many they took."""
    estimated_output_tokens: int = 0
    uses: int = 0

    @property
    def calls(self) -> int:
        """How many there were."""
        return self.outcomes.total()

    @property
    def failed(self) -> int:
        """How many ended otherwise than they should."""
        return sum(count for outcome, count in self.outcomes.items() if outcome not in WELL)


@dataclass(slots=True, eq=False, kw_only=True)
class ToolNumbers:
    """One tool, by the name under which models know it. Tokens are estimated."""

    name: str
    prompts: int = 0
    """How many prompts offer it."""
    definition_tokens: int = 0
    """Of one offer, the last."""
    offered_tokens: int = 0
    """Of all its offers together."""
    uses: int = 0
    called: int = 0
    """How many of its uses became a call that was recorded."""
    failed: int = 0
    """How many of these calls failed."""
    latency: Latency | None = None
    """Of these calls."""
    told_tokens: int = 0
    """What models were told that came of it, each time once."""


@dataclass(slots=True, eq=False, kw_only=True)
class LegNumbers:
    """All of it. Models and tools are in the order in which they came."""

    models: list[ModelNumbers]
    tools: list[ToolNumbers]
    runs: list[AgentRun]


def leg_numbers(transcript: Transcript, rows: Collection[int] | None = None) -> LegNumbers:
    """The numbers of a transcript's model calls; `rows` are the rows to be counted, all where that is None."""
    found = tool_trips(transcript)
    chosen = [one for one in transcript.model_calls if rows is None or one.row in rows]
    wanted = {one.row for one in chosen}
    counting = _Counting()
    for one in chosen:
        counting.feed(one)
    counting.tool_trips([one for one in found if one.by.row in wanted])
    made = [run for run in agent_runs(transcript, found) if any(call.row in wanted for call in run.calls)]
    return LegNumbers(models=counting.models(), tools=list(counting.tools.values()), runs=made)


class _Counting:
    """Model calls on their way to numbers."""

    __slots__ = ("_definitions", "_models", "_took_ns", "_until_first_ns", "tools")

    def __init__(self) -> None:
        self._models: dict[tuple[int, str], ModelNumbers] = {}
        self._took_ns: dict[tuple[int, str], list[int]] = {}
        self._until_first_ns: dict[tuple[int, str], list[int]] = {}
        self._definitions: dict[tuple[str, str, int], int] = {}
        self.tools: dict[str, ToolNumbers] = {}

    def feed(self, call: ModelCall) -> None:
        """Take in a call."""
        key = call.capture, call.model
        made = self._models.setdefault(key, ModelNumbers(capture=call.capture, model=call.model))
        made.outcomes[call.outcome] += 1
        if call.outcome is Outcome.OK and call.duration_ns is not None:
            self._took_ns.setdefault(key, []).append(call.duration_ns)
        if call.until_first_ns is not None:
            self._until_first_ns.setdefault(key, []).append(call.until_first_ns)
        prompt, answer = call.prompt, call.answer
        for offer in prompt.offers:
            self._offer(offer)
        if answer is not None:
            made.uses += len(answer.turn.uses)
            _tokens(made, prompt, answer)

    def _offer(self, offer: ToolOffer) -> None:
        key = offer.name, offer.description, offer.bytes
        tokens = self._definitions.get(key)
        if tokens is None:
            tokens = self._definitions[key] = estimated_tokens(offer_text(offer))
        tool = self.tools.setdefault(offer.name, ToolNumbers(name=offer.name))
        tool.prompts += 1
        tool.definition_tokens = tokens
        tool.offered_tokens += tokens

    def tool_trips(self, found: list[ToolTrip]) -> None:
        """Take in what became of the uses."""
        took_ns: dict[str, list[int]] = {}
        for one in found:
            tool = self.tools.setdefault(one.use.name, ToolNumbers(name=one.use.name))
            tool.uses += 1
            if one.returned is not None:
                tool.told_tokens += estimated_tokens(one.returned.text.encode("utf-8", "replace"))
            if one.call is not None:
                tool.called += 1
                tool.failed += one.call.outcome not in WELL
                if one.call.duration_ns is not None:
                    took_ns.setdefault(tool.name, []).append(one.call.duration_ns)
        for name, durations_ns in took_ns.items():
            self.tools[name].latency = latency(durations_ns)

    def models(self) -> list[ModelNumbers]:
        """What the calls come to."""
        for key, made in self._models.items():
            made.latency = latency(self._took_ns.get(key, []))
            made.until_first = latency(self._until_first_ns.get(key, []))
        return list(self._models.values())


def _tokens(made: ModelNumbers, prompt: Prompt, answer: Answer) -> None:
    usage = answer.usage
    if usage.input_tokens is None and usage.output_tokens is None:
        made.estimated_input_tokens += estimated_tokens(_prompt_text(prompt))
        made.estimated_output_tokens += estimated_tokens(_said(answer))
        return
    made.counted += 1
    made.input_tokens += usage.input_tokens or 0
    made.output_tokens += usage.output_tokens or 0
    made.cached_tokens += usage.cached_tokens or 0
    made.reasoning_tokens += usage.reasoning_tokens or 0


def _prompt_text(prompt: Prompt) -> bytes:
    parts = [offer_text(one) for one in prompt.offers if not one.from_text]
    for turn in prompt.turns:
        parts.append(turn.text.encode("utf-8", "replace"))
        parts += [one.arguments.encode("utf-8", "replace") for one in turn.uses if not one.from_text]
        parts += [one.text.encode("utf-8", "replace") for one in turn.returns]
    return b"\n".join(parts)


def _said(answer: Answer) -> bytes:
    turn = answer.turn
    parts = [turn.text, turn.thinking, turn.refusal, *(one.arguments for one in turn.uses if not one.from_text)]
    return "\n".join(filter(None, parts)).encode("utf-8", "replace")

"""Findings about arguments that a model wrote, held against the schema that it was offered. `mcpspy check` asks for them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from ...llm.json_values import read_arguments
from ..json_schema import Validators
from ..rule import Family, Hit, Rule, Severity, hit
from .records import answer_record

if TYPE_CHECKING:
    from .facts import ModelFacts

_SCHEMA: Final = '{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}'
_ASKED: Final = f"⇒ asks How is the weather?\n  offers forecast {_SCHEMA}\n"

USE_INVALID: Final = Rule(
    name="use-invalid",
    title="Model's arguments do not fit the schema",
    family=Family.MODEL,
    severity=Severity.WARNING,
    what="The model wrote arguments that the schema in its prompt does not allow; its patterns and formats are not looked at.",
    why="The client or the server refuses them, or the tool does something else than was meant.",
    blame="The model: the schema is in its prompt. A client that asks the API to hold the model to it (strict) is spared this.",
    example=_ASKED + '⇐ uses c1 forecast {"town":"Paris"}',
    clean=_ASKED + '⇐ uses c1 forecast {"city":"Paris"}',
    fix="Make the tool's description and schema say plainly what it takes; see whether the model is told of the error.",
)

RULES: Final = (USE_INVALID,)

optional: Final = True

MAX_ARGUMENT_LETTERS: Final = 256 << 10


def find(facts: ModelFacts) -> Iterator[Hit]:
    """Tool uses that do not keep to what was offered."""
    validators = Validators()
    offered: dict[int, dict[str, Any]] = {}
    for tool_trip in facts.tool_trips:
        call, use = tool_trip.by, tool_trip.use
        if call.row not in offered:
            offered[call.row] = {one.offer.name: one.offer.schema for one in facts.offers_of.get(call.row, ())}
        is_json, value = read_arguments(use.arguments) if len(use.arguments) <= MAX_ARGUMENT_LETTERS else (False, None)
        if not is_json or validators.are_exhausted:
            continue
        wrong = validators.mistake(offered[call.row].get(use.name), value)
        if wrong:
            yield hit(
                USE_INVALID,
                at_ns=use.at_ns or call.at_ns,
                capture=call.capture,
                number=answer_record(call),
                row=call.row,
                what=f"The arguments for {use.name[:80]} are not as its schema in the prompt has them: {wrong}",
                culprit="model",
                group=use.name,
            )

"""Findings about arguments of a model that do not match the schema in its prompt. They are optional."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from ...llm.json_values import read_arguments
from ..json_schema import Validators
from ..rule import Hit, model_rule
from .hits import hit_in_answer

if TYPE_CHECKING:
    from .model_facts import ModelFacts

_SCHEMA: Final = '{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}'
_ASKED: Final = f"⇒ asks How is the weather?\n  offers forecast {_SCHEMA}\n"

USE_INVALID: Final = model_rule(
    name="use-invalid",
    title="Model's arguments do not fit the schema",
    what="The model wrote arguments that the schema in its prompt does not allow (patterns and formats are not checked).",
    why="The client or the server rejects them, or the tool does something other than intended.",
    blame="The model: the schema is in its prompt.",
    example=_ASKED + '⇐ uses c1 forecast {"town":"Paris"}',
    clean=_ASKED + '⇐ uses c1 forecast {"city":"Paris"}',
    advice="State in the tool's description and schema what it accepts, or have the API enforce the schema (strict).",
)

RULES: Final = (USE_INVALID,)


MAX_ARGUMENT_LETTERS: Final = 256 << 10


def find(facts: ModelFacts) -> Iterator[Hit]:
    """Find tool uses whose arguments do not match the offered schema."""
    validators = Validators()
    schemas: dict[int, dict[str, Any]] = {}
    for tool_trip in facts.tool_trips:
        call, use = tool_trip.used_in, tool_trip.use
        if call.row not in schemas:
            schemas[call.row] = {offered.offer.name: offered.offer.schema for offered in facts.offers_of.get(call.row, ())}
        is_json, value = read_arguments(use.arguments) if len(use.arguments) <= MAX_ARGUMENT_LETTERS else (False, None)
        if not is_json or validators.are_exhausted:
            continue
        wrong = validators.mistake(schemas[call.row].get(use.name), value)
        if wrong:
            what = f"The arguments for {use.name[:80]} do not match the schema in the prompt: {wrong}"
            yield hit_in_answer(USE_INVALID, call, use.at_ns or call.at_ns, what, "model", group=use.name)

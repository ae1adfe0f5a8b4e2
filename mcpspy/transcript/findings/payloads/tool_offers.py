"""Findings about tools that a server may offer, but that APIs of models refuse: their names, their schemas and their number.

One tool of this kind makes the API refuse the whole request, and the client then seems to work with no server at all.
Sources: MCP specification 2025-11-25, server/tools (names); the references of the Messages, Chat Completions and Gemini APIs.
"""

from collections.abc import Iterator
from typing import Any, Final

from ....lazy_pattern import lazy_pattern
from ...definitions import Definition, DefinitionKind, offer, value_of
from ..facts import CaptureFacts
from ..json_schema import leads_somewhere
from ..rule import Hit, Severity, cost_rule, hit_in, protocol_rule
from ..words import definition_name, listed, quoted

_LIST: Final = "→ tools/list 1\n← result 1 "
_TOOL: Final = '{"tools":[{"name":"%s","inputSchema":{"type":"object","properties":{"tags":{"type":"%s"}}}}]}'

TOOL_NAME_REFUSED: Final = protocol_rule(
    name="tool-name-refused",
    title="Name of a tool that models refuse",
    what="A tool's name is not of 1 to 64 letters of A-Z, a-z, 0-9, _, - and dots; a note where it has up to 128.",
    why="APIs of models refuse such names, often with all other tools; clients that rename tools may not find the way back.",
    blame="The server: it names the tool.",
    example=_LIST + _TOOL % ("find files!", "string"),
    clean=_LIST + _TOOL % ("find_files", "string"),
    advice="Use only letters, digits, _ and -, and at most 64 of them, with room for a prefix such as mcp__server__.",
)

SCHEMA_REFUSED: Final = protocol_rule(
    name="schema-refused",
    title="Schema of a tool that models refuse",
    what=(
        "An inputSchema has a type that JSON Schema does not have, a $ref that leads nowhere or to another document, "
        "an array without items, a choice (anyOf, oneOf, allOf) at its top, or names of properties with unusual letters."
    ),
    why="APIs of models refuse the request that offers the tool, with a message that names neither the server nor MCP.",
    blame="The server: it defines the tool. A client may translate the schema for its model.",
    example=_LIST + _TOOL % ("find_files", "list"),
    clean=_LIST + _TOOL % ("find_files", "string"),
    advice="Write plain schemas: one object at the top, the seven types of JSON Schema, items for each array, local $refs.",
)

MANY_TOOLS: Final = cost_rule(
    name="many-tools",
    title="Very many tools",
    severity=Severity.NOTE,
    what="A server offers more than 128 tools.",
    why="The Chat Completions API takes 128 at most, clients leave out the rest, and models choose badly among so many.",
    blame="The server, which offers so much, or the client's configuration, which can leave tools out.",
    example=_LIST
    + '{"tools":['
    + ",".join(f'{{"name":"t{at}","inputSchema":{{"type":"object"}}}}' for at in range(129))
    + "]}",
    clean=_LIST + _TOOL % ("find_files", "string"),
    advice="Offer sets of tools that a client can choose from, or switch unused tools off in the client.",
)

RULES: Final = (TOOL_NAME_REFUSED, SCHEMA_REFUSED, MANY_TOOLS)

MOST_TOOLS: Final = 128
_MOST_NAMED: Final = 5
_MAX_NODES: Final = 2_000
_MAX_LETTERS: Final = 128
"""The most that MCP recommends; the APIs of models take 64. They take no dots either, which clients replace by now."""

_is_taken = lazy_pattern(r"[A-Za-z0-9_.-]{1,64}")
_is_tolerable = lazy_pattern(rf"[A-Za-z0-9_.-]{{1,{_MAX_LETTERS}}}")
_is_property = lazy_pattern(r"[A-Za-z0-9_.$-]{1,64}")
_TYPES: Final = {"string", "number", "integer", "boolean", "object", "array", "null"}
_CHOICES: Final = ("anyOf", "oneOf", "allOf")
_OF_SCHEMAS: Final = ("properties", "$defs", "definitions", "patternProperties", "dependentSchemas")
_SCHEMAS: Final = ("items", "additionalProperties", "not", "if", "then", "else", "contains")


def find(facts: CaptureFacts) -> Iterator[Hit]:
    """Find tools that models refuse, in all lists of one capture."""
    if not facts.listings:
        return
    offered = offer(facts.capture, facts.listings)
    for definition in offered.ever.values():
        if definition.kind is DefinitionKind.TOOL:
            yield from _named(definition)
            yield from _defined(definition)
    tools = offered.definitions(DefinitionKind.TOOL)
    if len(tools) > MOST_TOOLS:
        what = f"The server offers {len(tools):,} tools; the Chat Completions API takes {MOST_TOOLS} at most."
        yield hit_in(MANY_TOOLS, tools[-1].message, tools[-1].row, what)


def _named(tool: Definition) -> Iterator[Hit]:
    if _is_taken.fullmatch(tool.name):
        return
    letters = sorted({letter for letter in tool.name if not _is_taken.fullmatch(letter)})
    names = ["a blank" if letter == " " else quoted(letter) for letter in letters]
    reason = listed(names, _MOST_NAMED) if names else f"{len(tool.name)} letters"
    what = f"{definition_name(tool.kind, tool.name)} has {reason} in its name."
    yield hit_in(
        TOOL_NAME_REFUSED, tool.message, tool.row, what, severity=Severity.NOTE if _is_tolerable.fullmatch(tool.name) else None
    )


def _defined(tool: Definition) -> Iterator[Hit]:
    definition = value_of(tool.raw)
    schema = definition.get("inputSchema") if isinstance(definition, dict) else None
    faults = list(dict.fromkeys(_faults(schema))) if isinstance(schema, dict) else []
    if faults:
        what = f"The inputSchema of {quoted(tool.name)} has {listed(faults, _MOST_NAMED, 'faults')}."
        yield hit_in(SCHEMA_REFUSED, tool.message, tool.row, what)


def _faults(root: dict[str, Any]) -> Iterator[str]:
    """Name what models refuse in a schema, with the place."""
    if root.get("type") == "object":  # without it another rule says what is wrong
        yield from (f"{name} at its top" for name in _CHOICES if name in root)
    waiting: list[tuple[str, Any]] = [("$", root)]
    for _ in range(_MAX_NODES):
        if not waiting:
            return
        path, schema = waiting.pop()
        if not isinstance(schema, dict):
            continue
        yield from _faults_at(root, schema, path)
        for name in _OF_SCHEMAS:
            inner = schema.get(name)
            waiting += [(f"{path}.{name}.{key}", value) for key, value in inner.items()] if isinstance(inner, dict) else []
        waiting += [(f"{path}.{name}", schema[name]) for name in _SCHEMAS if name in schema]
        for name in (*_CHOICES, "prefixItems"):
            inner = schema.get(name)
            waiting += [(path, value) for value in inner] if isinstance(inner, list) else []


def _faults_at(root: dict[str, Any], schema: dict[str, Any], path: str) -> Iterator[str]:
    kind, reference, properties = schema.get("type"), schema.get("$ref"), schema.get("properties")
    kinds = kind if isinstance(kind, list) else [kind] if kind is not None else []
    unknown = [kind for kind in kinds if not (isinstance(kind, str) and kind in _TYPES)]
    yield from (f"the type {quoted(str(kind))} at {path}" for kind in unknown)
    if "array" in kinds and "items" not in schema and "prefixItems" not in schema:
        yield f"an array without items at {path}"
    if isinstance(reference, str) and not leads_somewhere(root, reference):
        yield f"a $ref to {quoted(reference)} at {path}"
    if isinstance(properties, dict):
        yield from (f"the property {quoted(name)}" for name in properties if not _is_property.fullmatch(name))
    if type(schema.get("required")) is bool:
        yield f"required: {str(schema['required']).lower()} at {path}, where a list belongs"

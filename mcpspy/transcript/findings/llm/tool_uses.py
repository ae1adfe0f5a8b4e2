"""Findings about tool uses between the model and a server: lost, changed, malformed, made up, or ambiguous ones."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from ...llm.json_values import read_arguments
from ...llm.tool_names import deferred_names, search_tool
from ..rule import HANDSHAKE, Hit, Rule, Severity, model_rule
from .hits import hit_in_answer, hit_in_prompt

if TYPE_CHECKING:
    from ...llm.tool_trips import ToolTrip
    from ...model import Exchange
    from .model_facts import ModelFacts

_LISTED: Final = HANDSHAKE + '→ tools/list 1\n← result 1 {"tools":[{"name":"forecast","inputSchema":{"type":"object"}}]}\n'
_ASKED: Final = _LISTED + '⇒ asks How is the weather in Paris?\n  offers forecast {"type":"object"}\n'
_USES: Final = _ASKED + '⇐ uses c1 forecast {"city":"Paris"}\n'
_SUNNY: Final = '← result 2 {"content":[{"type":"text","text":"Sunny."}]}\n'
_CALLED: Final = _USES + '→ tools/call 2 {"name":"forecast","arguments":{"city":"Paris"}}\n' + _SUNNY
_SAYS: Final = "⇐ says It is sunny."
_WELL: Final = _CALLED + "⇒ returns c1 Sunny.\n" + _SAYS

USE_NOT_CALLED: Final = model_rule(
    name="use-not-called",
    title="Tool use never reached the server",
    what="The model asked for a tool of a recorded server, but the server was not called.",
    why="The tool did nothing, and the model waits or continues with whatever the client returned instead.",
    blame="The client: it received the answer and sent no call, perhaps because its user refused.",
    example=_USES + "⇒ returns c1 The user rejected this.\n⇐ says As you like.",
    clean=_WELL,
    advice="Look at what the client returned to the model instead, at its permissions and at its log.",
)

ARGUMENTS_CHANGED: Final = model_rule(
    name="arguments-changed",
    title="Arguments changed on the way",
    what="The server was called with other arguments than the model wrote.",
    why="The tool does something other than the model wanted, and the model does not know.",
    blame="The client: only it comes between the model's answer and the call.",
    example=_USES
    + '→ tools/call 2 {"name":"forecast","arguments":{"city":"PARIS"}}\n'
    + _SUNNY
    + "⇒ returns c1 Sunny.\n"
    + _SAYS,
    clean=_WELL,
    advice="Have the client forward the model's arguments unchanged, and declare in the schema what it adds.",
)

ARGUMENTS_NOT_JSON: Final = model_rule(
    name="arguments-not-json",
    title="Arguments are not JSON",
    what="The arguments that the model wrote for a tool are not a JSON object.",
    why="The client cannot call the tool with them: it fails, guesses, or calls the tool without arguments.",
    blame="The model: it wrote the arguments.",
    example=_ASKED + '⇐ uses c1 forecast {"city":"Par\n⇒ returns c1 Invalid arguments.\n⇐ says I am sorry.',
    clean=_WELL,
    advice="Return the error to the model so that it tries again, and check whether the answer was cut (answer-cut).",
)

USE_NOT_OFFERED: Final = model_rule(
    name="use-not-offered",
    title="Model asks for a tool it was not offered",
    what="The model asked for a tool that its prompt does not offer.",
    why="The tool may not exist: models make up names, especially after reading them in a text.",
    blame="The model: its prompt lists the tools that it may use.",
    example=_ASKED + "⇐ uses c1 weather_now {}\n⇒ returns c1 Unknown tool.\n⇐ says I am sorry.",
    clean=_WELL,
    advice="Offer the tool, or remove its name from instructions and texts that mention it.",
)

USE_ID_MISMATCH: Final = model_rule(
    name="use-id-mismatch",
    title="Tool use id changed",
    what="The client returned a tool's result under another id than the model gave the use.",
    why="Some APIs reject the prompt, and others leave the model to guess which result belongs to which use.",
    blame="The client: it changed the model's turn when it repeated it, or mixed two conversations.",
    example=_CALLED + "⇒ returns c9 Sunny.\n" + _SAYS,
    clean=_WELL,
    advice="Repeat the model's answer with its ids unchanged, and give each result the id of its use.",
)

AMBIGUOUS_TOOL_TRIP: Final = model_rule(
    name="ambiguous-tool-trip",
    title="Tool use fits several calls",
    severity=Severity.NOTE,
    what="A tool use fits several calls equally well by name, arguments and result.",
    why="mcpspy shows the first of them, and it is uncertain which result the model got.",
    blame="Unclear: model APIs and MCP have no id in common.",
    example=_CALLED.replace("Sunny.", "Rain.")
    + '→ tools/call 3 {"name":"forecast","arguments":{"city":"Paris"}}\n'
    + _SUNNY.replace("2", "3")
    + "⇒ returns c1 See the map.\n"
    + _SAYS,
    clean=_WELL,
    advice="Compare the calls of this tool with these arguments between the use and the prompt with its result.",
)

RULES: Final = (USE_NOT_CALLED, ARGUMENTS_CHANGED, ARGUMENTS_NOT_JSON, USE_NOT_OFFERED, USE_ID_MISMATCH, AMBIGUOUS_TOOL_TRIP)

QUOTED: Final = 120
"""Number of letters of a text that are quoted."""

_MAX_MEMBERS: Final = 3
_VALUE_LETTERS: Final = 40


def find(facts: ModelFacts) -> Iterator[Hit]:
    """Find faults of tool uses, up to the call of a server."""
    for tool_trip in facts.tool_trips:
        if tool_trip.call is None and tool_trip.used_in.row not in facts.whole:
            continue  # which `answer-broken` reports
        is_json, value = read_arguments(tool_trip.use.arguments)
        is_object = is_json and isinstance(value, dict)
        if not is_object and not _is_free_text(facts, tool_trip):
            what = f"The arguments of {_tool(tool_trip)} are not a JSON object: {quoted_text(tool_trip.use.arguments)}."
            yield _hit(ARGUMENTS_NOT_JSON, tool_trip, what, "model")
        if _is_made_up(facts, tool_trip):
            yield _made_up(facts, tool_trip)
        elif tool_trip.call is None and is_object:
            yield from _not_called(facts, tool_trip)
        if tool_trip.call is not None and tool_trip.joined_by == "name" and is_object:
            yield _changed(facts, tool_trip, tool_trip.call, value)
        if tool_trip.candidates > 1:
            first = tool_trip.call and tool_trip.call.row
            what = f"{_tool(tool_trip)} fits {tool_trip.candidates} calls equally well; row {first} is the first."
            yield _hit(AMBIGUOUS_TOOL_TRIP, tool_trip, what, "unclear")
        yield from _ids(tool_trip)


def quoted_text(text: str) -> str:
    """Put a captured text in quotation marks, on one line and cut to the length that fits into a sentence."""
    bare = " ".join(text[: 4 * QUOTED].split())
    return f"“{bare[:QUOTED]}…”" if len(bare) > QUOTED or len(text) > 4 * QUOTED else f"“{bare}”"


def _is_free_text(facts: ModelFacts, tool_trip: ToolTrip) -> bool:
    """Return whether a tool takes text that is no JSON, as a program or a patch: it was offered without a schema."""
    offered = facts.by_name.get(tool_trip.used_in.row, {}).get(tool_trip.use.name)
    return offered is not None and offered.offer.schema is None and not tool_trip.use.arguments.lstrip().startswith("{")


def _is_made_up(facts: ModelFacts, tool_trip: ToolTrip) -> bool:
    """Return whether a prompt offers tools, but not this one. A use whose JSON is broken has no name to look for."""
    offers = facts.by_name.get(tool_trip.used_in.row)
    return bool(tool_trip.use.name) and offers is not None and tool_trip.use.name not in offers


def _made_up(facts: ModelFacts, tool_trip: ToolTrip) -> Hit:
    names = [offered.offer.name for offered in facts.offers_of[tool_trip.used_in.row]]
    tools = set(facts.names.likeliest(tool_trip.use.name))
    same = [name for name in names if tools and not tools.isdisjoint(facts.names.likeliest(name))]
    what = f"The model asked for {_tool(tool_trip)}, which its prompt does not offer"
    what += f"; the prompt offers it as {same[0][:80]}" if same else _deferred(tool_trip)
    return _hit(USE_NOT_OFFERED, tool_trip, f"{what}.", "model")


def _deferred(tool_trip: ToolTrip) -> str:
    """Write that the model should have searched for a tool, if its prompt says so."""
    prompt = tool_trip.used_in.prompt
    name = tool_trip.use.name.replace(".", "__")
    if {name, name.rpartition("__")[0]}.isdisjoint(deferred_names(prompt)):
        return ""
    return f": it is deferred, and {search_tool(prompt)[:80] or 'a search'} did not find it before"


def _not_called(facts: ModelFacts, tool_trip: ToolTrip) -> Iterator[Hit]:
    offered = facts.by_name.get(tool_trip.used_in.row, {}).get(tool_trip.use.name)
    description = "" if offered is None else offered.offer.description
    tools = facts.tools(tool_trip.use.name, description)
    at_ns = tool_trip.use.at_ns or tool_trip.used_in.at_ns
    if not tools or not facts.is_over(tool_trip) or not all(facts.saw(tool.capture, at_ns) for tool in tools):
        return
    server = facts.transcript.captures[tools[0].capture].server
    what = f"The model asked for {_tool(tool_trip)}, but {server} was not called"
    what += f"; the model got {quoted_text(tool_trip.returned.text)}." if tool_trip.returned else "."
    is_of_another_client = all(tool.capture in facts.undriven for tool in tools)
    has_ended = tool_trip.until_ns is None  # before the client had to call
    yield _hit(USE_NOT_CALLED, tool_trip, what, "client", severity=Severity.NOTE if has_ended or is_of_another_client else None)


def _changed(facts: ModelFacts, tool_trip: ToolTrip, call: Exchange, wanted: dict[str, Any]) -> Hit:
    arguments = read_arguments(facts.arguments(call))[1]
    called = arguments if isinstance(arguments, dict) else {}
    lost = {name for name, value in wanted.items() if name not in called and value not in (None, "", [], {})}
    changed = {name for name, value in wanted.items() if name in called and called[name] != value}
    added = called.keys() - wanted.keys()
    words = [f"{name} was {_json(wanted[name])} and is {_json(called[name])}" for name in sorted(changed)[:_MAX_MEMBERS]]
    words += [f"{name} is missing" for name in sorted(lost)[:_MAX_MEMBERS]]
    words += [f"{name} was added" for name in sorted(added)[:_MAX_MEMBERS]]
    differences = ", ".join(words) or "empty ones were left out"
    what = f"{_tool(tool_trip)} was called in row {call.row} with other arguments: {differences}."
    is_harmless = not lost and not changed
    return _hit(ARGUMENTS_CHANGED, tool_trip, what, "client", severity=Severity.NOTE if is_harmless else None)


def _json(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _VALUE_LETTERS else f"{text[:_VALUE_LETTERS]}…"


def _ids(tool_trip: ToolTrip) -> Iterator[Hit]:
    returned, use = tool_trip.returned, tool_trip.use
    if returned is None or tool_trip.returned_in is None or not use.id or not returned.id or returned.id == use.id:
        return
    what = (
        f"{_tool(tool_trip)} has the id {use.id[:80]}, but its result was returned under {returned.id[:80]}; "
        f"they are matched by {tool_trip.returned_by or 'nothing'}."
    )
    yield hit_in_prompt(USE_ID_MISMATCH, tool_trip.returned_in, what, "client")


def _tool(tool_trip: ToolTrip) -> str:
    return tool_trip.use.name[:80] or "a tool without a name"


def _hit(rule: Rule, tool_trip: ToolTrip, what: str, culprit: str, *, severity: Severity | None = None) -> Hit:
    at_ns = tool_trip.use.at_ns or tool_trip.used_in.at_ns
    return hit_in_answer(rule, tool_trip.used_in, at_ns, what, culprit, severity=severity, group=tool_trip.use.name)

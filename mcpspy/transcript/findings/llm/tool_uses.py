"""Findings about tool uses on their way from the model to a server: lost, changed, misspelled, made up, not to be told apart."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from ...llm.json_values import read_arguments
from ..rule import Family, Hit, Rule, Severity, hit
from .records import answer_record, record_of

if TYPE_CHECKING:
    from ...llm.tool_trips import ToolTrip
    from .facts import ModelFacts

_LISTED: Final = '→ tools/list 1\n← result 1 {"tools":[{"name":"forecast","inputSchema":{"type":"object"}}]}\n'
_ASKED: Final = _LISTED + '⇒ asks How is the weather in Paris?\n  offers forecast {"type":"object"}\n'
_USES: Final = _ASKED + '⇐ uses c1 forecast {"city":"Paris"}\n'
_SUNNY: Final = '← result 2 {"content":[{"type":"text","text":"Sunny."}]}\n'
_CALLED: Final = _USES + '→ tools/call 2 {"name":"forecast","arguments":{"city":"Paris"}}\n' + _SUNNY
_SAYS: Final = "⇐ says It is sunny."
_WELL: Final = _CALLED + "⇒ returns c1 Sunny.\n" + _SAYS

USE_NOT_CALLED: Final = Rule(
    name="use-not-called",
    title="Tool use never reached the server",
    family=Family.MODEL,
    severity=Severity.WARNING,
    what="The model wanted a tool of a recorded server called, and the server was not called.",
    why="The model goes on with whatever the client made up instead, or waits; the tool has done nothing.",
    blame="The client: the answer reached it, and it sent no call. It may have asked its user, who said no.",
    example=_USES + "⇒ returns c1 The user rejected this.\n⇐ says As you like.",
    clean=_WELL,
    fix="Look at what the client told the model instead, at its permissions and at its log.",
)

ARGUMENTS_CHANGED: Final = Rule(
    name="arguments-changed",
    title="Arguments changed on the way",
    family=Family.MODEL,
    severity=Severity.WARNING,
    what="The arguments that the server was called with are not those that the model wrote.",
    why="The tool does something else than the model wanted, and the model takes its result for an answer to that.",
    blame="The client: it is all that stands between the model's answer and the call.",
    example=_USES
    + '→ tools/call 2 {"name":"forecast","arguments":{"city":"PARIS"}}\n'
    + _SUNNY
    + "⇒ returns c1 Sunny.\n"
    + _SAYS,
    clean=_WELL,
    fix="Have the client pass on what the model wrote, by JSON value; what it adds on purpose belongs into the schema.",
)

ARGUMENTS_NOT_JSON: Final = Rule(
    name="arguments-not-json",
    title="Arguments are not JSON",
    family=Family.MODEL,
    severity=Severity.WARNING,
    what="The arguments that the model wrote for a tool are no JSON object.",
    why="The client can call nothing with them; it fails, guesses, or calls the tool without arguments.",
    blame="The model, which wrote them; if its answer was cut, who set the limit.",
    example=_ASKED + '⇐ uses c1 forecast {"city":"Par\n⇒ returns c1 Invalid arguments.\n⇐ says I am sorry.',
    clean=_WELL,
    fix="Tell the model what was wrong, so that it tries again; see whether the answer was cut (answer-cut).",
)

USE_NOT_OFFERED: Final = Rule(
    name="use-not-offered",
    title="Model wants a tool it was not offered",
    family=Family.MODEL,
    severity=Severity.WARNING,
    what="The model wants a tool called that its prompt does not offer.",
    why="There may be no such tool: models make up names, above all when they have read them in a text.",
    blame="The model: the tools that it may use are in its prompt.",
    example=_ASKED + "⇐ uses c1 weather_now {}\n⇒ returns c1 Unknown tool.\n⇐ says I am sorry.",
    clean=_WELL,
    fix="Offer the tool, or leave its name out of instructions and texts that speak of it.",
)

USE_ID_MISMATCH: Final = Rule(
    name="use-id-mismatch",
    title="Tool use id changed",
    family=Family.MODEL,
    severity=Severity.WARNING,
    what="The client tells the model of a tool use by another id than the model gave it.",
    why="APIs that look for the id refuse the prompt; others let the model guess which result answers what.",
    blame="The client: it repeats the model's turn otherwise than it was, or two conversations have been put together.",
    example=_CALLED + "⇒ returns c9 Sunny.\n" + _SAYS,
    clean=_WELL,
    fix="Repeat the answer with its ids as they came, and name them in what comes of each use.",
)

AMBIGUOUS_TOOL_TRIP: Final = Rule(
    name="ambiguous-tool-trip",
    title="Tool use fits several calls",
    family=Family.MODEL,
    severity=Severity.INFO,
    what="A tool use could be one of several calls: names, arguments and what the model was told fit all of them.",
    why="mcpspy shows the first; which result the model was told is not certain.",
    blame="Nobody: no id is common to the model's leg and to MCP.",
    example=_CALLED.replace("Sunny.", "Rain.")
    + '→ tools/call 3 {"name":"forecast","arguments":{"city":"Paris"}}\n'
    + _SUNNY.replace("2", "3")
    + "⇒ returns c1 See the map.\n"
    + _SAYS,
    clean=_WELL,
    fix="Look at the calls that have the same tool and arguments, between the use and what the model was told.",
)

RULES: Final = (USE_NOT_CALLED, ARGUMENTS_CHANGED, ARGUMENTS_NOT_JSON, USE_NOT_OFFERED, USE_ID_MISMATCH, AMBIGUOUS_TOOL_TRIP)

QUOTED: Final = 120
_MAX_MEMBERS: Final = 3
_VALUE_LETTERS: Final = 40


def find(facts: ModelFacts) -> Iterator[Hit]:
    """What became of what the model wanted done, until a server was called."""
    for tool_trip in facts.tool_trips:
        if tool_trip.call is None and tool_trip.by.row not in facts.whole:
            continue  # of which `answer-broken` tells
        is_json, value = read_arguments(tool_trip.use.arguments)
        is_object = is_json and isinstance(value, dict)
        if not is_object:
            what = f"The arguments of {_tool(tool_trip)} are no JSON object: {quoted(tool_trip.use.arguments)}."
            yield _hit(ARGUMENTS_NOT_JSON, tool_trip, what, "model", group=tool_trip.use.name)
        if _is_made_up(facts, tool_trip):
            yield _made_up(facts, tool_trip)
        elif tool_trip.call is None and is_object:
            yield from _not_called(facts, tool_trip)
        if tool_trip.call is not None and tool_trip.joined_by == "name" and is_object:
            yield _changed(tool_trip, value)
        if tool_trip.candidates > 1:
            first = tool_trip.call and tool_trip.call.row
            what = f"{_tool(tool_trip)} could be any of {tool_trip.candidates} calls; row {first} is the first."
            yield _hit(AMBIGUOUS_TOOL_TRIP, tool_trip, what, "unclear", group=tool_trip.use.name)
        yield from _ids(tool_trip)


def quoted(text: str) -> str:
    """A captured text in quotation marks, cut to what a sentence can hold; a view has to escape it."""
    bare = " ".join(text[: 4 * QUOTED].split())
    return f"“{bare[:QUOTED]}…”" if len(bare) > QUOTED or len(text) > 4 * QUOTED else f"“{bare}”"


def _is_made_up(facts: ModelFacts, tool_trip: ToolTrip) -> bool:
    """Whether a prompt that offers tools does not offer this one. A use whose JSON is broken has no name to look for."""
    offers = facts.named.get(tool_trip.by.row)
    return bool(tool_trip.use.name) and offers is not None and tool_trip.use.name not in offers


def _made_up(facts: ModelFacts, tool_trip: ToolTrip) -> Hit:
    offers = facts.offers_of[tool_trip.by.row]
    meant = set(facts.names.likeliest(tool_trip.use.name))
    same = [one.offer.name for one in offers if meant and not meant.isdisjoint(facts.names.likeliest(one.offer.name))]
    what = f"The model wants {_tool(tool_trip)} called, which its prompt does not offer"
    what += f"; there it is called {same[0][:80]}" if same else ""
    return _hit(USE_NOT_OFFERED, tool_trip, f"{what}.", "model", group=tool_trip.use.name)


def _not_called(facts: ModelFacts, tool_trip: ToolTrip) -> Iterator[Hit]:
    offered = facts.named.get(tool_trip.by.row, {}).get(tool_trip.use.name)
    description = "" if offered is None else offered.offer.description
    tools = facts.tools(tool_trip.use.name, description)
    at_ns = tool_trip.use.at_ns or tool_trip.by.at_ns
    if not tools or not facts.is_over(tool_trip) or not all(facts.saw(one.capture, at_ns) for one in tools):
        return
    server = facts.transcript.captures[tools[0].capture].server
    what = f"The model wanted {_tool(tool_trip)} called, and {server} was not called"
    what += f"; the model was told {quoted(tool_trip.returned.text)}." if tool_trip.returned else "."
    is_stranger = all(one.capture in facts.strangers for one in tools)
    severity = Severity.INFO if tool_trip.until_ns is None or is_stranger else None  # it ended first, or is of another client
    yield _hit(USE_NOT_CALLED, tool_trip, what, "client", group=tool_trip.use.name, severity=severity)


def _changed(tool_trip: ToolTrip, wanted: dict[str, Any]) -> Hit:
    from ...llm.tool_trips import arguments_of

    assert tool_trip.call is not None
    said = read_arguments(arguments_of(tool_trip.call))[1]
    called = said if isinstance(said, dict) else {}
    lost = {name for name, value in wanted.items() if name not in called and value not in (None, "", [], {})}
    changed = {name for name, value in wanted.items() if name in called and called[name] != value}
    added = called.keys() - wanted.keys()
    words = [f"{name} was {_spelled(wanted[name])} and is {_spelled(called[name])}" for name in sorted(changed)[:_MAX_MEMBERS]]
    words += [f"{name} is missing" for name in sorted(lost)[:_MAX_MEMBERS]]
    words += [f"{name} was added" for name in sorted(added)[:_MAX_MEMBERS]]
    those = ", ".join(words) or "empty ones were left out"
    what = f"{_tool(tool_trip)} was called in row {tool_trip.call.row} with other arguments: {those}."
    is_harmless = not lost and not changed
    return _hit(
        ARGUMENTS_CHANGED, tool_trip, what, "client", group=tool_trip.use.name, severity=Severity.INFO if is_harmless else None
    )


def _spelled(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _VALUE_LETTERS else f"{text[:_VALUE_LETTERS]}…"


def _ids(tool_trip: ToolTrip) -> Iterator[Hit]:
    returned, use = tool_trip.returned, tool_trip.use
    if returned is None or tool_trip.returned_in is None or not use.id or not returned.id or returned.id == use.id:
        return
    by = tool_trip.returned_by or "nothing"
    what = f"{_tool(tool_trip)} has the id {use.id[:80]}, and the model is told of {returned.id[:80]}; they are joined by {by}."
    yield hit(
        USE_ID_MISMATCH,
        at_ns=tool_trip.returned_in.at_ns,
        capture=tool_trip.returned_in.capture,
        number=record_of(tool_trip.returned_in),
        row=tool_trip.returned_in.row,
        what=what,
        culprit="client",
    )


def _tool(tool_trip: ToolTrip) -> str:
    return tool_trip.use.name[:80] or "a tool without a name"


def _hit(rule: Rule, tool_trip: ToolTrip, what: str, culprit: str, *, group: str = "", severity: Severity | None = None) -> Hit:
    return hit(
        rule,
        at_ns=tool_trip.use.at_ns or tool_trip.by.at_ns,
        capture=tool_trip.by.capture,
        number=answer_record(tool_trip.by),
        row=tool_trip.by.row,
        what=what,
        culprit=culprit,
        group=group,
        severity=severity,
    )

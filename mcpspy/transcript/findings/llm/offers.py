"""Findings about the tools that prompts offer, compared with those that servers list: missing, unknown, or offered twice."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

from ...definitions import Definition, DefinitionKind, Offer
from ...llm.tool_names import PREFIX, bare_name, named_words
from ..rule import Hit, Severity, model_rule
from ..words import listed
from .hits import hit_in_prompt

if TYPE_CHECKING:
    from ...llm.model_call import ModelCall
    from ...llm.tool_names import Tool
    from .model_facts import ModelFacts, OfferedTool

_TOOLS: Final = '{"name":"forecast","inputSchema":{"type":"object"}},{"name":"alerts","inputSchema":{"type":"object"}}'
_LISTED: Final = '→ tools/list 1\n← result 1 {"tools":[' + _TOOLS + "]}\n"
_ASKED: Final = _LISTED + '⇒ asks How is the weather?\n  offers forecast {"type":"object"}\n'
_ALERTS: Final = '  offers alerts {"type":"object"}\n'
_SAYS: Final = "⇐ says I do not know."

TOOL_NOT_OFFERED: Final = model_rule(
    name="tool-not-offered",
    title="Tool never offered to the model",
    what="A server listed a tool that no later prompt offered to the model.",
    why="The model cannot use a tool that it does not know of, so that the tool is never called.",
    blame="The client, or its configuration: the server listed the tool before the prompts were sent.",
    example=_ASKED + _SAYS,
    clean=_ASKED + _ALERTS + _SAYS,
    advice="Check whether the client has disabled the tool, limits the number of tools, or ignored the list.",
)

OFFER_WITHOUT_SERVER: Final = model_rule(
    name="offer-without-server",
    title="Offered tool of no recorded server",
    severity=Severity.NOTE,
    what="A prompt offers a tool under the name of a server, but no recorded server has this tool.",
    why="The server may be gone, or may no longer have the tool, so that calls of it fail.",
    blame="The client: it makes the offers, perhaps for a server that was not recorded.",
    example=_ASKED + _ALERTS + '  offers mcp__example__tides {"type":"object"}\n' + _SAYS,
    clean=_ASKED + _ALERTS + '  offers read_file {"type":"object"}\n' + _SAYS,
    advice="If a server should have the tool, record that server too, and check that it lists the tool under this name.",
)

OFFERED_TWICE: Final = model_rule(
    name="offered-twice",
    title="Tool offered twice",
    what="One prompt offers the same tool twice, under one name or two.",
    why="It costs its tokens twice, the model has to choose between equals, and some APIs reject the prompt.",
    blame="The client: it makes the offers, perhaps from a server that is configured twice.",
    example=_ASKED + _ALERTS + '  offers mcp__example__forecast {"type":"object"}\n' + _SAYS,
    clean=_ASKED + _ALERTS + _SAYS,
    advice="Look for the server in two places of the client's configuration.",
)

RULES: Final = (TOOL_NOT_OFFERED, OFFER_WITHOUT_SERVER, OFFERED_TWICE)

_NAMED: Final = 5
"""Number of tools that are named in a sentence."""


def find(facts: ModelFacts) -> Iterator[Hit]:
    """Compare the offers with the tools of servers. Nothing is found about servers if none was recorded."""
    if not facts.calls:
        return
    tools_of = {key: facts.tools(offered.offer.name, offered.offer.description) for key, offered in facts.offered.items()}
    if facts.servers:
        agents: dict[Tool, set[int]] = {}
        for key, tools in tools_of.items():
            for tool in tools:
                agents.setdefault(tool, set()).update(facts.offered[key].captures)
        likely = _likely(facts)
        for offer in facts.server_offers:
            yield from _not_offered(facts, offer, agents, likely)
        yield from _without_server(facts, [facts.offered[key] for key, tools in tools_of.items() if not tools])
    yield from _twice(facts)


def _not_offered(facts: ModelFacts, offer: Offer, agents: dict[Tool, set[int]], likely: set[Tool]) -> Iterator[Hit]:
    """Find tools that a server listed and no later prompt of the same agent offers, if the list is complete.

    `agents` has the captures whose prompts surely offer a tool. Where none offers any tool of the server, its agent may be any that
    was recorded at the same time.
    """
    tools = offer.definitions(DefinitionKind.TOOL)
    if DefinitionKind.TOOL not in offer.complete or not tools:
        return
    capture, offered = offer.capture_info.index, agents.keys() | likely
    missing = [tool for tool in tools if tool.name and facts.tool(capture, tool.name) not in offered]
    own = {model for tool in tools for model in agents.get(facts.tool(capture, tool.name), ())}
    models = facts.models_beside(capture)
    models = models & own or models
    after = [call for call in facts.calls if call.capture in models and call.at_ns >= tools[0].message.at_ns]
    if not missing or not after:
        return
    words = named_words(call.prompt for call in after)
    missing = _unnamed(facts, offer, missing, words)
    # An offer that merely has a tool's name in it, such as web_search, does not prove that the recorded model is this client's.
    is_certain = (not facts.offered or bool(own)) and not words
    if missing:
        yield _missing(facts, missing, len(tools), after, None if is_certain else Severity.NOTE)


def _unnamed(facts: ModelFacts, offer: Offer, missing: list[Definition], words: set[str]) -> list[Definition]:
    """Leave out the tools that prompts name with these words as ones to search for, alone or all of a server.

    A client may have its own name for a server: one that no recorded server has may be this one's.
    """
    names, others = facts.names_of(offer.capture_info.index), facts.names_of()
    spaces = {bare_name(word.removeprefix(PREFIX)) for word in words if word.count("__") == 1 and word.startswith(PREFIX)}
    if spaces - others or names & (spaces | {bare_name(word) for word in words}):
        return []
    named = {bare_name(word.replace(".", "__").rpartition("__")[2]) for word in words}
    return [tool for tool in missing if bare_name(tool.name or "") not in named]


def _likely(facts: ModelFacts) -> set[Tool]:
    """Collect the tools that any offer may mean: a name that fits tools of two servers counts for both."""
    names = {offered.offer.name for offered in facts.offered.values()}
    return {tool for name in names for tools in facts.names.candidates(name).values() for tool in tools}


def _missing(
    facts: ModelFacts, missing: list[Definition], count: int, after: list[ModelCall], severity: Severity | None
) -> Hit:
    server = facts.transcript.captures[missing[0].message.capture].server
    are = "is" if len(missing) == 1 else "are"
    prompts = f"all {len(after)} prompts" if len(after) > 1 else "the prompt"
    names = _names(tool.name for tool in missing)
    what = f"{len(missing)} of {count} tools that {server} lists {are} missing in {prompts}: {names}."
    return hit_in_prompt(TOOL_NOT_OFFERED, after[0], what, "client", severity=severity, group=server)


def _without_server(facts: ModelFacts, offers: list[OfferedTool]) -> Iterator[Hit]:
    """Find offers of tools that no recorded server has under any similar name, and whose name says that they are a server's.

    All others may be the agent's own.
    """
    unknown = [
        offered
        for offered in offers
        if facts.is_of_a_server(offered.offer.name) and not facts.names.candidates(offered.offer.name)
    ]
    if not unknown:
        return
    first = min((offered.first for offered in unknown), key=lambda call: call.at_ns)
    names = list(dict.fromkeys(offered.offer.name for offered in unknown))
    what = f"{len(names)} offered {'tools are' if len(names) > 1 else 'tool is'} of no recorded server: {_names(names)}."
    yield hit_in_prompt(OFFER_WITHOUT_SERVER, first, what, "client")


def _twice(facts: ModelFacts) -> Iterator[Hit]:
    """Find prompts that offer one tool twice, each set of names once."""
    reported: set[frozenset[str]] = set()
    seen: set[tuple[int, ...]] = set()
    for call in facts.calls:
        offers = facts.offers_of.get(call.row, [])
        key = tuple(map(id, offers))
        if key in seen:
            continue
        seen.add(key)
        for names, tool in _equal_offers(facts, offers):
            if frozenset(names) not in reported:
                reported.add(frozenset(names))
                what = f"One prompt offers {tool} under several names: {_names(names)}."
                if not tool:
                    what = f"One prompt offers the tool {names[0][:80]} {len(names)} times."
                yield hit_in_prompt(OFFERED_TWICE, call, what, "client")


def _equal_offers(facts: ModelFacts, offers: Iterable[OfferedTool]) -> Iterator[tuple[list[str], str]]:
    """Group the names of offers of the same tool, with the tool and its server; the latter is empty if one name is offered twice.

    Several tools that one name may mean can have as many offers.
    """
    by_tools: dict[frozenset[Tool], list[str]] = {}
    by_name: dict[str, list[str]] = {}
    for offered in offers:
        name = offered.offer.name
        by_name.setdefault(name, []).append(name)
        tools = facts.tools(name, offered.offer.description)
        if tools:
            by_tools.setdefault(frozenset(tools), []).append(name)
    for meant, names in by_tools.items():
        if len(set(names)) > len(meant):
            tool = next(iter(meant))
            yield names, f"{tool.name[:80]} of {facts.transcript.captures[tool.capture].server}"
    for names in by_name.values():
        if len(names) > 1:
            yield names, ""


def _names(names: Iterable[str]) -> str:
    return listed((name[:80] for name in names), _NAMED)

"""Findings about the tools that prompts offer, held against those that servers list: left out, of nobody, offered twice."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

from ...offers.definitions import Definition, DefinitionKind
from ...offers.definitions import Offer as Defined
from ..rule import Family, Hit, Rule, Severity, hit
from .records import record_of

if TYPE_CHECKING:
    from ...llm.call import ModelCall
    from ...llm.tool_names import Tool
    from .facts import ModelFacts, Offered

_TOOLS: Final = '{"name":"forecast","inputSchema":{"type":"object"}},{"name":"alerts","inputSchema":{"type":"object"}}'
_LISTED: Final = '→ tools/list 1\n← result 1 {"tools":[' + _TOOLS + "]}\n"
_ASKED: Final = _LISTED + '⇒ asks How is the weather?\n  offers forecast {"type":"object"}\n'
_ALERTS: Final = '  offers alerts {"type":"object"}\n'
_SAYS: Final = "⇐ says I do not know."

TOOL_NOT_OFFERED: Final = Rule(
    name="tool-not-offered",
    title="Tool never offered to the model",
    family=Family.MODEL,
    severity=Severity.WARNING,
    what="A server lists a tool that no prompt after that offers to the model.",
    why="The model cannot use what it does not know of: this is why a tool is never called.",
    blame="The client, or who configured it: the server listed the tool to it before the prompts were sent.",
    example=_ASKED + _SAYS,
    clean=_ASKED + _ALERTS + _SAYS,
    fix="See whether the client has switched it off, limits how many tools it offers, or never took the list.",
)

OFFER_WITHOUT_SERVER: Final = Rule(
    name="offer-without-server",
    title="Offered tool of no recorded server",
    family=Family.MODEL,
    severity=Severity.INFO,
    what="A prompt offers a tool that no recorded server has.",
    why="It may be the client's own; or it is of a server that is gone, and a call of it must fail.",
    blame="The client: it makes the offers. Of servers that were not recorded nothing is known.",
    example=_ASKED + _ALERTS + '  offers tides {"type":"object"}\n' + _SAYS,
    clean=_ASKED + _ALERTS + _SAYS,
    fix="If it is meant to be of a server, record that one too, and see whether it lists the tool under this name.",
)

OFFERED_TWICE: Final = Rule(
    name="offered-twice",
    title="Tool offered twice",
    family=Family.MODEL,
    severity=Severity.WARNING,
    what="One prompt offers the same tool twice, under two names or one.",
    why="It costs its tokens twice, the model has to choose between equals, and some APIs refuse the prompt.",
    blame="The client: it makes the offers; a server that is configured twice is its configuration's fault.",
    example=_ASKED + _ALERTS + '  offers mcp__example__forecast {"type":"object"}\n' + _SAYS,
    clean=_ASKED + _ALERTS + _SAYS,
    fix="Look for the server in two places of the client's configuration.",
)

RULES: Final = (TOOL_NOT_OFFERED, OFFER_WITHOUT_SERVER, OFFERED_TWICE)

_NAMED: Final = 5
"""So many tools are named in a sentence."""


def find(facts: ModelFacts) -> Iterator[Hit]:
    """What the offers lack, and what they have too much. Says nothing of servers where none was recorded."""
    if not facts.calls:
        return
    meant = {key: facts.tools(one.offer.name, one.offer.description) for key, one in facts.offered.items()}
    if facts.servers:
        sure = {tool for tools in meant.values() for tool in tools}
        likely = _likely(facts)
        for defined in facts.defined:
            yield from _left_out(facts, defined, sure, likely)
        yield from _without_server(facts, [facts.offered[key] for key, tools in meant.items() if not tools])
    yield from _twice(facts)


def _left_out(facts: ModelFacts, defined: Defined, sure: set[Tool], likely: set[Tool]) -> Iterator[Hit]:
    """Tools that a server listed and no prompt has. The list has to be whole, and prompts have to have come after it."""
    tools = defined.definitions(DefinitionKind.TOOL)
    if DefinitionKind.TOOL not in defined.complete or not tools:
        return
    capture, offered = defined.capture_info.index, sure | likely
    missing = [one for one in tools if one.name and facts.tool(capture, one.name) not in offered]
    after = [one for one in facts.calls if one.at_ns >= tools[0].message.at_ns]
    if not missing or not after:
        return
    # That an offer merely has a tool's name in it, as web_search has, is no sign that this client's model is the recorded one.
    is_certain = not facts.offered or any(facts.tool(capture, one.name) in sure for one in tools)
    is_certain = is_certain and not any(_searches(one.offer.name) for one in facts.offered.values())
    yield _missing(facts, missing, len(tools), after, None if is_certain else Severity.INFO)


def _likely(facts: ModelFacts) -> set[Tool]:
    """The tools that any offer may stand for: a name that could be another server's as well counts for both."""
    names = {one.offer.name for one in facts.offered.values()}
    return {tool for name in names for tools in facts.names.candidates(name).values() for tool in tools}


def _searches(name: str) -> bool:
    """Whether by its name a tool is one by which a model looks for others, which it is offered only then."""
    return "toolsearch" in "".join(letter for letter in name.lower() if letter.isalnum())


def _missing(
    facts: ModelFacts, missing: list[Definition], listed: int, after: list[ModelCall], severity: Severity | None
) -> Hit:
    server = facts.transcript.captures[missing[0].message.capture].server
    few = f"{len(missing)} of {listed} tools that {server} lists"
    which = few if len(missing) < listed else f"No tool that {server} lists"
    prompts = f"{len(after)} prompts" if len(after) > 1 else "the prompt"
    verb = "are in none of" if len(missing) < listed and len(after) > 1 else "are not in" if len(missing) < listed else "is in"
    return hit(
        TOOL_NOT_OFFERED,
        at_ns=after[0].at_ns,
        capture=after[0].capture,
        number=record_of(after[0]),
        row=after[0].row,
        what=f"{which} {verb} {prompts}: {_names(one.name for one in missing)}.",
        culprit="client",
        severity=severity,
        group=server,
    )


def _without_server(facts: ModelFacts, offers: list[Offered]) -> Iterator[Hit]:
    """Offers whose names no recorded server has in any likeness; those that some server may have after all are left alone."""
    of_nobody = [one for one in offers if not facts.names.candidates(one.offer.name)]
    if not of_nobody:
        return
    first = min((one.first for one in of_nobody), key=lambda one: one.at_ns)
    names = list(dict.fromkeys(one.offer.name for one in of_nobody))
    are = "tools are" if len(names) > 1 else "tool is"
    what = f"{len(names)} {are} offered that no recorded server has: {_names(names)}."
    yield hit(
        OFFER_WITHOUT_SERVER,
        at_ns=first.at_ns,
        capture=first.capture,
        number=record_of(first),
        row=first.row,
        what=what,
        culprit="client",
    )


def _twice(facts: ModelFacts) -> Iterator[Hit]:
    """Two offers of one prompt that stand for one tool."""
    told: set[frozenset[str]] = set()
    seen: set[tuple[int, ...]] = set()
    for call in facts.calls:
        offers = facts.offers_of.get(call.row, [])
        key = tuple(map(id, offers))
        if key in seen:
            continue
        seen.add(key)
        for names, tool in _same(facts, offers):
            if frozenset(names) in told:
                continue
            told.add(frozenset(names))
            words = (
                f"The tool {names[0][:80]} is offered {len(names)} times"
                if len(set(names)) == 1
                else f"{_names(names)} are one tool"
            )
            what = f"{words}{f', {tool}' if tool else ''}, and one prompt offers {'it' if len(set(names)) == 1 else 'both'}."
            yield hit(
                OFFERED_TWICE,
                at_ns=call.at_ns,
                capture=call.capture,
                number=record_of(call),
                row=call.row,
                what=what,
                culprit="client",
            )


def _same(facts: ModelFacts, offers: Iterable[Offered]) -> Iterator[tuple[list[str], str]]:
    """The names of offers that stand for the same, and for which tool of which server. As many tools may have as many offers."""
    by_tools: dict[frozenset[Tool], list[str]] = {}
    by_name: dict[str, list[str]] = {}
    for one in offers:
        by_name.setdefault(one.offer.name, []).append(one.offer.name)
        tools = facts.tools(one.offer.name, one.offer.description)
        if tools:
            by_tools.setdefault(frozenset(tools), []).append(one.offer.name)
    for meant, names in by_tools.items():
        if len(set(names)) > len(meant):
            tool = next(iter(meant))
            yield names, f"{tool.name[:80]} of {facts.transcript.captures[tool.capture].server}"
    for names in by_name.values():
        if len(names) > 1:
            yield names, ""


def _names(names: Iterable[str]) -> str:
    shown = [name[:80] for name in names]
    more = len(shown) - _NAMED
    return ", ".join(shown[:_NAMED]) + (f" and {more} more" if more > 0 else "")

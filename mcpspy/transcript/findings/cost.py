"""Findings about what a server takes of the model's context. Nothing is wrong with it, so `mcpspy check` alone asks for them."""

from collections.abc import Iterator
from typing import Final

from ..model import Exchange, Kind
from ..offers.baseline import label_of
from ..offers.definitions import Definition
from ..stats.cost import ServerCost, ToolCost, costs, result_text
from ..stats.tokens import estimated_tokens
from .facts import TranscriptFacts
from .rule import Family, Hit, Rule, Severity, hit_in
from .words import quoted

COSTLY_TOKENS: Final = 10_000
"""Definitions that take more than this are 5 % of a context of 200,000 tokens, before anybody has said a word."""

LARGE_TOKENS: Final = 10_000
"""A result of so many tokens is where clients begin to warn (Claude Code; at 25,000 it cuts)."""

LISTED_TOOLS: Final = 5

_LIST: Final = "→ tools/list 1\n← result 1 "
_TOOL: Final = '{"name":"read","description":"Reads a file.","inputSchema":{"type":"object"}}'
_TWO_TOOLS: Final = _LIST + '{"tools":[' + _TOOL + "," + _TOOL.replace("read", "write") + "]}"
_CALLED: Final = '\n→ tools/call 2 {"name":"read"}\n← result 2 {"content":[{"type":"text","text":"ok"}]}'

COSTLY_TOOLS: Final = Rule(
    name="costly-tools",
    title="Costly tool definitions",
    family=Family.COST,
    severity=Severity.INFO,
    what="The definitions of a server's tools take more than 10,000 tokens, estimated.",
    why="Clients put them into the model's context in every conversation, used or not: less is left for the work.",
    blame="The server, which offers so much; or who configured it, where the client can leave tools out.",
    example=_LIST
    + '{"tools":[{"name":"read","description":"Reads a file. ⟪0123456789 ×1500⟫","inputSchema":{"type":"object"}}]}',
    clean=_LIST + '{"tools":[' + _TOOL + "]}",
    fix="Shorten descriptions and schemas, offer fewer tools, or switch off in the client those that are not used.",
)

UNUSED_TOOLS: Final = Rule(
    name="unused-tools",
    title="Tools never used",
    family=Family.COST,
    severity=Severity.INFO,
    what="Tools were offered, others of the same server were called, and these never.",
    why="Each takes its place in the model's context, and one more that the model may choose by mistake.",
    blame="Nobody, in one session; over many, the server, which offers what nobody wants.",
    example=_TWO_TOOLS + _CALLED,
    clean=_TWO_TOOLS + _CALLED + _CALLED.replace("read", "write").replace("2", "3"),
    fix="Check several captures of the server at once; what none of them used can be switched off in the client.",
)

LARGE_RESULT: Final = Rule(
    name="large-result",
    title="Large result",
    family=Family.COST,
    severity=Severity.INFO,
    what="The result of a tool takes more than 10,000 tokens, estimated.",
    why="It stays in the model's context for the rest of the conversation, or the client cuts it where it likes.",
    blame="The server: it knows how much it sends, and may send it in pages.",
    example='→ tools/call 1 {"name":"read"}\n← result 1 {"content":[{"type":"text","text":"⟪0123456789 ×1500⟫"}]}',
    clean='→ tools/call 1 {"name":"read"}\n← result 1 {"content":[{"type":"text","text":"0123456789"}]}',
    fix="Let the tool take a limit or a page, or return a link to a resource.",
)

RULES: Final = (COSTLY_TOOLS, UNUSED_TOOLS, LARGE_RESULT)

optional: Final = True


def find(facts: TranscriptFacts) -> Iterator[Hit]:
    """What the servers of a transcript cost, where it is much."""
    labelled: dict[str, list[ServerCost]] = {}
    for cost in costs(facts.transcript):
        labelled.setdefault(label_of(cost.offered.capture_info), []).append(cost)
        yield from _costly(cost)
    for sessions in labelled.values():
        yield from _unused(sessions)
    for row in facts.transcript.rows:
        if isinstance(row, Exchange) and row.response is not None and len(row.response.raw) > LARGE_TOKENS:
            yield from _large(row)  # a token has a byte at least


def _costly(cost: ServerCost) -> Iterator[Hit]:
    tokens = cost.definition_tokens
    defined = [one for one in cost.tools if one.definition is not None]
    if tokens <= COSTLY_TOKENS or not defined:
        return
    largest = sorted(defined, key=lambda one: -one.definition_tokens)
    what = (
        f"{len(defined):,} tools take about {tokens:,} tokens ({cost.definition_bytes:,} bytes) in every conversation;"
        f" the most: {_tools(largest)}."
    )
    yield _about(COSTLY_TOOLS, largest[0].definition, what)


def _unused(sessions: list[ServerCost]) -> Iterator[Hit]:
    """What no session with a server used, the last list of its tools counting."""
    listed = [one for one in sessions if one.listed]
    if not listed or not any(one.calls for one in sessions):
        return
    used = {tool.name for one in sessions for tool in one.tools if tool.calls}
    offered = [one for one in listed[-1].tools if one.definition is not None]
    unused = sorted((one for one in offered if one.name not in used), key=lambda one: -one.definition_tokens)
    if not unused:
        return
    tokens = sum(one.definition_tokens for one in unused)
    where = f" in {len(sessions)} captures" if len(sessions) > 1 else ""
    what = f"{len(unused):,} of {len(offered):,} tools were never called{where}, and take about {tokens:,} tokens: {_tools(unused)}."
    yield _about(UNUSED_TOOLS, unused[0].definition, what, culprit="unclear")


def _large(row: Exchange) -> Iterator[Hit]:
    response = row.response
    if response is None or response.kind is not Kind.RESULT or row.request.method != "tools/call":
        return
    tokens = estimated_tokens(result_text(response))
    if tokens > LARGE_TOKENS:
        name = quoted((row.target or "").encode("utf-8", "replace"))
        what = f"A result of {name} takes about {tokens:,} tokens ({response.size:,} bytes)."
        yield hit_in(LARGE_RESULT, response, row.row, what, group=row.target or "")


def _tools(tools: list[ToolCost]) -> str:
    names = ", ".join(f"{one.name[:80]} ({one.definition_tokens:,})" for one in tools[:LISTED_TOOLS])
    return f"{names} and {len(tools) - LISTED_TOOLS:,} more" if len(tools) > LISTED_TOOLS else names


def _about(rule: Rule, definition: Definition | None, what: str, culprit: str = "server") -> Hit:
    assert definition is not None
    return hit_in(rule, definition.message, definition.row, what, culprit=culprit)

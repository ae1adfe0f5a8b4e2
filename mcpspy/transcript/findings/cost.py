"""Findings about how much of a model's context a server takes, which is no fault."""

from collections.abc import Iterator
from typing import Final

from ..definitions import offers
from ..model import Exchange, Kind
from ..stats.context import CallCosts, ServerCost, ToolCost, result_text
from ..stats.tokens import estimated_tokens
from .facts import TranscriptFacts
from .rule import HANDSHAKE, Hit, Rule, Severity, cost_rule, hit_in
from .words import listed, quoted

COSTLY_TOKENS: Final = 10_000
"""Definitions of this size take 5 % of a context of 200,000 tokens before the conversation begins."""

LARGE_TOKENS: Final = 10_000
"""Clients begin to warn at results of this size (Claude Code; it cuts at 25,000)."""

LISTED_TOOLS: Final = 5

SESSIONS: Final = 3
"""In fewer captures of a server, a tool that was not called proves nothing."""

_LIST: Final = "→ tools/list 1\n← result 1 "
_TOOL: Final = '{"name":"read","description":"Reads a file.","inputSchema":{"type":"object"}}'
_TWO_TOOLS: Final = HANDSHAKE + _LIST + '{"tools":[' + _TOOL + "," + _TOOL.replace("read", "write") + "]}"
_CALLED: Final = '\n→ tools/call 2 {"name":"read"}\n← result 2 {"content":[{"type":"text","text":"ok"}]}'

_AGAIN: Final = "\n· another session\n"

COSTLY_TOOLS: Final = cost_rule(
    name="costly-tools",
    title="Costly tool definitions",
    severity=Severity.NOTE,
    what="The definitions of a server's tools take more than 10,000 tokens (estimated).",
    why="Clients put them into the model's context in every conversation, used or not.",
    blame="The server, which offers so much, or the client's configuration, which can leave tools out.",
    example=_LIST
    + '{"tools":[{"name":"read","description":"Reads a file. ⟪0123456789 ×1500⟫","inputSchema":{"type":"object"}}]}',
    clean=_LIST + '{"tools":[' + _TOOL + "]}",
    advice="Shorten descriptions and schemas, offer fewer tools, or switch unused tools off in the client.",
)

UNUSED_TOOLS: Final = cost_rule(
    name="unused-tools",
    title="Tools never used",
    severity=Severity.NOTE,
    what="In three captures of a server or more, some of its tools were never called, while others were.",
    why="Each takes space in the model's context and can be chosen by mistake.",
    blame="Unclear: the server offers tools that nobody needs, or these captures do not show the client's usual work.",
    example=_AGAIN.join([_TWO_TOOLS + _CALLED] * SESSIONS),
    clean=_AGAIN.join([_TWO_TOOLS + _CALLED] * (SESSIONS - 1)),
    advice="Switch them off in the client, if these captures show its usual work.",
)

LARGE_RESULT: Final = cost_rule(
    name="large-result",
    title="Large result",
    severity=Severity.NOTE,
    what="A tool's result takes more than 10,000 tokens (estimated).",
    why="It fills the model's context for the rest of the conversation, or the client cuts it.",
    blame="The server: it decides how much it sends, and could send it in pages.",
    example='→ tools/call 1 {"name":"read"}\n← result 1 {"content":[{"type":"text","text":"⟪0123456789 ×1500⟫"}]}',
    clean='→ tools/call 1 {"name":"read"}\n← result 1 {"content":[{"type":"text","text":"0123456789"}]}',
    advice="Let the tool take a limit or a page, or return a link to a resource.",
)

RULES: Final = (COSTLY_TOOLS, UNUSED_TOOLS, LARGE_RESULT)


def find(facts: TranscriptFacts) -> Iterator[Hit]:
    """Find servers and results that take much of the context."""
    by_label: dict[str, list[ServerCost]] = {}
    calls = _Calls()
    calls.feed(facts.transcript.rows)
    for cost in calls.costs(offers(facts.transcript)):
        by_label.setdefault(cost.offer.capture_info.label, []).append(cost)
        yield from _costly(cost)
    for sessions in by_label.values():
        yield from _unused(sessions)
    yield from calls.large


class _Calls(CallCosts):
    """The costs of calls, and the findings about large results."""

    def __init__(self) -> None:
        super().__init__()
        self.large: list[Hit] = []

    def _call(self, exchange: Exchange) -> int:
        size = super()._call(exchange)
        if size > LARGE_TOKENS:  # a token has a byte at least
            self.large += _large(exchange)
        return size


def _costly(cost: ServerCost) -> Iterator[Hit]:
    tokens = cost.definition_tokens
    defined = [tool for tool in cost.tools if tool.definition is not None]
    if tokens <= COSTLY_TOKENS or not defined:
        return
    largest = _largest_first(defined)
    what = (
        f"{len(defined):,} tools take about {tokens:,} tokens ({cost.definition_bytes:,} bytes) in every conversation;"
        f" the largest: {_tools(largest)}."
    )
    yield _hit(COSTLY_TOOLS, largest[0], what, "server")


def _unused(sessions: list[ServerCost]) -> Iterator[Hit]:
    """Find tools of the last list that no session with a server used."""
    with_list = [cost for cost in sessions if cost.listed]
    if len(sessions) < SESSIONS or not with_list or not any(cost.calls for cost in sessions):
        return
    used = {tool.name for cost in sessions for tool in cost.tools if tool.calls}
    offered = [tool for tool in with_list[-1].tools if tool.definition is not None]
    unused = _largest_first([tool for tool in offered if tool.name not in used])
    if not unused:
        return
    tokens = sum(tool.definition_tokens for tool in unused)
    were, their = ("was", "Its definition takes") if len(unused) == 1 else ("were", "Their definitions take")
    what = (
        f"{len(unused):,} of {len(offered):,} tools {were} never called in {len(sessions):,} captures: {_tools(unused)}. "
        f"{their} about {tokens:,} tokens."
    )
    yield _hit(UNUSED_TOOLS, unused[0], what, "unclear")


def _large(row: Exchange) -> Iterator[Hit]:
    response = row.response
    if response is None or response.kind is not Kind.RESULT or row.request.method != "tools/call":
        return
    tokens = estimated_tokens(result_text(response))
    if tokens > LARGE_TOKENS:
        name = quoted(row.target or "")
        what = f"A result of {name} takes about {tokens:,} tokens ({response.size:,} bytes)."
        yield hit_in(LARGE_RESULT, response, row.row, what, group=row.target or "")


def _largest_first(tools: list[ToolCost]) -> list[ToolCost]:
    return sorted(tools, key=lambda tool: -tool.definition_tokens)


def _tools(tools: list[ToolCost]) -> str:
    return listed((f"{tool.name[:80]} ({tool.definition_tokens:,})" for tool in tools), LISTED_TOOLS)


def _hit(rule: Rule, tool: ToolCost, what: str, culprit: str) -> Hit:
    definition = tool.definition
    assert definition is not None
    return hit_in(rule, definition.message, definition.row, what, culprit=culprit)

"""Findings about the tokens that offered tools take of a model's context. They are optional, since nothing is wrong."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from ...stats.tokens import estimated_tokens
from ..rule import Hit, Severity, cost_rule
from ..words import listed
from .hits import hit_in_prompt

if TYPE_CHECKING:
    from ...llm.prompt import ToolOffer
    from .model_facts import ModelFacts, OfferedTool

_ASKED: Final = '⇒ asks How is the weather?\n  offers forecast {"type":"object"}\n'
_USES: Final = "⇐ uses c1 forecast {}\n⇒ returns c1 Sunny.\n⇐ says It is sunny.\n  usage 88 15"

UNUSED_OFFERS: Final = cost_rule(
    name="unused-offers",
    title="Offered tools never used",
    severity=Severity.NOTE,
    what="Servers' tools that the model never used, though it used others, take 1,000 tokens or more of each prompt (estimated).",
    why="Every prompt pays for their definitions, and more tools make a wrong choice likelier.",
    blame="Unclear: a single conversation is not enough to blame the client's configuration.",
    example=_ASKED + '  offers mcp__example__alerts {"type":"object"} Warns of ⟪storms, ×700⟫\n' + _USES,
    clean=_ASKED + _USES,
    advice="Look at several captures, and disable in the client the tools that are never used.",
)

RULES: Final = (UNUSED_OFFERS,)


UNUSED_TOKENS: Final = 1_000
"""Definitions of this size take 0.5 % of a context of 200,000 tokens in each prompt; less is not worth a look."""

_NAMED: Final = 5
"""Number of tools that are named in a sentence."""


def find(facts: ModelFacts) -> Iterator[Hit]:
    """Find the tools of servers that were offered and never used, and the tokens that their definitions took."""
    used = {tool_trip.use.name for tool_trip in facts.tool_trips}
    offers = [offered for offered in facts.offered.values() if _is_of_a_server(facts, offered.offer)]
    unused = [offered for offered in offers if offered.offer.name not in used]
    each = {id(offered): estimated_tokens(offered.text) for offered in unused}
    if sum(each.values()) < UNUSED_TOKENS or not used:
        return
    tokens = {id(offered): each[id(offered)] * offered.count for offered in unused}
    largest = sorted(unused, key=lambda offered: -tokens[id(offered)])
    names = list(dict.fromkeys(offered.offer.name for offered in largest))
    first = min((offered.first for offered in unused), key=lambda call: call.at_ns)
    count = len({offered.offer.name for offered in offers})
    named = listed((name[:80] for name in names), _NAMED)
    were, their = ("was", "Its definition") if len(names) == 1 else ("were", "Their definitions")
    what = (
        f"{len(names)} of {count} offered tools {were} never used: {named}. "
        f"{their} took about {sum(tokens.values()):,} tokens{_in_prompts(facts, unused)}."
    )
    yield hit_in_prompt(UNUSED_OFFERS, first, what, "unclear")


def _is_of_a_server(facts: ModelFacts, offer: ToolOffer) -> bool:
    """Return whether an offered tool is a server's, and not the agent's own, which its user cannot leave out."""
    return facts.is_of_a_server(offer.name) or bool(facts.tools(offer.name, offer.description))


def _in_prompts(facts: ModelFacts, unused: list[OfferedTool]) -> str:
    """Write the number of prompts, and the tokens that the API counted in all of them."""
    prompts = max(offered.count for offered in unused)
    usages = [answer.usage.input_tokens for call in facts.calls if (answer := call.answer) is not None]
    counted = [tokens for tokens in usages if tokens is not None]
    of_counted = f", of {sum(counted):,} that the API counted" if counted else ""
    return f" in {prompts} prompt{'s' if prompts > 1 else ''}{of_counted}"

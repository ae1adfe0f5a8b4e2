"""Findings about what offers take of a model's context. Nothing is wrong with it, so `mcpspy check` alone asks for them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from ...stats.tokens import estimated_tokens
from ..rule import Family, Hit, Rule, Severity, hit
from .records import record_of

if TYPE_CHECKING:
    from .facts import ModelFacts, Offered

_ASKED: Final = '⇒ asks How is the weather?\n  offers forecast {"type":"object"}\n'
_USES: Final = "⇐ uses c1 forecast {}\n⇒ returns c1 Sunny.\n⇐ says It is sunny.\n  usage 88 15"

UNUSED_OFFERS: Final = Rule(
    name="unused-offers",
    title="Offered tools never used",
    family=Family.COST,
    severity=Severity.INFO,
    what="Prompts offer tools that the model never used, while it used others.",
    why="Their definitions are paid for in every prompt, and the more there are, the likelier a wrong one is chosen.",
    blame="Nobody, in one conversation; over many, the client, or who configured it.",
    example=_ASKED + '  offers alerts {"type":"object"}\n' + _USES,
    clean=_ASKED + _USES,
    fix="Switch off in the client what is never used; look at several captures at once before you do.",
)

RULES: Final = (UNUSED_OFFERS,)

optional: Final = True

_NAMED: Final = 5


def find(facts: ModelFacts) -> Iterator[Hit]:
    """Tokens that were spent on definitions which nobody used."""
    used = {one.use.name for one in facts.tool_trips}
    offers = list(facts.offered.values())
    unused = [one for one in offers if one.offer.name not in used]
    if not unused or len(unused) == len(offers):
        return
    tokens = {id(one): estimated_tokens(one.text) for one in unused}
    largest = sorted(unused, key=lambda one: -tokens[id(one)] * one.count)
    total = sum(tokens[id(one)] * one.count for one in unused)
    names = list(dict.fromkeys(one.offer.name for one in largest))
    first = min((one.first for one in unused), key=lambda one: one.at_ns)
    several = f"{len(names)} of {len({one.offer.name for one in offers})} tools that were offered were never used"
    what = f"{several}: {_named(names)}. Their definitions took about {total:,} tokens in all{_of_all(facts, unused)}."
    yield hit(
        UNUSED_OFFERS,
        at_ns=first.at_ns,
        capture=first.capture,
        number=record_of(first),
        row=first.row,
        what=what,
        culprit="unclear",
    )


def _of_all(facts: ModelFacts, unused: list[Offered]) -> str:
    """In how many prompts, and how much those took that the API counted."""
    prompts = max(one.count for one in unused)
    usages = [answer.usage.input_tokens for one in facts.calls if (answer := one.answer) is not None]
    counted = [one for one in usages if one is not None]
    said = f", of {sum(counted):,} that the API counted" if counted else ""
    return f", in {prompts} prompt{'s' if prompts > 1 else ''}{said}"


def _named(names: list[str]) -> str:
    more = len(names) - _NAMED
    return ", ".join(name[:80] for name in names[:_NAMED]) + (f" and {more} more" if more > 0 else "")

"""What is worth a human's eye in a transcript: a pure function over its rows, with rules whose culprit is certain.

Where records are missing nobody can be blamed for what is not seen: there the rules about answers hold their tongue. The rules
themselves stand in the modules that `rules` lists.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from ..finding import Finding
from ..model import Transcript
from .facts import stories
from .llm.run import model_findings
from .registry import FINDERS, MODEL_LEG_FINDERS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .build import Found


def findings(transcript: Transcript, wanted: Callable[[Finding], bool] | None = None) -> list[Finding]:
    """What there is to find, in the order of time; what repeats is one finding, which points at the first and counts all.

    Only what is `wanted` counts; None: all.
    """
    counted: dict[tuple[str, ...], Found] = {}
    for number, (place, one) in enumerate(_by_place(transcript)):
        if wanted is not None and not wanted(one.finding):
            continue
        key = (place, one.finding.rule, one.finding.culprit, one.group or f"\n{number}")
        first = counted.setdefault(key, one)
        if first is not one:
            counted[key] = first._replace(finding=replace(first.finding, count=first.finding.count + one.finding.count))
    return [one.finding for one in sorted(counted.values(), key=lambda one: one.at_ns)]


def _by_place(transcript: Transcript) -> "Iterator[tuple[str, Found]]":
    """Findings with where they count together: each capture by itself, and all of them together where a model is among them."""
    for index, story in enumerate(stories(transcript)):
        for finder in MODEL_LEG_FINDERS if story.source.is_model else FINDERS:
            for one in finder.find(story):
                yield str(index), one
    for one in model_findings(transcript):
        yield "", one

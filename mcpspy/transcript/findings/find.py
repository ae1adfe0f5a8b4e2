"""What is worth a human's eye in a transcript: a pure function over its rows, with rules whose culprit is certain.

Where records are missing nobody can be blamed for what is not seen: there the rules about answers hold their tongue. The rules
themselves stand in the modules that `rules` lists.
"""

from dataclasses import replace
from typing import TYPE_CHECKING

from ..finding import Finding
from ..model import Transcript
from .rules import FINDERS, MODEL_LEG_FINDERS
from .story import stories

if TYPE_CHECKING:
    from .found import Found


def findings(transcript: Transcript) -> list[Finding]:
    """What there is to find, in the order of time; what repeats is one finding, which points at the first and counts all."""
    counted: dict[tuple[str, ...], Found] = {}
    for index, story in enumerate(stories(transcript)):
        number = 0
        for finder in MODEL_LEG_FINDERS if story.source.is_model else FINDERS:
            for one in finder.find(story):
                number += 1
                key = (str(index), one.finding.rule, one.finding.culprit, one.group or f"\n{number}")
                first = counted.setdefault(key, one)
                if first is not one:
                    counted[key] = first._replace(finding=replace(first.finding, count=first.finding.count + one.finding.count))
    return [one.finding for one in sorted(counted.values(), key=lambda one: one.at_ns)]

"""How what a server offers differs from what it offered before: what came, went and changed, field by field.

Of a list that was not seen whole nothing is said to be missing, and of one that either side never saw, nothing at all.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from ...transcript.offers.definitions import Definition, Offer, Part
from ..json.canonical import read
from .difference import NO_DIFFERENCES, Differences, differences

if TYPE_CHECKING:
    from .ignore import Ignore


@dataclass(frozen=True, slots=True, kw_only=True)
class DefinitionChange:
    """One definition that came, went or changed; `fields` are the differences of what changed."""

    how: Literal["added", "changed", "removed"]
    part: Part
    name: str
    before: Definition | None = None
    after: Definition | None = None
    fields: Differences = NO_DIFFERENCES


def definition_changes(before: Offer, after: Offer, ignore: Ignore) -> Iterator[DefinitionChange]:
    """What differs, part by part, in the order in which the server lists it now; what went comes last."""
    for part in Part:
        old, new = before.current.get(part), after.current.get(part)
        if old is None or new is None:
            continue
        for name, one in new.items():
            known = old.get(name)
            if known is not None:
                yield from _changed(part, known, one, ignore)
            elif part in before.complete:
                yield DefinitionChange(how="added", part=part, name=name, after=one)
        if part in after.complete:
            gone = ((name, one) for name, one in old.items() if name not in new)
            yield from (DefinitionChange(how="removed", part=part, name=name, before=one) for name, one in gone)


def _changed(part: Part, before: Definition, after: Definition, ignore: Ignore) -> Iterator[DefinitionChange]:
    if before.raw == after.raw:
        return
    fields = differences(read(before.raw), read(after.raw), ignore)
    if fields:
        yield DefinitionChange(how="changed", part=part, name=after.name, before=before, after=after, fields=fields)

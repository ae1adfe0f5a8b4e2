"""Findings about what a server tells the model and nobody sees: hidden characters in what it offers."""

from collections.abc import Iterator
from typing import Final

from ..offers.baseline import value_of
from ..offers.definitions import Definition, offer
from ..offers.drift import strings
from ..offers.invisible_characters import HiddenCharacter, hidden_characters, spelled_by_tags
from .facts import CaptureFacts
from .rule import Family, Hit, Rule, Severity, hit_in
from .trust import called
from .words import quoted

LISTED: Final = 5
"""So many kinds of characters stand in a sentence."""

_LIST: Final = "→ tools/list 1\n← result 1 "

HIDDEN_CHARACTERS: Final = Rule(
    name="hidden-characters",
    title="Hidden characters in a definition",
    family=Family.TRUST,
    severity=Severity.ERROR,
    what="A name, a description or the instructions have characters that nobody sees: controls, zero-width, bidi, tags.",
    why="The model reads them and the human who approves the tool does not: that is how orders are smuggled in.",
    blame="The server: it wrote the definition. Scripts and emoji that need joiners and direction marks are not meant.",
    example=_LIST + '{"tools":[{"name":"read","description":"Reads a file.\\u202e","inputSchema":{"type":"object"}}]}',
    clean=_LIST + '{"tools":[{"name":"read","description":"Reads a file.","inputSchema":{"type":"object"}}]}',
    fix="Do not use the tool before you know why they are there; write definitions in characters that can be seen.",
)


RULES: Final = (HIDDEN_CHARACTERS,)


def find(facts: CaptureFacts) -> Iterator[Hit]:
    """What one capture's server hides in what it offers, or once offered."""
    if not facts.listings:
        return
    for one in offer(facts.capture, facts.listings).ever.values():
        if one.raw.isascii() and b"\\" not in one.raw:
            continue
        for path, hidden, tags in _hidden(one):
            yield hit_in(HIDDEN_CHARACTERS, one.message, one.row, _smuggled(one, path, hidden, tags))


def _hidden(one: Definition) -> Iterator[tuple[str, list[HiddenCharacter], str]]:
    for path, text in strings(value_of(one.raw)):
        hidden = hidden_characters(text)
        if hidden:
            yield path, hidden, spelled_by_tags(text)


def _smuggled(one: Definition, path: str, hidden: list[HiddenCharacter], tags: str) -> str:
    names = ", ".join(f"{each.name}{f' ×{each.count}' if each.count > 1 else ''}" for each in hidden[:LISTED])
    more = f" and {len(hidden) - LISTED} more kinds" if len(hidden) > LISTED else ""
    spelled = f" The tags spell {quoted(tags.encode())}." if tags else ""
    return f"{called(one.part, one.name)} has {names}{more} at {path[:200]}, letter {hidden[0].first}.{spelled}"

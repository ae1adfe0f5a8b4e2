"""Findings about invisible characters in a server's offer, which a model reads and people do not see."""

from collections.abc import Iterator
from typing import Final

from ..definitions import Definition, offer, strings, value_of
from ..invisible_characters import HiddenCharacter, hidden_characters, spelled_by_tags
from .facts import CaptureFacts
from .rule import Hit, Severity, hit_in, trust_rule
from .words import definition_name, listed, quoted

LISTED: Final = 5
"""A sentence has so many kinds of characters at most."""

_LIST: Final = "→ tools/list 1\n← result 1 "

HIDDEN_CHARACTERS: Final = trust_rule(
    name="hidden-characters",
    title="Hidden characters in a definition",
    severity=Severity.ERROR,
    what="A name, a description or the instructions contain invisible characters: controls, zero-width, bidi or tags.",
    why="The model reads them, but the person who approves the tool does not see them: instructions can be smuggled in.",
    blame="The server: it wrote the definition; joiners and direction marks that scripts and emoji need do not count.",
    example=_LIST + '{"tools":[{"name":"read","description":"Reads a file.\\u202e","inputSchema":{"type":"object"}}]}',
    clean=_LIST + '{"tools":[{"name":"read","description":"Reads a file.","inputSchema":{"type":"object"}}]}',
    advice="Do not use the tool until you know why the characters are there.",
)


RULES: Final = (HIDDEN_CHARACTERS,)


def find(facts: CaptureFacts) -> Iterator[Hit]:
    """Find invisible characters in all that the server of one capture ever offered."""
    if not facts.listings:
        return
    for definition in offer(facts.capture, facts.listings).ever.values():
        if definition.raw.isascii() and b"\\" not in definition.raw:
            continue
        for path, text in strings(value_of(definition.raw)):
            hidden = hidden_characters(text)
            if hidden:
                what = _sentence(definition, path, hidden, spelled_by_tags(text))
                yield hit_in(HIDDEN_CHARACTERS, definition.message, definition.row, what)


def _sentence(definition: Definition, path: str, hidden: list[HiddenCharacter], tags: str) -> str:
    kinds = listed((f"{kind.name}{f' ×{kind.count}' if kind.count > 1 else ''}" for kind in hidden), LISTED, "kinds")
    spelled = f"; the tags spell {quoted(tags)}" if tags else ""
    return (
        f"{definition_name(definition.kind, definition.name)} has {kinds} at {path[:200]}, letter {hidden[0].first}{spelled}."
    )

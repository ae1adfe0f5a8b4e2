"""Texts to the characters in them that a human does not see and a model reads, or that make a screen show something else.

Characters that scripts and emoji need do not count: joiners between their letters, direction marks in texts that run from right
to left, flags made of tags. Source of the names: the Unicode Character Database, as Python has it.
"""

import unicodedata
from typing import Final

import msgspec

from ..lazy_pattern import lazy_pattern

_CONTROLS: Final = r"\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f"
_FORMATS: Final = (
    r"\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0"
)
_FAR: Final = r"\ufff9-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"

_suspects = lazy_pattern(f"[{_CONTROLS}{_FORMATS}{_FAR}]|[\ufe00-\ufe0f]{{2,}}")
_flag = lazy_pattern("\U0001f3f4[\U000e0030-\U000e0039\U000e0061-\U000e007a]{2,6}\U000e007f")

_JOINERS: Final = "\u200c\u200d"
_MARKS: Final = "\u200e\u200f\u061c"
_RIGHT_TO_LEFT: Final = ("R", "AL")
_TAGS: Final = range(0xE0020, 0xE007F)
_SELECTORS: Final = range(0xE0100, 0xE01F0)

_CONTROL_NAMES: Final = {0x00: "NULL", 0x08: "BACKSPACE", 0x1B: "ESCAPE", 0x7F: "DELETE", 0x9B: "CONTROL SEQUENCE INTRODUCER"}


class HiddenCharacter(msgspec.Struct, frozen=True, kw_only=True):
    """One invisible character: how often the text has it, and the position of the first one, from 1."""

    character: str
    count: int
    first: int

    @property
    def name(self) -> str:
        """Its code and its Unicode name: `U+202E RIGHT-TO-LEFT OVERRIDE`."""
        code = ord(self.character[0])
        named = _CONTROL_NAMES.get(code) or unicodedata.name(self.character[0], "") or "CONTROL CHARACTER"
        return f"U+{code:04X} {named}"


def hidden_characters(text: str) -> list[HiddenCharacter]:
    """Return the invisible characters of `text`, each once, in order of appearance. Linear."""
    if text.isascii() and text.isprintable():
        return []
    flagless = _flag.sub(lambda match: "·" * len(match[0]), text)
    runs_left = not text.isascii() and any(map(_runs_left, flagless))
    hidden: dict[str, HiddenCharacter] = {}
    for suspect in _suspects.finditer(flagless):
        at = suspect.start()
        if _is_innocent(flagless, at, runs_left=runs_left):
            continue
        character = suspect[0][0]
        known = hidden.get(character)
        hidden[character] = HiddenCharacter(
            character=character, count=known.count + 1 if known else 1, first=known.first if known else at + 1
        )
    return list(hidden.values())


def spelled_by_tags(text: str) -> str:
    """Return the ASCII text that the tag characters of `text` spell; empty if there are none."""
    return "".join(chr(ord(character) - 0xE0000) for character in text if ord(character) in _TAGS)


def _is_innocent(text: str, at: int, *, runs_left: bool) -> bool:
    character = text[at]
    if character in _MARKS:
        return runs_left
    before = unicodedata.category(text[at - 1]) if at else ""
    if character in _JOINERS:
        return before in ("So", "Sk", "Mn", "Mc", "Lo")  # emoji and their modifiers, letters of scripts that join
    return ord(character) in _SELECTORS and before == "Lo"


def _runs_left(character: str) -> bool:
    return character > "\u0590" and character not in _MARKS and unicodedata.bidirectional(character) in _RIGHT_TO_LEFT

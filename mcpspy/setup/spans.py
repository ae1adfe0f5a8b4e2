"""The position of each value in the text of a configuration file, whatever its syntax, and edits of the text.

A file is never printed anew: an edit replaces one span, and the text around it stays as somebody wrote it.
"""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """One value, `text[start:end]`. A string has its text; an object or table has members, an array items."""

    start: int
    end: int
    kind: str
    """`object`, `array`, `string`, `dotted` for a table made by a dotted key, or `other` for numbers and words."""

    string: str = ""
    members: tuple["Member", ...] = ()
    items: tuple["Value", ...] = ()

    def member(self, key: str) -> "Member | None":
        """Find the member that counts: of duplicate keys the last, as readers of JSON have it."""
        return next((member for member in reversed(self.members) if member.key == key), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A key and its value. `start` is where the key begins; `before` is the part of a dotted key before its last name."""

    key: str
    start: int
    value: Value
    before: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigEdit:
    """An edit: `text[start:end]` becomes `new`."""

    start: int
    end: int
    new: str


class Unreadable(Exception):  # noqa: N818 - of this room alone; callers see a SetupError
    """A text that breaks the rules of its syntax; says how and where."""


def unreadable(text: str, at: int, reason: str) -> Unreadable:
    """Make the error for `text[at]`."""
    line = text.count("\n", 0, at) + 1
    column = at - (text.rfind("\n", 0, at) + 1) + 1
    return Unreadable(f"{reason} (line {line}, column {column})")


def edited(text: str, edits: Iterable[ConfigEdit]) -> str:
    """Apply all edits. They must not overlap; edits at one position are made in the order given."""
    pieces: list[str] = []
    done = 0
    for edit in sorted(edits, key=lambda edit: (edit.start, edit.end)):
        assert edit.start >= done, "edits overlap"
        pieces += (text[done : edit.start], edit.new)
        done = edit.end
    return "".join([*pieces, text[done:]])

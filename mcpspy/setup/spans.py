"""Where each value of a configuration file stands in its text: what editing by span needs, whatever the syntax.

Refuses to print a file anew. An edit replaces one span, and all that stands around it stays as somebody wrote it.
"""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """One value, `text[start:end]`. A string knows what it says; an object or table has members, an array items."""

    start: int
    end: int
    kind: str
    """`object`, `array`, `string`, or `other` for numbers and words."""

    string: str = ""
    members: tuple["Member", ...] = ()
    items: tuple["Value", ...] = ()

    def member(self, key: str) -> "Member | None":
        """The member that counts: of duplicate keys the last, as JSON's readers have it."""
        return next((one for one in reversed(self.members) if one.key == key), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A key and its value. `start` is where the key begins; `before` is what a dotted key says ahead of its last part."""

    key: str
    start: int
    value: Value
    before: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """`text[start:end]` becomes `new`."""

    start: int
    end: int
    new: str


class Unreadable(Exception):  # noqa: N818 - of this room alone; callers see a SetupError
    """A text that is not in its syntax; says where and why."""


def unreadable(text: str, at: int, reason: str) -> Unreadable:
    """What is wrong at `text[at]`."""
    line = text.count("\n", 0, at) + 1
    column = at - (text.rfind("\n", 0, at) + 1) + 1
    return Unreadable(f"{reason} (line {line}, column {column})")


def edited(text: str, edits: Iterable[Edit]) -> str:
    """`text` with all `edits` made. They must not overlap; those at one place follow each other in the order given."""
    pieces: list[str] = []
    done = 0
    for one in sorted(edits, key=lambda edit: (edit.start, edit.end)):
        assert one.start >= done, "edits overlap"
        pieces += (text[done : one.start], one.new)
        done = one.end
    return "".join([*pieces, text[done:]])

"""JSON values as Python literals, harmless in a module of Python. `ast.literal_eval` reads each literal back to its value.

Some values have no literal: NaN, infinities, and nesting too deep for Python's own parser.
"""

from math import isfinite
from typing import Any, Final, Self

MAX_DEPTH: Final = 60
"""CPython's parser takes 200 nested brackets, and the code around a literal has some too."""

MAX_DIGITS: Final = 4_000
"""CPython rejects integer literals of more than 4,300 digits."""

INDENT: Final = "    "


class Formatted(str):
    """A text with variables in it, spelled as an f-string: names are in braces, and braces of the text are doubled."""

    __slots__ = ()

    @classmethod
    def around(cls, before: str, name: str, after: str) -> Self:
        """Return the text with the variable between two plain texts, or with none if it has no name."""
        return cls(_doubled(before) + (f"{{{name}}}" if name else "") + _doubled(after))

    def followed_by(self, name: str, after: str) -> Self:
        """Return this text with another variable and more plain text behind it."""
        return type(self)(self + self.around("", name, after))

    @property
    def code(self) -> str:
        """The expression: the variable itself if there is nothing else."""
        name = self[1:-1]
        return name if name.isidentifier() and self == f"{{{name}}}" else f"f{_quoted(self)}"


def _doubled(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")


def has_literal(value: Any) -> bool:
    """Return whether a value has a literal."""
    waiting = [(value, 0)]
    while waiting:
        inner, depth = waiting.pop()
        if depth > MAX_DEPTH or (isinstance(inner, float) and not isfinite(inner)):
            return False
        if isinstance(inner, int) and inner.bit_length() > MAX_DIGITS * 3:
            return False
        if isinstance(inner, list | dict):
            waiting.extend((member, depth + 1) for member in (inner.values() if isinstance(inner, dict) else inner))
    return True


def literal(value: Any, *, indent: str = "", cells: int = 100, before: int = 0) -> str:
    """Return the literal of a value that has one, on lines of `cells` where possible.

    All lines but the first begin with `indent`. The first line follows `before` letters of code.
    """
    if isinstance(value, str):
        return quoted(value)
    if not isinstance(value, dict | list):
        return repr(value)
    flat = _flat(value)
    if len(indent) + before + len(flat) <= cells or not value:
        return flat
    inner = indent + INDENT
    if isinstance(value, list):
        lines = [literal(item, indent=inner, cells=cells) for item in value]
        return "\n".join(["[", *(f"{inner}{line}," for line in lines), f"{indent}]"])
    members = [f"{quoted(name)}: {literal(member, indent=inner, cells=cells)}" for name, member in value.items()]
    return "\n".join(["{", *(f"{inner}{line}," for line in members), f"{indent}}}"])


def text_literal(text: str, *, indent: str = "", cells: int = 100) -> str:
    """Return the literal of a text; several lines that do not fit are put in brackets, line by line."""
    pieces = [type(text)(piece) for piece in text.splitlines(keepends=True)]
    if len(pieces) < 2 or len(indent) + len(quoted(text)) <= cells:
        return quoted(text)
    return "\n".join(["(", *(f"{indent}{INDENT}{quoted(piece)}" for piece in pieces), f"{indent})"])


def quoted(text: str) -> str:
    """Return a string literal, in double quotes where that takes no extra backslash. Unprintable characters are escaped."""
    return text.code if isinstance(text, Formatted) else _quoted(text)


def _quoted(text: str) -> str:
    spelled = repr(str(text))
    return spelled if spelled[0] == '"' or '"' in spelled else f'"{spelled[1:-1]}"'


def _flat(value: Any) -> str:
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, list):
        return f"[{', '.join(map(_flat, value))}]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{quoted(name)}: {_flat(member)}" for name, member in value.items()) + "}"
    return repr(value)

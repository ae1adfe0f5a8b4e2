"""Walks JSON as it is written: each name, string, number and word with where it stands, under which name, and at which place.

Tolerant: what was cut off, and what is no JSON at all, is walked as far as it looks like some. Refuses to hold values, and to raise.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from .encodings import JSON
from .user_paths import NOWHERE, Place

BOM: Final = b"\xef\xbb\xbf"

MAX_DEPTH: Final = 10_000
"""What is nested deeper is no longer followed by name and place."""

_tokens = re.compile(rb'"([^"\\]*+(?:\\.[^"\\]*+)*+)("?)([ \t\r\n]*+:)?|([\[{])|([\]}])|([^\s"\[\]{}:,]++)', re.DOTALL)
_STRING, _NAME, _OPENS, _CLOSES, _BARE = range(2, 7)
_is_bare = re.compile(rb"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|true|false|null|NaN|-?Infinity").fullmatch
_CONTENTS: Final = {b"result", b"error"}

_begins = re.compile(rb"(?:\xef\xbb\xbf)?\s*+[\[{]").match


def looks_like_json(data: bytes) -> bool:
    """Whether it begins as an object or an array does."""
    return _begins(data) is not None


class Leaf(NamedTuple):
    """`data[start:end]`: what stands between the quotes of a string, or a number or word.

    `name` is that of the member it is the value of, or in whose array it stands; empty for a name itself, and for what has none.
    """

    start: int
    end: int
    is_string: bool
    is_name: bool
    name: bytes
    place: Place


class Walk:
    """One walk through `data`, from the place `root`. `is_message`: it may be a message of JSON-RPC, whose params are the root.

    `leaves` gives what there is; `is_sound` says afterwards whether it was JSON and nothing else, as far as that is told here. While
    a leaf is looked at, `steps` says where it is. With `begin` it is the one value that begins there, and `end` says where it ends.
    """

    __slots__ = ("_begin", "_called", "_data", "_is_message", "_names", "_opened", "_places", "_root", "end", "is_sound")

    def __init__(self, data: bytes, root: Place = NOWHERE, *, is_message: bool = False, begin: int | None = None) -> None:
        self._data = data
        self._begin = begin
        self.end = len(data)
        self._root = root
        self._is_message = is_message
        self._opened: list[bool] = []  # of what we are in, from the outside: whether it is an object
        self._names: list[bytes | int] = []  # the member or item that we are at in each of it
        self._places: list[Place] = []
        self._called: list[bytes] = []  # of an array what it is called, for its items
        self.is_sound = True

    @property
    def steps(self) -> Sequence[str | int]:
        """The members and items that lead to where the walk is."""
        return [
            one if isinstance(one, int) else JSON.read(one).decode("utf-8", "replace")
            for one in self._names[: len(self._opened)]
        ]

    @property
    def depth(self) -> int:
        """In how many objects and arrays the walk is."""
        return len(self._opened)

    def leaves(self, *, bare: bool = True) -> Iterator[Leaf]:
        """Names and values, in order; numbers and words only if `bare` says so. A string before a colon is a name."""
        opened, names, places = self._opened, self._names, self._places
        name, place = b"", self._root
        in_array = follows = False
        values = 0
        for match in _tokens.finditer(self._data, self._begin or 0):
            which = match.lastindex
            if which == _NAME and opened and not in_array:
                start, end = match.span(1)
                names[-1] = name = match[1]
                if follows:
                    place = self._member_place(places[-1], name)
                yield Leaf(start, end, is_string=True, is_name=True, name=b"", place=NOWHERE)
                continue
            if which == _CLOSES:
                name, place = self._closed(is_array=match[0] == b"]")
                in_array = bool(opened) and not opened[-1]
                if self._begin is not None and not opened:
                    self.end = match.end()
                    break
                continue
            if in_array:
                names[-1] = item = int(names[-1]) + 1
                if follows:
                    place = places[-1].into(item)
            elif not opened:
                values += 1
                follows = bool(self._root)
            if which == _OPENS:
                if len(opened) >= MAX_DEPTH:
                    self.is_sound = False
                    continue
                in_array = match[0] == b"["
                name = name if in_array else b""
                self._open(name, place, is_array=in_array)
            elif which != _BARE:
                start, end = match.span(1)
                self.is_sound = self.is_sound and match.end(2) > end and which != _NAME
                yield Leaf(start, end, is_string=True, is_name=False, name=name, place=place)
            elif match[0] == BOM and values == 1:
                values = 0
            else:
                self.is_sound = self.is_sound and _is_bare(match[0]) is not None
                if bare:
                    yield Leaf(match.start(), match.end(), is_string=False, is_name=False, name=name, place=place)
        if opened or values != 1:
            self.is_sound = False

    def _open(self, name: bytes, place: Place, *, is_array: bool) -> None:
        """Go into an object or an array; `name` is what the items of the latter are called."""
        self._opened.append(not is_array)
        self._names.append(-1 if is_array else b"")
        self._places.append(place)
        self._called.append(name)

    def _closed(self, *, is_array: bool) -> tuple[bytes, Place]:
        """Come out of it: what comes next is called so, unless it has a name of its own, and where it is."""
        if not self._opened:
            self.is_sound = False
            return b"", self._root
        self.is_sound = self._opened.pop() != is_array and self.is_sound
        self._names.pop()
        self._called.pop()
        return self._called[-1] if self._called else b"", self._places.pop()

    def _member_place(self, outer: Place, name: bytes) -> Place:
        found = outer.into(JSON.read(name).decode("utf-8", "replace"))
        if self._is_message and self._is_at_message:
            if name == b"params":
                return found.joined(self._root)
            if name in _CONTENTS:
                return found.joined(self._root.into(name.decode()))
        return found

    @property
    def _is_at_message(self) -> bool:
        """Whether we are in the object that is the message, or one of a batch."""
        return len(self._opened) == 1 or (len(self._opened) == 2 and not self._opened[0])

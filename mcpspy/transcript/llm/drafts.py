"""An answer while it is put together from deltas, in time linear in their bytes, whoever spells them.

Refuses to read JSON, and to know in which order an API sends what.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Hashable
from typing import Final

import msgspec

from .model import ToolUse, Turn
from .parts import joined
from .tags import uses_in

MAX_FLAWS: Final = 20
"""So many different things are said to be wrong with one stream."""


class TextDraft:
    """A text that comes in pieces."""

    __slots__ = ("_ends", "_length", "_pieces", "_searched", "_times_ns", "_uses", "at_ns")

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._ends = array("q")
        self._times_ns = array("q")
        self._length = 0
        self._searched = 0
        self._uses: list[ToolUse] = []
        self.at_ns = 0
        """When its last piece was read."""

    def add(self, piece: str, at_ns: int) -> bool:
        """The next piece. Whether there is anything in it."""
        if piece:
            self._pieces.append(piece)
            self._length += len(piece)
            self._ends.append(self._length)
            self._times_ns.append(at_ns)
            self.at_ns = at_ns
        return bool(piece)

    @property
    def text(self) -> str:
        """All of it so far. What was joined once is one piece from then on."""
        if len(self._pieces) > 1:
            self._pieces = ["".join(self._pieces)]
        return self._pieces[0] if self._pieces else ""

    def uses(self, *, is_over: bool) -> list[ToolUse]:
        """The tool uses in it. Those that are whole are looked for once."""
        for use, end in uses_in(self.text, self._searched, is_over=is_over):
            self._uses.append(msgspec.structs.replace(use, at_ns=self.read_ns(end)))
            self._searched = end
        return self._uses

    def read_ns(self, length: int) -> int:
        """When so many letters of it had been read."""
        at = bisect_left(self._ends, length)
        return self._times_ns[at] if at < len(self._times_ns) else self.at_ns


class UseDraft:
    """A tool use that comes in pieces."""

    __slots__ = ("_made", "arguments", "at_ns", "id", "is_hosted", "name")

    def __init__(self, at_ns: int, *, id: str = "", name: str = "", is_hosted: bool = False) -> None:
        self.id = id
        self.name = name
        self.arguments = TextDraft()
        self.is_hosted = is_hosted
        self.at_ns = at_ns
        self._made: ToolUse | None = None

    def call(self, *, id: str, name: str, is_hosted: bool = False) -> None:
        """What it is called, where that is said."""
        self.id, self.name, self.is_hosted = id or self.id, name or self.name, is_hosted
        self._made = None

    def add(self, piece: str, at_ns: int) -> None:
        """More of its arguments."""
        self.arguments.add(piece, at_ns)
        self.at_ns = at_ns
        self._made = None

    @property
    def use(self) -> ToolUse:
        """As far as it came."""
        if self._made is None:
            text = self.arguments.text
            self._made = ToolUse(id=self.id, name=self.name, arguments=text, at_ns=self.at_ns, is_hosted=self.is_hosted)
        return self._made


class TurnDraft:
    """A turn of the model's that comes in pieces: texts by their places, uses by theirs, each in the order in which they began."""

    __slots__ = ("by_id", "is_over", "last", "refusal", "texts", "thinking", "uses")

    def __init__(self) -> None:
        self.texts: dict[Hashable, TextDraft] = {}
        self.thinking: dict[Hashable, TextDraft] = {}
        self.refusal = TextDraft()
        self.uses: dict[Hashable, UseDraft] = {}
        self.by_id: dict[str, UseDraft] = {}
        self.last: UseDraft | None = None
        """The use that began last."""
        self.is_over = False
        """Whether nothing more of it comes."""

    def begin(self, place: Hashable, use: UseDraft) -> UseDraft:
        """A use begins at this place."""
        self.uses[place] = self.last = use
        return use

    @property
    def turn(self) -> Turn:
        """As far as it came."""
        in_text = [use for draft in self.texts.values() for use in draft.uses(is_over=self.is_over)]
        return Turn(
            role="assistant",
            text=joined(draft.text for draft in self.texts.values()),
            thinking=joined(draft.text for draft in self.thinking.values()),
            refusal=self.refusal.text,
            uses=(*(draft.use for draft in self.uses.values()), *in_text),
        )


def piece_of(drafts: dict[Hashable, TextDraft], place: Hashable, piece: str, at_ns: int) -> bool:
    """The next piece of the text at this place. Whether there is anything in it."""
    draft = drafts.get(place)
    if draft is None:
        if not piece:
            return False
        draft = drafts[place] = TextDraft()
    return draft.add(piece, at_ns)


class Flaws:
    """What is wrong with a stream, each sentence once."""

    __slots__ = ("_said",)

    def __init__(self) -> None:
        self._said: dict[str, None] = {}

    def add(self, sentence: str) -> None:
        """Say it, if there is room."""
        if len(self._said) < MAX_FLAWS:
            self._said[sentence] = None

    @property
    def all(self) -> tuple[str, ...]:
        """The sentences, in the order in which they were first said."""
        return tuple(self._said)

"""JSON as a tree that folds, made from the bytes: a value is read when it is opened, and never before.

    ▾ {
        ▸ "params": {"name":"forecast","argume…
          "id": 7

Objects of up to 64 KB are read with every name as it was spelled, also one that occurs twice; larger ones by a faster reader, which
takes the last of equal names. A string that is JSON opens as JSON, any other as its lines.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from json import dumps
from typing import Final, overload

from ..views.text.cells import cells, cut
from ..views.text.escape import decoded, json_text, safe_text
from ..views.text.line import Line
from ..views.text.pretty import broken
from ..views.text.units import counted, size
from ..wire.json_spans import UNREADABLE, Slice, is_json, items, looks_like_json, members, named_values, string

EXACT_BYTES: Final = 1 << 16

MORE: Final = 500
"""So many members or lines are shown at first, and each time that more are asked for."""

OPEN_LINES: Final = 200
OPEN_BYTES: Final = 2_000
"""A payload is shown with its small and its outer values open, until it has so many lines."""

OPEN_LEVELS: Final = 4
_ABOUT: Final = ('"params"', '"result"', '"error"')

LEVELS: Final = 24
"""Deeper values are indented no further."""

BIG_BYTES: Final = 1_000
"""The size of a closed value is shown from here on."""

MAX_HITS: Final = 2_000
"""A search ends after so many."""


class JsonNode:
    """A value, a line of a long text, or what stands for values that are not shown yet."""

    __slots__ = ("depth", "is_open", "kind", "name", "parts", "raw", "shown")

    def __init__(self, kind: str, name: str, raw: Slice, depth: int) -> None:
        self.kind = kind
        """`{`, `[`, `"`, `v` for another value, `text` for a line, `more`."""
        self.name = name
        self.raw = raw
        self.depth = depth
        self.is_open = False
        self.parts: Sequence[JsonNode] | None = None
        self.shown = MORE


class NodeParts(Sequence[JsonNode]):
    """The parts of an array or of a large object, each made when it is first looked at: there may be a million."""

    __slots__ = ("_depth", "_made", "_names", "_values")

    def __init__(self, values: Sequence[Slice], names: Sequence[str], depth: int) -> None:
        self._values = values
        self._names = names
        """Empty for an array."""
        self._depth = depth
        self._made: dict[int, JsonNode] = {}

    def __len__(self) -> int:
        return len(self._values)

    @overload
    def __getitem__(self, at: int) -> JsonNode: ...
    @overload
    def __getitem__(self, at: slice) -> list[JsonNode]: ...
    def __getitem__(self, at: int | slice) -> JsonNode | list[JsonNode]:
        if isinstance(at, slice):
            return [self[position] for position in range(*at.indices(len(self)))]
        part = self._made.get(at)
        if part is None:
            name = dumps(self._names[at], ensure_ascii=False) if self._names else ""
            part = self._made[at] = _node(name, self._values[at], self._depth)
        return part


class JsonTree:
    """The lines of a payload. `hits` are those that a search has found."""

    def __init__(self, payload: bytes) -> None:
        self.root = _node("", payload.strip(), 0)
        self.nodes: list[JsonNode] = [self.root]
        self.hits: list[list[JsonNode]] = []
        self._open_small()

    def __len__(self) -> int:
        return len(self.nodes)

    def mark(self, at: int) -> str:
        """Mark what was found."""
        return "●" if any(path[-1] is self.nodes[at] for path in self.hits[:50]) else ""

    def toggle(self, at: int) -> None:
        """Open a value, or close it; show more of a long one."""
        node = self.nodes[at]
        if node.kind == "more":
            self._more(at)
        elif node.is_open:
            end = next((to for to in range(at + 1, len(self.nodes)) if self.nodes[to].depth <= node.depth), len(self.nodes))
            del self.nodes[at + 1 : end]
            node.is_open = False
        elif _opens(node):
            node.is_open = True
            self.nodes[at + 1 : at + 1] = list(_visible(node))

    def _more(self, at: int) -> None:
        owner_at = next(to for to in range(at - 1, -1, -1) if self.nodes[to].depth < self.nodes[at].depth)
        owner = self.nodes[owner_at]
        begin, owner.shown = owner.shown, owner.shown + MORE
        self.nodes[at : at + 1] = [line for part in _shown_parts(owner)[begin:] for line in (part, *_visible(part))]

    def _open_small(self) -> None:
        """Open the outermost value and what the message is about, then the values that there is room for, the outer ones first."""
        waiting = [self.root]
        lines = 1
        while waiting and lines < OPEN_LINES:
            node = waiting.pop(0)
            length = len(memoryview(node.raw))
            if not _opens(node) or (length > OPEN_BYTES and (node.kind == '"' or node.depth > OPEN_LEVELS)):
                continue
            parts = _shown_parts(node)
            if node is self.root or node.name in _ABOUT or lines + len(parts) <= OPEN_LINES:
                node.is_open = True
                lines += len(parts)
                waiting += parts
        self.nodes = [self.root, *_visible(self.root)]

    def line(self, at: int, width: int) -> Line:
        """Draw a node."""
        node = self.nodes[at]
        indent = "  " * min(node.depth, LEVELS)
        if node.kind == "text":
            return [(indent + "  ", ""), (cut(safe_text(str(node.raw, "utf-8", "backslashreplace")), width), "string")]
        if node.kind == "more":
            return [(indent + "  ", ""), (node.name, "dim")]
        sign = ("▾ " if node.is_open else "▸ ") if _opens(node, width - len(indent)) else "  "
        line: Line = [(indent + sign, "dim")]
        if node.name:
            line += [(json_text(node.name), "key"), (": ", "dim")]
        room = max(width - sum(cells(text) for text, _ in line), 8)
        return [*line, *_value(node, room)]

    def search(self, text: str) -> int:
        """Find the values and names with a text, in upper or lower case. Returns their number."""
        needles = {spelling.lower().encode("utf-8", "surrogatepass") for spelling in _spellings(text)} if text else set()
        self.hits = []
        for path in _found([self.root], needles) if needles else ():
            self.hits.append(path)
            if len(self.hits) == MAX_HITS:
                break
        return len(self.hits)

    def reveal(self, hit: int) -> int:
        """Open what a hit is in. Returns its position."""
        for node in self.hits[hit][:-1]:
            parts = _parts(node)
            below = self.hits[hit][self.hits[hit].index(node) + 1]
            node.shown = max(node.shown, parts.index(below) // MORE * MORE + MORE)
            node.is_open = True
        self.nodes = [self.root, *_visible(self.root)]
        return next(at for at, node in enumerate(self.nodes) if node is self.hits[hit][-1])


def _node(name: str, raw: Slice, depth: int) -> JsonNode:
    first = bytes(memoryview(raw)[:1])
    kind = first.decode("latin-1") if first in (b"{", b"[", b'"') else "v"
    return JsonNode(kind, name, raw, depth)


def _opens(node: JsonNode, room: int = 0) -> bool:
    """Return whether there is more to a value than fits into a line of `room` cells."""
    if node.kind in "{[":
        return bytes(memoryview(node.raw)[:4]).strip() not in (b"{}", b"[]", b"{ }", b"[ ]")
    return node.kind == '"' and (len(memoryview(node.raw)) > max(room, 40) or b"\\n" in bytes(node.raw) or _is_json_text(node))


def _is_json_text(node: JsonNode) -> bool:
    head = bytes(memoryview(node.raw)[1:20])
    return node.kind == '"' and head.lstrip(b" ")[:1] in (b"{", b"[")


def _value(node: JsonNode, room: int) -> Line:
    """Return the value of a node on one line."""
    length = len(memoryview(node.raw))
    if node.is_open and node.kind in "{[":
        count = len(_parts(node))
        return [(f"{node.kind} {counted(count, 'member' if node.kind == '{' else 'item')}", "dim")]
    style = {"{": "dim", "[": "dim", '"': "string"}.get(node.kind, "literal")
    facts = f"  {size(length)}" if length > max(room, BIG_BYTES) else ""
    head = json_text(decoded(bytes(memoryview(node.raw)[: 4 * room])))
    return [(cut(head, max(room - len(facts), 4)), style), (facts, "dim")]


def _parts(node: JsonNode) -> Sequence[JsonNode]:
    """Return what a value consists of, reading it the first time."""
    if node.parts is None:
        node.parts = _read(node)
    return node.parts


def _shown_parts(node: JsonNode) -> list[JsonNode]:
    parts = _parts(node)
    left = len(parts) - node.shown
    more = [JsonNode("more", f"… {left:,} more: Enter", b"", node.depth + 1)] if left > 0 else []
    return [*parts[: node.shown], *more]


def _visible(node: JsonNode) -> Iterator[JsonNode]:
    """Yield the nodes below an open one that have a line."""
    if not node.is_open:
        return
    stack = [iter(_shown_parts(node))]
    while stack:
        part = next(stack[-1], None)
        if part is None:
            stack.pop()
            continue
        yield part
        if part.is_open:
            stack.append(iter(_shown_parts(part)))


def _read(node: JsonNode) -> Sequence[JsonNode]:
    depth = node.depth + 1
    try:
        if node.kind == "{" and len(memoryview(node.raw)) <= EXACT_BYTES:
            return [_node(decoded(name), value, depth) for name, value in named_values(bytes(node.raw))]
        if node.kind == "{":
            found = members(node.raw)
            return NodeParts(list(found.values()), list(found), depth)
        return NodeParts(items(node.raw), (), depth) if node.kind == "[" else list(_read_text(node, depth))
    except UNREADABLE:
        return [JsonNode("text", "", bytes(node.raw), depth)]


def _read_text(node: JsonNode, depth: int) -> Iterator[JsonNode]:
    text = string(node.raw) or ""
    inner = text.encode("utf-8", "surrogatepass")
    if looks_like_json(inner) and is_json(inner):
        yield _node("", inner.strip(), depth)
        return
    for line in text.split("\n"):
        for piece in broken(line, TEXT_CELLS) or [""]:
            yield JsonNode("text", "", piece.encode("utf-8", "surrogatepass"), depth)


TEXT_CELLS: Final = 72
"""A long text is broken into lines of so many cells, which fit beside the rows of a screen."""


def _spellings(text: str) -> Sequence[str]:
    return (text, dumps(text)[1:-1], dumps(text, ensure_ascii=False)[1:-1])


def _found(path: list[JsonNode], needles: set[bytes]) -> Iterator[list[JsonNode]]:
    """Yield the path to each name or value with one of the texts; values are read only if their bytes have it."""
    stack = [path]
    while stack:
        trail = stack.pop()
        node = trail[-1]
        if not _has(bytes(node.raw), needles):
            if _has(node.name.encode("utf-8", "surrogatepass"), needles):
                yield trail
            continue
        if node.kind in "{[":
            if _has(node.name.encode("utf-8", "surrogatepass"), needles):
                yield trail
            below = [[*trail, part] for part in _parts(node)]
            stack += [step for step in reversed(below) if _has(bytes(step[-1].raw) + step[-1].name.encode(), needles)]
        else:
            yield trail


def _has(raw: bytes, needles: set[bytes]) -> bool:
    lower = raw.lower()
    return any(needle in lower for needle in needles)

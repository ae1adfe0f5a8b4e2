"""Strings of JSON that another string names: a member beside them, an argument before them, the list or object around them.

{"label":"password","value":"x"}        in either order
{"element":"Password field","text":"x"}
["--token","x"]  ["-e","TOKEN","x"]  [["X-Api-Key","x"]]
{"passwords":{"bob":"x"}}  {"token":{"value":"x"}}
{"columns":["id","token"],"rows":[[1,"x"]]}  [["id","token"],[1,"x"]]
{"kind":"Secret","data":{"a":"x"}}      of Kubernetes
"""

from collections.abc import Sequence
from typing import Final

from ..capture.redaction.arguments import CONTAINERS, follows_name
from ..lazy_pattern import lazy_pattern
from ..wire.json_spans import JsonWalk, Leaf
from .arguments import LONGEST_COMMAND, OWNERS, announces_secret, is_attached_password, value_start
from .encodings import JSON
from .names import SecretNames
from .patterns import has_digit, looks_random

NAMING: Final = {
    b"element", b"field", b"header", b"id", b"key", b"label", b"locator", b"name", b"object", b"selector", b"type", b"variable",
}  # fmt: skip
"""Members that name the value beside them."""

HOLDING: Final = {b"content", b"text", b"val", b"value", b"values"}
"""Members that hold it."""

_PROSE: Final = {b"content", b"text"}
_VAGUE: Final = {b"id", b"object", b"type"}
"""Members that often name something else: then the value has to look random."""

_INNER: Final = {b"encoded", b"plaintext", b"raw", b"value"}
"""Members that hold the secret itself, where the object that they are in is a secret by its name."""

_FACTS: Final = {
    b"created", b"created_at", b"createdat", b"description", b"email", b"expires", b"expires_at", b"expiresat", b"format", b"hint",
    b"id", b"label", b"name", b"owner", b"path", b"pattern", b"prefix", b"ref", b"scope", b"status", b"title", b"type", b"updated_at",
    b"url", b"user", b"username", b"version",
}  # fmt: skip
"""Members of an object with secrets that hold none."""

# lists of the names of columns, before the rows
_COLUMNS: Final = {b"columns", b"fieldNames", b"field_names", b"fields", b"header", b"headers", b"keys"}

_kubernetes = lazy_pattern(rb'"kind"\s*+:\s*+"Secret"')
_SHORTEST_RANDOM: Final = 8
_LONGEST_LABEL: Final = 256
_MOST_STEPS: Final = 8
"""So many names and items around a string are looked at: in a text that is nested deeper, time stays linear."""

_AROUND_TOKEN: Final = 400


class NamedValues:
    """The kinds of the strings of one JSON text: `kind` is to be asked for each leaf in turn.

    `late` has values whose name came after them, with their kinds.
    """

    def __init__(self, data: bytes, walk: JsonWalk, names: SecretNames) -> None:
        self._data = data
        self._walk = walk
        self._names = names
        self._named = (-1, "", False)
        self._waiting: tuple[int, Leaf] | None = None
        self._announced: tuple[int, int] | None = None
        self._heads: dict[str | int, str] = {}
        """The kinds of the columns of the latest table that have secrets."""
        self._is_kubernetes = b"Secret" in data and _kubernetes.search(data) is not None
        self._items: list[tuple[int, bytes]] = []
        """The latest two strings of lists, with the lists that they are in."""
        self.late: list[tuple[Leaf, str]] = []

    def kind(self, leaf: Leaf) -> str | None:
        """Return the kind of secret that a string is by what names it; None if nothing does."""
        if leaf.is_name:
            return None
        steps = self._walk.last_steps(_MOST_STEPS)
        value = self._data[leaf.start : leaf.end]
        name = leaf.name.lower()
        kind = self._sibling_kind(leaf, name, value)
        if kind is None and steps and isinstance(steps[-1], int):
            kind = self._item_kind(leaf, value, steps) or self._cell_kind(leaf.name, value, steps)
        return kind or self._outer_kind(name, value, steps)

    def spares(self, leaf: Leaf) -> bool:
        """Return whether a string is none of the secrets that its name promises: a word of a model, a function's signature."""
        if leaf.name == b"token":
            around = self._data[max(leaf.start - _AROUND_TOKEN, 0) : leaf.end + _AROUND_TOKEN]
            return b'"logprob"' in around and not has_digit(self._data[leaf.start : leaf.end])
        value = self._data[leaf.start : leaf.end]
        if leaf.name in (b"SecretId", b"pin"):  # AWS calls the name of a secret so
            return not has_digit(value) or b" " in value
        is_caption = value.lower() == leaf.name.lower()  # {"password":"Password"}, as a translation has it
        return is_caption or (leaf.name == b"signature" and b"(" in value and b" " in value)

    def _sibling_kind(self, leaf: Leaf, name: bytes, value: bytes) -> str | None:
        here = self._walk.container
        if name in NAMING and len(value) <= _LONGEST_LABEL:
            kind = self._names.label(JSON.read(value))
            if kind is not None:
                self._named = here, kind, name in _VAGUE
                if self._waiting is not None and self._waiting[0] == here and name not in _VAGUE:
                    self.late.append((self._waiting[1], kind))
        if name in HOLDING:
            if self._named[0] == here and self._named[1]:
                _, kind, is_vague = self._named
                is_random = looks_random(value) and b" " not in value
                return kind if is_random or not (is_vague or (name in _PROSE and b" " in value)) else None
            self._waiting = (here, leaf) if name == b"value" else self._waiting
        return None

    def _item_kind(self, leaf: Leaf, value: bytes, steps: Sequence[str | int]) -> str | None:
        """Return the kind of an item of a list, by the items before it."""
        here, at = self._walk.container, int(steps[-1])
        before = [text for where, text in self._items if where == here] if at else []
        self._items = [*self._items[-1:], (here, value)]
        is_announced, self._announced = self._announced == (here, at), None
        if value.startswith(b"-"):
            head = self._data[max(leaf.start - LONGEST_COMMAND, 0) : leaf.start]
            if not is_attached_password(value, head) and announces_secret(value, self._is_option):
                self._announced = here, at + 1
            return "key" if is_announced and not value.startswith(b"--") else None
        if is_announced:
            return "key"
        if len(before) > 1 and follows_name(before[0].decode("latin-1"), before[1].decode("latin-1"), value.decode("latin-1")):
            head = self._data[max(leaf.start - LONGEST_COMMAND, 0) : leaf.start]
            return None if any(b'"%b"' % program.encode() in head for program in CONTAINERS) else "authorization"
        if before:
            head = self._data[max(leaf.start - LONGEST_COMMAND, 0) : leaf.start]
            program = next((program for program in OWNERS if b'"%b"' % program in head), b"")
            start = value_start(before[-1], value, program)
            if start > 0:
                self.late.append((leaf._replace(start=leaf.start + start), "key"))
            elif start == 0:
                return "key"
        is_pair = at == 1 and len(steps) > 1 and isinstance(steps[-2], int) and looks_random(value)
        return self._names.label(JSON.read(before[-1])) if is_pair and before else None

    def _cell_kind(self, name: bytes, value: bytes, steps: Sequence[str | int]) -> str | None:
        """Return the kind of a cell by the head of its column, which is in a list of its own or in the first row."""
        *_, row, column = ("", *steps)
        is_random = looks_random(value) and b" " not in value
        if row == 0 and is_random and column not in self._heads:
            self._heads.clear()  # the first row has no names
        if row == 0 or name in _COLUMNS:
            kind = self._names.label(JSON.read(value))
            if kind is not None:
                self._heads[column] = kind
            elif name in _COLUMNS and row != 0:
                self._heads.pop(column, None)
        return self._heads.get(column) if is_random and isinstance(row, int) else None

    def _is_option(self, name: bytes) -> bool:
        return self._names.assigned(JSON.read(name)) is not None

    def _outer_kind(self, name: bytes, value: bytes, steps: list[str | int]) -> str | None:
        """Return the kind of secret that the objects around a string hold, by the names of these."""
        if (
            name in _INNER
            and len(steps) > 1
            and isinstance(steps[-2], str)
            and (kind := self._names.member(steps[-2].encode("utf-8", "replace")))
        ):
            return kind
        around = steps[-2] if len(steps) > 1 else ""
        if (self._is_kubernetes and around in ("data", "stringData")) or (
            name == b"number" and str(around).lower().endswith("card")
        ):
            return "key"
        if len(value) < _SHORTEST_RANDOM or not has_digit(value) or name in _FACTS or b" " in value or b"://" in value:
            return None
        outer = [step.encode("utf-8", "replace") for step in steps if isinstance(step, str)][-3:]
        is_count = value.isdigit() and b"tokens" in outer
        return "key" if any(map(self._names.is_plural, outer)) and not is_count else None

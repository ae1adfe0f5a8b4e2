"""Values in the bytes of JSON, found and never converted: members, items, the value at a path, every name and value in turn.

    {"a":["x",{"b":1}]}    members     {"a": b'["x",{"b":1}]'}
                           span_at     ("a", 1, "b") is the value from byte 15 to byte 16
                           JsonWalk    name a; string x at ("a", 0); name b; number 1 at ("a", 1, "b")

Three readers: msgspec, which is fast; Python's `json`, which takes what msgspec refuses (lone surrogates, NaN, invalid UTF-8) and
knows where a value ends; and a tokenizer, which also goes through what is cut off or no JSON at all.
"""

from __future__ import annotations

import json
import re
from _json import scanstring  # `json.decoder` has it too, without saying so
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple, Protocol, TypeAlias

import msgspec

from ..lazy_pattern import lazy_pattern

Slice: TypeAlias = bytes | msgspec.Raw
"""Bytes of one JSON value; the functions of this module take them and return them."""

Span: TypeAlias = tuple[int, int]
"""The first byte of a value, and the byte after its last."""

WHITESPACE: Final = b" \t\n\r"
"""White space in JSON (RFC 8259, section 2): `bytes.strip` alone would take more."""

BOM: Final = b"\xef\xbb\xbf"

UNREADABLE: Final = (ValueError, RecursionError)
"""The exceptions of the readers: msgspec's and json's errors and UnicodeDecodeError are ValueErrors."""

_fast_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_fast_items = msgspec.json.Decoder(list[msgspec.Raw]).decode
_fast_string = msgspec.json.Decoder(str).decode
_fast_value = msgspec.json.Decoder(msgspec.Raw).decode
_skip = re.compile(r"[ \t\n\r]*").match
_surrogates = lazy_pattern("[\ud800-\udfff]")


def members(value: Slice) -> dict[str, Slice]:
    """Return the members of an object by name, the last of equal names; an empty dict for every other value."""
    try:
        return _fast_members(value)  # type: ignore[return-value]  # Raw is a Slice, and nobody writes into the dict
    except UNREADABLE:
        pass
    try:
        return scanned_members(bytes(value))
    except UNREADABLE:
        return {}


class _Contents(msgspec.Struct, gc=False):
    params: dict[str, msgspec.Raw] = {}
    result: dict[str, msgspec.Raw] = {}


_decode_contents = msgspec.json.Decoder(_Contents).decode
_decode_objects = msgspec.json.Decoder(list[dict[str, msgspec.Raw]]).decode


def content_members(message: bytes) -> dict[str, Slice]:
    """Return the members of the params or of the result of a message, in two thirds of the time of `members` twice."""
    try:
        contents = _decode_contents(message)
    except UNREADABLE:
        outer = members(message)
        return members(outer.get("params") or outer.get("result") or b"")
    return contents.params or contents.result  # type: ignore[return-value]  # Raw is a Slice


def objects(value: Slice) -> list[dict[str, Slice]]:
    """Return the members of each item of an array; of an item that is no object there are none, and of other values no items."""
    try:
        return _decode_objects(value)  # type: ignore[return-value]  # Raw is a Slice
    except UNREADABLE:
        pass
    try:
        return [members(item) for item in items(bytes(value))]
    except UNREADABLE:
        return []


def items(value: Slice) -> list[Slice]:
    """Return the items of an array. Raises: ValueError, RecursionError: if neither reader can read an array there."""
    try:
        return _fast_items(value)  # type: ignore[return-value]  # Raw is a Slice, and nobody writes into the list
    except UNREADABLE:
        whole = bytes(value)
        return [whole[begin:end] for _, _, begin, end in _scan(whole.decode("latin-1"), "[", "]")]


def is_json(value: Slice) -> bool:
    """Return whether this is one JSON value for the fast reader, which takes no NaN and does not check strings for UTF-8."""
    try:
        _fast_value(value)
    except UNREADABLE:
        return False
    return True


def string(value: Slice) -> str | None:
    """Return the text of a JSON string; None for every other value. Invalid UTF-8 becomes U+FFFD, as in both official SDKs."""
    try:
        return _fast_string(value)
    except UNREADABLE:
        pass
    try:
        text = json.loads(bytes(value).decode("utf-8", "replace"))
    except UNREADABLE:
        return None
    return text if isinstance(text, str) else None


def string_head(value: Slice, letters: int) -> str | None:
    """Return the first letters of a JSON string, at least half as many as wanted, and read no more; None for every other value."""
    raw = bytes(value)
    if len(raw) <= 8 * letters or raw[:1] != b'"':
        text = string(raw)
        return None if text is None else text[:letters]
    head = raw[: 8 * letters]
    # the cut may be within an escape, which is at most six bytes long
    texts = (string(head[: len(head) - dropped] + b'"') for dropped in range(len("\\u0000")))
    return next((text[:letters] for text in texts if text is not None), "")


def id_key(value: Slice) -> str:
    """Return the text by which ids are compared: a string in its shortest spelling, every other value as it was spelled."""
    spelled = str(value, "utf-8", "replace")
    if "\\" not in spelled or spelled[0] != '"':
        return spelled
    text = string(value)
    return spelled if text is None else _surrogates.sub(_escape, json.dumps(text, ensure_ascii=False))


def _escape(surrogate: re.Match[str]) -> str:
    return f"\\u{ord(surrogate[0]):04x}"


def scanned_members(value: bytes) -> dict[str, Slice]:
    """Do what `members` does with the slow reader alone. Raises: ValueError, RecursionError: if there is no object."""
    scanned = _scan(value.decode("latin-1"), "{", "}")
    return {string(value[name:name_end]) or "": value[begin:end] for name, name_end, begin, end in scanned}


def named_values(value: bytes) -> list[tuple[bytes, bytes]]:
    """Return every name of an object as it was spelled, with its value, also names that occur twice.

    Raises: ValueError, RecursionError: if there is no object.
    """
    return [(value[name:name_end], value[begin:end]) for name, name_end, begin, end in _scan(value.decode("latin-1"), "{", "}")]


def anomalies(value: bytes) -> tuple[str, ...]:
    """Name what strict readers refuse in a value that the slow reader has read: `nan` (or an infinity), `lone-surrogate`."""
    constants: list[str] = []
    text = value.decode("utf-8", "replace")
    decoded = json.loads(text, parse_int=str, parse_float=str, parse_constant=constants.append)
    names = ["nan"] if constants else []
    if _surrogates.sub("", again := json.dumps(decoded, ensure_ascii=False)) != again:
        names.append("lone-surrogate")
    return tuple(names)


class TrailingDataError(ValueError):
    """A value that is followed by something other than white space."""


def check(value: bytes) -> None:
    """Raise what `items` and `scanned_members` would raise for this value, whatever kind of value it is."""
    text = value.decode("latin-1")
    _, at = _value(text, _end_of_space(text, 0))
    _check_end(text, at)


# --- The value at a path ---


def span_at(payload: bytes, path: Sequence[str | int]) -> Span | None:
    """Return the span of the value at `path`: members by name, the last of equal names, and items by index. None if there is none."""
    text = payload.decode("latin-1")
    begin, end = _end_of_space(text, len(BOM) if payload.startswith(BOM) else 0), len(text.rstrip(" \t\n\r"))
    try:
        for step in path:
            inner = _member_span(payload, text, begin, step) if isinstance(step, str) else _item_span(text, begin, step)
            if inner is None:
                return None
            begin, end = inner
    except UNREADABLE:
        return None
    return begin, end


def removal_spans(payload: bytes, path: Sequence[str | int]) -> list[Span]:
    """Return what to cut out so that the value at `path` is gone, with its name and a comma; all of equal names."""
    spans, step = _spans_around(payload, path) or [], path[-1]
    gone = [
        (string(payload[name:name_end]) == step if isinstance(step, str) else at == step)
        for at, (name, name_end, _, _) in enumerate(spans)
    ]
    last_kept = max((at for at, is_gone in enumerate(gone) if not is_gone), default=-1)
    return [
        (begin, spans[at + 1][0]) if at < last_kept else (spans[at - 1][3] if at else begin, end)
        for at, (begin, _, _, end) in enumerate(spans)
        if gone[at]
    ]


def addition_place(payload: bytes, path: Sequence[str | int]) -> tuple[int, bool] | None:
    """Return where a member, or the next item, that is missing at `path` goes, and whether it is the first there.

    None if there is no object or array for it, or if it would not be the next item.
    """
    spans, step = _spans_around(payload, path), path[-1]
    if spans is None or (isinstance(step, int) and step != len(spans)):
        return None
    if spans:
        return spans[-1][3], False
    outer = span_at(payload, path[:-1])
    return None if outer is None else (outer[0] + 1, True)


def _spans_around(payload: bytes, path: Sequence[str | int]) -> list[tuple[int, int, int, int]] | None:
    """Return the spans of all members or items beside `path`, as `_scan` yields them; None if there is no such object or array."""
    outer = span_at(payload, path[:-1])
    signs = ("{", "}") if isinstance(path[-1], str) else ("[", "]")
    try:
        return None if outer is None else list(_scan(payload.decode("latin-1"), *signs, outer[0], is_all=False))
    except UNREADABLE:
        return None


def _member_span(payload: bytes, text: str, at: int, wanted: str) -> Span | None:
    span = None
    for name, name_end, begin, end in _scan(text, "{", "}", at, is_all=False):
        if string(payload[name:name_end]) == wanted:
            span = begin, end
    return span


def _item_span(text: str, at: int, index: int) -> Span | None:
    for number, (_, _, begin, end) in enumerate(_scan(text, "[", "]", at, is_all=False)):
        if number == index:
            return begin, end
    return None


# In latin-1 each byte is one character and JSON's own characters are where they were, so offsets in the text are offsets in
# the bytes, whatever the bytes inside strings are.
_value = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=str).raw_decode


def _scan(text: str, opening: str, closing: str, at: int = 0, *, is_all: bool = True) -> Iterator[tuple[int, int, int, int]]:
    """Yield begin and end of the name (equal for items) and begin and end of the value, for each member or item.

    `text` is in latin-1; `is_all` says that nothing may follow the object or array.
    Raises: ValueError, RecursionError: if there is none.
    """
    at = _expect(text, _end_of_space(text, at), opening)
    is_first = True
    while not (is_first and text[at : at + 1] == closing):
        name = name_end = at
        if opening == "{":
            _expect(text, at, '"')
            _, name_end = _value(text, at)
            at = _expect(text, _end_of_space(text, name_end), ":")
        _, end = _value(text, at)
        yield name, name_end, at, end
        at = _end_of_space(text, end)
        is_first = False
        if text[at : at + 1] == closing:
            break
        at = _expect(text, at, ",")
    if is_all:
        _check_end(text, at + 1)


def _end_of_space(text: str, at: int) -> int:
    """Return the offset of the first character from `at` on that is not white space."""
    space = _skip(text, at)
    return at if space is None else space.end()


def _expect(text: str, at: int, character: str) -> int:
    """Return the offset of what follows `character` and white space."""
    if text[at : at + 1] != character:
        raise ValueError(f"no {character} at {at}")
    return _end_of_space(text, at + 1)


def _check_end(text: str, at: int) -> None:
    if _end_of_space(text, at) != len(text):
        raise TrailingDataError(f"more after the value, at {at}")


# --- Every name and value ---

MAX_DEPTH: Final = 10_000
"""Objects and arrays that are nested deeper are read without their names and positions."""

_tokens = lazy_pattern(rb'"([^"\\]*+(?:\\.[^"\\]*+)*+)("?)([ \t\r\n]*+:)?|([\[{])|([\]}])|([^\s"\[\]{}:,]++)', re.DOTALL)
_STRING, _NAME, _OPENS, _CLOSES, _BARE = range(2, 7)
_bare = lazy_pattern(rb"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|true|false|null|NaN|-?Infinity")
_beginning = lazy_pattern(rb"(?:\xef\xbb\xbf)?\s*+[\[{]")


def looks_like_json(data: bytes) -> bool:
    """Return whether these bytes begin as an object or an array does."""
    return _beginning.match(data) is not None


class Position(Protocol):
    """Knowledge of the caller of a walk about the value that the walk has come to; the walk carries it along."""

    @property
    def taken(self) -> bool:
        """True if this value is one that the caller looks for."""

    def into(self, step: str | int, /) -> Position | None:
        """Return the position one member or item further in; None if nothing is known from there on."""


class Leaf(NamedTuple):
    """A name, or a value that is not an object or array: `data[start:end]`, of a string what is between the quotes.

    `name` is the name of the member whose value this is, or of the array it is in; empty for a name itself, and without one.
    """

    start: int
    end: int
    is_string: bool
    is_name: bool
    name: bytes
    position: Position | None


class JsonWalk:
    """One walk through the names and values of `data`, also where it is cut off or no JSON.

    `leaves` yields them. Meanwhile `steps` is the path of the latest one; afterwards `is_sound` says whether `data` was JSON and
    nothing else, as far as the walk can tell. `root` is the position of the outermost value. With `begin`, the walk takes the one
    value that begins there, and `end` says where it ends.
    """

    __slots__ = ("_begin", "_begins", "_called", "_data", "_names", "_opened", "_positions", "_root", "end", "is_sound")

    def __init__(self, data: bytes, root: Position | None = None, *, begin: int | None = None) -> None:
        self._data = data
        self._begin = begin
        self.end = len(data)
        self._root = root
        self._opened: list[bool] = []  # from the outside in: whether it is an object
        self._begins: list[int] = []  # where each of them begins
        self._names: list[bytes | int] = []  # the latest member or item of each
        self._positions: list[Position | None] = []
        self._called: list[bytes] = []  # of an array its name, for its items
        self.is_sound = True

    @property
    def steps(self) -> Sequence[str | int]:
        """The members and items that lead to the latest leaf."""
        return self.last_steps(len(self._opened))

    def last_steps(self, count: int) -> list[str | int]:
        """Return the last of these steps, at most `count`, whatever the depth."""
        return [step if isinstance(step, int) else _text_of_name(step) for step in self._names[-count:]]

    @property
    def container(self) -> int:
        """The offset of the object or array that the latest leaf is in; -1 if it is in none."""
        return self._begins[-1] if self._begins else -1

    @property
    def depth(self) -> int:
        """The number of objects and arrays that the walk is in."""
        return len(self._opened)

    def leaves(self, *, bare: bool = True) -> Iterator[Leaf]:
        """Yield names and values in order; numbers and words only if `bare`. A string before a colon is a name."""
        opened, names, positions = self._opened, self._names, self._positions
        name, position = b"", self._root
        in_array = False
        values = 0
        for match in _tokens.finditer(self._data, self._begin or 0):
            which = match.lastindex
            if which == _NAME and opened and not in_array:
                start, end = match.span(1)
                names[-1] = name = match[1]
                if (outer := positions[-1]) is not None:
                    position = outer.into(_text_of_name(name))
                yield Leaf(start, end, is_string=True, is_name=True, name=b"", position=None)
                continue
            if which == _CLOSES:
                name, position = self._closed(is_array=match[0] == b"]")
                in_array = bool(opened) and not opened[-1]
                if self._begin is not None and not opened:
                    self.end = match.end()
                    break
                continue
            if in_array:
                names[-1] = item = int(names[-1]) + 1
                if (outer := positions[-1]) is not None:
                    position = outer.into(item)
            elif not opened:
                values += 1
            if which == _OPENS:
                if len(opened) >= MAX_DEPTH:
                    self.is_sound = False
                    continue
                in_array = match[0] == b"["
                name = name if in_array else b""
                self._begins.append(match.start())
                self._open(name, position, is_array=in_array)
            elif which != _BARE:
                start, end = match.span(1)
                self.is_sound = self.is_sound and match.end(2) > end and which != _NAME
                yield Leaf(start, end, is_string=True, is_name=False, name=name, position=position)
            elif match[0] == BOM and values == 1:
                values = 0
            else:
                self.is_sound = self.is_sound and _bare.fullmatch(match[0]) is not None
                if bare:
                    yield Leaf(match.start(), match.end(), is_string=False, is_name=False, name=name, position=position)
        if opened or values != 1:
            self.is_sound = False

    def _open(self, name: bytes, position: Position | None, *, is_array: bool) -> None:
        """Enter an object or an array; `name` is the name of the items of an array."""
        self._opened.append(not is_array)
        self._names.append(-1 if is_array else b"")
        self._positions.append(position)
        self._called.append(name)

    def _closed(self, *, is_array: bool) -> tuple[bytes, Position | None]:
        """Leave it. Return the name and position of a value that follows without a name of its own."""
        if not self._opened:
            self.is_sound = False
            return b"", self._root
        self.is_sound = self._opened.pop() != is_array and self.is_sound
        self._begins.pop()
        self._names.pop()
        self._called.pop()
        return self._called[-1] if self._called else b"", self._positions.pop()


def _text_of_name(raw: bytes) -> str:
    """Return the text of a name from what is between its quotes; where an escape means nothing, that itself."""
    text = raw.decode("utf-8", "replace")
    if "\\" not in text:
        return text
    try:
        name, _ = scanstring(text + '"', 0, False)
    except ValueError:
        return text
    return name

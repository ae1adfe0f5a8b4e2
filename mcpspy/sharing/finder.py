"""Finds what is secret in a text, in all its spellings: JSON within texts, escapes, percent signs, base64, lines of events.

By the names of members, by places, by looks, and by values that are known. Refuses to decide what is secret (`shapes`, `names`,
`known`), and to keep anything but the values it was told to learn.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import blake2b
from typing import TYPE_CHECKING, Final, TypeAlias

from ..wire.edits import Edit, settled, shifted
from ..wire.json_spans import JsonWalk, Leaf, Position, looks_like_json
from .encodings import JSON, PERCENT, runs
from .names import SecretNames, is_scheme
from .patterns import STAND_IN, SecretSpan, assigned_spans, is_plain, may_assign, personal_spans, token_spans, url_spans
from .prefilter import Prefilter
from .user_paths import MessagePaths, UserPaths

if TYPE_CHECKING:
    from .known import KnownValues

Marked: TypeAlias = tuple[int, int, str, bytes]
"""Where a secret stands, its kind, and its value: a `SecretSpan`, or what `capture.spans` finds."""

MAX_LAYERS: Final = 8
"""So deep texts within texts are read: JSON in base64 in JSON in JSON in a log."""

SHORTEST_TEXT: Final = 6
"""No text that is shorter holds a secret, but one that its place or its name makes one."""

SHORTEST_NUMBER: Final = 4
"""A number of fewer digits says how many or how long."""

PROTOCOL_WORDS: Final = {b"jsonrpc", b"method", b"protocolVersion", b"protocolVersions", b"supportedVersions"}
"""Members whose values are words of the protocol, and no secrets wherever they stand."""

MAX_WORDS: Final = 10_000

MIN_REMEMBERED_BYTES: Final = 256
MAX_REMEMBERED: Final = 20_000
"""The edits of so many texts that are as long are remembered: prompts of a model say all that was said before them once more."""

LONGEST_NAME: Final = 256
"""A longer name says nothing of its value."""

_protocol_words = re.compile(rb'"(?:%b)"\s*+:\s*+(?:\[([^\]]*)|"([^"]*)")' % b"|".join(sorted(PROTOCOL_WORDS))).findall
_is_word = re.compile(rb"[A-Za-z_$]+(?:/[A-Za-z_.-]+)*|[0-9]{4}-[0-9]{2}-[0-9]{2}|2\.0").fullmatch

_NAMES: Final = {b"name", b"key", b"header", b"variable"}
_VALUES: Final = {b"value", b"values"}
"""As lists of header fields and of variables have them: `{"name": "API_KEY", "value": …}`."""

_members_inside = re.compile(rb"\{\s*[\"{]|\[\s*[\"{]").search


@dataclass(slots=True, kw_only=True)
class FinderOptions:
    """What is to be taken out: `names` say which members hold secrets, `paths` and `values` are the user's, `keep` spares values.

    `stand_in` makes a pseudonym of a value, and of an earlier pseudonym what takes its place. `more` finds what else is wanted in a
    text, given the name of the member whose value it is. `spares_stand_ins` leaves earlier pseudonyms out of what is found;
    `takes_numbers` is for long numbers under secret names.
    """

    stand_in: Callable[[bytes], bytes]
    names: SecretNames = field(default_factory=SecretNames)
    paths: UserPaths | None = None
    values: tuple[re.Pattern[str], ...] = ()
    keep: tuple[re.Pattern[str], ...] = ()
    personal: bool = False
    more: Callable[[bytes, bytes], Iterator[SecretSpan]] | None = None
    spares_stand_ins: bool = False
    takes_numbers: bool = False


class SecretFinder:
    """Edits of texts. While `learns`, what is found is added to what is `known`; afterwards that is sought everywhere."""

    def __init__(self, wanted: FinderOptions, known: KnownValues) -> None:
        self._wanted = wanted
        self._known = known
        self._words: set[bytes] = set()
        self._shortest = 1 if wanted.values or wanted.personal else SHORTEST_TEXT
        self._remembered = lru_cache(10_000)(lambda name: wanted.names.member(JSON.read(name)))
        self._texts: dict[tuple[bytes, bytes, int], list[Edit]] = {}
        self._takes_bare = wanted.takes_numbers or wanted.names.has_more or bool(wanted.values)
        self._is_quick = not self._takes_bare and wanted.more is None
        self._is_harmless = Prefilter(wanted.names, known, personal=wanted.personal)
        self.learns = False

    def learned(self) -> None:
        """All has been seen once."""
        self.learns = False
        self.forget()
        self._known.except_for(self._words)
        self._known.close()

    def forget(self) -> None:
        """What stands for a value may be another from here on."""
        self._texts.clear()

    def is_secret(self, name: bytes) -> bool:
        """Whether a member of this name holds a secret."""
        return self._member(name) is not None

    def payload(self, data: bytes) -> list[Edit]:
        """Edits of what a frame says, which may be a message."""
        paths = self._wanted.paths
        return self._text(data, None if paths is None else MessagePaths(paths))

    def text(self, data: bytes) -> list[Edit]:
        """Edits of any other text."""
        return self._text(data)

    def marked(self, spans: Iterable[Marked]) -> list[Edit]:
        """Edits of what somebody else says are secrets. They may overlap others."""
        return list(self._edits(spans))

    def settled(self, data: bytes, edits: Iterable[Edit]) -> list[Edit]:
        """Edits of one text, in order, none of which overlap."""
        return settled(data, edits, self._wanted.stand_in)

    def cut_off(self, data: bytes, edits: list[Edit]) -> list[Edit]:
        """The same of a text whose end is missing: the beginning of a secret at its end is one too."""
        start = self._begun_at(data)
        if start is None:
            return edits
        return self.settled(data, [*edits, Edit(start, len(data), self._wanted.stand_in(data[start:]), "value")])

    def _begun_at(self, data: bytes, depth: int = 0) -> int | None:
        found = [self._known.begun_at(data)]
        for layer, unfinished in ((JSON, _unfinished_escape), (PERCENT, _unfinished_sign)):
            if layer.sign in data and depth < MAX_LAYERS:
                text = layer.read(unfinished.sub(b"", data))
                start = self._begun_at(text, depth + 1) if text != data else None
                if start is not None:
                    found += (one.start for one in layer.back(data, [Edit(start, len(text), b"", "")]))
        return min((one for one in found if one is not None), default=None)

    def secret(self, data: bytes) -> list[Edit]:
        """Edits of a text that is a secret by its name."""
        return self.settled(data, self._whole(data, 0, len(data), "key", lambda value: value))

    def _text(self, data: bytes, position: Position | None = None, depth: int = 0, *, name: bytes = b"") -> list[Edit]:
        if len(data) < self._shortest and position is None:
            return []
        if self._is_quick and position is None:
            if is_plain(data) and b"/" not in data:
                return list(self._known.edits(data))
            if self._is_harmless(data):
                if self.learns:
                    self._note_words(data)
                return []
        found: list[Edit] = []
        if looks_like_json(data) and depth < MAX_LAYERS:
            walk = JsonWalk(data, position)
            found = self._json(data, walk, position, depth)
            if walk.is_sound:
                return self.settled(data, found)
        return self.settled(data, [*found, *self._plain(data, depth, name)])

    def _note_words(self, data: bytes) -> None:
        """Remember words of the protocol in what is not taken apart."""
        for several, one in _protocol_words(data):
            for word in several.split(b'"') if several else (one,):
                self._note(word)

    def _note(self, word: bytes) -> None:
        if word not in self._words and len(self._words) < MAX_WORDS and _is_word(word):
            self._words.add(word)

    # JSON

    def _member(self, name: bytes) -> str | None:
        """Of what kind of secret a member is that is spelled so."""
        return self._remembered(name) if 0 < len(name) <= LONGEST_NAME else None

    def _json(self, data: bytes, walk: JsonWalk, position: Position | None, depth: int) -> list[Edit]:
        """Edits of JSON, or of what looks like some."""
        found: list[Edit] = []
        bare = self._takes_bare or position is not None or self._known.has_numbers
        named: tuple[int, str | None] = (0, None)  # where a member says the name of another, and what that makes it
        for leaf in walk.leaves(bare=bare):
            if leaf.is_string:
                if leaf.name in _NAMES:
                    named = walk.depth, self._assigned_kind(data[leaf.start : leaf.end])
                kind = named[1] if leaf.name in _VALUES and named[0] == walk.depth else None
                found += self._string(data, leaf, depth, kind)
            elif data[leaf.start : leaf.end] != b"null" and (kind := self._kind_of_bare(data, leaf)):
                token = (leaf.start, leaf.end, kind, data[leaf.start : leaf.end])
                found += (one._replace(new=b'"%b"' % one.new) for one in self._edits([token]))
        return found

    def _assigned_kind(self, name: bytes) -> str | None:
        return self._wanted.names.assigned(JSON.read(name)) if len(name) <= LONGEST_NAME else None

    def _string(self, data: bytes, leaf: Leaf, depth: int, kind: str | None) -> Iterator[Edit]:
        """Edits of a name or a text; `kind` is what of it is known already."""
        start, end = leaf.start, leaf.end
        raw = data[start:end]
        if leaf.is_name:
            if len(raw) >= self._shortest:
                text = JSON.read(raw)
                edits = [*self._known.edits(text), *self._stood_in(text), *self._tokens(text)]
                yield from JSON.back(raw, self.settled(text, edits), start)
            return
        kind = "json-path" if leaf.position is not None and leaf.position.taken else self._member(leaf.name) or kind
        if kind is not None:
            yield from self._whole(data, start, end, kind, JSON.read)
            return
        if self.learns and leaf.name in PROTOCOL_WORDS:
            self._note(raw)
        if len(raw) >= MIN_REMEMBERED_BYTES and leaf.position is None and self._wanted.more is None:
            yield from shifted(self._met(raw, leaf, depth), start)
        elif len(raw) >= self._shortest or leaf.position is not None:
            yield from self._spelled(raw, leaf, depth, start)

    def _spelled(self, raw: bytes, leaf: Leaf, depth: int, start: int = 0) -> Iterator[Edit]:
        """Edits of a text as JSON spells it, which stands at `start`."""
        edits = self._text(JSON.read(raw) if b"\\" in raw else raw, leaf.position, depth + 1, name=leaf.name)
        if edits:
            yield from JSON.back(raw, edits, start)

    def _met(self, raw: bytes, leaf: Leaf, depth: int) -> list[Edit]:
        """The same, remembered by a digest, so that no texts are kept."""
        key = blake2b(raw, digest_size=16).digest(), leaf.name, depth
        found = self._texts.get(key)
        if found is None:
            found = list(self._spelled(raw, leaf, depth))
            if len(self._texts) >= MAX_REMEMBERED:
                self._texts.clear()
            self._texts[key] = found
        return found

    def _kind_of_bare(self, data: bytes, leaf: Leaf) -> str | None:
        """Of what kind of secret a number or word is, that stays what it is as long as nobody asks for more."""
        if leaf.position is not None and leaf.position.taken:
            return "json-path"
        if leaf.name and self._wanted.names.is_wanted(JSON.read(leaf.name)):
            return "key"
        token = data[leaf.start : leaf.end]
        if self._wanted.takes_numbers and len(token) >= SHORTEST_NUMBER and token.isdigit() and self._member(leaf.name):
            return "number"
        is_meant = any(one.fullmatch(token.decode("latin-1")) for one in self._wanted.values)
        return "value" if is_meant or token in self._known else None

    def _whole(self, data: bytes, start: int, end: int, kind: str, read: Callable[[bytes], bytes]) -> Iterator[Edit]:
        """The edit of `data[start:end]`, a secret as a whole; but for the scheme before a credential, and the names of cookies."""
        value = read(data[start:end])
        blank = data.find(b" ", start, end)
        if kind == "authorization" and blank > 0 and is_scheme(data[start:blank]):
            yield from self._whole(data, blank + 1, end, "key", read)
        elif kind == "cookie" and b"=" in value:
            for match in _cookies.finditer(data, start, end):
                yield from self._edits([SecretSpan(*match.span(1), kind, read(match[1]))])
        elif value:
            yield from self._edits([SecretSpan(start, end, kind, value)])

    # Text

    def _plain(self, data: bytes, depth: int, name: bytes) -> list[Edit]:
        """Edits of a text that is no JSON as a whole: of JSON in it, of what stands around that, and what is sought in all of it."""
        found = [*self._sought(data, depth), *self._stood_in(data)]
        for pattern in self._wanted.values:
            found += self._edits(_matches(pattern, data))
        around: list[tuple[int, int]] = []
        done = 0
        for start, end, edits in self._inside(data, depth):
            found += edits
            if end > start:
                around.append((done, start))
                done = end
        around.append((done, len(data)))
        for start, end in around:
            found += self._around(data, start, end, depth, name)
        for layer in (PERCENT, JSON):  # of a text that is spelled so as a whole, what looks like JSON in it may be none
            if depth < MAX_LAYERS and any(data.find(layer.sign, *one) >= 0 for one in around):
                meant = layer.read(data)
                if meant != data:
                    found += layer.back(data, self._text(meant, None, depth + 1, name=name))
        return found

    def _sought(self, data: bytes, depth: int) -> list[Edit]:
        """Edits of the values that are known, behind escapes too; whatever else stands there."""
        found = list(self._known.edits(data))
        for layer in (PERCENT, JSON):
            if depth < MAX_LAYERS and self._known and layer.sign in data and (meant := layer.read(data)) != data:
                found += layer.back(data, self.settled(meant, self._sought(meant, depth + 1)))
        return found

    def _inside(self, data: bytes, depth: int) -> Iterator[tuple[int, int, list[Edit]]]:
        """Where JSON stands in a text, and the edits of it. What only begins as some, the last one if any, takes no place."""
        at = 0
        while depth < MAX_LAYERS and (begin := _members_inside(data, at)):
            start = begin.start()
            walk = JsonWalk(data, begin=start)
            edits = self._json(data, walk, None, depth)
            if not walk.is_sound:
                yield start, start, edits
                return
            yield start, walk.end, edits
            at = walk.end

    def _around(self, data: bytes, start: int, end: int, depth: int, name: bytes) -> Iterator[Edit]:
        """Edits of a stretch of a text in which no JSON stands."""
        text = data[start:end]
        if len(text) < self._shortest:
            return
        found = list(self._looks(text, name))
        if depth < MAX_LAYERS:
            for run in runs(text):
                edits = self._text(run.text, None, depth + 1)
                if edits:
                    found.append(run.back(edits))
        yield from shifted(found, start)

    def _looks(self, data: bytes, name: bytes) -> Iterator[Edit]:
        yield from self._edits(url_spans(data, self._wanted.names))
        yield from self._tokens(data)
        yield from self._assigned(data)
        if self._wanted.personal:
            yield from self._edits(personal_spans(data))
        if self._wanted.more is not None:
            yield from self._edits(self._wanted.more(data, name))

    def _tokens(self, data: bytes) -> Iterator[Edit]:
        return self._edits(token_spans(data))

    def _assigned(self, data: bytes) -> Iterator[Edit]:
        if self._wanted.names.has_more or may_assign(data):
            yield from self._edits(assigned_spans(data, self._wanted.names))

    def _stood_in(self, data: bytes) -> Iterator[Edit]:
        """Earlier pseudonyms, which get others."""
        if b"redacted-" not in data or self._wanted.spares_stand_ins:
            return
        for match in STAND_IN.finditer(data):
            yield Edit(*match.span(), self._wanted.stand_in(match[0]), "value")

    def _edits(self, spans: Iterable[Marked]) -> Iterator[Edit]:
        keep = self._wanted.keep
        for start, end, kind, value in spans:
            if start >= end or (keep and any(one.fullmatch(value.decode("utf-8", "replace")) for one in keep)):
                continue
            if STAND_IN.fullmatch(value):
                if self._wanted.spares_stand_ins:
                    continue
            elif self.learns:
                self._known.add(value)
            yield Edit(start, end, self._wanted.stand_in(value), kind)


_unfinished_escape = re.compile(rb"\\(?:u[0-9a-fA-F]{0,3})?\Z")
_unfinished_sign = re.compile(rb"%[0-9a-fA-F]?\Z")
_cookies = re.compile(rb"[^=;\s]+=([^;]+)")


def _matches(pattern: re.Pattern[str], data: bytes) -> Iterator[SecretSpan]:
    """What the user's pattern finds: its first group if it has one, else all that it matches."""
    text = data.decode("utf-8", "surrogateescape")
    group = 1 if pattern.groups else 0
    for match in pattern.finditer(text):
        start, end = match.span(group)
        if start >= 0:
            value = text[start:end].encode("utf-8", "surrogateescape")
            begin = start if text.isascii() else len(text[:start].encode("utf-8", "surrogateescape"))
            yield SecretSpan(begin, begin + len(value), "value", value)

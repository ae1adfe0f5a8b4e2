"""Secrets in a text, in all its spellings (JSON within texts, escapes, percent signs, base64): bytes in, edits out.

They are found by the names of members, by JSON paths of the user, by patterns, and by values that are known: `names`, `user_paths`,
`patterns` and `known` decide what is secret. Of all texts, only the values to be learned are kept.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import blake2b
from typing import Final, TypeAlias

from ..capture.redaction.spans import is_placeholder
from ..lazy_pattern import lazy_pattern
from ..records import PSEUDONYM_PREFIX
from ..wire.edits import Edit, shift, without_overlaps
from ..wire.json_spans import JsonWalk, Leaf, Position, is_json, looks_like_json
from .encodings import JSON, PERCENT, runs
from .known import KnownValues
from .layouts import layout_spans
from .named_values import ATTACHED, HOLDING, LONGEST_COMMAND, NamedValues, is_attached_password, password_spans
from .patterns import (
    BEGINNINGS,
    KEY_SIGN,
    LETTERS_AND_DIGITS,
    PSEUDONYM,
    LongWords,
    SecretNames,
    SecretSpan,
    assigned_spans,
    has_hint,
    is_plain,
    is_scheme,
    may_assign,
    personal_spans,
    token_spans,
    url_spans,
)
from .user_paths import MessagePaths, UserPaths

Marked: TypeAlias = tuple[int, int, str, bytes]
"""The offsets of a secret, its kind, and its value: a `SecretSpan`, or a span of `capture.redaction.spans`."""

MoreSecrets: TypeAlias = Callable[[bytes, bytes], Iterator[SecretSpan]]
"""A finder of further secrets in a text, which is the value of a member of this name."""

MAX_LAYERS: Final = 8
"""Depth to which texts within texts are read: JSON in base64 in JSON in JSON in a log."""

SHORTEST_TEXT: Final = 6
"""Shorter texts are secret only if a path or a name makes them so."""

SHORTEST_NUMBER: Final = 4
"""A number of fewer digits is a count or a length."""

PROTOCOL_WORDS: Final = {b"jsonrpc", b"method", b"protocolVersion", b"protocolVersions", b"supportedVersions"}
"""Members whose values are words of the protocol, and no secrets wherever they occur."""

MAX_WORDS: Final = 10_000

MIN_REMEMBERED_BYTES: Final = 256
MAX_REMEMBERED: Final = 20_000
"""The edits of so many texts of at least this length are remembered: each prompt of a model repeats all that was said before."""

LONGEST_NAME: Final = 256
"""A longer name does not make its value a secret."""

_protocol_words = lazy_pattern(rb'"(?:%b)"\s*+:\s*+(?:\[([^\]]*)|"([^"]*)")' % b"|".join(sorted(PROTOCOL_WORDS)))
_is_literal = lazy_pattern(rb"true|false|-?[0-9][0-9.eE+-]*")
_is_word = lazy_pattern(rb"[A-Za-z_$]+(?:/[A-Za-z_.-]+)*|[0-9]{4}-[0-9]{2}-[0-9]{2}|2\.0")

_PSEUDONYM_START: Final = PSEUDONYM_PREFIX.encode()

_members_inside = lazy_pattern(rb"\{\s*[\"{]|\[\s*[\"{]")


@dataclass(slots=True, kw_only=True)
class FinderOptions:
    """Options of what is secret: `names` tells secret members, `paths` and `values` are the user's, `keep` spares values.

    `pseudonym` makes a pseudonym of a value, and another one of an earlier pseudonym. `more` finds further secrets in a text, given
    the name of the member whose value it is. `spares_pseudonyms` leaves earlier pseudonyms as they are; `takes_numbers` includes
    long numbers under secret names.
    """

    pseudonym: Callable[[bytes], bytes]
    names: SecretNames = field(default_factory=SecretNames)
    paths: UserPaths | None = None
    values: tuple[re.Pattern[str], ...] = ()
    keep: tuple[re.Pattern[str], ...] = ()
    personal: bool = False
    more: MoreSecrets | None = None
    spares_pseudonyms: bool = False
    takes_numbers: bool = False


class SecretFinder:
    """A finder of secrets, as edits of texts. While `learns`, secrets are added to `known`; then those are sought everywhere."""

    def __init__(self, options: FinderOptions, known: KnownValues) -> None:
        self._options = options
        self._known = known
        self._words: set[bytes] = set()
        self._shortest = 1 if options.values or options.personal else SHORTEST_TEXT
        self._kind_of_name = lru_cache(10_000)(lambda name: options.names.member(JSON.read(name)))
        self._texts: dict[tuple[bytes, bytes, int], list[Edit]] = {}
        self._takes_bare = options.takes_numbers or options.names.has_more or bool(options.values)
        self._is_quick = not options.names.has_more and not options.values
        self._is_harmless = Prefilter(options.names, known, personal=options.personal, more=options.more)
        self.learns = False

    def end_learning(self) -> None:
        """End learning: all texts have been seen once."""
        self.learns = False
        self.forget()
        self._known.except_for(self._words)
        self._known.close()

    def forget(self) -> None:
        """Forget remembered edits: pseudonyms may be others from here on."""
        self._texts.clear()

    def is_secret(self, name: bytes) -> bool:
        """Return whether a member of this name holds a secret."""
        return self._member(name) is not None

    def is_secret_option(self, name: bytes) -> bool:
        """Return whether an option of this name has a secret for its value."""
        return self._assigned_kind(name) is not None

    def payload_edits(self, data: bytes) -> list[Edit]:
        """Return edits of the payload of a frame, which may be a message."""
        paths = self._options.paths
        return self._text(data, None if paths is None else MessagePaths(paths))

    def text_edits(self, data: bytes) -> list[Edit]:
        """Return edits of any other text."""
        return self._text(data)

    def span_edits(self, spans: Iterable[Marked]) -> list[Edit]:
        """Return edits of secrets that the caller has found. They may overlap other edits."""
        return list(self._edits(spans))

    def without_overlaps(self, data: bytes, edits: Iterable[Edit]) -> list[Edit]:
        """Put edits of one text in order, and resolve overlaps."""
        return without_overlaps(data, edits, self._options.pseudonym)

    def cut_off(self, data: bytes, edits: list[Edit]) -> list[Edit]:
        """Add an edit to those of a text whose end is missing: the beginning of a secret at its end is secret too."""
        start = self._begun_at(data)
        if start is None:
            return edits
        return self.without_overlaps(data, [*edits, Edit(start, len(data), self._options.pseudonym(data[start:]), "value")])

    def _begun_at(self, data: bytes, depth: int = 0) -> int | None:
        starts = [self._known.begun_at(data)]
        for layer, unfinished in ((JSON, _unfinished_escape), (PERCENT, _unfinished_sign)):
            if layer.sign in data and depth < MAX_LAYERS:
                text = layer.read(unfinished.sub(b"", data))
                start = self._begun_at(text, depth + 1) if text != data else None
                if start is not None:
                    starts += (edit.start for edit in layer.back(data, [Edit(start, len(text), b"", "")]))
        return min((start for start in starts if start is not None), default=None)

    def secret_edits(self, data: bytes) -> list[Edit]:
        """Return edits of a text that its name makes a secret."""
        return self.without_overlaps(data, self._whole(data, 0, len(data), "key", lambda value: value))

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
        edits: list[Edit] = []
        if looks_like_json(data) and depth < MAX_LAYERS:
            walk = JsonWalk(data, position)
            edits = self._json(data, walk, position, depth)
            if walk.is_sound:
                return self.without_overlaps(data, edits)
        return self.without_overlaps(data, [*edits, *self._plain(data, depth, name)])

    def _note_words(self, data: bytes) -> None:
        """Remember words of the protocol in a text that is not taken apart."""
        for several, single in _protocol_words.findall(data):
            for word in several.split(b'"') if several else (single,):
                self._note(word)

    def _note(self, word: bytes) -> None:
        if word not in self._words and len(self._words) < MAX_WORDS and _is_word.fullmatch(word):
            self._words.add(word)

    # JSON

    def _member(self, name: bytes) -> str | None:
        """Return the kind of secret that a member holds whose name is spelled so; None if it holds none."""
        return self._kind_of_name(name) if 0 < len(name) <= LONGEST_NAME else None

    def _json(self, data: bytes, walk: JsonWalk, position: Position | None, depth: int) -> list[Edit]:
        """Return edits of JSON, or of a text that looks like JSON."""
        edits: list[Edit] = []
        bare = self._takes_bare or position is not None or self._known.has_numbers
        named = NamedValues(data, walk, self._options.names)
        for leaf in walk.leaves(bare=bare):
            if leaf.is_string:
                edits += self._string(data, leaf, depth, named)
            elif (kind := self._kind_of_bare(data, leaf)) is not None:
                span = (leaf.start, leaf.end, "value", data[leaf.start : leaf.end])
                edits += (edit._replace(new=b'"%b"' % edit.new, kind=kind) for edit in self._edits([span]))
        for leaf, kind in named.late:
            edits += self._whole(data, leaf.start, leaf.end, kind, JSON.read)
        return edits

    def _assigned_kind(self, name: bytes) -> str | None:
        return self._options.names.assigned(JSON.read(name)) if len(name) <= LONGEST_NAME else None

    def _string(self, data: bytes, leaf: Leaf, depth: int, named: NamedValues) -> Iterator[Edit]:
        """Yield edits of a name or a string."""
        start, end = leaf.start, leaf.end
        raw = data[start:end]
        if leaf.is_name:
            if len(raw) >= self._shortest:
                text = JSON.read(raw)
                edits = [*self._known.edits(text), *self._pseudonym_edits(text), *self._tokens(text)]
                yield from JSON.back(raw, self.without_overlaps(text, edits), start)
            return
        kind = named.kind(leaf)
        if leaf.position is not None and leaf.position.taken:
            kind = "json-path"
        elif (own := self._member(leaf.name)) is not None and not named.spares(leaf):
            kind = own
        if kind is not None:
            yield from self._whole(data, start, end, kind, JSON.read)
            return
        if self.learns and leaf.name in PROTOCOL_WORDS:
            self._note(raw)
        if is_attached_password(raw, data[max(start - LONGEST_COMMAND, 0) : start]):
            yield from self._whole(data, start + ATTACHED, end, "key", JSON.read)
        elif len(raw) >= MIN_REMEMBERED_BYTES and leaf.position is None and self._options.more is None:
            yield from shift(self._remembered_edits(raw, leaf, depth), start)
        elif len(raw) >= self._shortest or leaf.position is not None:
            yield from self._spelled(raw, leaf, depth, start)

    def _spelled(self, raw: bytes, leaf: Leaf, depth: int, start: int = 0) -> Iterator[Edit]:
        """Yield edits of a string as JSON spells it, which is at `start`."""
        edits = self._text(JSON.read(raw) if b"\\" in raw else raw, leaf.position, depth + 1, name=leaf.name)
        if edits:
            yield from JSON.back(raw, edits, start)

    def _remembered_edits(self, raw: bytes, leaf: Leaf, depth: int) -> list[Edit]:
        """Return the same edits, remembered by a digest, so that no texts are kept."""
        key = blake2b(raw, digest_size=16).digest(), leaf.name, depth
        edits = self._texts.get(key)
        if edits is None:
            edits = list(self._spelled(raw, leaf, depth))
            if len(self._texts) >= MAX_REMEMBERED:
                self._texts.clear()
            self._texts[key] = edits
        return edits

    def _kind_of_bare(self, data: bytes, leaf: Leaf) -> str | None:
        """Return the kind of secret that a number or word is; None for most, which stay as they are unless the user asks for more."""
        if leaf.position is not None and leaf.position.taken:
            return "json-path" if data[leaf.start : leaf.end] != b"null" else None
        if leaf.name and self._options.names.is_wanted(JSON.read(leaf.name)):
            return "key"
        word = data[leaf.start : leaf.end]
        if _is_literal.fullmatch(word) is None:
            return None
        if self._options.takes_numbers and len(word) >= SHORTEST_NUMBER and word.isdigit() and self._member(leaf.name):
            return "number"
        is_meant = any(pattern.fullmatch(word.decode("latin-1")) for pattern in self._options.values)
        return "value" if is_meant or word in self._known else None

    def _whole(self, data: bytes, start: int, end: int, kind: str, read: Callable[[bytes], bytes]) -> Iterator[Edit]:
        """Yield the edit of `data[start:end]`, which is secret as a whole, but for a credential's scheme and the names of cookies."""
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
        """Return edits of a text that is no JSON as a whole: of values in all of it, of JSON in it, and of what is around that."""
        edits = [*self._known_edits(data, depth), *self._pseudonym_edits(data)]
        edits += self._edits(layout_spans(data, self._options.names))
        for pattern in self._options.values:
            edits += self._edits(_matches(pattern, data))
        around: list[tuple[int, int]] = []
        done = 0
        for start, end, inner in self._inside(data, depth):
            edits += inner
            if end > start:
                around.append((done, start))
                done = end
        around.append((done, len(data)))
        for start, end in around:
            edits += self._around(data, start, end, depth, name)
        for layer in (PERCENT, JSON):  # in a text that is spelled so as a whole, what looks like JSON may be none
            if depth < MAX_LAYERS and any(data.find(layer.sign, *span) >= 0 for span in around):
                meant = layer.read(data)
                if meant != data:
                    edits += layer.back(data, self._text(meant, None, depth + 1, name=name))
        return edits

    def _known_edits(self, data: bytes, depth: int) -> list[Edit]:
        """Return edits of known values, in spellings with escapes too."""
        edits = list(self._known.edits(data))
        for layer in (PERCENT, JSON):
            if depth < MAX_LAYERS and self._known and layer.sign in data and (meant := layer.read(data)) != data:
                edits += layer.back(data, self.without_overlaps(meant, self._known_edits(meant, depth + 1)))
        return edits

    def _inside(self, data: bytes, depth: int) -> Iterator[tuple[int, int, list[Edit]]]:
        """Yield the span of each JSON value in a text, with its edits. One that is cut off, always the last, gets an empty span."""
        at = 0
        while depth < MAX_LAYERS and (begin := _members_inside.search(data, at)):
            start = begin.start()
            walk = JsonWalk(data, begin=start)
            edits = self._json(data, walk, None, depth)
            if not walk.is_sound:
                yield start, start, edits
                return
            yield start, walk.end, edits
            at = walk.end

    def _around(self, data: bytes, start: int, end: int, depth: int, name: bytes) -> Iterator[Edit]:
        """Yield edits of a part of a text that has no JSON in it."""
        text = data[start:end]
        if len(text) < self._shortest:
            return
        edits = list(self._looks(text, name))
        if depth < MAX_LAYERS:
            for run in runs(text):
                inner = self._text(run.text, None, depth + 1)
                if inner:
                    edits.append(run.back(inner))
        yield from shift(edits, start)

    def _looks(self, data: bytes, name: bytes) -> Iterator[Edit]:
        yield from self._edits(url_spans(data, self._options.names))
        yield from self._tokens(data)
        yield from self._assigned(data)
        yield from self._edits(password_spans(data))
        if self._options.personal:
            yield from self._edits(personal_spans(data))
        if self._options.more is not None:
            yield from self._edits(self._options.more(data, name))

    def _tokens(self, data: bytes) -> Iterator[Edit]:
        return self._edits(token_spans(data))

    def _assigned(self, data: bytes) -> Iterator[Edit]:
        if self._options.names.has_more or may_assign(data):
            yield from self._edits(assigned_spans(data, self._options.names))

    def _pseudonym_edits(self, data: bytes) -> Iterator[Edit]:
        """Yield edits that replace earlier pseudonyms by others."""
        if _PSEUDONYM_START not in data or self._options.spares_pseudonyms:
            return
        for match in PSEUDONYM.finditer(data):
            yield Edit(*match.span(), self._options.pseudonym(match[0]), "value")

    def _edits(self, spans: Iterable[Marked]) -> Iterator[Edit]:
        keep = self._options.keep
        for start, end, kind, value in spans:
            if (
                start >= end
                or (kind not in ("json-path", "value") and is_placeholder(value))
                or (keep and any(pattern.fullmatch(value.decode("utf-8", "replace")) for pattern in keep))
            ):
                continue
            if PSEUDONYM.fullmatch(value):
                if self._options.spares_pseudonyms:
                    continue
            elif self.learns:
                self._known.add(value)
            yield Edit(start, end, self._options.pseudonym(value), kind)


_unfinished_escape = lazy_pattern(rb"\\(?:u[0-9a-fA-F]{0,3})?\Z")
_unfinished_sign = lazy_pattern(rb"%[0-9a-fA-F]?\Z")
_cookies = lazy_pattern(rb"(?!(?i:domain|expires|max-age|path|priority|samesite)=)(?<![^;\s\"])[^=;\s]+=([^;]+)")


def _matches(pattern: re.Pattern[str], data: bytes) -> Iterator[SecretSpan]:
    """Yield the matches of the user's pattern: of its first group if it has one, otherwise of all of it."""
    text = data.decode("utf-8", "surrogateescape")
    group = 1 if pattern.groups else 0
    for match in pattern.finditer(text):
        start, end = match.span(group)
        if start >= 0:
            value = text[start:end].encode("utf-8", "surrogateescape")
            begin = start if text.isascii() else len(text[:start].encode("utf-8", "surrogateescape"))
            yield SecretSpan(begin, begin + len(value), "value", value)


# --- A fast test that most texts pass: nothing in them is secret, so they need not be taken apart ---


MAX_HARMLESS: Final = 50_000
"""So many names, words and texts are remembered; after that, new ones are looked at each time."""

_SIGNS: Final = (b"@", _PSEUDONYM_START, KEY_SIGN, b"?base64?", b'"Secret"', b'"-H"', b'"-e"', b'"-u"', b'"--')
"""Texts with mail addresses, passwords before hosts, pseudonyms, private keys, base64 of mail or arguments have one of these."""

_FORMS: Final = {b"element", b"field", b"label", b"locator", b"selector"}
"""Members that name what is in a member `text`."""

_percent = lazy_pattern(rb"%[0-9a-fA-F]{2}")
_names = lazy_pattern(rb'"(?=([^"]*)"[ \t\r\n]*+:)')
"""The bytes between one quote and the next, before a colon: a name, wherever strings begin."""

_options = lazy_pattern(rb"(?<![\w-])--?[A-Za-z][\w-]*+")
_whole_options = lazy_pattern(rb'(?:\A|")(-[^"]{1,%d})(?="|\Z)' % LONGEST_NAME)
_NAME_LETTERS: Final = LETTERS_AND_DIGITS + b"_.-"
_PARAMETER_LETTERS: Final = _NAME_LETTERS + b"%[]"
_AFTER_NAME: Final = b" \t\"'*."

_long_words: Final = LongWords(_NAME_LETTERS + b"+/", 13)
"""Tokens that are known by their looks are no shorter, and neither is anything that is taken for base64 or for random."""

_ESCAPED: Final = lazy_pattern(rb'"([^"\\]*+(?:\\.[^"\\]*+)++)"([ \t\r\n]*+:)?')
"""A string that has escapes. In JSON no backslash is outside of strings, so no match begins at the end of another string."""
_escaped, _escaped_out = _ESCAPED.findall, _ESCAPED.sub

_MAX_ESCAPED_LAYERS: Final = 4

_LONGEST: Final = 256
"""Longer words are not remembered: they seldom come again."""


class Prefilter:
    """A test of texts: true only if a `SecretFinder` that judges by names and looks alone would find nothing."""

    __slots__ = (
        "_is_personal",
        "_known",
        "_names",
        "_harmless_assigned",
        "_harmless_names",
        "_harmless_parameters",
        "_harmless_words",
        "_texts",
    )

    def __init__(self, names: SecretNames, known: KnownValues, *, personal: bool, more: MoreSecrets | None = None) -> None:
        self._is_personal = personal
        self._known = known
        self._names = names
        self._texts: set[int] = set()
        """Hashes of texts in which nothing is secret by itself: most texts are tested twice."""
        self._harmless_names = _HarmlessWords(
            lambda name: not (names.member(name) or names.assigned(name) or names.is_plural(name))
        )
        self._harmless_assigned = _HarmlessWords(lambda name: names.assigned(name) is None)
        self._harmless_parameters = _HarmlessWords(lambda name: names.parameter(name) is None)
        self._harmless_words = _HarmlessWords(lambda word: _is_harmless_word(word, more))

    def __call__(self, data: bytes) -> bool:
        code = hash(data)
        if code in self._texts:
            return not self._known or self._holds(_spelled_out(data), self._knows_none)
        if not self._holds(_spelled_out(data), self._has_none):
            return False
        if len(self._texts) < MAX_HARMLESS:
            self._texts.add(code)
        return True

    def _holds(self, texts: list[bytes] | None, is_so: Callable[[bytes], bool]) -> bool:
        if texts is None:
            return False
        for text in texts:  # noqa: SIM110 - called for each text there is, and nearly always with one
            if not is_so(text):
                return False
        return True

    def _knows_none(self, text: bytes) -> bool:
        return next(self._known.edits(text), None) is None

    def _has_none(self, text: bytes) -> bool:
        """Return whether nothing in a text without escapes is secret by its name, by its looks, or as a known value."""
        for sign in _SIGNS:
            if sign in text:
                return False
        small = text.lower()
        if self._is_personal and (b"/home/" in small or b"/users/" in small):
            return False
        if b"bearer" in small or b"basic" in small or (b"[[" in text and has_hint(small)):
            return False
        names = set(_names.findall(text))
        return (
            HOLDING.isdisjoint(names - {b"content", b"text"} if _FORMS.isdisjoint(names) else names)
            and b"Value" not in names
            and self._harmless_names.holds(names)
            and self._assigns_none(text)
            and self._harmless_words.holds(text[slice(*span)] for span in _long_words.spans(text))
            and next(password_spans(text), None) is None
            and next(layout_spans(text, self._names), None) is None
            and (b"%" not in text or _percent.search(text) is None)
            and self._knows_none(text)
        )

    def _assigns_none(self, text: bytes) -> bool:
        """Return whether no name before a value, as an option, a variable or a parameter, says that the value is secret."""
        if b"-" in text and not self._harmless_assigned.holds([*_options.findall(text), *_whole_options.findall(text)]):
            return False
        if b":" in text and not self._harmless_assigned.holds(_names_before(b":", text, _NAME_LETTERS)):
            return False
        return b"=" not in text or (
            self._harmless_assigned.holds(_names_before(b"=", text, _NAME_LETTERS))
            and self._harmless_parameters.holds(_names_before(b"=", text, _PARAMETER_LETTERS))
        )


def _names_before(sign: bytes, text: bytes, letters: bytes) -> Iterator[bytes]:
    """Yield what may be names before each of these signs: the letters there, before quotes and blanks."""
    for piece in text.split(sign)[:-1]:
        tail = piece[-LONGEST_NAME:].rstrip(_AFTER_NAME)
        yield tail[len(tail.rstrip(letters)) :]


def _spelled_out(data: bytes, depth: int = 0) -> list[bytes] | None:
    """Return `data` without its strings that have escapes, and the texts that these mean.

    None if an escape is not in a value of JSON, or if texts are nested too deep in texts.
    """
    if b"\\" not in data:
        return [data]
    if depth > _MAX_ESCAPED_LAYERS or not is_json(data):
        return None
    texts = [_escaped_out(b'""', data)]
    for string, colon in _escaped(data):
        inner = None if colon else _spelled_out(JSON.read(string), depth + 1)
        if inner is None:
            return None
        texts += inner
    return texts


class _HarmlessWords:
    """Names or words that are harmless, which `is_harmless` tells of a new one; they are remembered."""

    __slots__ = ("_is_harmless", "_known")

    def __init__(self, is_harmless: Callable[[bytes], bool]) -> None:
        self._is_harmless = is_harmless
        self._known: set[bytes] = set()

    def holds(self, words: Iterable[bytes]) -> bool:
        """Return whether all of these are harmless."""
        new = set(words) - self._known
        for word in new:
            if not self._is_harmless(word):
                return False
            if len(word) <= _LONGEST and len(self._known) < MAX_HARMLESS:
                self._known.add(word)
        return True


def _is_harmless_word(word: bytes, more: MoreSecrets | None) -> bool:
    may_be_token = word.startswith(BEGINNINGS) or not word.isalnum()
    return (
        (not may_be_token or next(token_spans(word), None) is None)
        and next(iter(runs(word)), None) is None
        and (more is None or next(more(word, b""), None) is None)
    )

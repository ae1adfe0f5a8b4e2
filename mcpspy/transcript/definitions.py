"""Definitions that a server offers: read from its lists, kept as a baseline, and compared with it.

A baseline is the accepted definitions by name, to and from a JSON document. The document has each definition with the SHA-256
of its canonical JSON: members sorted by name, no blanks, no escapes but the necessary ones, in UTF-8. The caller reads and
writes the file, and judges changes: whether one is bad is for `findings.trust` to say. Paths of changes are spelled as
JSONPath (RFC 9535): `$.inputSchema.properties.path`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import Any, Final, Literal

import msgspec

from ..lazy_pattern import lazy_pattern
from ..wire.json_spans import UNREADABLE, Slice, items, members, string
from ..wire.jsonrpc import parse
from .model import CaptureInfo, Exchange, Kind, Message, Row, Transcript

SCHEMA: Final = 1
KIND: Final = "mcpspy baseline"

MAX_LEVELS: Final = 100
"""The deepest nesting that is compared: Python's JSON writer takes a few hundred levels, and no tool needs more than a dozen."""


class DefinitionKind(StrEnum):
    """The kind of a definition."""

    TOOL = "tool"
    PROMPT = "prompt"
    RESOURCE = "resource"
    TEMPLATE = "resource template"
    INSTRUCTIONS = "instructions"


ACCEPTED: Final = {
    DefinitionKind.INSTRUCTIONS: "instructions",
    DefinitionKind.TOOL: "tools",
    DefinitionKind.PROMPT: "prompts",
    DefinitionKind.TEMPLATE: "resourceTemplates",
}
"""The kinds of definitions in a baseline, and their members in the document. Resources are data, and come and go."""

MAX_PATHS: Final = 50
"""The number of paths that are listed of one changed definition."""

_is_name = lazy_pattern(r"[A-Za-z_]\w*", re.ASCII)


_LISTS: Final = {
    "tools/list": (DefinitionKind.TOOL, "tools", "name"),
    "prompts/list": (DefinitionKind.PROMPT, "prompts", "name"),
    "resources/list": (DefinitionKind.RESOURCE, "resources", "uri"),
    "resources/templates/list": (DefinitionKind.TEMPLATE, "resourceTemplates", "uriTemplate"),
}
"""By the method of a list: the kind of its items, the member of the result that has them, and the member that names an item."""

LISTED_MEMBERS: Final = {method: member for method, (_, member, _) in _LISTS.items()}
"""By the method of a list: the member of the result that has its items."""

_GREETINGS: Final = ("initialize", "server/discover")

LISTINGS: Final = frozenset((*_LISTS, *_GREETINGS))
"""The methods whose results have definitions."""


class Definition(msgspec.Struct, frozen=True, kw_only=True):
    """One definition: `raw` is its JSON; `name` is empty if it has none; `message` of `row` brought it."""

    kind: DefinitionKind
    name: str
    raw: bytes
    row: int
    message: Message


class Offer(msgspec.Struct, eq=False):
    """The offer of one capture's server. `complete` has the kinds of which a whole list was recorded."""

    capture_info: CaptureInfo
    current: dict[DefinitionKind, dict[str, Definition]] = {}
    """The offer at the end: by kind and name, in the server's order."""
    complete: set[DefinitionKind] = msgspec.field(default_factory=set)
    ever: dict[tuple[DefinitionKind, bytes], Definition] = {}
    """Every definition that was ever offered, by its bytes; each as it came first."""

    def definitions(self, kind: DefinitionKind) -> list[Definition]:
        """Return the definitions of this kind that are offered at the end."""
        return list(self.current.get(kind, {}).values())


def offers(transcript: Transcript) -> list[Offer]:
    """Return the offer in each capture of `transcript`, in its order. Linear in the lists that were fetched."""
    readers = [_OfferReader(Offer(info)) for info in transcript.captures]
    for row in transcript.rows:
        if isinstance(row, Exchange) and _is_listing(row):
            readers[row.capture].feed(row)
    return [reader.offer for reader in readers]


def _is_listing(row: Row) -> bool:
    return isinstance(row, Exchange) and row.request.method in LISTINGS


def offer(info: CaptureInfo, listings: Iterable[Exchange]) -> Offer:
    """Return the offer of one capture's server, from its exchanges with the methods of LISTINGS."""
    reader = _OfferReader(Offer(info))
    for exchange in listings:
        reader.feed(exchange)
    return reader.offer


class _Listing(msgspec.Struct, eq=False):
    """The pages of one list so far. `whole` says that its first page was recorded."""

    whole: bool
    definitions: dict[str, Definition] = {}


class _OfferReader:
    """An offer from listing exchanges, which `feed` takes one after the other."""

    __slots__ = ("_pages", "offer")

    def __init__(self, offer: Offer) -> None:
        self.offer = offer
        self._pages: dict[tuple[DefinitionKind, str], _Listing] = {}
        """The list that a cursor continues."""

    def feed(self, exchange: Exchange) -> None:
        response = exchange.response
        if response is None or response.kind is not Kind.RESULT:
            return
        result = members(members(response.raw).get("result", b""))
        method = exchange.method
        if method in _LISTS:
            self._page(exchange, response, result)
        else:
            self._greeting(exchange, response, result)

    def _page(self, exchange: Exchange, response: Message, result: dict[str, Slice]) -> None:
        kind, member, key = _LISTS[exchange.method]
        cursor = string(members(members(exchange.request.raw).get("params", b"")).get("cursor", b"")) or ""
        known = self._pages.get((kind, cursor)) if cursor else _Listing(whole=True)
        listing = known or _Listing(whole=False)
        page: dict[str, Definition] = {}
        for raw in _items(result.get(member, b"")):
            name = string(members(raw).get(key, b"")) or ""
            self._add(page, Definition(kind=kind, name=name, raw=bytes(raw), row=exchange.row, message=response))
        listing.definitions.update(page)
        next_cursor = string(result.get("nextCursor", b"")) or ""
        if next_cursor:
            self._pages[kind, next_cursor] = listing
        elif listing.whole:
            self.offer.complete.add(kind)
            self.offer.current[kind] = listing.definitions
        if kind not in self.offer.complete:
            self.offer.current.setdefault(kind, {}).update(page)

    def _greeting(self, exchange: Exchange, response: Message, result: dict[str, Slice]) -> None:
        raw = bytes(result.get("instructions", b""))
        definitions: dict[str, Definition] = {}
        if string(raw):
            kind = DefinitionKind.INSTRUCTIONS
            self._add(definitions, Definition(kind=kind, name="", raw=raw, row=exchange.row, message=response))
        self.offer.complete.add(DefinitionKind.INSTRUCTIONS)
        self.offer.current[DefinitionKind.INSTRUCTIONS] = definitions

    def _add(self, definitions: dict[str, Definition], definition: Definition) -> None:
        definitions[definition.name] = self.offer.ever.setdefault((definition.kind, definition.raw), definition)


def _items(value: Slice) -> list[Slice]:
    try:
        return items(bytes(value))
    except UNREADABLE:
        return []


def canonical(value: Any) -> bytes:
    """Return the canonical JSON of a value that `value_of` returned; equal values have equal bytes."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode("utf-8", "surrogatepass")


def value_of(raw: bytes) -> Any:
    """Return the value of a definition; if it is nested too deep to be compared, the digest of its bytes instead."""
    value = parse(raw)
    return {"nested too deep": _digest(raw)} if _is_deep(value) else value


def _is_deep(value: Any) -> bool:
    level = [value]
    for _ in range(MAX_LEVELS):
        level = [inner for outer in level for inner in _inside(outer)]
        if not level:
            return False
    return True


def _inside(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


class Baseline(msgspec.Struct, eq=False):
    """The accepted definitions of one server: their values by kind and name. A kind that is absent was never accepted."""

    server: str
    by_kind: dict[DefinitionKind, dict[str, Any]] = {}

    def updated(self, offer: Offer) -> Baseline:
        """Return this baseline with the definitions of `offer`; kinds whose lists were not recorded whole stay as they are."""
        recorded = {kind: _values(offer, kind) for kind in ACCEPTED if kind in offer.complete}
        return Baseline(self.server, {**self.by_kind, **recorded})


def _values(offer: Offer, kind: DefinitionKind) -> dict[str, Any]:
    return {definition.name: value_of(definition.raw) for definition in offer.definitions(kind)}


def _digest(data: bytes) -> str:
    from hashlib import sha256  # takes 4 ms, for it opens OpenSSL

    return sha256(data).hexdigest()


def document(baseline: Baseline) -> dict[str, Any]:
    """Return a baseline as a JSON object in a stable order."""
    members: dict[str, Any] = {"kind": KIND, "schema": SCHEMA, "server": baseline.server}
    for kind, member in ACCEPTED.items():
        if kind in baseline.by_kind:
            members[member] = {name: _entry(value) for name, value in sorted(baseline.by_kind[kind].items())}
    return members


def _entry(value: Any) -> dict[str, Any]:
    return {"sha256": _digest(canonical(value)), "definition": value}


def read_document(value: Any) -> Baseline:
    """Return the baseline in a document. Raises: ValueError: with what is wrong with it."""
    if not isinstance(value, dict) or value.get("kind") != KIND:
        raise ValueError("this is not a baseline of mcpspy")
    if value.get("schema") != SCHEMA:
        raise ValueError(f"its schema is {value.get('schema')!r}; this mcpspy reads {SCHEMA}")
    baseline = Baseline(str(value.get("server", "")))
    for kind, member in ACCEPTED.items():
        if member in value:
            baseline.by_kind[kind] = _read_definitions(member, value[member])
    return baseline


def _read_definitions(member: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"{member} is not an object")
    definitions = {}
    for name, entry in value.items():
        if not isinstance(entry, dict) or "definition" not in entry:
            raise ValueError(f"{member} {name!r} has no definition")
        if entry.get("sha256") != _digest(canonical(entry["definition"])):
            raise ValueError(f"the digest of {member} {name!r} does not match its definition: somebody edited it")
        definitions[name] = entry["definition"]
    return definitions


class OfferChange(msgspec.Struct, frozen=True, kw_only=True):
    """One changed definition. `paths` are the JSON paths where it changed; empty if it was added or removed.

    `definition` is the one that is offered now; None if it was removed.
    """

    how: Literal["added", "changed", "removed"]
    kind: DefinitionKind
    name: str
    definition: Definition | None = None
    paths: tuple[str, ...] = ()


def changes(offer: Offer, accepted: Baseline) -> Iterator[OfferChange]:
    """Yield the changes from a baseline to an offer, kind by kind, in the server's order.

    Nothing counts as removed from a list that was not recorded whole, and nothing as changed in one that was not recorded at all.
    """
    for kind in ACCEPTED:
        now = offer.current.get(kind)
        if now is None:
            continue
        before = accepted.by_kind.get(kind, {})
        for name, definition in now.items():
            if name not in before:
                yield OfferChange(how="added", kind=kind, name=name, definition=definition)
                continue
            value = value_of(definition.raw)
            if canonical(value) != canonical(before[name]):
                paths = tuple(_first(differences(before[name], value)))
                yield OfferChange(how="changed", kind=kind, name=name, definition=definition, paths=paths)
        if kind in offer.complete:
            yield from (OfferChange(how="removed", kind=kind, name=name) for name in before if name not in now)


def differences(before: Any, after: Any) -> Iterator[str]:
    """Yield the paths where two JSON values differ, as deep as possible. Lists of unequal length differ as a whole."""
    waiting: list[tuple[str, Any, Any]] = [("$", before, after)]
    while waiting:
        path, old, new = waiting.pop()
        if isinstance(old, dict) and isinstance(new, dict):
            names = [*old, *(name for name in new if name not in old)]
            pairs = [(f"{path}{step(name)}", old.get(name, _ABSENT), new.get(name, _ABSENT)) for name in names]
            waiting.extend(reversed(pairs))
        elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
            items = [(f"{path}[{at}]", before, after) for at, (before, after) in enumerate(zip(old, new, strict=True))]
            waiting.extend(reversed(items))
        elif old is _ABSENT or new is _ABSENT or canonical(old) != canonical(new):
            yield path


def strings(value: Any) -> Iterator[tuple[str, str]]:
    """Yield every string in a JSON value with its path; the name of a member has the path of the member."""
    waiting: list[tuple[str, Any]] = [("$", value)]
    while waiting:
        path, item = waiting.pop()
        if isinstance(item, str):
            yield path, item
        elif isinstance(item, dict):
            yield from ((f"{path}{step(name)}", name) for name in item)
            waiting.extend((f"{path}{step(name)}", inner) for name, inner in reversed(item.items()))
        elif isinstance(item, list):
            waiting.extend((f"{path}[{at}]", inner) for at, inner in reversed(list(enumerate(item))))


def step(name: str) -> str:
    """Return the step of a JSON path into a member: `.description`, `['x-mcp header']`."""
    if _is_name.fullmatch(name):
        return f".{name}"
    quoted = json.dumps(name, ensure_ascii=False)[1:-1].replace('\\"', '"').replace("'", "\\'")
    return f"['{quoted}']"


_ABSENT: Final = object()


def _first(paths: Iterator[str]) -> Iterator[str]:
    for count, path in enumerate(paths, 1):
        if count > MAX_PATHS:
            return
        yield path

"""Listing exchanges to the offer of a server: its tools, prompts, resources and instructions, as it defined them.

Pages of one list are joined, and a list that is fetched again replaces the one before. Definitions are not parsed: each is the
bytes of its JSON, as they were on the wire.
"""

from collections.abc import Iterable
from enum import StrEnum
from typing import Final

import msgspec

from ...wire.json_spans import UNREADABLE, Slice, items, members, string
from ..model import CaptureInfo, Exchange, Kind, Message, Row, Transcript


class DefinitionKind(StrEnum):
    """The kind of a definition."""

    TOOL = "tool"
    PROMPT = "prompt"
    RESOURCE = "resource"
    TEMPLATE = "resource template"
    INSTRUCTIONS = "instructions"


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

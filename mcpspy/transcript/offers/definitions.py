"""What a server says that it offers: its tools, prompts and resources, and its instructions, as it defined them.

Pages of one list are joined, and a list that is fetched again takes the place of the one before. Refuses to parse what is defined:
a definition is the bytes of its JSON, as they were on the wire.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from ...wire.json_spans import UNREADABLE, Slice, items, members, string
from ..model import CaptureInfo, Exchange, Kind, Message, Transcript


class DefinitionKind(StrEnum):
    """What is defined."""

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
"""By the method that lists them: what is listed, in which member of the result, and the member that names one."""

_GREETINGS: Final = ("initialize", "server/discover")

LISTINGS: Final = frozenset((*_LISTS, *_GREETINGS))
"""The methods whose results define something."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """One thing that a server offers. `raw` is its JSON; `name` is empty where it has none; `row` and `message` brought it."""

    part: DefinitionKind
    name: str
    raw: bytes
    row: int
    message: Message


@dataclass(slots=True, eq=False)
class Offer:
    """All that one capture's server offers. A part stands in `complete` if a list of it was seen from its beginning to its end."""

    capture_info: CaptureInfo
    current: dict[DefinitionKind, dict[str, Definition]] = field(default_factory=dict)
    """What is offered at the end: by part and name, in the order in which the server lists it."""
    complete: set[DefinitionKind] = field(default_factory=set)
    ever: dict[tuple[DefinitionKind, bytes], Definition] = field(default_factory=dict)
    """Everything that was ever offered, what differs by a byte being two; each as it came first."""

    def definitions(self, part: DefinitionKind) -> list[Definition]:
        """What is offered of this part at the end."""
        return list(self.current.get(part, {}).values())


def offers(transcript: Transcript) -> list[Offer]:
    """One for each capture of `transcript`, in its order. Linear in the lists that were fetched."""
    readers = [_Reader(Offer(source)) for source in transcript.captures]
    for row in transcript.rows:
        if isinstance(row, Exchange) and row.request.method in LISTINGS:
            readers[row.capture].feed(row)
    return [reader.offer for reader in readers]


def offer(source: CaptureInfo, listings: Iterable[Exchange]) -> Offer:
    """What the server of one capture offers, from the exchanges with the methods of LISTINGS."""
    reader = _Reader(Offer(source))
    for exchange in listings:
        reader.feed(exchange)
    return reader.offer


@dataclass(slots=True, eq=False)
class _Listing:
    """Pages of one list, so far. `whole` says that its first page was seen."""

    whole: bool
    found: dict[str, Definition] = field(default_factory=dict)


class _Reader:
    """Takes in one listing exchange after the other."""

    __slots__ = ("_pages", "offer")

    def __init__(self, made: Offer) -> None:
        self.offer = made
        self._pages: dict[tuple[DefinitionKind, str], _Listing] = {}
        """What a cursor goes on with."""

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
        part, member, key = _LISTS[exchange.method]
        asked = string(members(members(exchange.request.raw).get("params", b"")).get("cursor", b"")) or ""
        known = self._pages.get((part, asked)) if asked else _Listing(whole=True)
        listing = known or _Listing(whole=False)
        page: dict[str, Definition] = {}
        for raw in _items(result.get(member, b"")):
            name = string(members(raw).get(key, b"")) or ""
            self._add(page, Definition(part=part, name=name, raw=bytes(raw), row=exchange.row, message=response))
        listing.found.update(page)
        next_cursor = string(result.get("nextCursor", b"")) or ""
        if next_cursor:
            self._pages[part, next_cursor] = listing
        elif listing.whole:
            self.offer.complete.add(part)
            self.offer.current[part] = listing.found
        if part not in self.offer.complete:
            self.offer.current.setdefault(part, {}).update(page)

    def _greeting(self, exchange: Exchange, response: Message, result: dict[str, Slice]) -> None:
        raw = bytes(result.get("instructions", b""))
        found: dict[str, Definition] = {}
        if string(raw):
            made = Definition(part=DefinitionKind.INSTRUCTIONS, name="", raw=raw, row=exchange.row, message=response)
            self._add(found, made)
        self.offer.complete.add(DefinitionKind.INSTRUCTIONS)
        self.offer.current[DefinitionKind.INSTRUCTIONS] = found

    def _add(self, found: dict[str, Definition], made: Definition) -> None:
        found[made.name] = self.offer.ever.setdefault((made.part, made.raw), made)


def _items(value: Slice) -> list[Slice]:
    try:
        return items(bytes(value))
    except UNREADABLE:
        return []

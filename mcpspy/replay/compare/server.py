"""Two servers compared: their identity and what they offer.

The identity is one value, so that differences have paths: `$.client.version`, `$.server.capabilities.tools`. Of several clients
it is the first. Nothing is reported missing from a list that was not seen whole, and nothing about a list that one side never saw.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from ...records import CLIENT, Exit
from ...transcript.llm.json_values import members
from ...transcript.mcp.codes import CLIENT_CAPABILITIES, CLIENT_INFO, SERVER_INFO
from ...transcript.mcp.methods import INITIALIZE, OPENINGS
from ...transcript.mcp.revisions import Era
from ...transcript.model import Exchange, Kind
from ...transcript.offers.definitions import Definition, DefinitionKind, Offer
from ..json.canonical import read
from ..mock.content import answer_reading, params_value
from .difference import NO_DIFFERENCES, Differences, differences
from .ignore import Ignore


def identity(exchanges: Iterable[Exchange], ended: Exit | None = None) -> dict[str, Any]:
    """Return names, versions, capabilities, revision and, with `ended`, the server's exit; what is unknown is absent."""
    facts: dict[str, Any] = {}
    introduction = _introduction(exchanges)
    if introduction is not None:
        facts = _legacy(introduction) if introduction.method == INITIALIZE else _modern(introduction)
        revision = introduction.response.revision if introduction.response is not None else None
        facts["revision"] = revision or introduction.revision
    if ended is not None:
        values = {"code": ended.code, "signal": ended.signal, "error": ended.error}
        facts.setdefault("server", {})["exit"] = {name: value for name, value in values.items() if value not in (None, "")}
    return facts


def _introduction(exchanges: Iterable[Exchange]) -> Exchange | None:
    """Find the opening that was answered; without one, the first request of the modern era, which holds as much."""
    first: Exchange | None = None
    for exchange in exchanges:
        if exchange.sender != CLIENT or exchange.response is None or exchange.response.kind is not Kind.RESULT:
            continue
        if exchange.method in OPENINGS:
            return exchange
        if first is None and exchange.era is Era.MODERN:
            first = exchange
    return first


def _legacy(opening: Exchange) -> dict[str, Any]:
    params, result = members(params_value(opening.request)), members(members(answer_reading(opening).value).get("result"))
    return {
        "client": members(params.get("clientInfo")) | _capabilities(params.get("capabilities")),
        "server": members(result.get("serverInfo")) | _capabilities(result.get("capabilities")),
    }


def _modern(first: Exchange) -> dict[str, Any]:
    meta = members(members(params_value(first.request)).get("_meta"))
    result = members(members(answer_reading(first).value).get("result"))
    discovered = result.get("capabilities") if first.method in OPENINGS else None
    server = members(members(result.get("_meta")).get(SERVER_INFO)) or members(result.get("serverInfo"))
    return {
        "client": members(meta.get(CLIENT_INFO)) | _capabilities(meta.get(CLIENT_CAPABILITIES)),
        "server": server | _capabilities(discovered),
    }


def _capabilities(value: Any) -> dict[str, Any]:
    return {"capabilities": value} if isinstance(value, dict) else {}


@dataclass(frozen=True, slots=True, kw_only=True)
class DefinitionChange:
    """One definition that was added, removed or changed; `fields` are the differences of a changed one."""

    how: Literal["added", "changed", "removed"]
    part: DefinitionKind
    name: str
    before: Definition | None = None
    after: Definition | None = None
    fields: Differences = NO_DIFFERENCES


def definition_changes(before: Offer, after: Offer, ignore: Ignore) -> Iterator[DefinitionChange]:
    """Yield the changes kind by kind, in the order in which the server lists definitions now; removed ones come last."""
    for part in DefinitionKind:
        old, new = before.current.get(part), after.current.get(part)
        if old is None or new is None:
            continue
        for name, definition in new.items():
            known = old.get(name)
            if known is not None:
                yield from _changes(part, known, definition, ignore)
            elif part in before.complete:
                yield DefinitionChange(how="added", part=part, name=name, after=definition)
        if part in after.complete:
            removed = ((name, definition) for name, definition in old.items() if name not in new)
            for name, definition in removed:
                yield DefinitionChange(how="removed", part=part, name=name, before=definition)


def _changes(part: DefinitionKind, before: Definition, after: Definition, ignore: Ignore) -> Iterator[DefinitionChange]:
    if before.raw == after.raw:
        return
    fields = differences(read(before.raw), read(after.raw), ignore)
    if fields:
        yield DefinitionChange(how="changed", part=part, name=after.name, before=before, after=after, fields=fields)

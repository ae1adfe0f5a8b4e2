"""What the two sides of a capture say that they are: names, versions, capabilities, the revision, and how the server ended.

As one value, so that differences have paths: `$.client.version`, `$.server.capabilities.tools`. Of many clients it is the first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from ...records import CLIENT, Exit
from ...transcript.mcp.codes import CLIENT_CAPABILITIES, CLIENT_INFO, SERVER_INFO
from ...transcript.mcp.methods import INITIALIZE, OPENINGS
from ...transcript.mcp.revisions import Era
from ...transcript.model import Exchange, Kind
from ...transcript.offers.definitions import Definition, DefinitionKind, Offer
from ..json.canonical import read
from ..mock.content import answer_reading, params_value
from .difference import NO_DIFFERENCES, Differences, differences

if TYPE_CHECKING:
    from .ignore import Ignore


def identity(exchanges: Iterable[Exchange], ended: Exit | None = None) -> dict[str, Any]:
    """What was said first in one capture, and the exit of its server where that is to be told; what was not said is absent."""
    made: dict[str, Any] = {}
    found = _introduction(exchanges)
    if found is not None:
        made = _legacy(found) if found.method == INITIALIZE else _modern(found)
        revision = found.response.revision if found.response is not None else None
        made["revision"] = revision or found.revision
    if ended is not None:
        facts = {"code": ended.code, "signal": ended.signal, "error": ended.error}
        made.setdefault("server", {})["exit"] = {name: one for name, one in facts.items() if one not in (None, "")}
    return made


def _introduction(exchanges: Iterable[Exchange]) -> Exchange | None:
    """The opening that was answered well; without one, the first request of the modern era, which says as much."""
    first: Exchange | None = None
    for one in exchanges:
        if one.sender != CLIENT or one.response is None or one.response.kind is not Kind.RESULT:
            continue
        if one.method in OPENINGS:
            return one
        if first is None and one.era is Era.MODERN:
            first = one
    return first


def _legacy(opening: Exchange) -> dict[str, Any]:
    params, result = _object(params_value(opening.request)), _object(_object(answer_reading(opening).value).get("result"))
    return {
        "client": _object(params.get("clientInfo")) | _capabilities(params.get("capabilities")),
        "server": _object(result.get("serverInfo")) | _capabilities(result.get("capabilities")),
    }


def _modern(first: Exchange) -> dict[str, Any]:
    meta = _object(_object(params_value(first.request)).get("_meta"))
    result = _object(_object(answer_reading(first).value).get("result"))
    discovered = result.get("capabilities") if first.method in OPENINGS else None
    server = _object(_object(result.get("_meta")).get(SERVER_INFO)) or _object(result.get("serverInfo"))
    return {
        "client": _object(meta.get(CLIENT_INFO)) | _capabilities(meta.get(CLIENT_CAPABILITIES)),
        "server": server | _capabilities(discovered),
    }


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _capabilities(value: Any) -> dict[str, Any]:
    return {"capabilities": value} if isinstance(value, dict) else {}


@dataclass(frozen=True, slots=True, kw_only=True)
class DefinitionChange:
    """One definition that came, went or changed; `fields` are the differences of what changed."""

    how: Literal["added", "changed", "removed"]
    part: DefinitionKind
    name: str
    before: Definition | None = None
    after: Definition | None = None
    fields: Differences = NO_DIFFERENCES


def definition_changes(before: Offer, after: Offer, ignore: Ignore) -> Iterator[DefinitionChange]:
    """What differs, part by part, in the order in which the server lists it now; what went comes last."""
    for part in DefinitionKind:
        old, new = before.current.get(part), after.current.get(part)
        if old is None or new is None:
            continue
        for name, one in new.items():
            known = old.get(name)
            if known is not None:
                yield from _changed(part, known, one, ignore)
            elif part in before.complete:
                yield DefinitionChange(how="added", part=part, name=name, after=one)
        if part in after.complete:
            gone = ((name, one) for name, one in old.items() if name not in new)
            yield from (DefinitionChange(how="removed", part=part, name=name, before=one) for name, one in gone)


def _changed(part: DefinitionKind, before: Definition, after: Definition, ignore: Ignore) -> Iterator[DefinitionChange]:
    if before.raw == after.raw:
        return
    fields = differences(read(before.raw), read(after.raw), ignore)
    if fields:
        yield DefinitionChange(how="changed", part=part, name=after.name, before=before, after=after, fields=fields)

"""What of a server was looked at and accepted: its definitions by name, each in canonical JSON with its digest.

Canonical: members sorted by name, no blanks, characters as they are, in UTF-8; its SHA-256 is what is compared. Refuses to read and
write files, and to judge what changed.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final

from ...wire.jsonrpc import parse
from .definitions import DefinitionKind, Offer

if TYPE_CHECKING:
    from ..model import CaptureInfo

SCHEMA: Final = 1
KIND: Final = "mcpspy baseline"

MAX_LEVELS: Final = 100
"""Python's JSON writer takes a few hundred levels; no tool wants more than a dozen."""

ACCEPTED: Final = {
    DefinitionKind.INSTRUCTIONS: "instructions",
    DefinitionKind.TOOL: "tools",
    DefinitionKind.PROMPT: "prompts",
    DefinitionKind.TEMPLATE: "resourceTemplates",
}
"""The parts that are accepted, and their members in the document. Resources are data, and come and go."""


def canonical(value: Any) -> bytes:
    """A JSON value, nested no deeper than those of `value_of`, as the bytes by which it is compared."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode("utf-8", "surrogatepass")


def value_of(raw: bytes) -> Any:
    """What a definition says. Where it is nested too deep to be looked at, the digest of its bytes stands for all of it."""
    value = parse(raw)
    return {"nested too deep": sha256(raw).hexdigest()} if _is_deep(value) else value


def _is_deep(value: Any) -> bool:
    level = [value]
    for _ in range(MAX_LEVELS):
        level = [inner for one in level for inner in _inside(one)]
        if not level:
            return False
    return True


def _inside(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


@dataclass(slots=True, eq=False)
class Baseline:
    """The accepted definitions of one server: by part and name their values. A part that is absent was never accepted."""

    server: str
    parts: dict[DefinitionKind, dict[str, Any]] = field(default_factory=dict)

    def taken(self, offered: Offer) -> Baseline:
        """This baseline with what `offered` has instead; parts whose lists were not seen whole stay as they are."""
        seen = {part: _values(offered, part) for part in ACCEPTED if part in offered.complete}
        return Baseline(self.server, {**self.parts, **seen})


def label_of(source: CaptureInfo) -> str:
    """The name under which a server is accepted: the label of its captures."""
    return (source.header.label if source.header else "") or "server"


def _values(offered: Offer, part: DefinitionKind) -> dict[str, Any]:
    return {one.name: value_of(one.raw) for one in offered.definitions(part)}


def document(baseline: Baseline) -> dict[str, Any]:
    """A baseline as a JSON object in a stable order."""
    made: dict[str, Any] = {"kind": KIND, "schema": SCHEMA, "server": baseline.server}
    for part, member in ACCEPTED.items():
        if part in baseline.parts:
            made[member] = {name: _entry(value) for name, value in sorted(baseline.parts[part].items())}
    return made


def _entry(value: Any) -> dict[str, Any]:
    return {"sha256": sha256(canonical(value)).hexdigest(), "definition": value}


def read_document(value: Any) -> Baseline:
    """The baseline of such an object. Raises: ValueError: saying what is wrong with it."""
    if not isinstance(value, dict) or value.get("kind") != KIND:
        raise ValueError("this is no baseline of mcpspy")
    if value.get("schema") != SCHEMA:
        raise ValueError(f"its schema is {value.get('schema')!r}; this mcpspy knows {SCHEMA}")
    found = Baseline(str(value.get("server", "")))
    for part, member in ACCEPTED.items():
        if member in value:
            found.parts[part] = _read_part(member, value[member])
    return found


def _read_part(member: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"{member} is no object")
    found = {}
    for name, entry in value.items():
        if not isinstance(entry, dict) or "definition" not in entry:
            raise ValueError(f"{member} {name!r} has no definition")
        if entry.get("sha256") != sha256(canonical(entry["definition"])).hexdigest():
            raise ValueError(f"the digest of {member} {name!r} is not that of its definition: somebody edited it")
        found[name] = entry["definition"]
    return found

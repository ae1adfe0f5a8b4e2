"""Baselines: a server's accepted definitions by name, to and from a JSON document.

The document has each definition with the SHA-256 of its canonical JSON: members sorted by name, no blanks, no escapes but the
necessary ones, in UTF-8. The caller reads and writes the file, and judges changes.
"""

from __future__ import annotations

import json
from typing import Any, Final

import msgspec

from ...wire.jsonrpc import parse
from .definitions import DefinitionKind, Offer

SCHEMA: Final = 1
KIND: Final = "mcpspy baseline"

MAX_LEVELS: Final = 100
"""The deepest nesting that is compared: Python's JSON writer takes a few hundred levels, and no tool needs more than a dozen."""

ACCEPTED: Final = {
    DefinitionKind.INSTRUCTIONS: "instructions",
    DefinitionKind.TOOL: "tools",
    DefinitionKind.PROMPT: "prompts",
    DefinitionKind.TEMPLATE: "resourceTemplates",
}
"""The kinds of definitions in a baseline, and their members in the document. Resources are data, and come and go."""


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

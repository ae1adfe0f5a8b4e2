"""How what a server offers differs from what was accepted of it: definitions that came, went and changed, and where they changed.

A place is spelled as JSONPath (RFC 9535): `$.inputSchema.properties.path`. Refuses to say whether a change is bad: `findings.trust`.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, Literal

from .baseline import ACCEPTED, Baseline, canonical, value_of
from .definitions import Definition, DefinitionKind, Offer

MAX_PATHS: Final = 50
"""So many places of one definition are told apart; past that it is another one altogether."""

_is_name = re.compile(r"[A-Za-z_]\w*", re.ASCII).fullmatch


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferChange:
    """One definition that differs. `paths` are the places where it does; empty for what came or went.

    `definition` is what is offered now, None for what went.
    """

    how: Literal["added", "changed", "removed"]
    part: DefinitionKind
    name: str
    definition: Definition | None = None
    paths: tuple[str, ...] = ()


def changes(offered: Offer, accepted: Baseline) -> Iterator[OfferChange]:
    """What differs between what is offered and what was accepted, part by part, in the order of the server.

    Of a list that was not seen whole nothing is said to be missing; of one that was not seen at all, nothing.
    """
    for part in ACCEPTED:
        now = offered.current.get(part)
        if now is None:
            continue
        before = accepted.parts.get(part, {})
        for name, definition in now.items():
            if name not in before:
                yield OfferChange(how="added", part=part, name=name, definition=definition)
                continue
            value = value_of(definition.raw)
            if canonical(value) != canonical(before[name]):
                paths = tuple(_first(differences(before[name], value)))
                yield OfferChange(how="changed", part=part, name=name, definition=definition, paths=paths)
        if part in offered.complete:
            yield from (OfferChange(how="removed", part=part, name=name) for name in before if name not in now)


def differences(before: Any, after: Any) -> Iterator[str]:
    """The places where two JSON values differ, as deep as they can be told apart. Lists of unequal length differ as a whole."""
    waiting: list[tuple[str, Any, Any]] = [("$", before, after)]
    while waiting:
        path, old, new = waiting.pop()
        if isinstance(old, dict) and isinstance(new, dict):
            names = [*old, *(name for name in new if name not in old)]
            pairs = [(f"{path}{step(name)}", old.get(name, _ABSENT), new.get(name, _ABSENT)) for name in names]
            waiting.extend(reversed(pairs))
        elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
            items = [(f"{path}[{at}]", one, other) for at, (one, other) in enumerate(zip(old, new, strict=True))]
            waiting.extend(reversed(items))
        elif old is _ABSENT or new is _ABSENT or canonical(old) != canonical(new):
            yield path


def strings(value: Any) -> Iterator[tuple[str, str]]:
    """Every string in a JSON value with its place; a member's name stands at the place of the member."""
    waiting: list[tuple[str, Any]] = [("$", value)]
    while waiting:
        path, one = waiting.pop()
        if isinstance(one, str):
            yield path, one
        elif isinstance(one, dict):
            yield from ((f"{path}{step(name)}", name) for name in one)
            waiting.extend((f"{path}{step(name)}", inner) for name, inner in reversed(one.items()))
        elif isinstance(one, list):
            waiting.extend((f"{path}[{at}]", inner) for at, inner in reversed(list(enumerate(one))))


def step(name: str) -> str:
    """One step into an object, as JSONPath has it: `.description`, `['x-mcp header']`."""
    if _is_name(name):
        return f".{name}"
    quoted = json.dumps(name, ensure_ascii=False)[1:-1].replace('\\"', '"').replace("'", "\\'")
    return f"['{quoted}']"


_ABSENT: Final = object()


def _first(paths: Iterator[str]) -> Iterator[str]:
    for count, path in enumerate(paths, 1):
        if count > MAX_PATHS:
            return
        yield path

"""An offer and a baseline to the changes between them: definitions that were added, removed or changed, and where they changed.

Paths are spelled as JSONPath (RFC 9535): `$.inputSchema.properties.path`. Whether a change is bad is for `findings.trust` to say.
"""

import json
import re
from collections.abc import Iterator
from typing import Any, Final, Literal

import msgspec

from ...lazy_pattern import lazy_pattern
from .baseline import ACCEPTED, Baseline, canonical, value_of
from .definitions import Definition, DefinitionKind, Offer

MAX_PATHS: Final = 50
"""The number of paths that are listed of one changed definition."""

_is_name = lazy_pattern(r"[A-Za-z_]\w*", re.ASCII)


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

"""The modules that find, all rules by name, and the rules that `--select` and `--ignore` choose.

To add findings, write a module and add it here, in the table of the facts that it reads. The module has

- `RULES`, its rules;
- `find(facts)`, which yields a `Hit` for each finding;
- `optional = True`, if only `mcpspy check` and the like ask for its findings;
- `reads_model_api = True`, if it also reads captures of a model API, which carry neither JSON-RPC nor MCP.

docs/findings/ is generated from the rules, in this order.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

from ...errors import RuleError
from . import capture, cost, credentials, invisible_text, trust
from .llm import arguments, costs, model_answers, offers, results, tool_uses
from .protocol import (
    answers,
    behaviour,
    contents,
    encoding,
    errors,
    forms,
    handshake,
    json_traps,
    method_support,
    modern,
    progress,
    repeats,
    rounds,
    schemas,
    session_rules,
    state,
    tasks,
    texts,
    timeouts,
    types,
    unserved,
)
from .rule import Family, Rule
from .transport import (
    bodies,
    browsers,
    bursts,
    deliveries,
    disconnects,
    headers,
    limits,
    lines,
    placeholders,
    redirects,
    refusals,
    responses,
    resumption,
    server_exits,
    sessions,
    stalls,
    statuses,
    streams,
    waiting,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .facts import CaptureFacts, TranscriptFacts
    from .llm.model_facts import ModelFacts
    from .rule import Hit


Facts = TypeVar("Facts", contravariant=True)  # noqa: PLC0105 - read as the type of `facts`


class FindingModule(Protocol[Facts]):
    """A module of rules, by the facts that it reads."""

    @property
    def RULES(self) -> tuple[Rule, ...]: ...  # noqa: N802 - a constant of a module

    def find(self, facts: Facts, /) -> Iterator[Hit]: ...


CAPTURE_FINDERS: Final[tuple[FindingModule[CaptureFacts], ...]] = (
    # transport
    lines, encoding, json_traps, stalls, server_exits, waiting, timeouts, statuses, redirects, placeholders, refusals, bodies,
    browsers, deliveries, disconnects, sessions, streams, bursts, limits,
    # protocol
    answers, method_support, handshake, unserved, progress, rounds, state, tasks, modern, errors, headers, responses, resumption,
    contents, forms, session_rules, texts,
    # behaviour
    behaviour, repeats,
    # trust
    invisible_text,
    # capture
    capture,
)  # fmt: skip
"""Modules that read one capture at a time."""

TRANSCRIPT_FINDERS: Final[tuple[FindingModule[TranscriptFacts], ...]] = (schemas, types, cost, trust, credentials)
"""Modules that read all captures together."""

MODEL_FINDERS: Final[tuple[FindingModule[ModelFacts], ...]] = (
    offers,
    tool_uses,
    results,
    model_answers,
    arguments,
    costs,
)
"""Modules that read the model calls of all captures, and are asked only where there are any."""


def is_optional(finder: FindingModule[Any]) -> bool:
    """Return whether the findings of a module have to be asked for."""
    return bool(getattr(finder, "optional", False))


_FINDERS: Final[tuple[FindingModule[Any], ...]] = (*CAPTURE_FINDERS, *TRANSCRIPT_FINDERS, *MODEL_FINDERS)

RULES: Final[dict[str, Rule]] = {rule.name: rule for finder in sorted(_FINDERS, key=is_optional) for rule in finder.RULES}
"""All rules by name; those that have to be asked for are the last."""


def selected_rules(select: Iterable[str] = (), ignore: Iterable[str] = ()) -> dict[str, Rule]:
    """Give the rules named by `select` (all, if that is empty) without those named by `ignore`, by name.

    Each text has names, globs or families, separated by commas. Raises: RuleError: for one that names no rule.
    """
    wanted = _named(select) or set(RULES)
    unwanted = _named(ignore)
    return {name: rule for name, rule in RULES.items() if name in wanted and name not in unwanted}


def rule_named(name: str) -> Rule:
    """Give the rule of this name. Raises: RuleError: if there is none; it names the nearest."""
    rule = RULES.get(name)
    if rule is None:
        raise RuleError(name, _nearest(name, RULES))
    return rule


def _named(texts: Iterable[str]) -> set[str]:
    words = [word.strip() for text in texts for word in text.split(",")]
    return {name for word in words if word for name in _matching(word)}


def _matching(word: str) -> list[str]:
    if word in RULES:
        return [word]
    if word in tuple(Family):
        return [rule.name for rule in RULES.values() if rule.family == word]
    names = [name for name in RULES if fnmatchcase(name, word)] if any(sign in word for sign in "*?[") else []
    if not names:
        raise RuleError(word, _nearest(word, [*RULES, *Family]))
    return names


def _nearest(word: str, names: Iterable[str]) -> tuple[str, ...]:
    return tuple(get_close_matches(word[:80], [str(name) for name in names], n=3, cutoff=0.5))
